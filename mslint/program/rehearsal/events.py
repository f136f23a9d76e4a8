"""What a rehearsal notes down: the calls of other libraries, in order."""

from __future__ import annotations

from dataclasses import dataclass

from mslint.program.following.values import Call, Key, Place, Scope, Value, options
from mslint.program.rehearsal.values import Parallel


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

    @classmethod
    def of(
        cls,
        number: int,
        name: str,
        call: Call,
        place: Place,
        function: str,
        calls: tuple[Place, ...],
        facts: tuple[tuple[Key, bool], ...],
        scope: Scope,
    ) -> Event:
        """Return the event that ``call``, made in ``scope``, is."""
        end = (getattr(call.node, "end_lineno", 0) or 0, getattr(call.node, "end_col_offset", 0) or 0)
        arguments, keywords = tuple(call.arguments), tuple(call.keywords.items())
        names = tuple(
            (name, value)
            for name, value in scope.names.items()
            if isinstance(name, str) and any(isinstance(option, Parallel) for option in options(value))
        )
        return cls(number, name, place, end, function, arguments, keywords, call.open, calls, facts, names)

    def argument(self, position: int, name: str) -> Value | None:
        """Return what is passed for a parameter, by position or by name; None if nothing is."""
        for word, value in self.keywords:
            if word == name:
                return value
        return self.arguments[position] if 0 <= position < len(self.arguments) else None
