"""Texts of training scripts. Each is whole: what varies stands in front of what is common."""

from __future__ import annotations

NETWORK = """\
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

{setup}

class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(6, 5)
        self.relu = nn.ReLU()
        self.second = nn.Dense(5, 2)

    def construct(self, x):
        return self.second(self.relu(self.first(x)))


class WithLoss(nn.Cell):
    def __init__(self, network):
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, x, y):
        return ops.square(self.network(x) - y).mean()


def batches():
    for _ in range(3):
        yield np.random.rand(4, 6).astype(np.float32), np.random.rand(4, 2).astype(np.float32)


network = Network()
model = WithLoss(network)
optimizer = nn.SGD(network.trainable_params(), learning_rate=0.1)

"""


def script(body: str, setup: str = "") -> str:
    return NETWORK.replace("{setup}", setup) + body


STEP_CELL = """\
class TrainStep(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        {forward}
        return ops.depend(loss, self.optimizer(grads))

"""
GRAD_OPERATION = """\
loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)"""
VALUE_AND_GRAD = "loss, grads = ms.value_and_grad(self.network, None, self.weights)(x, y)"
LOOP = """\
train = TrainStep(model, optimizer).set_train()
for x, y in batches():
    print(train(Tensor(x), Tensor(y)))
"""


def step_cell(forward: str, loop: str = LOOP, setup: str = "") -> str:
    return script(STEP_CELL.replace("{forward}", forward) + loop, setup)
