"""Grounds written down: what many findings rest on is written once, and as short as it comes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from mslint.findings import Finding
from mslint.program.grounds import CONNECTIONS, Fact, Grounds
from mslint.program.project import Program

_FEW = 16
"""Grounds of so few facts are written down anew wherever they are met."""

Written = tuple[dict[str, list[int | str]], list[str]]
"""Grounds: by kind of fact the files (members of the program by number) and words, and the names of other grounds."""


class Scribe:
    """Writes down what answers about ``program`` rest on.

    ``written`` holds the texts by name. A name says all that the grounds hold, so that equal grounds have one name,
    whichever process wrote them down.
    """

    def __init__(self, program: Program) -> None:
        self._number = {str(path): index for index, path in enumerate(program.members)}
        self._gathered: dict[Grounds, tuple[frozenset[Fact], frozenset[Grounds]]] = {}
        self._names: dict[Grounds, str] = {}
        self.written: dict[str, str] = {}

    def names(self, grounds: Grounds, own: Path, findings: tuple[Finding, ...]) -> tuple[str | None, str | None]:
        """Write down what ``findings`` in ``own`` rest on; None if there is nothing.

        The first name leaves out what was asked of ``own``, which is enough where its content is known; the second does not.
        """
        facts, others = self._gather(grounds)
        of_own = frozenset(fact for fact in facts if fact[1] == str(own) and fact[0] not in CONNECTIONS)
        rests = facts.difference(of_own).union(_shown(grounds, own, findings))
        without = self._write(rests, map(self._name_of, others)) if rests or others else None
        judged = self._write(of_own, [without] if without else []) if of_own and not findings else without
        return without, judged

    def _gather(self, grounds: Grounds) -> tuple[frozenset[Fact], frozenset[Grounds]]:
        """Return the facts in ``grounds``, with those of others that are few, and the others that are not."""
        if grounds not in self._gathered:
            facts, others = set(grounds.facts), set()
            for other in grounds.others:
                further, above = self._gather(other)
                if len(further) + len(above) > _FEW:
                    others.add(other)
                else:
                    facts |= further
                    others |= above
            self._gathered[grounds] = frozenset(facts), frozenset(others)
        return self._gathered[grounds]

    def _write(self, facts: frozenset[Fact], others: Iterable[str]) -> str:
        by_kind: dict[str, list[int | str]] = {}
        for kind, subject in sorted(facts):
            by_kind.setdefault(kind, []).append(self._number.get(subject, subject))
        text = json.dumps((by_kind, sorted(others)), separators=(",", ":"))
        name = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        self.written[name] = text
        return name

    def _name_of(self, grounds: Grounds) -> str:
        if grounds not in self._names:
            facts, others = self._gather(grounds)
            self._names[grounds] = self._write(facts, map(self._name_of, others))
        return self._names[grounds]


def _shown(grounds: Grounds, own: Path, findings: tuple[Finding, ...]) -> Iterator[Fact]:
    """Yield the other files that ``findings`` name: their rows are told, which may move though nothing else changes.

    What a fix writes there may hold comments of theirs.
    """
    if findings:
        told, written = repr(findings), repr([finding.fix for finding in findings])
        files = {subject for one in grounds.all() for kind, subject in one.facts if kind != "mentioning"}
        for file in files - {str(own)}:
            if Path(file).name in told:
                yield "content" if Path(file).name in written else "places", file


def facts_in(written: Written, members: tuple[Path, ...], changed: frozenset[int]) -> Iterator[Fact]:
    """Yield the facts of written grounds that may have changed with some members; those of other grounds apart.

    Of what is said about one file, only that of the ``changed`` members counts, which are given by number.
    """
    for kind, subjects in written[0].items():
        about_one = kind not in CONNECTIONS and kind != "mentioning"
        for subject in changed.intersection(subjects) if about_one else subjects:
            yield kind, str(members[subject]) if isinstance(subject, int) else subject
