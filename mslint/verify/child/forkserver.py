"""Run as a file: imports MindSpore once, then forks a child for each job that it is asked for.

MindSpore has no thread of its own before the first context, data set or tensor operation (measured in 2.10.0: after the
import the process has its main thread and one of OpenBLAS, which knows how to fork), and keeps to that here: nothing of
MindSpore is called before a fork. It allows forks itself, for the workers of data sets.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

if sys.path[0] == str(Path(__file__).parent):
    del sys.path[0]
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from mslint.verify.child import script
from mslint.verify.job import Job

_POLL_SECONDS = 0.02


class _Server:
    """Has a connection for each child, on which it tells its number and how it ended: ``4711 -9.``

    Who asked for the child closes the connection to have it ended.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[socket.socket, int] = {}
        self._folders: set[Path] = set()

    def serve(self) -> NoReturn:
        """Until nobody can ask for anything any more, because mslint has ended, however it did."""
        while True:
            waiting = [self._control, *self._children]
            ready, _, _ = select.select(waiting, [], [], _POLL_SECONDS if self._children else None)
            if self._control in ready:
                asked, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
                if not asked:
                    self._end()
                self._fork(socket.socket(fileno=descriptors[0]))
            for connection, pid in list(self._children.items()):
                if connection in ready or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    self._bury(connection)

    def _fork(self, connection: socket.socket) -> None:
        with connection.makefile() as stream:
            request = json.loads(stream.readline())
        job = Job.read(Path(request["job"]))
        self._folders.add(Path(job.scratch).parent)
        pid = os.fork()
        if pid == 0:
            for inherited in (self._control, connection, *self._children):
                inherited.close()
            _become_child(request["environment"], request["output"])
            if request["msrun"] is not None:
                _launch(request["msrun"], job.out)
            script.run(job)
        self._children[connection] = pid
        with suppress(OSError):
            connection.sendall(b"%d " % pid)

    def _bury(self, connection: socket.socket) -> None:
        """End what is left of a child, workers of data sets, too, and tell how it itself ended."""
        pid = self._children.pop(connection)
        # Its number is not given away before it is waited for; before it has called setsid there is no such group.
        for end in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                end(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        with suppress(OSError):
            connection.sendall(b"%d." % os.waitstatus_to_exitcode(status))
        connection.close()

    def _end(self) -> NoReturn:
        for connection in list(self._children):
            self._bury(connection)
        for folder in self._folders:
            # Whoever ended in good order has removed it.
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _become_child(environment: dict[str, Any], output: str) -> None:
    """Leave the server's session, and see the world as a process started by mslint would."""
    os.setsid()
    script.end_with_the_parent()
    # Open in place of the control connection.
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY), (2, output, os.O_WRONLY)):
        descriptor = os.open(path, flags | os.O_APPEND)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None


def _launch(arguments: list[str], directory: str) -> NoReturn:
    """Be msrun, which starts the ranks of the job."""
    os.chdir(directory)
    sys.argv = ["msrun", *arguments]
    runpy.run_module("mindspore.parallel.cluster.run", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    server = _Server(socket.socket(fileno=0))
    script.prepare()
    server.serve()
