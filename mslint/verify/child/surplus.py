"""What scripts do beside training, and what they resume from: skipped where it cannot be had here, and told."""

from __future__ import annotations

import os
from typing import Any

import mindspore as ms
from mindspore import profiler
from mindspore.train.callback import Callback, SummaryCollector

from mslint.verify.child.replacing import replace_everywhere
from mslint.verify.child.report import Report


class _NoParameters(dict):  # type: ignore[type-arg]
    """What a checkpoint holds that is not there; scripts take entries out of it."""

    def pop(self, _key: Any, default: Any = None) -> Any:
        return default


class _Idle:
    """A profiler or recorder that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: None

    def __enter__(self) -> _Idle:
        return self

    def __exit__(self, *_error: Any) -> None:
        pass


def install(report: Report) -> None:
    """Put the stand-ins in place; before the script is run."""
    _checkpoints(report)
    _records(report)


def _checkpoints(report: Report) -> None:
    load, fill = ms.load_checkpoint, ms.load_param_into_net

    def load_checkpoint(ckpt_file_name: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(ckpt_file_name, (str, os.PathLike)) and not os.path.exists(ckpt_file_name):
            report.stand_in(f"load_checkpoint({os.fspath(ckpt_file_name)!r}): skipped, there is no such file")
            return _NoParameters()
        return load(ckpt_file_name, *arguments, **options)

    def load_param_into_net(net: Any, parameter_dict: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(parameter_dict, _NoParameters) or parameter_dict == {}:
            report.stand_in("load_param_into_net: skipped, there is nothing to load")
            return [], []
        return fill(net, parameter_dict, *arguments, **options)

    replace_everywhere(load, load_checkpoint)
    replace_everywhere(fill, load_param_into_net)


def _records(report: Report) -> None:
    def skipped(what: str, result: Any) -> Any:
        def skip(*_arguments: Any, **_options: Any) -> Any:
            report.stand_in(f"{what}: skipped, it does not change what a step computes")
            return result() if result is not None else None

        return skip

    for name, result in (("export", None), ("Profiler", _Idle), ("SummaryRecord", _Idle)):
        if hasattr(ms, name):
            replace_everywhere(getattr(ms, name), skipped(name, result))
    for name, result in (("profile", _Idle), ("tensorboard_trace_handler", None), ("DynamicProfilerMonitor", Callback)):
        if hasattr(profiler, name):
            replace_everywhere(getattr(profiler, name), skipped(f"profiler.{name}", result))
    replace_everywhere(SummaryCollector, skipped("SummaryCollector", Callback))
