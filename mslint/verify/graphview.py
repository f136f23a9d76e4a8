"""The compiled graphs of a step as plain data, and which nodes of it have a counterpart in the rewritten script."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from mslint.verify.mindir import sources_of, working_nodes
from mslint.verify.result import GraphNode, GraphView

_ROOTS = ("Default", "recompute_Default")
_GRADIENT = "Grad_"


def view(graphs: Iterable[nx.DiGraph]) -> GraphView:
    """The working nodes of all graphs of a step, with the flow of data between them; nothing is matched yet."""
    nodes: list[GraphNode] = []
    edges: dict[tuple[int, int], None] = {}
    for graph in graphs:
        number = {name: len(nodes) + place for place, name in enumerate(working_nodes(graph))}
        forward = {
            node["identity"]: number[name]
            for name, node in graph.nodes(data=True)
            if name in number and node["identity"] is not None
        }
        for name, own in number.items():
            node = graph.nodes[name]
            nodes.append(_node(node, forward.get(node["forward"])))
            for given in node["inputs"]:
                for source, _ in sources_of(graph, given):
                    edges[number[source], own] = None
    # The gradient of an operator that several cells use is compiled once, with the scope of one of them.
    placed = (node if node.forward is None else replace(node, cells=nodes[node.forward].cells) for node in nodes)
    return GraphView(tuple(placed), tuple(edges))


def _node(node: dict[str, Any], forward: int | None) -> GraphNode:
    cells = node["scope"].split("/")[:-1]
    if cells and cells[0] == "Gradients":
        cells = cells[1:]
    if cells and cells[0] in _ROOTS:
        cells = cells[1:]
    return GraphNode(
        operator=node["op"],
        kind=node["kind"],
        cells=tuple(cell for cell in cells if not cell.startswith(_GRADIENT)),
        gradient_of=next((cell[len(_GRADIENT) :] for cell in cells if cell.startswith(_GRADIENT)), None),
        shapes=node["shapes"],
        bytes=sum(node["bytes"]),
        source=node["source"],
        forward=forward,
    )


def match(before: GraphView, after: GraphView) -> tuple[GraphView, GraphView]:
    """Give each node its counterpart on the other side: one that looks like it, which is no proof that it is the same.

    Nodes of the same operator, kind, scope and shapes are paired, first those whose surroundings are alike two steps
    far, then one step, then none; last those that are alike but for the scope.
    """
    counterparts: tuple[dict[int, int], dict[int, int]] = ({}, {})
    sides = (before, after)
    likenesses: list[list[Sequence[Hashable]]] = [[_colours(side, rounds) for side in sides] for rounds in (2, 1, 0)]
    likenesses.append([[(node.kind, node.operator, node.shapes) for node in side.nodes] for side in sides])
    for one, other in likenesses:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for index, colour in enumerate(other):
            if index not in counterparts[1]:
                waiting[colour].append(index)
        for index, colour in enumerate(one):
            if index not in counterparts[0] and waiting.get(colour):
                partner = waiting[colour].popleft()
                counterparts[0][index], counterparts[1][partner] = partner, index
    return tuple(  # type: ignore[return-value]
        replace(
            side,
            nodes=tuple(replace(node, counterpart=found.get(index)) for index, node in enumerate(side.nodes)),
        )
        for side, found in zip(sides, counterparts, strict=True)
    )


def _colours(graph: GraphView, rounds: int) -> list[Hashable]:
    """What each node looks like with its surroundings (Weisfeiler and Lehman's refinement)."""
    readers: dict[int, list[int]] = defaultdict(list)
    givers: dict[int, list[int]] = defaultdict(list)
    for source, target in graph.edges:
        readers[source].append(target)
        givers[target].append(source)
    colours: list[Hashable] = [(node.kind, node.operator, node.cells, node.shapes) for node in graph.nodes]
    for _ in range(rounds):
        hashed = [hash(colour) for colour in colours]
        colours = [
            (own, *(tuple(sorted(hashed[neighbour] for neighbour in near[index])) for near in (givers, readers)))
            for index, own in enumerate(hashed)
        ]
    return colours
