"""What a finding is known by from one version of a file to the next, whatever moved in between."""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mslint.findings import Finding
from mslint.source.statements import Layout, Statement, layout_of
from mslint.source.text import lines_of

_LONGEST = 120


@dataclass(frozen=True, order=True)
class Identity:
    """The rule, the qualified name of the class or function around the finding, and the statement, layout apart.

    Findings of one rule in equal statements of one function share an identity.
    """

    code: str
    symbol: str
    text: str


def identities(findings: Sequence[Finding], texts: Mapping[str, str]) -> list[Identity]:
    """Return what each finding is known by; ``texts`` are those that they are in, by name."""
    outlines = {name: _Outline(texts[name]) for name in {finding.text_name for finding in findings}}
    return [outlines[finding.text_name].identity(finding) for finding in findings]


class _Outline:
    def __init__(self, text: str) -> None:
        self._text = text
        self._rows = lines_of(text)

    def identity(self, finding: Finding) -> Identity:
        row = finding.start.row
        return Identity(finding.code, self._symbol(row), self._statement(row))

    def _symbol(self, row: int) -> str:
        around = [(first, name) for first, last, name in self._definitions if first <= row <= last]
        return ".".join(name for _, name in sorted(around))

    @cached_property
    def _definitions(self) -> list[tuple[int, int, str]]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self._text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        return list(_definitions(tree))

    def _statement(self, row: int) -> str:
        number = bisect_right(self._statements, row, key=lambda one: one.own) - 1
        found = self._statements[number] if number >= 0 else None
        first, last = (found.own, found.last) if found and row <= found.last else (row, row)
        code = " ".join(self._without_comments(number) for number in range(first, last + 1))
        return _shortened(_normalised(code))

    def _without_comments(self, row: int) -> str:
        line = self._rows[row - 1] if row <= len(self._rows) else ""
        return line[: self._comments.get(row, len(line))].rstrip().removesuffix("\\")

    @property
    def _statements(self) -> list[Statement]:
        return self._layout.statements

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self._text)

    @cached_property
    def _comments(self) -> dict[int, int]:
        return {comment.row: comment.column - 1 for comment in self._layout.comments}


def _definitions(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield first, node.end_lineno or node.lineno, node.name


def _normalised(code: str) -> str:
    """Return ``code`` without what a formatter may change: white space, the comma behind a last item."""
    spaced = re.sub(r"\s*([^\w\s])\s*", r"\1", re.sub(r"\s+", " ", code.strip()))
    return re.sub(r",([)\]}])", r"\1", spaced)


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"
