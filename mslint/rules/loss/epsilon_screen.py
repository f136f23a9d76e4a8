"""What a file must hold for the rules about epsilons, MS201 and MS202, to find anything in it."""

from __future__ import annotations

import ast
from itertools import permutations, product

from mslint.semantics.outline import Outline, is_call_of, last_name, operands, outline

_LARGEST = 1e-3
_LARGEST_LOST_IN_HALF = 3e-8
_LARGEST_LOST_IN_SINGLE = 2.0**-22
"""Beside 1, which may itself be a rounded number."""


def adds_epsilon(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may add an epsilon to a value, or to a number so large that float32 does not see it (MS201)."""
    file = outline(tree)
    return any(_adds_epsilon(file, node, _LARGEST) or _takes_lost(file, node) for node in _formulas(file))


def guards_half(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may add, or have for a bound, an epsilon that is 0 in float16 (MS202)."""
    file = outline(tree)
    return any(
        _adds_epsilon(file, node, _LARGEST_LOST_IN_HALF) or _is_bounded(file, node, _LARGEST_LOST_IN_HALF)
        for node in _formulas(file)
    )


def _formulas(file: Outline) -> list[ast.AST]:
    return file.of(ast.BinOp, ast.AugAssign, ast.Call)


def _adds_epsilon(file: Outline, node: ast.AST, largest: float) -> bool:
    return "add" in file.operations(node) and any(
        _may_be_epsilon(file, epsilon, largest) and not isinstance(value, ast.Constant) and not _is_text(value)
        for value, epsilon in permutations(operands(node), 2)
    )


def _is_bounded(file: Outline, node: ast.AST, largest: float) -> bool:
    return "clip" in file.operations(node) and any(_may_be_epsilon(file, bound, largest) for bound in operands(node))


def _may_be_epsilon(file: Outline, node: ast.AST, largest: float) -> bool:
    # A number that is not known is NaN, which compares with none.
    return last_name(node).lower().strip("_") in ("eps", "epsilon") or any(
        not (number <= 0 or number > largest) for number in file.numbers(node)
    )


def _is_text(node: ast.AST) -> bool:
    """Tell whether ``node`` is a text for sure: what is added to it, such as a setting of another file, is no number."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    is_literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_literal or isinstance(node, ast.JoinedStr) or is_call_of(node, "str")


def _takes_lost(file: Outline, node: ast.AST) -> bool:
    """Tell whether ``node`` may be a sum with a term, or have a bound, that an epsilon is lost in."""
    operations = file.operations(node)
    if "clip" in operations:
        return any(_is_lost(file, origin) for operand in operands(node) for origin in file.origins(operand))
    return not operations.isdisjoint({"add", "subtract"}) and any(_is_lost(file, term) for term in operands(node))


def _is_lost(file: Outline, node: ast.AST) -> bool:
    """Tell whether ``node`` may add to a number, or take from it, one that is tiny beside it."""
    if file.operations(node).isdisjoint({"add", "subtract"}):
        return False
    return any(
        small != 0 and not abs(small) > abs(large) * _LARGEST_LOST_IN_SINGLE
        for one, other in permutations(operands(node), 2)
        for small, large in product(file.numbers(one), file.numbers(other))
    )
