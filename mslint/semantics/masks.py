"""Boolean masks as an index: which expressions are masks, which subscripts pick or set the elements that a mask names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.semantics.criteria import COMPARISONS, RESHAPING_METHODS, RESHAPING_OPERATORS
from mslint.semantics.flow import owner_of
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module
from mslint.semantics.tensors import Kind, Values, values_of

_TESTS = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
_BOOLEANS = ("mindspore.bool_", "mindspore.dtype.bool_", "bool")
_DEEPEST = 8


@dataclass(frozen=True)
class Masked:
    """``subscript`` indexes a tensor by ``mask``; ``origin`` is the comparison that makes the mask."""

    subscript: cst.Subscript
    mask: cst.BaseExpression
    origin: cst.BaseExpression
    stored: cst.Assign | cst.AugAssign | None
    """The statement that sets the elements; None where they are read."""


def masked(module: Module, function: cst.FunctionDef) -> Iterator[Masked]:
    """Yield the subscripts of ``function`` that index a tensor by a boolean mask."""
    for subscript in inventories(module)[function].subscripts:
        values = values_of(module, function)
        for part in subscript.slice:
            if not isinstance(part.slice, cst.Index):
                continue
            origin = mask_origin(values, part.slice.value)
            if origin is not None and _is_on_device(values, subscript, part.slice.value):
                yield Masked(subscript, part.slice.value, origin, _store(module, subscript))
                break


def mask_origin(values: Values, node: cst.BaseExpression, depth: int = 0) -> cst.BaseExpression | None:
    """Return the expression that makes the boolean tensor ``node``, or None if ``node`` is not known to be one."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, cst.Comparison):
        if any(isinstance(target.operator, _TESTS) for target in node.comparisons):
            return None
        operands = [node.left, *(target.comparator for target in node.comparisons)]
        return None if all(values.kind(operand) is Kind.NUMBER for operand in operands) else node
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        return mask_origin(values, node.expression, depth + 1)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return mask_origin(values, node.left, depth + 1) and mask_origin(values, node.right, depth + 1)
    if isinstance(node, cst.Name):
        bindings = values.reaching(node)
        found = [mask_origin(values, b.value, depth + 1) if b.value is not None else None for b in bindings]
        return found[0] if found and all(found) else None
    if isinstance(node, cst.Call):
        return node if _makes_mask(values, node) else _inside(values, node, depth)
    return None


def _makes_mask(values: Values, call: cst.Call) -> bool:
    name = (values.operator(call) or "").rpartition(".")[2].replace("_", "").lower()
    if name in COMPARISONS:
        return True
    if name == "cast":
        return len(call.args) == 2 and _is_bool(values, call.args[1].value)
    if isinstance(call.func, cst.Attribute):
        method = call.func.attr.value
        if method in ("astype", "to", "type"):
            return bool(call.args) and _is_bool(values, call.args[0].value)
        return method == "bool" or method.replace("_", "") in COMPARISONS
    return False


def _inside(values: Values, call: cst.Call, depth: int) -> cst.BaseExpression | None:
    """Return the mask that ``call`` only gives another shape."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in RESHAPING_METHODS:
        return mask_origin(values, call.func.value, depth + 1)
    if (values.operator(call) or "").rpartition(".")[2].lower() in RESHAPING_OPERATORS and call.args:
        return mask_origin(values, call.args[0].value, depth + 1)
    return None


def _is_bool(values: Values, node: cst.BaseExpression) -> bool:
    return (values.module.resolve(node) or (node.value if isinstance(node, cst.Name) else "")) in _BOOLEANS


def _is_on_device(values: Values, subscript: cst.Subscript, mask: cst.BaseExpression) -> bool:
    """Tell whether a tensor is indexed, and not an array of numpy: in a Cell, where nothing says otherwise."""
    kinds = {values.kind(subscript.value), values.kind(mask)}
    if Kind.ARRAY in kinds or Kind.LIST in kinds:
        return False
    owner = owner_of(values.module, subscript)
    in_cell = owner is not None and any(base.startswith("mindspore.nn.") for base in owner.lineage)
    return in_cell or (Kind.TENSOR in kinds and _uses_operators(values))


def _uses_operators(values: Values) -> bool:
    function = values.function
    assert isinstance(function, cst.FunctionDef)
    prefixes = ("mindspore.ops.", "mindspore.nn.", "mindspore.numpy.", "mindspore.mint.", "mindspore.Tensor")
    return any(
        (values.operator(call) or "").startswith(prefixes) for call in inventories(values.module)[function].calls
    )


def _store(module: Module, subscript: cst.Subscript) -> cst.Assign | cst.AugAssign | None:
    current: cst.CSTNode = subscript
    parent = module.parents[current]
    while isinstance(parent, cst.Subscript) and parent.value is current:
        current, parent = parent, module.parents[parent]
    if isinstance(parent, cst.AssignTarget):
        statement = module.parents[parent]
        return statement if isinstance(statement, cst.Assign) else None
    return parent if isinstance(parent, cst.AugAssign) and parent.target is current else None
