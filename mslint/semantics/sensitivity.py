"""What a sensitivity (the ``sens`` argument of a gradient function) multiplies the loss by."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from mslint.semantics.cells import CellClass, is_self, method_of, self_name
from mslint.semantics.module import Module, find

_FILL = ("mindspore.ops.Fill", "mindspore.ops.fill")
_ONES = ("mindspore.ops.OnesLike", "mindspore.ops.ones_like", "mindspore.numpy.ones_like")
_FULL_LIKE = ("mindspore.ops.full_like", "mindspore.numpy.full_like", "mindspore.ops.fill_like")
_TYPE = ("mindspore.ops.DType", "mindspore.ops.dtype")
_SHAPE = ("mindspore.ops.Shape", "mindspore.ops.shape")
_CAST = ("mindspore.ops.Cast", "mindspore.ops.cast")


@dataclass(frozen=True)
class Scale:
    """The loss is weighed by ``value``; None means by one."""

    value: cst.BaseExpression | None


def operator_called(module: Module, owner: CellClass | None, call: cst.Call) -> str | None:
    """Return the MindSpore operator that ``call`` runs.

    ``ops.fill(...)``, ``ops.Fill()(...)`` and ``self.fill(...)`` with either of them in ``self.fill`` are alike.
    """
    function = call.func
    if owner is not None and isinstance(function, cst.Attribute):
        method = method_of(module, call)
        if method is not None and is_self(function, self_name(method)):
            held = owner.value(function.attr.value)
            if held is None:
                return None
            function = held
    if isinstance(function, cst.Call):
        function = function.func
    return module.resolve(function)


def scale_of(module: Module, owner: CellClass | None, node: cst.BaseExpression, loss: str) -> Scale | None:
    """Return the number that ``node``, a tensor shaped like the variable ``loss``, is filled with; None if it is not that."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        for ones, value in ((node.left, node.right), (node.right, node.left)):
            part = scale_of(module, owner, ones, loss)
            if part is not None and part.value is None and not mentions(value, loss):
                return Scale(value)
            if part is not None and part.value is None:
                return (
                    Scale(_without_cast(module, owner, value, loss))
                    if _without_cast(module, owner, value, loss)
                    else None
                )
        return None
    if not isinstance(node, cst.Call) or any(argument.star or argument.keyword for argument in node.args):
        return None
    name = operator_called(module, owner, node)
    values = [argument.value for argument in node.args]
    if name in _ONES and len(values) == 1:
        return Scale(None) if is_name(values[0], loss) else None
    if name in _FULL_LIKE and len(values) == 2:
        return Scale(values[1]) if is_name(values[0], loss) and not mentions(values[1], loss) else None
    if name in _FILL and len(values) == 3:
        if _is_property(module, owner, values[1], loss, "shape", _SHAPE) and not mentions(values[2], loss):
            typed = _is_property(module, owner, values[0], loss, "dtype", _TYPE) or not mentions(values[0], loss)
            return Scale(values[2]) if typed else None
    return None


def _without_cast(
    module: Module, owner: CellClass | None, node: cst.BaseExpression, loss: str
) -> cst.BaseExpression | None:
    """Return ``node``, if all it takes from the loss is the type that it casts something else to."""
    if isinstance(node, cst.Call) and operator_called(module, owner, node) in _CAST and len(node.args) == 2:
        value, kind = node.args[0].value, node.args[1].value
        if not mentions(value, loss) and _is_property(module, owner, kind, loss, "dtype", _TYPE):
            return node
    return None


def _is_property(
    module: Module, owner: CellClass | None, node: cst.BaseExpression, loss: str, name: str, operators: tuple[str, ...]
) -> bool:
    """Tell whether ``node`` is ``loss.name`` or one of ``operators`` applied to ``loss``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == name and is_name(node.value, loss)
    if isinstance(node, cst.Call) and len(node.args) == 1:
        return operator_called(module, owner, node) in operators and is_name(node.args[0].value, loss)
    return False


def is_name(node: cst.CSTNode, name: str) -> bool:
    """Tell whether ``node`` is the bare name ``name``."""
    return isinstance(node, cst.Name) and node.value == name


def mentions(node: cst.CSTNode, name: str) -> bool:
    """Tell whether the variable ``name`` occurs in ``node``."""
    return any(item.value == name for item in find(node, cst.Name))
