"""Places that the program's own view of its files gives, as positions in a report."""

from __future__ import annotations

from pathlib import Path

from mslint.findings import Position, Related
from mslint.program.following.values import Stretch
from mslint.semantics.module import Module
from mslint.source.text import Unreadable, lines_of, read, shown


def span(module: Module, place: Stretch) -> tuple[Position, Position]:
    """Return where ``place``, which lies in ``module``, starts and ends."""
    return position(module.lines, place.row, place.column), position(module.lines, place.end_row, place.end_column)


def related(module: Module, place: Stretch, message: str) -> Related:
    """Return ``place``, in whatever file it lies, as one that a conclusion rests on."""
    if place.path == module.source.path:
        return Related(module.source.filename, *span(module, place), message)
    lines = _lines(place.path)
    start, end = position(lines, place.row, place.column), position(lines, place.end_row, place.end_column)
    return Related(shown(place.path), start, end, message)


def position(lines: list[str], row: int, column: int) -> Position:
    """Return the position that ``ast`` calls ``row`` and ``column``, which counts the bytes of UTF-8."""
    line = lines[row - 1] if row <= len(lines) else ""
    return Position(row, len(line.encode("utf-8")[:column].decode("utf-8", "ignore")) + 1)


def _lines(path: Path) -> list[str]:
    try:
        return lines_of(read(path).text)
    except Unreadable:
        return []
