"""Who calls whom in the program, under which conditions, and what runs when a script is started.

Nodes of the graph are functions, written ``/path/of/file.py:function`` or ``/path/of/file.py:Class.method``, and the code
at module level, written ``/path/of/file.py:``. Functions handed on as values count as called where they are handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mslint.program.closure import closure_of
from mslint.program.facts import dotted
from mslint.program.grounds import Grounds
from mslint.program.project import Program

MODULE = ""
Links = tuple[tuple[str, "CallSite"], ...]
"""Functions, as nodes of the call graph, each with a call that runs it."""
Answer = TypeVar("Answer")


class HasGraph(Protocol):
    """Something that is worked out from a call graph, once for each."""

    graph: CallGraph


def remembered(compute: Callable[[Any], Answer]) -> Remembered[Answer]:
    """Make a method a property that is worked out once; whoever is given it rests on what it rests on."""
    return Remembered(compute)


class Remembered(Generic[Answer]):
    """A property of what is worked out from a call graph."""

    def __init__(self, compute: Callable[[Any], Answer]) -> None:
        self._compute = compute

    def __get__(self, owner: HasGraph, kind: type) -> Answer:
        return owner.graph.remember(self, lambda: self._compute(owner))


@dataclass(frozen=True)
class Condition:
    """One ``if`` (or ``elif``, ``else``) around a place: its test as Python text, and whether the place is in its branch."""

    test: str
    holds: bool


@dataclass(frozen=True)
class CallSite:
    """One call, as written: ``callee`` dotted, ``arguments`` as Python text, keywords by name (``**`` for an open one).

    Of a method called on what another call makes, ``Trainer(...).fit()``, ``callee`` is ``Trainer.fit``.
    """

    path: Path
    function: str
    """The function it stands in; empty at module level."""
    row: int
    callee: str
    arguments: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    assigned: tuple[str, ...] = ()
    """The names that the call's value is assigned to, as written."""

    @property
    def caller(self) -> str:
        """The function it stands in, as a node of the call graph."""
        return f"{self.path}:{self.function}"

    def keyword(self, name: str) -> str | None:
        """Return the text passed as ``name=``, or None."""
        return dict(self.keywords).get(name)


@dataclass(frozen=True)
class Function:
    """A function or method (or the code at module level, with an empty name)."""

    path: Path
    name: str
    row: int
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, str], ...]
    calls: tuple[CallSite, ...]
    mentions: tuple[tuple[str, int], ...]
    """Dotted names read other than as a callee, its parameters apart, with their rows: functions may be handed on by them."""

    @property
    def node(self) -> str:
        """Its name in the call graph."""
        return f"{self.path}:{self.name}"

    @property
    def is_inert(self) -> bool:
        """Whether it calls nothing and hands nothing on: who does not call it itself need not know of it."""
        outermost = bool(self.name) and "." not in self.name
        return outermost and not self.calls and not self.mentions


def read_functions(path: Path, tree: ast.Module | None) -> tuple[Function, ...]:
    """Return the functions of ``path`` with the calls in them; none without a tree."""
    return () if tree is None else tuple(_functions(path, tree))


def _functions(path: Path, tree: ast.Module) -> Iterator[Function]:
    yield _function(path, MODULE, tree)
    queue: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    while queue:
        prefix, node = queue.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _function(path, prefix + node.name, node)
            queue += [(f"{prefix}{node.name}.", inner) for inner in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.ClassDef):
            queue += [(f"{prefix}{node.name}.", inner) for inner in node.body]
        else:
            queue += [(prefix, inner) for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)]


