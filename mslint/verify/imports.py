"""Which files of its own project a script imports; found by reading, nothing is imported."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from mslint.source.text import read


def project_files(script: Path) -> list[Path]:
    """The script and, in the order of their finding, the files that it imports from its own folder or package.

    Imports are looked up as python would: in the script's folder, relative ones in the file's own package. A file that
    does not parse imports nothing. Raises Unreadable if one of them cannot be read.
    """
    script = Path(os.path.realpath(script))
    found = {script: None}
    waiting = [script]
    while waiting:
        file = waiting.pop()
        try:
            tree = ast.parse(read(file).text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for path in _imported(tree, file, script.parent):
            if path not in found:
                found[path] = None
                waiting.append(path)
    return list(found)


def _imported(tree: ast.AST, file: Path, search: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(search, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = search if node.level == 0 else file.parents[min(node.level, len(file.parents)) - 1]
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files(base, [*parts, alias.name])


def _files(base: Path, parts: list[str]) -> Iterator[Path]:
    """The modules and packages that importing a dotted name loads; the last part may be a name in a module."""
    folder = base
    for part in parts:
        for candidate in (folder / f"{part}.py", folder / part / "__init__.py"):
            if os.path.isfile(candidate):
                yield candidate.resolve()
        folder = folder / part
