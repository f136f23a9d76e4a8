"""Rules and codemods that other distributions bring along."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.metadata import entry_points
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
