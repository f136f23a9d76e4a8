"""MS304."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.program.datasets import DatasetClass, dataset_class
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import NONE, Constant, Made, Object, Parallel, Sequence, Symbol, Value, options
from mslint.program.shards import argument, reads_rank
from mslint.rules.base import Rule
from mslint.rules.data.sharding import (
    Site,
    all_runs_of,
    built,
    dataset_sites,
    passed,
    related,
    route,
    where,
)
from mslint.semantics.module import Module


class SamplerWithShards(Rule):
    """A data set is given a sampler and ``num_shards`` at once.

    What it does
        Reports a data set of ``mindspore.dataset`` that gets both a sampler and ``num_shards``, where both are there in one
        run: the program is followed from its entry points to ``init()`` and to the data set, so that ``sampler = None`` on
        one side of a branch and ``num_shards = None`` on the other are told apart.

    Why it matters
        A sampler says which samples are read, and so do shards. MindSpore refuses the pair with a ValueError when the data
        set is built. Where the numbers are None on one device, nobody sees that until the first run on several. A sampler
        of one's own (a list, another iterable of indices) is worse: no error, and the shards are ignored; where it does
        not use the rank itself, every rank reads the same samples.

    Evidence
        Measured on MindSpore 2.10.0, CPU, on 16 samples. ``GeneratorDataset(source, sampler=RandomSampler(), num_shards=2,
        shard_id=0)``: "ValueError: Conflicting arguments during sampler assignments"; the same for ``num_shards=1``, for
        ``DistributedSampler`` and for ``NumpySlicesDataset``; with both numbers None it is read whole. ``sampler=[0, 1],
        num_shards=2``: no error, and both ranks read samples 0 and 1. ``python fixtures/sampler-with-shards/bad.py`` gets
        the ValueError on both of two ranks, ``fixed.py`` 4 samples on each.

    Example
        .. code-block:: python

            sampler = ds.DistributedSampler(rank_size, rank)
            dataset = ds.GeneratorDataset(source, ["image"], sampler=sampler, num_shards=rank_size, shard_id=rank)

    Use instead
        .. code-block:: python

            dataset = ds.GeneratorDataset(source, ["image"], num_shards=rank_size, shard_id=rank, shuffle=True)

    Fix safety
        There is no automatic fix: whether the sampler or the shards say what is meant only the author knows. A
        ``DistributedSampler`` can stay and the two numbers go; of any other sampler the shards cannot be kept.

    References
        https://www.mindspore.cn/docs/en/master/api_python/dataset/mindspore.dataset.GeneratorDataset.html
    """

    code = "MS304"
    name = "sampler-with-shards"
    severity = Severity.ERROR
    summary = "A data set is given a sampler and num_shards at once, which MindSpore refuses"
    triggers = (b"num_shards",)
    screen = "mslint.rules.data.screens:shares_sampled"
    INVALID = (
        """
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        init()
        order = ds.RandomSampler()
        images = ds.ImageFolderDataset("train", sampler=order, num_shards=get_group_size(), shard_id=get_rank())  # <- MS304
        """,
        # The numbers are None on one device: it runs there, and fails on several.
        """
        from mindspore import dataset
        from mindspore.communication.management import init, get_rank, get_group_size
        from settings import options

        def faces(source, shards=None, shard=None):
            order = dataset.PKSampler(8)
            return dataset.GeneratorDataset(source, ["face"], sampler=order, num_shards=shards, shard_id=shard)  # <- MS304

        if __name__ == "__main__":
            shards, shard = None, None
            if options.parallel:
                init()
                shards, shard = get_group_size(), get_rank()
            faces([1, 2, 3], shards, shard)
        """,
        # A sampler of one's own: no error, no shards.
        """
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        class Pairs(ds.Sampler):
            def __init__(self, count):
                super().__init__()
                self.count = count

            def __iter__(self):
                yield from range(0, self.count, 2)

        init()
        ds.ImageFolderDataset("train", sampler=Pairs(16), num_shards=get_group_size(), shard_id=get_rank())  # <- MS304
        """,
        # Numbers written out, in a file that nothing runs.
        """
        import mindspore.dataset as ds

        def digits(folder):
            return ds.MnistDataset(folder, sampler=ds.SequentialSampler(), num_shards=8, shard_id=0)  # <- MS304
        """,
    )
    VALID = (
        # One or the other.
        """
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        init()
        parts = ds.DistributedSampler(get_group_size(), get_rank())
        ds.ImageFolderDataset("train", sampler=parts)
        ds.ImageFolderDataset("train", sampler=None, num_shards=get_group_size(), shard_id=get_rank())
        ds.ImageFolderDataset("train", sampler=parts, num_shards=None, shard_id=None)
        """,
        # One on each side of a branch.
        """
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import options

        if options.parallel:
            init()
            shards, shard, order = get_group_size(), get_rank(), None
        else:
            shards, shard, order = None, None, ds.RandomSampler()
        ds.ImageFolderDataset("train", sampler=order, num_shards=shards, shard_id=shard)
        """,
        # A sampler of one's own that knows its rank: the shards are ignored, and not missed.
        """
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        class OwnPart:
            def __init__(self, count, rank, size):
                self.indices = list(range(count))[rank::size]

            def __iter__(self):
                return iter(self.indices)

        init()
        own = OwnPart(16, get_rank(), get_group_size())
        ds.ImageFolderDataset("train", sampler=own, num_shards=get_group_size(), shard_id=get_rank())
        """,
        # Parameters that nobody passes together.
        """
        import mindspore.dataset as ds

        def images(folder, order=None, shards=None, shard=None):
            return ds.ImageFolderDataset(folder, sampler=order, num_shards=shards, shard_id=shard)

        images("train")
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for site in dataset_sites(module):
            kind = dataset_class(site.name)
            if kind is None or not kind.takes_sampler:
                continue
            sampler, shards = passed(site, kind, "sampler"), passed(site, kind, "num_shards")
            if sampler is None or shards is None:
                continue
            found = next(_conflicts(module, site, kind), None)
            if found is not None:
                yield self._finding(module, site, found)
            elif isinstance(shards, cst.Integer) and _is_builtin(module.resolve(_callee(sampler))):
                # The call itself shows both: nothing needs to run to know.
                yield self._finding(module, site, None)

    def _finding(self, module: Module, site: Site, found: _Conflict | None) -> Finding:
        message = f"{site.name} gets a sampler and num_shards at once"
        places: tuple[Related, ...] = ()
        if found is not None:
            places = route(found.event)
            if found.init is not None:
                message += f" in the run that init() at {where(found.init.place, module)} makes distributed"
                places += (related(found.init.place, "makes the run distributed"),)
        if found is None or found.refused:
            message += ": MindSpore raises ValueError; keep one of them"
        else:
            message += ": beside a sampler of one's own the shards are ignored, and this one does not use the rank"
        start, end = module.start(site.node), module.end(site.node)
        return self.finding(module, start, end, message, related=places)


