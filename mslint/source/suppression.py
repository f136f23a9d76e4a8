"""Comments that ask to be spared a finding.

``# noqa`` and ``# noqa: MS101`` are shared with other tools, the others are ours, each with codes or names of rules in
brackets, or without any for all rules:

- ``# mslint: ignore[MS101] reason`` for its line, or the whole statement if it stands on its first or last line;
- ``# mslint: ignore-next-line[MS101]`` for the next line with code, or the statement that begins there;
- ``# mslint: off[MS101]`` to ``# mslint: on[MS101]`` or ``# mslint: on``, else to the end of the indented block;
- ``# mslint: ignore-file[MS101]`` for the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from mslint.findings import Edit, Finding, Position
from mslint.source.statements import Comment, Layout, layout_of
from mslint.source.text import lines_of, may_suppress

_CODE = r"[A-Z]+[0-9]+"
_PART = re.compile(r"#+\s*[A-Za-z](?:(?!\s#+\s*[A-Za-z]).)*")
"""What begins with a hash of its own in a comment; ``#12`` does not."""
_NOQA = re.compile(rf"#+\s*noqa(?::\s*(?P<names>{_CODE}(?:[\s,]+{_CODE})*))?(?![\w:])", re.IGNORECASE)
_OURS = re.compile(r"#+\s*mslint\s*:\s*(?P<verb>[\w-]*)(?P<listed>\s*\[(?P<names>[^\]]*)\])?(?P<rest>.*)", re.DOTALL)
_VERBS = ("ignore", "ignore-next-line", "ignore-file", "off", "on")
_SEPARATOR = re.compile(r"[\s,]+")
_REASON = re.compile(rf"(?![\[\w-])(?!\s*[\[(:=]?\s*{_CODE}\b)")
"""What may follow a directive: not a code, which was meant to stand in brackets."""


@dataclass(frozen=True)
class Unused:
    """A directive that silences nothing, or some names of it that do not.

    ``edit`` removes the ``names``, or all of it. There is none where it cannot be meant so: it names an ``unknown`` rule, or
    is ``wrong``, which says how to write it. ``is_end`` if it is an ``on`` with nothing to end.
    """

    start: Position
    end: Position
    names: tuple[str, ...] = ()
    some_are_used: bool = False
    edit: Edit | None = None
    unknown: str | None = None
    wrong: str | None = None
    is_end: bool = False


@dataclass
class _Name:
    """One name in a directive, the rows that it holds for, and whether it silenced something there."""

    text: str | None
    rows: list[tuple[int, float]] = field(default_factory=list)
    used: bool = False

    def means(self, finding: Finding) -> bool:
        return self.text is None or self.text in (finding.code, finding.name)

    def covers(self, row: int) -> bool:
        return any(first <= row <= last for first, last in self.rows)


@dataclass
class _Directive:
    """One request in a comment; ``begin``, ``end`` and the extent of its names are places in the comment's text."""

    comment: Comment
    verb: str
    begin: int
    end: int
    listed: tuple[int, int] | None
    names: list[_Name]
    wrong: str | None = None

    @property
    def ours(self) -> bool:
        return self.verb != "noqa"


