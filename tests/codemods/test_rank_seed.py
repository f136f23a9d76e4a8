"""What rank-seed makes of programs, written as an expert would by hand, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import program, rewritten

CODEMOD = "rank-seed"
REMARK = "# Weights and shards agree between ranks; what is drawn from here on differs."

# The program before; the lines that are put in, and those that take the place of others.
CASES = {
    "one seed for all streams, before the call that trains": (
        """
        import random
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import init, get_rank, get_group_size

        def noisy(x):
            return x + np.float32(np.random.randn())

        def main():
            ms.set_seed(7)
            np.random.seed(7)
            random.seed(7)
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            net = nn.Dense(4, 1)
            data = ds.NumpySlicesDataset([1, 2], "x", num_shards=get_group_size(), shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            # PUT
            model.train(1, data.map(noisy))

        main()
        """,
        ["ds.config.set_seed(7 + get_rank())"],
    ),
    "an import of its own, a variable for the rank, a paragraph of its own": (
        """
        import mindspore
        from mindspore import nn, set_seed, value_and_grad
        from mindspore.communication.management import init, get_rank
        from reading import read

        def main(options):
            set_seed(options.seed)
            init()
            mindspore.set_auto_parallel_context(parallel_mode="data_parallel")
            me = get_rank()
            net = nn.Dense(4, 1)
            optimizer = nn.SGD(net.trainable_params())
            step = value_and_grad(net, None, optimizer.parameters)
            data = read(me)

            # PUT

            # one epoch after the other
            for epoch in range(3):
                for batch in data.create_dict_iterator():
                    optimizer(step(batch["x"])[1])

        if __name__ == "__main__":
            from settings import options
            main(options)
        """,
        ["ds.config.set_seed(options.seed + me)"],
    ),
    "neither rank nor data set imported, the usual name taken": (
        """
        from mindspore import Model, nn, set_seed
        from reading import read
        from starting import start

        def main():
            start()
            set_seed(3)
            net = nn.Dense(4, 1)
            ds = read(0)
            model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))

            # PUT

            model.train(1, ds)

        main()
        """,
        ["mindspore_ds.config.set_seed(3 + get_rank())"],
    ),
    "a helper seeds, a function with other names trains": (
        """
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as de
        from mindspore import nn
        from mindspore.communication import get_rank, init
        from settings import parse

        def seed_everything(number=1):
            ms.common.set_seed(number)
            np.random.seed(number)

        def fit(model, epochs, data, options):
            print("training")
            # PUT
            model.train(epochs, data)

        def main():
            args = parse()
            seed_everything(args.seed)
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            net = nn.Dense(4, 1)
            data = de.MnistDataset("digits", num_shards=8, shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            fit(model, 3, data, args)

        main()
        """,
        ["de.config.set_seed(options.seed + get_rank())"],
    ),
    "a seed that need not be given: asked for before it is used": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_rank, init
        from settings import parse

        def fix(number):
            if number is not None:
                ms.set_seed(number)

        def main(options):
            fix(options.seed)
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            net = nn.Dense(4, 1)
            data = ds.MnistDataset("digits", num_shards=8, shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            # PUT
            model.train(1, data)

        main(parse())
        """,
        ["if options.seed is not None:", "    ds.config.set_seed(options.seed + get_rank())"],
    ),
    "an object that trains where it is made; its seed, its rank, its data set": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_rank, init
        from settings import options

        class Trainer:
            def __init__(self, options):
                self.options = options
                ms.set_seed(self.options["seed"])
                init()
                ms.set_auto_parallel_context(parallel_mode="data_parallel")
                self.rank = get_rank()
                self.data = ds.MnistDataset("digits", num_shards=8, shard_id=self.rank)

            def fit(self):
                net = nn.Dense(4, 1)
                model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
                # PUT
                model.train(1, self.data)

        Trainer(options).fit()
        """,
        ['ds.config.set_seed(self.options["seed"] + self.rank)'],
    ),
    "iterators made before: not that of another set, outside of the branch that makes one": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_rank, init
        from settings import options, show

        ms.set_seed(7)
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        checked = ds.MnistDataset("test", shuffle=False)
        show(next(checked.create_dict_iterator()))
        net = nn.Dense(4, 1)
        step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()))
        data = ds.MnistDataset("digits", num_shards=8, shard_id=get_rank())
        # PUT
        if options.show:
            show(next(data.create_dict_iterator()))
        helper = ms.DatasetHelper(data, dataset_sink_mode=False)
        for batch in helper:
            step(*batch)
        """,
        ["ds.config.set_seed(7 + get_rank())"],
    ),
    "called again, but from a seed of its own": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_rank, init

        def train(path):
            ms.set_seed(7)
            net = nn.Dense(4, 1)
            data = ds.MnistDataset(path, num_shards=8, shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            # PUT
            model.train(1, data)

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        train("first")
        train("second")
        """,
        ["ds.config.set_seed(7 + get_rank())"],
    ),
    "the default of a helper": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_rank, init

        def seed_everything(number=1):
            ms.set_seed(number)

        def main():
            seed_everything()
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            net = nn.Dense(4, 1)
            data = ds.MnistDataset("digits", num_shards=8, shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            # PUT
            model.train(1, data)

        main()
        """,
        ["ds.config.set_seed(1 + get_rank())"],
    ),
}

