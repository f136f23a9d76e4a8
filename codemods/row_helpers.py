"""What functions and Cells of the project run that a loop over rows calls: ``mindspore.vmap`` runs them for all rows."""

from __future__ import annotations

from collections.abc import Iterator, Set

import libcst as cst

from codemods.base import Manual
from mslint.semantics.cells import method_of, self_name
from mslint.semantics.flow import function_called, held
from mslint.semantics.module import Module, find, walk
from mslint.semantics.rows import operators_run, touches
from mslint.semantics.tensors import Kind, Values, values_of
from mslint.semantics.vectorising import Vectorised, vectorised

SIGNS: dict[type[cst.CSTNode], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitInvert: "~",
    cst.Minus: "neg",
}
HARMLESS = frozenset(["len", "range", "enumerate", "zip", "tuple", "list", "reversed"])
_NOT_FOLLOWED = (cst.Try, cst.With, cst.Lambda, cst.FunctionDef, cst.While, cst.NamedExpr, cst.Global, cst.Nonlocal)

Run = tuple[str, str]
"""An operator and how the source spells it; an empty operator is something that is not followed."""


def is_project_code(values: Values, call: cst.Call) -> bool:
    """Tell whether ``call`` runs a function or Cell of the project that is not one of this file's functions."""
    targets = [values.operator(call)]
    if isinstance(call.func, cst.Attribute):
        built = [value for value in held(values.module, call.func) if isinstance(value, cst.Call)]
        targets += [values.module.resolve(value.func) for value in built]
    return any(".py:" in (target or "") for target in targets)


def run_elsewhere(values: Values, call: cst.Call) -> Iterator[Run]:
    """Yield what is known of project code that is not read: what it runs that must not be, and that it is not measured."""
    written = f"`{values.module.code(call.func)}`"
    for operator in sorted(operators_run(values, call)):
        if vectorised(operator) in (Vectorised.RANDOM, Vectorised.REFUSED):
            yield operator, f"`{operator}` in {written}"
    yield "", written


def run_by(
    module: Module, function: cst.FunctionDef, written: str, seen: Set[cst.CSTNode] = frozenset()
) -> Iterator[Run]:
    """Yield what ``function``, called as ``written``, runs; raise ``Manual`` where it stores in place."""
    values, names = values_of(module, function), _variables(module, function)
    code = module.code
    for node in walk(function.body):
        if isinstance(node, cst.Call):
            yield from _called(values, node, written, names, seen | {function})
        elif isinstance(node, (cst.If, cst.IfExp)):
            if touches(node.test, (), names) and not _asks_for_none(node.test):
                yield "", f"`if {code(node.test)}` in {written}"
        elif isinstance(node, (cst.For, cst.CompFor)):
            if touches(node.iter, (), names):
                yield "", f"the loop over `{code(node.iter)}` in {written}"
        elif isinstance(node, cst.Subscript):
            # Neither an index by values nor a part of what all rows share is vectorised (measured on 2.10.0).
            if not values.is_shape(node.value):
                yield "", f"`{code(node)}` in {written}"
        elif isinstance(node, (cst.AssignTarget, cst.AugAssign)):
            if not isinstance(node.target, (cst.Name, cst.Tuple)):
                raise Manual(f"{written} writes `{code(node.target)}` in place")
        elif isinstance(node, (*_NOT_FOLLOWED, cst.BooleanOperation, cst.Assert)):
            if isinstance(node, _NOT_FOLLOWED) or touches(node, (), names):
                yield "", f"all of {written}"
        elif touches(node, (), names):
            yield from _signs(values, node, written)


def _called(values: Values, call: cst.Call, written: str, names: Set[str], seen: Set[cst.CSTNode]) -> Iterator[Run]:
    module, name = values.module, values.operator(call)
    inner = function_called(module, call)
    if inner is not None:
        if inner not in seen:
            yield from run_by(module, inner, f"`{module.code(call.func)}`", seen)
    elif is_project_code(values, call):
        yield from run_elsewhere(values, call)
    elif name is not None and name.startswith("mindspore."):
        yield name, f"`{module.code(call.func)}` in {written}"
    elif isinstance(call.func, cst.Attribute) and not operators_run(values, call):
        yield f"Tensor.{call.func.attr.value}", f"`.{call.func.attr.value}` in {written}"
    elif isinstance(call.func, cst.Name) and call.func.value in HARMLESS:
        return
    elif any(touches(argument.value, (), names) for argument in call.args):
        for operator in sorted(operators_run(values, call)) or [""]:
            yield operator, f"`{module.code(call.func)}` in {written}"


def _signs(values: Values, node: cst.CSTNode, written: str) -> Iterator[Run]:
    if isinstance(node, cst.BinaryOperation):
        operators: list[cst.CSTNode] = [node.operator]
        operands = [node.left, node.right]
    elif isinstance(node, cst.UnaryOperation):
        operators, operands = [node.operator], []
    elif isinstance(node, cst.Comparison) and not _asks_for_none(node):
        operators = [target.operator for target in node.comparisons]
        operands = [node.left, *(target.comparator for target in node.comparisons)]
    else:
        return
    by_number = any(values.kind(operand) is Kind.NUMBER for operand in operands)
    for operator in operators:
        sign = SIGNS.get(type(operator))
        with_number = f"operator.{sign} with a number"
        if by_number and vectorised(with_number) is Vectorised.LOOPED:
            yield with_number, f"`{sign}` with a number in {written}"
        else:
            yield f"operator.{sign}" if sign else "", f"`{sign or type(operator).__name__}` in {written}"


def _asks_for_none(test: cst.CSTNode) -> bool:
    return isinstance(test, cst.Comparison) and all(
        isinstance(target.operator, (cst.Is, cst.IsNot)) for target in test.comparisons
    )


def _variables(module: Module, function: cst.FunctionDef) -> set[str]:
    """Return the parameters and variables of ``function``, ``self`` apart."""
    bound: list[cst.CSTNode] = [parameter.name for parameter in find(function.params, cst.Param)]
    for node in walk(function.body):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor)):
            bound.append(node.target)
    own = self_name(function) if method_of(module, function.body) is function else ""
    return {name.value for item in bound for name in find(item, cst.Name)} - {own}
