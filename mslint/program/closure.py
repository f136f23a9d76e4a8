"""What can be reached step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Place = TypeVar("Place")


def closure(start: Place, step: Callable[[Place], Iterable[Place]]) -> frozenset[Place]:
    """Return all that steps lead to from ``start``, with itself; ``step`` gives what is one step away."""
    found = {start}
    queue = [start]
    while queue:
        new = set(step(queue.pop())) - found
        found |= new
        queue += new
    return frozenset(found)
