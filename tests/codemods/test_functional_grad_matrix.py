"""Every way to write a training step with GradOperation, rewritten, then run before and after by MindSpore.

Each combination is a script of its own. In graph and in PyNative mode one child process runs all of them, and what the old
script and the new one compute must not differ in a single bit. What is not rewritten must say why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent

import pytest
from running import require_mindspore

from codemods.registry import named
from mslint.commands.rewriting import Rewritten, rewrite_source
from mslint.config import NEWEST
from mslint.program.project import Program
from mslint.rules.registry import all_rules
from mslint.source.text import read

# What weighs the loss, by how it is written: the expression, and what the script hands to the step beside its inputs.
FILLED = {
    "number": "ops.fill(loss.dtype, loss.shape, 3.0)",
    "attribute": "ops.fill(loss.dtype, loss.shape, self.sens)",
    "config": "ops.fill(loss.dtype, loss.shape, Config.scale)",
    "ones": "ops.ones_like(loss)",
    "Parameter": "ops.ones_like(loss) * self.factor",
    "Tensor": "ops.ones_like(loss) * self.tensor",
    "argument": "ops.ones_like(loss) * scale",
}
WHOLE = {"handed over": "self.tensor", "keyword": "sens=self.tensor"}
TUPLES = {
    "one output": "(ops.fill(loss.dtype, loss.shape, 3.0), ops.zeros_like(extra))",
    "both outputs": "(ops.ones_like(loss) * self.tensor, ops.ones_like(extra) * 2.0)",
}
INPUTS = {"one": "x", "two": "x, y", "starred": "*inputs"}
STYLES = ("attribute", "local", "kept", "helper", "inherited", "subclass", "function", "variable")


@dataclass(frozen=True)
class Combination:
    """One way to write the step."""

    style: str = "attribute"
    get_all: bool = False
    get_by_list: bool = True
    sens: str = ""
    weights: bool = True
    inputs: str = "two"
    outputs: int = 1
    forward: bool = True
    both: bool = False
    """With ``get_all``: whether the gradients of the inputs are used too."""

    @property
    def name(self) -> str:
        """A name that a module can have."""
        flags = [
            *(["all"] if self.get_all else []),
            *(["by_list"] if self.get_by_list else []),
            *([self.sens] if self.sens else []),
            *([] if self.weights else ["unnamed"]),
            self.inputs,
            *(["tuple"] if self.outputs > 1 else []),
            *([] if self.forward else ["alone"]),
            *(["both"] if self.both else []),
        ]
        return "_".join([self.style, *flags]).replace(" ", "_")

    @property
    def text(self) -> str:
        """The script."""
        return HEAD + _network(self) + (_function(self) if self.style in ("function", "variable") else _cell(self))


HEAD = """\
import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Config:
    scale = 0.5


BATCH = [ms.Tensor(np.linspace(0, 1, 6).reshape(2, 3), ms.float32), ms.Tensor([[1.0], [-1.0]])]


