"""Where in the user's code something happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Code below these is none of the user's, wherever that lies.
_LIBRARIES = tuple({folder + os.sep for folder in (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))})


def of_a_library(filename: str) -> bool:
    """Whether a file of code is Python's, mslint's or an installed package's."""
    return filename.startswith(_LIBRARIES)


def caller(root: str) -> str | None:
    """File and line, relative to ``root``, of the innermost frame that runs code below it."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = os.path.abspath(frame.f_code.co_filename)
        if filename.startswith(root + os.sep):
            return f"{os.path.relpath(filename, root)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
