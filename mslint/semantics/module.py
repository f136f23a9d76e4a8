"""A parsed file: its libcst tree, who contains whom, what each name means, where each node stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import libcst as cst

from mslint.findings import Edit, Position
from mslint.semantics.positions import Positions
from mslint.source.parsing import parsed

if TYPE_CHECKING:
    from pathlib import Path

    from mslint.program.project import Program
    from mslint.source.text import Source

Scope = cst.Module | cst.ClassDef | cst.FunctionDef | cst.Lambda
Node = TypeVar("Node", bound=cst.CSTNode)
Answer = TypeVar("Answer")

_SCOPES = (cst.Module, cst.ClassDef, cst.FunctionDef, cst.Lambda)
_MEANINGLESS = (cst.BaseParenthesizableWhitespace, cst.EmptyLine, cst.TrailingWhitespace, cst.Newline, cst.Comment)
_BINDING = frozenset({
    cst.Import, cst.ImportFrom, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.WithItem,
    cst.ExceptHandler, cst.FunctionDef, cst.ClassDef, cst.Param,
})  # fmt: skip
"""What may give a name a meaning: most nodes do not, and a set of types is asked faster than ``isinstance``."""
_child_fields: dict[type, Callable[[cst.CSTNode], tuple[Any, ...]]] = {}


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the direct children of ``node`` in order, without whitespace and comments."""
    kind = type(node)
    values_of = _child_fields.get(kind)
    if values_of is None:
        names = (f.name for f in fields(kind) if "whitespace" not in f.name and f.name not in ("lpar", "rpar"))
        # Asked for two names at least, it gives a tuple.
        values_of = _child_fields[kind] = attrgetter(*names, "__class__", "__class__")
    found: list[cst.CSTNode] = []
    meaningful = _meaningful
    for value in values_of(node):
        kind = type(value)
        if kind is tuple or kind is list:
            for item in value:
                if meaningful[type(item)]:
                    found.append(item)
        elif meaningful[kind]:
            found.append(value)
    return found


class _Meaningful(dict[type, bool]):
    """Whether nodes of a type are more than white space and comments."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, cst.CSTNode) and not issubclass(kind, _MEANINGLESS)
        return self[kind]


_meaningful = _Meaningful()
"""Answers about types, each worked out once: libcst's nodes have an abstract base, which makes `isinstance` slow."""


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield ``node`` and everything below it, parents first, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += children(current)[::-1]


