"""Which operators a function or class of the project runs, itself and by what it builds and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mslint.program.facts import dotted
from mslint.program.project import Program

_DEEPEST = 4
_Definition = ast.FunctionDef | ast.ClassDef


def operators_of(program: Program, reference: str) -> set[str]:
    """Return the canonical names that ``reference`` (``/path/of/file.py:Name``) and what it uses of the project call.

    Methods that are called on anything are there as ``.name``; ``self.x = ...`` outside of ``__init__`` as ``self.x =``.
    """
    found: set[str] = set()
    seen: set[str] = set()
    queue = [(reference, 0)]
    while queue:
        current, depth = queue.pop()
        if current in seen or depth > _DEEPEST:
            continue
        seen.add(current)
        path, _, name = current.rpartition(":")
        node = _definitions_in(program, Path(path)).get(name)
        if node is None:
            continue
        for item in _names(node):
            used = item if item.startswith((".", "self.")) else program.dotted_in(Path(path), item)
            if used is None:
                found.add(item)
            elif ".py:" in used:
                queue.append((used, depth + 1))
            else:
                found.add(used)
    return found


def _definitions_in(program: Program, path: Path) -> dict[str, _Definition]:
    def read() -> dict[str, _Definition]:
        tree = program.tree(path)
        body = [] if tree is None else tree.body
        return {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    return program.remember((operators_of, path), read)


def _names(node: _Definition) -> Iterator[str]:
    """Yield the names that ``node`` calls and, of a class, inherits from; what its ``__init__`` builds is run later."""
    methods = node.body if isinstance(node, ast.ClassDef) else [node]
    if isinstance(node, ast.ClassDef):
        yield from (name for base in node.bases if (name := dotted(base)))
    for method in methods:
        is_init = isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for item in ast.walk(method):
            if isinstance(item, ast.Call):
                name = dotted(item.func)
                if name and not name.startswith("self."):
                    yield name
                if isinstance(item.func, ast.Attribute) and not is_init:
                    yield f".{item.func.attr}"
            elif isinstance(item, ast.Attribute) and not isinstance(item.ctx, ast.Load) and not is_init:
                name = dotted(item)
                if name and name.startswith("self."):
                    yield f"{name} ="
