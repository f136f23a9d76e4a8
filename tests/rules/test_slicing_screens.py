"""What the screens of MS203 and MS204 tell from the spelling of a file, which the rules then need not read."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from mslint.rules.loss.mask_screen import has_mask
from mslint.rules.loss.slicing_screen import has_fragments

IMPORTS = """
import numpy as np
from mindspore import nn, ops
from mindspore.ops import functional as F, less as below, stack as together
from layers import joined
"""


def construct(body: str, imports: str = IMPORTS) -> ast.Module:
    """Return the tree of a file with a Cell whose ``construct`` has ``body``."""
    cell = f"class Net(nn.Cell):\n    def construct(self, x, y, scores):\n{indent(dedent(body), ' ' * 8)}"
    return ast.parse(f"{imports}\n{cell}")


def loop(body: str, over: str = "range(x.shape[0])", before: str = "rows = []", after: str = "") -> str:
    return f"{before}\nfor i in {over}:\n{indent(dedent(body), '    ')}\n{after}"


@pytest.mark.parametrize(
    "body",
    [
        loop("rows.append(ops.relu(x[i]))", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return together(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return joined(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="stack = ops.Stack()\nreturn stack(tuple(rows))"),
        loop("total += x[i : i + 1].sum()", before="total = 0"),
        loop("total = total + x[:, i] * y[:, i]", before="total = 0"),
        loop("total = total - 1 + x[:, i]", before="total = 0"),
        loop("y[i] = ops.relu(x[i])"),
        loop("y = ops.where(x[i] > 0, x[i], y)"),
        loop("if i == 0:\n    y = x[i]\nelse:\n    y = ops.concat((y, x[i]))"),
        loop("total += i.max()", over="ops.relu(x)", before="total = 0"),
        "return ops.stack([ops.norm(row) for row in ops.relu(x)])",
        loop("y = ops.concat((y, i))", over="self.layers"),
        loop("y = joined((y, i))", over="self.layers"),
        "return ops.concat((ops.abs(x[:, 0:1] - y[:, 0:1]), ops.abs(x[:, 1:2] - y[:, 1:2])))",
        "left = x[..., 0]\nright = x[..., 1]\nreturn ops.exp(left) + ops.exp(right)",
        "return ops.relu(x[..., 0]), ops.relu(x[..., 2]), ops.relu(x[..., 5:])",
        "return x[1:, :-1] + x[:-1, 1:] + x[1:, 1:] + x[:-1, :-1] - 4 * x[1:-1, 1:-1]",
    ],
)
def test_what_may_be_rows_or_pieces_is_let_in(body: str) -> None:
    assert has_fragments(construct(body))


@pytest.mark.parametrize(
    "body",
    [
        loop("y = self.layers[i](y)"),
        loop("y = ops.relu(y)\nrows.append(y)", after="return ops.stack(rows)"),
        loop("rows.append(y)", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return rows"),
        loop("rows.append(x[i].asnumpy())", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", over="range(3)", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", over="range(x.ndim)", after="return ops.stack(rows)"),
        loop("if total > 9:\n    break\ntotal += x[i].sum()", before="total = 0"),
        loop("total += x[i].sum()\nscores.append(total)", before="total = 0"),
        loop("total += i.value()", over="[x, y]", before="total = 0"),
        loop("total += self.weights[i]", before="total = 0"),
        loop("y = ops.concat((y, i))\nrows.append(y)", over="self.layers"),
        loop("y = i(x)\ny = ops.concat((y, x))", over="self.layers"),
        loop("if i > 2:\n    y = ops.concat((y, x))\ny = self.layer(x)"),
        loop("if x[i] > 0:\n    count += 1", before="count = 0"),
        loop("total += i", over="scores[0]", before="total = 0"),
        loop("y = np.concatenate((y, i))", over="self.layers"),
        "return [layer(x) for layer in self.layers]",
        "return ops.concat((x[:, 2:], x[:, :2]))",
        "return ops.exp(x[..., 0:2]) + ops.exp(x[..., 4:6])",
        "return x[:, 1:] - x[:, :-1]",
    ],
)
def test_what_cannot_be_rows_or_pieces_is_kept_out(body: str) -> None:
    assert not has_fragments(construct(body))


@pytest.mark.parametrize(
    "body",
    [
        "return x[y > 0]",
        "return x[:, ~(y == 0)]",
        "valid = y > 0\nmask = valid & (y < 9)\nreturn x[mask]",
        "return x[ops.less(y, 0).reshape(-1)]",
        "return x[below(y, 0)]",
        "return x[F.tensor_lt(y, 0)]",
        "return x[joined(y, 0)]",
        "less = ops.Less()\nreturn x[ops.squeeze(less(y, 0))]",
        "return x[y.astype(bool)]",
        "x[y.isnan()] = 0\nreturn x",
    ],
)
def test_what_may_be_a_mask_is_let_in(body: str) -> None:
    assert has_mask(construct(body))


@pytest.mark.parametrize(
    "body",
    [
        "return x[0] + x[:, 1:] + x[ops.argmax(y)]",
        "valid = y > 0\nreturn x * valid",
        "last = len(y) - 1\nreturn x[last]",
        "return x[y.astype(int)]",
        "return x[y is None]",
        "names = {'a': x}\nreturn names['a']",
    ],
)
def test_what_cannot_be_a_mask_is_kept_out(body: str) -> None:
    assert not has_mask(construct(body))


NOT_TRAINED = {
    "numpy": "def f(x):\n    y = np.sqrt(x)\n    return BODY\n",
    "__init__": "class Net(nn.Cell):\n    def __init__(self, x):\n        self.y = BODY\n",
    "metric": "class Recall(nn.Metric):\n    def update(self, x):\n        return BODY\n",
    "class in a function": "def f():\n    class Net(nn.Cell):\n        def construct(self, x):\n            return BODY\n",
    "no function": "y = BODY\n",
}


@pytest.mark.parametrize("around", NOT_TRAINED.values(), ids=NOT_TRAINED)
def test_what_training_does_not_run_is_kept_out(around: str) -> None:
    assert not has_mask(ast.parse(IMPORTS + around.replace("BODY", "x[x > 0]")))
    assert not has_fragments(ast.parse(IMPORTS + around.replace("BODY", "sum([row.max() for row in x.abs()])")))


@pytest.mark.parametrize("call", ["ops.relu(x)", "F.relu(x)", "joined(x)", "self.relu(x)"])
def test_what_calls_an_operator_may_be_trained(call: str) -> None:
    function = (
        f"def f(self, x):\n    y = np.sqrt(2) * {call}\n    return x[x > 0] + sum([row.max() for row in x.abs()])"
    )
    text = (
        f"{IMPORTS}\nclass Loss:\n    def __init__(self):\n        self.relu = nn.ReLU()\n{indent(function, '    ')}\n"
    )
    assert has_mask(ast.parse(text))
    assert has_fragments(ast.parse(text))
