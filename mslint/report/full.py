"""Findings as a person reads them: what is wrong, the lines it is in, what can be done, what it rests on."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from mslint.findings import Finding
from mslint.language import chinese as chinese_for
from mslint.report.style import Style
from mslint.source.text import lines_of

_CONTEXT = 2
"""Lines shown above and below."""


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return the findings, each with its frame of source text, followed by an empty line."""
    paint = Style(colour)
    rows = {name: lines_of(text) for name, text in texts.items()}
    return "".join(line + "\n" for finding in findings for line in _lines(finding, rows[finding.text_name], paint))


def _lines(finding: Finding, rows: Sequence[str], paint: Style) -> Iterator[str]:
    place = f"{finding.text_name}:{finding.start.row}:{finding.start.column}"
    kind = paint.severity(finding, f"{finding.severity.value} {finding.code}")
    chinese = chinese_for("rules", finding.code)  # what a rule concludes is told in English alone
    told = f"{chinese}。{finding.message}" if chinese else finding.message
    yield f"{paint.bold(place)}: {kind} {paint.bold(finding.name)}: {told}"
    yield from _frame(finding, rows, paint)
    if finding.fix:
        yield f"  fix: {finding.fix.applicability.value} ({finding.fix.codemod}): {finding.fix.message}"
    for related in finding.related:
        yield f"  note: {related.text_name}:{related.start.row}:{related.start.column} {related.message}"
    yield ""


def _frame(finding: Finding, rows: Sequence[str], paint: Style) -> Iterator[str]:
    first, last = max(finding.start.row - _CONTEXT, 1), min(finding.start.row + _CONTEXT, len(rows))
    width = len(str(last))
    for number in range(first, last + 1):
        row = rows[number - 1].rstrip("\r\n")
        yield f"{paint.dim(f'{number:{width}} |')} {_printable(row)}".rstrip()
        if number == finding.start.row:
            end = finding.end.column - 1 if finding.end.row == number else len(row)
            before = _cells(row[: finding.start.column - 1])
            carets = _cells(row[finding.start.column - 1 : end])
            yield f"{paint.dim(' ' * width + ' |')} {' ' * before}{paint.severity(finding, '^' * max(carets, 1))}"


def _printable(text: str) -> str:
    """Return ``text`` as it can be put on a terminal: tabs as four spaces, nothing that moves the cursor."""
    return "".join("    " if c == "\t" else c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _cells(text: str) -> int:
    """Return how many cells of a terminal the text takes: Chinese characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in _printable(text)
    )
