"""Verdicts kept from one run to the next, by the content of all that they rest on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from mslint.findings import Verdict
from mslint.verify.imports import project_files

_PACKAGES = ("mslint", "mindspore", "numpy")
_SETTINGS = (".cfg", ".ini", ".json", ".toml", ".txt", ".yaml", ".yml")
_LARGEST_SETTINGS = 1_000_000


def fingerprint(script: Path, replacements: Mapping[Path, bytes], settings: object = None) -> str:
    """Return what the verdict on ``script`` with ``replacements`` rests on, as a digest.

    That is the versions of mslint, MindSpore and NumPy, the ``settings`` that it is run with (by their repr), and the
    content, before and after, of the script, of the project's files that it imports and of the settings beside them. Data is
    not part of it.
    """
    digest = hashlib.sha256(repr([(name, version(name)) for name in _PACKAGES]).encode())
    digest.update(repr(settings).encode("utf-8", "surrogateescape"))
    files = {path.resolve() for path in (*project_files(script), *replacements)}
    for path in sorted(files.union(_settings(files))):
        for content in (path.read_bytes(), replacements.get(path, b"")):
            digest.update(f"{path}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
    return digest.hexdigest()


def _settings(files: set[Path]) -> Iterator[Path]:
    for folder in {path.parent for path in files}:
        for path in folder.iterdir():
            if path.suffix in _SETTINGS and path.is_file() and path.stat().st_size <= _LARGEST_SETTINGS:
                yield path


def recall(key: str) -> tuple[Verdict, str] | None:
    """Return the verdict kept under ``key`` and its reason, None if there is none that can be read."""
    try:
        kept = json.loads(_file(key).read_text(encoding="utf-8"))
        return Verdict(kept["verdict"]), str(kept["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(key: str, verdict: Verdict, reason: str) -> None:
    """Keep a verdict; where that is not possible it will be found again."""
    file = _file(key)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Another mslint may write the same verdict at the same time.
        descriptor, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"verdict": verdict.value, "reason": reason}, stream)
        os.replace(name, file)


def _file(key: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "mslint" / "verdicts" / f"{key}.json"
