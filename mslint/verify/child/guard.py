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


def lead_writes_aside(scratch: str, protected: Sequence[str], led: Callable[[str], None]) -> None:
    """Let folders and files that Python code writes at absolute paths lie in the scratch folder.

    Scripts make such folders (``/cache``, ``/home``) before they train; ``led`` hears of each. The others are left to
    `forbid_writes`, which refuses what is not done by ``open`` and ``mkdir``.
    """
    scratch = os.path.realpath(scratch)
    usual = (os.path.realpath(tempfile.gettempdir()), "/dev", "/proc")
    closed = tuple(os.path.realpath(folder) for folder in protected)
    make_folder, open_file = os.mkdir, builtins.open

    def aside(path: Any) -> str | None:
        if isinstance(path, int):
            return None
        real = os.path.realpath(os.fsdecode(path))
        if _within(real, (scratch,)) or (_within(real, usual) and not _within(real, closed)):
            return None
        return os.path.join(scratch, "aside", real.lstrip(os.sep))

    def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
        other = aside(path)
        if other is None or os.path.exists(path):
            make_folder(path, *arguments, **options)
            return
        led(os.fsdecode(path))
        os.makedirs(other, exist_ok=True)

    def open_aside(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        other = aside(file)
        if other is not None and any(letter in mode for letter in "wxa+"):
            led(os.fsdecode(file))
            os.makedirs(os.path.dirname(other), exist_ok=True)
            file = other
        elif other is not None and not os.path.exists(file) and os.path.exists(other):
            file = other
        return open_file(file, mode, *arguments, **options)

    vars(os)["mkdir"] = mkdir
    vars(builtins)["open"] = open_aside


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
