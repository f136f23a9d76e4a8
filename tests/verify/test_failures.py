"""Scripts that do not train, do not end or do not behave get a reason, in bounded time, and touch nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mslint.findings import Verdict

from .conftest import Against
from .scripts import LOOP, VALUE_AND_GRAD, script, step_cell

GOOD = step_cell(VALUE_AND_GRAD)


# Name: the script, and what the reason says of it.
FAILURES = {
    "raises": (script("raise KeyError('no data set')\n"), "raised KeyError: 'no data set' (train.py:"),
    "tells_its_path": ("raise OSError(__file__)\n", "raised OSError: /"),
    "never_trains": (script("print(model(Tensor(np.ones((4, 6), np.float32)), 1.0))\n"), "without a training step"),
    "exits": (script("import sys\nsys.exit('usage: train DATA')\n"), "exited with usage: train DATA"),
    "leaves": (script("import os\nos._exit(7)\n"), "ended the process itself with exit code 7"),
    "segfaults": (script("import ctypes\nctypes.string_at(0)\n"), "crashed with SIGSEGV"),
    "floods": ("while True:\n    print('x' * 1000)\n", "printed more than 8 MB"),
    "does_not_parse": ("def f(:\n", "raised SyntaxError"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_unverified_with_the_reason(name: str, against: Against) -> None:
    text, reason = FAILURES[name]
    verification = against(text, text + "\n", modes=["pynative"])
    assert verification.verdict is Verdict.UNVERIFIED
    assert reason in verification.reason
    # The script runs in a copy of its folder: what is told is where the script itself lies.
    assert "mslint-verify-" not in verification.reason + verification.modes[0].output
    assert not verification.steps


def test_a_hanging_script_is_ended_in_time(against: Against) -> None:
    began = time.monotonic()
    text = "import subprocess, time\nprint('waiting')\nsubprocess.Popen(['sleep', '987654'])\ntime.sleep(987654)\n"
    verification = against(text, text, modes=["pynative"], timeout=5)
    assert time.monotonic() - began < 20
    assert verification.verdict is Verdict.UNVERIFIED
    assert "did not end within 5 s" in verification.reason
    assert verification.modes[0].output.endswith("waiting")
    assert "sleep 987654" not in _processes()


def test_what_was_had_before_a_crash_is_kept(against: Against) -> None:
    text = step_cell(VALUE_AND_GRAD, LOOP + "    import ctypes\n    ctypes.string_at(0)\n")
    verification = against(text, text, modes=["pynative"])
    assert verification.verdict is Verdict.EQUIVALENT
    assert len(verification.steps) == 1
    assert "crashed with SIGSEGV later" in verification.reason


def test_a_rewrite_that_breaks_the_script_is_different(against: Against) -> None:
    verification = against(GOOD, GOOD.replace("ms.value_and_grad", "ms.no_such_thing"), modes=["pynative"])
    assert verification.verdict is Verdict.DIFFERENT
    assert "the rewritten script raised AttributeError" in verification.reason


BREAKING = {
    "python": ("pynative", "raise ValueError('lost')", "raised ValueError: lost (train.py:47)"),
    "process": ("pynative", "import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
    "kernel": ("pynative", "ops.Assert()(loss < 0, [loss])", "raised RuntimeError: assert failed (train.py:"),
    "graph_kernel": ("graph", "ops.Assert()(loss < 0, [loss])", "raised RuntimeError: assert failed (train.py:"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_rewrite_that_breaks_within_a_step_is_different(name: str, against: Against) -> None:
    mode, statement, said = BREAKING[name]
    verification = against(GOOD, step_cell(f"{VALUE_AND_GRAD}\n        {statement}"), modes=[mode])
    assert verification.verdict is Verdict.DIFFERENT
    assert verification.reason.startswith(f"the rewritten script {said}")
    assert "the original does not fail" in verification.reason


def test_memory_is_limited(against: Against) -> None:
    text = "import numpy as np\nblocks = [np.empty(10**9, np.uint8) for _ in range(100)]\n"
    verification = against(text, text, modes=["pynative"], memory_gb=6)
    assert verification.verdict is Verdict.UNVERIFIED
    assert "MemoryError" in verification.reason


def test_more_memory_than_can_be_counted_is_no_limit(against: Against) -> None:
    verification = against(GOOD, GOOD + "\n", modes=["pynative"], memory_gb=1e12)
    assert verification.verdict is Verdict.EQUIVALENT


# A script whose child and grandchild wait without end; both are easily found.
WAITING = "import subprocess, time\nprocess = subprocess.Popen(['sleep', '976543'])\nprint('waiting')\nprocess.wait()\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_lives_on_when_mslint_itself_is_killed(number: int, tmp_path: Path) -> None:
    project, scratch = tmp_path / "project", tmp_path / "temporary"
    project.mkdir()
    scratch.mkdir()
    (project / "train.py").write_text(WAITING)
    process = subprocess.Popen(
        [sys.executable, "-m", "mslint", "verify", "train.py", "--against", "train.py", "--mode", "pynative"],
        cwd=project,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    _wait_until(lambda: "sleep 976543" in _processes())
    process.send_signal(number)
    process.wait()
    _wait_until(lambda: "sleep 976543" not in _processes() and str(scratch) not in _processes())
    _wait_until(lambda: not list(scratch.iterdir()))
    assert [path.name for path in project.iterdir()] == ["train.py"]


DEADLOCK = """\
import threading
import numpy as np
from mindspore.dataset import GeneratorDataset


class Stuck:
    def __len__(self):
        return 8

    def __getitem__(self, number):
        threading.Event().wait()


print("loading", flush=True)
for row in GeneratorDataset(Stuck(), ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(4):
    print(row)
"""


def test_a_loader_whose_workers_wait_for_ever(against: Against) -> None:
    verification = against(DEADLOCK, DEADLOCK + "\n", modes=["pynative"], timeout=10)
    assert verification.verdict is Verdict.UNVERIFIED
    assert "did not end within 10 s" in verification.reason
    assert "loading" in verification.modes[0].output
    assert not _descendants_that_run_jobs()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _descendants_that_run_jobs() -> list[str]:
    """The children of the fork servers of this process."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    servers = {pid for pid, parent, arguments in rows if parent == str(os.getpid()) and "forkserver" in arguments}
    assert servers
    return [arguments for _, parent, arguments in rows if parent in servers]


def _processes() -> str:
    return subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
