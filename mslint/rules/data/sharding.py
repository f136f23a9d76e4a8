"""What the rules about shards share: the data sets of a file, and what becomes of each in the program's runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.findings import Position, Related
from mslint.program.datasets import DatasetClass, dataset_class
from mslint.program.distribution import Run, distribution
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import (
    NONE,
    Constant,
    Made,
    Parallel,
    Place,
    Symbol,
    Value,
    options,
    parts,
)
from mslint.semantics.module import Module, find
from mslint.source.text import shown


@dataclass(frozen=True)
class Site:
    """A call in the file that builds a data set (or a sampler that shards one)."""

    node: cst.Call
    name: str
    """Its class."""
    place: Place


def dataset_sites(module: Module) -> list[Site]:
    """Return the calls of the file that build a data set which can be sharded."""
    return module.remember(dataset_sites, lambda: list(_sites(module, lambda name: dataset_class(name) is not None)))


def sampler_sites(module: Module) -> list[Site]:
    """Return the calls of the file that build a ``DistributedSampler``."""
    return module.remember(sampler_sites, lambda: list(_sites(module, lambda name: name == "DistributedSampler")))


def _sites(module: Module, wanted: object) -> Iterator[Site]:
    assert callable(wanted)
    path = module.source.path.absolute()
    for node in find(module.tree, cst.Call):
        name = module.resolve(node.func)
        if name and name.startswith("mindspore.dataset.") and wanted(name.rpartition(".")[2]):
            start = module.start(node)
            before = module.lines[start.row - 1][: start.column - 1]
            # Python's own parser counts columns in bytes.
            place = Place(path, start.row, len(before.encode()))
            yield Site(node, name.rpartition(".")[2], place)


def runs_of(module: Module) -> list[Run]:
    """Return the distributed runs that may reach the file."""
    return module.remember(runs_of, lambda: distribution(module.program).runs(module.source.path.absolute()))


def all_runs_of(module: Module) -> list[Run]:
    """Return all runs that may reach the file, those on one device too."""
    return module.remember(all_runs_of, lambda: distribution(module.program).all_runs(module.source.path.absolute()))


def built(run: Run, site: Site) -> Iterator[Event]:
    """Yield the times that ``run`` comes by ``site``."""
    return run.at(site.place.path, site.place.row, site.place.column)


def argument(event: Event, kind: DatasetClass, name: str) -> Value:
    """Return what ``event`` passes for the parameter ``name`` of the data set class; None if nothing."""
    return event.argument(kind.position(name), name) or NONE


def passed(site: Site, kind: DatasetClass, name: str) -> cst.BaseExpression | None:
    """Return what the call of ``site`` writes for the parameter ``name``; None if nothing, or plain None."""
    for position, written in enumerate(site.node.args):
        if written.star:
            return None
        if written.keyword.value == name if written.keyword else position == kind.position(name):
            is_none = isinstance(written.value, cst.Name) and written.value.value == "None"
            return None if is_none else written.value
    return None


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
    return False


def where(place: Place, module: Module) -> str:
    """Say where ``place`` is, seen from ``module``."""
    if place.path == module.source.path.absolute():
        return f"line {place.row}"
    return f"{shown(place.path)}:{place.row}"


def related(place: Place, message: str) -> Related:
    """Point at ``place``."""
    start = Position(place.row, place.column + 1)
    return Related(shown(place.path), start, start, message)


def route(event: Event) -> tuple[Related, ...]:
    """Point at the calls that lead to ``event``, outermost first."""
    return tuple(related(place, "called from here") for place in event.calls)
