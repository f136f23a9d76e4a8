"""Values divided by a norm, a root mean square or a deviation of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.semantics.epsilon import Added, added_epsilon
from mslint.semantics.flow import owner_of
from mslint.semantics.formula import Expression, Formula, elements, numbers, read, same
from mslint.semantics.formula import values as all_values
from mslint.semantics.module import find


def values(expression: Expression) -> tuple[Expression, ...]:
    """Return what ``expression`` is in its own function: a normalisation is written in one place."""
    return all_values(expression, calls=0)


@dataclass(frozen=True)
class Normalised:
    """``value`` is divided by a statistic of itself: its Euclidean ``norm``, its ``root mean square``, its ``deviation``.

    ``protected`` tells whether the gradient stays finite where the statistic is 0: an epsilon beside a square root keeps
    the value finite, but the root has an infinite slope at 0.
    """

    kind: str
    value: Expression
    added: Added
    protected: bool


def normalised(formula: Formula) -> Normalised | None:
    """Return how ``formula``, a quotient or a product with a reciprocal root, normalises along an axis."""
    if formula.operation == "divide" and len(formula.operands) >= 2:
        for below in values(formula.operands[1]):
            found = _divided(formula.first, read(below))
            if found is not None:
                return found
    elif formula.operation == "multiply" and len(formula.operands) >= 2:
        for one, other in (formula.operands[:2], formula.operands[1::-1]):
            for value in values(other):
                root = read(value)
                if root.operation == "rsqrt":
                    found = _under_root(one, root.first)
                    # x * rsqrt(sum(x * x) + e) is what a fused L2 normalisation computes.
                    if found is not None and found.kind != "norm":
                        return found
    return None


def _divided(above: Expression, below: Formula) -> Normalised | None:
    added = added_epsilon(below)
    if added is not None:
        for value in values(added.value):
            statistic = read(value)
            root = _radicand(statistic)
            kind = _kind(above, statistic if root is None else None, root)
            if kind is not None:
                return Normalised(kind, above, added, _is_smooth(statistic))
        return None
    root = _radicand(below)
    return _under_root(above, root) if root is not None else None


def _under_root(above: Expression, radicand: Expression) -> Normalised | None:
    for value in values(radicand):
        added = added_epsilon(read(value))
        if added is not None:
            kind = _kind(above, None, added.value)
            return Normalised(kind, above, added, True) if kind is not None else None
    return None


def _is_smooth(statistic: Formula) -> bool:
    """Tell whether ``statistic`` has a finite gradient at 0."""
    if statistic.operation == "norm":
        # Measured on 2.10.0, CPU: with an order given, and in LpNorm, the gradient at 0 is finite; else NaN.
        return len(statistic.operands) > 2 or statistic.setting("p", "ord") is not None or bool(statistic.built)
    radicand = _radicand(statistic)
    inner = [part for value in values(radicand) for part in (read(value),)] if radicand is not None else []
    return any(
        added_epsilon(read(value)) is not None
        for part in inner
        for operand in part.operands[:1]
        for value in values(operand)
    )


def _radicand(formula: Formula) -> Expression | None:
    """Return what ``formula`` is the square root of."""
    if formula.operation == "sqrt":
        return formula.first
    if formula.operation == "power" and len(formula.operands) > 1 and numbers(formula.operands[1]) == (0.5,):
        return formula.first
    return None


def _kind(above: Expression, statistic: Formula | None, radicand: Expression | None) -> str | None:
    """Tell which statistic of ``above`` is meant by an operation, or by the root of ``radicand``."""
    if statistic is not None:
        if statistic.operation == "norm" and axis(statistic) is not None and _is_euclidean(statistic):
            return "norm" if same(statistic.first, above) else None
        return _deviation(above, statistic) if statistic.operation == "std" else None
    for value in values(radicand) if radicand is not None else ():
        inner = read(value)
        if inner.operation == "var":
            return _deviation(above, inner)
        if inner.operation not in ("sum", "mean") or axis(inner) is None:
            continue
        if any(same(squared, above) for squared in squares(inner.first)):
            if inner.operation == "sum":
                return "norm"
            if any(_is_less_its_mean(read(item)) for item in values(above)):
                return "deviation" if _is_fused(inner) else None
            is_last = axes(inner) in ((), (-1,))
            return "root mean square" if is_last and not _has_fused_layer(inner, "RmsNorm", "rms_norm") else None
    return None


def _deviation(above: Expression, statistic: Formula) -> str | None:
    """Tell whether ``above`` is centred and ``statistic`` its spread."""
    if not _is_fused(statistic):
        return None
    centred = (read(value) for value in values(above))
    fits = any(_is_less_its_mean(part) and same(part.first, statistic.first) for part in centred)
    return "deviation" if fits else None


def _is_fused(statistic: Formula) -> bool:
    """Tell whether a fused layer may normalise along the axis of ``statistic``.

    One axis (LayerNorm, GroupNorm) or all but the first (GroupNorm of one group). Of the batch, axis 0, BatchNorm keeps
    running statistics as well; of height and width InstanceNorm runs on GPU only; standardised weights have no layer.
    """
    along = axis(statistic)
    if along is None or 0 in axes(statistic) or _is_parameter(statistic.first):
        return False
    if axes(statistic) == (-1,) and _has_fused_layer(statistic, "LayerNorm", "layer_norm"):
        return False
    return len(axes(statistic)) < 2 or axes(statistic) == (1, 2, 3)


def _has_fused_layer(statistic: Formula, *names: str) -> bool:
    """Tell whether the class of ``statistic`` has the fused operator too: then the other way is meant for old devices."""
    module, node = statistic.expression.module, statistic.expression.node
    owner = owner_of(module, node)
    calls = find(owner.node, cst.Call) if owner is not None else ()
    return any((module.resolve(call.func) or "").rpartition(".")[2] in names for call in calls)


def _is_parameter(expression: Expression) -> bool:
    """Tell whether ``expression`` is made of a parameter of the cell alone."""
    for value in all_values(expression, calls=0, through=False):
        formula, node = read(value), value.node
        if isinstance(node, cst.Attribute):
            return True
        if isinstance(node, cst.Call) and value.module.resolve(node.func) == "mindspore.Parameter":
            return True
        if formula.operation in ("same", "subtract", "square", "power") and _is_parameter(formula.first):
            return True
    return False


def _is_less_its_mean(formula: Formula) -> bool:
    if formula.operation != "subtract":
        return False
    return any(read(mean).operation == "mean" for mean in values(formula.operands[1]))


def squares(expression: Expression) -> Iterator[Expression]:
    """Yield the values whose squares ``expression`` is; an epsilon added to the square is looked through."""
    for value in values(expression):
        formula = read(value)
        added = added_epsilon(formula)
        if added is not None:
            yield from squares(added.value)
        elif _is_square(formula):
            yield formula.first


def _is_square(formula: Formula) -> bool:
    if formula.operation == "square":
        return True
    if len(formula.operands) < 2:
        return False
    one, other = formula.operands[:2]
    return (formula.operation == "power" and numbers(other) == (2.0,)) or (
        formula.operation == "multiply" and same(one, other)
    )


def axis(formula: Formula) -> Expression | None:
    """Return the axis that a reduction is along; None if it is over the whole tensor."""
    given = formula.setting("axis", "dim")
    if given is not None:
        return Expression(formula.expression.module, given)
    if len(formula.operands) > 1:
        return formula.operands[-1 if formula.operation == "norm" else 1]
    # Of the operators only LpNorm gets its axis when it is built.
    built = [argument.value for argument in formula.built if argument.keyword is None]
    return Expression(formula.expression.module, built[0]) if formula.operation == "norm" and built else None


def axes(formula: Formula) -> tuple[float, ...]:
    """Return the numbers of the axes that a reduction is along, as far as they are written."""
    along = axis(formula)
    parts = [part for value in values(along) for part in elements(value)] if along is not None else []
    return tuple(number for part in parts for number in numbers(part))


def _is_euclidean(norm: Formula) -> bool:
    order = norm.setting("p", "ord")
    if order is None and len(norm.operands) > 2:
        return numbers(norm.operands[1]) in ((2.0,), ())
    return order is None or numbers(Expression(norm.expression.module, order)) in ((2.0,), ())
