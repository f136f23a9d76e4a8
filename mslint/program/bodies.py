"""A file taken apart, so that an answer need not rest on all of it: its functions, and what is left without their bodies."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from mslint.program.facts import dotted
from mslint.program.following.syntax import only_names, yields

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_WORD = re.compile(r"\w+")


class Bodies:
    """The functions of a file, those inside of others apart. Each has a name that stays when other functions change."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree = tree
        self._text = text
        self._functions: dict[str, _Function] = {}
        for name, node in _outermost("", tree.body):
            same = sum(known.startswith(f"{name} ") for known in self._functions)
            self._functions[f"{name} {same}"] = node
        self._names = list(self._functions)
        self._rows = [node.lineno for node in self._functions.values()]
        self._generators: dict[tuple[int, int], bool] = {}

    def name_at(self, row: int) -> str | None:
        """Return the name of the function that holds ``row``; None at module level."""
        index = bisect_right(self._rows, row) - 1
        if index < 0:
            return None
        name = self._names[index]
        return name if row <= (self._functions[name].end_lineno or 0) else None

    def code(self, name: str) -> str:
        """Return what a function consists of, wherever it stands; nothing if there is none of that name."""
        node = self._functions.get(name)
        return laid_out(node) if node is not None else ""

    def is_generator(self, node: _Function | ast.Lambda) -> bool:
        """Tell whether ``node``, which may stand inside of another function, is a generator."""
        if "yield" not in self._text:
            return False
        place = (node.lineno, node.col_offset)
        if place not in self._generators:
            self._generators[place] = yields(node)
        return self._generators[place]

    def level(self) -> str:
        """Return what the file consists of without the bodies of its functions, and without names that it never uses."""
        return self._dumped([statement for statement in self._tree.body if not self._is_unused(statement)])

    def unused(self, name: str) -> str:
        """Return what ``name``, if the file itself never uses it, is given to, without the bodies of functions.

        That may be before or behind imports of all names of other files, which may give it to something, too.
        """
        named = [node for node in self._tree.body if only_names(node) == name and self._is_unused(node)]
        return self._dumped([node for node in self._tree.body if node in named or _has_star(node)]) if named else ""

    def _dumped(self, statements: list[ast.stmt]) -> str:
        bodies = [(node, node.body) for node in self._functions.values()]
        try:
            for node, _ in bodies:
                node.body = []
            return laid_out(ast.Module(statements, []))
        finally:
            for node, body in bodies:
                node.body = body

    def _is_unused(self, statement: ast.stmt) -> bool:
        name = only_names(statement)
        return name is not None and self._words[name] == self._naming[name]

    @cached_property
    def called_by_classes(self) -> list[tuple[str, set[str]]]:
        """The classes at module level by name, with what each calls, as written."""
        classes = [node for node in self._tree.body if isinstance(node, ast.ClassDef)]
        return [(node.name, set(_callees(node))) for node in classes]

    @cached_property
    def _words(self) -> Counter[str]:
        return Counter(_WORD.findall(self._text))

    @cached_property
    def _naming(self) -> Counter[str | None]:
        """How often each name is given to something by a statement that does no more."""
        return Counter(map(only_names, self._tree.body))


def laid_out(node: ast.AST) -> str:
    """Return what ``node`` consists of, and which parts of it share rows, wherever it stands."""
    rows = [row for part in ast.walk(node) for row in _rows(part)]
    return f"{ast.dump(node)} {in_order(rows)}"


def in_order(rows: Iterable[int]) -> list[int]:
    """Return ``rows`` counted without those that are not among them: comments and empty rows do not change that."""
    rows = list(rows)
    numbers = {row: number for number, row in enumerate(sorted(set(rows)))}
    return [numbers[row] for row in rows]


def _rows(node: ast.AST) -> Iterator[int]:
    """Yield the first and the last row of ``node``; where a function ends, nothing else can stand."""
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is not None:
        yield first
    if last is not None and not isinstance(node, _Function):
        yield last


def _callees(node: ast.AST) -> Iterator[str]:
    return (name for call in ast.walk(node) if isinstance(call, ast.Call) if (name := dotted(call.func)))


def _has_star(statement: ast.stmt) -> bool:
    """Tell whether ``statement``, or one in it, imports all names of another file."""
    imports = (node for node in ast.walk(statement) if isinstance(node, ast.ImportFrom))
    return any(alias.name == "*" for node in imports for alias in node.names)


def _outermost(prefix: str, body: list[ast.stmt]) -> Iterator[tuple[str, _Function]]:
    """Yield the functions in ``body`` and in its classes and compound statements, in order, with their dotted names."""
    for statement in body:
        if isinstance(statement, _Function):
            yield prefix + statement.name, statement
            continue
        inner = f"{prefix}{statement.name}." if isinstance(statement, ast.ClassDef) else prefix
        for block in _blocks(statement):
            yield from _outermost(inner, block)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    yield getattr(statement, "body", [])
    yield from (handler.body for handler in getattr(statement, "handlers", []))
    yield from (case.body for case in getattr(statement, "cases", []))
    yield from (getattr(statement, name, []) for name in ("orelse", "finalbody"))
