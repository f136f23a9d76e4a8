"""Rules and codemods that other distributions bring along."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from functools import cache
from typing import TypeVar

from mslint.console import warning

Kind = TypeVar("Kind")


def third_party(
    group: str, kind: type[Kind], attributes: Collection[str], own: Collection[str]
) -> Iterator[type[Kind]]:
    """Yield the subclasses of ``kind`` that installed distributions register in ``group``.

    ``own`` are the targets that we register ourselves (for others to find) and know without this scan. A plugin that
    does not load or lacks one of ``attributes`` is named in a warning and left out: it is no reason to check nothing.
    """
    if not _may_be_registered(os.fsencode(group), tuple(sys.path)):
        return
    from importlib.metadata import entry_points  # takes longer to import than most files to be checked

    for entry in entry_points(group=group):
        if entry.value in own:
            continue
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as exception:
            warning(f"plugin {entry.name} ({entry.value}) does not load: {type(exception).__name__}: {exception}")
            continue
        missing = [name for name in attributes if not hasattr(loaded, name)]
        if not (isinstance(loaded, type) and issubclass(loaded, kind)):
            warning(f"plugin {entry.name} ({entry.value}) is no {kind.__name__}")
        elif missing:
            warning(f"plugin {entry.name} ({entry.value}) lacks {', '.join(missing)}")
        else:
            yield loaded


def installed(path: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
    """Yield the folders that describe the distributions in the folders of ``path``, which is a ``sys.path``.

    Raises OSError for what is there but no folder: an archive, of which only Python knows what is in it.
    """
    for place in path:
        if os.path.exists(place or "."):
            with os.scandir(place or ".") as entries:
                yield from (entry for entry in entries if entry.name.endswith((".dist-info", ".egg-info", "EGG-INFO")))


def _may_be_registered(group: bytes, path: tuple[str, ...]) -> bool:
    """Tell whether a distribution other than ours says something about ``group``."""
    registered = _registered(path)
    return registered is None or group in registered


@cache
def _registered(path: tuple[str, ...]) -> bytes | None:
    """Return all that distributions other than ours register; None if only Python can tell."""
    try:
        others = [entry for entry in installed(path) if not entry.name.startswith("mslint-")]
        return b"\n".join(map(_entry_points, others))
    except OSError:
        return None


def _entry_points(entry: os.DirEntry[str]) -> bytes:
    try:
        with open(os.path.join(entry.path, "entry_points.txt"), "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
