"""What names at module level and in classes of the program stand for; worked out when they are asked for."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.following.syntax import Declaration, bound_names, declarations, decorators, module_level
from mslint.program.following.values import Class, Function, Reference, Scope, Value
from mslint.program.networks.values import File, Thing

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter


class Definitions:
    """The files of the program as ``interpreter`` sees them, each name on its own."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._program = interpreter.program
        self._statements: dict[Path, dict[str, list[ast.stmt]]] = {}
        self._values: dict[tuple[Path, str], Value] = {}
        self._lineages: dict[str, list[tuple[Class, dict[str, Declaration]]]] = {}
        self._homes: dict[Path, Scope] = {}
        self.script: Scope | None = None
        """The module level of the file that was followed as a script."""

    def in_file(self, path: Path, name: str) -> Value:
        """Return what ``name`` is at module level of ``path``."""
        if self.script is not None and self.script.path == path and name in self.script.names:
            return self.script.names[name]
        key = (path, name)
        if key not in self._values:
            self._values[key] = Reference(name)
            self._values[key] = self._find(path, name)
        return self._values[key]

    def _find(self, path: Path, name: str) -> Value:
        for node in reversed(self.binding(path, name)):
            if isinstance(node, ast.ClassDef):
                return Class(self._home(path), node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return Function(self._home(path), node)
            with self._interpreter.within(Scope(path, {})) as scope:
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                    return self._interpreter.value(node.value)
                self._interpreter.statement(node)
            if name in scope.names:
                return scope.names[name]
        resolved = self._program.name_in(path, name)
        return self.meant(resolved) if resolved else Reference(name)

    def _home(self, path: Path) -> Scope:
        """Return the scope of what is defined at module level of ``path``: it finds the names there, but sets none."""
        return self._homes.setdefault(path, Scope(path, {}))

    def meant(self, resolved: str) -> Value:
        """Return what an answer of ``Program.canonical`` stands for."""
        if resolved.endswith(".py"):
            return File(Path(resolved))
        home, colon, name = resolved.rpartition(":")
        if colon and home.endswith(".py"):
            head, *rest = name.split(".")
            value = self.in_file(Path(home), head)
            for attribute in rest:
                value = self._interpreter.objects.attribute(value, attribute, Path(home))
            return value
        return Reference(resolved)

    def of_file(self, path: Path, name: str) -> Value:
        """Return the attribute ``name`` of the imported file ``path``."""
        found = self._program.name_in(path, name)
        submodule = None if found else self._program.module(path, f".{name}")
        if submodule:
            return File(submodule)
        return self.in_file(path, name) if self.binding(path, name) else self.meant(found or f"{path.stem}.{name}")

    def binding(self, path: Path, name: str) -> list[ast.stmt]:
        """Return the statements at module level of ``path`` that bind ``name``."""
        table = self._statements.get(path)
        if table is None:
            table = self._statements[path] = {}
            tree = self._program.level(path)
            for node in module_level(tree.body) if tree is not None else ():
                for bound in bound_names(node):
                    table.setdefault(bound, []).append(node)
        return table.get(name, [])

    # Classes

    def method(self, thing: Thing, name: str) -> Function | None:
        """Return the method ``name`` of an object of a class of the project, bound to it."""
        found = self.inherited(thing, None, name) if thing.kind == "class" else None
        return found if isinstance(found, Function) else None

    def inherited(self, thing: Thing, after: Class | None, name: str) -> Value | None:
        """Return what ``thing`` has as ``name`` from its class, or from the bases of that behind ``after``."""
        found = self._declared(thing.reference, after, name)
        if found is None:
            return None
        owner, item = found
        if isinstance(item, ast.Assign):
            return self._class_variable(owner, item)
        return Function(owner.scope, item, owner, None if "staticmethod" in decorators(item) else thing)

    def of_class(self, holder: Class, name: str) -> Value:
        """Return the attribute ``name`` of a class itself."""
        found = self._declared(holder.reference, None, name)
        if found is None:
            return Reference(name)
        owner, item = found
        if isinstance(item, ast.Assign):
            return self._class_variable(owner, item)
        return Function(owner.scope, item, owner, holder if "classmethod" in decorators(item) else None)

    def _class_variable(self, owner: Class, item: ast.Assign) -> Value:
        with self._interpreter.within(Scope(owner.scope.path, {})):
            return self._interpreter.value(item.value)

    def _declared(self, reference: str, after: Class | None, name: str) -> tuple[Class, Declaration] | None:
        """Return what a class, or the nearest of its bases behind ``after``, declares as ``name``, and which of them."""
        lineage = self._lineage(reference)
        behind = after.reference if after is not None else None
        start = next((index + 1 for index, (owner, _) in enumerate(lineage) if owner.reference == behind), 0)
        return next(((owner, members[name]) for owner, members in lineage[start:] if name in members), None)

    def _lineage(self, reference: str) -> list[tuple[Class, dict[str, Declaration]]]:
        found = self._lineages.get(reference)
        if found is None:
            found = self._lineages[reference] = []
            for base in self._program.lineage(reference):
                path, _, name = base.rpartition(":")
                for node in self.binding(Path(path), name) if path.endswith(".py") else ():
                    if isinstance(node, ast.ClassDef):
                        found.append((Class(self._home(Path(path)), node), declarations(node)))
        return found
