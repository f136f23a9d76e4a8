"""A function call put around an expression, laid out as the lines around it are."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from codemods.statements import inner_comments, line_limit, newline, one_line
from mslint.findings import Edit, Position
from mslint.semantics.module import Module


@dataclass(frozen=True)
class _Bracket:
    """An open bracket: where it stands, and whether the text goes on behind it in its row."""

    row: int
    column: int
    goes_on: bool


@dataclass(frozen=True)
class _Rows:
    """For each row that continues a bracket, the innermost one that is open at its start; and the rows inside strings."""

    open_at: dict[int, _Bracket]
    in_strings: frozenset[int]


def wrap(module: Module, node: cst.BaseExpression, function: str, times: int = 1) -> list[Edit]:
    """Return the edits that put ``function(...)`` around ``node``; ``times`` such edits are made in the row it starts in.

    The text of ``node`` stays as it is. Rows that are aligned with a bracket that moves move along; where a line would get
    longer than those of the file, the new call starts a line of its own or takes three.
    """
    inline = _Inline(module, node, f"{function}(")
    if inline.fits(times):
        return inline.edits()
    laid_out = _broken_before(module, node, inline) or _one_item_a_row(module, node, inline)
    return laid_out or _in_three_lines(module, node, inline)


class _Inline:
    """The new call written into the row."""

    def __init__(self, module: Module, node: cst.BaseExpression, opening: str) -> None:
        self.module = module
        self.opening = opening
        self.start, self.end = module.start(node), module.end(node)
        self.shifts = self._shifts()

    def _shifts(self) -> dict[int, int]:
        """Return by how much each row moves that is aligned with a bracket behind the new one."""
        module, rows = self.module, module_rows(self.module)
        shifts: dict[int, int] = {}
        row = self.start.row + 1
        while (bracket := rows.open_at.get(row)) is not None:
            aligned = bracket.goes_on and _is_below(module, row, bracket)
            if bracket.row == self.start.row:
                behind = bracket.column >= self.start.column
                closed = self.end.row == self.start.row and bracket.column >= self.end.column
                moved = (len(self.opening) + closed) * behind * aligned
            else:
                moved = shifts.get(bracket.row, 0)
            if moved and row not in rows.in_strings and module.lines[row - 1].strip():
                shifts[row] = moved
            row += 1
        return shifts

    def fits(self, times: int) -> bool:
        """Tell whether no line gets longer than those of the file."""
        limit = line_limit(self.module)
        growth = len(self.opening) + (self.start.row == self.end.row)
        lengths = {row: len(self.module.lines[row - 1]) + moved for row, moved in self.shifts.items()}
        lengths[self.end.row] = lengths.get(self.end.row, len(self.module.lines[self.end.row - 1])) + 1
        lengths[self.start.row] = len(self.module.lines[self.start.row - 1]) + growth * times
        return all(length <= limit for length in lengths.values())

    def edits(self) -> list[Edit]:
        """Return the edits that write it so."""
        moved = [_insert(Position(row, len(_margin(self.module, row)) + 1), " " * n) for row, n in self.shifts.items()]
        return [_insert(self.start, self.opening), *moved, _insert(self.end, ")")]


def _broken_before(module: Module, node: cst.BaseExpression, inline: _Inline) -> list[Edit] | None:
    """Return the edits that let the new call start a row of its own, below its sibling; None where that does not help."""
    item = module.parents[node]
    container = module.parents[item]
    if not isinstance(item, (cst.Arg, cst.Element)) or inline.shifts or not _is_bracketed(container):
        return None
    siblings = container.args if isinstance(container, cst.Call) else _elements(container)
    place = module.start(item)
    before = [
        sibling for sibling in siblings if module.end(sibling) <= place and module.start(sibling).row == place.row
    ]
    if not before or module.end(before[-1]).row != place.row:
        return None
    column = module.start(before[0]).column
    line = module.lines[place.row - 1]
    length = column - 1 + len(line) - (place.column - 1) + len(inline.opening) + 1
    if length > line_limit(module):
        return None
    gap = len(line[: place.column - 1]) - len(line[: place.column - 1].rstrip())
    margin = line[: column - 1] if not line[: column - 1].strip() else " " * (column - 1)
    broken = Edit(Position(place.row, place.column - gap), place, newline(module) + margin)
    if place == inline.start:
        return [Edit(broken.start, broken.end, broken.content + inline.opening), _insert(inline.end, ")")]
    return [broken, _insert(inline.start, inline.opening), _insert(inline.end, ")")]


def _one_item_a_row(module: Module, node: cst.BaseExpression, inline: _Inline) -> list[Edit] | None:
    """Return the edit that puts a tuple without brackets, such as the right side of ``a, b = f(x), f(y)``, in rows."""
    item = module.parents[node]
    values = module.parents[item]
    if not isinstance(values, cst.Tuple) or values.lpar or inline.shifts:
        return None
    if (
        not isinstance(module.parents[values], (cst.Assign, cst.Return))
        or module.start(values).row != module.end(values).row
    ):
        return None
    line_end = newline(module)
    outer = _margin(module, inline.start.row)
    texts = [module.code(element.value) for element in values.elements]
    if any(isinstance(element, cst.StarredElement) for element in values.elements):
        return None
    texts[[element.value for element in values.elements].index(node)] = f"{inline.opening}{module.code(node)})"
    rows = "".join(f"{outer}{module.tree.default_indent}{text},{line_end}" for text in texts)
    return [module.replace(values, f"({line_end}{rows}{outer})")]


def _elements(container: cst.CSTNode) -> Sequence[cst.BaseElement]:
    return container.elements if isinstance(container, (cst.Tuple, cst.List)) else ()


def _is_bracketed(container: cst.CSTNode) -> bool:
    return isinstance(container, (cst.Call, cst.List)) or (isinstance(container, cst.Tuple) and bool(container.lpar))


def _in_three_lines(module: Module, node: cst.BaseExpression, inline: _Inline) -> list[Edit]:
    """Return the edits that give what is wrapped a row of its own, one step further in."""
    line_end = newline(module)
    outer = _margin(module, inline.start.row)
    inner = outer + module.tree.default_indent
    text = one_line(module, node)
    fits = "\n" not in text and len(inner) + len(text) <= line_limit(module)
    if inline.start.row == inline.end.row or (fits and not inner_comments(module, node)):
        content = f"{inline.opening}{line_end}{inner}{text}{line_end}{outer})"
        return [Edit(inline.start, inline.end, content)]
    moved = len(inner) - (inline.start.column - 1)
    own = range(inline.start.row + 1, inline.end.row + 1)
    return [
        _insert(inline.start, f"{inline.opening}{line_end}{inner}"),
        *(_moved(module, row, moved) for row in inline.shifts if row in own),
        _insert(inline.end, f"{line_end}{outer})"),
    ]


def _moved(module: Module, row: int, columns: int) -> Edit:
    margin = _margin(module, row)
    content = margin + " " * columns if columns >= 0 else margin[: max(len(margin) + columns, 0)]
    return Edit(Position(row, 1), Position(row, len(margin) + 1), content)


def _is_below(module: Module, row: int, bracket: _Bracket) -> bool:
    """Tell whether ``row`` starts below the text behind ``bracket``, on screens that show tabs as 4 or as 8 columns."""
    margin, before = _margin(module, row), module.lines[bracket.row - 1][: bracket.column]
    return any(len(margin.expandtabs(tab)) == len(before.expandtabs(tab)) for tab in (4, 8))


def _margin(module: Module, row: int) -> str:
    line = module.lines[row - 1]
    return line[: len(line) - len(line.lstrip())]


def _insert(place: Position, text: str) -> Edit:
    return Edit(place, place, text)


def module_rows(module: Module) -> _Rows:
    """Return what the rows of ``module`` continue."""
    return module.remember(module_rows, lambda: _read_rows("\n".join(module.lines)))


def _read_rows(text: str) -> _Rows:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return _Rows({}, frozenset())
    open_at: dict[int, _Bracket] = {}
    in_strings: set[int] = set()
    stack: list[_Bracket] = []
    for token, following in pairwise(tokens):
        in_strings.update(range(token.start[0] + 1, token.end[0] + 1))
        if token.type == tokenize.OP and token.string in "([{":
            goes_on = following.type not in (tokenize.NL, tokenize.COMMENT)
            stack.append(_Bracket(token.start[0], token.start[1] + 1, goes_on))
        elif token.type == tokenize.OP and token.string in ")]}" and stack:
            stack.pop()
        if stack:
            open_at.update((row, stack[-1]) for row in range(token.end[0] + 1, following.start[0] + 1))
            open_at.update((row, stack[-1]) for row in range(token.start[0] + 1, token.end[0] + 1))
    return _Rows(open_at, frozenset(in_strings))
