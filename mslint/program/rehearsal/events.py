"""What a rehearsal notes down: the calls of other libraries, in order."""

from __future__ import annotations

from dataclasses import dataclass

from mslint.program.following.values import Key, Place, Value


@dataclass(frozen=True)
class Event:
    """One call of another library's function, in the order of the run.

    ``calls`` are the places of the calls that led there, outermost first.
    """

    number: int
    name: str
    place: Place
    end: tuple[int, int]
    function: str
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    open: bool
    """Whether ``*`` or ``**`` may pass more than is known."""
    calls: tuple[Place, ...]
    facts: tuple[tuple[Key, bool], ...]
    """The undecided tests that led there."""
    names: tuple[tuple[str, Value], ...] = ()
    """The variables of the function that hold a rank or the number of ranks."""

    def argument(self, position: int, name: str) -> Value | None:
        """Return what is passed for a parameter, by position or by name; None if nothing is."""
        for word, value in self.keywords:
            if word == name:
                return value
        return self.arguments[position] if 0 <= position < len(self.arguments) else None