def find(node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
    """Yield the nodes of type ``kind`` at or below ``node``, in source order."""
    wanted: dict[type, bool] = {}
    for item in walk(node):
        found = type(item)
        if found not in wanted:
            wanted[found] = issubclass(found, kind)
        if wanted[found]:
            yield item  # type: ignore[misc]


def dotted(node: cst.BaseExpression) -> str | None:
    """Return ``a.b.c`` for a chain of attributes on a name, else None."""
    parts = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


@dataclass(frozen=True)
class Binding:
    """One place where a name gets a meaning in a scope.

    ``target`` is the dotted thing an import binds, ``value`` the expression an assignment binds (None where the name gets a
    part of it, as in tuple unpacking), ``node`` the node that binds.
    """

    name: str
    node: cst.CSTNode
    target: str | None = None
    value: cst.BaseExpression | None = None


_GIVEN = frozenset({"source", "program", "others", "_remembered"})
"""The fields of a module; others are added to it as they are read in its file."""


class Unparsed(Exception):
    """libcst cannot read the file: its text is no Python for it, or is nested too deeply, as ``reason`` says."""

    def __init__(self, reason: cst.ParserSyntaxError | RecursionError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Relations:
    """Who contains whom in a tree, what gives its names a meaning, and the nodes that most questions are about."""

    def __init__(self, tree: cst.Module) -> None:
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.bindings: dict[Scope, dict[str, list[Binding]]] = {tree: {}}
        self.star_imports: list[str] = []
        self.calls: list[cst.Call] = []
        self.classes: list[cst.ClassDef] = []
        stack: list[tuple[cst.CSTNode, Scope]] = [(tree, tree)]
        while stack:
            node, scope = stack.pop()
            kind = type(node)
            if kind in _BINDING:
                self._bind(node, scope)
            inner = cast("Scope", node) if kind in _SCOPES else scope
            if inner is not scope:
                self.bindings.setdefault(inner, {})
            if kind is cst.Call:
                self.calls.append(cast("cst.Call", node))
            elif kind is cst.ClassDef:
                self.classes.append(cast("cst.ClassDef", node))
            for child in reversed(children(node)):
                self.parents[child] = node
                stack.append((child, inner))

    def _add(self, scope: Scope, binding: Binding) -> None:
        self.bindings.setdefault(scope, {}).setdefault(binding.name, []).append(binding)

    def _bind(self, node: cst.CSTNode, scope: Scope) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                path = dotted(alias.name) or ""
                if alias.asname:
                    self._bind_target(alias.asname.name, scope, node, None, path)
                else:
                    self._add(scope, Binding(path.partition(".")[0], node, target=path.partition(".")[0]))
        elif isinstance(node, cst.ImportFrom):
            base = "." * len(node.relative) + (dotted(node.module) or "" if node.module else "")
            if isinstance(node.names, cst.ImportStar):
                self.star_imports.append(base)
                return
            for alias in node.names:
                name = dotted(alias.name) or ""
                target = base + name if base.endswith(".") else f"{base}.{name}"
                self._bind_target(alias.asname.name if alias.asname else alias.name, scope, node, None, target)
        elif isinstance(node, cst.Assign):
            for target_node in node.targets:
                self._bind_target(target_node.target, scope, node, node.value, None)
        elif isinstance(node, (cst.AnnAssign, cst.AugAssign)):
            self._bind_target(node.target, scope, node, node.value if isinstance(node, cst.AnnAssign) else None, None)
        elif isinstance(node, cst.NamedExpr):
            self._bind_target(node.target, scope, node, node.value, None)
        elif isinstance(node, (cst.For, cst.CompFor)):
            self._bind_target(node.target, scope, node, None, None)
        elif isinstance(node, cst.WithItem) and node.asname:
            self._bind_target(node.asname.name, scope, node, None, None)
        elif isinstance(node, cst.ExceptHandler) and node.name:
            self._bind_target(node.name.name, scope, node, None, None)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Param)):
            self._add(scope, Binding(node.name.value, node))

    def _bind_target(
        self, target: cst.CSTNode, scope: Scope, node: cst.CSTNode, value: cst.BaseExpression | None, path: str | None
    ) -> None:
        if isinstance(target, cst.Name):
            self._add(scope, Binding(target.value, node, path, value))
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._bind_target(element.value, scope, node, None, None)


