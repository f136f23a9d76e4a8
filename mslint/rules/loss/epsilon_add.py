"""MS201."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics.cells import method_of
from mslint.semantics.epsilon import Added, added_epsilon, lost_in_float32
from mslint.semantics.flow import owner_of, returned
from mslint.semantics.formula import Expression, Formula, numbers, operator_of, read, same, values
from mslint.semantics.module import Module, find, walk
from mslint.semantics.normalisation import Normalised, normalised
from mslint.semantics.probability import (
    Produced,
    exponential,
    is_one,
    is_positive,
    is_shifted,
    odds,
    probability,
    summed_exponentials,
)
from mslint.semantics.unstable import (
    GuardedLogarithm,
    LostEpsilon,
    NormalisedByHand,
    ReturnedProbability,
    ShiftedLogits,
    SoftmaxByHand,
    Unstable,
)

_NUMBERS = "the point is numbers, not speed"
_STABLE = {
    "softmax": "ops.log_softmax of the logits (cross entropy from logits, where the loss has that form)",
    "sigmoid": "ops.binary_cross_entropy_with_logits on the logits (ops.logsigmoid is no cure: it overflows itself)",
    "exp / sum(exp)": "the logit less ops.logsumexp of the logits",
    "x / sum(x)": "the difference of two logarithms",
}
_FUSED = {
    "norm": "a fused L2 normalisation (ops.L2Normalize, or x * rsqrt(sum(x * x) + e))",
    "root mean square": "ops.rms_norm (not on CPU)",
    "deviation": "a fused normalisation layer (nn.LayerNorm, nn.GroupNorm, ops.layer_norm)",
}


@dataclass(frozen=True)
class _Conclusion:
    """What is wrong with the addition, or the constant, at ``place``, and the places that this rests on."""

    place: Expression
    message: str
    subject: Unstable
    severity: Severity = Severity.WARNING
    rests_on: tuple[tuple[Expression, str], ...] = ()


class EpsilonAdd(Rule):
    """An epsilon is added where a stable form of the same formula exists, or where it has no effect.

    What it does
        Follows values through variables, attributes, helper methods, cells and files of the project and reports

        - ``log(p + e)`` where ``p`` is the output of a softmax or a sigmoid, one minus it, or a quotient of exponentials, and
          the like of it returned from ``construct`` for another file to take the logarithm of;
        - ``log(sum(exp(x)) + e)`` and ``exp(x) / (sum(exp(x)) + e)`` where no mask can make the sum zero;
        - ``log(p + e)`` beside ``log(1 - p + e)``, and ``p * log(p + e)``, wherever ``p`` comes from (info);
        - ``log(p / (1 - p) + e)``, the logit by hand, which the epsilon does not protect at ``p = 1``;
        - logits shifted by an epsilon before a softmax or a cross entropy, which a shift does not move;
        - an epsilon that float32 does not see: ``1 - 1e-15`` is 1;
        - ``x / (norm(x) + e)``, ``(x - mean) / (std + e)`` and root mean squares along an axis, which fused operators
          compute.

        Counts, masks, areas, unions, Dice and IoU ratios, distances, Charbonnier and Gumbel formulas, optimizers and the
        statistics of normalisation layers need their epsilon: they are left alone, and so are NumPy code and Cells with a
        ``bprop`` of their own.

    Why it matters
        The point is numbers, not speed. An epsilon in a logarithm caps the loss at ``-log(e)`` and takes the gradient of
        exactly those samples away that are most wrong; one beside a square root leaves the gradient of a zero row NaN; one
        that the type cannot represent protects nothing.

    Evidence
        Measured on MindSpore 2.10.0, CPU, float32, graph and PyNative mode alike. ``fixtures/epsilon-add/edges.py``: for
        logits (0, 20) and label 0 the derivative of ``-log(softmax + 1e-8)`` by its logit is -0.17, for (0, 40) it is 4e-10,
        of log_softmax -1 in both. ``log(1 - sigmoid(20) + 1e-8)`` has derivative 0, BCE with logits 1. ``log(sum(exp) +
        1e-8)`` of a logit 90 is inf with a NaN gradient, logsumexp 90. ``x / (sqrt(sum(x * x)) + 1e-8)`` and ``(x - mean) /
        (std + 1e-8)`` have NaN gradients for a row of zeros and of equal numbers, ``x / sqrt(sum(x * x) + 1e-8)`` has not.
        ``log(p / (1 - p) + 1e-7)`` is inf at p = 1. ``mslint verify fixtures/epsilon-add/bad.py --against
        fixtures/epsilon-add/fixed.py --mode both``: loss 11.5 against 21.4 and gradients up to 2.74 apart on samples that
        are far off; the nodes hardly count (graph 9 forward and 8 backward nodes against 7 and 7).

    Example
        .. code-block:: python

            loss = -(ops.log(self.softmax(logits) + 1e-8) * labels).sum(-1).mean()

    Use instead
        .. code-block:: python

            loss = -(ops.log_softmax(logits, -1) * labels).sum(-1).mean()

    Fix safety
        Codemod ``stable-loss``. Safe: an epsilon before a softmax or cross entropy, or one that float32 cannot see beside a
        constant, is dropped. Unsafe: the stable forms change the loss and gradient of samples that the epsilon capped, which
        is the point. Display only: an L2 normalisation by ``sqrt(max(sum, e))`` is not the same number as one by
        ``sqrt(sum) + e`` for tiny norms. Left to a person where the logits are out of reach.

    References
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.log_softmax.html,
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.binary_cross_entropy_with_logits.html,
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.logsumexp.html
    """

    code = "MS201"
    name = "epsilon-add"
    severity = Severity.WARNING
    summary = "an epsilon is added where a stable form exists, or where it has no effect"
    codemod = "stable-loss"
    # A small number is written in the file, or named there.
    triggers = (b"eps", b"EPS", b"Eps", b"0.00", b"** -", b"**-", *(b"e-%d" % digit for digit in range(10)))
    context = (b"mindspore", b"construct")
    screen = "mslint.rules.loss.epsilon_screen:adds_epsilon"
    INVALID = (
        # Softmax and sigmoid in attributes, the epsilon in another, a variable in between.
        """
        from mindspore import nn, ops

        class SoftLoss(nn.Cell):
            def __init__(self, smooth=1e-8):
                super().__init__()
                self.smooth = smooth
                self.softmax = nn.Softmax()
                self.sigmoid = ops.Sigmoid()
                self.log = ops.Log()

            def construct(self, logits, labels, gate, open_gate):
                chances = self.softmax(logits).astype("float32")
                chances = chances.reshape(labels.shape)
                loss = -(self.log(chances + self.smooth) * labels).sum(-1)  # <- MS201
                opened = self.sigmoid(gate)
                loss += open_gate * ops.log(opened + 1e-6)  # <- MS201
                return loss + (1 - open_gate) * ops.log(1 - opened + 1e-6)  # <- MS201
        """,
        # A helper method, a picked probability, a quotient of two guarded probabilities.
        """
        import mindspore.nn as nn
        import mindspore.ops as F

        TINY = 1e-12

        class Distillation(nn.Cell):
            def likelihood(self, logits, labels):
                picked = (F.softmax(logits, axis=-1) * labels).sum(axis=-1)
                return picked

            def construct(self, student, teacher, labels):
                hard = -F.log(TINY + self.likelihood(student, labels))  # <- MS201
                p, q = F.softmax(teacher, axis=-1), F.softmax(student, axis=-1)
                soft = (p * F.log(
                    (p + TINY)  # <- MS201
                    / (q + TINY)  # <- MS201
                )).sum()
                return hard + soft
        """,
        # The probability comes from another cell of the program, and goes in as an argument.
        """
        from mindspore import nn, ops

        class Head(nn.Cell):
            def __init__(self):
                super().__init__()
                self.layers = nn.SequentialCell([nn.Dense(8, 4), nn.ReLU(), nn.Dense(4, 1), nn.Sigmoid()])

            def construct(self, x):
                return self.layers(x)

        class Balanced(nn.Cell):
            def construct(self, score, target):
                positive = target * ops.log(score + 1e-7)  # <- MS201
                return -positive.mean()

        class WithLoss(nn.Cell):
            def __init__(self, network, criterion):
                super().__init__()
                self.network = network
                self.criterion = criterion

            def construct(self, x, target):
                return self.criterion(self.network(x), target)

        def build():
            balanced = Balanced()
            return WithLoss(Head(), balanced)
        """,
        # Exponentials: a logarithm of their sum, a softmax by hand.
        """
        from mindspore import nn, ops

        class Contrastive(nn.Cell):
            def construct(self, similarity, others):
                scaled = ops.exp(similarity / 0.07)
                share = scaled / (scaled.sum(-1, keepdims=True) + 1e-10)  # <- MS201
                total = (scaled * others).sum(-1)
                return ops.log(total + 1e-10) - share.mean()  # <- MS201
        """,
        # A cross entropy and an entropy by hand of what came from out of sight; the logarithm of an exponential.
        """
        from mindspore import nn, ops

        class Reconstruction(nn.Cell):
            def construct(self, rebuilt, image, distance):
                seen = image * ops.log(rebuilt + 1e-8)  # <- MS201
                unseen = (1 - image) * ops.log(1 - rebuilt + 1e-8)  # <- MS201
                return -(seen + unseen).sum() - ops.log(ops.exp(-distance) + 1e-12).sum()  # <- MS201

            def entropy(self, share):
                return -(share * ops.log(share + 1e-5)).sum(-1)  # <- MS201
        """,
        # The logit by hand.
        """
        from mindspore import ops

        def matching_cost(score, label):
            chance = ops.sqrt(ops.sigmoid(score))
            return ops.binary_cross_entropy_with_logits(ops.log(chance / (1 - chance) + 1e-7), label)  # <- MS201
        """,
        # Logits moved before a softmax and a cross entropy.
        """
        from mindspore import nn, ops

        def step(logits, labels, weight):
            criterion = nn.CrossEntropyLoss(weight=weight)
            attention = ops.softmax(logits + 1e-6, axis=-1)  # <- MS201
            moved = logits.view(-1, 7) + 1e-10  # <- MS201
            return criterion(moved, labels) + attention.sum()
        """,
        # Constants that float32 does not tell from 1.
        """
        from mindspore import nn, ops

        margin = 1e-12

        class Artanh(nn.Cell):
            def construct(self, x):
                x = ops.clip_by_value(x, -0.5, 1 - margin)  # <- MS201
                return ops.log(1 + x) - ops.log((1 + 1e-10) - x)  # <- MS201
        """,
        # Normalised by hand: beside the root, under it, a method of a tensor, a root mean square, in place.
        """
        from mindspore import nn, ops

        class Norms(nn.Cell):
            def __init__(self, width, epsilon=1e-6):
                super().__init__()
                self.epsilon = epsilon
                self.power = ops.Pow()
                self.total = ops.ReduceSum(keep_dims=True)
                self.mean = ops.ReduceMean(keep_dims=True)

            def unit(self, x):
                length = ops.sqrt(self.total(self.power(x, 2), 1))
                length = length + self.epsilon  # <- MS201
                return ops.div(x, length)

            def row(self, x):
                x /= ops.norm(x, dim=-1, keepdim=True) + 1e-12  # <- MS201
                return x

            def layer(self, x):
                middle = self.mean(x, -1)
                spread = self.mean(ops.square(x - middle), -1)
                return (x - middle) / ops.sqrt(spread + self.epsilon)  # <- MS201

            def group(self, x):
                middle = self.mean(x, (1, 2, 3))
                return (x - middle) / (ops.std(x, axis=(1, 2, 3), keepdims=True) + self.epsilon)  # <- MS201

            def root(self, x):
                return x * ops.rsqrt(self.mean(x * x, -1) + self.epsilon)  # <- MS201

            def construct(self, x):
                return self.unit(x) + self.row(x) + self.layer(x) + self.group(x) + self.root(x)
        """,
        # Returned for a logarithm that is taken by someone else.
        """
        from mindspore import nn, ops

        class Scores(nn.Cell):
            def __init__(self):
                super().__init__()
                self.softmax = nn.Softmax()

            def construct(self, x):
                y = self.softmax(x) + 1e-8  # <- MS201
                return y

        def likelihood(y, labels):
            return (ops.Log()(y) * labels).mean()
        """,
    )
    VALID = (
        # A Cell that writes its gradient itself: the logarithm is only shown.
        """
        from mindspore import nn, ops

        class NegativeLogarithm(nn.Cell):
            def construct(self, logits, one_hot):
                scores = ops.exp(logits - logits.max(-1, keepdims=True))
                probability = scores / scores.sum(-1, keepdims=True)
                return -(ops.log(probability + 1e-24) * one_hot).sum(-1)

            def bprop(self, logits, one_hot, out, dout):
                return (ops.softmax(logits) - one_hot) * dout.expand_dims(-1), ops.zeros_like(one_hot)
        """,
        # Stable already.
        """
        from mindspore import nn, ops

        class Stable(nn.Cell):
            def construct(self, logits, labels):
                loss = -(ops.log_softmax(logits, -1) * labels).sum()
                return loss + ops.logsumexp(logits, -1).mean() + ops.cross_entropy(logits, labels)
        """,
        # Counts, masks, areas, unions, Dice, IoU: the denominator can be zero.
        """
        from mindspore import nn, ops

        class Overlap(nn.Cell):
            def __init__(self):
                super().__init__()
                self.sigmoid = nn.Sigmoid()
                self.eps = 1e-7

            def construct(self, logits, target, mask, left, right):
                p = self.sigmoid(logits)
                shared = (p * target).sum()
                dice = (2 * shared + self.eps) / (p.sum() + target.sum() + self.eps)
                iou = shared / (p.sum() + target.sum() - shared + 1e-16)
                area = (right - left).prod(-1)
                mean = (p * mask).sum() / (mask.sum() + 1e-8)
                cost = -ops.log(iou + 1e-8)
                size = ops.log(target + 1e-8)
                return dice + mean + cost + 1 / (area + 1e-6) + size
        """,
        # An attention that a mask may empty.
        """
        from mindspore import nn, ops

        class MaskedAttention(nn.Cell):
            def construct(self, scores, mask):
                weights = ops.exp(scores) * mask
                return weights / (weights.sum(-1, keepdims=True) + 1e-12)
        """,
        # Charbonnier, GeM, Gumbel, inverse distances, a distance ratio, a logarithm of any number.
        """
        from mindspore import nn, ops

        class Various(nn.Cell):
            def construct(self, x, y, uniform, distance):
                charbonnier = ops.sqrt((x - y) ** 2 + 1e-6).mean()
                pooled = ops.maximum(x, 1e-6).pow(3).mean((2, 3)).pow(1 / 3)
                gumbel = -ops.log(-ops.log(uniform + 1e-20) + 1e-20)
                weight = 1.0 / (distance + 1e-8)
                weight = weight / weight.sum(-1, keepdims=True)
                ratio = ops.abs(x - y).mean() / (ops.abs(x + y).mean() + 1e-7)
                magnitude = ops.log(ops.abs(x) + 1e-7)
                return charbonnier, pooled, gumbel, weight, ratio, magnitude
        """,
        # Optimizers, and statistics that belong to a layer or to another tensor.
        """
        from mindspore import nn, ops

        class Lamb(nn.Optimizer):
            def construct(self, gradients):
                moment, second = self.moments
                unit = gradients / (ops.norm(gradients, dim=0) + 1e-12)
                return moment / (ops.sqrt(second) + self.eps) + unit

        class Statistics(nn.Cell):
            def __init__(self, eps=1e-5):
                super().__init__()
                self.eps = eps

            def construct(self, content, style):
                spread = ops.sqrt(style.var((2, 3), keepdims=True) + self.eps)
                moved = (content - self.moving_mean) / ops.sqrt(self.moving_variance + self.eps)
                response = ops.norm(content, dim=(1, 2), keepdim=True)
                response = response / (response.mean(-1, keep_dims=True) + 1e-6)
                batch = (style - style.mean(axis=0)) / ops.sqrt(style.var(axis=0) + self.eps)
                space = (style - style.mean((2, 3), True)) / ops.sqrt(style.var((2, 3), keepdims=True) + self.eps)
                kernel = self.weight - self.weight.mean((1, 2, 3), True)
                kernel = kernel / ops.sqrt(ops.square(kernel).mean((1, 2, 3), True) + self.eps)
                return moved * spread * response * batch * space * kernel
        """,
        # The way round a fused operator that the device may lack.
        """
        from mindspore import nn, ops

        class RootMeanSquare(nn.Cell):
            def __init__(self, fused, eps=1e-6):
                super().__init__()
                self.eps = eps
                self.fused = ops.RmsNorm(eps) if fused else None

            def construct(self, x):
                if self.fused is not None:
                    return self.fused(x, self.weight)[0]
                return x * ops.rsqrt(ops.square(x).mean(-1, True) + self.eps) * self.weight
        """,
        # NumPy: metrics, the data pipeline.
        """
        import numpy as np
        from scipy.special import softmax
        import mindspore.dataset as ds

        def entropy(logits):
            p = softmax(logits, -1)
            return -(p * np.log(p + 1e-12)).sum()

        def scale(x):
            features = np.log(x + 1e-20)
            features = features / (np.sqrt((features ** 2).sum(-1, keepdims=True)) + 1e-12)
            return (features - features.mean(0)) / (features.std(0) + 1e-5)
        """,
        # A network that ends in a softmax gets its input moved.
        """
        from mindspore import nn

        class Moved(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net = nn.SequentialCell([nn.Dense(4, 4), nn.Softmax()])

            def construct(self, x):
                return self.net(x + 1e-6)
        """,
        # Physics constants, label smoothing, a decay, a transmittance, a floor for sampling.
        """
        from mindspore import nn, ops

        class Physics(nn.Cell):
            def __init__(self):
                super().__init__()
                self.viscosity = 1e-3
                self.rate = 0.5

            def construct(self, u, labels, alpha, logits):
                self.rate = self.rate - 0.00002
                smooth = labels * (1 - 1e-3) + 1e-3 / 10
                heat = u + 1e-5 * self.viscosity
                passed = ops.cumprod(1.0 - alpha + 1e-10, -1)
                drawn = ops.multinomial(ops.softmax(logits, -1) + 1e-5, 1)
                return smooth, heat, passed, drawn
        """,
        # Under the root of the sum with a reciprocal root: what the fused operator computes; a mean over space.
        """
        from mindspore import ops

        def unit(x):
            return x * ops.rsqrt(ops.square(x).sum(-1, keepdims=True) + 1e-12)

        def spatial(x):
            return x * ops.rsqrt(ops.square(x).mean((2, 3), True) + 1e-8)
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        reported: set[cst.CSTNode] = set()
        for conclusion in _conclusions(module):
            place = conclusion.place
            if place.module is not module or place.node in reported or not _runs_operators(module, place.node):
                continue
            if _has_own_gradient(module, place.node):
                continue
            reported.add(place.node)
            yield self.finding(
                module,
                module.start(place.node),
                module.end(place.node),
                conclusion.message,
                severity=conclusion.severity,
                related=tuple(_related(conclusion)),
                subject=conclusion.subject,
            )


def _has_own_gradient(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` stands in a Cell with a ``bprop``: no gradient goes through what its ``construct`` computes."""
    owner = next((item for item in module.ancestors(node) if isinstance(item, cst.ClassDef)), None)
    return owner is not None and any(
        isinstance(item, cst.FunctionDef) and item.name.value == "bprop" for item in owner.body.body
    )


def _conclusions(module: Module) -> Iterator[_Conclusion]:
    for node in walk(module.tree):
        if isinstance(node, (cst.Call, cst.BinaryOperation, cst.AugAssign)):
            formula = read(Expression(module, node))
            if formula.operation in _CRITERIA:
                yield from _CRITERIA[formula.operation](formula)
        elif isinstance(node, cst.FunctionDef) and node.name.value == "construct":
            yield from _returned(module, node)


def _in_logarithm(formula: Formula) -> Iterator[_Conclusion]:
    for added in _additions(formula.first, 4):
        yield from _guarded(added, formula.expression)


def _additions(expression: Expression, depth: int) -> Iterator[Added]:
    """Yield the epsilon additions that are factors of ``expression``."""
    if depth == 0:
        return
    for value in values(expression):
        formula = read(value)
        added = added_epsilon(formula)
        if added is not None:
            yield added
        elif formula.operation in ("multiply", "divide"):
            for operand in formula.operands[:2]:
                yield from _additions(operand, depth - 1)
        elif formula.operation in ("clip", "power", "sqrt", "negative"):
            yield from _additions(formula.first, depth - 1)


def _guarded(added: Added, logarithm: Expression) -> Iterator[_Conclusion]:
    """Judge an epsilon that guards a logarithm."""
    subject = GuardedLogarithm(added, logarithm)
    severity = Severity.WARNING if added.amount is not None else Severity.INFO
    where = (
        f"row {logarithm.row}" if logarithm.module is added.expression.module else f"{logarithm.file}:{logarithm.row}"
    )
    ratio = odds(added.value)
    if ratio is not None:
        message = (
            f"`{added.value.code}` is a logit made by hand, and {added.written} does not protect its logarithm in {where}: "
            f"at a probability of 1 it is infinite and its gradient NaN; use the logit that the probability `{ratio.code}` "
            f"came from, or a cross entropy of the probability; {_NUMBERS}"
        )
        yield _Conclusion(added.expression, message, subject, severity)
        return
    produced = probability(added.value)
    if produced is not None:
        yield _of_probability(subject, produced, where, severity)
        return
    summed = summed_exponentials(added.value)
    if summed is not None:
        power = exponential(read(summed).first)
        shifted = power is not None and is_shifted(power)
        overflow = "" if shifted else "it overflows to inf with a NaN gradient from logits of 89 on, and "
        message = (
            f"the logarithm in {where} is taken of a sum of exponentials plus {added.written}: {overflow}the epsilon hides "
            f"sums smaller than itself; ops.logsumexp of the logits needs none (-1e9 in the place of a masked logit); "
            f"{_NUMBERS}"
        )
        yield _Conclusion(added.expression, message, subject, severity, ((summed, "the exponentials are summed here"),))
        return
    power = next((value for value in values(added.value) if read(value).operation == "exp"), None)
    if power is not None:
        message = (
            f"the logarithm in {where} is taken of the exponential `{power.code}` plus {added.written}: that is its argument "
            f"`{read(power).first.code}` itself, without the epsilon and without an overflow from 89 on; {_NUMBERS}"
        )
        yield _Conclusion(added.expression, message, subject, severity, ((power, "the exponential is taken here"),))
        return
    if _is_entropy(added, logarithm):
        message = (
            f"`{added.value.code}` times the logarithm of itself plus {added.written} is an entropy by hand: if its values "
            f"come from a softmax, softmax times ops.log_softmax of the logits needs no epsilon and loses no gradient; "
            f"{_NUMBERS}"
        )
        rests_on = ((logarithm, "the logarithm is taken here"),)
        yield _Conclusion(added.expression, message, subject, Severity.INFO, rests_on)
        return
    partner = _complement(added, logarithm)
    if partner is not None:
        message = (
            f"the logarithms of `{added.value.code}` here and of `{partner.value.code}` in row {partner.expression.row}, "
            f"each with an epsilon, are a binary cross entropy by hand: {added.written} stops the loss{_cap(added)} and "
            f"takes the gradient of the worst samples away; use {_STABLE['sigmoid']}, or ops.binary_cross_entropy if there "
            f"are none; {_NUMBERS}"
        )
        rests_on = ((partner.expression, "the other half is here"),)
        yield _Conclusion(added.expression, message, subject, Severity.INFO, rests_on)


def _is_entropy(added: Added, logarithm: Expression) -> bool:
    """Tell whether the logarithm of a value is multiplied by the value itself."""
    module = logarithm.module
    for parent in module.ancestors(logarithm.node):
        if not isinstance(parent, (cst.BinaryOperation, cst.Call, cst.Arg)):
            return False
        formula = read(Expression(module, parent))
        if formula.operation == "multiply":
            return any(same(_unsigned(operand), added.value) for operand in formula.operands)
    return False


def _unsigned(expression: Expression) -> Expression:
    formula = read(expression)
    return formula.first if formula.operation == "negative" else expression


def _complement(added: Added, logarithm: Expression) -> Added | None:
    """Return the guarded ``1 - p`` beside a guarded ``p``, or the other way round, in the logarithms of one function."""
    module = logarithm.module
    function = module.enclosing(logarithm.node, cst.FunctionDef)
    if function is None or added.expression.module is not module:
        return None
    for call in find(function, cst.Call):
        formula = read(Expression(module, call))
        if formula.operation != "log" or call is logarithm.node:
            continue
        for other in _additions(formula.first, 2):
            if _is_complement(added.value, other.value) or _is_complement(other.value, added.value):
                return other
    return None


def _is_complement(one: Expression, other: Expression) -> bool:
    return any(
        part.operation == "subtract" and is_one(part.first) and same(part.operands[1], other)
        for part in (read(value) for value in values(one, calls=0))
    )


def _of_probability(subject: GuardedLogarithm, produced: Produced, where: str, severity: Severity) -> _Conclusion:
    added = subject.added
    kind = produced.kind.removeprefix("1 - ")
    message = (
        f"the logarithm in {where} is taken of `{added.value.code}`, {_article(produced.kind)}{_seen(added, produced)}, plus "
        f"{added.written}: the epsilon stops the loss{_cap(added)} and takes the gradient of the worst samples away; use "
        f"{_STABLE[kind]}; {_NUMBERS}"
    )
    if kind == "x / sum(x)":
        severity = Severity.INFO
    return _Conclusion(added.expression, message, subject, severity, ((produced.by, f"{_article(kind)} is made here"),))


def _article(kind: str) -> str:
    names = {
        "softmax": "a softmax output",
        "sigmoid": "a sigmoid output",
        "1 - softmax": "one minus a softmax output",
        "1 - sigmoid": "one minus a sigmoid output",
        "exp / sum(exp)": "a softmax made by hand",
        "x / sum(x)": "a value divided by its own sum",
    }
    return names.get(kind, "a probability")


def _seen(added: Added, produced: Produced) -> str:
    by = produced.by
    if by.module is not added.expression.module:
        return f" ({by.file}:{by.row})"
    return f" (row {by.row})" if by.row != added.expression.row else ""


def _cap(added: Added) -> str:
    return f" at {-log(added.amount):.3g}" if added.amount is not None else ""


def _shift(formula: Formula) -> Iterator[_Conclusion]:
    node = formula.expression.node
    if isinstance(node, cst.Call) and operator_of(formula.expression.module, node)[0] == "softmax":
        # The end of a network: what goes in is no logits.
        return
    for value in values(formula.first, calls=1):
        added = added_epsilon(read(value))
        if added is not None and added.amount is not None:
            named = {"cross_entropy": "cross entropy", "log_softmax": "log_softmax"}.get(formula.operation, "softmax")
            message = (
                f"{added.written} is added to `{added.value.code}` before the {named} in row {formula.expression.row}, which "
                f"does not change when all logits move by the same amount: it protects nothing; drop it; {_NUMBERS}"
            )
            rests_on = ((formula.expression, "the logits go in here"),)
            yield _Conclusion(added.expression, message, ShiftedLogits(added, formula), rests_on=rests_on)


def _lost_bound(formula: Formula) -> Iterator[_Conclusion]:
    for operand in formula.operands[1:]:
        for value in values(operand, calls=0):
            lost = lost_in_float32(value)
            if lost is not None:
                message = _lost(value, *lost) + ", and the bound lets the edge through that it is to keep out"
                yield _Conclusion(value, message, LostEpsilon(value, lost[0]))
                return


def _lost_term(formula: Formula) -> Iterator[_Conclusion]:
    for operand in formula.operands:
        lost = lost_in_float32(operand) if not numbers(formula.expression) else None
        if lost is not None:
            yield _Conclusion(operand, _lost(operand, *lost), LostEpsilon(operand, lost[0]))


def _lost(expression: Expression, constant: float, epsilon: float) -> str:
    return (
        f"`{expression.code}` is {constant:g} in float32, which cannot tell {epsilon:g} beside it (the least step below 1 is "
        f"6e-8): this epsilon protects nothing; {_NUMBERS}"
    )


def _quotient(formula: Formula) -> Iterator[_Conclusion]:
    found = normalised(formula)
    if found is not None:
        yield _of_normalisation(formula, found)
    if formula.operation != "divide" or len(formula.operands) < 2:
        return
    for below in values(formula.operands[1], calls=0):
        added = added_epsilon(read(below))
        if added is None or exponential(formula.first) is None:
            continue
        summed = summed_exponentials(added.value)
        if summed is not None and is_positive(added.value):
            overflow = "" if is_shifted(formula.first) else " that overflows from logits of 89 on"
            message = (
                f"{added.written} is added to a sum of exponentials that no mask makes 0: the quotient in row "
                f"{formula.expression.row} is a softmax made by hand{overflow}; use ops.softmax, or subtract ops.logsumexp "
                f"from the logits; {_NUMBERS}"
            )
            rests_on = ((summed, "the exponentials are summed here"),)
            yield _Conclusion(added.expression, message, SoftmaxByHand(added, formula), rests_on=rests_on)


def _of_normalisation(formula: Formula, found: Normalised) -> _Conclusion:
    value, added, subject = found.value, found.added, NormalisedByHand(found, formula)
    what = f"`{value.code}` is divided by its own {found.kind} in row {formula.expression.row}"
    if found.protected:
        message = f"{what} by hand, guarded by {added.written}: {_FUSED[found.kind]} says the same in one operator"
        return _Conclusion(added.expression, f"{message}; {_NUMBERS}", subject, Severity.INFO)
    message = (
        f"{what} with {added.written} beside the root instead of under it: the value is protected, but the gradient of "
        f"the root at 0 is infinite, so a row whose {found.kind} is 0 can turn the gradients of what it was computed from "
        f"into NaN; use {_FUSED[found.kind]}; {_NUMBERS}"
    )
    return _Conclusion(added.expression, message, subject)


def _returned(module: Module, construct: cst.FunctionDef) -> Iterator[_Conclusion]:
    for result in returned(module, construct):
        for value in values(Expression(module, result), calls=0):
            added = added_epsilon(read(value))
            produced = probability(added.value) if added is not None else None
            if added is None or produced is None or produced.kind == "x / sum(x)":
                continue
            logarithm = _logarithm_elsewhere(module)
            if logarithm is not None:
                message = (
                    f"construct returns `{added.value.code}`, {_article(produced.kind)}{_seen(added, produced)}, plus "
                    f"{added.written}; if that is for the logarithm in {logarithm}, return the logits and use "
                    f"{_STABLE[produced.kind.removeprefix('1 - ')]} there; {_NUMBERS}"
                )
                rests_on = ((produced.by, f"{_article(produced.kind)} is made here"),)
                yield _Conclusion(added.expression, message, ReturnedProbability(added), Severity.INFO, rests_on)


_LOGARITHM = re.compile(r"[lL][oO][gG]$")


def _logarithm_elsewhere(module: Module) -> str | None:
    """Return the name of a file that runs together with ``module`` and takes logarithms of tensors."""
    program, here = module.program, module.source.path.absolute()
    for path in sorted(program.neighbourhood(here)):
        for use in program.uses(path, _LOGARITHM):
            if (program.dotted_in(path, use) or "").startswith("mindspore."):
                return path.name
    return None


_CRITERIA = {
    "log": _in_logarithm,
    "softmax": _shift,
    "log_softmax": _shift,
    "cross_entropy": _shift,
    "clip": _lost_bound,
    "divide": _quotient,
    "multiply": _quotient,
    "add": _lost_term,
    "subtract": _lost_term,
}


def _runs_operators(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` stands where tensors are computed: not in NumPy code, and not in an optimizer."""
    owner = owner_of(module, node)
    if owner is not None and "mindspore.nn.Optimizer" in owner.lineage:
        return False
    function = method_of(module, node) or module.enclosing(node, cst.FunctionDef)
    if function is not None and owner is not None and function.name.value == "construct":
        return True
    return any(operator_of(module, call)[0] is not None for call in find(function or module.tree, cst.Call))


def _related(conclusion: _Conclusion) -> Iterator[Related]:
    for place, text in conclusion.rests_on:
        module = place.module
        yield Related(module.source.filename, module.start(place.node), module.end(place.node), text)