BRANCHES = {
    "one after the other": """
        PUT
        model.train(1, some)
        print("and now the rest")
        model.train(1, rest)
        """,
    "one or the other": """
        PUT
        if options.some:
            model.train(1, some)
        elif options.rest:
            model.train(1, rest)
        else:
            print("nothing")
        """,
    "in a loop and after it": """
        print("first")
        PUT
        for _ in range(3):
            if options.some:
                model.train(1, some)
        model.train(1, rest)
        """,
}


@pytest.mark.parametrize("case", BRANCHES)
def test_where_training_starts_at_several_places_the_seed_comes_before_all(case: str, tmp_path: Path) -> None:
    head = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank, init
        from settings import net, options

        ms.set_seed(1)
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        shards = {"num_shards": get_group_size(), "shard_id": get_rank()}
        some = ds.MnistDataset("some", **shards)
        rest = ds.MnistDataset("rest", **shards)
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
        """)
    text = head + program(BRANCHES[case])
    done = rewritten(tmp_path, CODEMOD, {"train.py": text.replace("PUT\n", "")})
    assert done.texts["train.py"] == text.replace("PUT\n", f"{REMARK}\nds.config.set_seed(1 + get_rank())\n")


IMPORTS = {
    "an import of its own, a variable for the rank, a paragraph of its own": (
        "import mindspore\n",
        "import mindspore\nimport mindspore.dataset as ds\n",
    ),
    "neither rank nor data set imported, the usual name taken": (
        "nn, set_seed\n",
        "nn, set_seed\nfrom mindspore.communication import get_rank\nimport mindspore.dataset as mindspore_ds\n",
    ),
}

OTHERS = {
    "starting": """
import mindspore as ms
from mindspore.communication import init


def start():
    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel")
""",
    "reading": """
import mindspore.dataset as ds


def read(rank):
    return ds.MnistDataset("digits", num_shards=8, shard_id=rank).batch(4)
