"""Which Python files lie under the paths a user names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SKIPPED = frozenset({"__pycache__", "node_modules", "build", "site-packages"})
"""Folders that hold nobody's own source; those with a name in dots and virtual environments are skipped too."""


Exclusion = Callable[[Path, bool], bool]
"""Tells of an absolute path, and whether it is a folder, that it is to be left out."""


def python_files(paths: Iterable[Path], excluded: Exclusion = lambda path, is_folder: False) -> list[Path]:
    """Return the Python files under ``paths``, sorted, each file once.

    A file that is named is always taken, whatever it is called. Folders are walked, without what ``.gitignore`` files
    and ``excluded`` leave out; links to folders are not followed, so that loops do no harm and nothing outside is met.
    """
    paths = list(paths)
    named = [path for path in paths if not path.is_dir()]
    walked = [file for path in paths if path.is_dir() for file in _walk(path, excluded)]
    first: dict[str, Path] = {}
    # Named files and real ones first: of several names for one file, those are what the user knows it by.
    for path in [*named, *sorted(walked, key=lambda file: (file.is_symlink(), file))]:
        first.setdefault(os.path.realpath(path), path)
    return sorted(first.values())


def _walk(root: Path, excluded: Exclusion) -> Iterator[Path]:
    above = _ignore_files_above(root)
    if _ignored(root.resolve(), True, above):
        above = []  # Asked for by name: what ignores the folder as a whole says nothing about what is in it.
    pending = [(root, root.resolve(), above)]
    while pending:
        folder, resolved, rules = pending.pop()
        rules = [*rules, *_ignore_file(resolved, resolved / ".gitignore")]
        try:
            entries = list(os.scandir(folder))
        except PermissionError:
            continue
        for entry in entries:
            path, absolute = folder / entry.name, resolved / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if _skipped(path) if is_folder else not (entry.name.endswith(".py") and entry.is_file()):
                continue
            if excluded(absolute, is_folder) or _ignored(absolute, is_folder, rules):
                continue
            if is_folder:
                pending.append((path, absolute, rules))
            else:
                yield path


def _skipped(folder: Path) -> bool:
    return folder.name in SKIPPED or folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()


IgnoreRules = tuple[Path, "GitIgnoreSpec"]
"""A folder and the patterns that hold below it."""


def _ignore_files_above(root: Path) -> list[IgnoreRules]:
    """Return what the repository that ``root`` lies in says about it, outermost first; nothing outside a repository."""
    root = root.resolve()
    for repository in [root, *root.parents]:
        if (repository / ".git").exists():
            break
    else:
        return []
    between = [folder for folder in reversed(root.parents) if folder.is_relative_to(repository)]
    rules = _ignore_file(repository, repository / ".git" / "info" / "exclude")
    return [*rules, *(rule for folder in between for rule in _ignore_file(folder, folder / ".gitignore"))]


def _ignore_file(folder: Path, file: Path) -> list[IgnoreRules]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [(folder, patterns(tuple(lines)))]


@cache
def patterns(lines: tuple[str, ...]) -> GitIgnoreSpec:
    """Return what matches the lines of a ``.gitignore`` file."""
    from pathspec import GitIgnoreSpec  # 20 ms that a tree without such patterns need not pay

    return GitIgnoreSpec.from_lines(lines)


def _ignored(path: Path, is_folder: bool, rules: list[IgnoreRules]) -> bool:
    """Tell whether the absolute ``path`` is left out: the innermost file with a word on it decides."""
    for folder, spec in reversed(rules):
        verdict = matched(spec, path.relative_to(folder), is_folder)
        if verdict is not None:
            return verdict
    return False


def matched(spec: GitIgnoreSpec, path: Path, is_folder: bool = False) -> bool | None:
    """Tell whether the relative ``path`` is matched by the patterns or exempted by a ``!``; None if neither."""
    return spec.check_file(path.as_posix() + ("/" if is_folder else "")).include
