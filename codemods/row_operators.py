"""Operators that ``mindspore.vmap`` has no rule for, or fails on, written by equal ones that it runs once for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from codemods.imports import reach_from
from mslint.findings import Edit
from mslint.semantics.extents import called, holds_floats
from mslint.semantics.module import Module
from mslint.semantics.tensors import Values

_AXIS = ("axis", "dim")
KEEPS = ("keepdims", "keepdim", "keep_dims")
_FULL = ("mean", "amax", "amin", "reducemean", "reducesum", "reducemax", "reducemin")
"""Reductions that ``vmap`` has a rule for, which fails if they reduce a single number."""
_REDUCING = frozenset(
    """
    sum mean max min amax amin prod std var norm logsumexp all any argmax argmin dot inner squeeze countnonzero
    cosinesimilarity kldiv crossentropy binarycrossentropy reducesum reducemean reducemax reducemin reduceprod
    """.split()  # noqa: SIM905
)
_KEEPING = frozenset(
    ["exp", "log", "softmax", "logsoftmax", "sigmoid", "tanh", "relu", "square", "sqrt", "abs", "cast"]
)
"""What keeps the axes of its first argument."""
_DEEPEST = 8


@dataclass(frozen=True)
class Respelled:
    """A call by another name: the operator it runs now, the edits in the call and those of the imports."""

    operator: str
    edits: tuple[Edit, ...]
    imports: tuple[Edit, ...] = ()


def respelled(module: Module, values: Values, call: cst.Call) -> Respelled | None:
    """Return ``call`` by an equal operator that ``vmap`` runs once for all rows, or None if none is known or needed.

    Measured on MindSpore 2.10.0, CPU, in both modes, values and gradients of random numbers, ties and infinities: sums of
    floats (float16, float32, float64, bfloat16) by ``ops.ReduceSum``, axes and ``keepdims`` included, are the same up to the
    order of addition (1e-7 of their size in float32, one unit in the last place in float16); ``x.max()`` and ``x.min()`` by
    ``x.amax()`` and ``x.amin()`` are bit-equal, the gradient shared between ties included (a row with a NaN, whose result is
    NaN in any case, gets NaN as gradient of all its numbers). Not so are sums of integers (``ReduceSum`` keeps int32, ``sum``
    gives int64), ``max`` along an axis (all of the gradient goes to the first of several ties), ``clip``, ``prod``, and
    products with a number by ``ops.mul`` (a single float16 becomes a float32).

    All of these reductions, and ``mean``, fail under ``vmap`` where a row's value is a single number ("axis 0 is out of
    bounds"): what an earlier reduction may have left so becomes a vector of one number first.
    """
    name = values.operator(call)
    function = call.func
    first = call.args[0] if call.args and call.args[0].keyword is None and not call.args[0].star else None
    if name == "mindspore.ops.sum" and first is not None:
        return _summed(module, values, call, first.value, call.args[1:])
    if name is not None:
        if called(module, call) in _FULL and first is not None and len(call.args) == 1:
            return _as_vector(module, values, name, first.value)
        return None
    if not isinstance(function, cst.Attribute):
        return None
    if function.attr.value == "sum":
        return _summed(module, values, call, function.value, call.args)
    if call.args:
        return None
    if function.attr.value in ("max", "min"):
        other = f"a{function.attr.value}"
        vector = _as_vector(module, values, "", function.value)
        edits = vector.edits if vector is not None else ()
        return Respelled(f"Tensor.{other}", (*edits, module.replace(function.attr, other)))
    if function.attr.value in _FULL:
        return _as_vector(module, values, f"Tensor.{function.attr.value}", function.value)
    return None


def _as_vector(module: Module, values: Values, name: str, reduced: cst.BaseExpression) -> Respelled | None:
    """Return the operator ``name`` on ``reduced`` as a vector, if that may be a single number."""
    if not _may_be_single(module, values, reduced, _DEEPEST):
        return None
    start, end = module.start(reduced), module.end(reduced)
    if is_primary(reduced):
        return Respelled(name, (Edit(end, end, ".reshape(-1)"),))
    return Respelled(name, (Edit(start, start, "("), Edit(end, end, ").reshape(-1)")))


def _may_be_single(module: Module, values: Values, node: cst.BaseExpression, depth: int) -> bool:
    """Tell whether a row's value of ``node`` may be a single number, as something before reduced it."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name):
        bound = values.reaching(node)
        value = bound[0].value if len(bound) == 1 else None
        return value is not None and _may_be_single(module, values, value, depth - 1)
    if isinstance(node, cst.UnaryOperation):
        return _may_be_single(module, values, node.expression, depth - 1)
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        right = node.right if isinstance(node, cst.BinaryOperation) else node.comparisons[0].comparator
        sides = [_may_be_single(module, values, side, depth - 1) for side in (node.left, right)]
        return any(sides) and all(
            single or _is_number(side) for single, side in zip(sides, (node.left, right), strict=True)
        )
    if not isinstance(node, cst.Call):
        return False
    name = called(module, node)
    if name in _REDUCING or name.endswith("loss"):
        if any(argument.keyword and argument.keyword.value in KEEPS for argument in node.args):
            return False
        operands = [node.func.value] if isinstance(node.func, cst.Attribute) else []
        operands += [argument.value for argument in node.args]
        by_axis = any(isinstance(operand, (cst.Integer, cst.UnaryOperation)) for operand in operands)
        return not (by_axis and any(_least_axes(values, operand, depth - 1) > 1 for operand in operands))
    if values.operator(node) is None and isinstance(node.func, cst.Attribute):
        return _may_be_single(module, values, node.func.value, depth - 1)
    return bool(node.args) and _may_be_single(module, values, node.args[0].value, depth - 1)


