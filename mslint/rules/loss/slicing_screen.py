"""What a file must hold for MS203 to find anything in it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Set
from itertools import permutations
from typing import TypeAlias

from mslint.semantics.criteria import (
    ADDING_OPERATORS,
    CHOOSING_OPERATORS,
    FEWEST_ACTIVATED,
    FEWEST_IN_STENCIL,
    GLUING_OPERATORS,
    HOST_METHODS,
    HOST_PACKAGES,
    REDUCING_OPERATORS,
    SCATTERING_OPERATORS,
    TENSOR_FACTS,
    TENSOR_METHODS,
)
from mslint.semantics.outline import Function, Outline, indices, is_call_of, last_name, operands, outline, plain

_GLUING = frozenset(map(plain, GLUING_OPERATORS))
_COLLECTING = _GLUING | set(map(plain, ADDING_OPERATORS | CHOOSING_OPERATORS | SCATTERING_OPERATORS))
_GATHERING = _GLUING | set(map(plain, REDUCING_OPERATORS)) | {"tuple", "list"}
_TENSORS = frozenset(["tensor", "parameter"])
_LISTS = frozenset(["celllist", "celldict", "modulelist", "sequentialcell", "parametertuple", "parameterlist"])
_ON_HOST = HOST_METHODS | {"getattr"}
_OF_TENSORS = TENSOR_FACTS | TENSOR_METHODS

_Bounds: TypeAlias = tuple[int, int | None]
"""From where up to where a piece goes; None stands for the end."""


def has_fragments(tree: ast.Module) -> bool:
    """Tell whether a function of ``tree`` may compute rows or pieces of a tensor one by one."""
    file = outline(tree)
    tensors = _tensors(file)
    # Training runs neither __init__ nor what stands in no function.
    return any(
        _cuts_pieces(function) or _loops_over_rows(file, function, tensors)
        for function in file.functions
        if function.name not in ("", "__init__")
    )


def _loops_over_rows(file: Outline, function: Function, tensors: Set[str]) -> bool:
    """Tell whether ``function`` may compute rows one by one in a loop and collect the results, or concatenate in a loop."""
    gathered = _gathered(file, function)
    for loop in function.of(ast.For):
        body = [node for statement in loop.body for node in ast.walk(statement)]
        if any(_grows(file, node) for node in body):
            return True
        # What a round sets is a result of its own only at a place that the loop counts.
        collects = any(_collects(file, node, gathered) or (_counts(loop) and _stores(node)) for node in body)
        if collects and _takes_rows(file, loop, body, tensors):
            return True
    return any(
        _takes_rows(file, comprehension.generators[0], list(ast.walk(comprehension.elt)), tensors)
        for comprehension in function.of(ast.ListComp, ast.GeneratorExp)
        if comprehension in gathered
    )


def _gathered(file: Outline, function: Function) -> set[ast.AST | str]:
    """Return the expressions that ``function`` may make one tensor of, with the names of the variables among them."""
    return {
        part
        for call in function.of(ast.Call)
        if file.may_be(call.func, _GATHERING)
        for operand in operands(call)
        for node in (operand, *operands(operand))
        for part in (node, last_name(node))
    }


def _grows(file: Outline, node: ast.AST) -> bool:
    """Tell whether ``node`` may concatenate something to a variable."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    return file.is_operator(node.value) and file.may_be(node.value, _GLUING) and _reads_itself(node)


