"""How long steps of all versions take, measured by turns, and the losses that they come to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "worker.py"
LOSS_WORKER = Path(__file__).parent / "loss_worker.py"


@dataclass
class Trained:
    """A process that trains one version, a step whenever it is told to."""

    process: subprocess.Popen[str]
    walls: list[float] = field(default_factory=list)
    processors: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    skipped: int = 0

    def step(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("a version stopped training; its error is above")
        wall, processor, loss, finite = json.loads(answer)
        self.walls.append(wall)
        self.processors.append(processor)
        self.losses.append(loss)
        self.skipped += not finite

    def summary(self) -> dict[str, Any]:
        """Return the least of all but the first two steps, in milliseconds, and what the first took beyond, in seconds.

        What else runs on the machine makes steps longer, never shorter: the least is the one that was disturbed least.
        """
        wall, processor = min(self.walls[2:]), min(self.processors[2:])
        return {
            "first": round(self.walls[0] - wall, 2),
            "first_processor": round(self.processors[0] - processor, 2),
            "step": round(1000 * wall, 1),
            "step_processor": round(1000 * processor, 1),
        }


def timed(
    versions: Mapping[str, Path],
    mode: str,
    rounds: int,
    folder: Path,
    curves: tuple[str, ...] = (),
    steps: int = 0,
    worker: Path = WORKER,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the times of each version, and of some of them the losses of so many steps."""
    environment = {**os.environ, "MS_OM_PATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "GLOG_v": "3"}
    trained: dict[str, Trained] = {}
    try:
        for name, place in versions.items():
            command = [sys.executable, str(worker), mode, str(max(rounds, steps))]
            process = subprocess.Popen(
                command, cwd=place, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            trained[name] = Trained(process)
            trained[name].step()  # one after the other: the first step compiles
        for _ in range(rounds - 1):
            for one in trained.values():
                one.step()
        summaries = {name: one.summary() for name, one in trained.items()}
        for name in curves:
            while len(trained[name].losses) < steps:
                trained[name].step()
        return summaries, {name: {"losses": trained[name].losses, "skipped": trained[name].skipped} for name in curves}
    finally:
        for one in trained.values():
            one.process.kill()
            one.process.wait()
