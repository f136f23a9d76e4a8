"""Text edits on whole statements: replace, remove, insert, with the comments and blank lines around them."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable

import libcst as cst

from mslint.findings import Edit, Position
from mslint.semantics.module import Module

_CRAMPED = 0.75
"""The share of a line before the bracket from which on arguments do not stand behind it."""


def indentation(module: Module, statement: cst.CSTNode) -> str:
    """Return the white space before ``statement`` in its line."""
    start = module.start(statement)
    return module.lines[start.row - 1][: start.column - 1]


def line_limit(module: Module) -> int:
    """Return how long a line of this file may get: its longest line of code, at least 79 and at most 120."""
    longest = max((len(line) for line in module.lines if not line.lstrip().startswith("#")), default=0)
    return min(max(longest, 79), 120)


def inner_comments(module: Module, node: cst.CSTNode) -> list[str]:
    """Return the comments between the start and the end of ``node``, in order."""
    return _comments(module.code(node))


def comments(module: Module, statement: cst.CSTNode) -> list[str]:
    """Return the comments inside and behind ``statement``, in order."""
    end = module.end(statement)
    return _comments(module.text(module.start(statement), Position(end.row, len(module.lines[end.row - 1]) + 1)))


def _comments(text: str) -> list[str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return []
    return [token.string for token in tokens if token.type == tokenize.COMMENT and token.string.strip("# ")]


def comments_above(module: Module, statement: cst.CSTNode) -> list[str]:
    """Return the comment lines directly above ``statement``, without their indentation."""
    row = module.start(statement).row - 1
    found: list[str] = []
    while row > 0 and module.lines[row - 1].lstrip().startswith("#"):
        found.insert(0, module.lines[row - 1].strip())
        row -= 1
    return found


def remove_all(module: Module, statements: Iterable[tuple[cst.CSTNode, bool]]) -> list[Edit]:
    """Return the edits that take ``statements`` out (see ``remove``); those that stand together go together.

    With each comes whether the comments above it go too.
    """
    runs: list[list[tuple[int, int]]] = []
    for statement, with_comments in sorted(statements, key=lambda item: module.start(item[0])):
        rows = _rows(module, statement, with_comments)
        if runs and runs[-1][-1][1] + 1 == rows[0]:
            runs[-1].append(rows)
        else:
            runs.append([rows])
    return [_remove_rows(module, run[0][0], run[-1][1]) for run in runs]


def remove(module: Module, statement: cst.CSTNode) -> Edit:
    """Return the edit that takes ``statement`` out with its lines, the comments above it and a blank line left over."""
    return _remove_rows(module, *_rows(module, statement, True))


def _rows(module: Module, statement: cst.CSTNode, with_comments: bool) -> tuple[int, int]:
    above = len(comments_above(module, statement)) if with_comments else 0
    return module.start(statement).row - above, module.end(statement).row


def _remove_rows(module: Module, first: int, last: int) -> Edit:

    def blank(row: int) -> bool:
        return row < 1 or (row <= len(module.lines) and not module.lines[row - 1].strip())

    opens_block = first > 1 and module.lines[first - 2].rstrip().endswith((":", '"""', "'''"))
    if blank(last + 1) and last < len(module.lines) and (blank(first - 1) or opens_block):
        last += 1
    return Edit(Position(first, 1), _line_start(module, last + 1), "")


def _line_start(module: Module, row: int) -> Position:
    """Return the start of line ``row``, or the end of a text that has fewer lines."""
    return Position(row, 1) if row <= len(module.lines) else Position(row - 1, len(module.lines[-1]) + 1)


def insert_after(module: Module, statement: cst.CSTNode, text: str) -> Edit:
    """Return the edit that puts ``text``, whole lines, below ``statement``."""
    place = _line_start(module, module.end(statement).row + 1)
    return Edit(place, place, text if place.column == 1 else newline(module) + text.rstrip("\r\n"))


def newline(module: Module) -> str:
    """Return the line end that the file uses."""
    return module.tree.default_newline


def in_lines(module: Module, lines: list[str]) -> str:
    """Join ``lines`` with the file's line end, each ended by one."""
    return "".join(line + newline(module) for line in lines)


def call(module: Module, indent: str, head: str, arguments: list[str], tail: str = ")") -> list[str]:
    """Return ``head(arguments)`` as lines no longer than the file's; ``head`` ends with the opening bracket.

    The arguments stand side by side below the first of them; where that leaves them little room, in lines of their own.
    """
    whole = f"{indent}{head}{', '.join(arguments)}{tail}"
    limit = line_limit(module)
    if len(whole) <= limit or not arguments:
        return [whole]
    aligned = _aligned(indent, head, arguments, tail, limit)
    inside = f"{indent}{module.tree.default_indent}{', '.join(arguments)}"
    cramped = max(map(len, aligned)) > limit or len(indent + head) > _CRAMPED * limit
    if not cramped or not tail.startswith(")"):
        return aligned
    if len(inside) <= limit:
        return [f"{indent}{head}", inside, f"{indent}{tail}"]
    apart = [f"{indent}{module.tree.default_indent}{argument}," for argument in arguments]
    return aligned if max(map(len, apart)) > limit else [f"{indent}{head}", *apart, f"{indent}{tail}"]


def _aligned(indent: str, head: str, arguments: list[str], tail: str, limit: int) -> list[str]:
    lines: list[str] = []
    current = f"{indent}{head}"
    margin = " " * len(current)
    for position, argument in enumerate(arguments):
        piece = argument + (tail if position == len(arguments) - 1 else ",")
        opened = current.endswith("(") or not current.strip()
        if not opened and len(current) + 1 + len(piece) > limit:
            lines.append(current)
            current = margin + piece
        else:
            current += piece if opened else " " + piece
    lines.append(current)
    return lines


def one_line(module: Module, node: cst.CSTNode) -> str:
    """Return the text of ``node`` in one line; as it stands if a comment or a string of several lines forbids that."""
    text = module.code(node).rstrip().rstrip(",").rstrip()
    if "\n" not in text or "#" in text or '"""' in text or "'''" in text:
        return text
    joined = ""
    for line in text.split("\n"):
        piece = line.strip().rstrip("\\").rstrip()
        joined += piece if not joined or joined.endswith(("(", "[", "{")) else f" {piece}"
    return joined
