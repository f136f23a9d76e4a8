"""What is known of a tensor's elements and shape: are they floats, and is it as large as another one?"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.semantics.formula import Expression, numbers, operator_of, read
from mslint.semantics.half import float_type
from mslint.semantics.module import Module, dotted
from mslint.semantics.reaching import reaching
from mslint.semantics.tensors import Kind, loop_variables, values_at

_FLOATING = ("exp", "log", "sqrt", "rsqrt", "softmax", "sigmoid", "log_softmax", "divide", "mean", "norm", "var", "std")
_ELEMENTWISE = frozenset(
    """
    add subtract multiply divide power negative square sqrt rsqrt exp log absolute softmax sigmoid log_softmax clip select
    """.split()  # noqa: SIM905
)
_LIKE = frozenset(
    """
    zeroslike oneslike fulllike cast astype float half copy tanh relu gelu silu softplus isnan isinf isfinite sin cos
    logicalnot logicaland logicalor logicalxor less greater equal notequal lessequal greaterequal lt gt eq ne le ge floor
    ceil round sign erf elu leakyrelu
    """.split()  # noqa: SIM905
)
_LAYERS = (
    "dense",
    "conv1d",
    "conv2d",
    "conv3d",
    "layernorm",
    "batchnorm1d",
    "batchnorm2d",
    "groupnorm",
    "tanh",
    "gelu",
)
_ARITHMETIC = ("add", "subtract", "multiply", "power", "square", "absolute", "negative", "sum", "clip")
_PASSING = ("ropout", "dentity", "epend", "top_gradient", "roadcast_to", "roadcastTo")
_FILLED = ("zeros", "ones", "full")
_CASTS = ("astype", "cast", "float", "half", "to", "type", "typeas", "tensor")
_TRUTHS = frozenset(
    """
    isnan isinf isfinite logicalnot logicaland logicalor logicalxor less greater equal notequal lessequal greaterequal lt gt
    eq ne le ge
    """.split()  # noqa: SIM905
)
"""Of those that keep the shape, what gives truth values."""
_TRAITS = ("shape", "dtype", "ndim", "size", "rank", "itemsize", "nbytes", "zeroslike", "oneslike")
"""What a tensor is beside its numbers."""
_ASKING = ("len", "print", "isinstance", "type")
_DEEPEST = 8


def holds_floats(module: Module, node: cst.CSTNode, depth: int = _DEEPEST) -> bool | None:
    """Tell whether the tensor ``node`` holds floats (True) or integers (False); None if that is not known."""
    if depth == 0:
        return None
    if isinstance(node, cst.Float):
        return True
    if isinstance(node, cst.Integer):
        return False
    if isinstance(node, cst.Name):
        value = _sole_value(module, node) or _looped_over(module, node)
        return holds_floats(module, value, depth - 1) if value is not None else None
    formula = read(Expression(module, node))
    if isinstance(node, cst.Call):
        name = called(module, node)
        if name in _TRUTHS:
            return None
        if name in _CASTS or any(argument.keyword and argument.keyword.value == "dtype" for argument in node.args):
            kinds = [float_type(Expression(module, argument.value)) for argument in node.args]
            if name in ("float", "half") or any(kinds):
                return True
            return False if any(_is_integer_type(module, argument.value) for argument in node.args) else None
        if name in _FILLED:
            return _filled(module, node)
        if name in _LAYERS:
            return True
        if name in _LIKE and not formula.operation:
            first = _operands(module, node)[:1]
            return holds_floats(module, first[0], depth - 1) if first else None
    if formula.operation in _FLOATING:
        return True
    if formula.operation in _ELEMENTWISE or formula.operation in ("sum", "same", "index"):
        operands = formula.operands if formula.operation in _ELEMENTWISE else formula.operands[:1]
        known = [holds_floats(module, operand.node, depth - 1) for operand in operands if operand.module is module]
        if True in known:
            return True
        return False if known and None not in known else None
    return None


def _is_integer_type(module: Module, node: cst.BaseExpression) -> bool:
    return (module.resolve(node) or "").startswith(("mindspore.int", "mindspore.uint"))


def is_fresh(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` makes a tensor that nothing else holds: no cast, view or layer that may hand its input on."""
    if isinstance(node, cst.UnaryOperation):
        # `+x` is x itself.
        return not isinstance(node.operator, cst.Plus)
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        return True
    if not isinstance(node, cst.Call):
        return False
    name, formula = operator_of(module, node)[0] or "", read(Expression(module, node))
    if formula.operation:
        return formula.operation not in ("same", "index")
    if name.startswith("mindspore.nn."):
        return called(module, node) in _LAYERS
    return name.startswith(("mindspore.ops.", "mindspore.numpy.", "mindspore.mint.")) and not name.endswith(_PASSING)


