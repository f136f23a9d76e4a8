"""The findings of files, kept under what they rest on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mslint.cache.encoding import decoded, encoded
from mslint.cache.store import Store
from mslint.findings import Finding
from mslint.program.companions import Company, companies
from mslint.program.grounds import Grounds
from mslint.program.project import Program

_AFFORDABLE = 500_000
"""So many bytes of files that nobody asked to check may be parsed for the sake of the next run."""

Settings = tuple[object, ...]
"""What holds for a file beside its content: rules, target version, the name it is shown by; written as JSON."""


class Results:
    """What was found in the files of ``program``, in this run and those before it."""

    def __init__(self, store: Store, program: Program) -> None:
        self._store = store
        self._program = program
        self._sketches: dict[Path, tuple[str, tuple[str, ...]]] = {}

    def recall(self, path: Path, data: bytes, settings: Settings) -> tuple[Finding, ...] | None:
        """Return what was found in ``path`` when it held ``data`` and all else was as it is; None if that is not known."""
        kept = self._parsed("findings", _key(path, settings))
        if not kept or kept["own"] != _digest(data):
            return None
        names, files, companions = kept["rests"]
        grounds = Grounds(set(map(Path, names)), set(map(Path, files)), companions)
        return decoded(kept["findings"]) if self._ground(path, grounds) == kept["ground"] else None

    def keep(
        self, path: Path, data: bytes, settings: Settings, findings: tuple[Finding, ...], grounds: Grounds
    ) -> None:
        """Keep what was found in ``path``, which holds ``data``, if it can be told what that rests on."""
        text = encoded(findings)
        if text is None or self._program.digest(path) != _digest(data):
            return
        others = Grounds(grounds.names - {path}, grounds.files - {path}, grounds.companions, grounds.beyond)
        ground = self._ground(path, others)
        if ground is None or not self._program.steady:
            return
        rests = [sorted(map(str, others.names)), sorted(map(str, others.files)), others.companions]
        value = {"own": _digest(data), "rests": rests, "ground": ground, "findings": text}
        self._store.put("findings", _key(path, settings), json.dumps(value))

    def save(self) -> None:
        """Write what is new where the next run finds it."""
        self._store.save()

    def companies(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Divide ``paths`` into those that have much in common to be worked out."""
        found: dict[Path, list[Path]] = {}
        for path in paths:
            company = self._company_of.get(path)
            found.setdefault(company.files[0] if company else path, []).append(path)
        return list(found.values())

    def _parsed(self, kind: str, key: bytes) -> Any:
        text = self._store.get(kind, key)
        return json.loads(text) if text is not None else None

    def _ground(self, path: Path, grounds: Grounds) -> str | None:
        """Return a digest of all that ``grounds`` name as it is now, None if that cannot be told."""
        if grounds.beyond:
            return None
        if not (grounds.names or grounds.files or grounds.companions):
            return ""
        near: set[Path] = set()
        if grounds.companions:
            company = self._company_of.get(path)
            if company is None or company.beyond:
                return None
            near = set(company.files)
        files = {file: self._program.digest(file) for file in near | grounds.files}
        names = {file: self._sketch(file)[0] for file in grounds.names - files.keys()}
        if None in files.values() or "" in names.values():
            return None
        parts = (self._program.layout, *_rows(files), "", *_rows(names))
        return _digest("\n".join(parts).encode("utf-8", "surrogateescape"))

    @cached_property
    def _company_of(self) -> dict[Path, Company]:
        """By file: those that imports connect with it."""
        if not self._affordable():
            return {}
        members = self._program.members
        imports = {path: self._sketch(path)[1] for path in members}
        state = _digest(json.dumps([[str(path), *targets] for path, targets in imports.items()]).encode())
        key = self._program.layout.encode()
        kept = self._parsed("companies", key)
        if kept and kept["state"] == state:
            found = [Company(tuple(members[index] for index in one), beyond) for one, beyond in kept["companies"]]
        else:
            found = companies(self._program, imports)
            number = {path: index for index, path in enumerate(members)}
            plain = [[[number[path] for path in one.files], one.beyond] for one in found]
            self._store.put("companies", key, json.dumps({"state": state, "companies": plain}))
        return {path: one for one in found for path in one.files}

    def _affordable(self) -> bool:
        """Tell whether all members can be read for what they import, without much more work than was asked for."""
        checked = set(self._program.files)
        others = (path for path in self._program.members if path not in checked and not self._program.has_facts(path))
        unknown = [path for path in others if not self._known_sketch(path)]
        return sum(map(_size, unknown)) <= _AFFORDABLE + sum(map(_size, checked))

    def _sketch(self, path: Path) -> tuple[str, tuple[str, ...]]:
        """Return a digest of the names in ``path``, empty if it cannot be read, and what it imports, as written."""
        known = self._known_sketch(path)
        if known is None:
            digest = self._program.digest(path)
            known = self._sketches[path] = self._program.sketch(path) if digest else ("", ())
            if digest:
                self._store.put("sketch", os.fsencode(path), json.dumps([digest, *known]))
        return known

    def _known_sketch(self, path: Path) -> tuple[str, tuple[str, ...]] | None:
        if path not in self._sketches:
            digest, names, imports = self._parsed("sketch", os.fsencode(path)) or (None, "", ())
            if digest is not None and digest == self._program.digest(path):
                self._sketches[path] = (names, tuple(imports))
        return self._sketches.get(path)


def _key(path: Path, settings: Settings) -> bytes:
    return os.fsencode(path) + b"\0" + _digest(json.dumps(settings).encode()).encode()


def _rows(digests: Mapping[Path, str | None]) -> Iterator[str]:
    return (f"{path} {digests[path]}" for path in sorted(digests))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
