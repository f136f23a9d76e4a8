"""Starts of a program that train in data parallel, with what runs in each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mslint.program.calls import CallGraph, CallSite, Function
from mslint.program.dependence import values_of

_INIT = re.compile(r"^mindspore\.(communication\.init|mint\.distributed\.init_process_group)$")
_CONTEXT = re.compile(r"^mindspore\.(set_auto_parallel_context|parallel\.auto_parallel\.AutoParallel)$")
_MODEL_PARALLEL = re.compile(r"(?<!\w)(semi_)?auto_parallel|AUTO_PARALLEL", re.IGNORECASE)
_TRAINING = re.compile(
    r"^mindspore\.(value_and_grad|grad|ops\.GradOperation|nn\.(TrainOneStep\w*|ForwardValueAndGrad)"
    r"|nn\.(Adam\w*|SGD|Momentum|RMSProp|Lamb|LARS|Adagrad|FTRL|LazyAdam|Rprop|ProximalAdagrad|optim\.\w+))$"
)
_TRAINING_METHODS = (".train", ".fit")


@dataclass(frozen=True)
class ParallelRun:
    """One start that trains in data parallel: its module level, all that runs then, and the call that makes it parallel."""

    entry: str
    reached: frozenset[str]
    init: CallSite


def parallel_runs(graph: CallGraph) -> tuple[ParallelRun, ...]:
    """Return the starts of the program of ``graph`` that train in data parallel."""
    return graph.remember(parallel_runs, lambda: tuple(_runs(graph)))


def starts(graph: CallGraph) -> dict[str, frozenset[str]]:
    """Return what runs in each start of the program of ``graph``, by its module level."""
    return graph.remember(starts, lambda: {entry: frozenset(running(graph, entry)) for entry in graph.entries()})


def _runs(graph: CallGraph) -> Iterator[ParallelRun]:
    values = values_of(graph)
    for entry, reached in starts(graph).items():
        init: CallSite | None = None
        steps = trains = built = otherwise = False
        for node in reached:
            for call in graph.functions[node].calls:
                if call.callee.endswith(_TRAINING_METHODS):
                    trains = True
                name = values.resolve(call.path, call.callee)
                if not name.startswith("mindspore"):
                    continue
                built = built or name == "mindspore.Model"
                steps = steps or _TRAINING.match(name) is not None
                if _INIT.match(name):
                    init = init or call
                elif _CONTEXT.match(name):
                    text = " ".join([*call.arguments, *(value for _, value in call.keywords)])
                    otherwise = otherwise or call.keyword("full_batch") == "True" or bool(_MODEL_PARALLEL.search(text))
        if init is not None and (steps or (built and trains)) and not otherwise:
            yield ParallelRun(entry, reached, init)


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
        queue.extend(graph.graph.successors(node))
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
