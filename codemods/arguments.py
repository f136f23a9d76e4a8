"""Text edits that give a call more arguments and a function more parameters, laid out as those that are there."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.statements import in_lines, line_limit, newline
from mslint.findings import Edit, Position
from mslint.semantics.module import Module


def append_arguments(module: Module, call: cst.Call, arguments: Sequence[str]) -> list[Edit]:
    """Return the edits that put ``arguments`` behind those of ``call``."""
    if not call.args:
        opening = module.end(call)
        place = Position(opening.row, opening.column - 1)
        return [Edit(place, place, ", ".join(arguments))]
    return _append(module, list(call.args), [argument.value for argument in call.args], module.end(call), arguments)


def append_parameters(module: Module, function: cst.FunctionDef, parameters: Sequence[str]) -> list[Edit]:
    """Return the edits that put ``parameters``, which have defaults, behind those of ``function``."""
    params = function.params
    after: list[cst.Param] = [*params.posonly_params, *params.params]
    if isinstance(params.star_arg, cst.Param):
        after.append(params.star_arg)
    after += params.kwonly_params
    if params.star_kwarg is not None:
        return [_before(module, params.star_kwarg, parameters)]
    if not after:
        place = module.end(function.name)
        place = Position(place.row, place.column + len("("))
        return [Edit(place, place, ", ".join(parameters))]
    ends = [_last_part(parameter) for parameter in after]
    last = module.end(ends[-1])
    closing = module.text(last, module.start(function.body))
    end = _past(last, closing[: closing.index(")") + 1])
    return _append(module, after, ends, end, parameters)


def _last_part(parameter: cst.Param) -> cst.CSTNode:
    if parameter.default is not None:
        return parameter.default
    return parameter.annotation.annotation if parameter.annotation is not None else parameter.name


def _before(module: Module, node: cst.Param, parameters: Sequence[str]) -> Edit:
    start = module.start(node)
    above = module.lines[start.row - 1][: start.column - 1]
    stars = len(above) - len(above.rstrip("*"))
    place = Position(start.row, start.column - stars)
    separator = ", " if above.rstrip("*").strip() else "," + newline(module) + above.rstrip("*")
    return Edit(place, place, "".join(parameter + separator for parameter in parameters))


def _past(start: Position, text: str) -> Position:
    rows = text.split("\n")
    return Position(start.row + len(rows) - 1, (start.column if len(rows) == 1 else 1) + len(rows[-1]))


def _append(
    module: Module, items: Sequence[cst.CSTNode], values: Sequence[cst.CSTNode], end: Position, added: Sequence[str]
) -> list[Edit]:
    """Return the edits that put ``added`` behind the last of ``items``; ``end`` is the place behind the bracket."""
    last = module.end(values[-1])
    behind = module.text(last, end)
    comma = behind.lstrip().startswith(",")
    one_each = _one_in_each_row(module, items)
    if one_each and end.row > last.row:
        # The bracket stands below: what stands behind the last one, a comment, stays there.
        indent = _margin(module, items)
        rows = [f"{indent}{item}," for item in added]
        rows[-1] = rows[-1] if comma else rows[-1].removesuffix(",")
        place = Position(last.row + 1, 1)
        below = Edit(place, place, in_lines(module, rows))
        return [below] if comma else [Edit(last, last, ","), below]
    remark = module.lines[end.row - 1][end.column - 1 :].rstrip("\r\n")
    if one_each and not comma and remark.lstrip().startswith("#"):
        # A comment behind the bracket is about the item in its row.
        rows = [f"{_margin(module, items)}{item}," for item in added]
        rows[-1] = rows[-1].removesuffix(",") + behind
        past = Position(end.row, end.column + len(remark))
        return [Edit(last, past, newline(module).join([f",{remark}", *rows]))]
    start = _past(last, behind[: behind.index(",") + 1]) if comma else last
    separator, tail = ("", ",") if comma else (",", "")
    row = module.lines[start.row - 1]
    inline = f"{separator} {', '.join(added)}{tail}"
    if not one_each and len(row) + len(inline) <= line_limit(module):
        return [Edit(start, start, inline)]
    margin = _margin(module, items)
    rest = len(tail + row[start.column - 1 :])
    rows = [f"{margin}{item}," for item in added] if one_each else _filled(module, margin, added, rest)
    rows[-1] = rows[-1].removesuffix(",")
    return [Edit(start, start, newline(module).join([separator, *rows]) + tail)]


def _filled(module: Module, margin: str, items: Sequence[str], rest: int) -> list[str]:
    """Return rows that hold ``items``, as many in each as fit; the last one is followed by ``rest`` characters."""
    rows = [f"{margin}{items[0]},"]
    for item in items[1:]:
        longer = f"{rows[-1]} {item},"
        behind = rest if item is items[-1] else 0
        if len(longer) + behind <= line_limit(module):
            rows[-1] = longer
        else:
            rows.append(f"{margin}{item},")
    return rows


def _one_in_each_row(module: Module, items: Sequence[cst.CSTNode]) -> bool:
    """Tell whether each item stands in a row of its own, the first perhaps behind the bracket."""
    opened = [_first_in_row(module, item) is not None for item in items]
    return all(opened[1:]) and (len(items) > 2 or (len(items) == 2 and opened[0]))


def _first_in_row(module: Module, item: cst.CSTNode) -> str | None:
    """Return the white space before ``item`` if nothing else stands before it in its row."""
    start = module.start(item)
    before = module.lines[start.row - 1][: start.column - 1]
    return before if not before.strip() else None


def _margin(module: Module, items: Sequence[cst.CSTNode]) -> str:
    """Return the white space that puts a new row below the first item."""
    for item in reversed(items):
        found = _first_in_row(module, item)
        if found is not None:
            return found
    return " " * (module.start(items[0]).column - 1)
