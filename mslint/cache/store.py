"""A file that holds texts by key, and that nothing which happens to it can make say what is not so.

It is a convenience: what cannot be read is not there, what cannot be written is not kept, and nobody is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path

_PATIENCE = 2.0
"""Seconds to wait for another mslint that is just writing."""
_LARGEST = 256_000_000
_MOST_FILES = 4
"""So many versions of us may each have a file, those used last."""
_SUFFIX = ".sqlite"


class Store:
    """Texts by kind and key, in a file; without one they are gone with the store."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._new: dict[tuple[str, bytes], str] = {}
        self._connection: sqlite3.Connection | None = None
        with contextlib.suppress(OSError):
            if file and file.is_file():  # none is made for reading alone
                if file.stat().st_size > _LARGEST:
                    file.unlink()
                else:
                    self._connect(file)

    def get(self, kind: str, key: bytes) -> str | None:
        """Return the text last put there, None if there is none or it is not what was written."""
        if (kind, key) in self._new:
            return self._new[kind, key]
        if self._connection is None:
            return None
        try:
            rows = self._connection.execute("SELECT value, digest FROM kept WHERE kind = ? AND key = ?", (kind, key))
            found = rows.fetchone()
        except sqlite3.Error as error:
            self._lose(error)
            return None
        if not found or not isinstance(found[0], str) or found[1] != _digest(kind, key, found[0]):
            return None
        return str(found[0])

    def put(self, kind: str, key: bytes, value: str) -> None:
        """Put a text there, once the store is saved."""
        self._new[kind, key] = value

    def save(self) -> None:
        """Write what is new, all of it or nothing."""
        if self._new and self._file:
            with contextlib.suppress(OSError):
                self._write(self._file)
        self._close()
        self._new = {}

    def _connect(self, file: Path) -> sqlite3.Connection | None:
        try:
            self._connection = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            self._lose(error)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _lose(self, error: sqlite3.Error) -> None:
        """Go on without the file; without it for good if it is broken or not ours, but not if it is just locked."""
        self._close()
        if self._file and (not isinstance(error, sqlite3.OperationalError) or "no such" in str(error)):
            with contextlib.suppress(OSError):
                self._file.unlink()

    def _write(self, file: Path) -> None:
        if self._connection is None:
            _make_folder(file.parent)
        connection = self._connection or self._connect(file)
        if connection is None:
            return
        rows = [(kind, key, value, _digest(kind, key, value)) for (kind, key), value in self._new.items()]
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS kept (kind TEXT, key BLOB, value TEXT, digest TEXT, PRIMARY KEY (kind, key))"
            )
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._lose(error)


def store_in(folder: Path, name: str) -> Store:
    """Return the store ``name`` of ``folder``, or of the user's caches if that cannot be written to."""
    return Store(_usable(folder) / f"{name}{_SUFFIX}")


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by mslint; can be thrown away at any time.\n*\n", encoding="utf-8")
    for old in sorted(folder.glob(f"*{_SUFFIX}"), key=_last_written, reverse=True)[_MOST_FILES - 1 :]:
        old.unlink(missing_ok=True)


def _usable(wanted: Path) -> Path:
    near = next((folder for folder in (wanted, *wanted.parents) if folder.is_dir()), wanted)
    if os.access(near, os.W_OK):
        return wanted
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "mslint", "results", hashlib.blake2b(os.fsencode(wanted), digest_size=8).hexdigest())


def _digest(kind: str, key: bytes, value: str) -> str:
    content = b"\0".join((kind.encode(), key, value.encode("utf-8", "surrogatepass")))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _last_written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
