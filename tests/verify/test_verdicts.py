"""What verify says of rewrites whose effect is known."""

from __future__ import annotations

import json

import pytest

from mslint.findings import Verdict
from mslint.report import verify_json, verify_text
from mslint.verify import Verification

from .conftest import Against
from .scripts import GRAD_OPERATION, LOOP, VALUE_AND_GRAD, script, step_cell

ORIGINAL = step_cell(GRAD_OPERATION)
STOPPED = ORIGINAL.replace("self.relu(self.first(x))", "ops.stop_gradient(self.relu(self.first(x)))")
DISTRIBUTED = "from mindspore.communication import init, get_rank, get_group_size"
ASCEND = """\
ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend", max_call_depth=2000)
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                             device_num=get_group_size())
assert get_rank() == 0
"""
REDUCING = step_cell(
    GRAD_OPERATION + "\n        grads = self.reducer(grads)",
    LOOP.replace("TrainStep(", "DistributedStep("),
    DISTRIBUTED + "\n" + ASCEND,
).replace("train = ", "class DistributedStep(TrainStep):\n    pass\n\ntrain = ")
GAN = script(
    "critic = Network()\n"
    "critic_model = WithLoss(critic)\n"
    "critic.update_parameters_name('critic.')\n"
    "critic_optimizer = nn.SGD(critic.trainable_params(), learning_rate=0.1)\n"
    "first = nn.TrainOneStepCell(model, optimizer).set_train()\n"
    "second = nn.TrainOneStepCell(critic_model, critic_optimizer).set_train()\n"
    "for x, y in batches():\n"
    "    x, y = Tensor(x), Tensor(y)\n"
    "    first(x, y)\n"
    "    first(x, y)\n"
    "    second(x, y)\n"
)


@pytest.fixture(scope="module")
def equivalent(against: Against) -> Verification:
    return against(ORIGINAL, step_cell(VALUE_AND_GRAD))


@pytest.fixture(scope="module")
def stopped(against: Against) -> Verification:
    return against(ORIGINAL, STOPPED)


def test_counts_of_a_net_counted_by_hand(equivalent: Verification) -> None:
    counts = equivalent.steps[0].before
    assert counts is not None
    # Two dense layers of a matrix product and a bias each, a ReLU between them; difference, square, mean.
    assert counts.operators["forward"] == {
        "MatMul": 2, "BiasAdd": 2, "ReLU": 1, "Sub": 1, "Square": 1, "ReduceMean": 1,
    }  # fmt: skip
    # Two biases, both weights and the product's input between the layers, the ReLU; 2*d*1/8 for the squared difference
    # d (a power, by the constant 2, by the gradient of the mean, which is a division).
    assert counts.operators["backward"] == {
        "BiasAddGrad": 2, "MatMul": 3, "ReluGrad": 1, "PowTensorScalar": 1, "Muls": 1, "Mul": 1, "RealDiv": 1,
    }  # fmt: skip
    # One update for each of the four parameters, and the step counter.
    assert counts.operators["optimizer"] == {"SGD": 4, "AssignAdd": 1}
    assert (counts.communication, counts.other, counts.subgraphs) == (0, 0, 0)
    # The ReLU's output, 4 x 5 floats, and the difference, 4 x 2 floats.
    assert counts.saved_bytes == (4 * 5 + 4 * 2) * 4


def test_an_equivalent_rewrite_is_bit_equal_in_both_modes(equivalent: Verification) -> None:
    assert equivalent.verdict is Verdict.EQUIVALENT
    for step in equivalent.steps:
        assert step.loss is not None
        assert step.gradients is not None
        assert step.parameters is not None
        assert step.loss.comparison.bit_equal
        assert step.gradients.bit_equal
        assert step.parameters.bit_equal


