"""Which files the rules about epsilons read with libcst, by how the epsilon and the operators are spelled."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from mslint.rules.loss.epsilon_screen import adds_epsilon, guards_half

_CELL = """
from mindspore import nn, ops
{outside}
class Loss(nn.Cell):
    def __init__(self, smooth=1e-8, power=-8):
        super().__init__()
        self.eps = power
        self.tiny = smooth
        self.add = ops.Add()
        self.log = ops.Log()

    def helper(self, x):
        return ops.abs(x) + 1e-8

    def construct(self, x, y):
{inside}
"""


def cell(inside: str, outside: str = "") -> ast.Module:
    """Return the tree of a Cell that computes ``inside``."""
    return ast.parse(_CELL.format(inside=indent(dedent(inside).strip(), " " * 8), outside=dedent(outside)))


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("return ops.log(x + 1e-8)", ""),
        ("return ops.log(x + 10 ** -8)", ""),
        ("return ops.log(x + self.eps)", ""),
        ("return ops.log(x + self.tiny)", ""),
        ("return ops.log(x + ops.cast(1 / 1e8, y.dtype))", ""),
        ("return ops.log(x + (TINY if self.training else 0))", "TINY = 2 * 5e-9"),
        ("return ops.log(x + SMALL)", "from .constants import SMALL"),
        ("return ops.log(x + constants.SMALL)", "from project import constants"),
        ("return ops.log(x + SMALL)", "from project.constants import *"),
        ("x += 1e-8\nreturn ops.log(x)", ""),
        ("return self.log(self.add(x, 1e-8))", ""),
        ("return logarithm(x + 1e-8)", "from mindspore.ops import log as logarithm"),
        ("return (y / x.add(1e-8)).log()", ""),
        ("return ops.log(self.helper(x))", ""),
        ("self.helper(y + 1e-8)\nreturn ops.log(x)", ""),
        ("return x / (ops.norm(x, dim=-1) + 1e-8)", ""),
        ("return x / ops.sqrt((x * x).sum(-1) + 1e-8)", ""),
        ("return ops.exp(x) / (ops.exp(x).sum(-1) + 1e-8)", ""),
        ("return x / (y.sum(-1) + 1e-8)", ""),
        ("return ops.softmax(x.reshape(y) + 1e-8)", ""),
        ("return ops.clip(x, 0, 1 - 1e-12)", ""),
        ("return (1 + 1e-10) - x", ""),
        ("y = x + 1e-8\nreturn y", ""),
    ],
)
def test_an_epsilon_is_let_in_however_it_is_spelled(inside: str, outside: str) -> None:
    assert adds_epsilon(cell(inside, outside))


@pytest.mark.parametrize(
    "inside",
    [
        "return ops.log(x + 1)",
        "return ops.log(x) - 1e-8 * y",
        "return (x * y).sum() / ((x + y).sum() + 1e-8)",
        "return ops.log(ops.softmax(x)) + np.log(y + 1e-8)",
        "return ops.sqrt((x - y) ** 2 + 1e-6)",
        "return ops.clip(x, 1e-8, 1 - 1e-6)",
        "count = 0\n    count = count + 1\n    return (count + x) / ops.norm(y)",
    ],
)
def test_an_epsilon_without_a_stable_form_is_kept_out(inside: str) -> None:
    imports = "import numpy as np\nfrom mindspore import ops"
    assert not adds_epsilon(ast.parse(f"{imports}\ndef loss(x, y):\n    {inside}\n"))


@pytest.mark.parametrize(
    ("text", "is_let_in"),
    [
        ("def f(x):\n    return x.astype(ms.float16) + 1e-8", True),
        ("def f(x):\n    return x.astype(float16) + 1e-8", True),
        ("def f(x, kind):\n    return x.astype(kind) + 1e-8", True),
        ("def f(x):\n    return x.half().clip(1e-8)", True),
        ("class Net:\n    def construct(self, x):\n        return x + 1e-8", True),
        ("def f(x):\n    return x.astype(ms.float32) + 1e-8", False),
        ("def f(x):\n    return x.astype(ms.float16) + 1e-6", False),
        ("class Net:\n    def construct(self, x):\n        return x + 1e-6", False),
        (
            "class Net:\n    def construct(self, x):\n        return x\n    def f(self, x):\n        return x + 1e-8",
            False,
        ),
        ("class Adam(ms.nn.Optimizer):\n    def construct(self, x):\n        return x + 1e-8", False),
        ("class Adam(ms.experimental.optim.Optimizer):\n    def construct(self, x):\n        return x + 1e-8", True),
    ],
)
def test_an_epsilon_is_let_in_where_it_is_0_in_float16(text: str, is_let_in: bool) -> None:
    assert guards_half(ast.parse(f"import mindspore as ms\nfrom mindspore import float16\n{text}\n")) == is_let_in


def test_a_sum_too_deep_to_follow_is_let_in() -> None:
    assert adds_epsilon(ast.parse("x = " + " + ".join(["1e-8"] * 1500)))
