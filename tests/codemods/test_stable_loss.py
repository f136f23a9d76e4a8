"""What stable-loss makes of losses, written as an expert would by hand, and what it leaves to a person."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rewriting import file, reasons, rewrite
from running import require_mindspore

from mslint.findings import Applicability

UNSAFE = {
    "a softmax in an attribute, the variable read elsewhere": (
        """
        class Loss(nn.Cell):
            def __init__(self, eps=1e-8):
                super().__init__()
                self.softmax = nn.Softmax(axis=1)  # over the classes
                self.log = ops.Log()
                self.eps = eps

            def construct(self, x, y):
                p = self.softmax(x)
                # the loss
                loss = -(y * self.log(p + self.eps)).sum(1)  # per sample
                return loss, p
        """,
        """
        class Loss(nn.Cell):
            def __init__(self, eps=1e-8):
                super().__init__()
                self.softmax = nn.Softmax(axis=1)  # over the classes
                self.eps = eps

            def construct(self, x, y):
                p = self.softmax(x)
                # the loss
                loss = -(y * ops.log_softmax(x, axis=1)).sum(1)  # per sample
                return loss, p
        """,
    ),
    "no other reader: variable and operators go, comments stay": (
        """
        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                # operators
                self.softmax = nn.Softmax()  # last axis
                self.log = ops.Log()

            def construct(self, x, y):
                # probabilities
                p = self.softmax(x)
                p = p.reshape(y.shape)
                return -(self.log(p + 1e-8) * y).sum(-1)
        """,
        """
        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                # operators
                # last axis

            def construct(self, x, y):
                # probabilities
                return -(ops.log_softmax(x).reshape(y.shape) * y).sum(-1)
        """,
    ),
    "what makes the logits is not computed twice": (
        """
        def loss(net, x, y):
            p = ops.softmax(net(x), -1)
            return -(y * ops.log(p + 1e-9)).sum(), p.argmax(-1)
        """,
        """
        def loss(net, x, y):
            logits = net(x)
            p = ops.softmax(logits, -1)
            return -(y * ops.log_softmax(logits, -1)).sum(), p.argmax(-1)
        """,
    ),
    "a name that is taken": (
        """
        def loss(net, x, logits):
            p = ops.softmax(net(x), -1)
            return -(logits * ops.log(p + 1e-9)).sum(), p.argmax(-1)
        """,
        """
        def loss(net, x, logits):
            logits_ = net(x)
            p = ops.softmax(logits_, -1)
            return -(logits * ops.log_softmax(logits_, -1)).sum(), p.argmax(-1)
        """,
    ),
    "a helper that only returns": (
        """
        class Loss(nn.Cell):
            def chances(self, scores):
                \"\"\"Return probabilities.\"\"\"
                return ops.softmax(scores / self.temperature, axis=-1)

            def construct(self, a, b, y):
                return -(y * ops.log(self.chances(a + b) + 1e-9)).sum()
        """,
        """
        class Loss(nn.Cell):
            def chances(self, scores):
                \"\"\"Return probabilities.\"\"\"
                return ops.softmax(scores / self.temperature, axis=-1)

            def construct(self, a, b, y):
                log_probs = ops.log_softmax((a + b) / self.temperature, axis=-1)
                return -(y * log_probs).sum()
        """,
    ),
    "a variable that becomes a probability of itself": (
        """
        def loss(x, y):
            x = ops.softmax(x, -1)
            x = ops.log(x + 1e-8)
            return -(x * y).sum()
        """,
        """
        def loss(x, y):
            x = ops.log_softmax(x, -1)
            return -(x * y).sum()
        """,
    ),
    "an entropy of a variable that becomes a probability of itself": (
        """
        def entropy(x):
            x = ops.softmax(x, -1)
            return -(x * ops.log(x + 1e-5)).sum(-1).mean()
        """,
        """
        def entropy(x):
            log_probs = ops.log_softmax(x, -1)
            x = ops.softmax(x, -1)
            return -(x * log_probs).sum(-1).mean()
        """,
    ),
    "several variables that become probabilities of themselves": (
        """
        def loss(real, fake):
            real = ops.sigmoid(real)
            fake = ops.sigmoid(fake)
            return -ops.reduce_mean(ops.log(1 - real + 1e-8) + ops.log(fake + 1e-8))
        """,
        """
        def loss(real, fake):
            log_real = -ops.softplus(real)
            log_fake = -ops.softplus(-fake)
            return -ops.reduce_mean(log_real + log_fake)
        """,
    ),
    "several probabilities that are kept": (
        """
        def loss(net, x, y):
            p = ops.softmax(net(x), -1)
            q = ops.softmax(net(y), -1)
            return ops.log(p + 1e-8) - ops.log(q + 1e-8), p, q
        """,
        """
        def loss(net, x, y):
            p_logits = net(x)
            p = ops.softmax(p_logits, -1)
            q_logits = net(y)
            q = ops.softmax(q_logits, -1)
            return ops.log_softmax(p_logits, -1) - ops.log_softmax(q_logits, -1), p, q
        """,
    ),
    "nll_loss of a log_softmax along axis 1 is a cross entropy": (
        """
        def loss(x, y):
            p = ops.softmax(x, axis=1)
            return ops.nll_loss(ops.log(p + 1e-8), y, reduction="sum") + ops.nll_loss(ops.log(ops.softmax(x) + 1e-8), y)
        """,
        """
        def loss(x, y):
            return ops.cross_entropy(x, y, reduction="sum") + ops.nll_loss(ops.log_softmax(x), y)
        """,
    ),
    "an epsilon added in place, a clip, a picked element": (
        """
        def loss(x, y, index):
            p = ops.softmax(x, -1)
            p += 1e-8
            q = ops.clamp(ops.softmax(y, -1), 1e-7, 1.0)
            r = ops.softmax(x * y, -1)
            first = ops.log(p) + ops.log(q + 1e-8)
            return first + ops.log(r[:, :1] + 1e-8)
        """,
        """
        def loss(x, y, index):
            first = ops.log_softmax(x, -1) + ops.log_softmax(y, -1)
            return first + ops.log_softmax(x * y, -1)[:, :1]
        """,
    ),
    "two halves of a binary cross entropy": (
        """
        def mean(x, t):
            p = ops.sigmoid(x)
            return -(t * ops.log(p + 1e-7) + (1 - t) * ops.log(1 - p + 1e-7)).mean()


        def apart(x, t):
            p = ops.sigmoid(x)
            there = t * ops.log(p + 1e-7)  # positives
            not_there = (1.0 - t) * ops.log(1.0 - p + 1e-7)
            loss = -there - not_there
            return loss.sum(-1)


        def weighted(x, t, w):
            p = ops.sigmoid(x)
            loss = -w * t * ops.log(p + 1e-7) - w * (1 - t) * ops.log(1 - p + 1e-7)
            return ops.mean(loss), p > 0.5


        def outside(x, t, w):
            p = ops.sigmoid(x)
            return -ops.mean(w * (t * ops.log(p + 1e-7) + (1 - t) * ops.log(1 - p + 1e-7)))
        """,
        """
        def mean(x, t):
            return ops.binary_cross_entropy_with_logits(x, t)


        def apart(x, t):
            # positives
            loss = ops.binary_cross_entropy_with_logits(x, t, reduction="none")
            return loss.sum(-1)


        def weighted(x, t, w):
            p = ops.sigmoid(x)
            loss = w * ops.binary_cross_entropy_with_logits(x, t, reduction="none")
            return ops.mean(loss), p > 0.5


        def outside(x, t, w):
            bce = ops.binary_cross_entropy_with_logits(x, t, reduction="none")
            return ops.mean(w * bce)
        """,
    ),
    "labels that are computed, a probability that is kept": (
        """
        def loss(x, y):
            p = ops.sigmoid(x * 2)
            hard = y.astype(ms.float32) * ops.log(p + 1e-7) + (1 - y.astype(ms.float32)) * ops.log(1 - p + 1e-7)
            return -hard.mean(), p
        """,
        """
        def loss(x, y):
            logits = x * 2
            p = ops.sigmoid(logits)
            hard = -ops.binary_cross_entropy_with_logits(logits, y.astype(ms.float32), reduction="none")
            return -hard.mean(), p
        """,
    ),
    "one half alone, and its sign": (
        """
        def focal(x, t, alpha, gamma):
            p = ops.sigmoid(x)
            there = -alpha * t * (1 - p) ** gamma * ops.log(p + 1e-8)
            return there - t * ops.log(1 - p + 1e-8)


        def signs(x, t):
            p = ops.sigmoid(x)
            a = ops.log(p + 1e-8).mean()
            b = -(ops.log(p + 1e-8))
            c = t + ops.log(1 - p + 1e-8).mean() * 3
            d = ops.log(p + 1e-8) ** 2
            d -= ops.log(p + 1e-8)
            e = ops.sigmoid(-t)
            return a, b, c, d, ops.log(e + 1e-8)


        def products(x, t):
            p, q = ops.sigmoid(x), ops.sigmoid(t)
            return -ops.log(p + 1e-8) * ops.log(q + 1e-8)
        """,
        """
        def focal(x, t, alpha, gamma):
            p = ops.sigmoid(x)
            there = alpha * t * (1 - p) ** gamma * ops.softplus(-x)
            return there + t * ops.softplus(x)


        def signs(x, t):
            a = -ops.softplus(-x).mean()
            b = ops.softplus(-x)
            c = t - ops.softplus(x).mean() * 3
            d = (-ops.softplus(-x)) ** 2
            d += ops.softplus(-x)
            return a, b, c, d, -ops.softplus(t)


        def products(x, t):
            p, q = ops.sigmoid(x), ops.sigmoid(t)
            return ops.softplus(-x) * -ops.softplus(-t)
        """,
    ),
    "exponentials": (
        """
        def loss(x, t):
            scores = ops.exp(x / t)
            total = scores.sum(-1, keepdims=True)
            share = scores / (total + 1e-10)
            flat = ops.log(ops.exp(x).sum(axis=1) + 1e-10)
            back = ops.log(ops.exp(-x) + 1e-10)
            return share, ops.log(total + 1e-10), flat, back
        """,
        """
        def loss(x, t):
            scores_logits = x / t
            share = ops.softmax(scores_logits, -1)
            flat = ops.logsumexp(x, 1)
            back = -x
            return share, ops.logsumexp(scores_logits, -1, True), flat, back
        """,
    ),
    "the logit by hand, and a quotient of two probabilities": (
        """
        def loss(x, y):
            p = ops.sigmoid(x)
            a, b = ops.softmax(x, -1), ops.softmax(y, -1)
            return ops.log(p / (1 - p) + 1e-7) * ops.log((a + 1e-9) / (b + 1e-9))
        """,
        """
        def loss(x, y):
            a, b = ops.softmax(x, -1), ops.softmax(y, -1)
            log_probs = ops.log_softmax(x, -1) - ops.log_softmax(y, -1)
            return x * log_probs
        """,
    ),
    "a comment inside, and a line that would become too long": (
        """
        def loss(predictions_of_the_network, y):
            share_of_each_class = ops.softmax(predictions_of_the_network.reshape(-1, 10), axis=-1)
            cross_entropy = ops.reduce_sum(y * ops.log(share_of_each_class + 1e-8), -1) + ops.reduce_mean(y)
            other = ops.log(
                share_of_each_class  # of the classes
                + 1e-8
            )
            return cross_entropy + other
        """,
        """
        def loss(predictions_of_the_network, y):
            logits = predictions_of_the_network.reshape(-1, 10)
            cross_entropy = ops.reduce_sum(y * ops.log_softmax(logits, axis=-1), -1) + ops.reduce_mean(y)
            # of the classes
            other = ops.log_softmax(logits, axis=-1)
            return cross_entropy + other
        """,
    ),
    "a sum over several axes": (
        """
        def partition(x):
            return ops.log(ops.exp(x).sum((1, 2), keepdims=True) + 1e-8)
        """,
        """
        def partition(x):
            return ops.logsumexp(x, (1, 2), True)
        """,
    ),
    "a probability that stays where it is assigned with others": (
        """
        def loss(net, x, y):
            y, p = y / 2, ops.softmax(net(x))
            return -(y * ops.log(p + 1e-8)).sum()
        """,
        """
        def loss(net, x, y):
            logits = net(x)
            y, p = y / 2, ops.softmax(logits)
            return -(y * ops.log_softmax(logits)).sum()
        """,
    ),
    "a name for what has lost its minus": (
        """
        def loss(net, x, y):
            p = ops.sigmoid(net(x))
            first = -y * (1 - p) ** 2.0 * ops.log(p + 1e-7) * ROOM_FOR_NO_MORE_THAN_THIS_ROW_HAS_WITH_ITS_WEIGHT - p * ROOM
            return first.sum()
        """,
        """
        def loss(net, x, y):
            logits = net(x)
            p = ops.sigmoid(logits)
            negative_log_probs = ops.softplus(-logits)
            first = y * (1 - p) ** 2.0 * negative_log_probs * ROOM_FOR_NO_MORE_THAN_THIS_ROW_HAS_WITH_ITS_WEIGHT - p * ROOM
            return first.sum()
        """,
    ),
    "an epsilon that float16 does not see": (
        """
        def mean(x):
            x = x.astype(ms.float16)
            return x / (x.sum() + 1e-8)
        """,
        """
        def mean(x):
            x = x.astype(ms.float16)
            return x / (x.sum() + 1e-7)
        """,
    ),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_stable_forms(case: str, tmp_path: Path) -> None:
    before, after = (file(text) for text in UNSAFE[case])
    done = rewrite(tmp_path, "stable-loss", before)
    assert done.failures == ()
    assert done.text == after
    assert rewrite(tmp_path, "stable-loss", done.text).text == after
    assert rewrite(tmp_path, "stable-loss", before, unsafe=False).text == before


SAFE = {
    "before a softmax and a cross entropy": (
        """
        def loss(x, y):
            attention = ops.softmax((x + 1e-6), axis=-1)
            moved = x.view(-1, 7) + 1e-10  # flat
            x = x * 2 + 1e-8
            x += 1e-9
            return ops.cross_entropy(moved, y) + nn.CrossEntropyLoss()(x, y) + attention.sum()
        """,
        """
        def loss(x, y):
            attention = ops.softmax(x, axis=-1)
            moved = x.view(-1, 7)  # flat
            x = x * 2
            return ops.cross_entropy(moved, y) + nn.CrossEntropyLoss()(x, y) + attention.sum()
        """,
    ),
    "beside a one": (
        """
        tiny = 1e-12


        def bounded(x):
            x = ops.clip_by_value(x, tiny - 1.0, 1 - tiny)
            y = ops.sigmoid(x)
            return ops.log((1. + 1e-10) - y)
        """,
        """
        tiny = 1e-12


        def bounded(x):
            x = ops.clip_by_value(x, -1.0, 1.0)
            y = ops.sigmoid(x)
            return ops.log(1. - y)
        """,
    ),
}


@pytest.mark.parametrize("case", SAFE)
def test_epsilons_without_effect_go(case: str, tmp_path: Path) -> None:
    before, after = (file(text) for text in SAFE[case])
    done = rewrite(tmp_path, "stable-loss", before, unsafe=False)
    assert done.failures == ()
    assert done.text == after


REFUSED = {
    "a probability that is written in place": (
        """
        def loss(x, y):
            p = ops.softmax(x, -1)
            p[:, 0] = 1.0
            return -(y * ops.log(p + 1e-8)).sum()
        """,
        "`p` is written in place in row 7",
    ),
    "exponentials that are written in place": (
        """
        def loss(x, y):
            e = ops.exp(x)
            e.mul_(y)
            return ops.log(e.sum(1) + 1e-8).mean()
        """,
        "`e` is written in place in row 7",
    ),
    "another value from the second round on": (
        """
        def loss(x, y):
            p = ops.softmax(x, -1)
            total = 0
            for _ in range(3):
                total = total - (y * ops.log(p + 1e-8)).sum()
                p = p * 0.5
            return total
        """,
        "`p` may have several values (rows 6, 10)",
    ),
    "a probability in the row of its reader": (
        """
        def loss(net, x, y):
            p = ops.softmax(net(x), -1); return -(y * ops.log(p + 1e-8)).sum()
        """,
        "give what is computed in row 6 a line of its own first",
    ),
    "labels that are integers": (
        """
        def loss(x, y):
            p, t = ops.sigmoid(x), (y > 0).astype(ms.int32)
            t = (y > 0).astype(ms.int32)
            return -(t * ops.log(p + 1e-7) + (1 - t) * ops.log(1 - p + 1e-7)).mean()
        """,
        "the labels `t` are integers",
    ),
    "the caller makes the probability": (
        """
        def loss(p, y):
            return -(y * ops.log(p + 1e-8)).sum()


        def step(x, y):
            return loss(ops.softmax(x, -1), y)
        """,
        "`p` is an argument, and whoever passes it made it a probability",
    ),
    "several producers": (
        """
        def loss(x, y, other):
            if other:
                p = ops.softmax(x, -1)
            else:
                p = ops.softmax(y, -1)
            return ops.log(p + 1e-8)
        """,
        "`p` may have several values (rows 7, 9)",
    ),
    "the logits change in between": (
        """
        def loss(x, y):
            p = ops.softmax(x, -1)
            x = x * 2
            return ops.log(p + 1e-8) * x
        """,
        "`x` changes in row 7",
    ),
    "the logits change in the round before": (
        """
        def loss(x, n):
            p = ops.softmax(x, -1)
            total = 0
            for _ in range(n):
                total += ops.log(p + 1e-8)
                x = x * 2
            return total
        """,
        "`x` changes in row 10",
    ),
    "the logits are written in part": (
        """
        def loss(x, y):
            p = ops.softmax(x, -1)
            x[0] = 0
            return ops.log(p + 1e-8) * x
        """,
        "`x` changes in row 7",
    ),
    "a helper that does more": (
        """
        class Loss(nn.Cell):
            def chances(self, x):
                x = self.dense(x)
                return ops.softmax(x, -1)

            def construct(self, x):
                return ops.log(self.chances(x) + 1e-8)
        """,
        "made by `chances` in row 6, which does more than return it",
    ),
    "a helper whose network would run twice": (
        """
        class Loss(nn.Cell):
            def chances(self, x):
                return ops.softmax(self.dense(x), -1)

            def construct(self, x):
                p = self.chances(x)
                return ops.log(p + 1e-8), p
        """,
        "a helper would compute the logits twice",
    ),
    "the end of a layer": (
        """
        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net = nn.SequentialCell([nn.Dense(4, 3), nn.Softmax()])

            def construct(self, x):
                return ops.log(self.net(x) + 1e-8)
        """,
        "the softmax in row 11 is the end of a layer",
    ),
    "an axis that only __init__ knows": (
        """
        class Loss(nn.Cell):
            def __init__(self, axis):
                super().__init__()
                self.softmax = nn.Softmax(axis)

            def construct(self, x):
                return ops.log(self.softmax(x) + 1e-8)
        """,
        "the axis of the softmax, `axis`, is not written as a number",
    ),
    "another logarithm": (
        "def loss(x):\n    return ops.log2(ops.softmax(x, -1) + 1e-8)\n",
        "the logarithm is no natural one",
    ),
    "a sum over everything": (
        "def loss(x):\n    return ops.log(ops.exp(x).sum() + 1e-8)\n",
        "over all axes",
    ),
    "a masked sum of exponentials": (
        "def loss(x, mask):\n    return ops.log((ops.exp(x) * mask).sum(-1) + 1e-8)\n",
        "no plain softmax, sigmoid or sum of exponentials",
    ),
    "operators sharded by hand": (
        """
        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.softmax = ops.Softmax().shard(((1, 8),))

            def construct(self, x):
                return ops.log(ops.softmax(x, -1) + 1e-8)
        """,
        "sharded by hand",
    ),
    "moved logits that others read": (
        """
        def loss(x, y):
            x = x + 1e-8
            return ops.cross_entropy(x, y), 1 / x
        """,
        "`x` is read in row 7 too",
    ),
    "logits that may go elsewhere": (
        """
        def loss(x, y, hard):
            criterion = nn.MSELoss()
            if hard:
                criterion = nn.CrossEntropyLoss()
            return criterion(x + 1e-8, y)
        """,
        "may be another function (row 6)",
    ),
    "float64 sees it": (
        """
        def bounded(x):
            x = x.astype(ms.float64)
            return ops.clip_by_value(x, 0.5, 1 - 1e-12)
        """,
        "computes in float64",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_left_to_a_person_says_why(case: str, tmp_path: Path) -> None:
    text, reason = REFUSED[case]
    before = file(text)
    done = rewrite(tmp_path, "stable-loss", before)
    assert done.failures == ()
    assert done.text == before
    assert any(reason in message for message in reasons(done)), reasons(done)


def test_a_probability_of_another_file_is_left_to_a_person(tmp_path: Path) -> None:
    others = {"head.py": file("def chances(x):\n    return ops.softmax(x, -1)\n")}
    before = (
        "from mindspore import ops\nfrom head import chances\n\n\ndef loss(x):\n    return ops.log(chances(x) + 1e-8)\n"
    )
    done = rewrite(tmp_path, "stable-loss", before, others=others)
    assert done.text == before
    assert "made in another file, by `chances` in head.py:5" in reasons(done)[0]


def test_a_normalisation_is_pointed_at(tmp_path: Path) -> None:
    before = file("def unit(x):\n    return x / (ops.norm(x, dim=-1, keepdim=True) + 1e-12)\n")
    done = rewrite(tmp_path, "stable-loss", before)
    assert done.text == before
    assert "ops.L2Normalize(axis=-1, epsilon=1e-12)" in reasons(done, Applicability.DISPLAY)[0]


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("from mindspore.ops import operations as P, functional as F\n", "F.log_softmax(x, -1)"),
        ("import mindspore.ops as P\n", "P.log_softmax(x, -1)"),
        ("import mindspore\nimport mindspore.ops.operations as P\n", "mindspore.ops.log_softmax(x, -1)"),
    ],
)
def test_the_operator_is_reached_as_the_file_does(imports: str, written: str, tmp_path: Path) -> None:
    body = "\n\ndef loss(x, y):\n    return {}, P.Abs()(y)\n"
    done = rewrite(tmp_path, "stable-loss", imports + body.format("P.Log()(P.Softmax(-1)(x) + 1e-8)"))
    assert done.text == imports + body.format(written)


def test_the_import_of_ops_is_added(tmp_path: Path) -> None:
    before = (
        "from mindspore import nn\n\nsoftmax = nn.Softmax()\n\n\ndef loss(x):\n    return (softmax(x) + 1e-8).log()\n"
    )
    after = "from mindspore import nn, ops\n\nsoftmax = nn.Softmax()\n\n\ndef loss(x):\n    return ops.log_softmax(x)\n"
    assert rewrite(tmp_path, "stable-loss", before).text == after


@pytest.mark.parametrize("convert", [lambda t: t.replace("\n", "\r\n"), lambda t: t.replace("    ", "\t")])
def test_line_ends_and_tabs_survive(convert: object, tmp_path: Path) -> None:
    assert callable(convert)
    before, after = (convert(file(text)) for text in UNSAFE["what makes the logits is not computed twice"])
    assert rewrite(tmp_path, "stable-loss", before).text == after


NUMBERS = [
    "a variable that becomes a probability of itself",
    "an entropy of a variable that becomes a probability of itself",
    "several variables that become probabilities of themselves",
    "an epsilon added in place, a clip, a picked element",
    "two halves of a binary cross entropy",
    "labels that are computed, a probability that is kept",
    "one half alone, and its sign",
    "exponentials",
    "the logit by hand, and a quotient of two probabilities",
]
COMPARED = """
import importlib, inspect, sys
import mindspore as ms
import numpy as np