def hands_on(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` may be its operand itself or a view of it: ``x[0]``, ``+x``, Dropout out of training."""
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Plus)
    name = operator_of(module, node)[0] or "" if isinstance(node, cst.Call) else ""
    return name.endswith(_PASSING) or read(Expression(module, node)).operation in ("same", "index")


def asks_only(module: Module, name: cst.Name) -> bool:
    """Tell whether the tensor ``name`` is only asked for its shape or type there, or printed: its numbers go nowhere."""
    parent = module.parents[name]
    if isinstance(parent, cst.Attribute):
        return parent.value is name and parent.attr.value in _TRAITS
    call = module.parents[parent]
    if not isinstance(parent, cst.Arg) or not isinstance(call, cst.Call):
        return False
    if isinstance(call.func, cst.Name) and call.func.value in _ASKING:
        return not module.lookup(call.func.value, call)
    return called(module, call) in _TRAITS


def holds_numbers(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether the tensor ``node`` is known to hold numbers, not truth values."""
    if holds_floats(module, node) is not None:
        return True
    if isinstance(node, cst.Name):
        value = _sole_value(module, node)
        return value is not None and value is not node and holds_numbers(module, value)
    formula = read(Expression(module, node))
    if formula.operation == "select":
        return any(holds_numbers(module, operand.node) for operand in formula.operands[1:])
    if isinstance(node, cst.Call) and called(module, node) in ("zeroslike", "oneslike"):
        return holds_numbers(module, _operands(module, node)[0])
    return formula.operation in _ARITHMETIC


def _filled(module: Module, call: cst.Call) -> bool | None:
    """Tell whether ``zeros``, ``ones`` or ``full`` make floats: by their dtype, float32 if none is given."""
    given = [argument.value for argument in call.args]
    if any(float_type(Expression(module, value)) for value in given):
        return True
    least = 2 if called(module, call) == "full" else 1
    return True if len(given) == 1 and least == 1 else None


def fits(module: Module, mask: cst.CSTNode, tensor: cst.CSTNode) -> bool:
    """Tell whether ``mask`` has all the axes of ``tensor``, as far as it can be read.

    Everything that the tensor's shape comes from is in what the mask's shape comes from, so the mask has as many axes; it
    cannot have more where it is an index of the tensor.
    """
    wanted = set(_sizes(module, tensor, _DEEPEST))
    return bool(wanted) and wanted <= set(_sizes(module, mask, _DEEPEST))


def _sizes(module: Module, node: cst.CSTNode, depth: int) -> Iterator[object]:
    """Yield what the shape of ``node`` is broadcast from."""
    if isinstance(node, cst.Name):
        bound = reaching(module, node)
        value = bound[0].value if len(bound) == 1 else None
        if value is not None and depth:
            yield from _sizes(module, value, depth - 1)
        elif values_at(module, node).kind(node) is not Kind.NUMBER:
            yield (node.value, *(id(binding.node) for binding in bound))
        return
    parts = _parts(module, node)
    if parts and depth:
        for part in parts:
            yield from _sizes(module, part, depth - 1)
    elif not _is_number(module, node):
        yield module.code(node) if isinstance(node, cst.Attribute) else id(node)


def _parts(module: Module, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return what ``node`` is an elementwise function of."""
    if isinstance(node, cst.Comparison):
        return [node.left, *(target.comparator for target in node.comparisons)]
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    if isinstance(node, cst.Call):
        formula = read(Expression(module, node))
        if formula.operation in _ELEMENTWISE:
            return [operand.node for operand in formula.operands]
        name = called(module, node)
        if name in _LIKE:
            operands = _operands(module, node)
            return list(operands[:1] if name in (*_CASTS, "fulllike") else operands)
    return []


def _operands(module: Module, call: cst.Call) -> list[cst.BaseExpression]:
    """Return the tensors that ``call`` works on: its arguments, of a method its owner too."""
    given = [argument.value for argument in call.args if argument.keyword is None]
    is_method = operator_of(module, call)[0] is None and isinstance(call.func, cst.Attribute)
    return [call.func.value, *given] if is_method and isinstance(call.func, cst.Attribute) else given


def called(module: Module, call: cst.Call) -> str:
    """Return the last name of the operator or method that ``call`` runs, without underlines and capitals."""
    name = operator_of(module, call)[0] or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
    return name.rpartition(".")[2].replace("_", "").lower()


def _is_number(module: Module, node: cst.CSTNode) -> bool:
    if values_at(module, node).kind(node) is Kind.NUMBER or bool(numbers(Expression(module, node))):
        return True
    # A type, as the argument of a cast.
    return isinstance(node, (cst.Name, cst.Attribute)) and (module.resolve(node) or "").startswith("mindspore.")


def _sole_value(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    bound = reaching(module, name)
    return bound[0].value if len(bound) == 1 else None


def _looped_over(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    """Return the tensor that the loop's variable ``name`` is a row of."""
    bound = reaching(module, name)
    loop = bound[0].node if len(bound) == 1 else None
    if not isinstance(loop, (cst.For, cst.CompFor)):
        return None
    return next(
        (value for target, value in loop_variables(loop) if value and dotted(target) == name.value),
        None,
    )
