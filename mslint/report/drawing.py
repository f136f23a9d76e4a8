"""The compiled graph before and after, side by side as SVG: large scopes are folded, and unfold into drawings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from mslint.report.markup import Html, element, joined
from mslint.verify import GraphNode, GraphView

FOLDED_FROM = 48
"""Up to so many nodes a scope is drawn as a whole, with those of the scopes in it."""
_MOST_BOXES = 150
_BOX_WIDTH, _BOX_HEIGHT, _GAP, _LAYER_GAP, _PER_ROW = 124, 32, 8, 22, 3
_WIDTH = _PER_ROW * (_BOX_WIDTH + _GAP) - _GAP + 4
_LONGEST_TITLE, _LONGEST_SUBTITLE = 17, 23
_SIGNS = {"removed": "\N{MINUS SIGN} ", "added": "+ "}


def drawings(before: GraphView, after: GraphView, kinds: Sequence[str], prefix: str) -> Html:
    """Both graphs, of these kinds of nodes. Ids of what unfolds begin with ``prefix``."""
    sides = (before, after)
    root = _Scope(())
    for side, graph in enumerate(sides):
        for index, node in enumerate(graph.nodes):
            if node.kind in kinds:
                root.at(node.cells).own[side].append(index)
    numbers = count(1)
    return _Drawing(sides, lambda: f"{prefix}-{next(numbers)}").scope(root.without_chains())


def summary_of(node: GraphNode) -> str:
    """What there is to say of a node, a line for each."""
    what = f"{node.operator}, {node.kind}"
    if node.gradient_of:
        what += f" of {node.gradient_of}"
    size = f", {node.bytes:,} bytes" if node.bytes else ""
    lines = [what, ", ".join(node.shapes) + size, "/".join(node.cells), node.source or ""]
    return "\n".join(line for line in lines if line)


@dataclass
class _Scope:
    """A cell of the network with its nodes on both sides."""

    cells: tuple[str, ...]
    """Its place: what stands before a chain of scopes that hold nothing but each other is left out of the label."""
    children: dict[str, _Scope] = field(default_factory=dict)
    own: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    label: str = ""

    def at(self, cells: Iterable[str]) -> _Scope:
        scope = self
        for cell in cells:
            scope = scope.children.setdefault(cell, _Scope((*scope.cells, cell), label=cell))
        return scope

    def without_chains(self) -> _Scope:
        """Scopes that hold one other scope and nothing else are one with it."""
        if len(self.children) == 1 and not any(self.own):
            inner = next(iter(self.children.values())).without_chains()
            inner.label = f"{self.label}/{inner.label}" if self.label else inner.label
            return inner
        self.children = {name: child.without_chains() for name, child in self.children.items()}
        return self

    @cached_property
    def nodes(self) -> tuple[list[int], list[int]]:
        """The nodes in it, at any depth, in the order of the graph."""
        inner = [child.nodes for child in self.children.values()]
        before, after = (
            sorted([*self.own[side], *(index for nodes in inner for index in nodes[side])]) for side in (0, 1)
        )
        return before, after


@dataclass(frozen=True)
class _Box:
    """What is drawn as one: a node, like nodes, or a folded scope."""

    members: tuple[int, ...]
    title: str
    subtitle: str
    tooltip: str
    mark: str
    """``removed``, ``added``, ``mixed`` or nothing."""
    target: str | None = None
    """The id of what the box unfolds into."""


class _Drawing:
    def __init__(self, sides: tuple[GraphView, GraphView], new_id: Callable[[], str]) -> None:
        self._sides = sides
        self._new_id = new_id

    def scope(self, scope: _Scope) -> Html:
        """Draw a scope on both sides, followed by the scopes in it that are folded."""
        if max(map(len, scope.nodes)) <= FOLDED_FROM:
            boxes = [[self._node_box(side, index) for index in scope.nodes[side]] for side in (0, 1)]
            children: list[tuple[_Scope, str]] = []
        else:
            children = [(child, self._new_id()) for child in scope.children.values()]
            boxes = [
                [
                    *(self._scope_box(side, child, target) for child, target in children if child.nodes[side]),
                    *self._own_boxes(side, scope),
                ]
                for side in (0, 1)
            ]
        if not self._changed(scope):
            shown = [self._figure("before and after: unchanged", 0, boxes[0])]
        else:
            shown = [self._figure(name, side, boxes[side]) for side, name in enumerate(("before", "after"))]
        return joined(
            element("div", *shown, class_="sides"), *(self._unfolding(child, target) for child, target in children)
        )

    def _unfolding(self, child: _Scope, target: str) -> Html:
        before, after = child.nodes
        removed, added = self._count_changed(child)
        changes = [element("b", text, class_=mark) for text, mark in _changes(removed, added)]
        summary = element(
            "summary",
            element("span", child.label, class_="scope"),
            element("span", f"{len(before):,} \N{RIGHTWARDS ARROW} {len(after):,}", class_="number"),
            element("span", *changes, class_="number change"),
        )
        # The target lies inside: browsers open what is closed around the target of a link.
        return element("details", summary, element("div", self.scope(child), id=target), class_="fold")

    def _changed(self, scope: _Scope) -> bool:
        return any(self._count_changed(scope))

    def _count_changed(self, scope: _Scope) -> tuple[int, int]:
        removed, added = (
            sum(self._sides[side].nodes[index].counterpart is None for index in scope.nodes[side]) for side in (0, 1)
        )
        return removed, added

    # -- boxes ---------------------------------------------------------------------------------------------------------

    def _node_box(self, side: int, index: int) -> _Box:
        node = self._sides[side].nodes[index]
        mark = _mark(side, [node])
        told = f"{summary_of(node)}\n{mark}" if mark else summary_of(node)
        return _Box((index,), node.operator, ", ".join(node.shapes), told, mark)

    def _own_boxes(self, side: int, scope: _Scope) -> list[_Box]:
        """The nodes of a scope itself; if they are many, like ones are drawn as one."""
        own = scope.own[side]
        if len(own) <= FOLDED_FROM:
            return [self._node_box(side, index) for index in own]
        for key in (
            lambda node: (node.operator, node.counterpart is None, node.shapes, node.source),
            lambda node: (node.operator, node.counterpart is None, node.source),
            lambda node: (node.operator, node.counterpart is None),
        ):
            alike: dict[object, list[int]] = defaultdict(list)
            for index in own:
                alike[key(self._sides[side].nodes[index])].append(index)
            if len(alike) <= _MOST_BOXES:
                break
        return [self._alike_box(side, members) for members in alike.values()]

    def _alike_box(self, side: int, members: Sequence[int]) -> _Box:
        if len(members) == 1:
            return self._node_box(side, members[0])
        nodes = [self._sides[side].nodes[index] for index in members]
        mark = _mark(side, nodes)
        sources = list(dict.fromkeys(node.source for node in nodes if node.source))
        lines = [f"{len(nodes):,} nodes {nodes[0].operator}", "/".join(nodes[0].cells), *_some(sources), mark]
        return _Box(
            tuple(members),
            nodes[0].operator,
            f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{len(nodes):,}",
            "\n".join(line for line in lines if line),
            mark,
        )

    def _scope_box(self, side: int, child: _Scope, target: str) -> _Box:
        nodes = [self._sides[side].nodes[index] for index in child.nodes[side]]
        unmatched = sum(node.counterpart is None for node in nodes)
        sign = f", {_SIGNS['added' if side else 'removed'].strip()}{unmatched:,}" if unmatched else ""
        told = f"{'/'.join(child.cells)}\n{len(nodes):,} nodes{sign}"
        return _Box(
            tuple(child.nodes[side]), child.label, f"{len(nodes):,} nodes{sign}", told, _mark(side, nodes), target
        )

    # -- layout --------------------------------------------------------------------------------------------------------

    def _figure(self, name: str, side: int, boxes: Sequence[_Box]) -> Html:
        nodes = sum(len(box.members) for box in boxes)
        caption = element("figcaption", name, element("span", f"{nodes:,} nodes", class_="number"))
        if not boxes:
            return element("figure", caption, element("p", "nothing", class_="empty"))
        if len(boxes) > _MOST_BOXES:
            return element("figure", caption, element("p", f"{len(boxes):,} parts: unfold them below", class_="empty"))
        boxes = sorted(boxes, key=lambda box: box.members[0])
        edges = self._edges(side, boxes)
        places, height = _places(len(boxes), edges)
        drawn = [
            *(_line(places[source], places[target], boxes[source], boxes[target]) for source, target in edges),
            *(_drawn(box, place) for box, place in zip(boxes, places, strict=True)),
        ]
        svg = element(
            "svg", *drawn, viewBox=f"0 0 {_WIDTH} {height}", width=_WIDTH, height=height, role="group",
            aria_label=f"graph {name}",
        )  # fmt: skip
        return element("figure", caption, svg)

    def _edges(self, side: int, boxes: Sequence[_Box]) -> list[tuple[int, int]]:
        """The flow of data between boxes. What comes from or goes to other scopes is not drawn."""
        box_of = {index: number for number, box in enumerate(boxes) for index in box.members}
        followers = self._followers[side]
        found = {
            (box, box_of[target]): None
            for index, box in box_of.items()
            for target in followers.get(index, ())
            if box_of.get(target, box) != box
        }
        return list(found)

    @cached_property
    def _followers(self) -> tuple[Mapping[int, list[int]], ...]:
        found = []
        for graph in self._sides:
            followers: dict[int, list[int]] = defaultdict(list)
            for source, target in graph.edges:
                followers[source].append(target)
            found.append(followers)
        return tuple(found)


def _changes(removed: int, added: int) -> Iterable[tuple[str, str]]:
    if removed:
        yield f"\N{MINUS SIGN}{removed:,}", "removed"
    if added:
        yield f"+{added:,}", "added"


def _mark(side: int, nodes: Sequence[GraphNode]) -> str:
    unmatched = sum(node.counterpart is None for node in nodes)
    if not unmatched:
        return ""
    if unmatched < len(nodes):
        return "mixed"
    return "added" if side else "removed"


def _some(texts: Sequence[str], most: int = 3) -> list[str]:
    return [*texts[:most], *([f"and {len(texts) - most} more lines"] if len(texts) > most else [])]


def _places(number: int, edges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """Where boxes stand, in layers by the flow of data, and the height of it all.

    Boxes come in the order of the graph; scopes may give data to each other both ways: what goes against the order of
    the first nodes has no part in the layers.
    """
    givers: dict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        if source < target:
            givers[target].append(source)
    layer = [0] * number
    for box in range(number):
        layer[box] = max((layer[giver] + 1 for giver in givers[box]), default=0)
    layers: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for box in range(number):
        layers[layer[box]].append(box)
    places = [(0, 0)] * number
    top = 2
    for boxes in layers:
        # Near the middle of what they read; that is in its place already.
        boxes.sort(key=lambda box: (sum(places[giver][0] for giver in givers[box]) / max(1, len(givers[box])), box))
        for start in range(0, len(boxes), _PER_ROW):
            row = boxes[start : start + _PER_ROW]
            left = (_WIDTH - len(row) * (_BOX_WIDTH + _GAP) + _GAP) // 2
            for column, box in enumerate(row):
                places[box] = (left + column * (_BOX_WIDTH + _GAP), top)
            top += _BOX_HEIGHT + _GAP
        top += _LAYER_GAP - _GAP
    return places, top - _LAYER_GAP + 2


def _line(source: tuple[int, int], target: tuple[int, int], giver: _Box, reader: _Box) -> Html:
    # Data that flows against the layers leaves above and arrives below.
    (x, upper), (to_x, lower) = sorted((source, target), key=lambda place: place[1])
    x, to_x, y = x + _BOX_WIDTH // 2, to_x + _BOX_WIDTH // 2, upper + _BOX_HEIGHT
    # What passes other layers keeps clear of the boxes between as far as a curve can.
    bow = 0 if lower - y <= _LAYER_GAP else (_BOX_WIDTH // 2 + _GAP) * (-1 if x > _WIDTH // 2 else 1)
    reach = max(_LAYER_GAP // 2, (lower - y) // 3)
    changed = {"removed", "added"} & {giver.mark, reader.mark}
    kind = f' class="{changed.pop()}"' if changed else ""
    return Html(f'<path d="M{x} {y}C{x + bow} {y + reach} {to_x + bow} {lower - reach} {to_x} {lower}"{kind}/>')


def _drawn(box: _Box, place: tuple[int, int]) -> Html:
    inside = joined(
        element("title", box.tooltip),
        Html(f'<rect width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/>'),
        element("text", _shortened(_SIGNS.get(box.mark, "") + box.title, _LONGEST_TITLE), x=_BOX_WIDTH // 2, y=13),
        element("text", _shortened(box.subtitle, _LONGEST_SUBTITLE), x=_BOX_WIDTH // 2, y=26, class_="small"),
    )
    where = f"translate({place[0]} {place[1]})"
    if box.target is None:
        return element("g", inside, class_=f"node {box.mark}".rstrip(), transform=where, tabindex=0, role="img")
    return element("a", inside, class_=f"node folded {box.mark}".rstrip(), transform=where, href=f"#{box.target}")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
