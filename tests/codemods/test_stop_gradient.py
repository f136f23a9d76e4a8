"""What stop-gradient makes of the calls of frozen networks, as written by hand, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.registry import named
from mslint.commands.rewriting import Rewritten, rewrite_source
from mslint.config import NEWEST
from mslint.findings import Applicability
from mslint.program.project import Program
from mslint.source.text import read

FROZEN = """\
from mindspore import nn, ops


class Loss(nn.Cell):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = teacher
        for parameter in self.teacher.get_parameters():
            parameter.requires_grad = False
        self.distance = nn.MSELoss()

    def features(self, image):
        return self.teacher((image + 1) / 2)

    def construct(self, x, y):
"""
TRAINED = """

student, teacher = nn.Dense(4, 4), nn.Dense(4, 4)
loss = Loss(student, teacher)
step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
"""
ENCODER = """

class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(4, 4)

    def encode(self, x, scale=1):
        return self.layer(x) * scale
"""
# Shows how long lines may become in the file that it is part of.
ROOM = "ROOM = " + "1 + " * 26 + "1\n"


def rewrite(folder: Path, text: str, *, unsafe: bool = False, others: dict[str, str] | None = None) -> Rewritten:
    """Rewrite ``text``, a file of a project that also holds ``others``."""
    (folder / "pyproject.toml").touch()
    for name, content in (others or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "train.py"
    path.write_bytes(text.encode())
    return rewrite_source(read(path), Program([path]), named(["stop-gradient"]), unsafe, NEWEST)


def construct(body: str, head: str = FROZEN, tail: str = TRAINED) -> str:
    """Return a program whose loss computes ``body``."""
    return head + "".join(f"        {line}".rstrip() + "\n" for line in body.strip("\n").split("\n")) + tail


def why_not(done: Rewritten) -> list[str]:
    return [finding.fix.message for finding in done.left if finding.fix is not None]


SAFE = {
    "a call of its own, with its comment": (
        """
        wanted = self.teacher(x)  # what to match
        return self.distance(self.student(x), wanted)
        """,
        """
        wanted = ops.stop_gradient(self.teacher(x))  # what to match
        return self.distance(self.student(x), wanted)
        """,
    ),
    "a tuple": (
        """
        wanted, _ = self.teacher(x, y)
        return self.distance(self.student(x), wanted)
        """,
        """
        wanted, _ = ops.stop_gradient(self.teacher(x, y))
        return self.distance(self.student(x), wanted)
        """,
    ),
    "inside an expression, at the end of a chain": (
        "return (self.student(x) - self.teacher(x).mean(0) * 2).sum()",
        "return (self.student(x) - ops.stop_gradient(self.teacher(x)).mean(0) * 2).sum()",
    ),
    "an argument by keyword": (
        "return self.distance(logits=self.student(x), labels=self.teacher(inputs=x))",
        "return self.distance(logits=self.student(x), labels=ops.stop_gradient(self.teacher(inputs=x)))",
    ),
    "a walrus": (
        """
        if (wanted := self.teacher(x)) is not None:
            return self.distance(self.student(x), wanted)
        return self.student(x).sum()
        """,
        """
        if (wanted := ops.stop_gradient(self.teacher(x))) is not None:
            return self.distance(self.student(x), wanted)
        return self.student(x).sum()
        """,
    ),
    "a comprehension": (
        """
        wanted = [self.teacher(view) for view in (x, y)]
        return sum([self.distance(self.student(x), item) for item in wanted])
        """,
        """
        wanted = [ops.stop_gradient(self.teacher(view)) for view in (x, y)]
        return sum([self.distance(self.student(x), item) for item in wanted])
        """,
    ),
    "helper: the call on data is stopped, the one on the prediction is not": (
        "return self.distance(self.features(self.student(x)), self.features(y))",
        "return self.distance(self.features(self.student(x)), ops.stop_gradient(self.features(y)))",
    ),
    "arguments aligned with the bracket stay aligned": (
        """
        wanted = self.teacher(x,  # the batch
                              y)
        return self.distance(self.student(x), wanted)
        """,
        """
        wanted = ops.stop_gradient(self.teacher(x,  # the batch
                                                y))
        return self.distance(self.student(x), wanted)
        """,
    ),
    "rows aligned with a bracket behind the call move along": (
        """
        return self.distance(self.student(x), self.teacher(x) + ops.full_like(x,
                                                                              0.5))
        """,
        """
        return self.distance(self.student(x), ops.stop_gradient(self.teacher(x)) + ops.full_like(x,
                                                                                                 0.5))
        """,
    ),
    "a bracket that ends its row": (
        """
        wanted = self.teacher(
            x,
            y,
        )
        return self.distance(self.student(x), wanted)
        """,
        """
        wanted = ops.stop_gradient(self.teacher(
            x,
            y,
        ))
        return self.distance(self.student(x), wanted)
        """,
    ),
    "partly stopped before": (
        """
        first, second = self.teacher(x)
        first = ops.stop_gradient(first)
        return self.distance(self.student(x), first + second)
        """,
        """
        first, second = ops.stop_gradient(self.teacher(x))
        first = ops.stop_gradient(first)
        return self.distance(self.student(x), first + second)
        """,
    ),
    "unpacked into arguments": (
        "return self.distance(self.student(x), ops.add(*self.teacher(x)))",
        "return self.distance(self.student(x), ops.add(*ops.stop_gradient(self.teacher(x))))",
    ),
}


def body(text: str) -> str:
    lines = text.strip("\n").rstrip().split("\n")
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize("name", SAFE)
def test_what_nothing_trained_lies_behind_is_stopped(name: str, tmp_path: Path) -> None:
    before, after = (construct(body(text)) + ROOM for text in SAFE[name])
    done = rewrite(tmp_path, before)
    assert done.text == after
    assert rewrite(tmp_path, after).text == after


def test_a_method_of_the_network_and_the_file_s_own_name_for_the_operators(tmp_path: Path) -> None:
    head = FROZEN.replace("from mindspore import nn, ops", "import mindspore.nn as nn\nimport mindspore.ops as F")
    tail = (
        ENCODER
        + TRAINED.replace("teacher = nn.Dense(4, 4), nn.Dense(4, 4)", "teacher = nn.Dense(4, 4), Encoder()")
        + ROOM
    )
    text = construct("return self.distance(self.student(x), self.teacher.encode(x, scale=2))", head, tail)
    assert rewrite(tmp_path, text).text == text.replace(
        "self.teacher.encode(x, scale=2)", "F.stop_gradient(self.teacher.encode(x, scale=2))"
    )


def test_the_operators_are_imported_where_they_are_not(tmp_path: Path) -> None:
    text = construct("return self.distance(self.student(x), self.teacher(x))", FROZEN.replace(", ops", ""))
    text += ROOM
    assert rewrite(tmp_path, text).text == text.replace("import nn\n", "import nn, ops\n").replace(
        "self.teacher(x))", "ops.stop_gradient(self.teacher(x)))"
    )


TOO_LONG = {
    "a row below its sibling": (
        "return self.distance(self.student(x + y), self.teacher(x - y * 2 + 1))",
        "return self.distance(self.student(x + y),\n"
        "                             ops.stop_gradient(self.teacher(x - y * 2 + 1)))",
    ),
    "a row of its own": (
        "wanted_by_the_teacher = self.teacher((x - 0.485) / 0.229, y * 2)\n"
        "return self.distance(self.student(x), wanted_by_the_teacher)",
        "wanted_by_the_teacher = ops.stop_gradient(\n"
        "            self.teacher((x - 0.485) / 0.229, y * 2)\n"
        "        )\n"
        "        return self.distance(self.student(x), wanted_by_the_teacher)",
    ),
    "a tuple in rows": (
        "guess, first, second = self.student(x), self.teacher(x), self.teacher(y)\n"
        "return self.distance(guess, first) + self.distance(guess, second)",
        "guess, first, second = (\n"
        "            self.student(x),\n"
        "            ops.stop_gradient(self.teacher(x)),\n"
        "            ops.stop_gradient(self.teacher(y)),\n"
        "        )\n"
        "        return self.distance(guess, first) + self.distance(guess, second)",
    ),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_no_line_gets_longer_than_those_around_it(name: str, tmp_path: Path) -> None:
    before, after = TOO_LONG[name]
    done = rewrite(tmp_path, construct(before))
    assert done.text == FROZEN + f"        {after}\n" + TRAINED
    assert max(map(len, done.text.splitlines())) <= 79


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# -*- coding: utf-8 -*-\n"])
def test_tabs_line_ends_and_what_stands_at_the_top_survive(start: str, line_end: str, tmp_path: Path) -> None:
    text = construct("wanted = self.teacher(x)  # Ä\nreturn self.distance(self.student(x), wanted)")
    text = (start + text.replace("    ", "\t")).replace("\n", line_end)
    done = rewrite(tmp_path, text)
    assert done.text.lstrip("\ufeff") == text.lstrip("\ufeff").replace(
        "= self.teacher(x)", "= ops.stop_gradient(self.teacher(x))"
    )


PLAIN = construct("return self.distance(self.student(x), self.teacher(x))") + ROOM
DOUBTFUL = {
    "listed with the frozen ones": (
        PLAIN.replace("loss.trainable_params()", "loss.get_parameters()"),
        "parameters of `self.teacher` are among the weights",
    ),
    "frozen after the optimizer was built": (
        PLAIN.replace(
            "        for parameter in self.teacher.get_parameters():\n            parameter.requires_grad = False\n", ""
        )
        + "for parameter in teacher.get_parameters():\n    parameter.requires_grad = False\n",
        "parameters of `self.teacher` are among the weights",
    ),
    "differentiated by its inputs elsewhere": (
        PLAIN.replace("import nn, ops", "import grad, nn, ops") + "attack = grad(loss)\n",
        "the program may differentiate by inputs (row 24)",
    ),
    "frozen under a condition": (
        PLAIN.replace(
            "        for parameter in self.teacher.get_parameters():\n            parameter.requires_grad = False\n", ""
        ).replace(
            "loss = Loss(student, teacher)\n",
            "if os.environ['FREEZE']:\n    for parameter in teacher.get_parameters():\n"
            "        parameter.requires_grad = False\nloss = Loss(student, teacher)\n",
        ),
        "`self.teacher` is frozen only where `os.environ['FREEZE']` holds (row 21)",
    ),
    "nothing trains it": (
        PLAIN.replace(TRAINED, "\n").replace("self.student = student", "self.student = nn.Dense(4, 4)"),
        "what feeds and trains this code could not be followed",
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_numbers_that_may_change_are_not_safe(name: str, tmp_path: Path) -> None:
    text, reason = DOUBTFUL[name]
    done = rewrite(tmp_path, text)
    assert done.text == text
    assert [finding.fix.applicability for finding in done.left if finding.fix] == [Applicability.UNSAFE]
    assert reason in why_not(done)[0]
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text, unsafe=True).text


def test_a_test_around_all_of_the_training_is_none_on_the_freeze(tmp_path: Path) -> None:
    script = "".join(f"    {line}\n" for line in TRAINED.strip().split("\n"))
    text = PLAIN.replace(TRAINED, f"\n\nif os.environ['TRAIN']:\n{script}")
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text).text


def test_a_test_that_the_program_decides_is_none_either(tmp_path: Path) -> None:
    text = PLAIN.replace(
        "        for parameter in self.teacher.get_parameters():\n            parameter.requires_grad = False\n",
        "        if freeze:\n            for parameter in self.teacher.get_parameters():\n"
        "                parameter.requires_grad = False\n",
    ).replace("student, teacher):", "student, teacher, freeze=True):")
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text).text


def test_a_list_of_the_student_s_own_parameters_holds_no_teacher(tmp_path: Path) -> None:
    text = PLAIN.replace("loss.trainable_params()", "student.get_parameters()")
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text).text


THAWED = {
    "a weight": "self.teacher.weight.requires_grad = True",
    "a weight by setattr": 'setattr(self.teacher.weight, "requires_grad", True)',
    "some parameters by their names": (
        'for name, parameter in self.parameters_and_names():\n            parameter.requires_grad = "bias" in name'
    ),
}


@pytest.mark.parametrize("name", THAWED)
def test_what_is_partly_trained_again_is_not_stopped(name: str, tmp_path: Path) -> None:
    text = PLAIN.replace("        self.distance =", f"        {THAWED[name]}\n        self.distance =")
    done = rewrite(tmp_path, text, unsafe=True)
    assert done.text == text


def test_a_weight_of_the_student_says_nothing_of_the_teacher(tmp_path: Path) -> None:
    text = PLAIN.replace(
        "        self.distance =", "        self.student.weight.requires_grad = True\n        self.distance ="
    )
    assert "ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text).text


OBJECTS = {
    "a field": ("out = self.teacher(x)\nreturn self.distance(self.student(x), out) + out.logits.mean()", "logits"),
    "a distribution": ("return self.distance(self.student(x), self.teacher(x).sample())", "sample"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_left_to_a_person(name: str, tmp_path: Path) -> None:
    before, part = OBJECTS[name]
    done = rewrite(tmp_path, construct(before), unsafe=True)
    assert done.text == construct(before)
    assert why_not(done) == [
        f"the output is read through `.{part}`, so it is an object and no tensor, which ops.stop_gradient does not stop; "
        "put ops.stop_gradient around the tensors that are taken from it"
    ]


def test_facts_of_a_tensor_are_no_object(tmp_path: Path) -> None:
    text = construct("wanted = self.teacher(x)\nreturn self.distance(self.student(x), wanted) / wanted.shape[0]")
    assert "wanted = ops.stop_gradient(self.teacher(x))" in rewrite(tmp_path, text).text


def test_a_call_that_also_runs_what_is_trained_is_left_to_a_person(tmp_path: Path) -> None:
    text = """\
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.trunk = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 8))
        self.head = nn.Dense(8, 2)

    def construct(self, x):
        return self.head(self.trunk(x))


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.entropy = nn.CrossEntropyLoss()

    def construct(self, x, label):
        return self.entropy(self.net(x), label)