class Suppressions:
    """What the comments of one file silence, and which of them did."""

    def __init__(self, text: str) -> None:
        self._text = text

    def silence(self, finding: Finding, blankly: bool = True) -> bool:
        """Tell whether a comment silences ``finding``; if not ``blankly``, only one that names its rule."""
        silenced = False
        for directive in self._directives:
            for name in directive.names:
                if name.means(finding) and name.covers(finding.start.row) and (blankly or name.text is not None):
                    name.used = silenced = True
        return silenced

    def unused(self, judged: Collection[str], known: Collection[str], everything: bool) -> Iterator[Unused]:
        """Yield what silenced nothing so far, in order.

        ``judged`` are the codes and names of the rules that have been asked, ``known`` those of all rules: what names a rule
        that was not asked, and ``# noqa`` for codes that are not ours, is nobody's business. What names no rule is judged if
        ``everything`` was asked. A ``# noqa`` for the beginning of our codes means none of them.
        """
        if not _mentions(self._text, known):
            return
        for directive in self._directives:
            if directive.wrong:
                yield Unused(*self._extent(directive), wrong=directive.wrong)
                continue
            named = (name.text for name in directive.names if name.text is not None and name.text not in known)
            unknown = (name for name in named if directive.ours or _begins(name, known))
            if (text := next(unknown, None)) is not None:
                yield Unused(*self._extent(directive), unknown=text)
            idle = [name for name in directive.names if not name.used and _is_judged(name, judged, everything)]
            if idle and (directive.ours or idle[0].text is not None):
                yield self._idle(directive, idle)

    def _idle(self, directive: _Directive, idle: list[_Name]) -> Unused:
        kept = [name for name in directive.names if name not in idle]
        edit = self._shorten(directive, idle) if kept else self._remove(directive)
        names = tuple(name.text for name in idle if name.text is not None)
        return Unused(*self._extent(directive), names, bool(kept), edit, is_end=directive.verb == "on")

    def _extent(self, directive: _Directive) -> tuple[Position, Position]:
        row, column = directive.comment.row, directive.comment.column
        return Position(row, column + directive.begin), Position(row, column + directive.end)

    def _shorten(self, directive: _Directive, idle: list[_Name]) -> Edit:
        """Take the ``idle`` names out of the list, each with the separator before it; what is left stays as written."""
        assert directive.listed is not None
        start, end = directive.listed
        listed = directive.comment.text[start:end]
        gone = {name.text for name in idle}
        kept = ""
        done = 0
        for match in re.finditer(r"[^\s,]+", listed):
            if _spelled(match[0], directive.ours) not in gone:
                kept += (listed[done : match.start()] if kept else "") + match[0]
            done = match.end()
        row, column = directive.comment.row, directive.comment.column
        return Edit(Position(row, column + start), Position(row, column + end), kept)

    def _remove(self, directive: _Directive) -> Edit:
        """Take the directive away, and with it the whole comment, or the whole row, if nothing else is there."""
        comment = directive.comment
        begin, end = directive.begin, directive.end
        before, after = comment.text[:begin].rstrip(), comment.text[end:]
        if after.strip():
            end += len(after) - len(after.lstrip())
        else:
            begin, end = len(before), len(comment.text)
        if before or after.strip():
            return Edit(Position(comment.row, comment.column + begin), Position(comment.row, comment.column + end), "")
        if comment.alone:
            return self._remove_row(comment.row)
        code = lines_of(self._text)[comment.row - 1][: comment.column - 1].rstrip()
        return Edit(Position(comment.row, len(code) + 1), Position(comment.row, comment.column + len(comment.text)), "")

    def _remove_row(self, row: int) -> Edit:
        rows = lines_of(self._text)
        if rows[row - 1].endswith(("\n", "\r")):
            return Edit(Position(row, 1), Position(row + 1, 1), "")
        return Edit(Position(row, 1), Position(row, len(rows[row - 1]) + 1), "")

    @cached_property
    def _directives(self) -> list[_Directive]:
        # Tokenizing costs more than all else that is done to a file without findings; few files need it.
        if not may_suppress(self._text):
            return []
        layout = layout_of(self._text)
        found = [directive for comment in layout.comments for directive in _read(comment)]
        opened: list[_Directive] = []
        for directive in found:
            if directive.verb == "on" and not directive.wrong:
                opened = _close(opened, directive)
            else:
                rows = [] if directive.wrong else list(_rows(directive, layout))
                for name in directive.names:
                    name.rows = list(rows)
                if directive.verb == "off" and rows:
                    opened.append(directive)
        return found


