"""Recognises the first training steps of a running script, in either mode, by hooks in MindSpore."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import context, nn
from mindspore.ops.composite import base as composite

from mslint.verify.child.autograd import OperatorCalls, count_autograd_nodes
from mslint.verify.child.gradients import (
    TopLevelGradient,
    differentiated,
    identity_of,
    name_of,
    names_of,
    paired,
    without_auxiliary,
)
from mslint.verify.child.graphs import (
    NoMindIR,
    api,
    blank_results,
    cell_graph,
    communicates,
    compiled_cell,
    compiled_function,
    function_graph,
    has_backward,
)
from mslint.verify.child.place import caller
from mslint.verify.child.recording import (
    OPTIMIZERS,
    follow_optimizers,
    kept_gradients,
    live_optimizers,
    paired_gradients,
    recorded,
    recording,
    without_recording,
)
from mslint.verify.child.report import Report, number_of_steps
from mslint.verify.child.state import restore, snapshot
from mslint.verify.child.step import Step
from mslint.verify.job import repeated_inputs_file

_MAX_STEPS = 4
# How long to look for the steps of further optimizers (GAN) once one step is had.
_PATIENCE_SECONDS = 20.0
_PATIENCE_ROUNDS = 200
_MAX_REPETITIONS = 32
_SEED = 20201


class Probe:
    """Follows the outermost calls of cells, jit functions, gradient functions and optimizers.

    A step begins with the first outermost call that may belong to a training step (a cell in training mode or one that
    holds an optimizer or a gradient operation; a gradient function), and it is complete once an optimizer has run. The
    process ends, by ``finish``, when a step comes round again and no further optimizer waits for its first.

    Without ``numbers`` (graph mode only) graphs of steps are compiled, not run: zeros stand for what they would give.
    With ``own_state`` a run that starts from the state of another one notes its own, too.
    """

    def __init__(
        self,
        report: Report,
        out: Path,
        replay: Path | None,
        root: str,
        finish: Callable[[], None],
        *,
        numbers: bool = True,
        own_state: bool = False,
    ) -> None:
        self._numbers = numbers
        self._own_state = own_state
        self._report = report
        self._out = out
        self._replay = replay
        self._root = root
        self._finish = finish
        self._step: Step | None = None
        self._depth = 0
        self._seen_sites: set[Any] = set()
        self._trained_sites: set[Any] = set()
        self._kept_alive: list[Any] = []
        self._used_optimizers: set[int] = set()
        self._closed = 0
        self._expected_steps = number_of_steps(replay) if replay is not None else 0
        self._rounds = 0
        self._in_known_step = False
        self._deadline: float | None = None
        self._in_forward = False
        self._in_gradient = False
        self._gradientless: set[Any] = set()
        self._calls = OperatorCalls()

    def install(self) -> None:
        """Put the hooks in place; before the script is run."""
        follow_optimizers()
        self._hook_cells()
        self._hook_jit()
        for kind in (composite.GradOperation, composite._Grad):
            self._hook_gradient_operation(kind)
        self._hook_pynative_gradients()

    def close(self) -> None:
        """Write down the open step, if it is one."""
        step, self._step = self._step, None
        if step is None or not step.has_gradient:
            return
        self._seen_sites |= step.sites
        self._trained_sites |= step.training_sites
        self._used_optimizers |= {id(optimizer) for optimizer in step.optimizers}
        if not step.complete:
            step.save_result()
        self._write(step)
        self._closed += 1

    # -- the course of a step ------------------------------------------------------------------------------------------

    def _begin(self, site: Any, name: str, inputs: Any, kept: Any, *, inner: bool = False) -> None:
        """A call that may be the first of a step, or belongs to the open one; an ``inner`` one never ends that."""
        if self._step is not None:
            if inner:
                return
            if site in self._trained_sites and not self._step.has_gradient:
                # What began as a step of its own was the way to one that is had.
                self._step = None
                self._came_round()
                return
            if not self._step.complete and self._belongs(site, inputs, self._step):
                return
            self.close()
        if inner and self._in_known_step:
            return
        self._in_known_step = site in self._seen_sites
        if self._in_known_step:
            self._came_round()
            return
        if self._closed >= _MAX_STEPS:
            self._finish()
        self._kept_alive.append(kept)
        self._step = Step(
            self._closed,
            name,
            caller(self._root),
            inputs,
            self._out,
            self._replay,
            numbers=self._numbers,
            own_state=self._own_state,
        )
        self._step.sites.add(site)
        ms.set_seed(_SEED)
        self._calls.clear()

    def _belongs(self, site: Any, inputs: Any, step: Step) -> bool:
        """Whether a call goes on with a step that no optimizer has ended yet.

        It does if it comes round in it: gradients are accumulated, or a loss scale is too large to begin with.
        """
        if not step.has_gradient or site not in step.sites:
            step.sites.add(site)
            return True
        if self._replay is not None:
            # As often as the original: how long this one takes must not matter.
            expected = repeated_inputs_file(self._replay, step.index, step.repetitions + 1).exists()
        else:
            expected = step.repetitions < _MAX_REPETITIONS and step.age < _PATIENCE_SECONDS and bool(live_optimizers())
        if expected:
            step.repeat(inputs)
        return expected

    def _write(self, step: Step) -> None:
        """Put what is known of the open step into the report: nobody knows what the script does next."""
        if step.has_gradient:
            self._report.data["steps"][self._closed :] = [
                step.summary(self._calls.counts(), self._calls.half_precision)
            ]
        self._report.save()

    def _came_round(self) -> None:
        """A step that is had begins again: end the process unless others may follow."""
        if self._replay is not None:
            if self._closed >= self._expected_steps:
                self._finish()
            return
        self._rounds += 1
        if self._deadline is None:
            self._deadline = time.monotonic() + _PATIENCE_SECONDS
        waiting = any(id(optimizer) not in self._used_optimizers for optimizer in live_optimizers())
        if not waiting or self._rounds > _PATIENCE_ROUNDS or time.monotonic() > self._deadline:
            self._finish()

    def _updated(self) -> None:
        """An outermost call that may have updated the parameters is over."""
        if self._step is not None and self._step.has_gradient:
            self._step.complete = bool(self._step.optimizers)
            self._step.save_result()
            self._write(self._step)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    # -- cells ---------------------------------------------------------------------------------------------------------

    def _hook_cells(self) -> None:
        call = nn.Cell.__call__

        def hooked(cell: Any, *arguments: Any, **options: Any) -> Any:
            graph = context._get_mode() == ms.GRAPH_MODE and os.getenv("MS_JIT") != "0"
            outermost = self._depth == 0
            with self._inside():
                if isinstance(cell, OPTIMIZERS):
                    return self._optimizer(cell, arguments, options, call, outermost, graph and outermost)
                if graph and outermost:
                    return self._graph_cell(cell, arguments, options, call)
                if outermost:
                    return self._pynative_cell(cell, arguments, options, call)
                if self._step is not None:
                    self._step.add_cell_run(cell, self._in_forward)
                return call(cell, *arguments, **options)

        nn.Cell.__call__ = hooked

    def _optimizer(
        self, optimizer: Any, arguments: Any, options: Any, call: Callable[..., Any], outermost: bool, graph: bool
    ) -> Any:
        step = self._step
        if step is not None and step.has_gradient:
            step.optimizers.append(optimizer)
            step.add_update(paired_gradients(optimizer, arguments[0] if arguments else None))
            if graph:
                compile_graph = compiled_cell if self._numbers else cell_graph
                self._add_graph(
                    step, ("cell", id(optimizer)), "optimizer", lambda: compile_graph(optimizer, arguments, options)
                )
        if step is not None and graph and not self._numbers:
            self._updated()
            return True
        result = call(optimizer, *arguments, **options)
        if outermost:
            self._updated()
        return result

    def _pynative_cell(self, cell: Any, arguments: Any, options: Any, call: Callable[..., Any]) -> Any:
        training = _may_train(cell)
        if training:
            self._begin(("cell", id(cell)), type(cell).__name__, (arguments, options), cell)
        if self._step is not None:
            self._step.add_cell_run(cell, differentiated=False)
        gradients = self._step.gradients if self._step is not None else 0
        result = call(cell, *arguments, **options)
        if self._step is not None and self._step.gradients != gradients:
            self._step.training_sites.add(("cell", id(cell)))
            self._step.add_output(result)
            self._updated()
        return result

    def _graph_cell(self, cell: Any, arguments: Any, options: Any, call: Callable[..., Any]) -> Any:
        return self._run_graph(
            _GraphCall(
                site=("cell", id(cell)),
                name=type(cell).__name__,
                may_train=_may_train(cell),
                kept=cell,
                inputs=(arguments, options),
                front_end=lambda: cell_graph(cell, *_bound(cell, arguments, options)),
                compile_fully=lambda: compiled_cell(cell, *_bound(cell, arguments, options)),
                run=lambda: call(cell, *arguments, **options),
            )
        )

    # -- jit functions -------------------------------------------------------------------------------------------------

    def _hook_jit(self) -> None:
        call = api._JitExecutor.__call__

        def hooked(executor: Any, *arguments: Any, **options: Any) -> Any:
            if self._depth:
                return call(executor, *arguments, **options)
            with self._inside():
                own = arguments[1:] if executor.obj is not None else arguments
                function, gradient = differentiated(executor.fn)
                identity = identity_of(function)
                return self._run_graph(
                    _GraphCall(
                        site=("gradient", identity, gradient.names) if gradient else ("function", identity),
                        name=name_of(function),
                        may_train=False,
                        kept=function,
                        inputs=(own, options),
                        front_end=lambda: function_graph(executor, arguments, options),
                        compile_fully=lambda: compiled_function(executor, arguments, options),
                        run=lambda: call(executor, *arguments, **options),
                        gradient=gradient,
                    )
                )

        api._JitExecutor.__call__ = hooked

    # -- graphs --------------------------------------------------------------------------------------------------------

    def _run_graph(self, call: _GraphCall) -> Any:
        """Run an outermost graph; where it belongs to a step, keep its MindIR and what it gives to the optimizers."""
        if call.site in self._gradientless and self._step is None and not call.may_train:
            return call.run()
        if call.site in self._seen_sites:
            self._begin(call.site, call.name, call.inputs, call.kept)
            return call.run() if self._numbers else blank_results(call.front_end())
        compiled = self._compile(call)
        graph, trains = compiled.graph, compiled.trains
        if not trains and not call.may_train and self._step is None:
            if not self._numbers and graph is not None and communicates(graph):
                return blank_results(graph)
            self._gradientless.add(call.site)
            self._kept_alive.append(call.kept)
            return call.run()
        self._begin(call.site, call.name, call.inputs, call.kept)
        step = self._step
        if step is None:
            return call.run()
        if graph is not None:
            step.add_graph(call.site, graph, "step")
        else:
            step.lack_graph(f"{call.name}: {compiled.problem}")
        if not self._numbers:
            return self._pass_over(step, call, trains, graph)
        if not trains:
            result = call.run()
            step.add_loss("separate", result)
            return result
        step.gradients += 1
        step.training_sites.add(call.site)
        self._write(step)
        if call.gradient is None:
            return self._run_training_graph(step, call, compiled)
        result = call.run()
        call.gradient.keep(step, result)
        if not call.gradient.gives_value:
            self._evaluate_loss(step, call.kept, call.gradient.own_arguments(call.inputs[0]), call.inputs[1])
        return result

    def _compile(self, call: _GraphCall) -> _Compiled:
        """Compile what is called; to be run, unless there is something in it that has no kernel here."""
        if self._step is None:
            # It may begin a step: what is drawn while it compiles is part of that.
            ms.set_seed(_SEED)
        unready = ""
        if self._numbers:
            try:
                return self._compile_recording(call)
            except Exception as error:  # also sparse gradients, optimizers of another signature: parameters must do
                unready = _first_line(error)
        try:
            graph = call.front_end()
            return _Compiled(graph, has_backward(graph), unrecorded=unready)
        except NoMindIR as error:
            return _Compiled(None, error.has_backward, problem=_first_line(error), unrecorded=unready)
        except Exception as error:  # whatever the compiler raises: the run will raise it, too
            return _Compiled(None, trains=False, problem=_first_line(error), unrecorded=unready)

    def _compile_recording(self, call: _GraphCall) -> _Compiled:
        """In this one compilation optimizers learn to keep their gradients, as its graph does not show them."""
        try:
            with recording(live_optimizers() if call.gradient is None else ()):
                graph = without_recording(call.compile_fully())
        except NoMindIR as error:
            return _Compiled(None, error.has_backward, problem=_first_line(error))
        return _Compiled(graph, has_backward(graph))

    def _pass_over(self, step: Step, call: _GraphCall, trains: bool, graph: bytes | None) -> Any:
        """Go on as if the graph had been run."""
        step.gradients += trains
        if trains:
            step.training_sites.add(call.site)
        if trains and call.gradient is None:
            own = _optimizers_in(call.kept)
            step.optimizers += own if own is not None else live_optimizers()
        self._write(step)
        self._updated()
        if graph is None:
            # Nobody knows what it would give.
            self.close()
            self._finish()
            return None
        return blank_results(graph)

    def _run_training_graph(self, step: Step, call: _GraphCall, compiled: _Compiled) -> Any:
        optimizers = live_optimizers()
        result = call.run()
        step.add_output(result)
        if compiled.unrecorded:
            step.remark(f"gradients could not be recorded in the graph: {compiled.unrecorded}")
            step.optimizers += optimizers
        for optimizer in recorded(optimizers) if not compiled.unrecorded else ():
            step.optimizers.append(optimizer)
            step.add_update(kept_gradients(optimizer))
        self._updated()
        return result

    def _evaluate_loss(self, step: Step, function: Any, arguments: Any, options: Any) -> None:
        """Run the forward pass once more: this gradient function gives no loss. The parameters stay as they were."""
        saved = {name: np.array(array) for name, array in snapshot(()).items()}
        try:
            step.add_loss("value", function(*arguments, **options))
        except Exception as error:
            step.remark(f"the loss could not be evaluated: {_first_line(error)}")
        restore(saved, ())

    def _add_graph(self, step: Step, site: Any, role: str, front_end: Callable[[], bytes]) -> None:
        try:
            step.add_graph(site, front_end(), role)
        except Exception as error:
            step.lack_graph(f"{role}: {_first_line(error)}")

    # -- gradients in PyNative mode ------------------------------------------------------------------------------------

    def _hook_gradient_operation(self, kind: Any) -> None:
        call = kind.__call__

        def hooked(operation: Any, fn: Any, weights: Any = None, *rest: Any, **options: Any) -> Any:
            gradient_function = call(operation, fn, weights, *rest, **options)
            # Only the inner one of the two nested operations of PyNative mode; wrapping the outer one makes a graph
            # that holds it parse the wrapper.
            if not operation.pynative_ or context._get_mode() == ms.GRAPH_MODE:
                return gradient_function
            function = without_auxiliary(fn)

            def followed(*arguments: Any, **keywords: Any) -> Any:
                name = name_of(function)
                site = ("gradient", identity_of(function), names_of(weights))
                self._begin(site, name, (arguments, keywords), function, inner=self._depth > 0)
                if self._step is not None:
                    self._step.training_sites.add(site)
                outer, self._in_gradient = self._in_gradient, True
                try:
                    with self._inside():
                        return gradient_function(*arguments, **keywords)
                finally:
                    self._in_gradient = outer

            return followed

        kind.__call__ = hooked

    def _hook_pynative_gradients(self) -> None:
        forward = vars(composite)["_pynative_func_grad_forward"]
        backward = api._PyNativeExecutor.grad

        def followed_forward(fn: Any, *arguments: Any, **options: Any) -> Any:
            if not self._in_gradient:  # but by vjp
                self._begin(
                    ("gradient", identity_of(fn), ()), name_of(fn), (arguments, options), fn, inner=self._depth > 0
                )
            nested, self._in_forward = self._in_forward, True
            try:
                outputs = forward(fn, *arguments, **options)
            finally:
                self._in_forward = nested
            if self._step is not None and not nested:
                self._step.gradients += 1
                self._step.add_forward(outputs, count_autograd_nodes(outputs), fn)
            return outputs

        def followed_backward(
            executor: Any, fn: Any, operation: Any, weights: Any, position: Any, has_aux: Any, *arguments: Any
        ) -> Any:
            gradients = backward(executor, fn, operation, weights, position, has_aux, *arguments)
            if self._step is not None:
                by_position = operation.get_all or getattr(operation, "get_by_position", False)
                self._step.add_gradients(paired(gradients, weights if operation.get_by_list else None, by_position))
            return gradients

        for module in (composite, importlib.import_module("mindspore.ops.function.grad.grad_func")):
            vars(module)["_pynative_func_grad_forward"] = followed_forward
        api._PyNativeExecutor.grad = followed_backward


@dataclass(frozen=True)
class _GraphCall:
    """An outermost call that runs a graph."""

    site: Any
    """What is called, apart from its arguments."""
    name: str
    may_train: bool
    """Whether it looks like training even if its graph holds no gradient."""
    kept: Any
    """The object whose identity the site is."""
    inputs: Any
    front_end: Callable[[], bytes]
    """Compiles to MindIR and no further."""
    compile_fully: Callable[[], bytes]
    """Compiles to MindIR, and what ``run`` then finds compiled."""
    run: Callable[[], Any]
    gradient: TopLevelGradient | None = None
    """Set where it is a gradient function that MindSpore made."""


@dataclass(frozen=True)
class _Compiled:
    """What came of compiling a call."""

    graph: bytes | None
    """Its MindIR, if it has one."""
    trains: bool
    """Whether it takes gradients."""
    problem: str = ""
    """Why there is no MindIR."""
    unrecorded: str = ""
    """Why it is not compiled so that optimizers keep their gradients."""


def _bound(cell: Any, arguments: Any, options: Any) -> tuple[Any, Any]:
    """Arguments as graph mode binds them: by position, defaults filled in."""
    if not options:
        return arguments, options
    bound = cell._construct_sig.bind(*arguments, **options)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _may_train(cell: Any) -> bool:
    """In training mode, or holding an optimizer or a gradient operation."""
    if cell.training:
        return True
    for _, inner in cell.cells_and_names():
        held = (*vars(inner).values(), *inner._cells.values())
        if any(isinstance(value, (composite.GradOperation, composite._Grad, *OPTIMIZERS)) for value in held):
            return True
    return False


def _optimizers_in(called: Any) -> list[Any] | None:
    """The optimizers that a cell holds; None if it is no cell, as functions reach theirs in any way."""
    if not isinstance(called, nn.Cell):
        return None
    held = (value for _, cell in called.cells_and_names() for value in (cell, *vars(cell).values()))
    return [value for value in held if isinstance(value, OPTIMIZERS)]


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
