"""Edits put into a text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from mslint.findings import Edit, Position
from mslint.source.text import line_starts


class Overlapping(ValueError):
    """Two edits want the same text."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with every edit made; all positions refer to ``text`` as given.

    Equal edits count once. Edits that share text, or insert different things at one place, are refused.
    """
    ordered = sorted(set(edits), key=_extent)
    for before, after in pairwise(ordered):
        if _clash(before, after):
            raise Overlapping(f"{before} and {after}")
    starts = line_starts(text)
    pieces, done = [], 0
    for edit in ordered:
        start, end = _offset(text, starts, edit.start), _offset(text, starts, edit.end)
        pieces += [text[done:start], edit.content]
        done = end
    return "".join([*pieces, text[done:]])


def overlap(some: Iterable[Edit], others: Iterable[Edit]) -> bool:
    """Tell whether the two sets of edits cannot be made together."""
    others = list(others)
    return any(_clash(*sorted((edit, other), key=_extent)) for edit in some for other in others if edit != other)


def _extent(edit: Edit) -> tuple[Position, Position]:
    return edit.start, edit.end


def _clash(before: Edit, after: Edit) -> bool:
    """Tell whether two different edits, in order of place, share text or insert at the same place."""
    return after.start < before.end or _extent(before) == _extent(after)


def _offset(text: str, starts: list[int], position: Position) -> int:
    if not 1 <= position.row <= len(starts) or position.column < 1:
        raise ValueError(f"{position} is outside the text")
    offset = starts[position.row - 1] + position.column - 1
    following = starts[position.row] if position.row < len(starts) else len(text)
    if offset > following:
        raise ValueError(f"{position} is outside the text")
    return offset