def _function(path: Path, name: str, node: ast.AST) -> Function:
    calls: list[CallSite] = []
    mentions: list[tuple[str, int]] = []
    body = getattr(node, "body", [])
    for statement in body:
        _collect(path, name, statement, (), calls, mentions)
    parameters: tuple[str, ...] = ()
    defaults: list[tuple[str, str]] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.posonlyargs, *node.args.args]
        parameters = tuple(argument.arg for argument in (*given, *node.args.kwonlyargs))
        for argument, default in zip(reversed(given), reversed(node.args.defaults), strict=False):
            defaults.append((argument.arg, ast.unparse(default)))
        for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if value is not None:
                defaults.append((argument.arg, ast.unparse(value)))
    named = tuple(mention for mention in mentions if mention[0] not in parameters)
    return Function(path, name, getattr(node, "lineno", 1), parameters, tuple(defaults), tuple(calls), named)


def _collect(
    path: Path,
    function: str,
    node: ast.AST,
    conditions: tuple[Condition, ...],
    calls: list[CallSite],
    mentions: list[tuple[str, int]],
) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            _collect(path, function, decorator, conditions, calls, mentions)
        if isinstance(node, ast.ClassDef):
            # The body of a class runs where the class stands; its methods do not.
            for item in node.body:
                _collect(path, function, item, conditions, calls, mentions)
        return
    if isinstance(node, ast.If):
        _collect(path, function, node.test, conditions, calls, mentions)
        test = ast.unparse(node.test)
        for holds, branch in ((True, node.body), (False, node.orelse)):
            for item in branch:
                _collect(path, function, item, (*conditions, Condition(test, holds)), calls, mentions)
        return
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        names = tuple(ast.unparse(target) for target in node.targets)
        _call(path, function, node.value, conditions, calls, mentions, names)
        return
    if isinstance(node, ast.Call):
        _call(path, function, node, conditions, calls, mentions, ())
        return
    if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
        name = dotted(node)
        if name:
            mentions.append((name, node.lineno))
            return
    for child in ast.iter_child_nodes(node):
        _collect(path, function, child, conditions, calls, mentions)


def _call(
    path: Path,
    function: str,
    node: ast.Call,
    conditions: tuple[Condition, ...],
    calls: list[CallSite],
    mentions: list[tuple[str, int]],
    assigned: tuple[str, ...],
) -> None:
    callee = dotted(node.func) or _method_of_made(node.func)
    if callee:
        arguments = tuple(ast.unparse(argument) for argument in node.args)
        keywords = tuple((word.arg or "**", ast.unparse(word.value)) for word in node.keywords)
        calls.append(CallSite(path, function, node.lineno, callee, arguments, keywords, conditions, assigned))
    if not dotted(node.func):
        _collect(path, function, node.func, conditions, calls, mentions)
    for argument in (*node.args, *(word.value for word in node.keywords)):
        _collect(path, function, argument, conditions, calls, mentions)


def _method_of_made(function: ast.expr) -> str | None:
    """Return ``Trainer.fit`` for what ``Trainer(...).fit()`` calls."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
        made = dotted(function.value.func)
        return f"{made}.{function.attr}" if made else None
    return None


def _nested_names(functions: Iterable[Function]) -> set[str]:
    """Return what functions and methods are called from within what they stand in."""
    found: set[str] = set()
    for function in functions:
        _, dot, name = function.name.partition(".")
        while dot:
            found.add(name)
            _, dot, name = name.partition(".")
    return found


class CallGraph:
    """The calls between the functions of ``files`` (and of what these import).

    What the functions of a file call is looked up when it is first asked for.
    """

    def __init__(self, program: Program, files: Iterator[Path] | tuple[Path, ...]) -> None:
        self.program = program
        self.functions: dict[str, Function] = {}
        for path in files:
            self.functions.update((function.node, function) for function in program.functions(path))
        self._remembered: dict[object, tuple[object, Grounds]] = {}
        self._nested = _nested_names(self.functions.values())
        self._run_by: dict[str, tuple[list[str], Grounds]] = {}
        """By what a name stands for: the functions that run when it is called."""
        self._links: dict[Path, tuple[dict[str, Links], Grounds]] = {}

    def remember(self, key: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to the question ``key`` about this program, computed once."""
        return self.program.answer(self._remembered, key, compute)  # type: ignore[return-value]

    def calls(self, node: str) -> Links:
        """Return the functions that ``node`` runs itself, each with the call that does."""
        path = self.functions[node].path
        return self.program.answer(self._links, path, lambda: self._links_of(path))[node]

    def _links_of(self, path: Path) -> dict[str, Links]:
        functions = (self.functions[function.node] for function in self.program.functions(path))
        return {function.node: tuple(self._linked(function)) for function in functions}

    def _linked(self, function: Function) -> Iterator[tuple[str, CallSite]]:
        for call in function.calls:
            yield from ((target, call) for target in self.targets(call))
        for name, row in function.mentions:
            call = CallSite(function.path, function.name, row, name, (), (), ())
            yield from ((target, call) for target in self._named(function, name))
        if not function.name:
            # Importing a file runs its module level.
            call = CallSite(function.path, MODULE, 1, "import", (), (), ())
            for imported in sorted(self.program.imported(function.path)):
                if f"{imported}:" in self.functions:
                    yield f"{imported}:", call

    def targets(self, call: CallSite) -> list[str]:
        """Return the functions of the program that ``call`` may run; of a class, its constructor and ``construct``."""
        return self._named(self.functions[call.caller], call.callee)

    def _named(self, function: Function, name: str) -> list[str]:
        head, _, rest = name.partition(".")
        outer = function.name.split(".")
        if head in ("self", "cls") and rest:
            return self._method(f"{function.path}:{'.'.join(outer[:-1])}", rest)
        # A function defined inside this one, or beside it in an outer one.
        for depth in range(len(outer), 0, -1) if name in self._nested else ():
            local = f"{function.path}:{'.'.join(outer[:depth])}.{name}"
            if local in self.functions:
                return [local]
        resolved = self.program.dotted_in(function.path, name)
        if resolved is None:
            return []
        if resolved in self.functions:
            return [resolved]
        return self.program.answer(self._run_by, resolved, lambda: list(self._run_by_making(resolved)))

    def _run_by_making(self, reference: str) -> Iterator[str]:
        for method in ("__init__", "construct", "__call__", "__getitem__", "__iter__", "__next__"):
            yield from self._method(reference, method)

    def _method(self, reference: str, name: str) -> list[str]:
        for base in self.program.lineage(reference):
            if f"{base}.{name}" in self.functions:
                return [f"{base}.{name}"]
        return []

    def entries(self) -> list[str]:
        """Return the module levels that a person starts: of files that no other file imports, or with a main guard."""
        found = []
        for node, function in self.functions.items():
            if function.name:
                continue
            guarded = any("__main__" in c.test for call in function.calls for c in call.conditions)
            if guarded or not self.program.importers(function.path):
                found.append(node)
        return found

    def reached(self, start: str) -> frozenset[str]:
        """Return everything that runs when ``start`` runs, with itself."""
        return self.reached_from([start])

    def reached_from(self, starts: Iterable[str]) -> frozenset[str]:
        """Return everything that runs when any of ``starts`` runs, with these."""
        return closure_of(starts, lambda node: (target for target, _ in self.calls(node)))

    def reaching(self, node: str) -> frozenset[str]:
        """Return everything that ``node`` runs in, itself apart."""
        return self.leading_to([node]) - {node}

    def leading_to(self, nodes: Iterable[str]) -> frozenset[str]:
        """Return everything that any of ``nodes`` runs in, with these."""
        return closure_of(nodes, lambda node: (call.caller for call in self.callers(node)))

    def callers(self, node: str) -> Sequence[CallSite]:
        """Return the calls that run ``node``; none if there is no such function."""
        return self.remember(CallGraph.callers, self._callers).get(node, ())

    def _callers(self) -> dict[str, list[CallSite]]:
        table: dict[str, list[CallSite]] = {}
        for node in self.functions:
            for target, call in self.calls(node):
                table.setdefault(target, []).append(call)
        return table
