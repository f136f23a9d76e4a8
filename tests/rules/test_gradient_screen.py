"""Which files the rule about GradOperation reads with libcst."""

from __future__ import annotations

import ast

import pytest

from mslint.rules.autodiff.gradient_screen import takes_gradient


@pytest.mark.parametrize(
    "text",
    [
        "from mindspore import ops\nop = ops.GradOperation(get_by_list=True)",
        "from mindspore.ops import GradOperation as G\nop = G(False, True)",
        "from functools import partial\nfrom mindspore.ops import *\nop = partial(GradOperation, get_by_list=True)",
        "from common import by_weights\nclass A:\n    def __init__(self):\n        self.grad = by_weights(get_by_list=True)",
        "import common as c\nop = c.G(False, True)",
        "from common import by_weights\nop = by_weights(**options)",
        "from mindspore import nn\nclass Step(nn.TrainOneStepCell): pass",
        "from mindspore.nn import TrainOneStepWithLossScaleCell as Base\nclass Step(Base): pass",
        "from .steps import Base\nStart = Base\nclass Step(Start): pass",
        "import steps\ndef make():\n    class Step(steps.Base):\n        pass",
    ],
)
def test_what_may_build_or_inherit_an_operator_is_let_in(text: str) -> None:
    assert takes_gradient(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from mindspore import nn\nstep = nn.TrainOneStepCell(net, optimizer)",
        "from steps import TrainOneStep\nstep = TrainOneStep(net, optimizer)",
        "import mindspore as ms\nclass Solver:\n    def fit(self):\n        self.grad_fn = ms.value_and_grad(f, None, w)",
        '"""Unlike GradOperation."""\nfrom mindspore import nn\nclass Net(nn.Cell): pass',
    ],
)
def test_what_only_uses_a_step_is_not(text: str) -> None:
    assert not takes_gradient(ast.parse(text))
