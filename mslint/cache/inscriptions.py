"""Grounds written down: what many findings rest on is written once, and as short as it comes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from mslint.cache.encoding import texts_in
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

    def name(
        self, grounds: Grounds, own: Path, findings: tuple[Finding, ...], silent: Collection[str] = ()
    ) -> str | None:
        """Write down what ``findings`` in ``own``, the content of which is known, rest on; None if there is nothing else.

        That some rules found nothing, as is known from an earlier run, rests on the grounds with the names ``silent``.
        """
        facts, others = self._gather(grounds)
        facts = frozenset(fact for fact in facts if fact[1] != str(own) or fact[0] in CONNECTIONS)
        facts = facts.union(_shown(grounds, own, findings))
        names = {*map(self.whole, others), *silent}
        return self._write(facts, names) if facts or names else None

    def together(self, names: Iterable[str]) -> str:
        """Write down what rests on all grounds with these ``names``."""
        return self._write(frozenset(), names)

    def whole(self, grounds: Grounds) -> str:
        """Write down all of ``grounds``."""
        if grounds not in self._names:
            facts, others = self._gather(grounds)
            self._names[grounds] = self._write(facts, map(self.whole, others))
        return self._names[grounds]

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


def _shown(grounds: Grounds, own: Path, findings: tuple[Finding, ...]) -> Iterator[Fact]:
    """Yield the other files that ``findings`` name: their rows are told, which may move though nothing else changes.

    What a fix writes there may hold comments of theirs.
    """
    if findings:
        told, written = texts_in(findings), texts_in([finding.fix for finding in findings])
        files = {subject for one in grounds.all() for _, subject in one.facts}
        for file in files - {str(own)}:
            name = Path(file).name
            if any(name in text for text in told):
                yield "content" if any(name in text for text in written) else "places", file


def facts_in(written: Written, members: tuple[Path, ...], changed: frozenset[int]) -> Iterator[Fact]:
    """Yield the facts of written grounds that may have changed with some members; those of other grounds apart.

    Of what is said about one file, only that of the ``changed`` members counts, which are given by number.
    """
    for kind, subjects in written[0].items():
        for subject in subjects if kind in CONNECTIONS else changed.intersection(subjects):
            yield kind, str(members[subject]) if isinstance(subject, int) else subject
