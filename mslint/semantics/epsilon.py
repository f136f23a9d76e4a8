"""Small constants added to keep a computation away from zero."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import libcst as cst

from mslint.semantics.formula import Expression, Formula, numbers, read

_LARGEST = 1e-3


@dataclass(frozen=True)
class Added:
    """``value + epsilon`` at ``expression``; ``amount`` is None where only the name of ``epsilon`` says what it is."""

    expression: Expression
    value: Expression
    epsilon: Expression
    amount: float | None

    @property
    def written(self) -> str:
        """The epsilon as the user reads it: the expression, with its number where that is written elsewhere."""
        code = self.epsilon.module.code(self.epsilon.node)
        if self.amount is None or isinstance(self.epsilon.node, (cst.Float, cst.Integer)):
            return f"`{code}`"
        return f"`{code}` ({self.amount:g})"


def added_epsilon(formula: Formula) -> Added | None:
    """Return how ``formula`` adds an epsilon, if it does: a positive number up to 1e-3, however it is spelled."""
    if formula.operation != "add" or len(formula.operands) < 2:
        return None
    one, other = formula.operands[:2]
    for value, epsilon in ((one, other), (other, one)):
        amount = _amount(epsilon)
        if amount is not None and not isinstance(value.node, (cst.Integer, cst.Float)):
            return Added(formula.expression, value, epsilon, amount)
    for value, epsilon in ((one, other), (other, one)):
        if _is_named_epsilon(epsilon) and not numbers(epsilon, calls=1):
            return Added(formula.expression, value, epsilon, None)
    return None


def _amount(expression: Expression) -> float | None:
    found = numbers(expression) or (numbers(expression, calls=1) if _is_named_epsilon(expression) else ())
    if found and all(0 < number <= _LARGEST for number in found):
        return min(found)
    return None


def _is_named_epsilon(expression: Expression) -> bool:
    node = expression.node
    name = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
    return name.lower().strip("_") in ("eps", "epsilon")


def float32(number: float) -> float:
    """Return ``number`` rounded to float32."""
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded


def lost_in_float32(expression: Expression) -> tuple[float, float] | None:
    """Return ``(constant, epsilon)`` if ``expression`` adds to, or takes from, a constant what float32 cannot see."""
    formula = read(expression)
    if formula.operation not in ("add", "subtract") or len(formula.operands) != 2:
        return None
    sides = [numbers(operand) for operand in formula.operands]
    if any(len(set(side)) != 1 for side in sides):
        return None
    left, right = sides[0][0], sides[1][0]
    small, large = sorted((left, right), key=abs)
    if not 0 < abs(small) < abs(large) * 1e-3:
        return None
    total = left + right if formula.operation == "add" else left - right
    constant = large if formula.operation == "add" or large == left else -large
    try:
        return (constant, abs(small)) if float32(total) == float32(constant) else None
    except OverflowError:
        return None


def vanishes_in_half(number: float) -> bool:
    """Tell whether ``number`` is 0 in float16."""
    rounded: float = struct.unpack("e", struct.pack("e", number))[0]
    return number != 0 and rounded == 0
