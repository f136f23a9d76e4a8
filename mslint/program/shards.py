"""Whether a data set that a run builds gives each rank a part of its own, and which data sets go into one batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mslint.program.datasets import DatasetClass, dataset_class
from mslint.program.distribution import Run
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import (
    NONE,
    Constant,
    Made,
    Object,
    Parallel,
    Sequence,
    Symbol,
    Table,
    Value,
    options,
    parts,
)

_ZIP = re.compile(r"\.zip$")


def argument(event: Event, kind: DatasetClass, name: str) -> Value:
    """Return what ``event`` passes for the parameter ``name`` of the data set class; None if nothing."""
    return event.argument(kind.position(name), name) or NONE


def zipped_with(run: Run, event: Event) -> Iterator[Event]:
    """Yield the data sets that may go into one batch with the one that ``event`` builds.

    What ``Dataset.zip``, the method, joins is not on record: where a program calls it, all that is trained on at one place
    counts.
    """
    numbers: set[int] = set()
    for other in run.named("mindspore.dataset.zip"):
        joined = parts(Sequence([*other.arguments, *dict(other.keywords).values()]))[0]
        if event.number in joined:
            numbers |= joined
    if _zips_by_method(run):
        trained = run.trained_at(event)
        numbers |= {number for number, place in run.rehearsal.trained.items() if place == trained}
    yield from (run.events[number] for number in sorted(numbers - {event.number}))


def _zips_by_method(run: Run) -> bool:
    program = run.rehearsal.program
    return any(
        not (program.dotted_in(path, use) or "").startswith("mindspore.")
        for path in {path for path, _ in run.rehearsal.executed}
        for use in program.uses(path, _ZIP)
    )


def is_sharded(run: Run, event: Event, kind: DatasetClass) -> bool:
    """Tell whether something may give each rank its own part of the data set that ``event`` builds."""
    if event.open or event.number in run.rehearsal.sampled:
        return True
    if not all(option in (NONE, Constant(1)) for option in options(argument(event, kind, "num_shards"))):
        return True
    if any(_distributes(run, option) for option in options(argument(event, kind, "sampler"))):
        return True
    # A source that reads another data set hands on that one's part.
    held = [parts(value)[0] for value in (*event.arguments, *dict(event.keywords).values())]
    for inner in (run.events[number] for number in sorted(frozenset().union(*held))):
        of = dataset_class(inner.name.rpartition(".")[2])
        if of is not None and inner is not event and is_sharded(run, inner, of):
            return True
    sources = [*event.arguments, *(value for name, value in event.keywords if name not in _NEUTRAL)]
    return reads_rank(run, sources)


def _distributes(run: Run, sampler: Value) -> bool:
    if isinstance(sampler, Made) and sampler.name.startswith("mindspore.dataset."):
        # MindSpore's other samplers know of no ranks, unless what they were given does.
        return sampler.name.endswith("DistributedSampler") or holds_rank(
            (*sampler.arguments, *dict(sampler.keywords).values())
        )
    if isinstance(sampler, Object):
        # A sampler of the program's own distributes if it was given a rank, or asks for it.
        _, rank, device = parts(sampler)
        return rank or device or reads_rank(run, [sampler])
    return sampler != NONE


_NEUTRAL = frozenset(
    """num_parallel_workers shuffle python_multiprocessing max_rowsize cache num_samples
    num_shards shard_id sampler""".split()  # noqa: SIM905
)


def reads_rank(run: Run, values: Iterable[Value]) -> bool:
    """Tell whether the rank went into one of ``values``, or is used in the code of an object among them."""
    found = list(values)
    return holds_rank(found) or any(
        option.key in run.rehearsal.rank_readers or _kind_reads(run, option)
        for value in found
        for option in options(value)
    )


def _kind_reads(run: Run, value: Value) -> bool:
    kind = getattr(value, "kind", None)
    return kind is not None and any(one.key in run.rehearsal.rank_readers for one in kind.lineage())


def holds_rank(values: Iterable[Value]) -> bool:
    """Tell whether a rank or the number of ranks went into one of ``values``."""
    for value in values:
        for option in options(value):
            if isinstance(option, (Parallel, Symbol)) and (isinstance(option, Parallel) or option.parallel):
                return True
            if isinstance(option, Made) and holds_rank((*option.arguments, *dict(option.keywords).values())):
                return True
            if isinstance(option, (Sequence, Table)) and any(parts(option)[1:]):
                return True
    return False
