"""What freeze-parameters makes of switches that freeze nothing, as written by hand, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.registry import named
from mslint.commands.rewriting import Rewritten, rewrite_source
from mslint.config import NEWEST
from mslint.findings import Applicability
from mslint.program.project import Program
from mslint.source.text import read

HEAD = """\
from mindspore import load_param_into_net, nn


class Loss(nn.Cell):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
"""
CONSTRUCT = """\
        self.distance = nn.MSELoss()

    def construct(self, x):
        return self.distance(self.student(x), self.teacher(x))


"""
SCRIPT = """\
student, teacher = nn.Dense(4, 4), nn.Dense(4, 4)
load_param_into_net(teacher, {})
loss = Loss(student, teacher)
step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
"""
PLAIN = "self.teacher = teacher\nself.teacher.set_grad(False)"


def program(init: str = "self.teacher = teacher", script: str = SCRIPT) -> str:
    """Return a program whose loss is built by ``init`` and trained by ``script``."""
    return HEAD + "".join(f"        {line}\n" for line in init.split("\n")) + CONSTRUCT + script


def rewrite(
    folder: Path,
    text: str,
    *,
    unsafe: bool = True,
    codemod: str = "freeze-parameters",
    others: dict[str, str] | None = None,
) -> Rewritten:
    """Rewrite ``text``, a file of a project that also holds ``others``."""
    (folder / "pyproject.toml").touch()
    for name, content in (others or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "train.py"
    path.write_bytes(text.encode())
    return rewrite_source(read(path), Program([path]), named([codemod]), unsafe, NEWEST)


def why_not(done: Rewritten) -> list[str]:
    return [finding.fix.message for finding in done.left if finding.fix is not None]


IN_INIT = {
    "set_grad goes, its comments stay": (
        """\
        self.teacher = teacher
        # it knows all
        self.teacher.set_grad(False)  # frozen""",
        """\
        self.teacher = teacher
        # it knows all
        for param in self.teacher.get_parameters():  # frozen
            param.requires_grad = False""",
    ),
    "set_train stays": (
        "self.teacher = teacher\nself.teacher.set_train(False)  # no dropout",
        """\
        self.teacher = teacher
        self.teacher.set_train(False)  # no dropout
        for param in self.teacher.get_parameters():
            param.requires_grad = False""",
    ),
    "both: one loop": (
        "self.teacher = teacher\nself.teacher.set_train(False)\nself.teacher.set_grad(requires_grad=False)",
        """\
        self.teacher = teacher
        self.teacher.set_train(False)
        for param in self.teacher.get_parameters():
            param.requires_grad = False""",
    ),
    "set_grad in an assignment": (
        "self.teacher = teacher.set_grad(False)",
        """\
        self.teacher = teacher
        for param in self.teacher.get_parameters():
            param.requires_grad = False""",
    ),
    "set_grad in a chain that goes on": (
        "self.teacher = teacher.set_grad(False).set_train(False)",
        """\
        self.teacher = teacher.set_train(False)
        for param in self.teacher.get_parameters():
            param.requires_grad = False""",
    ),
    "a name that is taken": (
        "param = 3\nself.teacher = teacher\nself.teacher.set_grad(False)",
        """\
        param = 3
        self.teacher = teacher
        for parameter in self.teacher.get_parameters():
            parameter.requires_grad = False""",
    ),
    "under a condition, in a loop": (
        "self.teacher = teacher\nfor net in [teacher]:\n    net.set_grad(False)",
        """\
        self.teacher = teacher
        for net in [teacher]:
            for param in net.get_parameters():
                param.requires_grad = False""",
    ),
}


def indented(text: str) -> str:
    """Return the lines of ``text`` as they stand in ``__init__``, whether they were written with its margin or without."""
    return "\n".join(line.removeprefix("        ") for line in text.split("\n"))


@pytest.mark.parametrize("name", IN_INIT)
def test_the_loop_stands_where_the_switch_stood(name: str, tmp_path: Path) -> None:
    before, after = (program(indented(text)) for text in IN_INIT[name])
    assert rewrite(tmp_path, before, unsafe=False).text == before
    done = rewrite(tmp_path, before)
    assert done.text == after
    assert {finding.fix.applicability for finding in done.applied if finding.fix} == {Applicability.UNSAFE}
    assert rewrite(tmp_path, after).text == after


def test_the_file_s_own_name_for_a_parameter(tmp_path: Path) -> None:
    text = program(PLAIN, SCRIPT + "for weight in nn.Dense(2, 2).get_parameters():\n    weight.requires_grad = False\n")
    assert (
        "for weight in self.teacher.get_parameters():\n            weight.requires_grad" in rewrite(tmp_path, text).text
    )


def test_a_function_that_builds_the_network(tmp_path: Path) -> None:
    builder = "def build():\n    net = nn.Dense(4, 4)\n    return net.set_grad(False)\n\n\n"
    script = SCRIPT.replace("nn.Dense(4, 4), nn.Dense(4, 4)", "nn.Dense(4, 4), build()")
    after = builder.replace(
        "    return net.set_grad(False)",
        "    for param in net.get_parameters():\n        param.requires_grad = False\n    return net",
    )
    assert rewrite(tmp_path, program(script=builder + script)).text == program(script=after + script)


OFF = "loss.teacher.set_grad(False)"
LATE = SCRIPT.replace("step = ", f"{OFF}\nstep = ").replace("nn.SGD(loss.trainable_params())", "optimizer")


def late(listing: str) -> str:
    return LATE.replace(OFF, f"optimizer = nn.SGD(loss.{listing}())\n{OFF}")


