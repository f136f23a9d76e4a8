"""What the rules about shards share: the data sets of a file, and what becomes of each in the program's runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.findings import Position, Related
from mslint.program.datasets import DatasetClass, dataset_class
from mslint.program.distribution import Run, distribution
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import (
    Place,
)
from mslint.semantics.module import Module
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
    for node in module.calls:
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


def passed(site: Site, kind: DatasetClass, name: str) -> cst.BaseExpression | None:
    """Return what the call of ``site`` writes for the parameter ``name``; None if nothing, or plain None."""
    for position, written in enumerate(site.node.args):
        if written.star:
            return None
        if written.keyword.value == name if written.keyword else position == kind.position(name):
            is_none = isinstance(written.value, cst.Name) and written.value.value == "None"
            return None if is_none else written.value
    return None


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