def _mentions(text: str, known: Collection[str]) -> bool:
    """Tell whether ``text`` may hold a directive of ours, or one of the ``known`` codes after a ``noqa``."""
    if not may_suppress(text):
        return False
    if re.search(r"#\s*mslint\s*:", text):
        return True
    for listed in re.findall(r"noqa\s*:([^\r\n]*)", text, re.IGNORECASE):
        if any(_begins(word.upper(), known) for word in _SEPARATOR.split(listed) if word):
            return True
    return False


def _begins(word: str, known: Collection[str]) -> bool:
    """Tell whether one of the ``known`` codes is ``word`` or begins so, as other tools let a ``noqa`` say."""
    return any(name.startswith(word) for name in known)


def _is_judged(name: _Name, judged: Collection[str], everything: bool) -> bool:
    return everything if name.text is None else name.text in judged


def _read(comment: Comment) -> Iterator[_Directive]:
    for part in _PART.finditer(comment.text):
        if match := _NOQA.match(part[0]):
            listed = match["names"] and match.span("names")
            names = _SEPARATOR.split(match["names"]) if match["names"] else [None]
            verb, wrong = "noqa", None
        elif match := _OURS.match(part[0]):
            listed = match["listed"] and match.span("names")
            names = _SEPARATOR.split(match["names"].strip(" \t,")) if match["listed"] else [None]
            verb, wrong = match["verb"], _mistake(match, comment)
        else:
            continue
        begin = part.start()
        yield _Directive(
            comment,
            verb,
            begin,
            begin + len(part[0].rstrip()),
            (begin + listed[0], begin + listed[1]) if listed else None,
            [_Name(_spelled(name, verb != "noqa")) for name in names],
            wrong,
        )


def _spelled(name: str | None, ours: bool) -> str | None:
    """Return ``name`` as rules are called: the codes of a ``noqa`` may be written in small letters."""
    return name if ours or name is None else name.upper()


def _mistake(match: re.Match[str], comment: Comment) -> str | None:
    verb = match["verb"]
    if verb not in _VERBS:
        return f"{verb!r} means nothing here; write {', '.join(_VERBS[:-1])} or {_VERBS[-1]}"
    if not match["listed"] and not _REASON.match(match["rest"]):
        return f"the rules must stand in brackets, as in `# mslint: {verb}[MS101]`"
    if verb in ("ignore-file", "off", "on") and not comment.alone:
        return f"`{verb}` has no effect behind code; give it a line of its own"
    if match["listed"] and not match["names"].strip(" \t,"):
        return f"the brackets name no rule; write `# mslint: {verb}[MS101]`"
    return None


def _rows(directive: _Directive, layout: Layout) -> Iterator[tuple[int, float]]:
    """Yield the rows, first and last, that ``directive`` silences."""
    row = directive.comment.row
    if directive.verb == "ignore-file":
        yield 1, float("inf")
    elif directive.verb == "off":
        later = layout.statements[bisect_right(layout.statements, row, key=lambda one: one.own) :]
        outside = (one.first for one in later if one.column < directive.comment.column)
        yield row, next(outside, float("inf")) - 1
    elif directive.verb == "ignore-next-line":
        following = bisect_right(layout.starts, row)
        if following < len(layout.starts):
            target = layout.starts[following]
            yield target, target
            yield from ((one.first, one.last) for one in layout.statements if one.first == target)
            yield from ((one.own, one.last) for one in layout.statements if one.own == target)
    else:
        yield row, row
        yield from ((one.first, one.last) for one in layout.statements if row in (one.first, one.last))
        yield from ((one.own, one.last) for one in layout.statements if row == one.own)


def _close(opened: list[_Directive], on: _Directive) -> list[_Directive]:
    """End what ``on`` ends, as far as it is not at its end anyway; return what is still open."""
    row = on.comment.row
    everything = on.names[0].text is None
    for off in opened:
        for name in off.names:
            ending = on.names[0] if everything else next((one for one in on.names if one.text == name.text), None)
            (first, last), *_ = name.rows
            if ending is not None and row <= last:
                name.rows = [(first, row)]
                ending.used = True
    return [off for off in opened if any(name.rows[0][1] > row for name in off.names)]
