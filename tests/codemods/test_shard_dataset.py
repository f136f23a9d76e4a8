"""What shard-dataset makes of programs, written as an expert would by hand, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import program, rewritten

CODEMOD = "shard-dataset"

# One file each: the program before and after.
ALONE = {
    "asked where the set is built, imports in the file's order": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        model.train(1, ds.MnistDataset("digits").batch(32))
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        model.train(1, ds.MnistDataset("digits",
                                       num_shards=get_group_size(),
                                       shard_id=get_rank()).batch(32))
        """,
    ),
    "a file without imports of that package": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.train import Model
        from starting import start
        from settings import net, long_enough_a_name_to_show_how_long_the_lines_of_this_file_may_become, another_name

        def main():
            start()
            data = ds.Cifar10Dataset("pictures", "train", None, 4, True)  # shuffled
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, data)

        main()
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore import nn
        from mindspore.communication import get_group_size, get_rank
        from mindspore.train import Model
        from starting import start
        from settings import net, long_enough_a_name_to_show_how_long_the_lines_of_this_file_may_become, another_name

        def main():
            start()
            data = ds.Cifar10Dataset("pictures", "train", None, 4, True,
                                     num_shards=get_group_size(), shard_id=get_rank())  # shuffled
            Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, data)

        main()
        """,
    ),
    "names that mean something else, the package by its module": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        import mindspore.communication.management as hub
        from settings import model

        def get_rank(scores):
            return sorted(scores)

        def main():
            hub.init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            model.train(1, ds.TextFileDataset("lines.txt", shuffle=False))

        main()
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        import mindspore.communication.management as hub
        from settings import model

        def get_rank(scores):
            return sorted(scores)

        def main():
            hub.init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            model.train(1, ds.TextFileDataset("lines.txt", shuffle=False,
                                              num_shards=hub.get_group_size(),
                                              shard_id=hub.get_rank()))

        main()
        """,
    ),
    "what the environment holds is text; before init() it is known; a pipeline of data, not of stages": (
        """
        import os
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        rank_text = os.environ["RANK_ID"]
        rank = int(rank_text)
        size_text = os.getenv("RANK_SIZE", "1")
        size = int(size_text)

        class Pipeline:
            def __init__(self, pipeline):
                self.pipeline = pipeline

        reading = Pipeline(ds.TFRecordDataset("records", shard_equal_rows=False))
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, reading.pipeline.batch(8))
        """,
        """
        import os
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        rank_text = os.environ["RANK_ID"]
        rank = int(rank_text)
        size_text = os.getenv("RANK_SIZE", "1")
        size = int(size_text)

        class Pipeline:
            def __init__(self, pipeline):
                self.pipeline = pipeline

        reading = Pipeline(ds.TFRecordDataset("records", shard_equal_rows=True,
                                              num_shards=size, shard_id=rank))
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, reading.pipeline.batch(8))
        """,
    ),
    "a comment behind the bracket, which is about the last argument": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        data = ds.ImageFolderDataset("pictures",
                                     num_parallel_workers=8,  # as many as cores
                                     shuffle=True)            # in each epoch
        model.train(1, data)
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        data = ds.ImageFolderDataset("pictures",
                                     num_parallel_workers=8,  # as many as cores
                                     shuffle=True,            # in each epoch
                                     num_shards=get_group_size(),
                                     shard_id=get_rank())
        model.train(1, data)
        """,
    ),
    "one argument in each line, with comments and without a last comma": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def main():
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            world = get_group_size()
            data = ds.ImageFolderDataset(
                "pictures",
                num_parallel_workers=4,  # by trial
                shuffle=True  # every epoch anew
            )
            model.train(1, data.batch(64 // world))

        main()
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def main():
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            world = get_group_size()
            data = ds.ImageFolderDataset(
                "pictures",
                num_parallel_workers=4,  # by trial
                shuffle=True,  # every epoch anew
                num_shards=world,
                shard_id=get_rank()
            )
            model.train(1, data.batch(64 // world))

        main()
        """,
    ),
    "numbers written there make way; a variable that one branch alone knows is not used": (
        """
        import os
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def main():
            size = 1
            if os.getenv("RANK_TABLE_FILE"):
                init()
                size = get_group_size()
                rank = get_rank()
                ms.set_auto_parallel_context(parallel_mode="data_parallel", global_rank=rank)
            data = ds.MindDataset("rows.mindrecord", ["x"], num_shards=1, shard_id=0)
            model.train(1, data)

        main()
        """,
        """
        import os
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def main():
            size = 1
            if os.getenv("RANK_TABLE_FILE"):
                init()
                size = get_group_size()
                rank = get_rank()
                ms.set_auto_parallel_context(parallel_mode="data_parallel", global_rank=rank)
            data = ds.MindDataset("rows.mindrecord", ["x"], num_shards=size, shard_id=get_rank())
            model.train(1, data)

        main()
        """,
    ),
    "an object that is asked for both and was never told": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        class Reader:
            def __init__(self, path, shards=None, shard=None):
                self.path = path
                self.shards, self.shard = shards, shard

            def open(self):
                return ds.ImageFolderDataset(self.path, num_shards=self.shards, shard_id=self.shard)

        def main():
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            reader = Reader("pictures")
            model.train(1, reader.open())

        main()
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        class Reader:
            def __init__(self, path, shards=None, shard=None):
                self.path = path
                self.shards, self.shard = shards, shard

            def open(self):
                return ds.ImageFolderDataset(self.path, num_shards=self.shards, shard_id=self.shard)

        def main():
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            reader = Reader("pictures", shards=get_group_size(), shard=get_rank())
            model.train(1, reader.open())

        main()
        """,
    ),
    "rows of a file that is split by its files": (
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        class Training:
            def __init__(self):
                init()
                ms.set_auto_parallel_context(parallel_mode="data_parallel")
                self.rank = get_rank()
                self.data = self.read("rows", self.parts())

            def parts(self):
                return 4

            def read(self, path, parts):
                return ds.TFRecordDataset([f"{path}{part}" for part in range(parts)])

        model.train(1, Training().data)
        """,
        """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        class Training:
            def __init__(self):
                init()
                ms.set_auto_parallel_context(parallel_mode="data_parallel")
                self.rank = get_rank()
                self.data = self.read("rows", self.parts())

            def parts(self):
                return 4

            def read(self, path, parts):
                return ds.TFRecordDataset([f"{path}{part}" for part in range(parts)],
                                          num_shards=get_group_size(),
                                          shard_id=self.rank, shard_equal_rows=True)

        model.train(1, Training().data)
        """,
    ),
}

