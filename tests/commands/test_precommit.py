"""Our hooks, run by the real pre-commit in a repository of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

MANIFEST = Path(__file__).resolve().parents[2] / ".pre-commit-hooks.yaml"
STEP = """\
from mindspore import nn, ops


class Step(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        self.optimizer(grads)
        return loss
"""
Commit = Callable[[], subprocess.CompletedProcess[str]]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with both hooks installed, taken from the manifest as it is, but for how the program is found.

    ``language: python`` would fetch everything that mslint needs from the network for each test.
    """
    home = Path(sys.executable).parent
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "nobody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "nobody@localhost")
    repository = tmp_path / "repository"
    repository.mkdir()
    hooks = MANIFEST.read_text().replace("language: python", "language: system")
    indented = "".join(f"      {line}\n" for line in hooks.splitlines())
    (repository / ".pre-commit-config.yaml").write_text(f"repos:\n  - repo: local\n    hooks:\n{indented}")
    _git(repository, "init", "--quiet")
    subprocess.run([sys.executable, "-m", "pre_commit", "install"], cwd=repository, check=True, capture_output=True)
    return repository


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True)


@pytest.fixture
def commit(repository: Path) -> Commit:
    def run() -> subprocess.CompletedProcess[str]:
        _git(repository, "add", "--all")
        return _git(repository, "commit", "--message", "a change")

    return run


def test_the_manifest_is_valid() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0


def test_without_python_files_there_is_nothing_to_do(commit: Commit) -> None:
    done = commit()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("(no files to check)Skipped") == 2


def test_a_finding_stops_the_commit_until_it_is_fixed(repository: Path, commit: Commit) -> None:
    script = repository / "训 练.py"
    script.write_text(STEP)
    done = commit()
    assert done.returncode == 1
    assert "训 练.py:11:21: warning MS101" in done.stderr
    assert "files were modified by this hook" in done.stderr
    assert "value_and_grad" in script.read_text()
    assert commit().returncode == 0


def test_what_is_excluded_is_not_checked_though_it_is_named(repository: Path, commit: Commit) -> None:
    (repository / "mslint.toml").write_text('extend-exclude = ["old/"]\n')
    (repository / "old").mkdir()
    (repository / "old" / "a.py").write_text(STEP)
    done = commit()
    assert done.returncode == 0, done.stderr
    assert (repository / "old" / "a.py").read_text() == STEP


def test_many_files_are_checked_in_one_process(repository: Path, commit: Commit) -> None:
    for number in range(300):
        (repository / f"a_{number}.py").write_text("x = 1\n")
    (repository / "train.py").write_text(STEP)
    done = commit()
    assert done.returncode == 1
    assert done.stderr.count("Found 1 finding") == 1
    assert "All checks passed" not in done.stderr


def test_the_baseline_of_a_project_holds_for_the_hooks(repository: Path, commit: Commit) -> None:
    (repository / "mslint.toml").write_text('baseline = "known.toml"\n')
    (repository / "a.py").write_text("x = 1  # mslint: ignore[no-such-rule]\n")
    assert "`mslint baseline write` makes the baseline" in commit().stderr
    subprocess.run([sys.executable, "-m", "mslint", "baseline", "write"], cwd=repository, check=True)
    (repository / "a.py").write_text("y = 2\nx = 1  # mslint: ignore[no-such-rule]\n")
    done = commit()
    assert done.returncode == 0, done.stderr
