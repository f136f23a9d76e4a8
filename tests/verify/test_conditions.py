"""What the script finds where it runs: data that stands in for missing files, worlds of several ranks, no running at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mslint.findings import Verdict
from mslint.verify import Conditions, Verification, parse_input
from mslint.verify.conditions import Input

from .conftest import Against
from .test_command import mslint

DATA = """\
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import Profiler, nn, ops
from mindspore.dataset import transforms, vision
import pandas
from tqdm import tqdm
import matplotlib.pyplot as plt

try:
    import cupy
except ImportError:
    print("no cupy")

plt.figure()
net = nn.SequentialCell(nn.Flatten(), nn.Dense({features}, 10))
ms.load_param_into_net(net, ms.load_checkpoint("lost.ckpt"))
profiler = Profiler(output_path="profile")
{data}
model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, data, callbacks=[ms.train.SummaryCollector("summary")])
"""
MNIST = """\
data = ds.MnistDataset("/nowhere/mnist", usage="train", shuffle=True)
data = data.map([vision.Rescale(1 / 255.0, 0.0), vision.HWC2CHW()], "image")
data = data.map(transforms.TypeCast(ms.int32), "label").batch(8, drop_remainder=True)"""
FOLDER = """\
data = ds.ImageFolderDataset("/nowhere/flowers", num_parallel_workers=2)
data = data.map([vision.RandomCropDecodeResize(4), vision.ToTensor()], "image")
data = data.map(transforms.TypeCast(ms.int32), "label").batch(4).repeat(2)"""
RECORDS = """\
data = ds.MindDataset("/nowhere/train.mindrecord", columns_list=["ids", "mask"], shuffle=True)
data = data.map(transforms.TypeCast(ms.float32), "ids").batch(8)"""
OWN_CLASS = """\
class Points:
    def __init__(self, path):
        self.x = np.load(path)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, number):
        return self.x[number], 0


data = ds.GeneratorDataset(Points("points.npy"), ["x", "y"], shuffle=True).batch(8)"""
INPUTS = ("ids=float32[4,12]", "int32[4]<10")


def train(data: str, features: int) -> str:
    return DATA.replace("{data}", data).replace("{features}", str(features))


def stood_in(verification: Verification) -> str:
    return "\n".join(verification.stand_ins)


@pytest.mark.parametrize(
    ("data", "features", "conditions", "said"),
    [
        (MNIST, 784, Conditions(fake_data=True), "MnistDataset('/nowhere/mnist'): missing, random rows stand in"),
        (FOLDER, 48, Conditions(fake_data=True), "ImageFolderDataset('/nowhere/flowers'): missing, random rows"),
        (RECORDS, 12, Conditions(inputs=INPUTS), "(ids float32[4, 12], mask int32[4])"),
        (OWN_CLASS, 12, Conditions(inputs=INPUTS), "Points: it does not find its data ([Errno 2] No such file"),
    ],
)
def test_missing_data_is_stood_in_for_and_told(
    data: str, features: int, conditions: Conditions, said: str, against: Against
) -> None:
    text = train(data, features)
    verification = against(text, text + "\n", modes=["graph"], conditions=conditions)
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    told = stood_in(verification)
    assert said in told
    for other in (
        "package pandas is not installed: importing it passes, using it fails",
        "package tqdm is not installed",
        "package matplotlib is not installed",
        "load_checkpoint('lost.ckpt'): skipped",
        "Profiler: skipped",
        "SummaryCollector: skipped",
    ):
        assert other in told
    assert "cupy" not in told


@pytest.mark.parametrize(
    ("data", "features", "said"),
    [
        (MNIST, 784, "MnistDataset('/nowhere/mnist') is missing: --fake-data stands in for it"),
        (RECORDS, 12, "only its files tell its columns: --input NAME=TYPE[SHAPE], once for each column"),
        (OWN_CLASS, 12, "Points does not find its data ([Errno 2] No such file or directory: 'points.npy'): --input"),
    ],
)
def test_without_the_option_the_reason_names_it(data: str, features: int, said: str, against: Against) -> None:
    text = train(data, features)
    verification = against(text, text + "\n", modes=["pynative"])
    assert verification.verdict is Verdict.UNVERIFIED
    assert said in verification.reason


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("image=float32[4,3,32,32]", Input("float32", (4, 3, 32, 32), "image")),
        ("float16[4, 2]", Input("float16", (4, 2))),
        ("label=int32[4]<10", Input("int32", (4,), "label", 10)),
        ("x=float64[]", Input("float64", (), "x")),
    ],
)
def test_descriptions_of_inputs(text: str, read: Input) -> None:
    assert parse_input(text) == read


@pytest.mark.parametrize(
    "text", ["", "x", "x=float32", "x=floot32[1]", "x=float32[0]", "x=float32[2]<4", "x=int8[2]<0"]
)
def test_what_describes_no_input(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not read|no type|without elements|needs whole"):
        parse_input(text)


# Two ranks with shards and an AllReduce; the step comes twice, by a cell and by functions.
WORLD = """\
import numpy as np
import mindspore as ms
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.dataset import NumpySlicesDataset

ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
init()
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
{seed}
random = np.random.RandomState(0)
columns = (random.rand(32, 6).astype(np.float32), random.rand(32, 2).astype(np.float32))
data = NumpySlicesDataset(columns, ["x", "y"], {shards}shuffle=False).batch(4)
net = nn.Dense(6, 2)
train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
for x, y in data:
    print(get_rank(), get_group_size(), train(x, y))