STARTING = """
import mindspore as ms
from mindspore.communication import init

def start():
    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel")
"""


@pytest.mark.parametrize("case", ALONE)
def test_shards_as_written_by_hand(case: str, tmp_path: Path) -> None:
    before, after = (program(text) for text in ALONE[case])
    files = {"train.py": before}
    if "from starting import" in before:
        files["starting.py"] = program(STARTING)
    done = rewritten(tmp_path, CODEMOD, files)
    assert done.texts["train.py"] == after
    assert "fewer steps" in done.applied[0].message


def test_parameters_are_handed_down_through_all_files_and_the_evaluation_set_keeps_all_rows(tmp_path: Path) -> None:
    files = {
        "data/pictures.py": program("""
            import mindspore.dataset as ds


            def pictures(split: str, *, workers: int = 4, **options):
                return ds.ImageFolderDataset(split, workers, **{})


            def labelled(split, batch_size, num_shards=1):
                data = ds.MnistDataset(split)
                return data.batch(batch_size // num_shards)
            """),
        "data/loaders.py": program("""
            from data.pictures import labelled


            def loaders(
                cfg,
                split,
            ):
                return labelled(split, cfg.batch_size)
            """),
        "train.py": program("""
            import mindspore as ms
            from mindspore.communication import get_group_size, get_rank, init
            from data.loaders import loaders
            from settings import cfg, model

            def main():
                init()
                size = get_group_size()
                ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=size)
                model.train(1, loaders(cfg, "train"))
                model.eval(loaders(cfg, "test"))

            main()
            """),
    }
    done = rewritten(tmp_path, CODEMOD, files)
    # The parameter that is there for another use keeps it.
    assert "data = ds.MnistDataset(split, num_shards=rank_size, shard_id=rank_id)\n" in done.texts["data/pictures.py"]
    assert (
        "def labelled(split, batch_size, num_shards=1, rank_size=None, rank_id=None):\n"
        in done.texts["data/pictures.py"]
    )
    assert done.texts["data/loaders.py"] == program("""
        from data.pictures import labelled


        def loaders(
            cfg,
            split,
            num_shards=None,
            shard_id=None,
        ):
            return labelled(split, cfg.batch_size,
                            rank_size=num_shards, rank_id=shard_id)
        """)
    assert done.texts["train.py"] == files["train.py"].replace(
        'loaders(cfg, "train")', 'loaders(cfg, "train", num_shards=size, shard_id=get_rank())'
    )


