"""Operators that ``mindspore.vmap`` has no rule for, written by equal ones that it has a rule for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from codemods.imports import reach_from
from mslint.findings import Edit
from mslint.semantics.extents import holds_floats
from mslint.semantics.module import Module
from mslint.semantics.tensors import Values

_AXIS = ("axis", "dim")
_KEEPS = ("keepdims", "keepdim")


@dataclass(frozen=True)
class Respelled:
    """A call by another name: the operator it runs now, the edits in the call and those of the imports."""

    operator: str
    edits: tuple[Edit, ...]
    imports: tuple[Edit, ...] = ()


def respelled(module: Module, values: Values, call: cst.Call) -> Respelled | None:
    """Return ``call`` by an equal operator that ``vmap`` has a rule for, or None if none is known.

    Measured on MindSpore 2.10.0, CPU, in both modes, values and gradients of random numbers, ties, NaN and infinities: sums
    of floats (float16, float32, float64, bfloat16) by ``ops.ReduceSum``, axes and ``keepdims`` included, are the same up to
    the order of addition (1e-7 of their size in float32, one unit in the last place in float16); ``x.max()`` and ``x.min()``
    by ``x.amax()`` and ``x.amin()`` are bit-equal, the gradient shared between ties included. Not so are sums of integers
    (``ReduceSum`` keeps int32, ``sum`` gives int64), ``max`` along an axis (all of the gradient goes to the first of several
    ties), ``clip``, ``prod``, and products with a number by ``ops.mul`` (a single float16 becomes a float32).
    """
    name = values.operator(call)
    function = call.func
    if name == "mindspore.ops.sum" and call.args and call.args[0].keyword is None and not call.args[0].star:
        return _summed(module, call, call.args[0].value, call.args[1:])
    if name is not None or not isinstance(function, cst.Attribute):
        return None
    if function.attr.value == "sum":
        return _summed(module, call, function.value, call.args)
    if function.attr.value in ("max", "min") and not call.args:
        other = f"a{function.attr.value}"
        return Respelled(f"Tensor.{other}", (module.replace(function.attr, other),))
    return None


def _summed(
    module: Module, call: cst.Call, summed: cst.BaseExpression, arguments: Sequence[cst.Arg]
) -> Respelled | None:
    """Return a sum by ``ops.ReduceSum``, if it is known to be one of floats, over axes that stand there as numbers."""
    axis, keeps = "", False
    for position, argument in enumerate(arguments):
        written = module.code(argument.value).replace(" ", "")
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if argument.star:
            return None
        if (keyword in _AXIS or (not keyword and position == 0)) and _is_axis(argument.value):
            axis = module.code(argument.value)
            axis = f"({axis})" if argument.value.lpar else axis
        elif keyword in _KEEPS and written in ("True", "False"):
            keeps = written == "True"
        else:
            return None
    start, end = (module.start(call), module.start(summed)), (module.end(summed), module.end(call))
    if holds_floats(module, summed) is not True or "#" in module.text(*start) + module.text(*end):
        return None
    reached = reach_from(module, "mindspore.ops", ["ReduceSum"], call, "ops")
    head = f"{reached.expressions['ReduceSum']}({'keep_dims=True' if keeps else ''})("
    tail = f", {axis})" if axis else ")"
    return Respelled("mindspore.ops.ReduceSum", (Edit(*start, head), Edit(*end, tail)), reached.edits)


def _is_axis(node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is a number or a tuple of numbers, not of none."""
    if isinstance(node, cst.Tuple):
        return bool(node.elements) and all(_is_axis(element.value) for element in node.elements)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and isinstance(node.expression, cst.Integer)
    return isinstance(node, cst.Integer)