@dataclass(frozen=True)
class _Conflict:
    """The data set as a distributed run builds it; ``refused`` if MindSpore raises, else it ignores the shards."""

    event: Event
    init: Event | None
    refused: bool


def _conflicts(module: Module, site: Site, kind: DatasetClass) -> Iterator[_Conflict]:
    for run in all_runs_of(module):
        for event in built(run, site):
            if not all(map(_is_number, options(argument(event, kind, "num_shards")))):
                continue
            samplers = options(argument(event, kind, "sampler"))
            if all(_is_refused(sampler) for sampler in samplers):
                yield _Conflict(event, run.init, True)
            elif all(isinstance(sampler, (Sequence, Object)) for sampler in samplers) and not reads_rank(run, samplers):
                yield _Conflict(event, run.init, False)


def _is_number(value: Value) -> bool:
    """Tell whether ``value`` is surely not None."""
    if isinstance(value, Constant):
        return value != NONE
    return isinstance(value, Parallel) or (isinstance(value, Symbol) and value.parallel)


def _is_refused(sampler: Value) -> bool:
    """Tell whether ``sampler`` is one of MindSpore's own: only these are refused beside shards."""
    if isinstance(sampler, Object):
        return any(map(_is_builtin, sampler.kind.foreign()))
    return isinstance(sampler, Made) and _is_builtin(sampler.name)


def _is_builtin(name: str | None) -> bool:
    # mindspore.dataset.Sampler is the base of the samplers that people write.
    return (
        name is not None
        and name.startswith("mindspore.dataset.")
        and name.endswith("Sampler")
        and (not name.endswith(".Sampler"))
    )


def _callee(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.func if isinstance(node, cst.Call) else node
