"""What a branch of the program changes, so that it can be undone before the other branch is followed, and joined after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mslint.program.following.values import Constant, Names, Value
from mslint.program.rehearsal.values import join

_MISSING = Constant("no value yet")
Entries = dict[tuple[int, object], tuple[Names, Value]]
"""By the table and the name that was written to: that table, and what the name was before."""


class Journal:
    """Keeps what the names in ``Names`` tables were before the branches that are being followed."""

    def __init__(self) -> None:
        self._open: list[Entries] = []

    def write(self, table: Names, name: object, value: Value) -> None:
        """Let ``name`` of ``table`` be ``value`` from here on."""
        if self._open:
            self._open[-1].setdefault((id(table), name), (table, table.get(name, _MISSING)))
        table[name] = value

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """What is written inside stays, whichever branch it is written in."""
        before, self._open = self._open, []
        try:
            yield
        finally:
            self._open = before

    def optional(self, run: Callable[[], bool]) -> None:
        """Follow what may run any number of times."""
        self._open.append({})
        run()
        for (_, name), (table, before) in self._open.pop().items():
            after = table[name]
            _restore(table, name, before)
            self.write(table, name, after if before is _MISSING else join([after, before]))

    def trial(self, run: Callable[[], bool]) -> Trial:
        """Follow a branch and undo what it does."""
        self._open.append({})
        goes_on = run()
        before = self._open.pop()
        after = {place: table.get(place[1], _MISSING) for place, (table, _) in before.items()}
        for place, (table, value) in before.items():
            _restore(table, place[1], value)
        return Trial(goes_on, before, after)

    def settle(self, *trials: Trial) -> None:
        """Let everything be what it is after one of the branches, of which some may not go on."""
        touched = {place: entry for trial in trials for place, entry in trial.before.items()}
        for place, (table, before) in touched.items():
            results = [trial.after.get(place, before) for trial in trials if trial.goes_on]
            results = [result for result in results if result is not _MISSING]
            if results:
                self.write(table, place[1], join(results))


class Trial:
    """A branch that was followed: whether the run goes on after it, and what it changed."""

    def __init__(self, goes_on: bool, before: Entries, after: dict[tuple[int, object], Value]) -> None:
        self.goes_on = goes_on
        self.before = before
        self.after = after


def _restore(table: Names, name: object, value: Value) -> None:
    if value is _MISSING:
        table.pop(name, None)
    else:
        table[name] = value