""",
}


@pytest.mark.parametrize("case", CASES)
def test_the_seed_by_the_rank_is_put_where_an_expert_would(case: str, tmp_path: Path) -> None:
    text, lines = CASES[case]
    marked = program(text)
    indent = next(line for line in marked.split("\n") if line.strip() == "# PUT").split("#")[0]
    before = marked.replace(f"{indent}# PUT\n\n", "").replace(f"{indent}# PUT\n", "")
    files = {"train.py": before}
    files |= {f"{name}.py": program(text) for name, text in OTHERS.items() if f"from {name} import" in before}
    done = rewritten(tmp_path, CODEMOD, files)
    put = "".join(f"{indent}{line}\n" for line in (REMARK, *lines))
    after = marked.replace(f"{indent}# PUT\n", put)
    for name, imports in IMPORTS.items():
        after = after.replace(*imports) if case == name else after
    assert done.texts["train.py"] == after
    assert not done.refused


BY_RANK = {
    "a sum": ("ms.set_seed(5 + get_rank())", "ms.set_seed(5)", "5 + rank"),
    "a variable": ("ms.set_seed(seed + rank)", "ms.set_seed(seed)", "seed + rank"),
    "the rank alone": ("ms.set_seed(rank)", "ms.set_seed(0)", "rank"),
    "the data set's": ("ds.config.set_seed(rank * 100 + seed)", "ds.config.set_seed(seed)", "seed + rank"),
    "a helper's": ("set_up(seed + rank)", "set_up(seed)", "seed + rank"),
}


@pytest.mark.parametrize("case", BY_RANK)
def test_a_seed_that_depends_on_the_rank_is_made_equal_until_the_shards_are_built(case: str, tmp_path: Path) -> None:
    seeding, equal, number = BY_RANK[case]
    text = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank, init

        def set_up(number):
            ms.set_seed(number)

        def main(seed):
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            rank = get_rank()
            SEEDING
            net = nn.Dense(4, 1)
            data = ds.MnistDataset("digits", num_shards=get_group_size(), shard_id=rank)
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            model.train(1, data)

        main(2)
        """)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text.replace("SEEDING", seeding)})
    train = "    model.train(1, data)\n"
    put = f"    {REMARK}\n    ds.config.set_seed({number})\n"
    assert done.texts["train.py"] == text.replace("SEEDING", equal).replace(train, put + train)