def test_stopped_gradients_differ_and_name_the_worst(stopped: Verification) -> None:
    assert stopped.verdict is Verdict.DIFFERENT
    for step in stopped.steps:
        assert step.loss is not None
        assert step.loss.comparison.bit_equal
        assert step.gradients is not None
        assert set(step.gradients.differing) == {"first.weight", "first.bias"}
        assert step.gradients.max_rel_diff == pytest.approx(1)
    graph, pynative = stopped.steps
    assert graph.before is not None
    assert graph.after is not None
    # The second layer's bias and weight, and the four operators of the squared difference.
    assert (graph.before.backward, graph.after.backward) == (10, 6)
    assert pynative.pynative_before is not None
    assert pynative.pynative_after is not None
    assert pynative.pynative_after.autograd_nodes < pynative.pynative_before.autograd_nodes


def test_a_scaled_loss_is_different(against: Against) -> None:
    verification = against(ORIGINAL, ORIGINAL.replace("- y).mean()", "- y).mean() * 2"), modes=["pynative"])
    assert verification.verdict is Verdict.DIFFERENT
    loss = verification.steps[0].loss
    assert loss is not None
    assert loss.after == pytest.approx(2 * loss.before)


def test_a_second_forward_moves_batch_statistics(against: Against) -> None:
    """Without set_grad PyNative runs the forward pass twice, with value_and_grad once; graph mode merges the two."""
    setup = "ms.set_context(mode=ms.PYNATIVE_MODE)"
    original, rewritten = (
        step_cell(forward, setup=setup)
        .replace("        self.network.set_grad()\n", "")
        .replace("self.relu = nn.ReLU()", "self.relu = nn.BatchNorm1d(5)")
        for forward in (GRAD_OPERATION, VALUE_AND_GRAD)
    )
    verification = against(original, rewritten)
    graph, pynative = verification.modes
    assert graph.verdict is Verdict.EQUIVALENT
    assert pynative.verdict is Verdict.DIFFERENT
    assert "relu.moving_mean, relu.moving_variance" in pynative.reason
    assert "loss, gradients equal" in pynative.reason
    step = pynative.steps[0]
    assert step.pynative_before is not None
    assert step.pynative_after is not None
    assert (step.pynative_before.forward_runs, step.pynative_after.forward_runs) == (2, 1)


def test_dropout_is_switched_off_if_its_masks_differ(against: Against) -> None:
    original, rewritten = (
        step_cell(forward)
        .replace("        self.network.set_grad()\n", "")
        .replace("self.relu = nn.ReLU()", "self.relu = nn.Dropout(p=0.5)")
        for forward in (GRAD_OPERATION, VALUE_AND_GRAD)
    )
    verification = against(original, rewritten, modes=["pynative"])
    assert verification.verdict is Verdict.EQUIVALENT
    assert "with dropout switched off on both sides" in verification.reason
    assert "dropout: identity, on both sides" in verification.stand_ins


def test_not_a_number_is_equal_to_itself(against: Against) -> None:
    infinite = ORIGINAL.replace("- y).mean()", "- y).mean() / 0.0 - 1.0 / Tensor(0.0, ms.float32)")
    verification = against(infinite, infinite + "\n", modes=["pynative"])
    assert verification.verdict is Verdict.EQUIVALENT
    loss = verification.steps[0].loss
    assert loss is not None
    assert loss.before != loss.before


def test_a_script_for_ascend_and_many_ranks_runs_unedited(against: Against) -> None:
    original = REDUCING.replace(
        "        self.grad = ops",
        "        self.reducer = nn.DistributedGradReducer(self.weights)\n        self.grad = ops",
    )
    verification = against(original, original.replace(GRAD_OPERATION, VALUE_AND_GRAD))
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    told = "\n".join(verification.stand_ins)
    for what in ("device_target='Ascend'", "init()", "parallel_mode=", "gradients_mean=True", "DistributedGradReducer"):
        assert what in told
    assert verification.modes[0].native_mode == "graph"


def test_a_second_network_has_a_step_of_its_own(against: Against) -> None:
    verification = against(GAN, GAN + "\n")
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    # The first network's step comes round before the second's begins: that makes no third one.
    assert [len(mode.steps) for mode in verification.modes] == [2, 2]
    names = [step.gradients for step in verification.steps]
    assert all(gradients is not None and gradients.bit_equal for gradients in names)


