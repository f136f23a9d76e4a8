"""Does a loop over rows run over all rows of each tensor that it reads? What is not proved is put in words."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from codemods.row_function import RowFunction
from mslint.semantics.module import Binding
from mslint.semantics.tensors import Values, loop_variables
from mslint.semantics.vectorising import Vectorised, vectorised

Length = tuple[object, int]
"""What stands for the length of an axis: equal ones are the same number."""

# Operators that were measured but may change the length of the first axis, or take the first axis away.
_RESHAPING = frozenset(
    """
    reshape Reshape view flatten squeeze Squeeze unsqueeze expand_dims ExpandDims transpose Transpose T permute swapaxes
    tile Tile broadcast_to BroadcastTo expand_as stack Stack concat cat Concat split chunk unbind gather Gather diagonal diag
    matmul MatMul mm bmm BatchMatMul dot mv inner outer topk sort einsum tensor_dot cdist one_hot gather_elements addmm
    all amax amin any max mean min prod std sum var logsumexp ReduceMax ReduceMean ReduceMin ReduceSum norm argmax argmin
    cosine_similarity count_nonzero l1_loss mse_loss smooth_l1_loss huber_loss kl_div cross_entropy nll_loss
    binary_cross_entropy binary_cross_entropy_with_logits MSELoss L1Loss SmoothL1Loss BCELoss CosineSimilarity Tensor
    eye ones zeros arange full scalar_to_tensor where select Select flip roll
    """.split()  # noqa: SIM905
)


def row_doubts(function: RowFunction) -> list[str]:
    """Return what must hold, beside what the code shows, for the loop to run over all rows of each tensor."""
    values, header = function.values, function.header
    bound = _bound(values, header)
    lengths = [(tensor, axis, _length(values, tensor, axis)) for tensor, axis in function.mapped]
    written = function.module.code
    known = bound if bound is not None else (lengths[0][2] if not _counts(header) else None)
    if known is None:
        named = listed(dict.fromkeys(f"`{written(tensor)}`" for tensor, _, _ in lengths))
        return [f"that `{_bound_text(function)}` is the number of rows of {named}"]
    others = dict.fromkeys(f"`{written(tensor)}`" for tensor, _, length in lengths if length != known)
    if not others:
        return []
    first = next((written(tensor) for tensor, _, length in lengths if length == known), None)
    rows = f"as many rows as `{first}`" if first is not None else f"`{_bound_text(function)}` rows"
    return [f"that {listed(others)} {'have' if len(others) > 1 else 'has'} {rows}"]


def listed(items: Iterable[str]) -> str:
    """Return ``items`` as they are listed in a sentence."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _counts(header: cst.For | cst.CompFor) -> bool:
    return isinstance(header.iter, cst.Call) and _callee(header.iter) == "range"


def _bound_text(function: RowFunction) -> str:
    over = function.header.iter
    if isinstance(over, cst.Call) and over.args and _callee(over) in ("range", "enumerate"):
        return function.module.code(over.args[0].value if len(over.args) == 1 else over.args[1].value)
    return function.module.code(over)


def _callee(call: cst.Call) -> str:
    return call.func.value if isinstance(call.func, cst.Name) else ""


def _bound(values: Values, header: cst.For | cst.CompFor) -> Length | None:
    """Return the length that the loop counts to; of one over tensors themselves, the first one's."""
    if _counts(header):
        assert isinstance(header.iter, cst.Call)
        return _number(values, header.iter.args[-1].value if len(header.iter.args) < 3 else header.iter, 0)
    over = [value for _, value in loop_variables(header) if value is not None]
    return _length(values, over[0], 0)


def _number(values: Values, node: cst.BaseExpression, depth: int) -> Length | None:
    """Return the length of an axis that ``node`` is: ``x.shape[0]``, ``len(x)``, or a variable that holds it."""
    if depth > 4:
        return None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and values.is_shape(node.value):
        part = node.slice[0].slice
        number = part.value if isinstance(part, cst.Index) else None
        sign = -1 if isinstance(number, cst.UnaryOperation) and isinstance(number.operator, cst.Minus) else 1
        number = number.expression if isinstance(number, cst.UnaryOperation) else number
        tensor = _shaped(node.value)
        return (
            _length(values, tensor, sign * int(number.value))
            if tensor is not None and isinstance(number, cst.Integer)
            else None
        )
    if isinstance(node, cst.Call) and _callee(node) == "len" and len(node.args) == 1:
        return _length(values, node.args[0].value, 0)
    if isinstance(node, cst.Name):
        bindings = values.reaching(node)
        if len(bindings) != 1:
            return None
        binding = bindings[0]
        if binding.value is not None:
            return _number(values, binding.value, depth + 1)
        if isinstance(binding.node, cst.Assign):
            return _unpacked(values, binding, node.value)
    return None


def _unpacked(values: Values, binding: Binding, name: str) -> Length | None:
    assign = binding.node
    assert isinstance(assign, cst.Assign)
    target, tensor = assign.targets[0].target, _shaped(assign.value)
    if tensor is None or not isinstance(target, (cst.Tuple, cst.List)) or not values.is_shape(assign.value):
        return None
    for axis, element in enumerate(target.elements):
        if isinstance(element, cst.StarredElement):
            return None
        if isinstance(element.value, cst.Name) and element.value.value == name:
            return _length(values, tensor, axis)
    return None


def _shaped(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor that ``node`` is the shape of."""
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return node.value
    if isinstance(node, cst.Call):
        if node.args:
            return node.args[0].value
        return node.func.value if isinstance(node.func, cst.Attribute) else None
    return None


def _length(values: Values, tensor: cst.BaseExpression, axis: int) -> Length:
    """Return what stands for the length of ``axis`` of ``tensor``; seen through operators that keep the first axis."""
    if isinstance(tensor, cst.Name):
        bindings = values.reaching(tensor)
        if (
            len(bindings) == 1
            and axis == 0
            and isinstance(bindings[0].node, cst.Assign)
            and bindings[0].value is not None
        ):
            return _length(values, bindings[0].value, axis)
        return (tensor.value, tuple(id(binding.node) for binding in bindings)), axis
    if isinstance(tensor, cst.Call) and axis == 0:
        name = values.operator(tensor) or ""
        kept = vectorised(name) in (Vectorised.ONCE, Vectorised.LOOPED) and name.rpartition(".")[2] not in _RESHAPING
        if kept and len([a for a in tensor.args if a.keyword is None]) == 1:
            return _length(values, tensor.args[0].value, axis)
    return id(tensor), axis