REFUSED = {
    "a data set that is not sharded": (
        "data = ds.MnistDataset('digits')\n    model.train(1, data)",
        "not sharded",
    ),
    "built and trained on in one statement": (
        "model.train(1, ds.MnistDataset('digits', num_shards=2, shard_id=get_rank()))",
        "build it in a statement before",
    ),
    "the network is built in the statement that trains": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n"
        "    ms.Model(Net(), nn.MSELoss()).train(1, data)",
        "`Net` makes weights",
    ),
    "a set for each round": (
        "for fold in range(5):\n        data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n"
        "        model.train(1, data)",
        "not before the training",
    ),
    "a shuffled set that is evaluated on, built later": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n    model.train(1, data)\n"
        "    model.eval(ds.MnistDataset('test', num_shards=2, shard_id=get_rank()))",
        "not before the training",
    ),
    "a set that is evaluated on, built later by a function that may shuffle": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n    model.train(1, data)\n"
        "    settings = {'shuffle': False}\n    model.eval(checked(settings['shuffle']))",
        "may shuffle and shard a data set after the training",
    ),
    "two trainings": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n    model.train(1, data)\n"
        "    more = ds.MnistDataset('more', num_shards=2, shard_id=get_rank())\n    model.train(1, more)",
        "not before the training",
    ),
    "the network is built after the iterator": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n    batches = data.create_tuple_iterator()\n"
        "    other = Net()\n    step = nn.TrainOneStepCell(other, nn.SGD(other.trainable_params()))\n"
        "    for batch in batches:\n        step(*batch)",
        "`Net` makes weights in row 32 of train.py, and from row 31 on",
    ),
    "another network, trained next": (
        "data = ds.MnistDataset('digits', num_shards=2, shard_id=get_rank())\n    model.train(1, data)\n"
        "    model = ms.Model(Net(), nn.MSELoss(), nn.SGD(net.trainable_params()))\n    model.train(1, data)",
        "`Net` makes weights",
    ),
    "a function that builds and trains, called twice": (
        "build_and_train('first')\n    build_and_train('second')",
        "`build_and_train` is called again below row 30 of train.py, and builds `MnistDataset` anew",
    ),
    "out of sight": ("model.train(1, known.data)", "which data set is trained on is out of sight"),
    "an order that numpy draws": (
        "data = ds.GeneratorDataset([1, 2], ['x'], sampler=Mine())\n    model.train(1, data)",
        "draws an order while it trains",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_seeded_anew_is_refused_with_what_to_do(case: str, tmp_path: Path) -> None:
    training, reason = REFUSED[case]
    text = program("""
        import known
        import numpy as np
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank, init

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.dense = nn.Dense(4, 1)

        def checked(shuffled):
            return ds.MnistDataset("test", shuffle=shuffled, num_shards=2, shard_id=get_rank())

        def build_and_train(path):
            data = ds.MnistDataset(path, num_shards=2, shard_id=get_rank())
            known.model.train(1, data)

        class Mine:
            def __iter__(self):
                return iter(np.random.permutation(8)[get_rank() :: get_group_size()])

        def main():
            ms.set_seed(1)
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            net = Net()
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            TRAINING

        main()
        """).replace("TRAINING", training)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert done.texts["train.py"] == text
    assert [reason in fix.message for fix in done.refused] == [True], done.refused


def test_a_set_evaluated_on_later_does_no_harm_if_it_is_not_shuffled(tmp_path: Path) -> None:
    text = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank, init
        from settings import net

        ms.set_seed(1)
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        shards = {"num_shards": get_group_size(), "shard_id": get_rank()}
        data = ds.MnistDataset("train", **shards)
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
        model.train(1, data)
        model.eval(ds.MnistDataset("test", shuffle=False, **shards))
        """).replace("\n", "\r\n")
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    train = "model.train(1, data)\r\n"
    assert done.texts["train.py"] == text.replace(train, f"{REMARK}\r\nds.config.set_seed(1 + get_rank())\r\n{train}")


def test_the_seed_of_one_file_is_set_anew_in_another(tmp_path: Path) -> None:
    files = {
        "lib/env.py": program("""
            import random

            import mindspore as ms
            import numpy as np


            def set_up(config):
                ms.set_seed(config.seed)
                np.random.seed(config.seed)
            """),
        "train.py": program("""
            import mindspore as ms
            import mindspore.dataset as ds
            from lib.env import set_up
            from mindspore import nn
            from mindspore.communication import get_group_size, get_rank, init
            from settings import load

            class Trainer:
                def __init__(self, cfg, data):
                    self.cfg = cfg
                    self.data = data
                    self.net = nn.Dense(4, 1)
                    self.optimizer = nn.SGD(self.net.trainable_params())
                    self.step = nn.TrainOneStepCell(self.net, self.optimizer)

                def epoch(self):
                    for batch in self.data.create_dict_iterator():
                        self.step(batch["x"])

                def fit(self):
                    for _ in range(self.cfg.epochs):
                        self.epoch()

            def main():
                cfg = load()
                set_up(cfg)
                init()
                ms.set_auto_parallel_context(parallel_mode="data_parallel")
                data = ds.MnistDataset("digits", num_shards=get_group_size(), shard_id=get_rank())
                trainer = Trainer(cfg, data)
                trainer.fit()

            main()
            """),
    }
    done = rewritten(tmp_path, CODEMOD, files)
    assert done.texts["lib/env.py"] == files["lib/env.py"]
    train = "    trainer.fit()\n"
    put = f"    {REMARK}\n    ds.config.set_seed(cfg.seed + get_rank())\n"
    assert done.texts["train.py"] == files["train.py"].replace(train, put + train)


def test_runs_on_different_devices_are_seeded_anew_once(tmp_path: Path) -> None:
    text = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank, init
        from settings import net, options

        def main():
            ms.set_seed(1)
            rank, size = 0, 1
            if options.device == "Ascend":
                init()
                size = get_group_size()
            elif options.several:
                init()
                rank, size = get_rank(), get_group_size()
            ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=size)
            data = ds.MnistDataset("train", num_shards=size, shard_id=get_rank())
            model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
            model.train(1, data)

        main()
        """)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert done.texts["train.py"].count("config.set_seed") == 1
