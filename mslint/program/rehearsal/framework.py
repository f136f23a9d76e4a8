"""What calls of MindSpore mean to a rehearsal: ranks, the parallel context, data sets, gradients and training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mslint.program.datasets import dataset_class
from mslint.program.following.values import Call
from mslint.program.rehearsal.values import (
    DEVICE_ID,
    NONE,
    RANK,
    RANK_SIZE,
    Constant,
    Function,
    Made,
    Object,
    Partial,
    Pipeline,
    Symbol,
    Value,
    derived,
    options,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

_RANKS = {"get_rank": RANK, "get_group_size": RANK_SIZE, "get_world_size": RANK_SIZE, "get_local_rank": DEVICE_ID}
_GRADIENTS = frozenset({"value_and_grad", "grad", "get_grad"})
_PASSED_ON = frozenset(
    """mindspore.jit mindspore.ms_function mindspore.jit_class mindspore.amp.auto_mixed_precision
    mindspore.parallel.AutoParallel
    mindspore.nn.GraphCell mindspore.dataset.connect_network_with_dataset mindspore.connect_network_with_dataset
    mindspore.parallel.auto_parallel.AutoParallel mindspore.train.connect_network_with_dataset""".split()  # noqa: SIM905
)
"""What gives back its first argument, as far as a rehearsal is concerned."""


def call_framework(rehearsal: Rehearsal, name: str, call: Call) -> Value:
    """Return what calling MindSpore's ``name`` gives."""
    place = rehearsal.place(call.node)
    last = name.rpartition(".")[2]
    if last in _GRADIENTS and name.startswith(("mindspore.ops.", "mindspore.grad", "mindspore.value_and_grad")):
        return Made("gradient", place)
    if last == "GradOperation":
        return Made("GradOperation", place)
    if name in _PASSED_ON:
        if last == "AutoParallel":
            _auto_parallel(rehearsal, call)
        if call.given:
            return call.given[0]
    if last in _RANKS and ".ops." not in name and ".nn." not in name:
        return _RANKS[last]
    made = Made(name, place, tuple(call.arguments), tuple(call.keywords.items()))
    if name.startswith("mindspore.ops.") or (name.startswith("mindspore.nn.") and last != "DistributedGradReducer"):
        return made
    event = rehearsal.event(name, call)
    if last == "set_auto_parallel_context":
        for word, value in call.keywords.items():
            set_parallel(rehearsal, word, value)
            if word in ("device_num", "global_rank"):
                rehearsal.assumptions.equate(value, RANK_SIZE if word == "device_num" else RANK)
    elif last == "reset_auto_parallel_context":
        for setting in list(rehearsal.parallel_context):
            set_parallel(rehearsal, setting, NONE)
    elif last == "get_auto_parallel_context":
        return _parallel_setting(rehearsal, call)
    elif last == "get_context":
        wanted = call.arguments[0] if call.arguments else NONE
        is_device = isinstance(wanted, Constant) and wanted.value == "device_id"
        return DEVICE_ID if is_device else Symbol(("context", wanted.key))
    if name.startswith("mindspore.dataset."):
        if last == "zip":
            return Pipeline(derived(("zip",), *call.arguments).data)
        if dataset_class(last) is not None:
            for source in (event.argument(0, "source"), call.keywords.get("sampler")):
                _follow_source(rehearsal, source)
            return Pipeline(frozenset({event.number}))
    return made


def _follow_source(rehearsal: Rehearsal, source: Value | None) -> None:
    """Follow what a data set is going to ask its source or sampler, to learn whether that uses the rank itself."""
    for option in options(source) if source is not None else ():
        if isinstance(option, Object):
            for name in ("__getitem__", "__iter__", "__next__", "__len__"):
                method = rehearsal.objects.member(option, name)
                if method is not None:
                    index: list[Value] = [Symbol(("index", option.key))] if name == "__getitem__" else []
                    rehearsal.called(method, Call(index, {}))
        elif isinstance(option, (Function, Partial)):
            rehearsal.called(option, Call([], {}, open=True))


def set_parallel(rehearsal: Rehearsal, setting: object, value: Value) -> None:
    """Note what the parallel context is from here on."""
    rehearsal.journal.write(rehearsal.parallel_context, setting, value)


def _auto_parallel(rehearsal: Rehearsal, call: Call) -> None:
    mode = call.argument(1, "parallel_mode")
    is_automatic = isinstance(mode, Constant) and mode.value != "semi_auto"
    set_parallel(rehearsal, "parallel_mode", Constant("auto_parallel" if is_automatic else "semi_auto_parallel"))


def _parallel_setting(rehearsal: Rehearsal, call: Call) -> Value:
    wanted = call.arguments[0].value if call.arguments and isinstance(call.arguments[0], Constant) else None
    if wanted == "device_num":
        return RANK_SIZE
    if wanted == "global_rank":
        return RANK
    default = Constant("stand_alone") if wanted == "parallel_mode" else Symbol(("parallel context", wanted))
    return rehearsal.parallel_context.get(wanted, default)
