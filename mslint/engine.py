"""One file and the rules: which can fire in it at all, and what they find."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mslint.console import internal_error
from mslint.findings import Finding, Position, Severity
from mslint.rules.evidence import evidence_of
from mslint.rules.registry import AnyRule, Narrowed, all_rules, is_ours
from mslint.source.parsing import parsed
from mslint.source.text import Source, lines_of, may_suppress, position_at

if TYPE_CHECKING:
    from libcst import ParserSyntaxError

    from mslint.program.grounds import Grounds
    from mslint.program.project import Program
    from mslint.semantics.module import Module
    from mslint.source.suppression import Suppressions

SYNTAX_ERROR = ("MS002", "syntax-error")
"""Code and name of the one finding that is no rule's and that nothing silences."""

UNUSED_SUPPRESSION = "MS001"
"""Code of the one rule that judges by what the others found."""

_INDENTED_BY_FORM_FEED = r"^[ \t]*\f(?=[ \t\f]*[^\s#])"
_BEYOND_LIBCST = r"\f|^[ \t]*\\$"
"""Layout that libcst stumbles over in some places: form feeds, and rows that only go on in the next."""


@dataclass(frozen=True)
class Checked:
    """What was found in one file.

    ``module`` is None where no rule could fire or the file could not be parsed; ``failures`` are messages about
    internal errors, each of which means that some findings may be missing. ``silent`` are the codes of our rules that looked
    and found nothing, with what that rests on.
    """

    source: Source
    findings: tuple[Finding, ...] = ()
    module: Module | None = None
    failures: tuple[str, ...] = ()
    silent: Mapping[str, Grounds] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the file could be read by all rules to the end."""
        return not self.failures and all(finding.code != SYNTAX_ERROR[0] for finding in self.findings)


@dataclass(frozen=True)
class Screened:
    """What one file by itself tells about the rules, whatever program it belongs to.

    ``live`` are those that may find something in it; where there are none, ``idle`` is all that is to be said of it: of its
    syntax and of its comments.
    """

    live: Sequence[AnyRule]
    idle: Checked | None


def screened(source: Source, rules: Sequence[AnyRule], silent: Collection[str] = ()) -> Screened:
    """Find out which of ``rules`` may find something in ``source``, without a look at its program.

    Those whose codes are among ``silent`` are known to find nothing.
    """
    tree = parsed(source.text)
    unparsable = syntax_error(source) if tree is None else None
    if unparsable:
        return Screened((), Checked(source, (unparsable,)))
    live = passing(live_rules(rules, source.text, silent), tree)
    return Screened(live, None if live else _without_findings(source, rules))


def check_source(source: Source, rules: Iterable[AnyRule], program: Program, known: Screened | None = None) -> Checked:
    """Return what ``rules`` find in ``source``, in order of place, without what its comments silence.

    ``known`` is what screening it has told, if that was done before.
    """
    rules = list(rules)
    known = known or screened(source, rules)
    if known.idle is not None:
        return known.idle
    return _run(source, rules, known.live, program)


def live_rules(rules: Iterable[AnyRule], text: str, silent: Collection[str] = ()) -> list[AnyRule]:
    """Return the rules that may find something in ``text`` by the strings in it, the judge of comments apart.

    None of those that are known to be ``silent``, unless libcst may not read the text, which has to be told.
    """
    left_out = {UNUSED_SUPPRESSION}
    if silent and not re.search(_BEYOND_LIBCST, text, re.MULTILINE):
        left_out.update(silent)
    return [rule for rule in rules if rule.code not in left_out and can_fire(rule, text)]


def can_fire(rule: AnyRule, text: str) -> bool:
    """Tell whether ``text`` holds the strings without which ``rule`` finds nothing."""
    return _holds(text, rule.triggers) and (not rule.context or _holds(text, rule.context))


def passing(rules: Sequence[AnyRule], tree: ast.Module | None) -> list[AnyRule]:
    """Return those of ``rules`` that may find something in a file with the syntax ``tree``: all, where that is not known."""
    return [rule for rule in rules if tree is None or _passes(rule, tree)]


def _passes(rule: AnyRule, tree: ast.Module) -> bool:
    module, _, function = rule.screen.partition(":")
    try:
        return not function or bool(getattr(import_module(module), function)(tree))
    except Exception:  # an expression nested too deeply for it, or a fault of its own, keeps no file from the rule
        return True


def _holds(text: str, words: tuple[bytes, ...]) -> bool:
    return any(word in text for word in _decoded(words))


@cache
def _decoded(words: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple(word.decode() for word in words)


def _run(source: Source, rules: Sequence[AnyRule], live: Sequence[AnyRule], program: Program) -> Checked:
    from mslint.program.grounds import Grounds
    from mslint.semantics.module import Module, Unparsed  # brings libcst along
    from mslint.source.suppression import Suppressions

    module = Module(source, program)
    findings: list[Finding] = []
    failures: dict[str, str] = {}
    silent: dict[str, Grounds] = {}
    looking: list[str] = []  # rules that found nothing, but looked into the file
    looked = [program.noting(lambda: program.looks_into(source.path))[1]]
    for rule in live:
        try:
            found, grounds = program.noting(lambda rule=rule: list(rule().check(module)))  # type: ignore[misc]
            findings += found
            if not module.is_untouched:  # what one rule reads in the file is at hand for the next
                looked.append(grounds)
            if not found and is_ours(rule):
                silent[rule.code] = grounds
                looking += [] if module.is_untouched else [rule.code]
        except Unparsed as problem:
            return Checked(source, (_beyond_libcst(source, problem.reason),))
        except Exception as exception:
            failures[rule.code] = internal_error(f"rule {rule.code} ({rule.name})", source.filename, exception)
    suppressions = Suppressions(source.text)
    findings = [finding for finding in findings if not suppressions.silence(finding)]
    findings += _idle_comments(source, suppressions, rules, failures)
    findings = [replace(finding, evidence=finding.evidence or evidence_of(finding.code)) for finding in findings]
    findings.sort(key=lambda finding: (finding.start, finding.code))
    silent.update(dict.fromkeys(looking, Grounds(others=tuple(looked))))
    return Checked(source, tuple(findings), module, tuple(failures.values()), silent)


def _without_findings(source: Source, rules: Sequence[AnyRule]) -> Checked:
    """Return what is left to say of a file in which the rules find nothing."""
    if not may_suppress(source.text):
        return Checked(source)
    from mslint.source.suppression import Suppressions  # has many patterns to compile

    return Checked(source, tuple(_idle_comments(source, Suppressions(source.text), rules, ())))


def _idle_comments(
    source: Source, suppressions: Suppressions, rules: Sequence[AnyRule], failed: Collection[str]
) -> Iterator[Finding]:
    """Yield what is to be said of comments that silence nothing, now that ``suppressions`` has seen all findings."""
    from mslint.rules.engine.unused_suppression import UnusedSuppression

    judge = next((rule for rule in rules if rule.code == UNUSED_SUPPRESSION), None)
    if judge is None or (isinstance(judge, Narrowed) and UnusedSuppression.severity not in judge.severities):
        return
    # Of a rule of which only some findings are wanted, it cannot be told what its other ones would have been silenced by.
    asked = [rule for rule in rules if not isinstance(rule, Narrowed) and rule.code not in failed]
    for finding in UnusedSuppression().judge(source.filename, suppressions, _words(asked), _words(all_rules())):
        if not suppressions.silence(finding, blankly=False):
            yield finding


def _words(rules: Iterable[AnyRule]) -> set[str]:
    return {word for rule in rules for word in (rule.code, rule.name)}


def syntax_error(source: Source) -> Finding | None:
    """Return the finding for a file that Python itself cannot parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like: other tools' business
            ast.parse(source.text)
    except SyntaxError as error:
        start = _clamped(source.text, error.lineno, error.offset)
        end = _clamped(source.text, error.end_lineno, error.end_offset)
        version = ".".join(map(str, sys.version_info[:2]))
        remedy = "correct it, or leave the file out (`exclude` in [tool.mslint])"
        return _syntax_finding(
            source, start, max(start, end), f"Python {version} cannot parse this: {error.msg}; {remedy}"
        )
    except (RecursionError, MemoryError):
        return _too_deep(source)
    return None


