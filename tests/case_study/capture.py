"""The first training step of each version of the case study, compiled and run by the verifier's own child."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mslint.verify.compare import compare_step
from mslint.verify.conditions import Conditions
from mslint.verify.job import Job
from mslint.verify.mirror import build
from mslint.verify.process import Run, run
from mslint.verify.result import StepResult

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "fixtures" / "case_study"
SECONDS_PER_RUN = 1200

# What is handed to `mslint fix`, one call after the other.
VERSIONS = {
    "before": [],
    "functional-grad": [["--codemod", "functional-grad"]],
    "stop-gradient": [["--codemod", "stop-gradient", "--unsafe-fixes"]],
    "vectorize-rows": [["--codemod", "vectorize-rows", "--unsafe-fixes"]],
    "safe": [[]],
    "all": [[], ["--unsafe-fixes"]],
}


@dataclass
class Versions:
    """Copies of the case study, each fixed by mslint alone."""

    folder: Path

    def make(self, name: str) -> Path:
        """Return the folder of a version, which is made if it is not there."""
        place = self.folder / name / "case_study"
        if not place.exists():
            ignored = shutil.ignore_patterns("__pycache__", "README.md", "*.json", "*.svg")
            shutil.copytree(CASE, place, ignore=ignored)
            (place / "pyproject.toml").touch()
            for options in VERSIONS[name]:
                fixed = mslint("fix", *options, ".", cwd=place)
                if fixed.returncode > 1:
                    raise RuntimeError(fixed.stderr)
        return place

    def same_as(self, name: str, others: list[str]) -> str | None:
        """Return the version among ``others`` whose files are those of ``name``."""
        return next((other for other in others if contents(self.make(other)) == contents(self.make(name))), None)


def fingerprint(folder: Path) -> str:
    """Return what changes with any file of a version."""
    return hashlib.sha256(repr(contents(folder)).encode()).hexdigest()[:16]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def mslint(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mslint", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS_PER_RUN)


def captured(folder: Path, mode: str, out: Path, replay: Run | None = None, ranks: int = 1) -> Run:
    """Run a version up to its first training step, from the parameters and the batch of ``replay``."""
    arguments = ["--distributed"] if ranks > 1 else []
    mirror = build(folder, folder / "train.py", folder, {}, out / "tree")
    job = Job(
        script=str(mirror.script),
        arguments=arguments,
        directory=str(mirror.directory),
        mode=mode,
        root=str(mirror.root),
        out=str(out / "out"),
        replay=str(replay.out) if replay is not None else None,
        conditions=Conditions(ranks=ranks),
        scratch=str(out),
        protected=[str(folder)],
    )
    ended = run(job, SECONDS_PER_RUN, threading.Event())
    if not ended.steps:
        raise RuntimeError(f"{folder} came to no training step: {ended.failure}\n{ended.output}")
    return ended


def measured(versions: Versions, names: list[str], mode: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return counts of each version, and how its numbers compare with those of the first."""
    first = captured(versions.make(names[0]), mode, folder / names[0])
    found: dict[str, dict[str, Any]] = {names[0]: counts(compare_step(mode, 0, first, first), mode)}
    for place, name in enumerate(names[1:], 1):
        twin = versions.same_as(name, names[:place])
        if twin is not None:
            found[name] = found[twin]
            continue
        other = captured(versions.make(name), mode, folder / name, first)
        step = compare_step(mode, 0, first, other)
        found[name] = {**counts(step, mode), "numbers": numbers(step)}
    return found


def counts(step: StepResult, mode: str) -> dict[str, Any]:
    """Return what the table shows of the step after the rewrite."""
    if mode == "pynative":
        assert step.pynative_after is not None
        after = step.pynative_after
        return {"autograd": after.autograd_nodes, "forward_runs": after.forward_runs, "calls": after.operator_calls}
    assert step.after is not None
    return {
        "forward": step.after.forward,
        "backward": step.after.backward,
        "communication": step.after.communication,
        "subgraphs": step.after.subgraphs,
        "saved": step.after.saved_bytes,
        "peak": step.after.peak_bytes,
    }


def numbers(step: StepResult) -> dict[str, Any]:
    """Return how loss and gradients compare with those before."""
    if step.loss is None or step.gradients is None:
        return {"verdict": str(step.verdict.value), "reason": step.reason}
    return {
        "verdict": str(step.verdict.value),
        "loss": step.loss.comparison.max_abs_diff,
        "gradients": step.gradients.max_rel_diff,
        "worst": step.gradients.worst,
        "differing": list(step.gradients.differing),
    }