def test_code_that_does_not_compile_leaves_the_verdict_to_pynative(against: Against) -> None:
    original = ORIGINAL.replace(
        "        loss = self.network", "        seen.append(float(x.asnumpy().sum()))\n        loss = self.network"
    )
    original = original.replace("class TrainStep", "seen = []\n\nclass TrainStep").replace(
        "        return self.second", "        import os\n        os.getpid()\n        return self.second"
    )
    verification = against(original, original.replace(GRAD_OPERATION, VALUE_AND_GRAD))
    assert verification.verdict is Verdict.EQUIVALENT
    assert verification.modes[0].verdict is Verdict.UNVERIFIED
    assert "graph mode not verified: " in verification.reason


def test_json_keeps_the_contract(stopped: Verification) -> None:
    document = json.loads(verify_json.render(stopped))
    assert document["verdict"] == "different"
    assert document["mode"] == "both"
    assert [step["mode"] for step in document["steps"]] == ["graph", "pynative"]
    for key in ("mindspore", "script", "codemods", "reason", "stand_ins"):
        assert key in document
    step = document["steps"][0]
    for side in ("before", "after"):
        assert set(step[side]) >= {
            "forward", "backward", "optimizer", "communication", "other", "subgraphs", "saved_bytes", "peak_bytes",
            "by_operator",
        }  # fmt: skip
    assert set(step["loss"]) >= {"before", "after", "max_abs_diff"}
    assert set(step["gradients"]) >= {"names_equal", "max_abs_diff", "max_rel_diff", "worst"}
    assert step["time_ms"] is None


def test_text_ends_with_the_verdict(stopped: Verification) -> None:
    lines = verify_text.render(stopped).splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.split()[:4] == ["backward", "nodes", "10", "6"] for line in lines)
    last = " ".join(lines[max(index for index, line in enumerate(lines) if not line) :]).strip()
    assert last.startswith("different: ")


def test_a_graph_without_mindir_is_compared_by_its_numbers(against: Against) -> None:
    """Python code inside the graph (PyExecute) cannot be written as MindIR; the step runs all the same."""
    original = ORIGINAL.replace(
        "return ops.depend(loss, self.optimizer(grads))",
        "self.optimizer(grads)\n        value = loss.asnumpy()\n        return {'loss': loss, 'value': Tensor(value)}",
    ).replace("print(train(Tensor(x), Tensor(y)))", "print(train(Tensor(x), Tensor(y))['loss'])")
    verification = against(original, original.replace(GRAD_OPERATION, VALUE_AND_GRAD), modes=["graph"])
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    step = verification.steps[0]
    assert step.before is None
    assert step.gradients_from == "optimizer"
    assert any("no MindIR of TrainStep" in remark for remark in step.remarks)


def test_equal_names_of_two_networks_are_told_apart(against: Against) -> None:
    body = (
        "other = Network()\n"
        "other_optimizer = nn.SGD(other.trainable_params(), learning_rate=0.1)\n"
        "one = ms.value_and_grad(model, None, optimizer.parameters)\n"
        "two = ms.value_and_grad(WithLoss(other), None, other_optimizer.parameters)\n"
        "for x, y in batches():\n"
        "    loss, first = one(Tensor(x), Tensor(y))\n"
        "    loss, second = two(Tensor(x), Tensor(y))\n"
        "    optimizer({first})\n"
        "    other_optimizer(second)\n"
    )
    original, rewritten = (script(body.format(first=first)) for first in ("first", "[2 * item for item in first]"))
    verification = against(original, rewritten, modes=["pynative"])
    assert verification.verdict is Verdict.DIFFERENT
    gradients = verification.steps[0].gradients
    assert gradients is not None
    names = {"first.weight", "first.bias", "second.weight", "second.bias"}
    assert set(gradients.differing) == names
