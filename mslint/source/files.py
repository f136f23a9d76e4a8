"""Which Python files and notebooks lie under the paths a user names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mslint.source.text import NOTEBOOK_SUFFIX, Unreadable, require_regular, unreadable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SKIPPED = frozenset({"__pycache__", "node_modules", "build", "site-packages"})
"""Folders that hold nobody's own source, left out unless something else is excluded in their place.

Those whose names begin with a dot and virtual environments are never walked.
"""

_GENERATED = re.compile(rb"^#[^\n]*(@generated|generated\b[^\n]*do not edit)", re.IGNORECASE | re.MULTILINE)
_HEAD = 1024


Exclusion = Callable[[Path, bool], bool]
"""Tells of an absolute path, and whether it is a folder, that it is to be left out."""


Complaint = Callable[[Unreadable], None]
"""Hears of a path that cannot be looked at; the others are."""


def _refuse(problem: Unreadable) -> None:
    raise problem


def python_files(
    paths: Iterable[Path],
    excluded: Exclusion = lambda path, is_folder: is_folder and path.name in SKIPPED,
    complain: Complaint = _refuse,
) -> list[Path]:
    """Return the Python files and notebooks under ``paths``, sorted, each file once.

    A file that is named is always taken, whatever it is called. Folders are walked, without what ``.gitignore`` files
    and ``excluded`` leave out and what says of itself that a program wrote it; links to folders are not followed, so that
    loops do no harm and nothing outside is met.
    """
    named: list[Path] = []
    walked: list[_Walked] = []
    for path in paths:
        if os.path.isdir(path):
            walked += _walk(path, excluded, complain)
        elif _is_there(path, complain):
            named.append(path)
    first: dict[str, Path] = {}
    # Named files and real ones first: of several names for one file, those are what the user knows it by.
    for path in named:
        first.setdefault(os.path.realpath(path), path)
    for file in sorted(walked, key=lambda file: (file.is_link, file.path.parts)):
        first.setdefault(file.real, file.path)
    return sorted(first.values(), key=lambda path: path.parts)


class _Walked(NamedTuple):
    """A file that was met in a folder, and where it really lies."""

    path: Path
    real: str
    is_link: bool


def located(path: Path) -> Path:
    """Return where ``path`` lies: absolute, its folder free of symbolic links; a file keeps the name it is reached by."""
    if os.path.isdir(path):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent), path.name)


def _is_there(path: Path, complain: Complaint) -> bool:
    try:
        require_regular(path)
    except OSError as error:
        complain(unreadable(path, error))
    except Unreadable as problem:
        complain(problem)
    else:
        return True
    return False


def _walk(root: Path, excluded: Exclusion, complain: Complaint) -> Iterator[_Walked]:
    above = _ignore_files_above(root)
    if _ignored(root.resolve(), True, above):
        above = []  # Asked for by name: what ignores the folder as a whole says nothing about what is in it.
    pending = [(root, root.resolve(), above)]
    while pending:
        folder, resolved, rules = pending.pop()
        rules = [*rules, *_ignore_file(resolved, resolved / ".gitignore")]
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            complain(unreadable(folder, error))
            continue
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.name.endswith((".py", NOTEBOOK_SUFFIX)):
                continue
            path, absolute = folder / entry.name, resolved / entry.name
            if is_folder and _skipped(path):
                continue
            if excluded(absolute, is_folder) or _ignored(absolute, is_folder, rules):
                continue
            if is_folder:
                pending.append((path, absolute, rules))
            elif _is_file(path, complain) and not _generated(path):
                is_link = entry.is_symlink()
                yield _Walked(path, os.path.realpath(path) if is_link else str(absolute), is_link)


def _is_file(path: Path, complain: Complaint) -> bool:
    """Tell whether ``path`` is a regular file, or a link to one; not so named pipes and links to nowhere."""
    try:
        # The folder's entry would tell the kind, but not that the folder may be listed and its files not reached.
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        complain(unreadable(path, error))
        return False


def _generated(path: Path) -> bool:
    """Tell whether a comment at the head of the file says ``@generated``, or ``Generated by ... DO NOT EDIT``."""
    try:
        with open(path, "rb") as file:
            return _GENERATED.search(file.read(_HEAD)) is not None
    except OSError:
        return False  # whoever reads it will say why it cannot be


def _skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or os.path.exists(folder / "pyvenv.cfg")


IgnoreRules = tuple[Path, "GitIgnoreSpec"]
"""A folder and the patterns that hold below it."""


def _ignore_files_above(root: Path) -> list[IgnoreRules]:
    """Return what the repository that ``root`` lies in says about it, outermost first; nothing outside a repository."""
    root = root.resolve()
    for repository in [root, *root.parents]:
        if os.path.exists(repository / ".git"):
            break
    else:
        return []
    between = [folder for folder in reversed(root.parents) if folder.is_relative_to(repository)]
    rules = _ignore_file(repository, repository / ".git" / "info" / "exclude")
    return [*rules, *(rule for folder in between for rule in _ignore_file(folder, folder / ".gitignore"))]


def _ignore_file(folder: Path, file: Path) -> list[IgnoreRules]:
    if not os.path.isfile(file):
        return []
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [(folder, patterns(tuple(filter(_is_pattern, lines))))]


def _is_pattern(line: str) -> bool:
    """Tell whether ``line`` means anything; git passes over what does not."""
    try:
        patterns((line,))
    except ValueError:
        return False
    return True


@cache
def patterns(lines: tuple[str, ...]) -> GitIgnoreSpec:
    """Return what matches the lines of a ``.gitignore`` file. Raises ValueError if one of them cannot be understood."""
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