def _collects(file: Outline, node: ast.AST, gathered: Set[ast.AST | str]) -> bool:
    """Tell whether ``node`` may add a result to those of other rounds; to a list only if that is ``gathered``."""
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.target, ast.Subscript) and not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        joins = isinstance(node.value, ast.Call) and file.may_be(node.value, _COLLECTING)
        return (joins or isinstance(node.value, ast.BinOp)) and _reads_itself(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("append", "extend") and last_name(node.func.value) in gathered
    return False


def _reads_itself(node: ast.Assign) -> bool:
    """Tell whether ``node`` computes a variable from what it was before."""
    return any(last_name(target) in _names_in(node.value) for target in node.targets)


def _counts(loop: ast.For) -> bool:
    return is_call_of(loop.iter, "range", "enumerate")


def _stores(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _takes_rows(file: Outline, loop: ast.For | ast.comprehension, body: list[ast.AST], tensors: Set[str]) -> bool:
    """Tell whether ``loop`` may run over the rows of a tensor, and its ``body`` on the device alone."""
    variables = _names_in(loop.target)
    if any(_needs_host(file, node, variables) for node in body):
        return False
    over = [loop.iter]
    if is_call_of(loop.iter, "range"):
        if not any(_picks_row(file, node, variables, tensors) for node in body):
            return False
        # Any other bound than the length of a list may be the length of an axis.
        over = [listed for bound in loop.iter.args[:2][-1:] if is_call_of(bound, "len") for listed in bound.args]
    elif is_call_of(loop.iter, "enumerate"):
        over = loop.iter.args[:1]
    elif is_call_of(loop.iter, "zip"):
        over = loop.iter.args
    elif isinstance(loop.target, ast.Tuple):
        return False
    return all(_may_be_tensor(file, item, tensors) for item in over)


def _needs_host(file: Outline, node: ast.AST, variables: Set[str]) -> bool:
    """Tell whether ``node`` calls NumPy or the like with ``variables`` of the loop, or a layer that differs by round."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Subscript) or last_name(node.func) in _ON_HOST:
        return True
    return file.is_from(node.func, HOST_PACKAGES) and not variables.isdisjoint(_names_in(node))


def _picks_row(file: Outline, node: ast.AST, counters: Set[str], tensors: Set[str]) -> bool:
    """Tell whether ``node`` may be the row of a tensor that one of ``counters`` counts."""
    if not isinstance(node, ast.Subscript):
        return False
    starts = (part.lower if isinstance(part, ast.Slice) else part for part in indices(node))
    if not any(start is not None and last_name(start) in counters for start in starts):
        return False
    # One element of an attribute is a layer as a rule. Of a variable it does not show here what callers pass for it.
    is_layer = isinstance(node.value, ast.Attribute) and not isinstance(node.slice, ast.Slice) and not _has_axes(node)
    return not is_layer or _may_be_tensor(file, node.value, tensors)


def _may_be_tensor(file: Outline, expression: ast.expr, tensors: Set[str]) -> bool:
    """Tell whether ``expression`` may be made by an operator or is one of ``tensors``, by name."""
    return any(
        last_name(origin) in tensors
        or isinstance(origin, ast.Compare)
        or (isinstance(origin, ast.Subscript) and _has_axes(origin))
        or (
            isinstance(origin, ast.Call)
            and (last_name(origin.func) in TENSOR_METHODS or file.is_operator(origin.func))
            and file.names(origin.func).isdisjoint(_LISTS)
        )
        for origin in file.origins(expression)
    )


def _tensors(file: Outline) -> set[str]:
    """Return the names of what is annotated as a tensor or used like one: ``x.shape``, ``x[:, 0]``, ``ops.relu(x)``."""
    annotated = {node.arg for node in file.of(ast.arg) if node.annotation and file.may_be(node.annotation, _TENSORS)}
    of_attributes = {last_name(node.value) for node in file.of(ast.Attribute) if node.attr in _OF_TENSORS}
    of_subscripts = {last_name(node.value) for node in file.of(ast.Subscript) if _has_axes(node)}
    of_operators = {
        last_name(node) for call in file.of(ast.Call) if file.is_operator(call.func) for node in call.args[:1]
    }
    return {"T", "mT", *annotated, *of_attributes, *of_subscripts, *of_operators} - {""}


def _has_axes(subscript: ast.Subscript) -> bool:
    """Tell whether ``subscript`` is one that no list takes."""
    return len(indices(subscript)) > 1 or (isinstance(subscript.slice, ast.Constant) and subscript.slice.value is ...)


def _cuts_pieces(function: Function) -> bool:
    """Tell whether ``function`` cuts pieces out of one tensor by constants: side by side, several, or several windows."""
    windows = 0
    pieces: dict[str, set[_Bounds]] = defaultdict(set)
    for subscript in function.of(ast.Subscript):
        cuts = [part for part in indices(subscript) if not _is_whole(part)]
        windows += sum(isinstance(part, ast.Slice) and _bounds(part) is not None for part in cuts) > 1
        bounds = _bounds(cuts[0]) if len(cuts) == 1 else None
        # x[0] may pick from a list.
        if bounds is not None and (isinstance(cuts[0], ast.Slice) or _has_axes(subscript)):
            pieces[ast.dump(subscript.value)].add(bounds)
    return windows >= FEWEST_IN_STENCIL or any(
        len(of_one) >= FEWEST_ACTIVATED or any(_is_followed(*pair) for pair in permutations(of_one, 2))
        for of_one in pieces.values()
    )


def _is_followed(one: _Bounds, other: _Bounds) -> bool:
    """Tell whether the piece ``other`` starts where ``one`` ends and may be of the same size."""
    (low, high), (start, end) = one, other
    return low >= 0 and high == start and (end is None or end - start == high - low)


def _is_whole(part: ast.expr) -> bool:
    if isinstance(part, ast.Slice):
        return part.lower is None and part.upper is None
    return isinstance(part, ast.Constant) and part.value in (None, ...)


def _bounds(part: ast.expr) -> _Bounds | None:
    """Return from where up to where ``part`` goes; None if that is not constant."""
    if not isinstance(part, ast.Slice):
        index = _constant(part)
        return None if index is None else (index, index + 1)
    low = 0 if part.lower is None else _constant(part.lower)
    high = None if part.upper is None else _constant(part.upper)
    return None if low is None or (part.upper is not None and high is None) else (low, high)


def _constant(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _names_in(node: ast.AST) -> set[str]:
    return set(map(last_name, ast.walk(node))) - {""}
