"""MS301."""

from __future__ import annotations

from collections.abc import Iterator

from mslint.findings import Finding, Severity
from mslint.program.datasets import dataset_class
from mslint.program.distribution import Run
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import NONE, RANK, RANK_SIZE, Value, options
from mslint.program.shards import argument, is_sharded, zipped_with
from mslint.program.unsharded import Build, UnshardedSource
from mslint.rules.base import Rule
from mslint.rules.data.sharding import (
    Site,
    built,
    dataset_sites,
    related,
    route,
    runs_of,
    where,
)
from mslint.semantics.module import Module


class UnshardedDataset(Rule):
    """In distributed training, every rank reads the whole training data set.

    What it does
        Follows the program from each of its entry points under the tests that lead to ``init()``, into other files and
        through helpers, classes and decorators, and reports a data set that is built on this way without a part for each
        rank and then feeds a training step: no ``num_shards`` (or None, or 1), no ``DistributedSampler``, no
        ``use_sampler`` later, no rank in what it is built from nor in the code of its source. That a function is called
        ``create_train_dataset``, takes ``rank`` or stands in ``train.py`` decides nothing: where the data goes does. Data
        that is evaluated on, counted or looked through is left alone, and so are ``device_num == 1`` branches, the
        unsharded twin of a sharded branch, code behind ``if rank_size > 1: raise``, ``full_batch``, ``dataset_strategy``,
        and programs that never call ``init()``.

    Why it matters
        N ranks then do the same epoch N times, and it takes as many steps as on one device. Shuffling does not help: its
        seed is equal on all ranks unless someone changes it, so all ranks draw the same batches in the same order, compute
        the same gradients and average N equal numbers. Where the seeds differ, the ranks read N shuffled copies, and some
        samples are seen N times before others are seen once. Nothing fails, and the loss goes down.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``msrun --worker_num=2 --local_worker_num=2 --join=True
        fixtures/unsharded-dataset/bad.py`` and ``.../fixed.py``, two ranks, 16 samples, batches of 4, two epochs:
        without shards each rank takes 8 steps, reads every sample twice, and both end at the loss 0.262635887, bit for bit
        the same step done twice; with shards each takes 4 steps, each sample is read by one rank alone, and the losses are
        0.262767941 and 0.227942795.

    Example
        .. code-block:: python

            init()
            ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
            dataset = ds.ImageFolderDataset(path, shuffle=True).batch(32)
            model.train(epochs, dataset)

    Use instead
        .. code-block:: python

            dataset = ds.ImageFolderDataset(path, shuffle=True, num_shards=get_group_size(), shard_id=get_rank()).batch(32)

    Fix safety
        Codemod ``shard-dataset``, never safe: an epoch then has fewer steps, so that learning rates, warm-up and checkpoints
        counted in steps shrink with it. Data sets that are zipped are sharded together. A source without ``__getitem__`` (a
        generator) cannot be sharded by MindSpore at all: it must leave out the other ranks' samples itself.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore.dataset.html,
        https://www.mindspore.cn/tutorials/en/master/parallel/data_parallel.html
    """

    code = "MS301"
    name = "unsharded-dataset"
    severity = Severity.WARNING
    summary = "In distributed training every rank reads the whole training data set"
    triggers = (b"Dataset",)
    screen = "mslint.rules.data.screens:names_dataset"
    codemod = "shard-dataset"
    INVALID = (
        # All in one file.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        def main(network, loss, optimizer):
            init()
            rank, size = get_rank(), get_group_size()
            ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
            images = ds.ImageFolderDataset("train", shuffle=True)  # <- MS301
            held_out = ds.ImageFolderDataset("test", shuffle=False)
            model = ms.Model(network, loss, optimizer, metrics={"accuracy"})
            model.train(10, images.batch(32 // size), callbacks=[])
            print(rank, model.eval(held_out.batch(32)))

        if __name__ == "__main__":
            from networks import network, loss, optimizer
            main(network, loss, optimizer)
        """,
        # init() in a helper behind an option, a decorated entry, a step of one's own; a zipped pair.
        """
        import functools
        import mindspore as ms
        from mindspore import context, dataset
        from mindspore.communication.management import init
        from settings import options

        def prepared(run):
            @functools.wraps(run)
            def inner(*given):
                print("copying data")
                return run(*given)
            return inner

        def set_up():
            if options.several:
                init()
                context.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

        def pairs(folder, rank_size, rank):
            left = dataset.MindDataset(folder + "/left", ["a"])  # <- MS301
            right = dataset.MindDataset(folder + "/right", ["b"])  # <- MS301
            return dataset.zip((left, right)).batch(8)

        @prepared
        def run(network, optimizer):
            set_up()
            batches = pairs(options.folder, options.size, options.rank)
            gradient = ms.value_and_grad(network, None, optimizer.parameters)
            for batch in batches.create_dict_iterator():
                loss, grads = gradient(batch["a"], batch["b"])
                optimizer(grads)

        if __name__ == "__main__":
            run(options.network, options.optimizer)
        """,
        # The parameters are there, and nobody passes them; one shard of one.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        class Reader:
            def __init__(self, shards=None, shard=None):
                self.shards, self.shard = shards, shard

            def open(self, path):
                return ds.TFRecordDataset(path, num_shards=self.shards, shard_id=self.shard)  # <- MS301

        class Library:
            @staticmethod
            def read(path, shuffled):
                return ds.MindDataset(path, shuffle=shuffled)  # <- MS301

            @classmethod
            def training(cls, path):
                return cls.read(path, True)

        init()
        ms.set_auto_parallel_context(parallel_mode="hybrid_parallel")
        model.train(1, Reader().open("records").batch(4))
        model.train(1, ds.TFRecordDataset("more", num_shards=1, shard_id=0))  # <- MS301
        model.train(1, Library.training("books"))
        """,
        # A generator; a sampler that knows no ranks; semi-automatic parallelism with the default dataset strategy.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import init
        from settings import network, optimizer, episodes

        def draw():
            for episode in episodes:
                yield episode

        ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL)
        init()
        step = nn.TrainOneStepCell(network, optimizer)
        for x, y in ds.GeneratorDataset(draw, ["x", "y"]):  # <- MS301
            step(x, y)
        for x, y in ds.MnistDataset("digits", sampler=ds.RandomSampler(num_samples=100)):  # <- MS301
            step(x, y)
        """,
        # A sampler of the program's own for one device; the one for several is there, but nobody hands on the rank.
        """
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model, rows

        class Mixed(ds.Sampler):
            def __init__(self, count):
                super().__init__(count)
                self.count = count

            def __iter__(self):
                return iter(np.random.permutation(self.count))

        class Share(Mixed):
            def __init__(self, count, rank, size):
                super().__init__(count // size)
                self.rank, self.size = rank, size

            def __iter__(self):
                return iter(np.random.permutation(self.count)[self.rank :: self.size])

        def open_set(rank=None, size=None):
            sampler = Mixed(len(rows))
            if rank is not None and size is not None:
                sampler = Share(len(rows), rank, size)
            return ds.GeneratorDataset(rows, ["x"], sampler=sampler)  # <- MS301

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, open_set())
        """,
    )
    VALID = (
        # Shards, a distributing sampler, one given later, shards in ** or by position, a sampler of the program's own.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        class Share:
            def __init__(self, count, rank, size):
                self.own = list(range(count))[rank::size]

            def __iter__(self):
                return iter(self.own)

        class Asking:
            def __init__(self, count):
                self.count = count

            def __iter__(self):
                return iter(range(get_rank(), self.count, get_group_size()))

        init()
        rank, size = get_rank(), get_group_size()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        shards = dict(num_shards=size, shard_id=rank)
        model.train(1, ds.ImageFolderDataset("train", num_shards=size, shard_id=rank))
        model.train(1, ds.ImageFolderDataset("train", sampler=ds.DistributedSampler(size, rank)))
        model.train(1, ds.ImageFolderDataset("train", **shards))
        model.train(1, ds.ImageFolderDataset("train", sampler=Share(100, rank, size)))
        model.train(1, ds.ImageFolderDataset("train", sampler=Asking(100)))
        later = ds.ImageFolderDataset("train")
        later.use_sampler(ds.DistributedSampler(size, rank))
        model.train(1, later)
        """,
        # The source divides the samples itself: by its arguments, by its own code, by the names of its files.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model, files

        class Own:
            def __init__(self, items):
                self.items = items
                self.first, self.step = get_rank(), get_group_size()

            def __getitem__(self, index):
                return self.items[index * self.step + self.first]

            def __len__(self):
                return len(self.items) // self.step

        def stream():
            for number, item in enumerate(files):
                if number % get_group_size() == get_rank():
                    yield item

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, ds.GeneratorDataset(Own(files), ["x"]))
        model.train(1, ds.GeneratorDataset(stream, ["x"]))
        model.train(1, ds.MindDataset(files[get_rank() :: get_group_size()]))
        """,
        # What it is built from is chosen by the rank: cut out, picked by a test, put in a list; filtered afterwards.
        """
        import glob
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def records(pattern, rank, size):
            files = sorted(glob.glob(pattern))
            files = files[rank::size]
            return ds.TFRecordDataset(files, shuffle=True)

        class Own:
            def __init__(self, names):
                self.names = [name for number, name in enumerate(names) if number % get_group_size() == get_rank()]

            def open(self):
                return ds.TFRecordDataset(self.names)

        def picked(names):
            found = []
            for number, name in enumerate(names):
                if number % get_group_size() != get_rank():
                    continue
                found.append(name)
            return ds.MindDataset(found)

        init()
        rank, size = get_rank(), get_group_size()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        names = ["part%d" % number for number in range(64)]
        model.train(1, records("*.tfrecord", rank, size))
        model.train(1, Own(names).open())
        model.train(1, picked(names))
        model.train(1, ds.NumpySlicesDataset({"x": np.arange(64)[rank * 64 // size : (rank + 1) * 64 // size]}))
        digits = ds.MnistDataset("digits")
        model.train(1, digits.filter(lambda image, label: label % size == rank, ["image", "label"]))
        """,
        # Rank and number of ranks from the command line, told to MindSpore, used by the source.
        """
        import argparse
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        class Part:
            def __init__(self, first, step):
                self.own = list(range(first, 100, step))

            def __getitem__(self, index):
                return self.own[index]

            def __len__(self):
                return len(self.own)

        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int)
        parser.add_argument("--number", type=int)
        given = parser.parse_args()
        if given.size > 1:
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=given.size, global_rank=given.number)
        model.train(1, ds.GeneratorDataset(Part(given.number, given.size), ["x"]))
        """,
        # One device in the one branch, several in the other, by whatever test.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model, options

        def images(size, rank):
            if size == 1:
                return ds.ImageFolderDataset("train")
            return ds.ImageFolderDataset("train", num_shards=size, shard_id=rank)

        def texts(mode):
            if mode == "many":
                return ds.TextFileDataset("train", num_shards=get_group_size(), shard_id=get_rank())
            return ds.TextFileDataset("train")

        def records():
            if ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.DATA_PARALLEL:
                return ds.MindDataset("train", num_shards=get_group_size(), shard_id=get_rank())
            return ds.MindDataset("train")

        if options.several:
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            size, rank = get_group_size(), get_rank()
        else:
            size, rank = 1, 0
        model.train(1, images(size, rank))
        model.train(1, texts(options.mode))
        model.train(1, records())
        """,
        # Refused on several ranks.
        """
        import os
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model, options

        def stored(rank_size=None):
            if rank_size is not None and rank_size > 1:
                raise RuntimeError("one device only")
            return ds.GeneratorDataset([1, 2], ["x"])

        if options.several:
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            size = int(os.environ.get("RANK_SIZE"))
        else:
            size = None
        model.train(1, stored(size))
        """,
        # Not trained on: evaluated, in a callback, looked through for labels, counted.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import network, model

        class Check(ms.Callback):
            def __init__(self, data):
                self.data = data

            def on_train_epoch_end(self, run_context):
                model.eval(self.data)

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        train_set = ds.ImageFolderDataset("a", num_shards=get_group_size(), shard_id=get_rank())
        check_set = ds.ImageFolderDataset("b")
        labels = set()
        for row in ds.CSVDataset("train_labels.csv").create_dict_iterator():
            labels.add(row["label"])
        steps = ds.ImageFolderDataset("a").batch(32).get_dataset_size()
        for image, label in ds.ImageFolderDataset("c"):
            print(network(image), label)
        model.train(10, train_set, callbacks=[Check(check_set)])
        """,
        # Every rank is to read the same.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
        model.train(1, ds.ImageFolderDataset("train"))
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="auto_parallel", dataset_strategy=((1, 2), (1, 2)))
        model.train(1, ds.ImageFolderDataset("train"))
        """,
        # A network that cuts its part out of the batch: init(), and no data parallelism.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn, ops
        from mindspore.communication import get_group_size, get_rank, init
        from settings import optimizer

        init()

        class Slice(nn.Cell):
            def construct(self, x):
                part = x.shape[0] // get_group_size()
                return ops.AllReduce()(x[get_rank() * part : (get_rank() + 1) * part])

        gradient = ms.value_and_grad(Slice(), None, optimizer.parameters)
        for x, y in ds.MnistDataset("digits"):
            optimizer(gradient(x)[1])
        """,
        # Never distributed, or never run.
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        def several():
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")

        def unused():
            several()
            model.train(1, ds.ImageFolderDataset("train"))

        if __name__ == "__main__":
            model.train(1, ds.ImageFolderDataset("train"))
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not _has_defect(module):  # which is known without the file's tree
            return
        sources = [source for site in dataset_sites(module) if (source := _source(module, site)) is not None]
        for source in sources:
            _note_zipped(source, sources)
            yield self._finding(module, source)

    def _finding(self, module: Module, source: UnshardedSource) -> Finding:
        run, event = source.unsharded[0].run, source.unsharded[0].event
        trained, init = run.trained_at(event), run.init
        assert trained is not None
        assert init is not None
        message = (
            f"every rank reads all of this data set and trains on it at {where(trained, module)}, in the run that "
            f"init() at {where(init.place, module)} makes distributed: {_advice(source, run, event)}"
        )
        places = (*route(event), related(init.place, "makes the run distributed"), related(trained, "trains on it"))
        return self.finding(
            module, module.start(source.node), module.end(source.node), message, related=places, subject=source
        )


def _has_defect(module: Module) -> bool:
    """Tell whether a run comes by a data set of the file that should be sharded."""
    path = module.source.path.absolute()
    return any(_is_defect(run, event) for run in runs_of(module) for event in run.events if event.place.path == path)


def _source(module: Module, site: Site) -> UnshardedSource | None:
    """Return what is wrong at ``site``, or None if nothing is."""
    unsharded: list[Build] = []
    others: list[Build] = []
    for run in runs_of(module):
        for event in built(run, site):
            (unsharded if _is_defect(run, event) else others).append(Build(run, event))
    kind = dataset_class(site.name)
    assert kind is not None
    return UnshardedSource(module, site.node, kind, tuple(unsharded), tuple(others)) if unsharded else None


def _note_zipped(source: UnshardedSource, sources: list[UnshardedSource]) -> None:
    """Note which other data sets are zipped with ``source`` and read as a whole, too."""
    for build in source.unsharded:
        for event in zipped_with(build.run, build.event):
            kind = dataset_class(event.name.rpartition(".")[2])
            if kind is None or is_sharded(build.run, event, kind) or event.place == build.event.place:
                continue
            known = next((one for one in sources if any(b.event.place == event.place for b in one.unsharded)), None)
            if known is None and event.place not in source.zipped_elsewhere:
                source.zipped_elsewhere.append(event.place)
            elif known is not None and known not in source.zipped:
                source.zipped.append(known)


def _is_defect(run: Run, event: Event) -> bool:
    kind = dataset_class(event.name.rpartition(".")[2])
    return (
        kind is not None
        and run.trained_at(event) is not None
        and _splits_batches(run)
        and not is_sharded(run, event, kind)
        and not _has_twin(run, event)
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
    """Tell whether the other side of a branch around ``event`` builds a sharded one: then the branch is about shards."""
    facts = dict(event.facts)
    for other in run.events:
        kind = dataset_class(other.name.rpartition(".")[2])
        if kind is not None and any(facts.get(key) is (not holds) for key, holds in other.facts):
            if is_sharded(run, other, kind):
                return True
    return False


def _advice(source: UnshardedSource, run: Run, event: Event) -> str:
    if argument(event, source.kind, "num_shards") != NONE:
        return "num_shards is 1 there; pass the number of ranks and get_rank()"
    if argument(event, source.kind, "sampler") != NONE:
        return (
            "its sampler knows of no ranks, and takes the place of num_shards; let it give each rank a part of its own"
        )
    size, rank = _at_hand(event, RANK_SIZE), _at_hand(event, RANK)
    if size and rank:
        return f"`{size}` and `{rank}` are at hand; pass num_shards={size}, shard_id={rank} (fewer steps make an epoch)"
    if run.init is not None and event.number < run.init.number:
        return "build it after init(), and pass num_shards=get_group_size(), shard_id=get_rank() (fewer steps make an epoch)"
    return "pass num_shards=get_group_size(), shard_id=get_rank() (fewer steps make an epoch)"


def _at_hand(event: Event, wanted: Value) -> str | None:
    return next((name for name, value in event.names if wanted in options(value)), None)
