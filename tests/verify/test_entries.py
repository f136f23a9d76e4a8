"""Every way in which scripts enter a training step, in both modes."""

from __future__ import annotations

import pytest

from mslint.findings import Verdict
from mslint.verify import Verification

from .conftest import Against
from .scripts import GRAD_OPERATION, LOOP, VALUE_AND_GRAD, script, step_cell

MODEL_LOOP = """\
from mindspore import dataset

data = dataset.NumpySlicesDataset(
    (np.random.rand(8, 6).astype(np.float32), np.random.rand(8, 2).astype(np.float32)), ["x", "y"]
)
ms.train.Model(TrainStep(model, optimizer).set_train()).{call}(1, data.batch(4), dataset_sink_mode={sink})
"""
FUNCTIONAL = """\
model.set_train()
model.set_grad()
{gradient}

def train_step(x, y):
    {call}
    optimizer(grads)
    return loss

for x, y in batches():
    print(train_step(Tensor(x), Tensor(y)))
"""
# Style: what the original and the rewritten script are.
STYLES = {
    "cell": (step_cell(GRAD_OPERATION), step_cell(VALUE_AND_GRAD)),
    "model_train": (
        step_cell(GRAD_OPERATION, MODEL_LOOP.format(call="train", sink=False)),
        step_cell(VALUE_AND_GRAD, MODEL_LOOP.format(call="train", sink=False)),
    ),
    "model_fit_sink": (
        step_cell(GRAD_OPERATION, MODEL_LOOP.format(call="fit", sink=True)),
        step_cell(VALUE_AND_GRAD, MODEL_LOOP.format(call="fit", sink=True)),
    ),
    "top_level": (
        script(
            FUNCTIONAL.format(
                gradient="gradient = ops.GradOperation(get_by_list=True)(model, optimizer.parameters)",
                call="loss = model(x, y)\n    grads = gradient(x, y)",
            )
        ),
        script(
            FUNCTIONAL.format(
                gradient="gradient = ms.value_and_grad(model, None, optimizer.parameters)",
                call="loss, grads = gradient(x, y)",
            )
        ),
    ),
    "grad_of_function": (
        script(
            FUNCTIONAL.format(
                gradient="def forward(x, y):\n    return model(x, y)\n\n"
                "gradient = ms.grad(forward, None, optimizer.parameters)",
                call="loss = forward(x, y)\n    grads = gradient(x, y)",
            )
        ),
        script(
            FUNCTIONAL.format(
                gradient="def forward(x, y):\n    return model(x, y)\n\n"
                "gradient = ms.value_and_grad(forward, None, optimizer.parameters)",
                call="loss, grads = gradient(x, y)",
            )
        ),
    ),
    "auxiliary": (
        script(
            FUNCTIONAL.format(
                gradient="def forward(x, y):\n    out = network(x)\n    return ops.square(out - y).mean(), out\n\n"
                "gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)",
                call="(loss, out), grads = gradient(x, y)",
            )
        ),
        script(
            FUNCTIONAL.format(
                gradient="gradient = ms.value_and_grad(model, None, optimizer.parameters)",
                call="loss, grads = gradient(x, y)",
            )
        ),
    ),
    "jit": (
        script(
            FUNCTIONAL.format(
                gradient="gradient = ms.value_and_grad(model, None, optimizer.parameters)",
                call="loss, grads = gradient(x, y)",
            ).replace("def train_step", "@ms.jit\ndef train_step")
        ),
        script(
            FUNCTIONAL.format(
                gradient="gradient = ops.GradOperation(get_by_list=True)(model, optimizer.parameters)",
                call="loss = model(x, y)\n    grads = gradient(x, y)",
            ).replace("def train_step", "@ms.jit\ndef train_step")
        ),
    ),
    "one_step_cell": (
        script(LOOP.replace("TrainStep(", "nn.TrainOneStepCell(")),
        step_cell(VALUE_AND_GRAD),
    ),
    "loss_scale_cell": (
        script(
            "train = nn.TrainOneStepWithLossScaleCell(model, optimizer, Tensor(8.0, ms.float32)).set_train()\n"
            "for x, y in batches():\n    print(train(Tensor(x), Tensor(y))[0])\n"
        ),
        script(
            "class Scaled(nn.TrainOneStepWithLossScaleCell):\n"
            "    def construct(self, x, y):\n"
            "        loss, grads = ms.value_and_grad(self.network, None, self.weights)(x, y)\n"
            "        status, grads = self.start_overflow_check(loss, grads)\n"
            "        overflow = self.process_loss_scale(self.get_overflow_status(status, grads))\n"
            "        if not overflow:\n"
            "            loss = ops.depend(loss, self.optimizer(grads))\n"
            "        return loss, overflow, self.scale_sense\n\n"
            "train = Scaled(model, optimizer, Tensor(8.0, ms.float32)).set_train()\n"
            "for x, y in batches():\n    print(train(Tensor(x), Tensor(y))[0])\n"
        ),
    ),
}


@pytest.fixture(scope="module", params=STYLES)
def verified(request: pytest.FixtureRequest, against: Against) -> tuple[str, Verification]:
    return request.param, against(*STYLES[request.param])


def test_equivalent_in_both_modes(verified: tuple[str, Verification]) -> None:
    style, verification = verified
    assert verification.verdict is Verdict.EQUIVALENT, (style, verification.reason)
    assert [mode.verdict for mode in verification.modes] == [Verdict.EQUIVALENT] * 2


def test_loss_gradients_and_parameters_were_seen(verified: tuple[str, Verification]) -> None:
    _, verification = verified
    for step in verification.steps:
        assert step.loss is not None
        assert step.gradients is not None
        assert step.gradients_from == "optimizer"
        assert step.parameters is not None


def test_accumulated_gradients_are_those_that_reach_the_optimizer(against: Against) -> None:
    """Two batches make one step: the second round belongs to it."""
    loop = (
        "sums = [ops.zeros_like(weight) for weight in optimizer.parameters]\n"
        "for number, (x, y) in enumerate(batches()):\n"
        "    {call}\n"
        "    sums = [one + other for one, other in zip(sums, grads)]\n"
        "    if number % 2:\n"
        "        optimizer(tuple(sums))\n"
    )
    original = script(
        "model.set_train()\nmodel.set_grad()\n"
        "gradient = ops.GradOperation(get_by_list=True)(model, optimizer.parameters)\n"
        + loop.format(call="grads = gradient(Tensor(x), Tensor(y))")
    )
    rewritten = script(
        "model.set_train()\n"
        "gradient = ms.value_and_grad(model, None, optimizer.parameters)\n"
        + loop.format(call="loss, grads = gradient(Tensor(x), Tensor(y))")
    )
    verification = against(original, rewritten)
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    for step in verification.steps:
        assert step.gradients_from == "optimizer"
        assert any("came round 1 more times" in remark for remark in step.remarks)


def test_a_function_of_an_imported_script(against: Against) -> None:
    """--entry: nothing below the guard runs, the function does."""
    text = step_cell(VALUE_AND_GRAD).replace("train = TrainStep", "def main():\n    train = TrainStep")
    body, loop = text.split("def main():\n", 1)
    text = body + "def main():\n" + loop.replace("\nfor x", "\n    for x").replace("\n    print", "\n        print")
    verification = against(text + "\nif __name__ == '__main__':\n    raise SystemExit(3)\n", text, entry="main")
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