@pytest.mark.parametrize("listing", ["trainable_params", "get_parameters"])
def test_what_is_switched_off_after_the_optimizer_was_built_is_frozen_before(listing: str, tmp_path: Path) -> None:
    loop = "for param in loss.teacher.get_parameters():\n    param.requires_grad = False\n"
    optimizer = "optimizer = nn.SGD(loss.trainable_params())\n"
    after = program(script=LATE.replace("loss.teacher.set_grad(False)\n", loop + optimizer))
    assert rewrite(tmp_path, program(script=late(listing))).text == after


def test_frozen_parameters_leave_the_list_of_the_optimizer(tmp_path: Path) -> None:
    text = program(PLAIN, SCRIPT.replace("trainable_params", "get_parameters"))
    done = rewrite(tmp_path, text)
    assert "for param in self.teacher.get_parameters():" in done.text
    assert done.text.endswith("nn.SGD(loss.trainable_params()))\n")


TURNS = (
    SCRIPT
    + "\n\nclass Own(nn.Cell):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n\n"
    + "    def construct(self, x):\n        return self.net(x).mean()\n\n\n"
    + "own = nn.TrainOneStepCell(Own(teacher), nn.SGD(teacher.trainable_params()))\n"
)
REFUSED = {
    "listed in a variable before": (
        program(
            script=SCRIPT.replace("step = ", f"weights = loss.trainable_params()\n{OFF}\nstep = ").replace(
                "nn.SGD(loss.trainable_params())", "nn.SGD(weights)"
            )
        ),
        "weights are listed above (row 18), and frozen parameters stay in a list that has them",
    ),
    "trained by another step": (program(PLAIN, TURNS), "another step (row 31) trains the network"),
    "in a larger expression": (
        program("self.teacher = teacher\nself.others = [self.teacher.set_grad(False)]"),
        "the switch is part of a larger expression",
    ),
    "beside another statement": (
        program("self.teacher = teacher; self.teacher.set_grad(False)"),
        "the switch shares its row with other statements",
    ),
    "in the row of a condition": (
        program("self.teacher = teacher\nif student is not None: self.teacher.set_grad(False)"),
        "the switch shares its row with other statements",
    ),
    "the network alone in a group": (
        program(
            script=SCRIPT.replace(
                "step = ", f"{OFF}\ngroups = [{{'params': teacher.trainable_params(), 'lr': 0.1}}]\nstep = "
            ).replace("nn.SGD(loss.trainable_params())", "nn.SGD(groups + [{'params': student.trainable_params()}])")
        ),
        "a group of this network's parameters alone (row 19), which would be empty",
    ),
    "long after the optimizer": (
        program(
            script=late("trainable_params").replace(
                "loss.teacher.set_grad(False)", "if 1:\n    loss.teacher.set_grad(False)"
            )
        ),
        "the optimizer (row 18) lists the weights before this row is reached",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_to_a_person_is_left_with_a_reason(name: str, tmp_path: Path) -> None:
    text, reason = REFUSED[name]
    done = rewrite(tmp_path, text)
    assert done.text == text
    assert [reason in message for message in why_not(done)] == [True]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# -*- coding: utf-8 -*-\n"])
def test_tabs_line_ends_and_what_stands_at_the_top_survive(start: str, line_end: str, tmp_path: Path) -> None:
    text = (start + program(PLAIN + "  # Ä").replace("    ", "\t")).replace("\n", line_end)
    loop = f"for param in self.teacher.get_parameters():  # Ä{line_end}\t\t\tparam.requires_grad = False"
    done = rewrite(tmp_path, text)
    assert done.text.lstrip("\ufeff") == text.lstrip("\ufeff").replace("self.teacher.set_grad(False)  # Ä", loop)


PICKED = {
    "a comprehension": "weights = [p for p in loss.trainable_params() if 'teacher' not in p.name]\n",
    "a filter": "weights = list(filter(lambda p: 'student' in p.name, loss.trainable_params()))\n",
    "a loop": (
        "weights = []\nfor p in loss.trainable_params():\n    if p.name.startswith('student'):\n        weights.append(p)\n"
    ),
}


@pytest.mark.parametrize("name", PICKED)
def test_weights_that_are_picked_by_a_test_may_leave_the_network_out(name: str, tmp_path: Path) -> None:
    script = SCRIPT.replace("step = ", f"{PICKED[name]}step = ").replace("SGD(loss.trainable_params())", "SGD(weights)")
    (finding,) = rewrite(tmp_path, program(PLAIN, script), unsafe=False).left
    assert finding.fix is not None
    assert "it takes for granted that the test which picks the weights" in finding.fix.message
    assert "unless the test that picks them leaves it out" in finding.message


def test_an_optimizer_in_another_file_is_built_later(tmp_path: Path) -> None:
    loss = program(PLAIN, "")
    script = "from mindspore import load_param_into_net, nn\nfrom train import Loss\n\n" + SCRIPT
    done = rewrite(tmp_path, loss, others={"main.py": script})
    assert "for param in self.teacher.get_parameters():" in done.text
    listed = script.replace("trainable_params", "get_parameters")
    refused = rewrite(tmp_path, loss, others={"main.py": listed})
    assert refused.text == loss
    assert "the optimizer (main.py, row 7) gets frozen parameters, too" in why_not(refused)[0]


def test_what_was_frozen_can_be_stopped_then(tmp_path: Path) -> None:
    frozen = rewrite(tmp_path, program(PLAIN)).text
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, frozen, codemod="stop-gradient", unsafe=False).text
