"""What makes findings come out otherwise though no file of the program changed: we ourselves, and what we are made with."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator

from mslint.plugins import installed

_LIBRARIES = ("libcst-",)
_OURS = ("mslint", "codemods")


def fingerprint(plugins: Iterable[type]) -> str | None:
    """Return a digest of our source, that of ``plugins``, and of the versions of Python and of what reads for us.

    The source itself is read, since a development checkout changes without its version. None if it cannot be.
    """
    digest = hashlib.blake2b(repr((sys.version, sys.platform)).encode(), digest_size=16)
    packages = dict.fromkeys((*_OURS, *sorted({plugin.__module__.partition(".")[0] for plugin in plugins})))
    try:
        versions = sorted(entry.name for entry in installed(tuple(sys.path)) if entry.name.startswith(_LIBRARIES))
        digest.update(repr(versions).encode())
        for package in packages:
            for file in _files_of(package):
                with open(file, "rb") as stream:
                    content = stream.read()
                digest.update(os.fsencode(f"{file}\0{len(content)}\0"))
                digest.update(content)
    except OSError:
        return None
    return digest.hexdigest()


def _files_of(package: str) -> Iterator[str]:
    """Yield the files of an imported package, sorted."""
    module = sys.modules[package]
    places = list(getattr(module, "__path__", ()))
    if not places:
        yield module.__file__ or ""  # built in: there is nothing to read, which fails
    for place in places:
        for folder, names, files in os.walk(place):
            names[:] = sorted(name for name in names if name != "__pycache__")
            yield from (os.path.join(folder, name) for name in sorted(files) if not name.endswith(".pyc"))