"""


def _network(one: Combination) -> str:
    loss = "((self.dense(x) - y) ** 2).mean()" if one.inputs != "one" else "(self.dense(x) ** 2).mean()"
    extra = ", (self.dense(x) * 0.3).sum()" if one.outputs > 1 else ""
    return (
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        '        self.dense = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")\n\n'
        f"    def construct(self, x{', y' if one.inputs != 'one' else ''}):\n        return {loss}{extra}\n\n\n"
    )


def _operator(one: Combination) -> str:
    options = {"get_all": one.get_all, "get_by_list": one.get_by_list, "sens_param": bool(one.sens)}
    return f"ops.GradOperation({', '.join(f'{option}=True' for option, on in options.items() if on)})"


def _sens(one: Combination) -> str:
    return {"": "", **FILLED, **WHOLE, **TUPLES}[one.sens]


def _body(one: Combination, network: str, gradient: str) -> str:
    """Return what the step does; ``gradient`` is the gradient function."""
    outputs = "loss, extra" if one.outputs > 1 else "loss"
    lines = [f"{outputs} = {network}({INPUTS[one.inputs]})"] if one.forward else []
    sens = _sens(one)
    if one.sens in FILLED or one.sens in TUPLES:
        lines.append(f"sens = {sens}")
        sens = "sens"
    arguments = ", ".join(item for item in (INPUTS[one.inputs], sens) if item)
    target = "grads" if not one.get_all or not one.get_by_list or one.both else "_, grads"
    lines.append(f"{target} = {gradient}({arguments})")
    return "\n".join([*lines, f"return {f'{outputs}, ' if one.forward else ''}grads"])


def _cell(one: Combination) -> str:
    scale = ["scale"] if one.sens == "argument" else []
    parameters = ", ".join([*scale, INPUTS[one.inputs]])
    values = ", ".join([*(["ms.Tensor(0.6)"] if scale else []), "*BATCH" if one.inputs != "one" else "BATCH[0]"])
    weights = ", self.weights" if one.weights else ""
    inherits = one.style in ("inherited", "subclass")
    attribute = "grad_no_sens" if inherits and not one.sens else "grad"
    applied = "self.grad" if one.style == "kept" else f"self.{attribute}(self.network{weights})"
    body = _body(one, "self.network", "gradient" if one.style == "local" else applied)
    if one.style == "local":
        body = f"gradient = {applied}\n{body}"
    construct = f"    def construct(self, {parameters}):\n{indent(body, ' ' * 8)}\n"
    if one.style == "helper":
        construct = construct.replace("construct", "train", 1)
        construct += f"\n    def construct(self, {parameters}):\n        return self.train({parameters})\n"
    start = "    tensor = ms.Tensor(0.3)\n" if one.style == "subclass" else _constructor(one, inherits)
    optimizer = ", nn.SGD(net.trainable_params()), 1024.0" if one.style == "subclass" else ""
    return (
        f"class Step({'nn.TrainOneStepCell' if inherits else 'nn.Cell'}):\n{start}\n{construct}\n\n"
        f"def run():\n    net = Net()\n    step = Step(net{optimizer})\n    return step({values}), step({values})\n"
    )


def _constructor(one: Combination, inherits: bool) -> str:
    lines = ["self.sens = 1024.0", "self.factor = ms.Parameter(ms.Tensor(0.7), requires_grad=False)"]
    lines.append("self.tensor = ms.Tensor(0.3)")
    if inherits:
        lines.insert(0, "super().__init__(network, nn.SGD(network.trainable_params()))")
    else:
        weights = ", network.trainable_params()" if one.weights else ""
        applied = f"(network{weights})" if one.style == "kept" else ""
        lines = [
            "super().__init__(auto_prefix=False)",
            "self.network = network",
            "self.network.set_grad()",
            "self.weights = ms.ParameterTuple(network.trainable_params())",
            *lines,
            f"self.grad = {_operator(one)}{applied}",
        ]
    text = "\n".join(lines)
    return f"    def __init__(self, network):\n{indent(text, ' ' * 8)}\n"


def _function(one: Combination) -> str:
    weights = ", net.trainable_params()" if one.weights else ""
    body = _body(one, "net", "gradient")
    if one.style == "function":
        values = "*BATCH" if one.inputs != "one" else "BATCH[0]"
        step = f"def train({INPUTS[one.inputs]}):\n{indent(body, '    ')}\n\nreturn train({values}), train({values})"
    else:
        appended = f"{body.replace('return ', 'results.append((')}))"
        step = f"results = []\nfor x, y in [BATCH, BATCH]:\n{indent(appended, '    ')}\nreturn results"
    made = f"net = Net()\nnet.set_grad()\ngradient = {_operator(one)}(net{weights})\n\n{step}"
    return f"def run():\n{indent(made, '    ')}\n"


def combinations() -> Iterator[Combination]:
    """Yield each combination that GradOperation takes."""
    for weights in (True, False):
        for inputs in INPUTS:
            for get_all in (False, True):
                base = Combination(weights=weights, inputs=inputs, get_all=get_all)
                for outputs, forward in ((1, True), (2, True), (1, False), (2, False)):
                    yield replace(base, outputs=outputs, forward=forward)
                for sens in TUPLES:
                    yield replace(base, sens=sens, outputs=2)
                for sens in WHOLE:
                    yield replace(base, sens=sens)
                    yield replace(base, sens=sens, forward=False)
            if get_all and weights:
                yield replace(base, both=True)
                yield replace(base, both=True, sens="handed over")
    for style in STYLES:
        for sens in ("", *FILLED, *WHOLE):
            if style in ("function", "variable") and sens not in ("", "number", "ones"):
                continue
            if style == "subclass" and sens == "Parameter":
                continue
            for inputs in ("two", "starred") if style != "variable" else ("two",):
                yield Combination(style, sens=sens, inputs=inputs)
    for get_all in (False, True):
        for sens in ("", "number"):
            yield Combination(get_all=get_all, get_by_list=False, sens=sens, weights=False)


ALL = list(dict.fromkeys(combinations()))


def runs_in_graph_mode(one: Combination) -> bool:
    """Tell whether graph mode compiles the old step, and whether the combination is one of those that try it there.

    In a Cell it refuses to look for weights that are not named and a sensitivity by keyword. A compilation takes long: inputs
    in another number, and what differs in a constant alone, are not tried with everything else.
    """
    if not one.weights or one.sens == "keyword":
        return False
    if one.style != "attribute":
        return one.inputs == "two" and one.sens not in ("ones", "config")
    if one.inputs != "two":
        return one.sens in ("", "one output")
    return one.forward or not one.get_all


# One process runs every script of a mode: importing MindSpore takes longer than any of them.
CHILD = """
import importlib, json, sys
import mindspore as ms
import numpy as np

