"""Places as formats take them that know files, but not the cells of notebooks."""

from __future__ import annotations

from mslint.findings import Finding, Position, Related

_START = Position(1, 1)


def in_file(item: Finding | Related, position: Position) -> Position:
    """Return the place in the file: the start of a notebook, whose rows are not those of its cells."""
    return position if item.cell is None else _START


def in_words(item: Finding | Related) -> str:
    """Return what tells the place in a cell, in front of a message; nothing for one in a file."""
    return "" if item.cell is None else f"cell {item.cell}:{item.start.row}:{item.start.column}: "
