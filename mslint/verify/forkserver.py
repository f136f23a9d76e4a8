"""The process that has imported MindSpore, of which every run is a fork: the import is paid for once."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_SERVER = Path(__file__).parent / "child" / "forkserver.py"


class Child:
    """A process that the server has forked, in a session of its own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._told = b""
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code as `subprocess` tells it, None while it lives."""
        with suppress(BlockingIOError):
            while self._code is None:
                self._listen(socket.MSG_DONTWAIT)
        return self._code

    def end(self) -> int:
        """End it, if it has not ended, with all that it has started; return its exit code."""
        if self._code is None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)
        while self._code is None:
            self._listen()
        self._connection.close()
        return self._code

    def _listen(self, flags: int = 0) -> None:
        try:
            heard = self._connection.recv(64, flags)
        except ConnectionError:
            heard = b""
        self._told += heard
        number, _, code = self._told.partition(b" ")
        if code.endswith(b"."):
            self._code = int(code[:-1])
        elif not heard:
            # The server has been killed; then the kernel kills its children, but not what those have started.
            self._code = -signal.SIGKILL
            with suppress(ProcessLookupError, ValueError):
                os.killpg(int(number), signal.SIGKILL)


class ForkServer:
    """Lives until this process ends, however it does; it then ends its children and removes their folders."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - as long as this object
        self._process = subprocess.Popen(
            [sys.executable, str(_SERVER)],
            stdin=theirs.fileno(),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
            cwd=os.sep,
        )
        theirs.close()
        atexit.register(self._end)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> bytes:
        """What it printed itself: why it could not import MindSpore."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0)

    def start(self, job: Path, output: Path, environment: Mapping[str, str], msrun: Sequence[str] | None) -> Child:
        """Fork a child that runs the job, or ``msrun`` with these arguments; it prints into the file ``output``."""
        ours, theirs = socket.socketpair()
        request = {"job": str(job), "output": str(output), "environment": dict(environment), "msrun": msrun}
        with suppress(OSError):  # of a server that has ended the connection tells that the child has
            with theirs, self._lock:
                socket.send_fds(self._control, [b"."], [theirs.fileno()])
            ours.sendall(json.dumps(request).encode() + b"\n")
        return Child(ours)

    def _end(self) -> None:
        self._control.close()
        self._process.wait()
        self._output.close()
