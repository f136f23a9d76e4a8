"""The world of ranks that a script finds: one rank, several that are only told of, or several that are there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from mindspore import context, nn, ops

from mslint.verify.child.replacing import replace_everywhere
from mslint.verify.child.report import Report

# Parallel modes that plan communication need a device that this machine has not.
_PLANNED = ("semi_auto_parallel", "auto_parallel", "hybrid_parallel")
# Keys of a world that is only told of which would have parameters sent, or devices asked for.
_DROPPED = {"parameter_broadcast", "device_num", "global_rank"}


def install(report: Report, ranks: int, launched: bool) -> None:
    """Let the script find this world; before it is run."""
    if launched:
        _planned_modes(report, _PLANNED, set())
    elif ranks == 1:
        _alone(report)
    else:
        _planned_modes(report, _PLANNED, _DROPPED, ranks)
        _told_of(ranks)
        _communication(report, ranks)


def _alone(report: Report) -> None:
    def stand_in_parallel(**options: Any) -> None:
        for key, value in options.items():
            report.stand_in(f"set_auto_parallel_context({key}={value!r}): dropped, the world has one rank")

    replace_everywhere(context.set_auto_parallel_context, stand_in_parallel)
    _communication(report, 1)
    _collectives(report)


def _planned_modes(report: Report, modes: tuple[str, ...], dropped: set[str], ranks: int | None = None) -> None:
    set_context = context.set_auto_parallel_context

    def stand_in_parallel(**options: Any) -> None:
        kept: dict[str, Any] = {}
        for key, value in options.items():
            if key in dropped:
                report.stand_in(f"set_auto_parallel_context({key}={value!r}): dropped, the ranks are not there")
            elif key == "parallel_mode" and value in modes:
                report.stand_in(f"set_auto_parallel_context({key}={value!r}): data_parallel stands in on the CPU")
                kept[key] = "data_parallel"
            else:
                kept[key] = value
        if ranks is not None:
            kept.update(device_num=ranks, global_rank=0)
        try:
            set_context(**kept)
        except (ValueError, TypeError, RuntimeError) as error:
            report.stand_in(f"set_auto_parallel_context({kept}): dropped, {str(error).strip().splitlines()[0][:200]}")

    replace_everywhere(set_context, stand_in_parallel)


def _told_of(ranks: int) -> None:
    """What MindSpore's own code asks to know whether and with how many it communicates."""
    helper = importlib.import_module("mindspore.communication._comm_helper")
    helper.GlobalComm.INITED = True
    helper.GlobalComm.BACKEND = helper.Backend("mccl")
    helper.GlobalComm.WORLD_COMM_GROUP = helper.MCCL_WORLD_COMM_GROUP
    for name, value in (
        ("_get_rank_helper", 0),
        ("_get_local_rank_helper", 0),
        ("_get_size_helper", ranks),
        ("_get_local_size_helper", ranks),
    ):
        replace_everywhere(getattr(helper, name), lambda *_arguments, value=value, **_options: value)


def _communication(report: Report, ranks: int) -> None:
    world = "the world has one rank" if ranks == 1 else f"rank 0 of {ranks} that are not there"

    def constant(name: str, value: Any, told: bool) -> Callable[..., Any]:
        def stand_in_function(*_arguments: Any, **_options: Any) -> Any:
            if told:
                report.stand_in(f"{name}(): no launcher, {world}")
            return value

        return stand_in_function

    answers = {
        "init": None,
        "release": None,
        "create_group": None,
        "destroy_group": None,
        "init_process_group": None,
        "destroy_process_group": None,
        "barrier": None,
        "get_rank": 0,
        "get_local_rank": 0,
        "get_group_size": ranks,
        "get_world_size": ranks,
        "get_local_rank_size": ranks,
    }
    told = {"init", "init_process_group", "create_group"}
    for module_name in ("mindspore.communication.management", "mindspore.mint.distributed"):
        module = importlib.import_module(module_name)
        for name, value in answers.items():
            if hasattr(module, name):
                replace_everywhere(getattr(module, name), constant(name, value, name in told))


class _OneRankReducer(nn.Cell):  # type: ignore[misc]
    """Stands for DistributedGradReducer: an AllReduce without an initialised group is a segmentation fault."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        super().__init__(auto_prefix=False)

    def construct(self, gradients):  # type: ignore[no-untyped-def]
        return gradients


def _collectives(report: Report) -> None:
    def reducer(*_arguments: Any, **_options: Any) -> _OneRankReducer:
        report.stand_in("nn.DistributedGradReducer: identity, the world has one rank")
        return _OneRankReducer()

    replace_everywhere(nn.DistributedGradReducer, reducer)

    def identity(name: str) -> Callable[..., Any]:
        def stand_in_operator(*_arguments: Any, **_options: Any) -> Any:
            # MindSpore's own training cells build one whether they use it or not.
            if not sys._getframe(1).f_globals.get("__name__", "").startswith("mindspore"):
                report.stand_in(f"ops.{name}: identity, the world has one rank")
            return ops.Identity()

        return stand_in_operator

    for name in ("AllReduce", "AllGather", "ReduceScatter"):
        for module in (ops, ops.operations, ops.operations.comm_ops):
            if hasattr(module, name):
                setattr(module, name, identity(name))