def test_a_parameter_that_is_taken_and_dropped_is_used(tmp_path: Path) -> None:
    files = {
        "reading.py": program("""
            import mindspore.dataset as ds


            def read(path, rank_id=0, device_num=1):
                return ds.MindDataset(path)
            """),
        "train.py": program("""
            import mindspore as ms
            from mindspore.communication import init, get_rank, get_group_size
            from reading import read
            from settings import model

            def main(distributed):
                if distributed:
                    init()
                    ms.set_auto_parallel_context(parallel_mode="data_parallel")
                model.train(1, read("rows", 0))

            main(True)
            """),
    }
    done = rewritten(tmp_path, CODEMOD, files)
    assert "ds.MindDataset(path, num_shards=device_num, shard_id=rank_id)\n" in done.texts["reading.py"]
    assert 'read("rows", get_rank(), device_num=get_group_size())' in done.texts["train.py"]


def test_zipped_sets_are_sharded_together_or_not_at_all(tmp_path: Path) -> None:
    text = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        def labels():
            yield from range(100)

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        pictures = ds.ImageFolderDataset("a", shuffle=False)
        others = SECOND
        model.train(1, ds.zip((pictures, others)).batch(4))
        """)
    both = rewritten(
        tmp_path, CODEMOD, {"train.py": text.replace("SECOND", 'ds.ImageFolderDataset("b", shuffle=False)')}
    )
    assert both.texts["train.py"].count("num_shards=get_group_size()") == 2
    assert "zipped" in both.applied[0].message
    none = text.replace("SECOND", 'ds.GeneratorDataset(labels, ["label"], shuffle=False)')
    done = rewritten(tmp_path, CODEMOD, {"train.py": none})
    assert done.texts["train.py"] == none
    assert len(done.refused) == 2


REFUSED = {
    "a generator function": ('ds.GeneratorDataset(stream, ["x"])', "`stream` has no __getitem__"),
    "an object that is only iterated over": ('ds.GeneratorDataset(Once(), ["x"])', "`Once()` has no __getitem__"),
    "an object that cannot tell its length": ('ds.GeneratorDataset(Endless(), ["x"])', "`Endless()` has no __len__"),
    "an object out of sight": ('ds.GeneratorDataset(known.rows, ["x"])', "what `known.rows` is cannot be told"),
    "a sampler": ('ds.MnistDataset("digits", sampler=ds.RandomSampler())', "DistributedSampler"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_sharded_is_refused_with_what_to_do(case: str, tmp_path: Path) -> None:
    built, reason = REFUSED[case]
    text = program("""
        import known
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init

        def stream():
            yield 1

        class Once:
            def __iter__(self):
                return iter([1])

        class Endless:
            def __getitem__(self, index):
                return index

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        known.model.train(1, BUILT)
        """).replace("BUILT", built)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert done.texts["train.py"] == text
    assert [reason in fix.message for fix in done.refused] == [True]


# Whole programs that are left alone, after the imports.
LEFT = {
    "a comprehension that builds the evaluation set by the same call": (
        """
        def read(usage):
            return ds.MnistDataset("digits", usage).batch(4)

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        training, held_out = [read(usage) for usage in ("train", "test")]
        model.train(1, training)
        """,
        "the loop in row 11 of train.py builds the evaluation set by the same call",
    ),
    "a loop that does, as its use shows": (
        """
        def read(usages):
            sets = []
            for usage in usages:
                sets.append(ds.MnistDataset("digits", usage).batch(4))
            return sets

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        first, second = read(("a", "b"))
        model.fit(1, first, second)
        """,
        "the loop in row 8 of train.py builds the evaluation set by the same call",
    ),
    "split, as no sharded data set can be": (
        """
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        training, held_out = ds.MnistDataset("digits").split([0.8, 0.2])
        model.train(1, training.batch(4))
        """,
        "it is split in row 8 of train.py",
    ),
    "another class builds its set by the same call": (
        """
        class Reader:
            def read(self, path):
                return self.opened(path).batch(4)

            def opened(self, path):
                return ds.MnistDataset(path)

        class Listing(Reader):
            def opened(self, path):
                return ds.TextFileDataset(path, shuffle=False)

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, Reader().read("digits"))
        model.eval(Reader().read("others"))
        print(Listing().read("names").get_dataset_size())
        """,
        "the call in row 8 of train.py may run `Listing.opened`, too",
    ),
    "built before init()": (
        """
        training = ds.MnistDataset("digits").batch(4)
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, training)
        """,
        "built before init() in row 7 of train.py",
    ),
    "init() within the function that would be given the rank": (
        """
        def read(path, shuffle):
            init()
            ms.set_auto_parallel_context(parallel_mode="data_parallel")
            return ds.MnistDataset(path, shuffle=shuffle)

        model.train(1, read("train", True))
        model.eval(read("test", False))
        """,
        "built before init() in row 7 of train.py",
    ),
    "a variable that asked before init()": (
        """
        rank, size = get_rank(), get_group_size()
        training = ds.MnistDataset("digits").batch(4)
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        model.train(1, training)
        """,
        "built before init() in row 8 of train.py",
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_programs_that_shards_would_harm_are_left_with_what_to_do(case: str, tmp_path: Path) -> None:
    body, reason = LEFT[case]
    imports = """
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model
        """
    text = program(imports) + "\n" + program(body)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert done.texts["train.py"] == text
    assert [reason in fix.message for fix in done.refused] == [True]


def test_an_epoch_that_builds_trains_and_evaluates_in_one_loop_is_sharded(tmp_path: Path) -> None:
    text = program("""
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import model

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        for fold in ("train", "val"):
            data = ds.MnistDataset(fold)
            model.train(1, data)
            print(model.eval(data))
        """)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert "num_shards=get_group_size(), shard_id=get_rank())" in done.texts["train.py"]


@pytest.mark.parametrize("source", ["[1, 2, 3]", "(1, 2)", "list(known.rows)", "Rows()"])
def test_sources_with_random_access_are_sharded(source: str, tmp_path: Path) -> None:
    text = program("""
        import known
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init

        class Base:
            def __len__(self):
                return 3

        class Rows(Base):
            def __getitem__(self, index):
                return index

        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        known.model.train(1, ds.GeneratorDataset(SOURCE, ["x"]))
        """).replace("SOURCE", source)
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert "num_shards=get_group_size()" in done.texts["train.py"]


def test_line_ends_tabs_and_encoding_survive(tmp_path: Path) -> None:
    text = program("""
        # -*- coding: utf-8 -*-
        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import init
        from settings import model

        def main():
        \tinit()
        \tms.set_auto_parallel_context(parallel_mode="data_parallel")
        \tdata = ds.MnistDataset("\u6570\u636e", "train", 1000, 8,  # \u6570
        \t\tshuffle=True)
        \tmodel.train(1, data)

        main()
        """).replace("\n", "\r\n")
    done = rewritten(tmp_path, CODEMOD, {"train.py": text})
    assert done.texts["train.py"] == text.replace("import init", "import get_group_size, get_rank, init").replace(
        "shuffle=True)", "shuffle=True, num_shards=get_group_size(), shard_id=get_rank())"
    )
    assert "num_samples" in done.applied[0].message
