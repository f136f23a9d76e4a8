"""Formulas that an epsilon protects, or seems to, in the form that a rewrite needs: what is added where, and for what."""

from __future__ import annotations

from dataclasses import dataclass

from mslint.semantics.epsilon import Added
from mslint.semantics.formula import Expression, Formula
from mslint.semantics.normalisation import Normalised


@dataclass(frozen=True)
class GuardedLogarithm:
    """The logarithm ``logarithm`` is taken of a value plus an epsilon, or of a quotient or product of such values."""

    added: Added
    logarithm: Expression


@dataclass(frozen=True)
class ShiftedLogits:
    """An epsilon is added to the logits that go into ``consumer``, a softmax or a cross entropy."""

    added: Added
    consumer: Formula


@dataclass(frozen=True)
class LostEpsilon:
    """``place`` is ``constant`` in float32, the epsilon in it notwithstanding."""

    place: Expression
    constant: float


@dataclass(frozen=True)
class SoftmaxByHand:
    """``quotient`` is ``exp(x) / (sum(exp(x)) + epsilon)``."""

    added: Added
    quotient: Formula


@dataclass(frozen=True)
class NormalisedByHand:
    """``quotient`` divides a value by a statistic of itself."""

    found: Normalised
    quotient: Formula


@dataclass(frozen=True)
class ReturnedProbability:
    """A probability plus an epsilon leaves ``construct`` for a logarithm that another file may take."""

    added: Added


@dataclass(frozen=True)
class HalfEpsilon:
    """``epsilon`` is 0 in float16, which the value has that it protects."""

    epsilon: Expression


Unstable = (
    GuardedLogarithm
    | ShiftedLogits
    | LostEpsilon
    | SoftmaxByHand
    | NormalisedByHand
    | ReturnedProbability
    | HalfEpsilon
)
