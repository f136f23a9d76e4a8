"""Arithmetic and comparisons of values that are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from mslint.program.following.values import Constant

SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
OPPOSITE = {"!=": "==", "is not": "is", "not in": "in"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a comparison becomes when its sides change places."""

_COMPARISONS: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: left in right,
}


def compared(sign: str, left: object, right: object) -> bool | None:
    """Return the outcome of ``left sign right``; None if Python could not tell."""
    compare = _COMPARISONS.get(sign.removeprefix("not ").replace("is not", "!=").replace("is", "=="))
    if compare is None:
        return None
    try:
        holds = bool(compare(left, right))
    except TypeError:
        return None
    return holds is not sign.startswith("not ")


def computed(sign: ast.operator, left: object, right: object) -> Constant | None:
    """Return the outcome of an operation on two literals; None if it is not worked out."""
    if isinstance(left, str) and isinstance(right, str) and isinstance(sign, ast.Add):
        return Constant(left + right)
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        return None
    if isinstance(sign, ast.Add):
        return Constant(left + right)
    if isinstance(sign, ast.Sub):
        return Constant(left - right)
    if isinstance(sign, ast.Mult):
        return Constant(left * right)
    if isinstance(sign, ast.FloorDiv) and right:
        return Constant(left // right)
    return None


def negative(value: object) -> Constant | None:
    """Return ``-value`` for a number."""
    return Constant(-value) if isinstance(value, (int, float)) else None
