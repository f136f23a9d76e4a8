"""What masked-fill makes of writes by a mask, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from rewriting import file, reasons, rewrite

from mslint.findings import Applicability


def loss(body: str) -> str:
    """Return a file with a loss whose construct is ``body``."""
    return file(f"class Loss(nn.Cell):\n    def construct(self, x, label, weight):\n{indent(body, ' ' * 8)}")


REWRITTEN = {
    "made here, compared with numbers": (
        "error = ops.exp(x)\nerror[error < 0.1] = 0.5  # small\nreturn error.sum()\n",
        "error = ops.exp(x)\nerror = ops.where(error < 0.1, 0.5, error)  # small\nreturn error.sum()\n",
        Applicability.SAFE,
    ),
    "a mask in a variable, of what the tensor was made of": (
        "near = ops.logical_and(x > 0, label > 0)\nw = ops.sqrt(x * label)\nw[near] = -1e9\nw[~near] *= 2\nreturn w\n",
        "near = ops.logical_and(x > 0, label > 0)\nw = ops.sqrt(x * label)\nw = ops.where(near, -1e9, w)\n"
        "w = ops.where(~near, w * 2, w)\nreturn w\n",
        Applicability.SAFE,
    ),
    "a whole number keeps the type, whatever it is": (
        "error = ops.abs(x - label)\nerror[error > self.top] = 1.0\nreturn error\n",
        "error = ops.abs(x - label)\nerror = ops.where(error > self.top, 1, error)\nreturn error\n",
        Applicability.SAFE,
    ),
    "a mask of several lines with comments": (
        "q = ops.exp(x)\nq[(q < 1) &  # small\n  (x > 0)] = 0.\nreturn q\n",
        "q = ops.exp(x)\nq = ops.where((q < 1) &  # small\n  (x > 0), 0., q)\nreturn q\n",
        Applicability.SAFE,
    ),
    "asked for its shape and printed before": (
        "q = ops.exp(x)\nrows, _ = q.shape\nprint(q, len(q), q.dtype)\nq[q > 1] = 0.5\nreturn q / rows\n",
        "q = ops.exp(x)\nrows, _ = q.shape\nprint(q, len(q), q.dtype)\nq = ops.where(q > 1, 0.5, q)\nreturn q / rows\n",
        Applicability.SAFE,
    ),
    "passed to a function that may keep it": (
        "q = ops.exp(x)\nself.note(q)\nq[q > 1] = 0.5\nreturn q\n",
        "q = ops.exp(x)\nself.note(q)\nq = ops.where(q > 1, 0.5, q)\nreturn q\n",
        Applicability.UNSAFE,
    ),
    "in a branch": (
        "q = x / 2\nif self.cut:\n    q[q < 0] = -self.cut_at\nreturn q\n",
        "q = x / 2\nif self.cut:\n    q[q < 0] = -self.cut_at\nreturn q\n",
        Applicability.MANUAL,
    ),
    "a number that float32 rounds, in a file with float64": (
        "q = ops.exp(x.astype(ms.float64))\nq[q < 0.5] = 0.1\nreturn q\n",
        "q = ops.exp(x.astype(ms.float64))\nq = ops.where(q < 0.5, 0.1, q)\nreturn q\n",
        Applicability.UNSAFE,
    ),
    "a number that float32 has, in a file with float64": (
        "q = ops.exp(x.astype(ms.float64))\nq[q < 0.5] = 0.25\nreturn q\n",
        "q = ops.exp(x.astype(ms.float64))\nq = ops.where(q < 0.5, 0.25, q)\nreturn q\n",
        Applicability.SAFE,
    ),
    "a type that is not known": (
        "w = ops.ones_like(x)\nw[x > 0] = 0.1\nreturn w\n",
        "w = ops.ones_like(x)\nw = ops.where(x > 0, 0.1, w)\nreturn w\n",
        Applicability.UNSAFE,
    ),
    "a shape that is not known": (
        "w = ops.exp(x)\nw[label > 0] = 0.1\nreturn w\n",
        "w = ops.exp(x)\nw = ops.where(label > 0, 0.1, w)\nreturn w\n",
        Applicability.UNSAFE,
    ),
    "read before the write": (
        "z = x / 2\ne = z * z\nz[z < 0] = 0.5\nreturn e * z\n",
        "z = x / 2\ne = z * z\nz = ops.where(z < 0, 0.5, z)\nreturn e * z\n",
        Applicability.UNSAFE,
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_writes_become_where(case: str, tmp_path: Path) -> None:
    before, after, applicability = REWRITTEN[case]
    safe = rewrite(tmp_path, "masked-fill", loss(before), unsafe=False)
    assert safe.text == loss(after if applicability is Applicability.SAFE else before)
    assert rewrite(tmp_path, "masked-fill", loss(before)).text == loss(after)


REFUSED = {
    "a read": ("return x[x > 0].mean()\n", "ops.where(mask, x, 0).sum() / mask.sum()"),
    "an argument": (
        "weight[weight < 0] = 0\nreturn weight\n",
        "`weight` is an argument: in PyNative mode the caller's",
    ),
    "another name": ("y = x / 2\nk = y\ny[y < 0] = 0\nreturn k + y\n", "row 8 gives `y` to another name"),
    "the name of another": ("y = x\ny[y < 0] = 0\nreturn x + y\n", "since row 7"),
    "a row": ("y = x[0]\ny[y < 0] = 0\nreturn y + x\n", "since row 7"),
    "a cast may hand on": (
        "y = x.astype(ms.float32)\ny[y < 0] = 0\nreturn y + x\n",
        "`y` may share its numbers with `x`",
    ),
    "an attribute": ("self.state[x > 0] = 0\nreturn x\n", "`self.state` is no local variable"),
    "one index of several": ("y = x / 2\ny[x > 0, 0] = 0\nreturn y\n", "one index of several"),
    "a tensor": ("y = x / 2\ny[y > 0] = x.mean()\nreturn y\n", "`x.mean()` is no number"),
    "truth values": ("y = x > 0\ny[x > 1] = 0\nreturn y * x\n", "holds truth values"),
    "integers and a float": ("y = x.astype(ms.int32) + 1\ny[y < 0] = 1.5\nreturn y * x\n", "holds integers"),
    "two names at once": ("k = y = ops.exp(x)\ny[y > 1] = 0\nreturn k + y\n", "share its numbers with another name"),
    "a name within an expression": (
        "k = (y := ops.exp(x))\ny[y > 1] = 0\nreturn k + y\n",
        "share its numbers with another name",
    ),
    "plus, which returns its operand": (
        "k = ops.exp(x)\ny = +k\ny[y > 1] = 0\nreturn k + y\n",
        "share its numbers with what `+k` is made of",
    ),
    "dropout, which may return its input": (
        "k = ops.exp(x)\ny = ops.dropout(k, p=0.0)\ny[y > 1] = 0\nreturn k + y\n",
        "share its numbers with what `ops.dropout(k, p=0.0)` is made of",
    ),
    "put into a list": ("y = x / 2\nk = []\nk.append(y)\ny[y > 1] = 0\nreturn k[0] + y\n", "gives `y` to another name"),
    "put into a dictionary": ("y = x / 2\nk = {0: y}\ny[y > 1] = 0\nreturn k[0] + y\n", "gives `y` to another name"),
    "one of two values": (
        "y = x / 2\nk = y if self.training else x\ny[y > 1] = 0\nreturn k + y\n",
        "gives `y` to another name",
    ),
    "in a comprehension": (
        "y = x / 2\nk = [y for _ in range(2)]\ny[y > 1] = 0\nreturn k[0] + y\n",
        "gives `y` to another name",
    ),
    "a view of it": (
        "y = x / 2\nk = y.reshape(-1)\ny[y > 1] = 0\nreturn k.sum() + y\n",
        "gives `y` to another name",
    ),
    "another tensor from the second round on": (
        "y = x / 2\nfor _ in range(3):\n    y[y < 0] = 1\n    y = label\nreturn y\n",
        "share its numbers with another name",
    ),
    "a name taken in an earlier round": (
        "y = x / 2\nk = x\nfor _ in range(3):\n    y[y < 0] = 1\n    k = y\nreturn k + y\n",
        "gives `y` to another name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_others_may_see_is_left_to_a_person(case: str, tmp_path: Path) -> None:
    body, reason = REFUSED[case]
    done = rewrite(tmp_path, "masked-fill", loss(body))
    assert done.failures == ()
    assert done.text == loss(body)
    assert any(reason in message for message in reasons(done)), reasons(done)


def test_the_message_names_what_is_taken_for_granted(tmp_path: Path) -> None:
    done = rewrite(tmp_path, "masked-fill", loss(REWRITTEN["a shape that is not known"][0]))
    (fix,) = [finding.fix for finding in done.applied]
    assert fix is not None
    assert "`label > 0` has the shape of `w`, not only its first axes" in fix.message


def test_graph_mode_writes_no_argument(tmp_path: Path) -> None:
    body = "x = ms.mutable(x)\nlabel[label < 0] = 0\nreturn label * x\n"
    text = loss(body) + "\n\nms.set_context(mode=ms.GRAPH_MODE)\n"
    done = rewrite(tmp_path, "masked-fill", text)
    assert "label = ops.where(label < 0, 0, label)" in done.text


def test_line_ends_survive(tmp_path: Path) -> None:
    before, after, _ = REWRITTEN["a mask of several lines with comments"]
    done = rewrite(tmp_path, "masked-fill", loss(before).replace("\n", "\r\n"))
    assert done.text == loss(after).replace("\n", "\r\n")
