"""Answers to questions about a program, each worked out once, and what each of them rests on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from mslint.program.grounds import Fact, Grounds, Notes

Answer = TypeVar("Answer")
Question = TypeVar("Question")


class Recent(OrderedDict[object, tuple[object, Grounds]]):
    """Answers of one kind, those asked for last: as many as make up ``most`` by what ``weigh`` gives each."""

    def __init__(self, most: int, weigh: Callable[[object], int]) -> None:
        super().__init__()
        self._most = most
        self._weigh = weigh
        self._weight = 0

    def __setitem__(self, key: object, found: tuple[object, Grounds]) -> None:
        super().__setitem__(key, found)
        self._weight += self._weigh(found[0])
        while self._weight > self._most and len(self) > 1:
            self._weight -= self._weigh(self.popitem(last=False)[1][0])


class Answers:
    """What is known, and on which grounds, so that it can be kept from one run to the next (see ``noting``)."""

    def __init__(self) -> None:
        self._known: dict[Fact, tuple[object, bool]] = {}
        self._remembered: dict[object, tuple[object, Grounds]] = {}
        self._recent: dict[object, Recent] = {}
        self._notes = Notes()
        self._same: dict[Fact, Fact] = {}

    def _note(self, fact: Fact) -> None:
        """Let the answer that is being worked out rest on ``fact``; what rests on the same fact shares it."""
        facts = self._notes.facts
        if fact not in facts:
            facts.add(self._same.setdefault(fact, fact))

    def remember(self, key: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to the question ``key`` about this program, computed once.

        Whoever is given it rests on what it rests on: an answer that goes on asking, and keeps what it is told, must keep
        that by way of this method, too.
        """
        answer: Answer = self.answer(self._remembered, key, compute)  # type: ignore[assignment]
        return answer

    def recall(
        self, kind: object, key: object, compute: Callable[[], Answer], most: int, weigh: Callable[[Answer], int]
    ) -> Answer:
        """Return an answer as ``remember`` does, for questions of a ``kind`` whose answers take too much to keep them all.

        Those asked for last are kept: as many as make up ``most`` by what ``weigh`` gives each.
        """
        known = self._recent.setdefault(kind, Recent(most, weigh))  # type: ignore[arg-type]
        answer: Answer = self.answer(known, key, compute)  # type: ignore[assignment]
        known.move_to_end(key)
        return answer

    def answer(
        self, known: dict[Question, tuple[Answer, Grounds]], key: Question, compute: Callable[[], Answer]
    ) -> Answer:
        """Return the answer to the question ``key``, from ``known`` if it is there, else computed and kept there."""
        if key in known:
            self._notes.others.add(known[key][1])
        else:
            known[key] = self.noting(compute)
        return known[key][0]

    def noting(self, compute: Callable[[], Answer]) -> tuple[Answer, Grounds]:
        """Return an answer and what it rests on."""
        outer, self._notes = self._notes, Notes()
        try:
            answer = compute()
        finally:
            grounds = self._notes.grounds
            outer.others.add(grounds)
            self._notes = outer
        return answer, grounds

    def _fact(self, kind: str, subject: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to a question that can be asked again in each run: what it rests on does not matter then."""
        fact = (kind, str(subject))
        self._note(fact)
        known = self._known.get(fact)
        if known is None:
            outer, self._notes = self._notes, Notes()
            try:
                answer = compute()
            finally:
                inner, self._notes = self._notes, outer
            known = self._known[fact] = (answer, inner.grounds.certain)
        self._notes.closed &= known[1]
        return known[0]  # type: ignore[return-value]
