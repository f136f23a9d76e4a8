"""Runs a child in bounded time, memory and output, and tells how it ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mslint.verify.forkserver import ForkServer
from mslint.verify.job import REPORT, Job, job_file, mirror_folder, rank_folder

_RANK = Path(__file__).parent / "child" / "__main__.py"
_MOST_OUTPUT = 8_000_000
_TAIL_LINES = 12
_TAIL_CHARACTERS = 1_500
_REGULAR = ("trained", "ended")
# How long ranks may take to end by themselves once one of them has failed.
_GRACE = 5.0
_POLL_SECONDS = 0.02


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
    process = _Process(job)
    limit = process.wait(timeout, stop, [process.output], lambda: False)
    return _run(job, out, process.output, limit, process.code)


def launch(job: Job, timeout: float, stop: threading.Event) -> list[Run]:
    """Run the job in as many ranks as its world has, by MindSpore's msrun; one run for each."""
    out = Path(job.out)
    ranks = [rank_folder(out, rank) for rank in range(job.conditions.ranks)]
    logs = out / "logs"
    number = str(job.conditions.ranks)
    arguments = [
        *("--worker_num", number, "--local_worker_num", number, "--master_addr", "127.0.0.1"),
        *("--master_port", str(_free_port()), "--log_dir", str(logs), "--join", "True"),
        # It takes the first python of the path.
        *("python", str(_RANK), str(job_file(out))),
    ]
    process = _Process(job, arguments)
    outputs = [logs / f"worker_{rank}.log" for rank in range(job.conditions.ranks)]
    failed_at: float | None = None

    def over() -> bool:
        """Ranks that are done wait for the others; those wait for one that failed, in vain."""
        nonlocal failed_at
        ends = [_read(rank / REPORT).get("end") for rank in ranks]
        if failed_at is None and any(end not in (None, *_REGULAR) for end in ends):
            failed_at = time.monotonic()
        return all(ends) or (failed_at is not None and time.monotonic() - failed_at > _GRACE)

    limit = process.wait(timeout, stop, [process.output, *outputs], over)
    printed = [output if output.exists() and output.stat().st_size else process.output for output in outputs]
    runs = [_run(job, rank, output, limit, process.code) for rank, output in zip(ranks, printed, strict=True)]
    failed = next((rank for rank, run in enumerate(runs) if run.report.get("end") not in (None, *_REGULAR)), None)
    if failed is None or limit:
        return runs
    return [
        run if run.report.get("end") else replace(run, failure=f"was ended, as rank {failed} failed", broke=False)
        for run in runs
    ]


class _Process:
    """A child that does a job, or msrun, which starts such children."""

    def __init__(self, job: Job, msrun: Sequence[str] | None = None) -> None:
        out = Path(job.out)
        out.mkdir(parents=True)
        (out / "om").mkdir()
        job.write(job_file(out))
        self.output = out / "output"
        self.output.touch()
        # Failing compilations and kernels leave their files there instead of in the working directory.
        environment = {**_environment(), "MS_OM_PATH": str(out / "om")}
        self._server = _server()
        self._child = self._server.start(job_file(out), self.output, environment, msrun)
        self.code = 0

    def wait(self, timeout: float, stop: threading.Event, outputs: list[Path], over: Callable[[], bool]) -> str | None:
        """Until the child ends, or all of it is ended; returns the limit that it went beyond, if it did."""
        deadline = time.monotonic() + timeout
        limit = None
        try:
            while self._child.poll() is None and not over():
                if sum(output.stat().st_size for output in outputs if output.exists()) > _MOST_OUTPUT:
                    limit = f"printed more than {_MOST_OUTPUT // 1_000_000} MB"
                elif time.monotonic() > deadline:
                    limit = f"did not end within {timeout:g} s"
                if limit or stop.wait(_POLL_SECONDS):
                    break
        finally:
            # All that it has started, too: workers of data sets must not outlive the run.
            self.code = self._child.end()
            if not self._server.alive:
                self.output.write_bytes(self.output.read_bytes() + self._server.output)
        return limit


_lock = threading.Lock()
_servers: list[ForkServer] = []


def _server() -> ForkServer:
    """The one of this process, which lives as long; a new one if that has been killed."""
    with _lock:
        if not _servers or not _servers[-1].alive:
            _servers.append(ForkServer(_environment()))
        return _servers[-1]


def _environment() -> dict[str, str]:
    """What a child finds of this process's environment, with what keeps it quiet."""
    environment = {
        "GLOG_v": "3",
        **os.environ,
        "MPLBACKEND": "Agg",
        "PYTHONUNBUFFERED": "1",
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath))),
    }
    environment.pop("MS_JIT", None)
    return environment


def _run(job: Job, out: Path, output: Path, limit: str | None, code: int) -> Run:
    # What lies in the mirror lies at its original's full path there: this tells of the original.
    mirror = str(mirror_folder(Path(job.scratch)))
    report = _read(out / REPORT, mirror)
    failure, broke = (limit, False) if limit and not report.get("end") else _ending(report, code)
    return Run(out, report, failure, broke, _tail(output).replace(mirror, ""))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _ending(report: dict[str, Any], code: int) -> tuple[str | None, bool]:
    end = report.get("end")
    if end in _REGULAR:
        return None, False
    if end is not None:
        return str(end), True
    if not report:
        return "could not start MindSpore (the output says why; it needs some GB of memory)", False
    if code < 0:
        return f"crashed with {signal.Signals(-code).name}", True
    return f"ended the process itself with exit code {code}", True


def _read(path: Path, mirror: str = "") -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        report: dict[str, Any] = json.loads(text.replace(mirror, "") if mirror else text)
    except (OSError, ValueError):
        return {}
    return report


def _tail(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _TAIL_CHARACTERS))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]
