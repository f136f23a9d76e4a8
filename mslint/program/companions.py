"""Which files have much in common to be worked out: those that imports connect, whichever way they point."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mslint.program.project import Program


def companies(program: Program, imports: Mapping[Path, Collection[str]]) -> list[list[Path]]:
    """Divide the files into those that imports connect, directly or not.

    ``imports`` holds what each file imports, as written. A folder that is imported as a package without an ``__init__.py``
    brings along all that is in it.
    """
    leader: dict[Path, Path] = {path: path for path in imports}
    ordered = sorted(map(str, imports))

    def leader_of(path: Path) -> Path:
        while leader[path] != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    for path, targets in imports.items():
        for other in _others(program, path, targets, ordered):
            if other in leader:
                leader[leader_of(other)] = leader_of(path)
    found: dict[Path, list[Path]] = {}
    for path in sorted(imports):
        found.setdefault(leader_of(path), []).append(path)
    return list(found.values())


def _others(program: Program, path: Path, targets: Collection[str], ordered: list[str]) -> list[Path]:
    return [*program.found_by(path, targets), *_in_bare_folders(program, path, targets, ordered)]


def _in_bare_folders(program: Program, path: Path, targets: Iterable[str], ordered: list[str]) -> Iterator[Path]:
    for target in targets:
        if target.partition(".")[0] == "mindspore" or program.module(path, target) is not None:
            continue
        for folder in program.folders(path, target):
            beginning = folder + os.sep
            index = bisect_left(ordered, beginning)
            while index < len(ordered) and ordered[index].startswith(beginning):
                yield Path(ordered[index])
                index += 1
