"""Where the modules are that the files of a program import."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from mslint.program.listing import Listing, list_files
from mslint.program.texts import Texts, is_file

_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
_MOST_MEMBERS = 5000
_MOST_LISTED = 50_000


class Modules(Texts):
    """The projects that the ``files`` being checked belong to, and which file of them an import reads."""

    def __init__(self, files: Sequence[Path], texts: Mapping[Path, str] | None = None) -> None:
        super().__init__(texts)
        self.files = [Path(os.path.abspath(file)) for file in files]
        self._modules: dict[tuple[str, str], tuple[Path | None, bool]] = {}
        self._roots: dict[Path, Path] = {}
        self._marked: dict[str, bool] = {}

    def root(self, path: Path) -> Path:
        """Return the top folder of the project that ``path`` lies in.

        The nearest folder above that has a project's marks (a repository, a pyproject.toml ...), else the folder that holds
        the file's outermost package; further up if that lies in the project of a file being checked.
        """
        found = self._roots.get(path.parent)
        if found is None:
            found = next((top for top in self._tops if top in path.parents), None) or self._marked_root(path.parent)
            self._roots[path.parent] = found
        return found

    def _marked_root(self, folder: Path) -> Path:
        package = folder
        while is_file(os.path.join(package, "__init__.py")) and package.parent != package:
            package = package.parent
        return next((place for place in (package, *package.parents) if self._is_marked(str(place))), package)

    def _is_marked(self, folder: str) -> bool:
        found = self._marked.get(folder)
        if found is None:
            found = self._marked[folder] = any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKERS)
        return found

    @cached_property
    def _tops(self) -> list[Path]:
        """The roots of the checked files, outermost first."""
        folders = {file.parent for file in self.files}
        return sorted({self._marked_root(folder) for folder in folders}, key=lambda root: len(root.parts))

    @cached_property
    def listing(self) -> Listing:
        """The Python files of the projects that the checked files belong to, as they are found once for all questions."""
        return list_files(map(str, self._tops), _MOST_LISTED)

    @cached_property
    def members(self) -> tuple[Path, ...]:
        """The files that are asked for who imports what: those of the listing, or of too many the checked ones."""
        listed = self.listing.files if len(self.listing.files) <= _MOST_MEMBERS else ()
        return tuple(sorted({*self.files, *map(Path, listed)}))

    @cached_property
    def _seen(self) -> frozenset[str]:
        """The members by name: the next run will see whether they have changed."""
        return frozenset(map(str, self.members))

    @cached_property
    def layout(self) -> str:
        """A digest of which files there are, and where their projects begin: what an import means rests on it."""
        listing = self.listing
        # What is hidden has no name that could be imported.
        closed = [folder for folder in listing.closed if not os.path.basename(folder).startswith(".")]
        parts = (map(str, self._tops), listing.files, closed, map(str, self.members))
        text = "\n\n".join("\n".join(sorted(part)) for part in parts)
        return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()

    def module(self, path: Path, target: str) -> Path | None:
        """Return the file of the project that the module ``target``, imported in ``path``, is read from.

        ``target`` is dotted; leading dots are relative to the package of ``path``. Scripts are run from their own folder or
        from a folder above, so each folder from the file's own up to the project's root is tried as a start.
        """
        key = (os.path.dirname(path), target)
        found = self._modules.get(key)
        if found is None:
            found = self._modules[key] = self._find_module(path, target)
        if found[1]:
            self._notes.closed = False
        return found[0]

    def _find_module(self, path: Path, target: str) -> tuple[Path | None, bool]:
        """Return the module's file, and whether it was looked for where nobody lists the files."""
        beyond = False
        of_python = self._of_python(target)
        for start in self._starts(path, target):
            if of_python and self._exists(os.path.join(start, "__init__.py"))[0]:
                # In a package, `import random` is Python's own, whatever stands beside it.
                continue
            place = os.path.join(start, *target.lstrip(".").split("."))
            package = os.path.join(place, "__init__.py")
            # What has no name of its own is a package: `from . import name`.
            for candidate in (f"{place}.py", package) if target.strip(".") else (package,):
                there, unlisted = self._exists(candidate)
                beyond |= unlisted
                if there:
                    return Path(candidate), beyond
        return None, beyond

    def _starts(self, path: Path, target: str) -> Iterator[str]:
        """Yield the folders that ``target``, imported in ``path``, may be found from."""
        level = len(target) - len(target.lstrip("."))
        parents = [str(folder) for folder in path.parents]
        if level:
            yield from parents[level - 1 : level]
            return
        root = str(self.root(path))
        if root in parents:
            yield from parents[: parents.index(root) + 1]

    def folders(self, path: Path, target: str) -> list[str]:
        """Return the folders that the import of ``target`` in ``path`` may mean where no file answers to it."""
        parts = target.lstrip(".").split(".")
        places = (os.path.join(start, *parts) for start in self._starts(path, target))
        return [place for place in places if place in self.listing.folders]

    def _of_python(self, target: str) -> bool:
        return target.partition(".")[0] in sys.stdlib_module_names

    def _exists(self, name: str) -> tuple[bool, bool]:
        """Tell whether the file ``name`` exists, and whether the listing could not say so, or nobody sees it change."""
        if name in self.listing.files:
            return True, name not in self._seen
        if self.listing.knows(name):
            return False, False
        return is_file(name), True

    def found_by(self, path: Path, targets: Iterable[str]) -> Iterator[Path]:
        """Yield the project files that imports of ``targets`` in ``path`` read."""
        for target in targets:
            if target.partition(".")[0] == "mindspore":
                continue
            for candidate in (target, split(target)[0]):
                found = self.module(path, candidate) if candidate else None
                if found and found != path:
                    yield found


def split(target: str) -> tuple[str, str]:
    """Split a dotted import target into the module it is taken from and its last name; leading dots stay in front."""
    head, dot, name = target.rpartition(".")
    return (head if head.strip(".") else head + dot), name