folder, cases = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
random = np.random.RandomState(0)
tensors = [ms.Tensor(random.uniform(0.2, 0.8, (3, 4)).astype(np.float32)) for _ in range(4)]


def numbers(value):
    return [n for item in value for n in numbers(item)] if isinstance(value, tuple) else [value.asnumpy()]


for case in range(cases):
    before, after = (importlib.import_module(f"{side}{case}") for side in ("before", "after"))
    compared = 0
    for name, old in inspect.getmembers(before, inspect.isfunction):
        if old.__module__ == before.__name__:
            given = tensors[: len(inspect.signature(old).parameters)]
            for one, other in zip(numbers(old(*given)), numbers(getattr(after, name)(*given)), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, err_msg=f"case {case}, {name}")
                compared += 1
    assert compared, case
print("all compared")
"""


def test_the_stable_forms_are_the_same_numbers_where_nothing_is_far_off(tmp_path: Path) -> None:
    require_mindspore()
    for number, case in enumerate(NUMBERS):
        for side, text in zip(("before", "after"), UNSAFE[case], strict=True):
            (tmp_path / f"{side}{number}.py").write_text(file(text), encoding="utf-8")
    run = [sys.executable, "-c", COMPARED, str(tmp_path), str(len(NUMBERS))]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "all compared" in done.stdout, done.stderr[-2000:]
