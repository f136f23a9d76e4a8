"""Which files the rules about losses read with libcst, by what the names and statements in them may mean."""

from __future__ import annotations

import ast
import sys
from textwrap import dedent, indent

import pytest

from mslint.engine import passing
from mslint.rules.base import Rule
from mslint.rules.registry import all_rules

_FILE = """
import numpy as np
import mindspore as ms
from mindspore import nn, ops
from mindspore.ops import functional as F, less as below, stack as together
from layers import joined
{outside}

class Net(nn.Cell):
    def __init__(self, smooth=1e-8, power=-8):
        super().__init__()
        self.tiny = smooth
        self.power = power
        self.add = ops.Add()

    def construct(self, x, y, scores):
{inside}
"""


def is_let_in(code: str, inside: str, outside: str = "") -> bool:
    """Tell whether the rule ``code`` is to read a file with a Cell whose ``construct`` has the body ``inside``."""
    text = _FILE.format(inside=indent(dedent(inside).strip(), " " * 8), outside=outside)
    return bool(passing([rule for rule in all_rules() if rule.code == code], ast.parse(text)))


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("return ops.log(x + 1e-8)", ""),
        ("return ops.log(x + 10 ** -8)", ""),
        ("return ops.log(x + 10**self.power)", ""),
        ("return ops.log(x + self.tiny)", ""),
        ("return ops.log(x + ops.cast(1 / 1e8, y.dtype))", ""),
        ("return ops.log(x + (TINY if self.training else 0))", "TINY = 2 * 5e-9"),
        ("return ops.log(x + SMALL)", "from .constants import SMALL"),
        ("return ops.log(x + constants.SMALL)", "from project import constants"),
        ("return ops.log(x + SMALL)", "from project.constants import *"),
        ("return x / (y.sum(-1) + eps)", ""),
        ("x += 1e-8\nreturn ops.log(x)", ""),
        ("return joined(self.add(x, 1e-8))", ""),
        ("return (y / x.add(1e-8)).log()", ""),
        ("return ops.log(x + np.float(1e-8))", ""),
        ("return ops.log(x + ops.neg(-1e-8))", ""),
        ("return ops.log(x + ops.div(1, 1e8, rounding_mode=None))", ""),
        ("t = 10\nt = t**-8\nreturn ops.log(x + t)", ""),
        ("return ops.log(x + c.SMALL)", "from project import constants\nc = constants"),
        ("self.SMALL = 3\nreturn ops.log(x + SMALL)", "from project.constants import *"),
        ("time = ops.softmax(x)\nreturn ops.log(time.add(1e-8))", "import time"),
    ],
)
def test_an_epsilon_is_seen_however_it_is_spelled(inside: str, outside: str) -> None:
    assert is_let_in("MS201", inside, outside)
    assert is_let_in("MS202", inside, outside)


def test_only_what_is_0_in_float16_counts_for_float16() -> None:
    for inside, is_0_in_half in {"return x / (y + 1e-6)": False, "return ops.clip(x, 1e-8)": True}.items():
        assert is_let_in("MS201", inside) != is_0_in_half
        assert is_let_in("MS202", inside) == is_0_in_half


@pytest.mark.parametrize("inside", ["return ops.clip(x, 0, 1 - 1e-12)", "return (1 + 1e-10) - x"])
def test_an_epsilon_beside_a_number_counts_if_float32_does_not_see_it(inside: str) -> None:
    assert is_let_in("MS201", inside)
    assert not is_let_in("MS201", inside.replace("1e-1", "1e-0"))


@pytest.mark.parametrize(
    "inside",
    [
        "return ops.log(x + 1)",
        "return ops.log(x) - 1e-8 * y",
        "return ops.add(x, y) + self.power",
        "count = 0\ncount = count + 1\nreturn (count + x) / ops.norm(y)",
        "print(str(x) + joined.name, 'a' + joined.name)",
    ],
)
def test_without_an_epsilon_there_is_nothing_to_read(inside: str) -> None:
    assert not is_let_in("MS201", inside)
    assert not is_let_in("MS202", inside)


def test_a_sum_too_deep_to_follow_is_let_in() -> None:
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # other tests run programs that set it higher
    try:
        assert is_let_in("MS201", "return " + " + ".join(["1"] * 1500))
    finally:
        sys.setrecursionlimit(usual)


def test_names_too_many_to_follow_for_one_rule_are_followed_anew_for_the_next() -> None:
    names = "\n".join(["n0 = 1e-8", *(f"n{i + 1} = n{i}" for i in range(1500))])
    tree = ast.parse(_FILE.format(inside=" " * 8 + "return ops.log(x + n1500)", outside=names))
    rules = [rule for rule in all_rules() if rule.code in ("MS201", "MS202")]
    assert passing(rules, tree) == rules


