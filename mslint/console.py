"""What is said beside the report: one line each, on standard error, so that standard output holds the report alone."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from typing import TextIO


class UsageError(Exception):
    """Something is wrong with the command line or the configuration; the text is all that the user needs to see."""


def error(message: str) -> None:
    """Say why (part of) the work was not done."""
    print(f"error: {message}", file=sys.stderr)


def warning(message: str) -> None:
    """Say what may not be as the user thinks."""
    print(f"warning: {message}", file=sys.stderr)


def internal_error(culprit: str, filename: str, exception: BaseException) -> str:
    """Return the message for a failure of ours (or of a plugin); the traceback only for those who ask for it."""
    said = str(exception).partition("\n")[0][:200]
    message = f"{culprit} failed on {filename}: {type(exception).__name__}: {said}"
    if os.environ.get("MSLINT_DEBUG") == "1":
        return f"{message}\n{''.join(traceback.format_exception(exception))}"
    return f"{message} (internal error, please report it; MSLINT_DEBUG=1 shows the traceback)"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question for the known word that ``word`` may stand for, empty if nothing is near."""
    import difflib

    by_fold = {name.casefold(): name for name in known}
    matches = difflib.get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.5)
    return f"; did you mean {by_fold[matches[0]]}?" if matches else ""


def has_colour(stream: TextIO) -> bool:
    """Tell whether ``stream`` is read by a person at a terminal who has not asked for plain text (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")
