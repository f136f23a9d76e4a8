"""Which runs of a program are distributed, and what each of them does: the questions of the rules about ranks.

For every entry point that runs a file (a script, a ``__main__`` guard) the program is rehearsed (package rehearsal) under the
tests that lead to ``init()``. Each such run answers: is this line reached, in which order do the calls stand, which data
set feeds a training step, in which parallel mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mslint.program.facts import FileFacts
from mslint.program.project import Program
from mslint.program.rehearsal.follow import Event, Rehearsal
from mslint.program.rehearsal.values import Constant, Key, Place, Value, options
from mslint.semantics.api import canonical

INITIALISERS = ("init", "init_process_group")
_INITIALISER = re.compile(rf"(^|\.)({'|'.join(INITIALISERS)})$")
_MOST_SCENARIOS = 3
_MOST_ENTRIES = 12
_TEST_TOOLS = ("pytest", "unittest")
_MOST_KEPT = 32
"""So many runs are kept."""


@dataclass(eq=False)
class Run:
    """One way to run the program from ``entry``; ``init`` is the call that makes it distributed, None if there is none."""

    rehearsal: Rehearsal
    init: Event | None

    @property
    def entry(self) -> Path:
        """The file that a person starts."""
        return self.rehearsal.entry

    @property
    def events(self) -> list[Event]:
        """The calls of other libraries, in order."""
        return self.rehearsal.events

    def reaches(self, path: Path, row: int) -> bool:
        """Tell whether the statement that starts in ``row`` of ``path`` runs."""
        return (path, row) in self.rehearsal.executed

    def at(self, path: Path, row: int, column: int) -> Iterator[Event]:
        """Yield the events of the call that starts there (rows from 1, columns from 0)."""
        wanted = Place(path, row, column)
        return (event for event in self.events if event.place == wanted)

    def named(self, name: str) -> Iterator[Event]:
        """Yield the calls of the function with this canonical name, in order."""
        return (event for event in self.events if event.name == name)

    def trained_at(self, event: Event) -> Place | None:
        """Return where the data set built by ``event`` feeds a training step; None if it never does."""
        return self.rehearsal.trained.get(event.number)

    def setting(self, name: str) -> tuple[object, ...]:
        """Return what ``set_auto_parallel_context`` may have been given for ``name``, as plain values where known."""
        value = self.rehearsal.parallel_context.get(name)
        return () if value is None else tuple(_plain(option) for option in options(value))

    @cached_property
    def modes(self) -> frozenset[str]:
        """The parallel modes that the run may be in; empty if none was ever set."""
        return frozenset(mode for mode in self.setting("parallel_mode") if isinstance(mode, str))

    @cached_property
    def trains(self) -> bool:
        """Whether anything is trained."""
        return bool(self.rehearsal.trained)


def _plain(value: Value) -> object:
    return value.value if isinstance(value, Constant) else value


class Distribution:
    """The runs of the program's files."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def runs(self, path: Path) -> list[Run]:
        """Return every distributed run that may reach ``path``."""
        entries = [entry for entry in self.entries(path) if self._may_initialise(entry)]
        return [run for entry in entries for run in self._runs_of(entry) if run.init is not None]

    def all_runs(self, path: Path) -> list[Run]:
        """Return every run that may reach ``path``, those on one device too."""
        return [run for entry in self.entries(path) for run in self._runs_of(entry)]

    def entries(self, path: Path) -> list[Path]:
        """Return the files that a person starts and that import ``path``, directly or not; the nearest, if there are many."""
        found: list[Path] = []
        seen = {path}
        queue = [path]
        for user in queue:
            if self._is_entry(user):
                found.append(user)
                if len(found) == _MOST_ENTRIES:
                    break
            more = sorted(self._program.importers(user) - seen)
            seen.update(more)
            queue += more
        return found

    def _may_initialise(self, entry: Path) -> bool:
        """Tell whether any file that ``entry`` runs mentions what makes a run distributed: most scripts have none."""
        return any(map(self._mentions_initialiser, self._program.reachable(entry)))

    def _mentions_initialiser(self, path: Path) -> bool:
        if not self._program.uses_any(path, INITIALISERS):
            return False
        facts = self._program.facts(path)
        return any(_may_initialise(use, facts) for use in self._program.uses(path, _INITIALISER))

    def _is_entry(self, path: Path) -> bool:
        if any(target.partition(".")[0] in _TEST_TOOLS for target in self._program.imports(path)):
            return False
        return self._program.is_script(path)

    def _runs_of(self, entry: Path) -> tuple[Run, ...]:
        return self._program.recall(
            Distribution, entry, lambda: tuple(self._rehearse(entry)), _MOST_KEPT, lambda runs: max(1, len(runs))
        )

    def _rehearse(self, entry: Path) -> Iterator[Run]:
        first = self._rehearsed(entry, {})
        scenarios: list[dict[Key, bool]] = []
        for event in first.events:
            if _initialises(event) and dict(event.facts) not in scenarios:
                scenarios.append(dict(event.facts))
        if not scenarios:
            yield Run(first, None)
            return
        for facts in scenarios[:_MOST_SCENARIOS]:
            rehearsal = self._rehearsed(entry, facts) if facts else first
            init = next((event for event in rehearsal.events if _initialises(event)), None)
            if init is not None:
                yield Run(rehearsal, init)

    def _rehearsed(self, entry: Path, facts: dict[Key, bool]) -> Rehearsal:
        rehearsal = Rehearsal(self._program, entry, facts)
        rehearsal.let_go_of_names()
        return rehearsal


def _initialises(event: Event) -> bool:
    return (
        event.name.startswith("mindspore.")
        and event.name.rpartition(".")[2] in INITIALISERS
        and _is_about_ranks(event.name)
    )


def _may_initialise(use: str, facts: FileFacts) -> bool:
    """Tell whether ``use`` may mean an initialiser: many a file calls MindSpore's module of initial weights ``init``."""
    head, dot, rest = use.partition(".")
    target = facts.imports.get(head, "")
    is_known = target.startswith("mindspore.") and head not in facts.nested_imports
    return not is_known or _is_about_ranks(canonical(target + dot + rest))


def _is_about_ranks(name: str) -> bool:
    return "communication" in name or "distributed" in name


def distribution(program: Program) -> Distribution:
    """Return the runs of ``program``."""
    return program.remember(Distribution, lambda: Distribution(program))
