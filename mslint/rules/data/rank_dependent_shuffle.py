"""MS303."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.findings import Finding, Severity
from mslint.program.calls import CallGraph, CallSite
from mslint.program.dependence import Place, Source, values_of
from mslint.program.parallel_runs import starts
from mslint.program.randomness import Seed, Stream, randomness_of
from mslint.program.sharding import is_shuffled, seeded_before, shuffled_shards
from mslint.rules.base import Rule
from mslint.rules.data.rank_blind_seed import may_seed, place_of, seeding_calls
from mslint.semantics.module import Module, find


class RankDependentShuffle(Rule):
    """The data set is shuffled with a seed that depends on the rank, then sharded: the shards overlap.

    What it does
        Reports ``mindspore.set_seed`` and ``dataset.config.set_seed`` with a number that depends on the rank (by
        ``get_rank()``, ``RANK_ID``, what the program makes of them and hands on), in a program that afterwards builds a
        source with ``num_shards``, or a ``DistributedSampler``, and does not turn its shuffle off. Where the rank is known
        by the name of an argument alone it is info.

        Left alone: ``numpy.random.seed`` and ``random.seed`` (they do not touch the order), sources with
        ``shuffle=False``, seeds set after the source is built or replaced by an equal one before it is.

    Why it matters
        A sharded source shuffles the whole list of samples and gives each rank every N-th of it. That works only if all
        ranks shuffle alike. With different seeds each rank takes its part of another list: some samples come twice an
        epoch, others never, and no number of steps shows it. ``mindspore.set_seed`` by the rank makes the initial
        weights differ as well, and in PyNative mode nothing makes them equal again.

    Evidence
        Measured on MindSpore 2.10.0, CPU, on two ranks (``msrun --worker_num=2 --local_worker_num=2 --join=True
        --log_dir=LOGS fixtures/rank-dependent-shuffle/bad.py``, then ``fixed.py``): of 16 samples in 2 shards,
        ``mindspore.set_seed(1 + get_rank())`` lets 5 come twice and 5 never, in each of 3 epochs, and the initial weights
        differ; with ``mindspore.set_seed(1)`` each comes once and the weights are equal.
        ``python fixtures/rank-dependent-shuffle/orders.py`` shows the same 5 and 5 for ``dataset.config.set_seed`` and for a
        ``DistributedSampler``, and 0 and 0 for ``shuffle=False`` and for a seed by the rank that follows the source.

    Example
        .. code-block:: python

            ms.set_seed(1 + get_rank())
            data = ds.GeneratorDataset(source, ["x"], num_shards=get_group_size(), shard_id=get_rank())

    Use instead
        .. code-block:: python

            ms.set_seed(1)
            network = Network()
            data = ds.GeneratorDataset(source, ["x"], num_shards=get_group_size(), shard_id=get_rank())
            ds.config.set_seed(1 + get_rank())           # only if augmentation is to differ between ranks (MS302)

    Fix safety
        Codemod ``rank-seed``, never safe: which samples are trained on, and from which weights, changes on purpose.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore/mindspore.set_seed.html,
        https://www.mindspore.cn/docs/en/master/api_python/dataset/mindspore.dataset.DistributedSampler.html
    """

    code = "MS303"
    name = "rank-dependent-shuffle"
    severity = Severity.ERROR
    summary = "shards of a data set overlap, for each rank shuffles it with a seed of its own"
    triggers = (b"seed(",)
    screen = "mslint.rules.data.screens:seeds_by_name"
    codemod = "rank-seed"
    INVALID = (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder):
            init()
            ms.set_seed(1 + get_rank())  # <- MS303
            data = ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank())
            train(data)

        main("pictures")
        """,
        # The rank by a variable, an attribute and the environment, through a helper; built in another function.
        """
        import os
        import mindspore.dataset as ds
        from mindspore.dataset import config
        from mindspore import nn
        from mindspore.communication import init

        class Settings:
            seed = 3

        def rank_of():
            return int(os.environ.get("RANK_ID", "0"))

        def seed_data(seed, rank=0):
            offset = seed + 100 * rank
            config.set_seed(offset)  # <- MS303

        def read(path, rank, size, shuffle=True):
            return ds.MindDataset(path, shuffle=shuffle, num_shards=size, shard_id=rank)

        def main(args):
            init()
            args.rank = rank_of()
            seed_data(args.seed, args.rank)
            train(read(args.path, args.rank, args.size))

        main(Settings())
        """,
        # A sampler that shards.
        """
        import mindspore.dataset as de
        from mindspore.communication.management import get_rank, get_group_size, init

        init()
        de.config.set_seed(get_rank())  # <- MS303
        sampler = de.DistributedSampler(get_group_size(), get_rank())
        train(de.ImageFolderDataset("pictures", sampler=sampler))
        """,
        # Called a rank and given from outside: info.
        """
        import argparse
        import mindspore as ms
        import mindspore.dataset as ds

        parser = argparse.ArgumentParser()
        parser.add_argument("--rank", type=int)
        parser.add_argument("--size", type=int)
        args = parser.parse_args()
        ms.set_seed(args.rank)  # <- MS303
        train(ds.TFRecordDataset("rows", num_shards=args.size, shard_id=args.rank))
        """,
    )
    VALID = (
        # Equal until the source is built, by the rank after that.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def read(folder):
            return ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank())

        def main(folder):
            init()
            ms.set_seed(1)
            data = read(folder)
            ds.config.set_seed(1 + get_rank())
            train(data)

        main("pictures")
        """,
        # Weights by the rank (whatever for), the data set alike.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder):
            init()
            ms.set_seed(1 + get_rank())
            ds.config.set_seed(1)
            train(ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank()))

        main("pictures")
        """,
        # No shuffle, written there or handed on.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def read(folder, shuffle):
            return ds.ImageFolderDataset(folder, shuffle=shuffle, num_shards=get_group_size(), shard_id=get_rank())

        def main(folder):
            init()
            ms.set_seed(1 + get_rank())
            train(read(folder, False))
            train(ds.MnistDataset(folder, shuffle=False, num_shards=get_group_size(), shard_id=get_rank()))

        main("pictures")
        """,
        # numpy's and random's seeds do not touch the order.
        """
        import random
        import numpy as np
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder):
            init()
            np.random.seed(1 + get_rank())
            random.seed(1 + get_rank())
            train(ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank()))

        main("pictures")
        """,
        # No shards: every rank reads all there is, in its own order; the number of ranks is no rank.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder):
            init()
            ms.set_seed(1 + get_rank())
            train(ds.ImageFolderDataset(folder))

        main("pictures")
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder):
            init()
            ms.set_seed(get_group_size())
            train(ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank()))

        main("pictures")
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not may_seed(module, frozenset({Stream.DATA})):
            return
        # A number that is written out depends on nothing.
        calls = {
            row: call
            for row, (call, streams) in seeding_calls(module).items()
            if Stream.DATA in streams and any(True for _ in _names(call))
        }
        if not calls:
            return
        graph = module.program.call_graph(module.source.path)
        if not shuffled_shards(graph):
            return
        for row, seed in randomness_of(graph).seeds_in(module.source.path).items():
            if row in calls and seed.argument is not None:
                yield from self._check(module, graph, seed, calls[row])

    def _check(self, module: Module, graph: CallGraph, seed: Seed, node: cst.Call) -> Iterator[Finding]:
        for reached in starts(graph).values():
            if seed.node not in reached:
                continue
            found = values_of(graph).dependence(seed.call.path, seed.call.function, seed.argument or "", reached)
            rank = found.get(Source.RANK) or found.get(Source.NAMED_RANK)
            source = _source(graph, seed, reached) if rank is not None else None
            if rank is not None and source is not None:
                yield self._finding(module, seed, node, rank, source, Source.RANK in found)
                return

    def _finding(
        self, module: Module, seed: Seed, node: cst.Call, rank: Place, source: CallSite, proved: bool
    ) -> Finding:
        certain = "" if proved else f" (if `{rank.text}` is the rank, as its name says)"
        also = (
            " Initial weights differ between ranks, too: `mindspore.set_seed` seeds them."
            if Stream.FRAMEWORK in seed.streams
            else ""
        )
        return self.finding(
            module,
            module.start(node),
            module.end(node),
            f"`{seed.argument}` depends on the rank by `{rank.text}`{certain}, and `{source.callee}` in row {source.row} of "
            f"{source.path.name} shuffles before it shards: each rank takes its part of another order, so some samples "
            f"come twice an epoch and others never; seed the data set alike on all ranks until it is built.{also}",
            severity=self.severity if proved else Severity.INFO,
            related=(
                place_of(module, rank.path, rank.row, "the rank comes in here"),
                place_of(module, source.path, source.row, "shuffled and sharded here"),
            ),
            subject=seed,
        )


def _names(call: cst.Call) -> Iterator[cst.Name]:
    for argument in call.args:
        yield from find(argument.value, cst.Name)


def _source(graph: CallGraph, seed: Seed, reached: frozenset[str]) -> CallSite | None:
    return next(
        (
            source
            for source in shuffled_shards(graph)
            if f"{source.path}:{source.function}" in reached
            and is_shuffled(graph, source, reached)
            and seeded_before(graph, seed, source, reached)
        ),
        None,
    )
