"""What the syntax tree of a file must hold for MS204 to report something in it."""

from __future__ import annotations

import ast

from mslint.semantics.criteria import COMPARISONS, RESHAPING_METHODS, RESHAPING_OPERATORS
from mslint.semantics.spelling import Function, Spelling, spelling
from mslint.semantics.syntax import arguments, indices

_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_CASTING_METHODS = ("astype", "to", "type")
_BOOLEANS = frozenset(["bool", "bool_"])
_RESHAPING = frozenset(operator.replace("_", "") for operator in RESHAPING_OPERATORS)


def has_mask(tree: ast.Module) -> bool:
    """Tell whether a function of ``tree`` may index a tensor by a boolean mask."""
    file = spelling(tree)
    return any(
        _may_be_mask(file, function, index, set())
        for function in file.functions
        if file.is_trained(function) and (function.outermost.of_class or file.runs_operators(function))
        for subscript in function.subscripts
        for index in indices(subscript)
    )


def _may_be_mask(file: Spelling, function: Function, node: ast.expr, seen: set[str]) -> bool:
    if isinstance(node, ast.Compare):
        return not any(isinstance(test, _TESTS) for test in node.ops)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and _may_be_mask(file, function, node.operand, seen)
    if isinstance(node, ast.BinOp):
        # Both sides are masks where one is; what a name stands for is looked at once.
        return isinstance(node.op, (ast.BitAnd, ast.BitOr)) and _may_be_mask(file, function, node.left, seen)
    if isinstance(node, ast.Name):
        if node.id in seen:
            return False
        seen.add(node.id)
        return any(_may_be_mask(file, function, value, seen) for value in function.values.get(node.id, ()))
    return isinstance(node, ast.Call) and _may_make_mask(file, function, node, seen)


def _may_make_mask(file: Spelling, function: Function, call: ast.Call, seen: set[str]) -> bool:
    given = arguments(call)
    if file.may_be_plainly(call.func, COMPARISONS):
        return True
    if file.may_be_plainly(call.func, {"cast"}) and any(file.may_be(argument, _BOOLEANS) for argument in given):
        return True
    if isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if method == "bool" or (method in _CASTING_METHODS and any(file.may_be(kind, _BOOLEANS) for kind in given)):
            return True
        if method in RESHAPING_METHODS and _may_be_mask(file, function, call.func.value, seen):
            return True
    return bool(given) and file.may_be_plainly(call.func, _RESHAPING) and _may_be_mask(file, function, given[0], seen)