"""
SHARDED = WORLD.replace("{seed}", "ms.set_seed(1)").replace(
    "{shards}", "num_shards=get_group_size(), shard_id=get_rank(), "
)
CARELESS = WORLD.replace("{seed}", "ms.set_seed(get_rank())").replace("{shards}", "")


@pytest.mark.parametrize(
    ("conditions", "communicated", "said"),
    [
        (Conditions(numbers=False), 0, "structure only: steps were compiled, not run"),
        (Conditions(ranks=4), 2, "structure only: compiled for rank 0 of 4, not run, as the other ranks are not there"),
    ],
)
def test_compiling_alone_gives_the_counts(
    conditions: Conditions, communicated: int, said: str, against: Against
) -> None:
    verification = against(SHARDED, SHARDED + "\n", conditions=conditions)
    assert verification.verdict is Verdict.UNVERIFIED
    assert verification.reason.startswith(said)
    (step,) = verification.steps
    assert step.before is not None
    assert step.before == step.after
    assert (step.before.backward > 0, step.before.optimizer > 0) == (True, True)
    assert step.before.communication == communicated
    assert step.loss is None


def test_ranks_that_are_launched_are_compared_with_themselves_and_with_each_other(against: Against) -> None:
    verification = against(SHARDED, CARELESS, modes=["graph"], conditions=Conditions(ranks=2, launch=True))
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    assert verification.reason.startswith("on all 2 ranks loss, gradients, parameters after the step bit-equal")
    assert [step.name for step in verification.steps] == [f"TrainOneStepCell on rank {rank}" for rank in (0, 1)]
    losses = [step.loss for step in verification.steps]
    assert losses[0] is not None
    assert losses[1] is not None
    assert losses[0].before != losses[1].before
    remarks = "\n".join(verification.steps[0].remarks)
    assert "parameters before the step: equal on all 2 ranks; rewritten: NOT equal on ranks 0 and 1" in remarks
    assert "gradients: equal on all 2 ranks" in remarks
    assert "samples of the batch: disjoint on all 2 ranks; rewritten: 4 of 4 on SEVERAL ranks" in remarks


def test_a_rank_that_fails_ends_the_others(against: Against) -> None:
    text = SHARDED.replace("for x, y in data:", "if get_rank():\n    raise KeyError('lost')\nfor x, y in data:")
    verification = against(text, text + "\n", modes=["graph"], conditions=Conditions(ranks=2, launch=True))
    assert verification.verdict is Verdict.UNVERIFIED
    assert "raised KeyError: 'lost'" in verification.reason


def test_the_command_takes_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(train(OWN_CLASS, 12))
    (tmp_path / "other.py").write_text(train(OWN_CLASS, 12) + "\n")
    run = mslint(
        "train.py", "--against", "other.py", "--input", "x=float32[4,12]", "--input", "int32[4]<10", "--no-numbers",
        "--output-format", "json", cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 2, run.stderr
    document = json.loads(run.stdout)
    assert (document["verdict"], document["mode"]) == ("unverified", "graph")
    assert document["steps"][0]["before"]["backward"] > 0
    assert any("(x float32[4, 12], y int32[4])" in stand_in for stand_in in document["stand_ins"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--launch"], "--launch: launching takes --ranks N of 2 or more"),
        (["--launch", "--ranks", "2", "--no-numbers"], "leave out --no-numbers"),
        (["--ranks", "0"], "--ranks: '0' is no whole number above 0"),
        (["--ranks", "2", "--mode", "pynative"], "--mode pynative: nothing is compiled there"),
        (["--no-numbers", "--time"], "--time: only steps that are run on one rank can be timed"),
        (["--input", "x=float32"], "--input: 'x=float32' does not read NAME=TYPE[SHAPE]"),
    ],
)
def test_options_that_make_no_sense_together(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()\n")
    run = mslint("train.py", "--against", "train.py", *arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