def loop(body: str, over: str = "range(x.shape[0])", before: str = "rows = []", after: str = "") -> str:
    return f"{before}\nfor i in {over}:\n{indent(dedent(body), '    ')}\n{after}"


@pytest.mark.parametrize(
    "inside",
    [
        loop("rows.append(ops.relu(x[i]))", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return together(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return joined(rows)"),
        loop("rows.append(x[i])", after="return ops.auto_generate.stack_ext(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="stack = ops.Stack()\nreturn stack(tuple(rows))"),
        loop("total += x[i : i + 1].sum()", before="total = 0"),
        loop("total = total - 1 + x[:, i]", before="total = 0"),
        loop("y[i] = ops.relu(x[i])"),
        loop("y = ops.where(x[i] > 0, x[i], y)"),
        loop("if i == 0:\n    y = x[i]\nelse:\n    y = ops.Concat(1)((y, x[i]))"),
        loop("total += i.max()", over="ops.relu(x)", before="total = 0"),
        loop("total += i", over="y", before="total = 0\ny, scores = scores[:, 0], 3"),
        "return ops.stack([ops.norm(row) for row in ops.relu(x)])",
        loop("y = joined((y, i))", over="self.layers"),
        "return ops.concat((ops.abs(x[:, 0:1] - y[:, 0:1]), ops.abs(x[:, 1:2] - y[:, 1:2])))",
        "left = x[..., 0]\nright = x[..., 1]\nreturn ops.exp(left) + ops.exp(right)",
        "return ops.relu(x[..., 0]), ops.relu(x[..., 2]), ops.relu(x[..., 5:])",
        "return x[1:, :-1] + x[:-1, 1:] + x[1:, 1:] + x[:-1, :-1] - 4 * x[1:-1, 1:-1]",
    ],
)
def test_rows_and_pieces_are_seen(inside: str) -> None:
    assert is_let_in("MS203", inside)


@pytest.mark.parametrize(
    "inside",
    [
        loop("y = self.layers[i](y)"),
        loop("y = ops.relu(y)\nrows.append(y)", after="return ops.stack(rows)"),
        loop("rows.append(ops.relu(x[i]))", after="return rows"),
        loop("rows.append(x[i].asnumpy())", after="return ops.stack(rows)"),
        loop("rows.append(np.sqrt(x[i]))", after="return ops.stack(rows)"),
        loop("total += i.value()", over="[1, 2]", before="total = 0"),
        loop("total += i", over="range(len(names))", before="total = 0\nnames = ['a']"),
        loop("y = i(x)", over="self.layers"),
        loop("total += self.weights[i]", before="total = 0"),
        "return x[:, :1] - x[:, 1:-1]",
        loop("count += 1", before="count = 0"),
        loop("y = np.concatenate((y, i))", over="self.layers"),
        "return [layer(x) for layer in self.layers]",
        "return ops.exp(x[..., 0:2]) + ops.exp(x[..., 4:6])",
        "return x[0] + x[1] + x[2]",
    ],
)
def test_other_loops_and_slices_are_not_read(inside: str) -> None:
    assert not is_let_in("MS203", inside)


@pytest.mark.parametrize(
    "inside",
    [
        "return x[y > 0]",
        "return x[:, ~(y == 0)]",
        "valid = y > 0\nmask = valid & (y < 9)\nreturn x[mask]",
        "return x[ops.less(y, 0).reshape(-1)]",
        "return x[below(y, 0)]",
        "return x[F.tensor_lt(y, 0)]",
        "return x[ms.ops.functional.tensor_lt(y, 0)]",
        "less = ops.Less()\nreturn x[ops.squeeze(less(y, 0))]",
        "return x[ops.cast(y, ms.bool_)]",
        "x[y.isnan()] = 0\nreturn x",
    ],
)
def test_a_mask_is_seen(inside: str) -> None:
    assert is_let_in("MS204", inside)


@pytest.mark.parametrize(
    "inside",
    [
        "return x[0] + x[:, 1:] + x[ops.argmax(y)]",
        "valid = y > 0\nreturn x * valid",
        "last = len(y) - 1\nreturn x[last]",
        "return x[y.astype(int)]",
        "return x[y is None]",
    ],
)
def test_an_index_that_nothing_compares_is_not_read(inside: str) -> None:
    assert not is_let_in("MS204", inside)


def test_a_screen_that_fails_keeps_no_file_out() -> None:
    class Misspelt(Rule):
        code, name, triggers, screen = "X1", "misspelt", (), "mslint.rules.loss.nowhere:has_mask"

    assert passing([Misspelt], ast.parse("x = 1")) == [Misspelt]
