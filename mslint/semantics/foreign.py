"""The trees of other files of the program, for questions whose answer lies there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from mslint.semantics.cells import CellClass, cell_classes
from mslint.semantics.module import Module, Unparsed
from mslint.source.text import Unreadable, read

if TYPE_CHECKING:
    from mslint.program.project import Program

_MOST_USERS = 8
_LARGEST = 300_000
_MOST_TEXT = 300_000
"""Trees of so many characters are kept; they take some 90 MB."""


def module_at(module: Module, path: Path) -> Module | None:
    """Return the parsed file ``path`` of the program that ``module`` belongs to; None if it cannot be parsed."""
    if path == module.source.path.absolute():
        return module
    if path not in module.others:
        parsed = module.program.recall(
            module_at,
            path,
            lambda: _parsed(module.program, path),
            _MOST_TEXT,
            lambda found: len(found.source.text) if found else 1,
        )
        module.others[path] = parsed.for_user_of(module) if parsed is not None else None
    return module.others[path]


def _parsed(program: Program, path: Path) -> Module | None:
    text = program.text(path)
    if text is None or len(text) > _LARGEST:
        return None
    try:
        parsed = Module(replace(read(path), text=text), program)
        parsed.bindings  # noqa: B018 - read the tree here, where it may fail
    except (Unreadable, Unparsed):
        return None
    return parsed


def home_of(module: Module, reference: str) -> tuple[Module, str] | None:
    """Return the file that the project's name ``reference`` (``/path/of/file.py:Name``) is defined in, and its name there."""
    path, _, name = reference.rpartition(":")
    if not path.endswith(".py"):
        return None
    home = module_at(module, Path(path))
    return (home, name) if home is not None else None


def class_at(module: Module, reference: str) -> CellClass | None:
    """Return the top-level class that ``reference`` names."""
    found = home_of(module, reference)
    return cell_classes(found[0]).get(found[1]) if found else None


def function_at(module: Module, reference: str) -> tuple[Module, cst.FunctionDef] | None:
    """Return the module-level function that ``reference`` names."""
    found = home_of(module, reference)
    for binding in found[0].bindings[found[0].tree].get(found[1], []) if found else []:
        if found and isinstance(binding.node, cst.FunctionDef):
            return found[0], binding.node
    return None


def users_of(module: Module, name: str) -> list[Module]:
    """Return ``module`` and the first of the files that run with it and use ``name``."""
    path = module.source.path.absolute()
    program = module.program
    users = [user for user in sorted(program.users(path)) if user != path and program.uses_any(user, (name,))]
    loaded = (module_at(module, user) for user in users[:_MOST_USERS])
    return [module, *(user for user in loaded if user is not None)]


def calls_named(module: Module, name: str) -> list[cst.Call]:
    """Return the calls in ``module`` whose callee's last name is ``name``."""
    return module.remember(calls_named, lambda: _calls(module)).get(name, [])


def _calls(module: Module) -> dict[str, list[cst.Call]]:
    table: dict[str, list[cst.Call]] = {}
    for call in module.calls:
        function = call.func
        if isinstance(function, cst.Attribute):
            table.setdefault(function.attr.value, []).append(call)
        elif isinstance(function, cst.Name):
            table.setdefault(function.value, []).append(call)
    return table
