"""Random streams of a program: which calls seed them, which draw from them, and what the draws are for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mslint.program.calls import CallGraph, CallSite, Function, remembered
from mslint.program.dependence import values_of
from mslint.program.facts import dotted

# `mindspore.common.seed.set_seed`, resolved step by step, loses its `common`.
_FRAMEWORK_SEED = re.compile(r"^mindspore\.(seed\.)?set_seed$")
_DATA_SEED = re.compile(r"^mindspore\.dataset\.(\w+\.)*set_seed$")
_NUMPY_DRAW = re.compile(
    r"^numpy\.random\.(?!(seed|get_state|set_state|RandomState|default_rng|Generator|SeedSequence|MT19937|PCG64|mtrand)$)"
    r"[a-z_]+$"
)
_PYTHON_DRAW = re.compile(r"^random\.(?!(seed|getstate|setstate)$)[a-z]+$")
_ORDER = re.compile(r"\.(shuffle|permutation|permuted|choice|choices|sample)$")
_SHUFFLE = re.compile(r"\.(shuffle|permutation|permuted)$")
_SAMPLER = re.compile(r"^mindspore\.dataset\.(\w+\.)*\w*Sampler$")
_EXPORT = re.compile(r"^mindspore\.(\w+\.)*export$")
_CELL = "mindspore.nn.Cell"
_INITIALIZER = "mindspore.common.initializer.Initializer"
_PIPELINE_STEPS = ("map", "batch", "padded_batch", "GeneratorDataset", "apply", "filter")
_ITERATORS = ("create_dict_iterator", "create_tuple_iterator")
_LOOPS = re.compile(rf"\b({'|'.join(_ITERATORS)}|yield)\b|\.[\s\\]*({'|'.join(_PIPELINE_STEPS)})\b")
"""What a file says that has a loop over batches, or a function that runs for each sample."""
_ITEM_METHODS = ("__getitem__", "__next__", "__iter__", "__call__")
_WEIGHTS = re.compile(
    r"^mindspore\.(Parameter|ParameterTuple|common\.initializer\.\w+|nn\.Embedding|nn\.probability\..*)$"
)


class Stream(Enum):
    """A global source of random numbers."""

    FRAMEWORK = "mindspore"
    DATA = "mindspore.dataset"
    NUMPY = "numpy.random"
    PYTHON = "random"


def seeded_by(name: str) -> frozenset[Stream]:
    """Return the streams that the function ``name`` seeds (measured on MindSpore 2.10.0); none if it seeds none."""
    if _FRAMEWORK_SEED.match(name):
        return frozenset(Stream)
    if _DATA_SEED.match(name):
        return frozenset(Stream) - {Stream.FRAMEWORK}
    if name in ("numpy.random.seed", "random.seed"):
        return frozenset({Stream(name.removesuffix(".seed"))})
    return frozenset()


class Purpose(Enum):
    """What a drawn number decides."""

    SAMPLE = "a sample"
    """Augmentation, noise, negative samples: drawn anew for each sample or step."""
    WEIGHTS = "initial weights"
    ORDER = "an order or a split"
    EXAMPLE = "an example input"
    OTHER = "something else"


@dataclass(frozen=True)
class Seed:
    """One call that seeds: what it is called with, and the streams that it starts anew."""

    call: CallSite
    name: str
    streams: frozenset[Stream]

    @property
    def node(self) -> str:
        """The function that seeds, as a node of the call graph."""
        return f"{self.call.path}:{self.call.function}"

    @property
    def argument(self) -> str | None:
        """The text of the seed; None if there is none, as in ``numpy.random.seed()``."""
        return self.call.arguments[0] if self.call.arguments else self.call.keyword("seed")


@dataclass(frozen=True)
class Draw:
    """One call that takes numbers from a global stream."""

    path: Path
    function: str
    row: int
    text: str
    stream: Stream
    purpose: Purpose

    @property
    def node(self) -> str:
        """The function that draws, as a node of the call graph."""
        return f"{self.path}:{self.function}"


class Randomness:
    """All seeds and draws of the program of ``graph``."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.values = values_of(graph)
        self.seeds: list[Seed] = []
        for function in graph.functions.values():
            for call in function.calls:
                name = call.callee.rpartition(".")[2]
                if "seed" in name:
                    self.seeds.extend(self._seed(call))

    @remembered
    def draws(self) -> list[Draw]:
        """All calls that take numbers from a global stream."""
        return [draw for function in self.graph.functions.values() for draw in self._draws(function)]

    def _seed(self, call: CallSite) -> Iterator[Seed]:
        name = self.values.resolve(call.path, call.callee)
        streams = seeded_by(name)
        if streams:
            yield Seed(call, name, streams)

    def seeds_in(self, path: Path) -> dict[int, Seed]:
        """Return the seeds of the file ``path``, by row."""
        return {seed.call.row: seed for seed in self.seeds if seed.call.path == path}

    def _draws(self, function: Function) -> Iterator[Draw]:
        read = [(call.callee, call.row) for call in function.calls] + list(function.mentions)
        for written, row in read:
            if "random" not in written and not self._from_random(function.path, written):
                continue
            name = self.values.resolve(function.path, written)
            stream = Stream.NUMPY if _NUMPY_DRAW.match(name) else Stream.PYTHON if _PYTHON_DRAW.match(name) else None
            if stream is not None:
                yield Draw(function.path, function.name, row, written, stream, self._purpose(function, row, name))

    def _from_random(self, path: Path, written: str) -> bool:
        facts = self.graph.program.facts(path)
        head = written.partition(".")[0]
        target = facts.imports.get(head) or facts.nested_imports.get(head) or ""
        return target.startswith(("random", "numpy.random"))

    def _purpose(self, function: Function, row: int, name: str) -> Purpose:
        in_order = _ORDER.search(name) is not None
        if function.node in self.item_functions:
            whole_epoch = in_order and function.name.endswith("__iter__")
            return Purpose.ORDER if whole_epoch else Purpose.SAMPLE
        if function.node in self.sampler_functions:
            return Purpose.ORDER
        if function.node in self.weight_functions:
            return Purpose.WEIGHTS
        if any(_EXPORT.match(self.values.resolve(call.path, call.callee)) for call in function.calls):
            return Purpose.EXAMPLE
        loops = self._loops(function)
        if function.node in self.step_functions or loops.holds(row):
            return Purpose.SAMPLE
        # A generator that shuffles does so once for all that it yields.
        if loops.generator and not _SHUFFLE.search(name):
            return Purpose.SAMPLE
        return Purpose.ORDER if in_order else Purpose.OTHER

    @remembered
    def item_functions(self) -> set[str]:
        """What runs for each sample: items of data sets, transforms, functions given to pipelines, and what these call."""
        starts: set[str] = set()
        for node, function in self.graph.functions.items():
            owner, _, method = node.rpartition(".")
            if method in _ITEM_METHODS and owner not in self._samplers and not self._descends(owner, _CELL):
                starts.add(node)
                # Transforms that the constructor picks from a list are called by the items.
                for builder in self._reached({f"{owner}.__init__"} & self.graph.functions.keys()):
                    starts.update(self._mentioned(self.graph.functions[builder]))
            for call in function.calls:
                if call.callee.rpartition(".")[2] in _PIPELINE_STEPS:
                    starts.update(self._handed_on(call))
            for name, row in self._loops(function).handed_on:
                starts.update(self.graph.targets(CallSite(function.path, function.name, row, name, (), (), ())))
        return self._reached(starts)

    @remembered
    def sampler_functions(self) -> set[str]:
        """What decides which samples come, and in which order, and does nothing for the samples themselves."""
        methods = {node for node in self.graph.functions if node.rpartition(".")[0] in self._samplers}
        return self._reached(methods) - self.item_functions

    @remembered
    def _samplers(self) -> set[str]:
        """The classes that data sets are given as ``sampler``, and those that descend from a sampler of MindSpore."""
        found: set[str] = set()
        for node, function in self.graph.functions.items():
            owner = node.rpartition(".")[0]
            if ".py:" in owner and any(_SAMPLER.match(base) for base in self._lineages(owner)):
                found.add(owner)
            given = {call.keyword("sampler") or "" for call in function.calls} - {"", "None"}
            targets = [
                target for call in function.calls if given & set(call.assigned) for target in self.graph.targets(call)
            ]
            for call in function.calls if given else ():
                targets += self._named_in(call, [call.keyword("sampler") or ""])
            found.update(target.rpartition(".")[0] for target in targets if target.endswith(".__init__"))
        return found

    @remembered
    def step_functions(self) -> set[str]:
        """What loops over batches run at each step."""
        starts: set[str] = set()
        for function in self.graph.functions.values():
            loops = self._loops(function)
            starts.update(
                target for call in function.calls if loops.holds(call.row) for target in self.graph.targets(call)
            )
        return self._reached(starts)

    @remembered
    def weight_functions(self) -> set[str]:
        """What computes initial weights: constructors of Cells, initializers, what makes or sets parameters and is called
        by such alone."""
        found: set[str] = set()
        for node, function in self.graph.functions.items():
            owner, _, method = node.rpartition(".")
            built = method == "__init__" and self._descends(owner, _CELL)
            if built or self._descends(owner, _INITIALIZER) or self._makes_parameters(function):
                found.add(node)
        for node in self._reached(found) - found:
            callers = {call.caller for call in self.graph.callers(node)}
            if callers and callers <= found | {node}:
                found.add(node)
        return found

    @remembered
    def local_seeds(self) -> set[Seed]:
        """The seeds that serve the draws of their own function: of a split, a schedule, made data.

        What that function calls draws nothing, and nothing that it draws is for a sample.
        """
        found: set[Seed] = set()
        by_node = self._draws_by_node
        for seed in self.seeds:
            own = [
                draw for draw in by_node.get(seed.node, []) if draw.stream in seed.streams and draw.row > seed.call.row
            ]
            if not seed.call.function or not own or any(draw.purpose is Purpose.SAMPLE for draw in own):
                continue
            below = self._reached({seed.node}) - {seed.node}
            if not any(draw.stream in seed.streams for node in below for draw in by_node.get(node, [])):
                found.add(seed)
        return found

    @remembered
    def seeded_nearby(self) -> set[Draw]:
        """The draws that a nearer seed decides: one that serves them alone, or one that is set anew for each sample."""
        found: set[Draw] = set()
        for seed in self.seeds:
            if seed.node in self.item_functions:
                nodes = self._reached({seed.node})
            elif seed in self.local_seeds:
                nodes = {seed.node}
            else:
                continue
            found.update(
                draw for node in nodes for draw in self._draws_by_node.get(node, []) if draw.stream in seed.streams
            )
        return found

    @remembered
    def _draws_by_node(self) -> dict[str, list[Draw]]:
        table: dict[str, list[Draw]] = {}
        for draw in self.draws:
            table.setdefault(draw.node, []).append(draw)
        return table

    def _makes_parameters(self, function: Function) -> bool:
        return any(
            call.callee.endswith(".set_data") or _WEIGHTS.match(self.values.resolve(function.path, call.callee))
            for call in function.calls
        )

    def _descends(self, owner: str, base: str) -> bool:
        return ".py:" in owner and base in self._lineages(owner)

    def _lineages(self, owner: str) -> tuple[str, ...]:
        return self.graph.program.lineage(owner)

    def _handed_on(self, call: CallSite) -> Iterator[str]:
        return self._named_in(call, [*call.arguments, *(value for _, value in call.keywords)])

    def _named_in(self, call: CallSite, texts: list[str]) -> Iterator[str]:
        for text in texts:
            nodes = list(ast.walk(_expression(text)))
            made = {node.func for node in nodes if isinstance(node, ast.Call)}
            for node in nodes:
                name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
                for target in self._targets(call, name) if name else ():
                    # Of an object that is made here, the constructor has run before it is handed on.
                    if node not in made or not target.endswith(".__init__"):
                        yield target

    def _targets(self, call: CallSite, name: str) -> list[str]:
        return self.graph.targets(CallSite(call.path, call.function, call.row, name, (), (), ()))

    def _mentioned(self, function: Function) -> Iterator[str]:
        for name, row in function.mentions:
            yield from self.graph.targets(CallSite(function.path, function.name, row, name, (), (), ()))

    def _reached(self, starts: set[str]) -> set[str]:
        return set(self.graph.reached_from(starts))

    def _loops(self, function: Function) -> _Loops:
        return self.graph.remember((_Loops, function.node), lambda: self._find_loops(function))

    def _find_loops(self, function: Function) -> _Loops:
        if not self.graph.program.says(function.path, _LOOPS):
            return _Loops((), (), False)
        definition = self.values.definition(function.path, function.name) if function.name else None
        body = definition.body if definition is not None else [] if function.name else self.values.level(function.path)
        nodes = list(_own_nodes(body))
        iterators = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _iterates(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        spans: list[tuple[int, int]] = []
        handed_on: list[tuple[str, int]] = []
        for node in nodes:
            if isinstance(node, ast.For):
                names = {item.id for item in ast.walk(node.iter) if isinstance(item, ast.Name)}
                if _iterates(node.iter) or names & iterators:
                    spans.append((node.lineno, node.end_lineno or 0))
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _PIPELINE_STEPS
            ):
                for item in (item for value in (*node.args, *node.keywords) for item in ast.walk(value)):
                    if isinstance(item, ast.Lambda):
                        spans.append((item.lineno, item.end_lineno or 0))
                    elif isinstance(item, (ast.Name, ast.Attribute)) and dotted(node.func) is None:
                        # `Dataset(...).map(f)`: the call graph knows no name for such a call.
                        handed_on.append((dotted(item) or "", node.lineno))
        return _Loops(
            tuple(spans), tuple(handed_on), any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
        )


@dataclass(frozen=True)
class _Loops:
    """The rows of a function that run for each batch or sample: loops over batches, lambdas given to pipelines."""

    spans: tuple[tuple[int, int], ...]
    handed_on: tuple[tuple[str, int], ...]
    """What is given to a pipeline that has no name, as in ``Dataset(...).map(f)``, with its row."""
    generator: bool
    """Whether the function itself yields the samples."""

    def holds(self, row: int) -> bool:
        return any(first <= row <= last for first, last in self.spans)


def _iterates(node: ast.expr) -> bool:
    """Tell whether ``node`` makes an iterator over the batches of a data set."""
    return any(isinstance(item, ast.Attribute) and item.attr in _ITERATORS for item in ast.walk(node))


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield what stands in ``body``, functions and classes defined there apart."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
            stack.extend(ast.iter_child_nodes(node))


def _expression(text: str) -> ast.AST:
    try:
        return ast.parse(text.lstrip("*"), mode="eval")
    except SyntaxError:
        return ast.Module([], [])


def randomness_of(graph: CallGraph) -> Randomness:
    """Return the seeds and draws of the program of ``graph``."""
    return graph.remember(Randomness, lambda: Randomness(graph))
