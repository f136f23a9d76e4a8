"""Measures how long training steps take, in turn with another process that runs the other side."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
from mindspore import nn
from mindspore.ops.composite import base as composite

from mslint.verify.child.gradients import differentiated, name_of, without_auxiliary
from mslint.verify.child.graphs import api
from mslint.verify.child.place import caller
from mslint.verify.child.report import Report
from mslint.verify.job import Timing

_WARM_UP = 3


class Turns:
    """Steps of two processes by turns: what else the machine does falls on both alike.

    A turn is a byte in a pipe that has a name. Opened for reading and writing a pipe neither blocks nor ends.
    """

    def __init__(self, own: str, other: str) -> None:
        self._own = os.open(own, os.O_RDWR)
        self._other = os.open(other, os.O_RDWR)

    def wait(self) -> bool:
        """Until it is this process's turn; False if the other one has ended."""
        select.select([self._own], [], [])
        return os.read(self._own, 1) != b"x"

    def give(self) -> None:
        os.write(self._other, b".")


@dataclass
class _Kind:
    """One of the steps that the script makes by turns (GAN)."""

    rounds: int = 0
    calls: int = 0
    """Outermost calls of MindSpore since the step began."""
    calls_of_a_round: int = 0
    times: list[float] = field(default_factory=list)


class Stopwatch:
    """Takes the time from the first to the last outermost call of a step, data loading and printing left out.

    Where a step begins was found by the `Probe` of an earlier run; how many calls it has is learnt from the first one.
    """

    def __init__(self, report: Report, root: str, timing: Timing, finish: Callable[[], None]) -> None:
        self._report = report
        self._root = root
        self._wanted = _WARM_UP + timing.rounds
        self._finish = finish
        self._turns = Turns(timing.own_turn, timing.other_turn)
        self._steps = timing.steps
        self._kinds = {step: _Kind() for step in timing.steps}
        self._current: _Kind | None = None
        self._began: float | None = None
        self._depth = 0

    def install(self) -> None:
        """Put the hooks in place; before the script is run."""
        self._hook(nn.Cell, lambda cell: type(cell).__name__)
        self._hook(api._JitExecutor, lambda executor: name_of(differentiated(executor.fn)[0]))
        for kind in (composite.GradOperation, composite._Grad):
            self._hook_gradient_operation(kind)

    def _hook(self, kind: Any, name: Callable[[Any], str]) -> None:
        call = kind.__call__

        def timed(called: Any, *arguments: Any, **options: Any) -> Any:
            if self._depth:
                return call(called, *arguments, **options)
            with self._outermost(name(called)):
                return call(called, *arguments, **options)

        kind.__call__ = timed

    def _hook_gradient_operation(self, kind: Any) -> None:
        call = kind.__call__

        def hooked(operation: Any, fn: Any, *rest: Any, **options: Any) -> Any:
            gradient_function = call(operation, fn, *rest, **options)
            if not operation.pynative_ or ms.get_context("mode") == ms.GRAPH_MODE:
                return gradient_function
            name = name_of(without_auxiliary(fn))

            def timed(*arguments: Any, **keywords: Any) -> Any:
                if self._depth:
                    return gradient_function(*arguments, **keywords)
                with self._outermost(name):
                    return gradient_function(*arguments, **keywords)

            return timed

        kind.__call__ = hooked

    @contextmanager
    def _outermost(self, name: str) -> Iterator[None]:
        kind = self._kinds.get((name, caller(self._root)))
        if kind is not None:
            self._begin(kind)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._end_of_call()

    def _begin(self, kind: _Kind) -> None:
        last = self._current
        if last is not None and not last.calls_of_a_round:
            last.calls_of_a_round = last.calls
        if all(one.rounds >= self._wanted for one in self._kinds.values()):
            self._finish()
        self._current = kind
        kind.calls = 0
        kind.rounds += 1
        # The first round compiles.
        if kind.calls_of_a_round:
            if self._began is not None:
                self._turns.give()
            if not self._turns.wait():
                self._finish()
            _synchronise()
            self._began = time.perf_counter()

    def _end_of_call(self) -> None:
        kind = self._current
        if kind is None:
            return
        kind.calls += 1
        if self._began is None or kind.calls != kind.calls_of_a_round:
            return
        _synchronise()
        milliseconds = (time.perf_counter() - self._began) * 1000
        self._began = None
        if kind.rounds > _WARM_UP:
            kind.times.append(milliseconds)
            self._save()
        self._turns.give()

    def _save(self) -> None:
        self._report.data["times"] = [self._kinds[step].times for step in self._steps]
        self._report.save()


def _synchronise() -> None:
    """Wait for what was launched: operators and graphs run behind Python's back."""
    api._pynative_executor.sync()
    if hasattr(ms, "runtime"):
        ms.runtime.synchronize()