class Module:
    """One file, parsed when its tree is first asked for: a rule may learn from the program that there is nothing to find.

    Whatever needs the tree raises ``Unparsed`` where libcst cannot read it.
    """

    def __init__(self, source: Source, program: Program) -> None:
        self.source = source
        self.program = program
        self.others: dict[Path, Module | None] = {}
        """The other files of the program that were parsed for a question about this one."""
        self._remembered: dict[object, object] = {}

    @cached_property
    def tree(self) -> cst.Module:
        """The syntax tree."""
        try:
            return cst.parse_module(self.source.text)
        except (cst.ParserSyntaxError, RecursionError) as reason:
            raise Unparsed(reason) from reason

    @property
    def is_untouched(self) -> bool:
        """Whether nothing but the program was asked so far, and nothing was read in the file itself."""
        return not self.others and not self._remembered and vars(self).keys() <= _GIVEN

    @cached_property
    def parents(self) -> dict[cst.CSTNode, cst.CSTNode]:
        """The node that holds each node but the tree itself."""
        return self._relations.parents

    @cached_property
    def bindings(self) -> dict[Scope, dict[str, list[Binding]]]:
        """What gives the names of each scope a meaning, in source order."""
        return self._relations.bindings

    @cached_property
    def star_imports(self) -> list[str]:
        """The modules that all names are imported from."""
        return self._relations.star_imports

    @property
    def calls(self) -> list[cst.Call]:
        """All calls in the file in source order."""
        return self._relations.calls

    @property
    def classes(self) -> list[cst.ClassDef]:
        """All class definitions of the file in source order."""
        return self._relations.classes

    @cached_property
    def _relations(self) -> _Relations:
        return _Relations(self.tree)

    def for_user_of(self, module: Module) -> Module:
        """Return this file as one of the ``others`` of ``module``, with nothing worked out yet that another file may decide.

        The tree is the same one. What is asked of the program for the one user is noted for that user alone, so that the
        next must ask again.
        """
        twin = copy(self)
        twin.tree, twin._relations = self.tree, self._relations
        twin.others, twin._remembered = module.others, {}
        return twin

    def forget(self) -> None:
        """Let go of what was worked out, here and in the ``others``: it goes in circles, and would wait for the collector."""
        for module in (self, *filter(None, self.others.values())):
            module._remembered.clear()
        self.others.clear()

    def remember(self, key: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to the question ``key`` about this module, computed once."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        return self._remembered[key]  # type: ignore[return-value]

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the containers of ``node``, nearest first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def enclosing(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        """Return the nearest container of ``node`` that is a ``kind``."""
        return next((item for item in self.ancestors(node) if isinstance(item, kind)), None)

    def scope(self, node: cst.CSTNode) -> Scope:
        """Return the scope that a name used at ``node`` is looked up in first."""
        for item in self.ancestors(node):
            if isinstance(item, _SCOPES):
                return item
        return self.tree

    def lookup(self, name: str, node: cst.CSTNode) -> list[Binding]:
        """Return all bindings of ``name`` in the innermost scope that binds it, as seen from ``node``."""
        scope: Scope = self.scope(node)
        first = True
        while True:
            visible = first or not isinstance(scope, cst.ClassDef)
            if visible and name in self.bindings[scope]:
                return self.bindings[scope][name]
            if scope is self.tree:
                return []
            scope, first = self.scope(scope), False

    def resolve(self, node: cst.BaseExpression, depth: int = 5) -> str | None:
        """Return the canonical dotted name of what ``node`` refers to, or None if it is no imported thing.

        A name of the project comes back as ``path/of/file.py:Name``.
        """
        if isinstance(node, cst.Attribute):
            base = self.resolve(node.value, depth)
            return self.program.attribute(self.source.path, base, node.attr.value) if base else None
        if not isinstance(node, cst.Name) or depth == 0:
            return None
        found = self.lookup(node.value, node)
        if not found:
            return self._from_star(node.value)
        answers: set[str | None] = set()
        for binding in found:
            if binding.target is not None:
                answers.add(self.program.canonical(self.source.path, binding.target))
            elif isinstance(binding.value, (cst.Name, cst.Attribute)) and not _same_name(binding.value, node.value):
                answers.add(self.resolve(binding.value, depth - 1))
            elif isinstance(binding.node, (cst.ClassDef, cst.FunctionDef)) and self.scope(binding.node) is self.tree:
                answers.add(f"{self.source.path}:{binding.name}")
            else:
                answers.add(None)
        # Two imports of one name (try/except for old releases) mean the same API to us if either does.
        known = sorted((answer for answer in answers if answer), key=lambda answer: not answer.startswith("mindspore"))
        return known[0] if known and (None not in answers) else None

    def _from_star(self, name: str) -> str | None:
        for base in reversed(self.star_imports):
            found = self.program.from_star(self.source.path, base, name)
            if found:
                return found
        return None

    @cached_property
    def _positions(self) -> Positions:
        read = parsed(self.source.text)
        return Positions(self.tree, self.parents, read.body if read is not None else None)

    def outermost(self, row: int) -> cst.CSTNode:
        """Return the last statement at module level that starts up to ``row``; the tree if none does, as far as is known."""
        return self._positions.outermost(row)

    def start(self, node: cst.CSTNode) -> Position:
        """Return where ``node`` starts, whitespace and comments before it apart."""
        place = self._positions[node].start
        return Position(place.line, place.column + 1)

    def end(self, node: cst.CSTNode) -> Position:
        """Return where ``node`` ends: the position after its last character."""
        place = self._positions[node].end
        return Position(place.line, place.column + 1)

    def replace(self, node: cst.CSTNode, content: str) -> Edit:
        """Return the edit that puts ``content`` in the place of ``node``."""
        return Edit(self.start(node), self.end(node), content)

    def code(self, node: cst.CSTNode) -> str:
        """Return the source text of ``node`` as it stands in the file."""
        return self.text(self.start(node), self.end(node))

    def text(self, start: Position, end: Position) -> str:
        """Return the source text between two positions, lines joined by a line feed."""
        rows = self.lines[start.row - 1 : end.row]
        if len(rows) == 1:
            return rows[0][start.column - 1 : end.column - 1]
        return "\n".join([rows[0][start.column - 1 :], *rows[1:-1], rows[-1][: end.column - 1]])

    @cached_property
    def lines(self) -> list[str]:
        """The file's lines without their ends."""
        return self.source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _same_name(value: cst.BaseExpression, name: str) -> bool:
    return isinstance(value, cst.Name) and value.value == name
