"""MS302."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import libcst as cst

from mslint.findings import Finding, Position, Related, Severity
from mslint.program.calls import CallSite
from mslint.program.dependence import Dependence, Source, values_of
from mslint.program.facts import dotted
from mslint.program.parallel_runs import ParallelRun, parallel_runs
from mslint.program.randomness import Draw, Purpose, Seed, Stream, randomness_of, seeded_by
from mslint.rules.base import Rule
from mslint.rules.data.screens import ambiguous_names, seeding
from mslint.semantics.module import Module
from mslint.source.text import shown


class RankBlindSeed(Rule):
    """Every rank of a data-parallel training seeds its random numbers alike, and draws the same augmentation and noise.

    What it does
        Reports seeds that are the same number on every rank, in code that a distributed training runs: ``mindspore.set_seed``
        as info, ``numpy.random.seed`` and ``random.seed`` as a warning where the program draws from that stream for each
        sample (in a data set's items, a transform, a function given to ``map`` or ``batch``, a loop over batches), as info
        where nothing was seen to draw from it. The number may be written there, come from a configuration, or be handed on
        by the program's own helper functions; ``rank=0`` that no caller overrides is a number like any other.

        Left alone: ``dataset.config.set_seed`` (shards need it equal), seeds that only order, split or initialise (these
        must agree between ranks, too), evaluation, preprocessing, programs without ``init()``, model parallel and
        ``full_batch`` (there ranks share their batch), seeds from the clock, from a counter (a sampler's epoch) or from the
        rank, and programs that offset the seed by the rank later on.

    Why it matters
        Shards make the samples of the ranks different. Equal seeds make the random numbers applied to them equal: the same
        crop, flip, noise and Dropout mask on every rank in every step. A batch of N ranks then has the variety of one
        rank's augmentation, and nobody is told.

        The way out is not to add the rank to every seed. Equal seeds also keep initial weights equal
        (``parameter_broadcast`` works in graph mode only) and shards disjoint (MS303).

    Evidence
        Measured on MindSpore 2.10.0, CPU, PyNative mode, on two ranks (``msrun --worker_num=2 --local_worker_num=2
        --join=True --log_dir=LOGS fixtures/rank-blind-seed/bad.py``, then ``fixed.py``, each prints what it drew). Of 24
        shifts that numpy draws for the 24 samples of a rank in 3 epochs, 24 are equal to those of the other rank, in the
        same places, where both seed by 1; none is where ``dataset.config.set_seed(1 + get_rank())`` follows the network and
        the source. In both, initial weights are equal on the ranks and the shards disjoint and complete in each epoch. What
        changes is what is trained on, not the graph and not the time of a step.

    Example
        .. code-block:: python

            ms.set_seed(1)
            np.random.seed(1)
            init()
            data = ds.GeneratorDataset(source, ["x"], num_shards=get_group_size(), shard_id=get_rank())
            data = data.map(add_noise)                   # draws from np.random

    Use instead
        .. code-block:: python

            ms.set_seed(1)                               # equal weights, equal order of samples before they are sharded
            init()
            network = Network()
            data = ds.GeneratorDataset(source, ["x"], num_shards=get_group_size(), shard_id=get_rank())
            ds.config.set_seed(1 + get_rank())           # from here on: numpy, random and the transforms of the data set
            data = data.map(add_noise)

    Fix safety
        Codemod ``rank-seed``, never safe: which numbers are drawn changes on purpose. The new seed is right only after the
        network and the sharded source are built and before anything iterates; where that place is not seen, it is left to
        you. ``nn.Dropout`` fixes its seed when it is built, so that its masks stay equal between ranks either way.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore/mindspore.set_seed.html,
        https://www.mindspore.cn/docs/en/master/api_python/dataset/mindspore.dataset.config.html
    """

    code = "MS302"
    name = "rank-blind-seed"
    severity = Severity.WARNING
    summary = "every rank draws the same augmentation, noise and Dropout masks"
    triggers = (b"seed(",)
    screen = "mslint.rules.data.screens:seeds"
    codemod = "rank-seed"
    INVALID = (
        # numpy and random draw the augmentation; mindspore.set_seed may.
        """
        import random
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import init, get_rank, get_group_size

        class Pictures:
            def __init__(self, pictures):
                self.pictures = pictures

            def __len__(self):
                return len(self.pictures)

            def __getitem__(self, index):
                return self.flip(self.pictures[index]) + random.gauss(0, 1)

            def flip(self, picture):
                return picture[:, ::-1] if np.random.rand() < 0.5 else picture

        def main(pictures, net, loss):
            ms.set_seed(1)  # <- MS302
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
            np.random.seed(1)  # <- MS302
            random.seed(1)  # <- MS302
            data = ds.GeneratorDataset(
                Pictures(pictures), ["x"], num_shards=get_group_size(), shard_id=get_rank()
            ).batch(8)
            ms.Model(net, loss, nn.SGD(net.trainable_params())).train(1, data)

        if __name__ == "__main__":
            main(load(), build(), nn.MSELoss())
        """,
        # Other spellings; seeded at import, from a configuration, with an own loop of steps.
        """
        import argparse
        from numpy import random as rng
        from mindspore import common, nn, ops, value_and_grad, Tensor
        from mindspore.communication.management import init

        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=3)
        args = parser.parse_args()
        common.set_seed(args.seed)  # <- MS302

        def train(net, dataset):
            init("nccl")
            rng.seed(args.seed)  # <- MS302
            optimizer = nn.Adam(net.trainable_params())
            step = value_and_grad(net, None, optimizer.parameters)
            for batch in dataset.create_dict_iterator():
                noise = Tensor(rng.standard_normal((8, 16)), ms.float32)
                loss, grads = step(batch["x"], noise)
                optimizer(grads)

        train(build(args), read(args))
        """,
        # A helper that could take the rank and is never given it.
        """
        import numpy as np
        import mindspore as ms
        from mindspore import nn, Model
        from mindspore.communication import init

        def seed_everything(seed, rank=0):
            ms.set_seed(seed + rank)  # <- MS302

        def main(net, data):
            seed_everything(42)
            init()
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read())
        """,
        # What draws from numpy is out of sight: no more than info.
        """
        import numpy as np
        import mindspore.dataset as ds
        from mindspore import nn, Model
        from mindspore.communication import init, get_rank, get_group_size

        def main(folder, net):
            init()
            np.random.seed(7)  # <- MS302
            data = ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank())
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main("pictures", build())
        """,
    )
    VALID = (
        # The order that is meant: equal until network and source are built, then by the rank.
        """
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import init, get_rank, get_group_size

        def noisy(picture):
            return picture + np.random.randn(*picture.shape)

        def main(folder):
            ms.set_seed(1)
            init()
            net = build()
            data = ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank())
            ds.config.set_seed(1 + get_rank())
            data = data.map(noisy, "image").batch(8)
            ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, data)

        main("pictures")
        """,
        # The data set's seed beside shards; numpy's by the rank; random's by the clock, and anew.
        """
        import os
        import random
        import time
        import numpy as np
        import mindspore.dataset as ds
        from mindspore import nn, Model
        from mindspore.communication import init, get_rank, get_group_size

        ds.config.set_seed(1)

        def main(folder, net):
            init()
            rank = int(os.getenv("RANK_ID", "0"))
            np.random.seed(5 + rank)
            random.seed(int(time.time()))
            random.seed()
            data = ds.ImageFolderDataset(folder, num_shards=get_group_size(), shard_id=get_rank())
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main("pictures", build())
        """,
        # One device; evaluation on several; writing data.
        """
        import mindspore as ms
        from mindspore import nn, Model

        def main(net, data):
            ms.set_seed(1)
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read())
        """,
        """
        import numpy as np
        import mindspore as ms
        from mindspore import Model, nn
        from mindspore.communication import init

        def evaluate(net, data):
            init()
            ms.set_seed(1)
            np.random.seed(1)
            print(Model(net, nn.MSELoss(), metrics={"accuracy"}).eval(data))

        evaluate(build(), read())
        """,
        """
        import numpy as np
        from mindspore.mindrecord import FileWriter

        def write(rows, path):
            np.random.seed(10)
            writer = FileWriter(path, 4)
            writer.write_raw_data([rows[i] for i in np.random.permutation(len(rows))])
            writer.commit()

        if __name__ == "__main__":
            write(load(), "train.mindrecord")
        """,
        # Model parallel and full batch: the ranks share one batch, and what is drawn for it.
        """
        import numpy as np
        import mindspore as ms
        from mindspore import nn, Model
        from mindspore.communication import init

        def main(net, data):
            ms.set_seed(1)
            np.random.seed(1)
            init()
            ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL)
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read())
        """,
        """
        import mindspore as ms
        from mindspore import nn, Model
        from mindspore.communication import init

        def main(net, data):
            ms.set_seed(1)
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel", full_batch=True)
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read())
        """,
        # The parallel mode is whatever a configuration says.
        """
        import mindspore as ms
        import yaml
        from mindspore import nn, Model
        from mindspore.communication import init

        def main(net, data, path):
            ms.set_seed(1)
            init()
            ms.set_auto_parallel_context(**yaml.safe_load(open(path))["parallel"])
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read(), "run.yaml")
        """,
        # What must agree between ranks: a sampler's epoch, a split, a schedule of sizes, weights drawn by numpy.
        """
        import random
        import numpy as np
        import mindspore.dataset as ds
        from mindspore import nn, Model, Parameter, Tensor
        from mindspore.communication import init, get_rank, get_group_size

        np.random.seed(1)

        class Sampler:
            def __init__(self, rows, rank, ranks):
                self.rows, self.rank, self.ranks = rows, rank, ranks
                self.epoch = 0

            def __iter__(self):
                self.epoch += 1
                np.random.seed(self.epoch)
                return iter(np.random.permutation(self.rows)[self.rank :: self.ranks])

        class Net(nn.Cell):
            def __init__(self, size):
                super().__init__()
                self.table = Parameter(Tensor(np.random.uniform(-1, 1, (size, 8)).astype(np.float32)))

            def construct(self, index):
                return self.table[index]

        def split(names, seed=58):
            random.seed(seed)
            random.shuffle(names)
            return names[:90], names[90:]

        def sizes(steps):
            random.seed(9)
            return [random.choice([320, 416, 608]) for _ in range(steps)]

        def main(names):
            init()
            net = Net(100)
            train, _ = split(names)
            data = ds.GeneratorDataset(train, ["x"], sampler=Sampler(90, get_rank(), get_group_size()))
            resize(data, sizes(100))
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(read())
        """,
        # What numpy draws decides which samples come: a sampler of one's own, its indices drawn by another function; a
        # generator that shuffles what it reads.
        """
        import numpy as np
        import mindspore.dataset as ds
        from mindspore import nn, Model
        from mindspore.communication import init, get_rank, get_group_size

        np.random.seed(4)

        def some_rows(rows):
            return np.random.randint(0, rows, rows)

        class Rows:
            def __init__(self, rows):
                self.rows = rows

            def __iter__(self):
                return iter(some_rows(self.rows)[get_rank() :: get_group_size()])

        class Blocks:
            def __init__(self, files):
                self.files = files

            def read(self):
                order = np.arange(len(self.files))
                while True:
                    np.random.shuffle(order)
                    for number in order:
                        yield self.files[number]

        def main(table, files, net):
            init()
            rows = Rows(len(table))
            data = ds.GeneratorDataset(table, ["x"], sampler=rows)
            more = ds.GeneratorDataset(Blocks(files).read, ["x"])
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, ds.zip((data, more)))

        main(read(), names(), build())
        """,
        # Seeded where there is one device only.
        """
        import mindspore as ms
        from mindspore import nn, Model
        from mindspore.communication import init

        def main(net, data, distributed):
            if distributed:
                init()
            else:
                ms.set_seed(1)
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read(), True)
        """,
        # Never called.
        """
        import mindspore as ms
        from mindspore import nn, Model
        from mindspore.communication import init

        def repeatable():
            ms.set_seed(1)

        def main(net, data):
            init()
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(10, data)

        main(build(), read())
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        runs = parallel_runs(module.program, module.source.path) if may_seed(module) else iter(())
        first = next(runs, None)
        if first is None:  # known without the file's tree
            return
        # The data set's own seed has to be alike, for the shards.
        open_calls = {
            row: call
            for row, (call, streams) in seeding_calls(module).items()
            if Stream.DATA not in streams or Stream.FRAMEWORK in streams
        }
        found: dict[int, Finding] = {}
        for run in chain([first], runs) if open_calls else ():
            seeds = randomness_of(run.graph).seeds_in(module.source.path)
            for row in list(open_calls):
                if row not in seeds or not _alike_on_ranks(run, seeds[row]):
                    continue
                finding = next(self._findings(module, run, seeds[row], open_calls[row]), None)
                if finding is None:
                    continue
                # Where this start leaves open what is drawn for samples, another one may show it.
                if Stream.FRAMEWORK in seeds[row].streams or finding.severity is Severity.WARNING:
                    del open_calls[row]
                    found[row] = finding
                else:
                    found.setdefault(row, finding)
            if not open_calls:
                break
        yield from (found[row] for row in sorted(found))

    def _findings(self, module: Module, run: ParallelRun, seed: Seed, node: cst.Call) -> Iterator[Finding]:
        if Stream.FRAMEWORK in seed.streams:
            yield self._framework(module, run, seed, node)
        else:
            yield from self._host(module, run, seed, node)

    def _framework(self, module: Module, run: ParallelRun, seed: Seed, node: cst.Call) -> Finding:
        drawn = _for_samples(run, _draws_after(run, seed))[:3]
        later = (
            f"what `{drawn[0].text}` in row {drawn[0].row} of {drawn[0].path.name} draws for each sample or step"
            if drawn
            else "all that is drawn later: augmentation, noise, Dropout masks"
        )
        return self._finding(
            module,
            seed,
            node,
            Severity.INFO,
            f"every rank seeds with the same {_number(run, seed)}: initial weights and the order of shards agree, as they "
            f"must, but so does {later}; keep this seed, and seed the data set anew, by `dataset.config.set_seed(SEED + "
            "get_rank())`, once the network and the sharded data set are built",
            [*_why_alike(module, run, seed), *(_drawn(module, draw) for draw in drawn)],
        )

    def _host(self, module: Module, run: ParallelRun, seed: Seed, node: cst.Call) -> Iterator[Finding]:
        random = randomness_of(run.graph)
        if seed.node in random.item_functions | random.weight_functions or seed in random.local_seeds:
            return
        draws = _draws_after(run, seed)
        what = f"every rank seeds {next(iter(seed.streams)).value} with the same {_number(run, seed)}"
        why = _why_alike(module, run, seed)
        drawn = _for_samples(run, draws)
        if drawn:
            first = drawn[0]
            yield self._finding(
                module,
                seed,
                node,
                Severity.WARNING,
                f"{what}, and `{first.text}` in row {first.row} of {first.path.name} draws for each sample or step: what it "
                "decides is alike on all ranks, though their samples differ; add the rank to this seed, after the network "
                "is built (its initial weights must stay equal)",
                [*why, *(_drawn(module, draw) for draw in drawn[:3])],
            )
            return
        unclear = [draw for draw in draws if draw.purpose in (Purpose.SAMPLE, Purpose.OTHER)]
        if unclear or (not draws and not _seeds_all_beside(run, seed)):
            seen = (
                f"`{unclear[0].text}` in row {unclear[0].row} of {unclear[0].path.name} draws from it"
                if unclear
                else "no draw from it was seen in the program itself"
            )
            yield self._finding(
                module,
                seed,
                node,
                Severity.INFO,
                f"{what}; {seen}. If augmentation or noise comes from it (MindSpore's Python transforms draw from numpy and "
                "random), it is alike on all ranks: then add the rank to this seed, after the network is built",
                [*why, *(_drawn(module, draw) for draw in unclear[:1])],
            )

    def _finding(
        self, module: Module, seed: Seed, node: cst.Call, severity: Severity, message: str, related: list[Related]
    ) -> Finding:
        return self.finding(
            module,
            module.start(node),
            module.end(node),
            message,
            severity=severity,
            related=tuple(related),
            subject=seed,
        )