def _least_axes(values: Values, node: cst.BaseExpression, depth: int) -> int:
    """Return how many axes a row's value of ``node`` has at least: as many as the index of the row has slices."""
    if depth == 0:
        return 0
    if isinstance(node, cst.Subscript):
        return sum(isinstance(part.slice, cst.Slice) for part in node.slice)
    if isinstance(node, cst.BinaryOperation):
        return max(_least_axes(values, side, depth - 1) for side in (node.left, node.right))
    if isinstance(node, cst.Name):
        bound = values.reaching(node)
        value = bound[0].value if len(bound) == 1 else None
        return _least_axes(values, value, depth - 1) if value is not None else 0
    if isinstance(node, cst.Call) and node.args and called(values.module, node) in _KEEPING:
        return _least_axes(values, node.args[0].value, depth - 1)
    return 0


def _is_number(node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is a number or a setting, which may be one."""
    return isinstance(node, (cst.Integer, cst.Float, cst.Attribute))


def _summed(
    module: Module, values: Values, call: cst.Call, summed: cst.BaseExpression, arguments: Sequence[cst.Arg]
) -> Respelled | None:
    """Return a sum by ``ops.ReduceSum``, if it is known to be one of floats, over axes that stand there as numbers."""
    axis, keeps = "", False
    for position, argument in enumerate(arguments):
        written = module.code(argument.value).replace(" ", "")
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if argument.star:
            return None
        if (keyword in _AXIS or (not keyword and position == 0)) and is_axis(argument.value):
            axis = module.code(argument.value)
            axis = f"({axis})" if argument.value.lpar else axis
        elif keyword in KEEPS and written in ("True", "False"):
            keeps = written == "True"
        else:
            return None
    start, end = (module.start(call), module.start(summed)), (module.end(summed), module.end(call))
    if holds_floats(module, summed) is not True or "#" in module.text(*start) + module.text(*end):
        return None
    reached = reach_from(module, "mindspore.ops", ["ReduceSum"], call, "ops")
    head = f"{reached.expressions['ReduceSum']}({'keep_dims=True' if keeps else ''})("
    tail = f", {axis})" if axis else ")"
    if not axis and _may_be_single(module, values, summed, _DEEPEST):
        head, tail = (f"{head}(", ").reshape(-1))") if not is_primary(summed) else (head, ".reshape(-1))")
    return Respelled("mindspore.ops.ReduceSum", (Edit(*start, head), Edit(*end, tail)), reached.edits)


def is_primary(node: cst.BaseExpression) -> bool:
    """Tell whether a method can be called on ``node`` as it is written."""
    return isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))


def is_axis(node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is a number or a tuple of numbers, not of none."""
    if isinstance(node, cst.Tuple):
        return bool(node.elements) and all(is_axis(element.value) for element in node.elements)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and isinstance(node.expression, cst.Integer)
    return isinstance(node, cst.Integer)
