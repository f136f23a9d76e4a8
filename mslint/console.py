"""What is said beside the report: one line each, on standard error, so that standard output holds the report alone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TextIO

from mslint.language import translated


class UsageError(Exception):
    """Something is wrong with the command line or the configuration; the text is all that the user needs to see."""


def error(message: str) -> None:
    """Say why (part of) the work was not done."""
    _say(translated("error: {message}", message=message))


def warning(message: str) -> None:
    """Say what may not be as the user thinks."""
    _say(translated("warning: {message}", message=message))


def _say(line: str) -> None:
    # Nobody may be listening: Python has no stream for a closed descriptor, and print() would take standard output.
    if sys.stderr is None:
        return
    Progress.erase()
    try:
        print(line, file=sys.stderr)
    except OSError:
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Let what ``stream`` still holds go nowhere, or the interpreter fails once more at its end, on flushing it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Progress:
    """How far long work has come: one line on standard error, on a terminal alone, that is gone when the work is done."""

    _PATIENCE = 1.0
    """Seconds of work that need no explanation."""
    _PAUSE = 0.1
    _on_screen = False

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._next = time.monotonic() + self._PATIENCE
        self._wanted = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def step(self, name: str) -> None:
        """Say that the work on ``name`` begins."""
        self._done += 1
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._PAUSE
            line = f"{min(self._done, self._total)}/{self._total} {name}"
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            sys.stderr.write(f"\r\x1b[K{_fitting(line, width - 1)}")
            sys.stderr.flush()
            Progress._on_screen = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.erase()

    @classmethod
    def erase(cls) -> None:
        """Make room for another line."""
        if cls._on_screen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            cls._on_screen = False


def _fitting(line: str, width: int) -> str:
    """Return what of ``line`` fits in ``width`` cells, of which other characters than ASCII may take two."""
    cells = accumulate(1 if c.isascii() else 2 for c in line)
    return "".join(c if c.isprintable() else "?" for c, end in zip(line, cells, strict=True) if end <= width)


@contextmanager
def remedy(advice: str) -> Iterator[None]:
    """Add to a UsageError what its reader can do."""
    try:
        yield
    except UsageError as problem:
        raise UsageError(f"{problem} ({advice})") from None


def internal_error(culprit: str, filename: str, exception: BaseException) -> str:
    """Return the message for a failure of ours (or of a plugin); the traceback only for those who ask for it."""
    if os.environ.get("MSLINT_DEBUG") != "1" and (known := _known_limit(filename, exception)):
        return known
    said = str(exception).partition("\n")[0][:200]
    message = f"{culprit} failed on {filename}: {type(exception).__name__}: {said}"
    if os.environ.get("MSLINT_DEBUG") == "1":
        import traceback

        return f"{message}\n{''.join(traceback.format_exception(exception))}"
    asked = translated("internal error, please report it; MSLINT_DEBUG=1 shows the traceback")
    return f"{message} ({asked})"


def _known_limit(filename: str, exception: BaseException) -> str | None:
    """Return what the owner of the file can do about ``exception``, where it is the file that asks too much of us."""
    if isinstance(exception, RecursionError):
        return f"{filename}: nested too deeply to be rewritten or judged; split its longest expression or chain of elif"
    if isinstance(exception, UnicodeEncodeError) and "surrogates" in exception.reason:
        name = exception.object.encode("utf-8", "backslashreplace").decode()
        return f"{filename}: the name of a file in its project is not UTF-8 ({name}); rename that file"
    return None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question for the known word that ``word`` may stand for, empty if nothing is near."""
    import difflib

    by_fold = {name.casefold(): name for name in known}
    matches = difflib.get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.7)
    return translated("; did you mean {word}?", word=by_fold[matches[0]]) if matches else ""


def has_colour(stream: TextIO) -> bool:
    """Tell whether ``stream`` is read by a person at a terminal who has not asked for plain text (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")
