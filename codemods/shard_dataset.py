"""``shard-dataset``: each rank reads its own part of the training data."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from codemods.arguments import append_arguments
from codemods.base import Codemod, Manual
from codemods.passed_down import (
    Handed,
    at_hand_of_callers,
    handed_down,
    handed_to_object,
    is_plain,
    parameter_names,
    parameters_for,
)
from codemods.ranks import Ranks, at_hand, in_file, ranks_at, require_init_before
from codemods.shardable import require_shardable, written
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.program.rehearsal.values import RANK, RANK_SIZE
from mslint.program.unsharded import UnshardedSource
from mslint.semantics.module import Module

_SHORTER = (
    "an epoch then has fewer steps, by the number of ranks: learning rates, warm-up and checkpoints that are counted in "
    "steps shrink with it"
)


class ShardDataset(Codemod):
    """Give each rank its own part of the data set that it trains on.

    What it does
        Passes ``num_shards`` and ``shard_id`` to the call that builds the data set: by the variables, parameters or
        attributes that hold the number of ranks and the rank there; by parameters handed down, in all files on the way,
        where a caller has them or where the same function builds the evaluation set, too; else by ``get_group_size()``
        and ``get_rank()``, which are 1 and 0 where ``init()`` was not called (MindSpore 2.7.0 and 2.10.0). Data sets that are
        zipped are sharded together. ``TFRecordDataset`` gets ``shard_equal_rows=True`` as well: without it a rank with fewer
        rows ends first, and the others wait for it.

    When it is safe
        Never: that each rank trains on other samples is the purpose.

    When it is unsafe
        Always. An epoch has fewer steps (by the number of ranks), so that learning rates, warm-up and checkpoints counted in
        steps shrink with it. The order of samples changes.

    When it is left to you
        The data set has a sampler (MindSpore takes a sampler or shards, not both); its source has no ``__getitem__`` and
        ``__len__`` and must leave out the other ranks' samples itself; a data set zipped with it cannot be sharded; its
        arguments come from elsewhere (``**options``); it is split in parts, and MindSpore splits nothing that is sharded; a
        loop builds the evaluation set by the same call; it is built before ``init()``, when the rank is not known yet; the
        network runs in pipeline stages, whose ranks share samples.
    """

    name = "shard-dataset"
    summary = "num_shards and shard_id for training data that every rank reads as a whole"
    applicability = "unsafe: each rank trains on its own part; manual where MindSpore cannot shard the source"
    rules = ("MS301",)

    def applies(self, finding: Finding) -> bool:
        return isinstance(finding.subject, UnshardedSource)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        source = finding.subject
        assert isinstance(source, UnshardedSource)
        edits = [edit for one in _together(source) for edit in _Sharding(module, one).edits()]
        return Fix(self.name, Applicability.UNSAFE, _message(source), tuple(dict.fromkeys(edits)))


def _together(source: UnshardedSource) -> Iterator[UnshardedSource]:
    """Yield ``source`` and all that is zipped with it."""
    if source.zipped_elsewhere:
        place = source.zipped_elsewhere[0]
        raise Manual(
            f"it is zipped with the data set of {place.path.name}:{place.row}, which every rank reads as a whole, too; shard "
            "both alike by hand, or their rows no longer fit"
        )
    yield source
    yield from source.zipped


def _message(source: UnshardedSource) -> str:
    pair = "both, zipped as they are" if source.zipped else "it"
    count = " (num_samples then counts the samples of one rank)" if written(source, "num_samples") is not None else ""
    return f"give each rank its own part of {pair}{count}; {_SHORTER}"


class _Sharding:
    """The shards of one call that builds a data set."""

    def __init__(self, home: Module, source: UnshardedSource) -> None:
        self.home = home
        self.module = source.module
        self.source = source
        self.node = source.node

    def edits(self) -> list[Edit]:
        require_shardable(self.home, self.source)
        if any(argument.star for argument in self.node.args):
            raise Manual("what is passed by `*` or `**` may shard it already; add num_shards and shard_id to that")
        ranks = self._ranks()
        passed = [("num_shards", ranks.size), ("shard_id", ranks.rank)]
        if self.source.kind.name == "TFRecordDataset":
            passed.append(("shard_equal_rows", "True"))
        edits, missing = [*ranks.edits], []
        for name, value in passed:
            argument = written(self.source, name)
            if argument is None:
                missing.append(f"{name}={value}")
            elif self.module.code(argument.value) != value:
                edits.append(self.module.replace(argument.value, value))
        if missing:
            edits += append_arguments(self.module, self.node, missing)
        return edits

    def _ranks(self) -> Ranks:
        """Return how the call is to write both, with what that needs elsewhere."""
        module, node, source = self.module, self.node, self.source
        function = module.enclosing(node, cst.FunctionDef)
        names = self._written_variables()
        if names is not None:
            handed = self._handed_to(names, function)
            return Ranks(handed.size, handed.rank, handed.edits)
        event = source.unsharded[0].event
        hand = [at_hand(module, node, event.names, wanted) for wanted in (RANK_SIZE, RANK)]
        own = function is not None and all(name in parameter_names(function) for name in hand)
        if own or (all(hand) and not source.others):
            ranks = Ranks(hand[0] or "", hand[1] or "")
            require_init_before(source.unsharded, module, node, ranks)
            return ranks
        if function is not None and (
            source.others
            or parameters_for(module, function) is not None
            or (not any(hand) and at_hand_of_callers(self.home, function, source.unsharded))
        ):
            handed = handed_down(self.home, module, node, source.unsharded, source.others)
            return Ranks(handed.size, handed.rank, handed.edits)
        if source.others:
            raise Manual("the same call builds a data set that is not trained on; build the two apart")
        ranks = ranks_at(module, node, event.names)
        require_init_before(source.unsharded, module, node, ranks)
        return Ranks(ranks.size, ranks.rank, tuple(in_file(module, self.home, ranks.edits)))

    def _handed_to(self, names: tuple[str, str], function: cst.FunctionDef | None) -> Handed:
        """Return how the variables that the call passes for both get them."""
        if function is not None and set(names) <= set(parameter_names(function)):
            return handed_down(self.home, self.module, self.node, self.source.unsharded, self.source.others, names)
        if all(name.startswith("self.") for name in names):
            return handed_to_object(self.home, self.module, self.node, self.source.unsharded[0], names)
        raise Manual(
            f"num_shards={names[0]} and shard_id={names[1]} say nothing in this run; give get_group_size() and get_rank() "
            "where these come from"
        )

    def _written_variables(self) -> tuple[str, str] | None:
        """Return what the call passes for both, if that is neither a number nor None."""
        size, rank = (written(self.source, name) for name in ("num_shards", "shard_id"))
        if all(argument is None or is_plain(self.module, argument.value) for argument in (size, rank)):
            return None
        if size is None or rank is None:
            raise Manual("only one of num_shards and shard_id is passed; pass get_group_size() and get_rank()")
        return self.module.code(size.value), self.module.code(rank.value)
