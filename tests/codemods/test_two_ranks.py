"""The damage, and that the rewrite undoes it, on two ranks that MindSpore's own launcher starts.

A run takes about 25 seconds, nearly all of it MindSpore's.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from running import FIXTURES, mslint, require_mindspore

SECONDS_PER_RUN = 180
NAMED_LIST = re.compile(r"(weights|samples|drawn) (\[[^\]]*\])")
GRADIENT = re.compile(r"gradient (\S+)")


@dataclass
class Rank:
    """What one rank printed, epoch by epoch."""

    weights: list[list[float]] = field(default_factory=list)
    samples: list[list[int]] = field(default_factory=list)
    drawn: list[list[float]] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)


@cache
def trained(script: str, codemod: str | None) -> tuple[Rank, Rank]:
    """Train the fixture ``script`` on two ranks, rewritten by ``codemod`` if one is named."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / Path(script).name
        shutil.copy(FIXTURES / script, copy)
        if codemod is not None:
            fixed = mslint("fix", "--codemod", codemod, "--unsafe-fixes", folder)
            assert copy.read_bytes() != (FIXTURES / script).read_bytes(), fixed.out + fixed.err
        tools = Path(sys.executable).parent
        options = [
            "--worker_num=2",
            "--local_worker_num=2",
            "--join=True",
            f"--master_port={free_port()}",
            "--log_dir=logs",
        ]
        done = subprocess.run(
            [tools / "msrun", *options, copy.name],
            cwd=folder,
            # The launcher starts whatever `python` is.
            env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_PER_RUN,
        )
        logs = [path.read_text(errors="replace") for path in sorted(folder.glob("logs/worker_*.log"))]
        assert done.returncode == 0, "\n".join([done.stderr[-1500:], *(log[-1500:] for log in logs)])
        return printed(logs, 0), printed(logs, 1)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def printed(logs: Sequence[str], number: int) -> Rank:
    rank = Rank()
    for line in "\n".join(logs).splitlines():
        # Another process may have written the start of the line.
        found = re.search(rf"\brank {number} (.*)$", line)
        for name, values in NAMED_LIST.findall(found[1] if found else ""):
            getattr(rank, name).append(ast.literal_eval(values))
        rank.gradients += GRADIENT.findall(found[1] if found else "")
    assert rank.samples, "\n".join(log[-1500:] for log in logs)
    return rank


def epochs(ranks: tuple[Rank, Rank]) -> list[list[int]]:
    """Return the samples of both ranks, epoch by epoch."""
    one, other = ranks
    assert len(one.samples) == len(other.samples) >= 2
    return [sorted(mine + yours) for mine, yours in zip(one.samples, other.samples, strict=True)]


ALL = list(range(16))


def test_without_shards_both_ranks_do_the_same_work_twice() -> None:
    require_mindspore()
    one, other = trained("shard-dataset/one_file.py", None)
    assert one.samples == other.samples
    assert [sorted(samples) for samples in one.samples] == [ALL, ALL]


def test_with_shards_each_sample_is_read_once_and_gradients_are_averaged() -> None:
    require_mindspore()
    ranks = one, other = trained("shard-dataset/one_file.py", "shard-dataset")
    assert epochs(ranks) == [ALL, ALL]
    assert len(one.samples[0]) == len(other.samples[0]) == 8
    assert one.gradients == other.gradients
    assert one.weights == other.weights != []


@pytest.mark.parametrize("codemod", [None, "rank-seed"])
def test_equal_seeds_give_equal_noise_until_the_data_set_is_seeded_by_the_rank(codemod: str | None) -> None:
    require_mindspore()
    ranks = one, other = trained("rank-seed/augment_function.py", codemod)
    assert epochs(ranks) == [ALL, ALL, ALL]
    assert one.weights == other.weights != []
    for mine, yours in zip(one.drawn, other.drawn, strict=True):
        equal = [a == b for a, b in zip(mine, yours, strict=True)]
        assert len(equal) == 8
        assert all(equal) if codemod is None else not any(equal)


def test_seeds_by_the_rank_lose_samples_and_start_from_other_weights() -> None:
    require_mindspore()
    ranks = one, other = trained("rank-seed/seeded_by_rank.py", None)
    assert all(set(samples) != set(ALL) for samples in epochs(ranks))
    assert one.weights != other.weights


def test_rewritten_they_lose_none_start_alike_and_still_draw_differently() -> None:
    require_mindspore()
    ranks = one, other = trained("rank-seed/seeded_by_rank.py", "rank-seed")
    assert epochs(ranks) == [ALL, ALL, ALL]
    assert one.weights == other.weights != []
    assert one.drawn != other.drawn