def may_seed(module: Module, wanted: frozenset[Stream] = frozenset(Stream)) -> bool:
    """Tell whether a call of the file may seed one of the ``wanted`` streams, as far as is known without its tree."""
    program, path = module.program, module.source.path
    tree = program.tree(path) or ast.Module([], [])
    names = {dotted(call.func) or "" for call in seeding(tree)}
    # What a name means in one place does not tell what it means in another.
    if not ambiguous_names(tree).isdisjoint(name.partition(".")[0] for name in names):
        return True
    resolved = (program.dotted_in(path, name) for name in names)
    # What a function imports for itself is not known.
    return any(name is None or seeded_by(name) & wanted for name in resolved)


def seeding_calls(module: Module) -> dict[int, tuple[cst.Call, frozenset[Stream]]]:
    """Return the calls that seed a global stream, and the streams, by row."""
    return module.remember(seeding_calls, lambda: dict(_seeding_calls(module)))


def _seeding_calls(module: Module) -> Iterator[tuple[int, tuple[cst.Call, frozenset[Stream]]]]:
    for call in module.calls:
        name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        # As the trigger has it: `seed(`.
        if isinstance(name, cst.Name) and name.value.endswith("seed") and call.whitespace_after_func.empty:
            streams = seeded_by(module.resolve(call.func) or "")
            if streams:
                yield module.start(call).row, (call, streams)


