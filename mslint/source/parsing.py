"""Python's own parser, for texts that may be no Python."""

from __future__ import annotations

import ast
import warnings


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of ``text``, or None if Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like: other tools' business
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
