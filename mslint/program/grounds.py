"""What an answer about a program rests on: it holds as long as that stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Fact = tuple[str, str]
"""A question that ``Program`` answers without much work: its kind, and the file or word that it is about."""


@dataclass(eq=False, frozen=True, slots=True)
class Grounds:
    """The facts that were asked for an answer, and the grounds of other answers that it was worked out from.

    ``closed`` unless something was looked for where nobody lists the files: then there is no telling.
    """

    facts: tuple[Fact, ...] = ()
    others: tuple[Grounds, ...] = ()
    closed: bool = True

    def all(self) -> Iterator[Grounds]:
        """Yield these grounds and all that they go back to."""
        seen = {self}
        queue = [self]
        while queue:
            current = queue.pop()
            yield current
            new = set(current.others) - seen
            seen |= new
            queue += new

    @property
    def certain(self) -> bool:
        """Whether it can be told if all of it is still as it was."""
        return all(grounds.closed for grounds in self.all())


@dataclass
class Notes:
    """The grounds of an answer while it is being worked out."""

    facts: set[Fact] = field(default_factory=set)
    others: set[Grounds] = field(default_factory=set)
    closed: bool = True

    @property
    def grounds(self) -> Grounds:
        """What was noted so far; sets would take three times the room."""
        return Grounds(tuple(self.facts), tuple(self.others), self.closed)


CONNECTIONS = frozenset({"imported", "importers", "neighbourhood", "reachable", "users"})
"""The kinds of facts that follow from what all files import."""
