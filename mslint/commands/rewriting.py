"""A source rewritten by codemods, pass after pass, until they have nothing more to propose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codemods.registry import AnyCodemod
from mslint.commands.proposals import examine
from mslint.config import NEWEST, Version
from mslint.console import internal_error
from mslint.engine import Checked
from mslint.findings import Applicability, Edit, Finding
from mslint.rules.registry import AnyRule, all_rules
from mslint.source.edits import apply_edits, overlap
from mslint.source.text import Source

if TYPE_CHECKING:
    from mslint.program.project import Program
    from mslint.semantics.module import Module

MOST_PASSES = 10


@dataclass(frozen=True)
class Rewritten:
    """What became of one source.

    ``left`` are the findings that remain, at their places in ``text``; each one's fix says why. Where there are
    ``failures`` (internal errors) ``text`` is the old text and nothing was applied.
    """

    source: Source
    text: str
    applied: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the text differs from the source's."""
        return self.text != self.source.text


def rewrite_source(
    source: Source,
    program: Program,
    codemods: Sequence[AnyCodemod],
    unsafe: bool = False,
    target_version: Version = NEWEST,
    rules: Iterable[AnyRule] | None = None,
) -> Rewritten:
    """Return ``source`` rewritten by ``codemods``: by their safe fixes, with ``unsafe`` by the others too.

    ``rules`` are those whose findings may be rewritten (all, if not given).
    """
    rewritten = {code for codemod in codemods for code in codemod.rules}
    wanted = [rule for rule in (all_rules() if rules is None else rules) if rule.code in rewritten]
    accepted = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    current, applied = source, list[Finding]()
    for _ in range(MOST_PASSES + 1):
        checked = examine(current, wanted, program, codemods, target_version)
        if not checked.complete:
            return _given_up(source, checked, untouched=current is source)
        if checked.module is None:
            return Rewritten(source, current.text, tuple(applied))
        chosen = _together(finding for finding in checked.findings if _has_edits(finding, accepted))
        if not chosen:
            return Rewritten(source, current.text, tuple(applied), checked.findings)
        try:
            text = _applied(checked.module, chosen, codemods)
        except Exception as exception:
            return Rewritten(source, source.text, failures=(_blame(chosen, source, exception),))
        current = replace(current, text=text)
        applied += chosen
    unsettled = RuntimeError(f"still not settled after {MOST_PASSES} passes; the file is left as it was")
    return Rewritten(source, source.text, failures=(_blame(applied[-1:], source, unsettled),))


def _has_edits(finding: Finding, accepted: set[Applicability]) -> bool:
    return finding.fix is not None and finding.fix.applicability in accepted and bool(finding.fix.edits)


def _together(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings whose fixes can be made in one pass; the others wait for the next."""
    chosen: list[Finding] = []
    taken: list[Edit] = []
    for finding in findings:
        edits = finding.fix.edits if finding.fix else ()
        if not overlap(edits, taken):
            chosen.append(finding)
            taken += edits
    return chosen


def _applied(module: Module, findings: Sequence[Finding], codemods: Sequence[AnyCodemod]) -> str:
    """Return the text of ``module`` with the fixes of ``findings`` made, tidied up by the codemods that made them."""
    fixes = [finding.fix for finding in findings if finding.fix]
    after = apply_edits(module.source.text, (edit for fix in fixes for edit in fix.edits))
    used = {fix.codemod for fix in fixes}
    for codemod in codemods:
        if codemod.name in used:
            after = codemod().tidy(module, after)
    return after


def _given_up(source: Source, checked: Checked, untouched: bool) -> Rewritten:
    """Return the source as it was: it cannot be parsed, a rule or codemod failed, or a rewrite is no Python."""
    if checked.failures or untouched:
        return Rewritten(source, source.text, left=checked.findings, failures=checked.failures)
    broken = RuntimeError(f"the result is no Python ({checked.findings[0].message}); the file is left as it was")
    return Rewritten(source, source.text, failures=(internal_error("a codemod", source.filename, broken),))


def _blame(findings: Sequence[Finding], source: Source, exception: Exception) -> str:
    names = sorted({finding.fix.codemod for finding in findings if finding.fix})
    return internal_error(f"codemod {', '.join(names)}", source.filename, exception)