folder, mode, *names = sys.argv[1:]
sys.path.insert(0, folder)
ms.set_device("CPU")
ms.set_context(mode=int(mode))

def flat(value):
    if isinstance(value, (tuple, list)):
        return ["tuple", *[item for part in value for item in flat(part)]]
    return [(str(value.dtype), value.shape, value.asnumpy().tobytes().hex())]

def outcome(name):
    try:
        return flat(importlib.import_module(name).run())
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]

verdicts = {}
for name in names:
    before, after = outcome(name), outcome(name + "_rewritten")
    verdicts[name] = (
        f"before: {before}" if isinstance(before, str)
        else f"after: {after}" if isinstance(after, str)
        else "equal" if before == after
        else f"different: {before} {after}"
    )
print(json.dumps(verdicts))
"""


MS101 = tuple(rule for rule in all_rules() if rule.code == "MS101")


@dataclass(frozen=True)
class Matrix:
    """All scripts in one folder, rewritten."""

    folder: Path
    rewritten: dict[str, Rewritten]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    folder, project = tmp_path_factory.mktemp("matrix"), tmp_path_factory.mktemp("project")
    (project / "pyproject.toml").touch()
    path, found = project / "step.py", {}
    for one in ALL:
        found[one.name] = rewritten(path, one, NEWEST)
        (folder / f"{one.name}.py").write_text(one.text, encoding="utf-8")
        (folder / f"{one.name}_rewritten.py").write_text(found[one.name].text, encoding="utf-8")
    return Matrix(folder, found)


def rewritten(path: Path, one: Combination, version: tuple[int, int]) -> Rewritten:
    """Return the script, all there is of a program, rewritten at ``path`` for MindSpore ``version``."""
    path.write_text(one.text, encoding="utf-8")
    return rewrite_source(read(path), Program([path]), named(["functional-grad"]), True, version, MS101)


ONE_FORWARD = "run the network once"
DROP_IN = "the forward pass stays apart"


def expected(one: Combination) -> tuple[str, str] | None:
    """Return the applicability that a combination gets and what its message says; None where nothing is reported."""
    if not one.get_by_list:
        # Derivatives of the inputs alone: GradOperation says what is meant.
        return None
    if one.both and one.inputs != "two":
        return "manual", "in another structure; take them apart by hand"
    if one.both:
        return "unsafe", "the gradients of the inputs are used too"
    if not one.forward:
        return "safe", DROP_IN
    if one.sens == "both outputs":
        return "safe", "the sensitivity is computed from the loss in a way that mslint does not see through"
    return "safe", ONE_FORWARD


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_each_combination_is_rewritten_or_says_why(one: Combination, matrix: Matrix) -> None:
    done = matrix.rewritten[one.name]
    assert not done.failures
    fixes = [finding.fix for finding in (*done.applied, *done.left) if finding.fix is not None]
    wanted = expected(one)
    if wanted is None:
        assert not fixes
    else:
        assert [fix.applicability.value for fix in fixes] == [wanted[0]]
        assert wanted[1] in fixes[0].message
        assert ("GradOperation" in done.text) is (wanted[0] == "manual")


@pytest.mark.parametrize("mode", ["graph", "PyNative"])
def test_old_and_new_steps_compute_the_same(mode: str, matrix: Matrix) -> None:
    require_mindspore()
    graph = mode == "graph"
    changed = [one for one in ALL if matrix.rewritten[one.name].changed]
    names = [one.name for one in changed if runs_in_graph_mode(one) or not graph]
    arguments = [sys.executable, "-c", CHILD, str(matrix.folder), "0" if graph else "1", *names]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts = json.loads(done.stdout.splitlines()[-1])
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "equal"} == {}
    assert set(verdicts) == set(names)


@pytest.mark.parametrize("one", [one for one in ALL if one.sens and one.inputs == "two" and one.style == "attribute"])
def test_without_sens_param_nothing_is_written_that_needs_it(one: Combination, tmp_path: Path) -> None:
    # MindSpore 2.7.0: value_and_grad and grad have no sens_param.
    (tmp_path / "pyproject.toml").touch()
    done = rewritten(tmp_path / "step.py", one, (2, 7))
    factor = one.sens in FILLED or (one.sens == "one output" and one.forward)
    assert done.changed is (factor and one.get_by_list and not one.both)
    if done.changed:
        assert "sens_param" not in done.text
    elif one.get_by_list:
        assert [finding.fix.message for finding in done.left if finding.fix and "2.7" in finding.fix.message]
