"""MS301."""

from __future__ import annotations

from collections.abc import Iterator

from mslint.findings import Finding, Severity
from mslint.program.datasets import dataset_class
from mslint.program.distribution import Run
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import NONE, Constant, options
from mslint.rules.base import Rule
from mslint.rules.data.sharding import argument, built, dataset_sites, is_sharded, related, route, runs_of, where, Site
from mslint.semantics.module import Module


class UnshardedDataset(Rule):
    """TODO"""

    code = "MS301"
    name = "unsharded-dataset"
    severity = Severity.WARNING
    summary = "In distributed training every rank reads the whole training data set"
    triggers = (b"Dataset",)

    def check(self, module: Module) -> Iterator[Finding]:
        for site in dataset_sites(module):
            for run in runs_of(module):
                event = next((event for event in built(run, site) if self._is_defect(run, event)), None)
                if event is not None:
                    yield self._finding(module, site, run, event)
                    break

    def _is_defect(self, run: Run, event: Event) -> bool:
        kind = dataset_class(event.name.rpartition(".")[2])
        return (
            kind is not None
            and run.trained_at(event) is not None
            and _splits_batches(run)
            and not is_sharded(run, event, kind)
            and not _has_twin(run, event)
        )

    def _finding(self, module: Module, site: Site, run: Run, event: Event) -> Finding:
        trained = run.trained_at(event)
        assert trained is not None and run.init is not None
        message = f"every rank reads all of this data set, which feeds the training step at {where(trained, module)} after init() at {where(run.init.place, module)}"
        return Finding(
            self.code,
            self.name,
            self.severity,
            message,
            module.source.filename,
            module.start(site.node),
            module.end(site.node),
            related=(*route(event), related(run.init.place, "makes the run distributed"), related(trained, "trains on it")),
        )


def _splits_batches(run: Run) -> bool:
    """Tell whether the run is one in which each rank is to have a batch of its own."""
    if any(value not in (False, None) for value in run.setting("full_batch")):
        return False
    if any(value not in ("data_parallel", None) for value in run.setting("dataset_strategy")):
        return False
    modes = [mode for mode in run.setting("parallel_mode") if mode not in (None, "stand_alone")]
    return bool(modes) or any(event.name.endswith(".DistributedGradReducer") for event in run.events)


def _has_twin(run: Run, event: Event) -> bool:
    """Tell whether the other side of a branch around ``event`` builds a sharded one: the branch is about shards."""
    facts = dict(event.facts)
    for other in run.events:
        kind = dataset_class(other.name.rpartition(".")[2])
        if kind is not None and any(facts.get(key) is (not holds) for key, holds in other.facts):
            if is_sharded(run, other, kind):
                return True
    return False
