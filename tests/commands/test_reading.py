"""How many files are read by libcst, which costs ten times what Python's own parser does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import libcst
import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

NETWORK = """
from mindspore import nn, ops


class Block(nn.Cell):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3)
        self.norm = nn.BatchNorm2d(channels, eps=eps)
        self.relu = ops.ReLU()

    def construct(self, x):
        return self.relu(self.norm(self.conv(x)) + x)


class Network(nn.Cell):
    def __init__(self, channels, depth, classes):
        super().__init__()
        self.blocks = nn.CellList([Block(channels) for _ in range(depth)])
        self.head = nn.Dense(channels, classes)

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        x = x.mean((2, 3))
        return self.head(x)[:, 0]
"""
DATA = """
import mindspore.dataset as ds
import mindspore.dataset.vision as vision


def create_dataset(folder, batch_size):
    dataset = ds.ImageFolderDataset(folder, shuffle=True)
    dataset = dataset.map([vision.Decode(), vision.RandomCrop(224)], "image")
    return dataset.batch(batch_size)
"""
SCRIPT = """
import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.train import Model

from data import create_dataset
from network import Network

if __name__ == "__main__":
    ms.set_seed(1)
    np.random.seed(1)
    network = Network(8, 3, 10)
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    model = Model(network, nn.CrossEntropyLoss(), optimizer)
    model.train(10, create_dataset("pictures", 32))
"""


def test_a_program_without_faults_is_not_read_by_libcst(cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("network", NETWORK), ("data", DATA), ("train", SCRIPT)):
        (project / f"{name}.py").write_text(text)

    def refused(text: str) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(libcst, "parse_module", refused)
    assert cli("check", "--no-cache") == (0, "All checks passed.\n", "")


def test_no_file_is_read_more_often_than_rules_codemods_and_other_files_ask(cli, monkeypatch) -> None:
    """Each of the three keeps a tree of its own: none may be read again for the next question."""
    read: Counter[str] = Counter()
    parse = libcst.parse_module

    def counted(text: str) -> libcst.Module:
        read[text] += 1
        return parse(text)

    monkeypatch.setattr(libcst, "parse_module", counted)
    cli("check", "--no-cache", "--jobs", "1", str(FIXTURES / "case_study"))
    assert len(read) == 6  # all but __init__.py and the configuration
    assert max(read.values()) <= 3
