"""MS204."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics.inventory import inventories
from mslint.semantics.masks import Masked, masked
from mslint.semantics.module import Module
from mslint.semantics.training import is_differentiated


class BooleanMask(Rule):
    """A boolean mask as an index picks or sets elements of a tensor.

    What it does
        Reports, in networks and losses that training runs, ``x[mask]`` with a boolean tensor as the index: read (a
        warning), or written (``x[mask] = value``: info). The mask is followed to the comparison that makes it. numpy
        code, indices that are integers, metrics, evaluation and data pipelines are left alone.

    Why it matters
        How many elements ``x[mask]`` has is known only when the step runs. The graph then looks the places up
        (NonZero), gathers them, scatters the gradient back, and computes shapes at run time for everything that
        follows, which hinders fusion and, on devices that compile by shape, means compiling again.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``mslint verify --mode both fixtures/boolean-mask/bad.py --against
        fixtures/boolean-mask/fixed.py`` (one read and one write by a mask against ``where`` and a weighted mean):
        backward nodes 20 -> 15 and forward nodes 16 -> 17 in graph mode, where NonZero, GatherNd, ScatterNd and two
        shape computations at run time go; 39 -> 38 operator calls and 22 -> 24 autograd nodes a step in PyNative mode;
        loss, gradients and parameters after the step bit-equal in both. Saved bytes rise from 4,620 to 4,868: the point
        is the fixed shape, not memory. A write by a mask already becomes a Select in both modes, so it costs nothing
        there: those findings are ``info``.

    Example
        .. code-block:: python

            weight[labels == 0] = 0.1
            loss = error[labels >= 0].mean()

    Use instead
        .. code-block:: python

            weight = ops.where(labels == 0, 0.1, weight)
            kept = (labels >= 0).astype(error.dtype)
            loss = (error * kept).sum() / kept.sum()

        A value that is inf or NaN outside of the mask must be replaced before (``ops.where``): times zero it stays NaN.

    Fix safety
        Codemod ``masked-fill``: a write of a number becomes ``ops.where``, safe where nothing else holds or has read the
        tensor and type and shape are known, unsafe where they are not. A read is left to a person: what becomes of the
        elements decides.

    References
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.where.html,
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.masked_fill.html
    """

    code = "MS204"
    name = "boolean-mask"
    severity = Severity.WARNING
    summary = "a boolean mask as an index makes a shape that the data decide"
    codemod = "masked-fill"
    triggers = (b"[",)
    context = (b"mindspore", b"construct")
    screen = "mslint.rules.loss.mask_screen:has_mask"
    INVALID = (
        """
        from mindspore import nn, ops

        class MaskedLoss(nn.Cell):
            def construct(self, prediction, label, weight):
                valid = label >= 0
                error = ops.abs(prediction - label)
                weight[label == 0] = 0.1  # <- MS204
                weight[~valid] *= 0.5  # <- MS204
                return (error * weight)[valid].mean()  # <- MS204
        """,
        # Masks by operators, casts, joined and reshaped; next to another index; outside of a Cell.
        """
        import mindspore as ms
        import mindspore.ops as ops
        from mindspore import nn

        def foreground(boxes, score):
            picked = ops.sigmoid(score).greater(0.5).reshape(-1)
            return ops.exp(boxes)[picked]  # <- MS204

        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.less = ops.Less()

            def construct(self, boxes, score, flags):
                few = ops.logical_and(self.less(score, 0.2), score > 0)
                marked = ops.cast(flags, ms.bool_)
                total = boxes[few & marked].sum()  # <- MS204
                return total + boxes[:, score.max(0) > 0.1].sum() + foreground(boxes, score).sum()  # <- MS204
        """,
    )
    VALID = (
        # Integers as indices, comparisons of numbers, masks that multiply or go to where.
        """
        from mindspore import nn, ops

        class Loss(nn.Cell):
            def __init__(self, count):
                super().__init__()
                self.count = count

            def construct(self, x, index, label):
                kept = (label >= 0).astype(x.dtype)
                x = ops.where(label == 0, x * 2, x)
                last = 2
                return (x * kept).sum() / kept.sum() + x[index].sum() + x[last > 1] + x[ops.argmax(label)]
        """,
        # numpy, evaluation, a metric.
        """
        import numpy as np
        from mindspore import nn, ops

        def keep_best(boxes, scores):
            best = np.argsort(scores)
            return boxes[best][scores[best] > 0.5]

        class DecodeBox:
            def suppress(self, prediction):
                return ops.sigmoid(prediction)[prediction > 0.5]

        class Recall(nn.Metric):
            def update(self, prediction, label):
                self.hits = prediction[label > 0].sum()

        class Net(nn.Cell):
            def construct(self, x):
                if not self.training:
                    return x[x > 0.5]
                return ops.relu(x)

            def postprocess(self, x):
                output = x.asnumpy()
                return output[output > 0.5]
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for function in inventories(module):
            for found in masked(module, function):
                if is_differentiated(module, found.subscript):
                    yield self._finding(module, found)

    def _finding(self, module: Module, found: Masked) -> Finding:
        node = found.subscript
        tensor, mask = _short(module, found.subscript.value), _short(module, found.mask)
        origin = module.start(found.origin).row
        made = "" if found.mask is found.origin else f" (made in row {origin})"
        if found.stored is None:
            message = (
                f"`{_short(module, found.subscript)}` picks the elements where `{mask}`{made} holds, so the data decide "
                "how many there are; keep the shape: `ops.where` or a product with the mask, and a sum divided by the "
                "sum of the mask"
            )
        else:
            message = (
                f"`{tensor}` is written in place where `{mask}`{made} holds; `ops.where` or `ops.masked_fill` says the "
                "same as a new value"
            )
        related = (
            ()
            if not made
            else (
                Related(
                    module.source.filename,
                    module.start(found.origin),
                    module.end(found.origin),
                    "the mask is made here",
                ),
            )
        )
        return self.finding(
            module,
            module.start(node),
            module.end(node),
            message,
            severity=Severity.WARNING if found.stored is None else Severity.INFO,
            related=related,
            subject=found,
        )


def _short(module: Module, node: cst.CSTNode) -> str:
    text = " ".join(module.code(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
