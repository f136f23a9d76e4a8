"""What can be reached step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Place = TypeVar("Place")


def closure(start: Place, step: Callable[[Place], Iterable[Place]]) -> frozenset[Place]:
    """Return all that steps lead to from ``start``, with itself; ``step`` gives what is one step away."""
    return closure_of([start], step)


def closure_of(starts: Iterable[Place], step: Callable[[Place], Iterable[Place]]) -> frozenset[Place]:
    """Return all that steps lead to from any of ``starts``, with these."""
    found = set(starts)
    queue = list(found)
    while queue:
        new = set(step(queue.pop())) - found
        found |= new
        queue += new
    return frozenset(found)
