"""Runs a child in bounded time, memory and output, and tells how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mslint.verify.job import REPORT, Job

_CHILD = Path(__file__).parent / "child" / "__main__.py"
_MOST_OUTPUT = 8_000_000
_TAIL_LINES = 12
_TAIL_CHARACTERS = 1_500


@dataclass(frozen=True)
class Run:
    """How a child ended, and what it reported until then."""

    out: Path
    report: dict[str, Any]
    failure: str | None
    """Why the script did not come to its regular end; None if it did."""
    broke: bool
    """The script itself failed: it raised, exited or crashed, whatever the machine's limits."""
    output: str
    """The end of what it printed."""

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.report.get("steps", [])
        return steps


def run(job: Job, timeout: float, stop: threading.Event) -> Run:
    """Run the job in a session of its own, until it ends or ``stop`` is set; nothing of it lives on afterwards.

    Standard output and error go to a file that is watched: a flood ends the run as a timeout does.
    """
    out = Path(job.out)
    out.mkdir(parents=True)
    (out / "om").mkdir()
    job_file, output_file = out / "job.json", out / "output"
    job.write(job_file)
    environment = {
        "GLOG_v": "3",
        **os.environ,
        # Failing compilations and kernels leave their files there instead of in the working directory.
        "MS_OM_PATH": str(out / "om"),
        "MPLBACKEND": "Agg",
        "PYTHONUNBUFFERED": "1",
    }
    environment.pop("MS_JIT", None)
    deadline = time.monotonic() + timeout
    limit = None
    with open(output_file, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(_CHILD), str(job_file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                if output_file.stat().st_size > _MOST_OUTPUT:
                    limit = f"printed more than {_MOST_OUTPUT // 1_000_000} MB"
                elif time.monotonic() > deadline:
                    limit = f"did not end within {timeout:g} s"
                if limit or stop.wait(0.05):
                    break
        finally:
            # The whole session: workers of data sets must not outlive the run.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    report = _read(out / REPORT)
    failure, broke = (limit, False) if limit else _ending(report, process.returncode)
    return Run(out, report, failure, broke, _tail(output_file))


def _ending(report: dict[str, Any], code: int) -> tuple[str | None, bool]:
    end = report.get("end")
    if end in ("trained", "ended"):
        return None, False
    if end is not None:
        return str(end), True
    if not report:
        return "could not start MindSpore (the output says why; it needs some GB of memory)", False
    if code < 0:
        return f"crashed with {signal.Signals(-code).name}", True
    return f"ended the process itself with exit code {code}", True


def _read(path: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return report


def _tail(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _TAIL_CHARACTERS))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]