def _alike_on_ranks(run: ParallelRun, seed: Seed) -> bool:
    """Tell whether all ranks run the seed, with one and the same number that nothing offsets by the rank."""
    if seed.node not in run.reached or seed.argument is None:
        return False
    beside = (call.row for call in run.graph.functions[seed.node].calls if call.row != seed.call.row)
    if run.skips(seed.call.path, seed.call.row, beside):
        return False
    return not _dependence(run, seed, seed.argument) and not _offset_elsewhere(run, seed)


def _dependence(run: ParallelRun, seed: Seed, argument: str) -> Dependence:
    return values_of(run.graph).dependence(seed.call.path, seed.call.function, argument, run.reached)


def _offset_elsewhere(run: ParallelRun, seed: Seed) -> bool:
    """Tell whether another call of the same start seeds what this one seeds on the host by the rank."""
    wanted = seed.streams - {Stream.FRAMEWORK, Stream.DATA}
    for other in randomness_of(run.graph).seeds:
        if other is seed or other.node not in run.reached or other.argument is None or not other.streams & wanted:
            continue
        if not {Source.RANK, Source.NAMED_RANK}.isdisjoint(_dependence(run, other, other.argument)):
            return True
    return False


def _draws_after(run: ParallelRun, seed: Seed) -> list[Draw]:
    """Return the draws that the seed may be for; a seed at a file's import is for the draws of that file.

    Draws for samples count in all files that the run imports, for a transform may be picked by its name.
    """
    random = randomness_of(run.graph)
    draws = [
        draw
        for draw in random.draws
        if draw.stream in seed.streams
        and draw not in random.seeded_nearby
        and (draw.node in run.reached or (draw.purpose is Purpose.SAMPLE and f"{draw.path}:" in run.reached))
    ]
    if not seed.call.function and seed.node != run.entry:
        return [draw for draw in draws if draw.path == seed.call.path] or draws
    return draws


