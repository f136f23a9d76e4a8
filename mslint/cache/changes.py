"""What is no longer as it was in the last run: the same questions asked of the program then and of the program now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mslint.program.grounds import CONNECTIONS, Fact
from mslint.program.project import Program


class Changes:
    """The changes from ``before`` to ``program``: the texts that files had, None where that is not known any more."""

    def __init__(self, program: Program, before: Mapping[Path, str | None]) -> None:
        self._now = program
        self._unknown = {str(path) for path, text in before.items() if text is None}
        texts = {path: text for path, text in before.items() if text is not None}
        self._before = program.with_texts(texts)
        self._changed = {str(path) for path in before}
        self._connected = not self._unknown and all(
            program.imports(path) == self._before.imports(path) for path in texts
        )
        self._known: dict[Fact, bool] = {}

    def touch(self, fact: Fact) -> bool:
        """Tell whether the answer to ``fact`` may be another than it was."""
        kind, subject = fact
        if kind in CONNECTIONS:
            if self._connected:
                return False
        elif subject not in self._changed:
            return False
        if fact not in self._known:
            self._known[fact] = bool(self._unknown) or self._before.value(fact) != self._now.value(fact)
        return self._known[fact]
