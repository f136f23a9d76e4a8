"""A temporary copy of a project in which a script can run and write without touching the user's files."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRATCH = "mslint-verify-"
"""How the names of our folders in the temporary directory begin."""
_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "mslint.toml")
_LARGEST_COPY = 1_000_000
_LARGEST_FOLDER = 2_000
_MOST_COPIES = 20_000


@dataclass(frozen=True)
class Mirror:
    """Where the copies are."""

    root: Path
    script: Path
    directory: Path
    """The working directory for the script."""


def project_root(script: Path, working_directory: Path, others: Mapping[Path, bytes]) -> Path:
    """The smallest folder that holds the script's project, the replaced files and, if it can, the working directory.

    The nearest folder above with a project's marker; without one the folder of the script or of its package. A home
    directory, the temporary directory or a file system's root is not taken for a project if the script lies deeper.
    """
    too_much = _too_much()
    folder = script.parent
    while (folder / "__init__.py").exists() and folder.parent not in too_much:
        folder = folder.parent
    for ancestor in script.parents:
        if ancestor in too_much:
            break
        if any((ancestor / marker).exists() for marker in _MARKERS):
            folder = ancestor if folder.is_relative_to(ancestor) else folder
            break
    if folder.is_relative_to(working_directory) and working_directory not in too_much:
        folder = working_directory
    return Path(os.path.commonpath([folder, *(path.parent for path in others)]))


def build(
    root: Path, script: Path, working_directory: Path, replacements: Mapping[Path, bytes], target: Path
) -> Mirror:
    """Rebuild ``root`` below ``target`` as real folders; ``replacements`` stand for the files they name.

    The copy lies at the original's full path below ``target``, with links to the original's neighbours, so that
    ``../data`` leads where it did. Large files and folders are links, too: the script reads the originals. Raises
    OSError if the script cannot be copied.
    """
    place = target / root.relative_to(root.anchor)
    place.mkdir(parents=True)
    _link_neighbours(root, place)
    _Copy(script, replacements, shallow=root in _too_much()).folder(root, place)

    def mirrored(path: Path) -> Path:
        return place / path.relative_to(root)

    inside = working_directory.is_relative_to(root) and mirrored(working_directory).is_dir()
    directory = mirrored(working_directory) if inside else mirrored(script.parent)
    return Mirror(place, mirrored(script), directory)


def _too_much() -> set[Path]:
    """Folders that hold more than a project."""
    return {Path(folder).resolve() for folder in (Path.home(), tempfile.gettempdir(), "/")}


def _link_neighbours(root: Path, place: Path) -> None:
    try:
        names = os.listdir(root.parent)
    except OSError:
        return
    for name in names if len(names) <= _LARGEST_FOLDER else ():
        if name != root.name:
            (place.parent / name).symlink_to(root.parent / name)


class _Copy:
    def __init__(self, script: Path, replacements: Mapping[Path, bytes], *, shallow: bool) -> None:
        """``shallow`` copies only the folders in which the script and the replaced files lie, and links the others."""
        self._shallow = shallow
        self._temporary = Path(tempfile.gettempdir()).resolve()
        self._replacements = replacements
        needed = [script, *replacements]
        self._needed = {script, *replacements}.union(*(path.parents for path in needed))
        self._copies = 0

    def folder(self, source: Path, target: Path) -> None:
        for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
            path = Path(entry.path)
            try:
                if path in self._replacements:
                    (target / entry.name).write_bytes(self._replacements[path])
                elif entry.is_dir():
                    self._inner_folder(entry, path, target / entry.name)
                else:
                    self._file(path, target / entry.name)
            except OSError:  # unreadable, or gone meanwhile: for the script it is missing
                if path in self._needed:
                    raise

    def _inner_folder(self, entry: os.DirEntry[str], source: Path, target: Path) -> None:
        needed = source in self._needed
        if source.parent == self._temporary and entry.name.startswith(SCRATCH):
            # The temporary directory lies in the project: this is where the copies go.
            return
        if not needed and (
            entry.name.startswith(".") or entry.name == "__pycache__" or (source / "pyvenv.cfg").exists()
        ):
            return
        large = self._shallow or self._copies > _MOST_COPIES or len(os.listdir(source)) > _LARGEST_FOLDER
        if not needed and (entry.is_symlink() or large):
            target.symlink_to(source.resolve())
            return
        target.mkdir()
        self.folder(source, target)

    def _file(self, source: Path, target: Path) -> None:
        status = source.stat()
        if not stat.S_ISREG(status.st_mode):
            return
        if status.st_size > _LARGEST_COPY and source not in self._needed:
            target.symlink_to(source.resolve())
            return
        self._copies += 1
        shutil.copyfile(source, target)
        # Modes count for tools that a script calls; the copy must stay writable, the original's mode may forbid it.
        target.chmod(stat.S_IMODE(status.st_mode) | stat.S_IWUSR)
