"""Work divided among processes that are copies of this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

from mslint.console import UsageError

Part = TypeVar("Part")
Answer = TypeVar("Answer")

START = "fork" if sys.platform == "linux" else "spawn"
"""A forked process has all that is known already; other systems' libraries do not outlive being forked."""


def each(
    work: Callable[[Part], Answer], parts: Sequence[Part], processes: int, start: str = START
) -> Iterator[tuple[int, Answer]]:
    """Yield the number and the answer of each part, as ``work`` gives them in so many processes.

    The parts are begun in order. Raises UsageError if a process dies; whatever ends the iteration ends the processes.
    """
    context = multiprocessing.get_context(start)
    sys.stdout.flush()  # or a forked process would write out what is waiting once more
    running: dict[Connection, BaseProcess] = {}
    pending = iter(range(len(parts)))
    try:
        for _ in range(min(processes, len(parts))):
            ours, theirs = context.Pipe()
            held = [*running, ours] if start == "fork" else []
            process = context.Process(  # type: ignore[attr-defined]
                target=_serve, args=(work, parts, theirs, held, os.getpid()), daemon=True
            )
            process.start()
            theirs.close()
            running[ours] = process
            ours.send(next(pending))
        while running:
            for answered in wait(list(running)):
                assert isinstance(answered, Connection)
                yield _received(answered, running[answered])
                number = next(pending, None)
                answered.send(number)
                if number is None:
                    running.pop(answered).join()
    finally:
        for process in running.values():
            process.kill()


def _received(connection: Connection, process: BaseProcess) -> tuple[int, Answer]:
    try:
        number, answer, failure = connection.recv()
    except (EOFError, OSError):
        process.join()
        code = process.exitcode or 0
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise UsageError(
            f"a process of mslint ended before its work was done ({reason}); if memory is short, try --jobs 1"
        ) from None
    if failure:
        raise RuntimeError(failure)
    return number, answer


def _serve(
    work: Callable[[Part], Answer], parts: Sequence[Part], connection: Connection, others: list[Connection], parent: int
) -> None:
    """Answer for the parts that are asked for until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asked will see to it
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    for other in others:
        other.close()
    with suppress(EOFError, ConnectionError):
        while (number := connection.recv()) is not None:
            try:
                answer: tuple[int, Answer | None, str] = (number, work(parts[number]), "")
            except Exception as exception:
                answer = (number, None, f"{type(exception).__name__}: {exception}")
            connection.send(answer)


def _leave_with(parent: int) -> None:
    """End this process when nobody waits for its answers any longer."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
