"""A binary cross entropy written by hand: ``t * log(p) + (1 - t) * log(1 - p)`` with a sigmoid for ``p``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from codemods.base import Manual
from codemods.inlining import Strength, Written, other_reads, put
from codemods.logarithms import StableForm
from mslint.findings import Edit, Position
from mslint.semantics.epsilon import added_epsilon
from mslint.semantics.extents import holds_floats
from mslint.semantics.formula import Expression, Formula, read, same
from mslint.semantics.module import Module
from mslint.semantics.probability import is_one
from mslint.semantics.reaching import reaching

_REDUCTIONS = ("mean", "sum")


@dataclass
class _Term:
    """A product with a sign: one half of the cross entropy, its logarithm apart."""

    negative: bool = False
    factors: list[Expression] = field(default_factory=list)
    logarithm: Formula | None = None


def fused(module: Module, logarithm: Expression) -> list[Edit] | None:
    """Return the edits that make the sum which ``logarithm`` is a half of one BCE with logits; None if there is no such sum.

    Raises Manual where there is one, whose sigmoid is out of reach.
    """
    total = _sum_of(module, logarithm.node)
    if total is None:
        return None
    left, right = _term(Expression(module, total.left)), _term(Expression(module, total.right))
    right.negative ^= isinstance(total.operator, cst.Subtract)
    for seen, unseen in ((left, right), (right, left)):
        parts = _halves(seen, unseen)
        if parts is not None:
            probability, target, weights = parts
            if target.module is module and holds_floats(module, target.node) is False:
                raise Manual(
                    f"the labels `{target.code}` are integers, which BCE with logits does not take; cast them to the type of "
                    "the logits"
                )
            form = StableForm(module, total)
            logits = form.written(form.argument_of("sigmoid", probability))
            labels = form.written(target)
            place, reduction, minus = _surroundings(module, total, bool(weights))
            function = form.function("binary_cross_entropy_with_logits")
            words = [] if reduction == "mean" else [f'reduction="{reduction}"']
            loss = Written(f"{function}(", (logits.code, labels.code, *words), ")")
            for weight in weights:
                factor = form.written(weight).at_least(Strength.PRODUCT)
                loss = Written(f"{factor.code} * {loss.head}", loss.arguments, ")", Strength.PRODUCT)
            return [
                *form.edits,
                *(put(module, place, loss, "bce") if seen.negative else _signed(module, place, loss, minus)),
            ]
    return None


def _sum_of(module: Module, node: cst.CSTNode) -> cst.BinaryOperation | None:
    """Return the addition or subtraction that ``node`` is a factor of a term of, by way of one variable perhaps."""
    parent = module.parents[node]
    while _is_factor(parent, node):
        node, parent = parent, module.parents[parent]
    if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, (cst.Add, cst.Subtract)):
        return parent
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        bound = module.lookup(target.value, target) if isinstance(target, cst.Name) else []
        uses = other_reads(module, bound[0], target) if len(bound) == 1 else []
        if len(uses) == 1:
            return _sum_of(module, uses[0])
    return None


def _is_factor(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    if isinstance(parent, cst.UnaryOperation):
        return isinstance(parent.operator, cst.Minus)
    return isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Multiply)


def _term(expression: Expression) -> _Term:
    term = _Term()
    for factor in _factors(expression, term):
        formula = read(factor)
        if formula.operation == "log" and term.logarithm is None:
            term.logarithm = formula
        else:
            term.factors.append(factor)
    return term


def _factors(expression: Expression, term: _Term) -> Iterator[Expression]:
    node = expression.node
    if isinstance(node, cst.Name):
        bound = reaching(expression.module, node)
        value = bound[0].value if len(bound) == 1 else None
        formula = read(Expression(expression.module, value)) if value is not None else None
        if formula is not None and formula.operation in ("multiply", "negative", "log"):
            if not other_reads(expression.module, bound[0], node):
                yield from _factors(formula.expression, term)
                return
    formula = read(expression)
    if formula.operation == "negative":
        term.negative = not term.negative
        yield from _factors(formula.first, term)
    elif formula.operation == "multiply" and len(formula.operands) == 2:
        for operand in formula.operands:
            yield from _factors(operand, term)
    else:
        yield expression


def _halves(seen: _Term, unseen: _Term) -> tuple[Expression, Expression, list[Expression]] | None:
    """Return p, t and the weights both have, where ``seen`` is t * log(p) and ``unseen`` is (1 - t) * log(1 - p)."""
    if seen.logarithm is None or unseen.logarithm is None or seen.negative != unseen.negative:
        return None
    probability, rest = _bare(seen.logarithm.first), read(_bare(unseen.logarithm.first))
    if rest.operation != "subtract" or not is_one(rest.first) or not same(rest.operands[1], probability):
        return None
    for target in seen.factors:
        for other in unseen.factors:
            part = read(other)
            if part.operation == "subtract" and is_one(part.first) and same(part.operands[1], target):
                weights = [factor for factor in seen.factors if factor is not target]
                others = [factor for factor in unseen.factors if factor is not other]
                if len(weights) == len(others) and all(map(same, weights, others)):
                    return probability, target, weights
    return None


def _bare(expression: Expression) -> Expression:
    added = added_epsilon(read(expression))
    return _bare(added.value) if added is not None else expression


def _surroundings(
    module: Module, total: cst.BinaryOperation, weighted: bool
) -> tuple[cst.BaseExpression, str, cst.UnaryOperation | None]:
    """Return what the loss takes the place of, its reduction, and the minus before it that makes it positive, if any.

    A mean or sum over everything around the sum becomes the reduction of the loss, unless weights stand between.
    """
    place: cst.BaseExpression = total
    outer, reduction = place, "none"
    while True:
        parent = module.parents[outer]
        if isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Minus):
            return place, reduction, parent
        if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Multiply):
            outer, weighted = parent, True
            continue
        call = parent if isinstance(parent, cst.Call) else module.parents[parent]
        formula = read(Expression(module, call)) if isinstance(call, cst.Call) else None
        if formula is None or formula.operation not in _REDUCTIONS or formula.first.node is not outer:
            return place, reduction, None
        assert isinstance(call, cst.Call)
        arguments = [argument for argument in formula.called if argument.value is not outer]
        outer = call
        if reduction == "none" and not weighted and not arguments and not formula.built:
            place, reduction = call, formula.operation
        else:
            weighted = True


def _signed(module: Module, place: cst.BaseExpression, loss: Written, minus: cst.UnaryOperation | None) -> list[Edit]:
    """Return the edits that put minus ``loss`` at ``place``, or ``loss`` if the minus before it can go instead."""
    if minus is None:
        return put(module, place, loss.negated(), "bce")
    if minus.expression is place:
        return put(module, minus, loss, "bce")
    start = module.start(minus)
    return [Edit(start, Position(start.row, start.column + 1), ""), *put(module, place, loss, "bce")]
