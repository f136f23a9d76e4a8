"""``mslint check --jobs``: whoever does the work, the findings are the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mslint.commands import examination, processes
from mslint.commands.processes import each
from mslint.console import UsageError

if TYPE_CHECKING:
    from conftest import Run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.fixture
def program(project: Path) -> Path:
    """Files of all kinds: connected and not, clean and not, one that nobody can parse."""
    (project / "pyproject.toml").touch()
    for name in ("rank-seed", "epsilon-add", "fragmented-slicing"):
        shutil.copytree(FIXTURES / name, project / name)
    (project / "plain.py").write_text("import torch\n")
    (project / "old.py").write_text("from plain import *\nold_call()\ncrash()\n")
    (project / "broken.py").write_text("def\n")
    return project


def test_one_process_and_several_find_the_same(cli: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = partial(cli, "check", "--output-format", "json", "--no-cache")
    one = check("--jobs", "1")
    assert (one.code, "the plugin's bug" in one.err) == (2, True)
    assert check("--jobs", "2") == check("--jobs", "5") == check() == one
    with monkeypatch.context() as patch:
        patch.setattr(processes, "each", partial(each, start="spawn"))
        assert check("--jobs", "2") == one
    monkeypatch.setattr(examination, "_WORTH_A_PROCESS", 100)
    monkeypatch.setattr(examination, "_processors", lambda: 3)
    assert check() == one
    assert cli("check", "--output-format", "json", "--jobs", "2") == one
    assert cli("check", "--output-format", "json", "--jobs", "2") == one


def test_files_by_themselves_and_their_folder_have_the_same_findings(cli: Run, program: Path) -> None:
    names = sorted(str(path.relative_to(program)) for path in program.rglob("*.py"))
    alone = [cli("check", "--output-format", "jsonl", name).out for name in names]
    assert "".join(alone) == cli("check", "--output-format", "jsonl").out


def test_processes_are_started_for_enough_work_alone(cli: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(processes, "each", refused)
    assert "started" not in cli("check").err
    assert "started" in cli("check", "--no-cache", "--jobs", "2").err


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5", ""])
def test_a_wrong_number_is_refused(cli: Run, program: Path, jobs: str) -> None:
    result = cli("check", "--jobs", jobs)
    assert (result.code, result.out) == (2, "")
    assert "--jobs" in result.err


def _double(number: int) -> int:
    return 2 * number


def _die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def _leave(number: int) -> int:
    os._exit(3)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_parts_are_answered_whichever_way_processes_start(start: str) -> None:
    assert dict(each(_double, range(7), 3, start)) == {number: 2 * number for number in range(7)}
    assert list(each(_double, [], 3, start)) == []


def _fail(number: int) -> int:
    raise KeyError(number)


def test_what_goes_wrong_in_a_process_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"KeyError: [0-2]"):
        list(each(_fail, range(3), 2))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("work", "reason"), [(_die, "SIGKILL"), (_leave, "exit code 3")])
def test_a_process_that_dies_is_one_clear_error(work: object, reason: str) -> None:
    with pytest.raises(UsageError, match=rf"ended before its work was done \({reason}\).*--jobs 1"):
        list(each(work, range(3), 2))  # type: ignore[arg-type]


STARTED = """
import os, sys, time
import mslint.commands.examination as examination

def wait(*_):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(60)

examination.examine = wait
from mslint.cli import main
sys.exit(main(["check", "--no-cache", "--jobs", "2"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_whoever_stops_it_stops_all_its_processes(program: Path, sent: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED], cwd=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stderr
    children = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(sent)
    assert process.wait(20) == code
    assert process.stderr.read() == ""
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []
