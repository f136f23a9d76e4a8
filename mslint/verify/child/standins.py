"""Makes a script written for Ascend or GPU run on a CPU, without a change to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import wraps
from typing import Any

import mindspore as ms
from mindspore import context, nn, ops
from mindspore.ops.composite.base import _Vmap

from mslint.verify.child import overflow
from mslint.verify.child.replacing import replace_everywhere
from mslint.verify.child.report import Report

# Keys of set_context that choose the device or write files into the working directory.
_DROPPED = {"device_target", "device_id", "save_graphs", "save_graphs_path"}


def install(mode: str, report: Report) -> None:
    """Stand in for devices, mode, data sinking and overflow detection.

    The report is told of each one that the script asks for.
    """
    ms.set_device("CPU")
    _contexts(mode, report)
    _workers(report)
    _training(report)
    if mode == "pynative":
        _vectorised()


def _vectorised() -> None:
    """Keep the functions that ``vmap`` makes compiled, as PyNative mode has them.

    ``MS_JIT=0``, by which everything else runs operator by operator, makes them call themselves without end.
    """
    vectorise = _Vmap.__call__

    def stand_in_vmap(self: Any, fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Any:
        vectorised = vectorise(self, fn, in_axes, out_axes)

        @wraps(vectorised)
        def run(*arguments: Any, **options: Any) -> Any:
            set_before = os.environ.pop("MS_JIT", None)
            try:
                return vectorised(*arguments, **options)
            finally:
                if set_before is not None:
                    os.environ["MS_JIT"] = set_before

        return run

    _Vmap.__call__ = stand_in_vmap


def _contexts(mode: str, report: Report) -> None:
    set_context, set_device = context.set_context, ms.set_device
    forced = ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE
    set_context(mode=forced)

    def stand_in_context(**options: Any) -> None:
        for key, value in options.items():
            if key == "mode":
                report.data["native_mode"] = "graph" if value == ms.GRAPH_MODE else "pynative"
            elif key in _DROPPED:
                if (key, value) != ("device_target", "CPU"):
                    report.stand_in(f"set_context({key}={value!r}): dropped, the script runs on the CPU")
            else:
                try:
                    set_context(**{key: value})
                except (ValueError, TypeError, RuntimeError) as error:
                    report.stand_in(f"set_context({key}={value!r}): dropped, {_first_line(error)}")

    def stand_in_device(device_target: str, device_id: int | None = None) -> None:
        if device_target != "CPU":
            report.stand_in(f"set_device({device_target!r}): the CPU stands in")

    replace_everywhere(set_context, stand_in_context)
    replace_everywhere(set_device, stand_in_device)


def _workers(report: Report) -> None:
    import mindspore.dataset as dataset
    from mindspore.dataset.core import validator_helpers
    from mindspore.dataset.engine import datasets

    available = os.cpu_count() or 1
    # Scripts ask for the workers of a server; the validators compare with the cores of this machine.
    validator_helpers.cpu_count = lambda: 256
    initialise, set_workers = datasets.Dataset.__init__, dataset.config.set_num_parallel_workers

    def limited(self: Any, children: Any = None, num_parallel_workers: int | None = None, cache: Any = None) -> None:
        if num_parallel_workers is not None and num_parallel_workers > available:
            report.stand_in(
                f"num_parallel_workers={num_parallel_workers}: limited to the {available} cores of this machine"
            )
            num_parallel_workers = available
        initialise(self, children, num_parallel_workers, cache)

    datasets.Dataset.__init__ = limited
    dataset.config.set_num_parallel_workers = lambda number: set_workers(min(number, available))


def _training(report: Report) -> None:
    from mindspore.nn.wrap import loss_scale
    from mindspore.train import amp

    scaled = loss_scale.TrainOneStepWithLossScaleCell
    initialise = scaled.__init__

    def told(self: Any, *arguments: Any, **options: Any) -> None:
        report.stand_in(
            "TrainOneStepWithLossScaleCell: overflow is detected by isfinite, the hardware's way has no CPU kernel"
        )
        initialise(self, *arguments, **options)

    scaled.__init__ = told
    scaled.start_overflow_check = overflow.start_overflow_check
    scaled.get_overflow_status = overflow.get_overflow_status

    def sink(fn: Any, dataset: Any, *_arguments: Any, **_options: Any) -> Callable[..., Any]:
        report.stand_in("data_sink: the CPU has no sink, every call takes the next batch")
        batches: Iterator[Any] = iter(())

        def step(*_arguments: Any, **_options: Any) -> Any:
            nonlocal batches
            batch = next(batches, None)
            if batch is None:
                batches = iter(dataset.create_tuple_iterator())
                batch = next(batches)
            return fn(*batch)

        return step

    replace_everywhere(ms.data_sink, sink)

    def at_once() -> Any:
        report.stand_in("no_init_parameters: parameters are initialised at once, both sides start from them")
        return nullcontext()

    if hasattr(nn.utils, "no_init_parameters"):
        replace_everywhere(nn.utils.no_init_parameters, at_once)

    build, get_context = amp.build_train_network, context.get_context

    def build_anywhere(*arguments: Any, **options: Any) -> Any:
        # On the CPU it refuses levels and loss scales that GPU and Ascend know.
        context.get_context = lambda key: "GPU" if key == "device_target" else get_context(key)
        try:
            return build(*arguments, **options)
        finally:
            context.get_context = get_context

    replace_everywhere(build, build_anywhere)


def drop_dropout(report: Report) -> None:
    """Every dropout passes its input on: masks depend on how often and in which order layers were built and run."""
    report.stand_in("dropout: identity, on both sides")

    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "DropoutExt"):
        if hasattr(nn, name):
            getattr(nn, name).construct = _pass_on
        if hasattr(ops, name.lower()):
            replace_everywhere(getattr(ops, name.lower()), _passed_on)
    for name in ("Dropout", "Dropout2D", "Dropout3D"):
        primitive = getattr(ops, name)

        def keep_all(*_arguments: Any, primitive: Any = primitive, **_options: Any) -> Any:
            return primitive(keep_prob=1.0)

        replace_everywhere(primitive, keep_all)


# Graph parsing reads the source of both.
def _pass_on(self, x):  # type: ignore[no-untyped-def]
    return x


def _passed_on(input, p=0.5, training=True, seed=None):  # type: ignore[no-untyped-def]
    return input


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]
