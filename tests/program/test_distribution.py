"""A program of several files: which runs are distributed, what they reach, which data set they train on."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from mslint.program.datasets import _classes, dataset_class
from mslint.program.distribution import Run, distribution
from mslint.program.project import Program
from mslint.program.rehearsal.values import RANK_SIZE, Constant

FILES = {
    "src/data.py": """
        import mindspore.dataset as ds

        def open_set(folder, training, size=1, rank=0):
            if training:
                found = ds.ImageFolderDataset(folder, num_shards=size, shard_id=rank)
            else:
                found = ds.MnistDataset(folder)
            return found.batch(32)
        """,
    "src/adapter.py": """
        import functools

        def on_cloud(prepare=None):
            def wrapper(run):
                @functools.wraps(run)
                def inner(*given, **named):
                    if prepare:
                        prepare()
                    run(*given, **named)
                return inner
            return wrapper
        """,
    "src/devices.py": """
        import mindspore as ms
        from mindspore.communication.management import get_group_size, get_rank, init

        class Devices:
            size, rank = 1, 0

            def __init__(self, config):
                self.config = config

            def start(self):
                if self.config.distributed:
                    init()
                    self.size, self.rank = get_group_size(), get_rank()
                    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)
        """,
    "train.py": """
        from functools import partial
        from mindspore import Model
        from options import config
        from src.adapter import on_cloud
        from src.data import open_set
        from src.devices import Devices

        @on_cloud(prepare=lambda: print("copying"))
        def train():
            devices = Devices(config)
            devices.start()
            opened = partial(open_set, config.folder, size=devices.size, rank=devices.rank)
            model = Model(config.network, config.loss, config.optimizer)
            model.train(10, opened(True))
            model.eval(opened(False))

        if __name__ == "__main__":
            train()
        """,
    "eval.py": """
        from mindspore import Model
        from options import config
        from src.data import open_set

        if __name__ == "__main__":
            Model(config.network).eval(open_set(config.folder, False))
        """,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return tmp_path


def runs(folder: Path) -> dict[str, Run]:
    program = Program(sorted(folder.rglob("*.py")))
    return {run.entry.name: run for run in distribution(program).all_runs(folder / "src" / "data.py")}


def test_only_the_script_that_starts_the_devices_is_distributed(folder: Path) -> None:
    found = runs(folder)
    assert set(found) == {"train.py", "eval.py"}
    assert found["eval.py"].init is None
    init = found["train.py"].init
    assert init is not None
    assert (init.place.path.name, init.place.row) == ("devices.py", 12)
    assert [place.path.name for place in init.calls] == ["train.py", "adapter.py", "train.py"]
    assert found["train.py"].modes == {"data_parallel"}


def test_the_data_set_that_feeds_training_is_told_from_the_one_that_is_evaluated(folder: Path) -> None:
    run = runs(folder)["train.py"]
    [shards] = run.named("mindspore.dataset.ImageFolderDataset")
    assert shards.argument(-1, "num_shards") is RANK_SIZE
    trained = run.trained_at(shards)
    assert trained is not None
    assert (trained.path.name, trained.row) == ("train.py", 14)
    [checked] = run.named("mindspore.dataset.MnistDataset")
    assert run.trained_at(checked) is None
    assert not list(runs(folder)["eval.py"].named("mindspore.dataset.ImageFolderDataset"))


def test_events_stand_in_the_order_of_the_run(folder: Path) -> None:
    run = runs(folder)["train.py"]
    names = [event.name.rpartition(".")[2] for event in run.events]
    wanted = ["init", "set_auto_parallel_context", "ImageFolderDataset", "MnistDataset"]
    assert [name for name in names if name in wanted] == wanted


def test_a_branch_for_one_device_is_not_taken(folder: Path) -> None:
    (folder / "train.py").write_text(
        dedent(
            """
            import os
            import mindspore as ms
            from mindspore.communication import init
            from src.data import open_set

            size = int(os.getenv("RANK_SIZE", "1"))
            if size > 1:
                init()
            if size == 1:
                open_set("one", True)
            elif os.environ["NAME"] == "x":
                open_set("x", True)
            else:
                raise RuntimeError
            open_set("last", True)
            """
        ),
        encoding="utf-8",
    )
    opened = [event.arguments[0] for event in runs(folder)["train.py"].named("mindspore.dataset.ImageFolderDataset")]
    assert opened == [Constant("x"), Constant("last")]


@pytest.mark.parametrize(
    "text",
    [
        "from mindspore.communication import init\ninit()",
        "from mindspore.common import initializer as init\n"
        "def start():\n    from mindspore.communication import init\n    init()\nstart()",
        "import mindspore as ms\nms.communication.init()",
        "from mindspore import communication\ncommunication.init()",
        "from mindspore import mint\nmint.distributed.init_process_group()",
        "from devices import init\ninit()",
    ],
)
def test_a_run_is_distributed_however_its_initialiser_is_imported(tmp_path: Path, text: str) -> None:
    (tmp_path / "devices.py").write_text("from mindspore.communication.management import init", encoding="utf-8")
    script = tmp_path / "train.py"
    script.write_text(text, encoding="utf-8")
    [run] = distribution(Program([script])).runs(script)
    assert run.init is not None


def test_a_script_whose_init_makes_initial_weights_is_not_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import mindspore.common.initializer as init\nweight = init.initializer(init.One(), [2])\n", "utf-8"
    )
    monkeypatch.delattr("mslint.program.distribution.Rehearsal")
    assert not distribution(Program([script])).runs(script)


def test_the_table_of_classes_is_that_of_mindspore() -> None:
    classes = _classes()
    assert len(classes) == 70
    assert sum(not kind.takes_sampler for name, kind in classes.items() if name != "SourceDataset") == 23
    assert dataset_class("PaddedDataset") is None
