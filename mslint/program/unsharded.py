"""What is known of a data set that every rank reads as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mslint.program.datasets import DatasetClass
from mslint.program.distribution import Run
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import Place

if TYPE_CHECKING:
    import libcst as cst

    from mslint.semantics.module import Module


@dataclass(frozen=True)
class Build:
    """One time that a distributed run builds a data set."""

    run: Run
    event: Event


@dataclass(eq=False)
class UnshardedSource:
    """A call that builds a data set which every rank of a run reads as a whole and trains on."""

    module: Module
    node: cst.Call
    kind: DatasetClass
    unsharded: tuple[Build, ...]
    """The times that it does; at least one."""
    others: tuple[Build, ...]
    """The times that the call builds a data set that is not trained on, or that is sharded already."""
    zipped: list[UnshardedSource] = field(default_factory=list)
    """Those of the same file that are zipped with this one, so that all must be sharded, or none."""
    zipped_elsewhere: list[Place] = field(default_factory=list)
    """Where other files build such."""
