"""Files replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mslint.source.text import Unreadable, shown


def write(path: Path, data: bytes) -> None:
    """Replace the content of ``path`` by ``data`` (see ``write_all``)."""
    write_all({path: data})


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Replace the content of each file, all of them or none; mode bits stay, symbolic links go on pointing where they did.

    Whatever goes wrong, the files hold their old content and nothing is left beside them.
    """
    with contextlib.ExitStack() as leftovers, contextlib.ExitStack() as undo:
        ready: list[tuple[Path, Path, str]] = []
        for path, data in contents.items():
            target = path.resolve()
            if not os.access(target, os.W_OK) or not _owner_may_write(target):
                # os.replace would put up with a read-only file: it only needs the folder.
                raise Unreadable(shown(path), None, "is read-only", "make it writable (`chmod u+w`), or exclude it")
            with _blaming(path):
                ready.append((path, target, _beside(target, data, leftovers)))
        for path, target, name in ready:
            with _blaming(path):
                old = _beside(target, target.read_bytes(), leftovers)
                os.replace(name, target)
            undo.callback(os.replace, old, target)
        undo.pop_all()


@contextlib.contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unreadable(
            shown(path), None, f"cannot be written ({error.strerror})", "check its folder's permissions and free space"
        ) from None


def _owner_may_write(target: Path) -> bool:
    """Tell whether the mode bits allow writing at all: to root, ``os.access`` allows everything."""
    return bool(target.stat().st_mode & 0o222)


def _beside(target: Path, data: bytes, leftovers: contextlib.ExitStack) -> str:
    """Write ``data`` to a new file beside ``target`` that ``leftovers`` takes away; return its name."""
    # In the same folder, since a rename is atomic within one file system only.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".mslint", dir=target.parent)
    leftovers.callback(Path(name).unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    shutil.copymode(target, name)
    return name
