"""Shuffled, sharded sources of data sets, and whether a seed comes before they are built."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from mslint.program.calls import CallGraph, CallSite
from mslint.program.dependence import argument, values_of
from mslint.program.randomness import Seed, Stream, randomness_of

_SAMPLER = re.compile(r"^mindspore\.dataset\.(\w+\.)*DistributedSampler$")
_SHUFFLE_OF_SAMPLER = 2


def shuffled_shards(graph: CallGraph) -> tuple[CallSite, ...]:
    """Return the calls that build a source with ``num_shards``, or a DistributedSampler, and may shuffle it."""
    return graph.remember(shuffled_shards, lambda: tuple(_shuffled_shards(graph)))


def _shuffled_shards(graph: CallGraph) -> Iterator[CallSite]:
    values = values_of(graph)
    for function in graph.functions.values():
        for call in function.calls:
            sampler = call.callee.endswith("DistributedSampler")
            if not sampler and call.keyword("num_shards") in (None, "None", "1"):
                continue
            name = values.resolve(call.path, call.callee)
            if _SAMPLER.match(name) or (not sampler and name.startswith("mindspore.dataset.")):
                yield call


def is_shuffled(graph: CallGraph, source: CallSite, within: Container[str]) -> bool:
    """Tell whether ``source`` shuffles: by default it does. A parameter counts as the calls from ``within`` pass it."""
    text = source.keyword("shuffle")
    if text is None and source.callee.endswith("DistributedSampler") and len(source.arguments) > _SHUFFLE_OF_SAMPLER:
        text = source.arguments[_SHUFFLE_OF_SAMPLER]
    function = graph.functions[f"{source.path}:{source.function}"]
    if text in function.parameters:
        default = dict(function.defaults).get(text)
        passed = {
            argument(call, function, text) or default for call in graph.callers(function.node) if call.caller in within
        }
        return passed != {"False"}
    return text != "False"


def seeded_before(graph: CallGraph, seed: Seed, source: CallSite, within: Container[str]) -> bool:
    """Tell whether ``source`` is built after ``seed``, no other seed of the data set in between.

    In the function that seeds, rows tell the order; where it builds nothing itself, the functions that call it do.
    """
    goal = f"{source.path}:{source.function}"
    queue, seen = [(seed.node, seed.call.row)], set()
    while queue:
        node, row = queue.pop()
        if node in seen or node not in within:
            continue
        seen.add(node)
        rows = sorted(_rows_that_build(graph, node, goal, source))
        later = [other for other in rows if other > row]
        if later:
            if not _seeded_again(graph, seed, node, row, later[0]):
                return True
        elif not rows:
            queue += [(call.caller, call.row) for call in graph.callers(node)]
    return False


def _rows_that_build(graph: CallGraph, node: str, goal: str, source: CallSite) -> Iterator[int]:
    if node == goal:
        yield source.row
    for target, call in graph.calls(node):
        if call.callee == "import" or target == node:
            continue
        if goal in graph.remember((seeded_before, target), lambda t=target: graph.reached(t)):  # type: ignore[misc]
            yield call.row


def _seeded_again(graph: CallGraph, seed: Seed, node: str, start: int, end: int) -> bool:
    return any(
        other.node == node and start < other.call.row < end and Stream.DATA in other.streams
        for other in randomness_of(graph).seeds
        if other is not seed
    )