def _for_samples(run: ParallelRun, draws: list[Draw]) -> list[Draw]:
    """Return those of ``draws`` that are seen to be made for each sample or step of the run."""
    return [draw for draw in draws if draw.purpose is Purpose.SAMPLE and draw.node in run.reached]


def _seeds_all_beside(run: ParallelRun, seed: Seed) -> bool:
    """Tell whether ``mindspore.set_seed``, which is reported itself, stands in the same function."""
    return any(
        other.node == seed.node and Stream.FRAMEWORK in other.streams for other in randomness_of(run.graph).seeds
    )


def place_of(module: Module, path: Path, row: int, message: str) -> Related:
    """Return a row of any file of the program as a place that a conclusion rests on."""
    filename = module.source.filename if path == module.source.path else shown(path)
    return Related(filename, Position(row, 1), Position(row, 1), message)


def _why_alike(module: Module, run: ParallelRun, seed: Seed) -> list[Related]:
    """Return where the run becomes distributed and, if the seed is an argument, where it is given."""
    places = [place_of(module, *run.init, "distributed training starts here")]
    parameters = run.graph.functions[seed.node].parameters
    if any(name in parameters for name in re.findall(r"\w+", seed.argument or "")):
        calls = [call for call in run.graph.callers(seed.node) if call.caller in run.reached]
        places += [place_of(module, call.path, call.row, "the seed is given here") for call in calls[:3]]
    return places


def _number(run: ParallelRun, seed: Seed) -> str:
    """Return the seed as written, with the defaults that its parameters keep: ``seed + rank`` alone sounds like different
    numbers."""
    function = run.graph.functions[seed.node]
    calls = [call for call in run.graph.callers(seed.node) if call.caller in run.reached]
    words = re.findall(r"\w+", seed.argument or "")
    kept = [
        f"`{name}` is always {default}"
        for name, default in function.defaults
        if name in words and not any(_is_given(call, function.parameters.index(name), name) for call in calls)
    ]
    return f"`{seed.argument}`" + (f" ({', '.join(kept)})" if kept and len(words) > 1 else "")


def _is_given(call: CallSite, position: int, name: str) -> bool:
    if any(argument.startswith("*") for argument in call.arguments) or call.keyword("**") is not None:
        return True
    return len(call.arguments) > position or call.keyword(name) is not None


def _drawn(module: Module, draw: Draw) -> Related:
    return place_of(module, draw.path, draw.row, f"`{draw.text}` draws here")
