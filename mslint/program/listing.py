"""Which Python files a project has, and which of its folders nobody looks into."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


@dataclass(frozen=True)
class Listing:
    """The Python files under some folders, by absolute name.

    ``folders`` were walked; ``closed`` were not (hidden, built, installed, links), and may hold more. ``complete`` unless
    there were more files than are worth listing.
    """

    files: frozenset[str]
    folders: frozenset[str]
    closed: frozenset[str]
    complete: bool

    def knows(self, name: str) -> bool:
        """Tell whether the listing can say of the file ``name`` that it does not exist."""
        folder = os.path.dirname(name)
        while folder not in self.folders:
            above = os.path.dirname(folder)
            if folder in self.closed or above == folder:
                return False
            folder = above
        return self.complete


def list_files(tops: Iterable[str], most: int) -> Listing:
    """List the Python files under ``tops``, so long as there are no more than ``most``."""
    files: set[str] = set()
    folders: set[str] = set()
    closed: set[str] = set()
    pending = list(tops)
    while pending and len(files) <= most:
        folder = pending.pop()
        if folder in folders:
            continue
        folders.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            closed.add(folder)
            folders.discard(folder)
            continue
        for entry in entries:
            if _is_folder(entry):
                skipped = entry.name.startswith(".") or entry.name in _SKIPPED or entry.is_symlink()
                (closed.add if skipped else pending.append)(entry.path)
            elif entry.name.endswith(".py") and _is_file(entry):
                files.add(entry.path)
    return Listing(frozenset(files), frozenset(folders), frozenset(closed), not pending and len(files) <= most)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # links that lead to each other
        return False
