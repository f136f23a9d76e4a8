"""MS202."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics import unstable
from mslint.semantics.epsilon import added_epsilon, vanishes_in_half
from mslint.semantics.flow import owner_of
from mslint.semantics.formula import Expression, Formula, numbers, read, values
from mslint.semantics.half import HalfBy, half
from mslint.semantics.module import Module, walk


class HalfEpsilon(Rule):
    """An epsilon that is 0 in float16 guards a float16 value.

    What it does
        Reports epsilons of less than 3e-8, added to a value or used as its lower bound, where the value is float16: by a
        cast, by ``to_float(float16)`` on the cell or on a network that it is part of, or because the program runs that
        network under amp O2 or O3. Values that are cast to float32 first, and epsilons held in a float32 tensor (which makes
        the sum float32), are left alone.

    Why it matters
        The smallest positive number of float16 is 6e-8. A smaller epsilon is 0 there: the division, logarithm or root that
        it is to guard gets its zero after all, and the step ends in inf or NaN. The same code is right in float32, so the
        fault comes with the day that mixed precision is turned on. Of 392 epsilons written in the corpus 204 would vanish.

    Evidence
        Measured on MindSpore 2.10.0, CPU. ``fixtures/half-epsilon/edges.py``: a float16 tensor 0 plus 1e-8 is 0 and its
        logarithm -inf; ``x / (sqrt(sum(x * x)) + 1e-8)`` of a float16 row of zeros is NaN, in float32 0; ``ops.maximum(x,
        1e-8)`` is 0 as well. From 3e-8 on an epsilon is rounded to 6e-8. ``mslint verify fixtures/half-epsilon/bad.py
        --against fixtures/half-epsilon/fixed.py --mode both``: one zero row in the batch makes the loss NaN in the first
        step, in graph and in PyNative mode; in float32 it is 0.57.

    Example
        .. code-block:: python

            weights = weights.astype(ms.float16)
            return weights / (weights.sum(-1, keepdims=True) + 1e-8)

    Use instead
        .. code-block:: python

            weights = weights.astype(ms.float32)
            return weights / (weights.sum(-1, keepdims=True) + 1e-8)

    Fix safety
        Unsafe (codemod ``stable-loss``): an epsilon written at its place becomes 1e-7, which float16 has; one that is set
        elsewhere may serve float32 values too and is left alone. Computing in float32 is better and changes numbers as well.

    References
        https://www.mindspore.cn/tutorials/en/master/beginner/mixed_precision.html
    """

    code = "MS202"
    name = "half-epsilon"
    severity = Severity.WARNING
    summary = "an epsilon too small for float16 guards a float16 value: it is 0 there"
    codemod = "stable-loss"
    triggers = (b"e-0", b"e-1", b"e-8", b"e-9", b"eps", b"EPS", b"Eps", b"0.0000000", b"** -", b"**-")
    context = (b"mindspore", b"construct")
    screen = "mslint.rules.loss.epsilon_screen:guards_half"
    INVALID = (
        # A cast, a lower bound, a type in an attribute.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Pool(nn.Cell):
            def __init__(self, eps=1e-8):
                super().__init__()
                self.eps = eps
                self.kind = ms.float16
                self.cast = ops.Cast()

            def construct(self, scores, mask):
                weights = scores.astype(ms.float16) * 2
                total = weights.sum(-1, keepdims=True)
                mean = weights / (total + self.eps)  # <- MS202
                length = ops.maximum(ops.sqrt(self.cast(mask, self.kind)), 1e-12)  # <- MS202
                return mean / length
        """,
        # The whole cell in float16, by itself and as a part of a network.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Gate(nn.Cell):
            def __init__(self):
                super().__init__()
                self.dense = nn.Dense(4, 4)
                self.to_float(ms.float16)

            def construct(self, x):
                y = self.dense(x)
                return y / (ops.abs(y).sum() + 1e-10)  # <- MS202

        class Scale(nn.Cell):
            def construct(self, x):
                return ops.log(x + 1e-9)  # <- MS202

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.scale = Scale()

            def construct(self, x):
                return self.scale(x)

        def build():
            return Net().to_float(ms.float16)
        """,
        # Under amp.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Net(nn.Cell):
            def construct(self, x):
                return x / (ops.norm(x) + 1e-12)  # <- MS202

        def train(optimizer):
            network = Net()
            network = ms.amp.auto_mixed_precision(network, "O2")
            return ms.Model(network, optimizer=optimizer)
        """,
    )
    VALID = (
        # float32, by default or by a cast; a float32 tensor of an epsilon; an epsilon that float16 has.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Pool(nn.Cell):
            def __init__(self):
                super().__init__()
                self.tiny = ms.Tensor(1e-8, ms.float32)

            def construct(self, x, scores):
                weights = scores.astype(ms.float16)
                wide = weights.astype(ms.float32)
                narrow = weights / (weights.sum() + self.tiny) + 1e-4
                return x / (x.sum() + 1e-12), wide / (wide.sum() + 1e-8), narrow
        """,
        # amp O0 and O1, and a loss that stays outside the network that is cast.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Net(nn.Cell):
            def construct(self, x):
                return x * 2

        class Loss(nn.Cell):
            def construct(self, x, y):
                return ops.log(x + 1e-12) * y

        class Other(nn.Cell):
            def construct(self, x):
                return x / (x.sum() + 1e-12)

        def train(optimizer):
            other = ms.amp.auto_mixed_precision(Other(), "O1")
            return ms.Model(Net(), loss_fn=Loss(), optimizer=optimizer, amp_level="O2"), other
        """,
        # NumPy.
        """
        import numpy as np
        import mindspore

        def scale(x):
            x = x.astype(np.float16)
            return x / (x.sum() + 1e-8)
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for node in walk(module.tree):
            if isinstance(node, (cst.BinaryOperation, cst.AugAssign, cst.Call)):
                for guard in _guarded(read(Expression(module, node))):
                    made = half(guard.value)
                    if made is not None and not _in_optimizer(module, node):
                        yield self._finding(module, node, guard, made)

    def _finding(self, module: Module, node: cst.CSTNode, guard: _Guard, made: HalfBy) -> Finding:
        message = (
            f"{guard.written} {guard.role} `{guard.value.code}`, which is float16 ({made.reason}): {guard.amount:g} is 0 in "
            "float16, whose smallest number is 6e-8, so nothing keeps the value away from 0; compute this in float32, or "
            "take 1e-7 or more; the point is numbers (inf, NaN), not speed"
        )
        by = made.by
        related = Related(by.module.source.filename, by.module.start(by.node), by.module.end(by.node), made.reason)
        start, end = module.start(node), module.end(node)
        return self.finding(
            module, start, end, message, related=(related,), subject=unstable.HalfEpsilon(guard.epsilon)
        )


@dataclass(frozen=True)
class _Guard:
    """``epsilon`` keeps ``value`` away from zero."""

    value: Expression
    epsilon: Expression
    written: str
    amount: float
    role: str


def _guarded(formula: Formula) -> Iterator[_Guard]:
    """Yield the value that ``formula`` keeps away from zero by an epsilon that float16 has not, and that epsilon."""
    added = added_epsilon(formula)
    if added is not None and added.amount is not None and vanishes_in_half(added.amount):
        if not _is_wide_tensor(added.epsilon):
            yield _Guard(added.value, added.epsilon, added.written, added.amount, "is added to")
    elif formula.operation == "clip":
        for bound in formula.operands[1:2]:
            found = numbers(bound)
            if (
                found
                and all(number > 0 and vanishes_in_half(number) for number in found)
                and not _is_wide_tensor(bound)
            ):
                yield _Guard(formula.first, bound, f"`{bound.code}`", min(found), "is the lower bound of")


def _is_wide_tensor(epsilon: Expression) -> bool:
    """Tell whether ``epsilon`` is a tensor that is not visibly float16: then the sum takes the tensor's type."""
    for value in values(epsilon, calls=0, through=False):
        formula = read(value)
        if isinstance(value.node, cst.Call) and formula.operation == "same":
            given = formula.setting("dtype")
            kind = given if given is not None else formula.operands[1].node if len(formula.operands) > 1 else None
            return not (isinstance(kind, cst.Attribute) and kind.attr.value in ("dtype", "float16"))
    return False


def _in_optimizer(module: Module, node: cst.CSTNode) -> bool:
    owner = owner_of(module, node)
    return owner is not None and "mindspore.nn.Optimizer" in owner.lineage
