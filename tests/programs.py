"""Small programs that tests of several parts write into files."""

HUSHED = """from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x):
        return self.dense(x)


class Loss(nn.Cell):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = teacher
        self.student = student
        self.teacher.set_grad(False)
        self.mse = nn.MSELoss()

    def construct(self, x):
        return self.mse(self.student(x), self.teacher(x))
"""
"""A network, and a loss that means to freeze its teacher by ``set_grad(False)``."""

HUSHED_STEP = """from mindspore import nn
from nets import Net, Loss

loss = Loss(Net(), Net())
step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
step(1)
"""
"""A script that trains both; ``nets`` holds them."""
