"""Starts of a program that train in data parallel, with what runs in each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mslint.program.calls import CallGraph, Function
from mslint.program.dependence import values_of
from mslint.program.distribution import Run, distribution
from mslint.program.project import Program

_OTHER_MODES = frozenset({"semi_auto_parallel", "auto_parallel"})
_TRAINING = re.compile(
    r"^mindspore\.(value_and_grad|ops\.GradOperation|nn\.(TrainOneStep\w*|ForwardValueAndGrad"
    r"|Adam\w*|SGD|Momentum|RMSProp|Lamb|LARS|Adagrad|FTRL|LazyAdam|Rprop|ProximalAdagrad))$"
)
_TRAINING_CALLS = ("mindspore.Model.train", "mindspore.Model.fit")


@dataclass(frozen=True)
class ParallelRun:
    """A start that trains in data parallel, and all that may run then, as nodes of the call graph around it."""

    graph: CallGraph
    reached: frozenset[str]
    run: Run

    @property
    def entry(self) -> str:
        """Its module level, as a node of the call graph."""
        return f"{self.run.entry}:"

    @property
    def init(self) -> tuple[Path, int]:
        """The file and row of the call that makes it distributed."""
        assert self.run.init is not None
        return self.run.init.place.path, self.run.init.place.row

    def skips(self, path: Path, row: int, beside: Iterable[int]) -> bool:
        """Tell whether a branch that is not taken holds ``row``: rows of its function ``beside`` it run, it does not."""
        return not self.run.reaches(path, row) and any(self.run.reaches(path, other) for other in beside)


def parallel_runs(program: Program, path: Path) -> Iterator[ParallelRun]:
    """Yield the starts that train in data parallel and may run code of ``path``, each computed when it is asked for."""
    for run in distribution(program).runs(path):
        # Where the ranks share a batch, what is drawn for it must be equal.
        if run.modes & _OTHER_MODES or True in run.setting("full_batch") or _mode_out_of_sight(run):
            continue
        graph = program.call_graph(run.entry)
        found = graph.remember((parallel_runs, run), lambda run=run, graph=graph: _parallel_run(graph, run))  # type: ignore[misc]
        if found is not None:
            yield found


def _mode_out_of_sight(run: Run) -> bool:
    """Tell whether the parallel mode comes from a mapping (``**settings``) that was not seen."""
    return not run.modes and any(event.open for event in run.named("mindspore.set_auto_parallel_context"))


def _parallel_run(graph: CallGraph, run: Run) -> ParallelRun | None:
    reached = _running(graph, f"{run.entry}:")
    return ParallelRun(graph, reached, run) if run.trains or _may_train(graph, reached, run) else None


def _may_train(graph: CallGraph, reached: frozenset[str], run: Run) -> bool:
    """Tell whether a training step is built, although what it is fed with was not seen to be a data set."""
    called = {event.name for event in run.events}
    if not called.isdisjoint(_TRAINING_CALLS):
        return True
    if "mindspore.Model.eval" in called:
        # Evaluation scripts build training steps to load what these were trained to.
        return False
    values = values_of(graph)
    return any(
        _TRAINING.match(values.resolve(call.path, call.callee))
        for node in reached
        for call in graph.functions[node].calls
        if not run.rehearsal.complete or run.reaches(call.path, call.row)
    )


def starts(graph: CallGraph) -> dict[str, frozenset[str]]:
    """Return what runs in each start of the program of ``graph``, by its module level."""
    return {entry: _running(graph, entry) for entry in graph.entries()}


def _running(graph: CallGraph, entry: str) -> frozenset[str]:
    return graph.remember((running, entry), lambda: frozenset(running(graph, entry)))


def running(graph: CallGraph, start: str) -> set[str]:
    """Return what runs when ``start`` runs, with itself.

    A method counts where its class is built and some function that runs calls a method of that name: which object the
    method is called on is not known.
    """
    found: set[str] = set()
    queue = [start]
    called: set[str] = set()
    methods: dict[str, list[str]] = {}
    while queue:
        node = queue.pop()
        if node in found:
            continue
        found.add(node)
        queue.extend(_next(graph, node, imported=node != start))
        function = graph.functions[node]
        for name in _method_names(function):
            if name not in called:
                called.add(name)
                queue.extend(methods.get(name, []))
        for method in _siblings(graph, function):
            name = method.rpartition(".")[2]
            if method not in found:
                methods.setdefault(name, []).append(method)
                if name in called:
                    queue.append(method)
    return found


def _next(graph: CallGraph, node: str, imported: bool) -> Iterator[str]:
    """Yield what ``node`` runs: of a file that is only imported, not what stands behind its ``__main__`` guard."""
    for target, call in graph.calls(node):
        if not (imported and node.endswith(":") and any("__main__" in test.test for test in call.conditions)):
            yield target


def _method_names(function: Function) -> Iterator[str]:
    for name in (*(call.callee for call in function.calls), *(name for name, _ in function.mentions)):
        if "." in name:
            yield name.rpartition(".")[2]


def _siblings(graph: CallGraph, function: Function) -> list[str]:
    """Return the methods of the class that ``function`` is a method of, inherited ones included."""
    owner = function.name.rpartition(".")[0]
    if not owner:
        return []
    table = graph.remember(_methods, lambda: _methods(graph))
    return [method for base in graph.program.lineage(f"{function.path}:{owner}") for method in table.get(base, ())]


def _methods(graph: CallGraph) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for node, function in graph.functions.items():
        owner = function.name.rpartition(".")[0]
        table.setdefault(f"{function.path}:{owner}", []).append(node)
    return table
