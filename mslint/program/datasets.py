"""MindSpore's data set classes: which can be sharded, which take a sampler, what their parameters are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parents[1] / "data" / "dataset_classes.json"


@dataclass(frozen=True)
class DatasetClass:
    """A class of ``mindspore.dataset`` that reads data."""

    name: str
    parameters: tuple[str, ...]

    @property
    def takes_sampler(self) -> bool:
        """Whether a sampler can be given; 23 classes that take shards have none."""
        return "sampler" in self.parameters

    def position(self, parameter: str) -> int:
        """Return the position of ``parameter`` among the arguments, or -1."""
        return self.parameters.index(parameter) if parameter in self.parameters else -1


def dataset_class(name: str) -> DatasetClass | None:
    """Return the class ``name`` if it can be sharded by ``num_shards`` and ``shard_id``."""
    return _classes().get(name)


@cache
def foremost_position(parameter: str) -> int:
    """Return the position of ``parameter`` among the arguments of the class that takes it earliest."""
    return min(kind.position(parameter) for kind in _classes().values() if parameter in kind.parameters)


def shardable() -> frozenset[str]:
    """Return the names of the classes that can be sharded."""
    return frozenset(_classes())


@cache
def _classes() -> dict[str, DatasetClass]:
    table = json.loads(_TABLE.read_text(encoding="utf-8"))["classes"]
    return {
        name: DatasetClass(name, tuple(parameters)) for name, parameters in table.items() if "num_shards" in parameters
    }