class HeadLoss(Loss):
    def construct(self, x, label):
        return self.entropy(self.net(x), label) * 2


net = Net()
whole = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params()))
head = nn.TrainOneStepCell(HeadLoss(net), nn.SGD(net.head.trainable_params()))
"""
    done = rewrite(tmp_path, text, unsafe=True)
    assert done.text == text
    assert why_not(done) == [
        "the call runs `self.trunk` together with parts that are trained; let it return the features of `self.trunk`, put "
        "ops.stop_gradient around them, then run the trained parts"
    ]


def test_a_loss_in_another_file_than_what_trains_it(tmp_path: Path) -> None:
    loss = construct("return self.distance(self.student(x), self.teacher(x))", tail=f"\n\n{ROOM}")
    trainer = f"from mindspore import nn\nfrom train import Loss\n{TRAINED}"
    done = rewrite(tmp_path, loss, others={"main.py": trainer})
    assert done.text == loss.replace("self.teacher(x))", "ops.stop_gradient(self.teacher(x)))")


LISTED = {
    "behind stars": "weights = [*student.trainable_params(), *{}]",
    "behind many stars": "weights = [*student.trainable_params(), "
    + "*nn.Dense(2, 2).trainable_params(), " * 7
    + "*{}]",
    "of many networks": "weights = [w for net in (student, "
    + "nn.Dense(2, 2), " * 7
    + "teacher) for w in net.trainable_params()]",
    "of many networks by name": "nets = dict(a=student, "
    + ", ".join(f"n{i}=nn.Dense(2, 2)" for i in range(7))
    + ", t=teacher)\nweights = []\nfor name, net in nets.items():\n    weights += net.trainable_params()",
    "one by one": "weights = [*student.trainable_params(), teacher.weight, teacher.bias]",
    "appended": "weights = list(student.trainable_params())\nfor weight in {}:\n    weights.append(weight)",
    "by the name of a method": "weights = student.trainable_params()\nadd = weights.append\nadd(teacher.weight)",
    "put before": "weights = student.trainable_params()\nweights.insert(0, teacher.weight)",
    "extended": "weights = student.trainable_params()\nweights.extend([w for w in {} if w.ndim > 1])",
    "into a slice": "weights = student.trainable_params()\nweights[0:0] = {}",
    "in a deque": "from collections import deque\nweights = deque(student.trainable_params())\nweights += {}",
}


@pytest.mark.parametrize("how", LISTED)
def test_a_network_whose_weights_are_listed_is_trained(how: str, tmp_path: Path) -> None:
    text = FROZEN.replace(
        "        for parameter in self.teacher.get_parameters():\n            parameter.requires_grad = False\n", ""
    )
    text += "        return self.distance(self.student(x), self.teacher(x))\n"
    step = "\nstudent, teacher = nn.Dense(4, 4), nn.Dense(4, 4)\n{}\n"
    step += "step = nn.TrainOneStepCell(Loss(student, teacher), nn.SGD(weights))\n"
    trained = rewrite(tmp_path, text + step.format(LISTED[how].format("teacher.trainable_params()")), unsafe=True)
    assert not trained.changed
    alone = rewrite(tmp_path, text + step.format("weights = [*student.trainable_params(), *[]]"))
    assert "ops.stop_gradient(self.teacher(x))" in alone.text