def _too_deep(source: Source) -> Finding:
    message = "this file is nested too deeply to be parsed; split its longest expression or chain of elif"
    return _syntax_finding(source, Position(1, 1), Position(1, 1), message)


def _beyond_libcst(source: Source, error: ParserSyntaxError | RecursionError) -> Finding:
    """Return the finding for a file that Python takes and libcst does not: form feeds in indents are all we know of."""
    if isinstance(error, RecursionError):
        return _too_deep(source)
    feed = re.search(_INDENTED_BY_FORM_FEED, source.text, re.MULTILINE)
    if feed:
        place = position_at(source.text, feed.end() - 1)
        message = "a form feed in front of code, which cannot be parsed here; delete it, or give it a line of its own"
    else:
        place = _clamped(source.text, error.editor_line, error.editor_column)
        said = error.message.partition("\n")[0]
        message = (
            f"Python takes this but the parser of the rules does not ({said}); write it more plainly, or exclude it"
        )
    return _syntax_finding(source, place, place, message)


def _syntax_finding(source: Source, start: Position, end: Position, message: str) -> Finding:
    return Finding(*SYNTAX_ERROR, Severity.ERROR, message, source.filename, start, end)


def _clamped(text: str, row: int | None, column: int | None) -> Position:
    """Return the place that the parser names, drawn into the text: at its end the parser is sometimes one off."""
    rows = lines_of(text) or [""]
    row = min(max(row or 1, 1), len(rows))
    return Position(row, min(max(column or 1, 1), len(rows[row - 1].rstrip("\r\n")) + 1))
