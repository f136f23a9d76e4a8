"""What only several ranks show: whether they start alike, get different samples and agree on the gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mslint.verify.arrays import load_arrays
from mslint.verify.compare import compare_arrays
from mslint.verify.job import result_file, state_file
from mslint.verify.process import Run
from mslint.verify.result import StepResult

_FLOATS = "fc"


@dataclass(frozen=True)
class Rank:
    """Both sides of a verification as one rank saw them."""

    original: Run
    rewritten: Run | None
    """None: the original came to no step."""
    steps: tuple[StepResult, ...]

    def explained(self, explain: Callable[[str], str]) -> Rank:
        """The same with other reasons of its steps."""
        return replace(self, steps=tuple(replace(step, reason=explain(step.reason)) for step in self.steps))


def tell_ranks_apart(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks with their number in the names of steps, and what all of them together show as remarks of the first."""
    named = [
        replace(rank, steps=tuple(replace(step, name=f"{step.name} on rank {number}") for step in rank.steps))
        for number, rank in enumerate(ranks)
    ]
    first = named[0]
    steps = tuple(
        replace(step, remarks=(*step.remarks, *_remarks(ranks, index))) for index, step in enumerate(first.steps)
    )
    return [replace(first, steps=steps), *named[1:]]


def _remarks(ranks: Sequence[Rank], index: int) -> list[str]:
    sides = [[rank.original for rank in ranks], [rank.rewritten for rank in ranks if rank.rewritten is not None]]
    told = [_of_one_side(runs, index) for runs in sides]
    return [
        f"{what} {before}" if before == after else f"{what} {before}; rewritten: {after}"
        for what, before, after in ((what, before, told[1].get(what, "not seen")) for what, before in told[0].items())
    ]


def _of_one_side(runs: Sequence[Run], index: int) -> dict[str, str]:
    """What is compared across ranks, and how it came out."""
    states = [load_arrays(state_file(run.out, index)) for run in runs]
    results = [load_arrays(result_file(run.out, index)) for run in runs]
    return {
        "parameters before the step:": _equal([_chosen("parameter:", state) for state in states]),
        "gradients:": _equal([_chosen("gradient:", result) for result in results]),
        "samples of the batch:": _shared([_chosen("input:", state) for state in states]),
    }


def _chosen(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _equal(of_ranks: Sequence[Mapping[str, Any]]) -> str:
    if not all(of_ranks):
        return "not seen on every rank"
    for rank, arrays in enumerate(of_ranks[1:], 1):
        found = compare_arrays(of_ranks[0], arrays)
        if not found.equal:
            names = ", ".join(found.differing[:3]) or "their names"
            return f"NOT equal on ranks 0 and {rank} ({names}, up to {found.max_abs_diff:.3g})"
    return f"equal on all {len(of_ranks)} ranks"


def _shared(of_ranks: Sequence[Mapping[str, Any]]) -> str:
    """Samples are told by the input with the most elements, row by row."""
    rows: list[Counter[bytes]] = []
    for arrays in of_ranks:
        batches = [array for array in arrays.values() if array.ndim]
        if not batches:
            return "not seen on every rank"
        largest = max(batches, key=lambda array: (array.dtype.kind in _FLOATS, array.size))
        rows.append(Counter(row.tobytes() for row in largest))
    owners = Counter(row for own in rows for row in own)
    several = sum(count > 1 for count in owners.values())
    return f"disjoint on all {len(rows)} ranks" if not several else f"{several} of {len(owners)} on SEVERAL ranks"
