"""What data sets are for in a rehearsal: which feed a training step, which are evaluated on, which got a sampler later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mslint.program.following.values import Call, Value
from mslint.program.rehearsal.values import Made, Object, Place, Sequence, options, parts

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

_STEPS = frozenset(
    """TrainOneStepCell TrainOneStepWithLossScaleCell BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell
    PipelineCell build_train_network""".split()  # noqa: SIM905
)
_OPTIMIZERS = frozenset(
    """ASGD Ada Adadelta Adagrad Adam AdaMax AdamOffload AdamWeightDecay AdaFactor AdaSumByDeltaWeightWrapCell
    AdaSumByGradWrapCell FTRL Lamb LARS LazyAdam Momentum Optimizer ProximalAdagrad RMSProp Rprop SGD thor AdamW
    NAdam RAdam Adamax""".split()  # noqa: SIM905
)


def is_step(this: Object) -> bool:
    """Tell whether an object is a training step of MindSpore's kind."""
    return any(kind.rpartition(".")[2] in _STEPS for kind in this.kind.foreign())


def trains_when_called(name: str) -> bool:
    """Tell whether calling what MindSpore's ``name`` returned takes a training step."""
    last = name.rpartition(".")[2]
    return last == "gradient" or last in _STEPS or last in _OPTIMIZERS


def updates(value: Value, depth: int = 3) -> bool:
    """Tell whether a Cell holds something that trains: a gradient function, an optimizer, a training step."""
    if isinstance(value, Made):
        return value.name.rpartition(".")[2] == "GradOperation" or trains_when_called(value.name)
    if depth == 0:
        return False
    held: list[Value] = []
    if isinstance(value, Object):
        if any(kind.rpartition(".")[2] in _STEPS | _OPTIMIZERS for kind in value.kind.foreign()):
            return True
        held = list(value.names.values())
    elif isinstance(value, Sequence):
        held = value.items
    return any(updates(option, depth - 1) for item in held for option in options(item))


def takes_steps(kinds: Iterable[str]) -> bool:
    """Tell whether objects with these bases in MindSpore train when they are called."""
    lasts = {kind.rpartition(".")[2] for kind in kinds}
    is_ours = any(kind.startswith("mindspore.") for kind in kinds)
    return bool(lasts & _STEPS) or (bool(lasts & _OPTIMIZERS) and is_ours)


def train(rehearsal: Rehearsal, given: Iterable[Value | None], call: Call) -> None:
    """Note that a training step gets ``given``."""
    _note(rehearsal, rehearsal.trained, given, call)


def evaluate(rehearsal: Rehearsal, given: Iterable[Value | None], call: Call) -> None:
    """Note that ``given`` are evaluated on."""
    _note(rehearsal, rehearsal.evaluated, given, call)


def split(rehearsal: Rehearsal, pipeline: Value, call: Call) -> None:
    """Note that ``pipeline`` is split in parts."""
    _note(rehearsal, rehearsal.split, (pipeline,), call)


def sample(rehearsal: Rehearsal, pipeline: Value, call: Call) -> None:
    """Note that ``pipeline`` gets a sampler."""
    _note(rehearsal, rehearsal.sampled, (pipeline,), call)


def _note(rehearsal: Rehearsal, table: dict[int, Place], given: Iterable[Value | None], call: Call) -> None:
    for value in given:
        for number in parts(value)[0] if value is not None else ():
            table.setdefault(number, rehearsal.place(call.node))


def call_model(rehearsal: Rehearsal, name: str, call: Call) -> None:
    """Follow ``Model.train``, ``fit`` and ``eval``: which data set serves for what."""
    if name in ("train", "fit"):
        train(rehearsal, [call.argument(1, "train_dataset")], call)
        checked = call.argument(2, "valid_dataset") if name == "fit" else call.keywords.get("valid_dataset")
        evaluate(rehearsal, [checked], call)
    elif name == "eval":
        evaluate(rehearsal, [call.argument(0, "valid_dataset")], call)
