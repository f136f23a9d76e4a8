"""Is a value a probability, the complement of one, odds, or made of exponentials, and where was it made so?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mslint.semantics.formula import Expression, Formula, elements, numbers, read, same, values

_DEPTH = 7


@dataclass(frozen=True)
class Produced:
    """What a value is, in the user's words (``softmax``, ``sigmoid``, ...), and the expression that makes it so."""

    kind: str
    by: Expression


def probability(expression: Expression, depth: int = _DEPTH) -> Produced | None:
    """Return how ``expression`` is a probability: a number between 0 and 1 that a softmax, sigmoid or quotient made.

    What is picked from a probability (by an index, a mask and a sum, a condition, a maximum), a power and a product of
    probabilities, and one minus a probability are probabilities too.
    """
    known: dict[Expression, Produced | None] = expression.module.remember(probability, dict)
    if expression in known:
        return known[expression]
    if depth == 0:
        return None
    known[expression] = None  # in a loop a value may be made of itself
    for value in values(expression):
        found = _probability(read(value), depth - 1)
        if found is not None:
            known[expression] = found
            return found
    return None


def _probability(formula: Formula, depth: int) -> Produced | None:
    operation, operands = formula.operation, formula.operands
    if operation in ("softmax", "sigmoid"):
        return Produced(operation, formula.expression)
    if operation == "subtract":
        inner = probability(operands[1], depth) if is_one(operands[0]) else None
        return Produced(f"1 - {inner.kind}", inner.by) if inner is not None else None
    if operation in ("power", "sqrt", "clip", "extreme", "negative", "index"):
        return probability(operands[0], depth)
    if operation == "select":
        return _first(operands, depth)
    if operation == "join":
        return _first(elements(operands[0]), depth)
    if operation == "multiply":
        left, right = probability(operands[0], depth), probability(operands[1], depth)
        return left if left is not None and right is not None else None
    if operation == "sum":
        return _picked(operands[0], depth)
    if operation == "add":
        # p * t + (1 - p) * (1 - t): the probability of the class that t names.
        left, right = _picked(operands[0], depth), _picked(operands[1], depth)
        return left if left is not None and right is not None and left.kind != right.kind else None
    if operation == "divide":
        return _quotient(formula, depth)
    return None


def _picked(expression: Expression, depth: int) -> Produced | None:
    """Return the probability that a product with a mask or a one-hot label picks from."""
    for value in values(expression):
        formula = read(value)
        if formula.operation == "multiply":
            return _first(formula.operands, depth)
    return None


def _first(operands: tuple[Expression, ...], depth: int) -> Produced | None:
    return next((found for item in operands if (found := probability(item, depth)) is not None), None)


def _quotient(formula: Formula, depth: int) -> Produced | None:
    above, below = formula.operands[:2]
    for value in values(below):
        part = read(value)
        while part.operation == "add":
            part = read(values(part.first)[0])
        if part.operation == "sum" and any(same(part.first, factor) for factor in _factors(above)):
            kind = "exp / sum(exp)" if exponential(above) else "x / sum(x)"
            return Produced(kind, formula.expression)
    if exponential(above) is not None and summed_exponentials(below) is not None:
        return Produced("exp / sum(exp)", formula.expression)
    return None


def _factors(expression: Expression) -> Iterator[Expression]:
    """Yield ``expression`` and, of a product with a mask, what is multiplied."""
    yield expression
    for value in values(expression, calls=0):
        formula = read(value)
        if formula.operation == "multiply":
            yield from formula.operands


def odds(expression: Expression) -> Expression | None:
    """Return p if ``expression`` is p / (1 - p)."""
    for value in values(expression):
        formula = read(value)
        if formula.operation != "divide":
            continue
        for below in values(formula.operands[1]):
            part = read(below)
            while part.operation == "add":
                part = read(part.first)
            if part.operation == "subtract" and is_one(part.first) and same(part.operands[1], formula.first):
                return formula.first
    return None


def exponential(expression: Expression, depth: int = _DEPTH) -> Expression | None:
    """Return the ``exp`` that ``expression`` is, or is a multiple of."""
    known: dict[Expression, Expression | None] = expression.module.remember(exponential, dict)
    if expression not in known and depth:
        known[expression] = None
        known[expression] = next(_exponentials(expression, depth - 1), None)
    return known.get(expression)


def _exponentials(expression: Expression, depth: int) -> Iterator[Expression]:
    for value in values(expression):
        formula = read(value)
        if formula.operation == "exp":
            yield value
        elif formula.operation in ("multiply", "divide", "index", "select"):
            for operand in formula.operands[:1] if formula.operation in ("divide", "index") else formula.operands:
                found = exponential(operand, depth)
                if found is not None:
                    yield found


def summed_exponentials(expression: Expression, depth: int = _DEPTH) -> Expression | None:
    """Return the sum (or mean) of exponentials that ``expression`` is, or has as a term."""
    known: dict[Expression, Expression | None] = expression.module.remember(summed_exponentials, dict)
    if expression not in known and depth:
        known[expression] = None
        known[expression] = next(_sums(expression, depth - 1), None)
    return known.get(expression)


def _sums(expression: Expression, depth: int) -> Iterator[Expression]:
    for value in values(expression):
        formula = read(value)
        if formula.operation in ("sum", "mean") and exponential(formula.first) is not None:
            yield value
        elif formula.operation == "add":
            for operand in formula.operands:
                found = summed_exponentials(operand, depth)
                if found is not None:
                    yield found


def is_positive(expression: Expression, depth: int = _DEPTH) -> bool:
    """Tell whether ``expression`` is made of exponentials that no mask can make zero."""
    if depth == 0:
        return False
    for value in values(expression):
        formula = read(value)
        if formula.operation == "exp":
            return True
        if formula.operation in ("sum", "mean"):
            return is_positive(formula.first, depth - 1)
        if formula.operation == "add":
            return any(is_positive(operand, depth - 1) for operand in formula.operands)
        if formula.operation == "multiply":
            return all(is_positive(operand, depth - 1) for operand in formula.operands)
        found = numbers(value)
        return bool(found) and min(found) > 0
    return False


def is_one(expression: Expression) -> bool:
    """Tell whether ``expression`` is the number 1, or ones."""
    return 1.0 in numbers(expression)


def is_shifted(power: Expression) -> bool:
    """Tell whether an exponential is taken of values less their maximum, so that it cannot overflow."""
    for value in values(power):
        formula = read(value)
        if formula.operation == "multiply":
            return any(is_shifted(operand) for operand in formula.operands if exponential(operand) is not None)
        if formula.operation != "exp":
            continue
        for argument in values(formula.first):
            part = read(argument)
            if part.operation == "subtract" and any(
                read(item).operation == "extreme" for item in values(part.operands[1])
            ):
                return True
    return False
