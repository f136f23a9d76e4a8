"""Files replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from mslint.source.text import Unreadable, shown


def write(path: Path, data: bytes) -> None:
    """Replace the content of ``path`` by ``data``; mode bits stay, a symbolic link goes on pointing where it did.

    Whatever goes wrong, the file holds its old content and nothing is left beside it.
    """
    target = path.resolve()
    if not os.access(target, os.W_OK) or not _owner_may_write(target):
        # os.replace would put up with a read-only file: it only needs the folder.
        raise Unreadable(shown(path), None, "is read-only", "make it writable (`chmod u+w`), or exclude it")
    try:
        _replace(target, data)
    except OSError as error:
        raise Unreadable(
            shown(path), None, f"cannot be written ({error.strerror})", "check its folder's permissions and free space"
        ) from None


def _owner_may_write(target: Path) -> bool:
    """Tell whether the mode bits allow writing at all: to root, ``os.access`` allows everything."""
    return bool(target.stat().st_mode & 0o222)


def _replace(target: Path, data: bytes) -> None:
    # In the same folder, since a rename is atomic within one file system only.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".mslint", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
