"""The files of the program in a rehearsal: each is run once, when it is first imported or, if it can wait, first used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.closure import closure
from mslint.program.following.follower import Frame
from mslint.program.rehearsal.values import Constant, Later, ModuleValue, Names, Reference, Scope, Value

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

_SMALL = 80
"""A program of so few files is run file by file as Python does."""


class Modules:
    """The files that ``rehearsal`` has run so far."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._program = rehearsal.program
        self._run: dict[Path, ModuleValue] = {}
        self._lazy = len(self._program.reachable(rehearsal.entry)) > _SMALL
        self._waiting: set[Path] = set()
        self._passed_on: dict[Path, set[Path]] = {}
        self._asked_for: set[tuple[Path, str]] = set()

    def module(self, path: Path) -> ModuleValue:
        """Return the file ``path``, run if it was not yet."""
        found = self._run.get(path)
        if found is None:
            found = ModuleValue(Scope(path, {}))
            self._run[path] = found
            name = "__main__" if path == self._rehearsal.entry else path.stem
            found.scope.names["__name__"] = Constant(name)
            found.scope.names["__file__"] = Constant(str(path))
            tree = self._program.level(path)
            if tree is not None:
                # What importing a file does is done once, whichever branch imports it first.
                with self._rehearsal.journal.suspended():
                    self._rehearsal.frames.append(Frame(found.scope))
                    self._rehearsal.block(tree.body)
                    self._rehearsal.frames.pop()
        return found

    def imported(self, path: Path, target: str) -> Value:
        """Return what the dotted ``target`` is, imported in ``path``."""
        own = self._program.module(path, target)
        if own and target.partition(".")[0] != "mindspore":
            return self.module(own)
        return Reference(self._program.canonical(path, target))

    def imported_from(self, path: Path, home: Path | None, target: str) -> Value:
        """Return what the dotted ``target`` is, whose last name ``path`` imports from the file ``home``."""
        name = target.rpartition(".")[2]
        if home is None or home == path:
            return self.imported(path, target)
        if self._can_wait(home):
            return Later(home, name)
        return self.exported(home, name) or self.imported(path, target)

    def exported(self, home: Path, name: str) -> Value | None:
        """Return what ``name`` of the file ``home`` is; a name that waits is looked up now."""
        self._program.binds(home, name)
        self.ask_for_passed_on(home, name)
        return self.held(self.module(home).scope.names, name)

    def passes_on(self, path: Path, home: Path) -> None:
        """Note that ``path`` has all names of ``home``."""
        self._passed_on.setdefault(path, set()).add(home)
        self._asked_for.clear()

    def ask_for_passed_on(self, path: Path, name: str) -> None:
        """Note that ``name`` of ``path`` is asked for, which may be that of a file whose names it has."""
        if path not in self._passed_on or (path, name) in self._asked_for:
            return
        self._asked_for.add((path, name))
        for home in closure(path, lambda home: self._passed_on.get(home, ())):
            self._program.binds(home, name)

    def held(self, names: Names, name: str) -> Value | None:
        """Return what ``name`` of a scope is; a name that waits is looked up now."""
        found = names.get(name)
        if isinstance(found, Later):
            found = self._arrived(found)
            names[name] = found
        return found

    def _arrived(self, later: Later) -> Value:
        return self.exported(later.path, later.name) or self.imported(
            later.path, f".{later.name}" if later.path.name == "__init__.py" else f"{later.path.stem}.{later.name}"
        )

    def _can_wait(self, path: Path) -> bool:
        """Tell whether ``path`` need not run before something of it is used: a large program imports much that never is.

        What the file imports runs now where that does more than define things.
        """
        if not self._lazy or path in self._run or not self._program.only_defines(path):
            return False
        seen = {path}
        queue = [path]
        for waiting in queue:
            for imported in sorted(self._program.imported(waiting)):
                if imported in seen or imported in self._waiting:
                    continue
                seen.add(imported)
                if self._program.only_defines(imported):
                    queue.append(imported)
                else:
                    self.module(imported)
        self._waiting |= seen
        return True
