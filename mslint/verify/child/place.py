"""Where in the user's code something happens."""

from __future__ import annotations

import os
import sys


def caller(root: str) -> str | None:
    """File and line, relative to ``root``, of the innermost frame that runs code below it."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = os.path.abspath(frame.f_code.co_filename)
        if filename.startswith(root + os.sep):
            return f"{os.path.relpath(filename, root)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
