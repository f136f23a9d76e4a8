"""Keeps the script from writing anywhere but in its scratch folder and the system's temporary directory."""

from __future__ import annotations

import builtins
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events of https://docs.python.org/3/library/audit_events.html that change a file tree: which arguments are the paths.
_CHANGES = {
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "shutil.rmtree": (0,),
}

_ON_WHAT_WAS_WRITTEN = ("access", "chmod", "listdir", "remove", "rmdir", "scandir", "stat", "unlink")


def lead_writes_aside(scratch: str, protected: Sequence[str], led: Callable[[str], None]) -> None:
    """Let folders and files that Python code writes at absolute paths lie in the scratch folder.

    Scripts make such folders (``/cache``, ``/home``) before they train; ``led`` hears of each. The others are left to
    `forbid_writes`, which refuses what is not done by ``open`` and ``mkdir``.
    """
    scratch = os.path.realpath(scratch)
    usual = (os.path.realpath(tempfile.gettempdir()), "/dev", "/proc")
    closed = tuple(os.path.realpath(folder) for folder in protected)
    make_folder, open_file, open_descriptor = os.mkdir, builtins.open, os.open

    def aside(path: Any) -> str | None:
        """Where it lies instead; None if it lies where it is said to."""
        if path is None or isinstance(path, int):
            return None
        real = os.path.realpath(os.fsdecode(path))
        if _within(real, (scratch,)) or (_within(real, usual) and not _within(real, closed)):
            return None
        return os.path.join(scratch, "aside", real.lstrip(os.sep))

    def for_reading(path: Any) -> Any:
        other = aside(path)
        return other if other is not None and not os.path.lexists(path) and os.path.lexists(other) else path

    def for_writing(path: Any) -> Any:
        other = aside(path)
        if other is None:
            return path
        led(os.fsdecode(path))
        os.makedirs(os.path.dirname(other), exist_ok=True)
        return other

    def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
        if aside(path) is None or os.path.exists(path):
            make_folder(path, *arguments, **options)
        else:
            os.makedirs(for_writing(path), exist_ok=True)

    def open_aside(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        writes = any(letter in mode for letter in "wxa+")
        return open_file(for_writing(file) if writes else for_reading(file), mode, *arguments, **options)

    def open_descriptor_aside(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        return open_descriptor(
            for_writing(path) if flags & _WRITING else for_reading(path), flags, *arguments, **options
        )

    def on_what_was_written(function: Any) -> Any:
        return lambda path=".", *arguments, **options: function(for_reading(path), *arguments, **options)

    def moving(function: Any) -> Any:
        return lambda source, target, **options: function(for_reading(source), for_writing(target), **options)

    vars(builtins)["open"] = open_aside
    vars(os).update(mkdir=mkdir, open=open_descriptor_aside)
    vars(os).update({name: on_what_was_written(vars(os)[name]) for name in _ON_WHAT_WAS_WRITTEN})
    vars(os).update({name: moving(vars(os)[name]) for name in ("rename", "replace")})


def forbid_writes(scratch: str, protected: Sequence[str], refused: Callable[[str], None]) -> None:
    """Install an audit hook that raises PermissionError for writes outside the allowed places.

    ``refused`` hears of each refused path. Writes by compiled code (checkpoints in MindSpore's own C++) raise no audit
    event; the mirror, which is the working directory, catches those with relative paths.
    """
    scratch = os.path.realpath(scratch)
    allowed = (os.path.realpath(tempfile.gettempdir()), "/dev", "/proc")
    closed = tuple(os.path.realpath(folder) for folder in protected)

    def may_write(path: object) -> bool:
        if isinstance(path, int) or path is None:
            return True
        real = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        if _within(real, (scratch,)):
            return True
        return _within(real, allowed) and not _within(real, closed)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = (*arguments, None, None)[:3]
            writes = (isinstance(mode, str) and any(letter in mode for letter in "wxa+")) or (
                isinstance(flags, int) and flags & _WRITING
            )
            changed: tuple[object, ...] = (path,) if writes else ()
        elif event in _CHANGES:
            changed = tuple(arguments[index] for index in _CHANGES[event])
        else:
            return
        for path in changed:
            if not may_write(path):
                refused(os.fsdecode(path))  # type: ignore[arg-type]
                raise PermissionError(f"mslint verify: writing {os.fsdecode(path)!r} is refused")  # type: ignore[arg-type]

    sys.addaudithook(hook)


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
