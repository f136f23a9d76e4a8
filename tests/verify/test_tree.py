"""Projects of more than one file: paths work as they did, and the user's tree stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mslint.findings import Verdict
from mslint.verify import verify

from .scripts import GRAD_OPERATION, STEP_CELL, VALUE_AND_GRAD, step_cell

STEP = """\
import mindspore as ms
from mindspore import nn, ops

""" + STEP_CELL.replace("{forward}", GRAD_OPERATION)
TRAIN = """\
import argparse
import os
import sys
from pathlib import Path

import numpy as np
import mindspore as ms
from mindspore import nn, Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))
from nets.step import TrainStep

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--beside", action="store_true")
options = parser.parse_args()
data = Path(__file__).parent / options.data if options.beside else options.data
x = Tensor(np.load(data))
os.makedirs("checkpoints/last", exist_ok=True)
open("log.txt", "w").write("training")
open(os.environ["FORBIDDEN"], "w").write("written")
assert open(os.environ["FORBIDDEN"]).read() == "written"
try:
    os.remove(os.environ["FORBIDDEN"].replace("forbidden", "removed"))
except PermissionError:
    print("refused")
network = nn.Dense(6, 1)
ms.save_checkpoint(network, "checkpoints/last/first.ckpt")
model = nn.WithLossCell(network, nn.MSELoss())
train = TrainStep(model, nn.SGD(network.trainable_params(), learning_rate=0.1)).set_train()
for _ in range(2):
    train(x, Tensor(np.ones((4, 1), np.float32)))
    ms.save_checkpoint(network, "checkpoints/last/net.ckpt")
"""
# Where the user stands, and how the script is told where its data is.
LAYOUTS = {
    "root": (".", ["--data", "data/first.npy"]),
    "script's folder": ("scripts", ["--data", "../data/first.npy"]),
    "elsewhere": ("/", ["--data", "../data/first.npy"]),
    "by the script's own path": ("data", ["--data", "../data/first.npy", "--beside"]),
    "beside the project": (".", ["--data", "../neighbour/first.npy"]),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with the step in a module of its own, a script in a folder, data beside both and beside all."""
    home = tmp_path_factory.mktemp("home")
    root = home / "project"
    for folder in (root / "nets", root / "scripts", root / "data", root / ".cache", home / "neighbour"):
        folder.mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "nets" / "__init__.py").write_text("")
    (root / "nets" / "step.py").write_text(STEP)
    (root / "scripts" / "train.py").write_text(TRAIN)
    for folder in (root / "data", home / "neighbour"):
        np.save(folder / "first.npy", np.ones((4, 6), np.float32))
    # Large enough to be linked, not copied.
    np.save(root / "data" / "large.npy", np.ones(400_000, np.float32))
    return root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_paths_work_and_nothing_is_written(layout: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, arguments = LAYOUTS[layout]
    monkeypatch.setenv("FORBIDDEN", str(project / "forbidden.txt"))
    before = _listing(project.parent)
    verification = verify(
        project / "scripts" / "train.py",
        {project / "nets" / "step.py": STEP.replace(GRAD_OPERATION, VALUE_AND_GRAD).encode()},
        arguments=arguments,
        modes=["pynative"],
        working_directory=(project / directory),
    )
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    assert f"writing {project / 'forbidden.txt'}: led to a temporary folder" in verification.stand_ins
    assert f"writing {project / 'removed.txt'}: refused" in verification.stand_ins
    assert _listing(project.parent) == before


def test_each_of_two_scripts_uses_the_modules_beside_it(tmp_path: Path) -> None:
    for name, factor, rate in (("old", 2, 6), ("new", 3, 4), ("other", 3, 5)):
        (tmp_path / name).mkdir()
        text = step_cell(VALUE_AND_GRAD, setup="from factors import FACTOR\nRATE = float(open('rate').read())")
        (tmp_path / name / "train.py").write_text(text.replace("- y).mean()", "- y).mean() * FACTOR * RATE"))
        (tmp_path / name / "factors.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / name / "rate").write_text(str(rate))
    old = tmp_path / "old"
    options: dict[str, Any] = {"modes": ["pynative"], "working_directory": old}
    verification = verify(old / "train.py", {}, against=tmp_path / "new" / "train.py", **options)
    assert verification.verdict is Verdict.EQUIVALENT, verification.reason
    assert [Path(changed).name for changed in verification.changed] == ["factors.py"]
    verification = verify(old / "train.py", {}, against=tmp_path / "other" / "train.py", **options)
    assert verification.verdict is Verdict.DIFFERENT, verification.reason


def _listing(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }
