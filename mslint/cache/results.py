"""The findings of files, kept under what they rest on."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mslint.cache.changes import Changes
from mslint.cache.encoding import decoded, encoded
from mslint.cache.inscriptions import facts_in
from mslint.cache.store import Store
from mslint.findings import Finding
from mslint.program.companions import companies
from mslint.program.project import Program

_AFFORDABLE = 500_000
"""So many bytes of files that nobody asked to check may be read for the sake of the next run."""

Settings = tuple[object, ...]
"""What holds for a file beside its content: rules, target version, the name it is shown by; written as JSON."""


class Results:
    """What was found in the files of ``program``, in this run and those before it.

    What a finding rests on beside its own file has a name, and an epoch: it has not changed since that began. The program as
    the last run saw it is kept with the epochs of then; each run that sees another finds out first whose epoch has ended.
    """

    def __init__(self, store: Store, program: Program) -> None:
        self._store = store
        self._program = program

    def recall(self, path: Path, data: bytes, settings: Settings) -> tuple[tuple[Finding, ...] | None, dict[str, str]]:
        """Return what was found in ``path`` when it held ``data`` and all else was as it is; None if that is not known.

        Then also the rules that find nothing there, with the names of what that rests on, whatever else the file holds now.
        """
        self._program.note_content(path, data)
        kept = self._parsed("findings", _key(path, settings))
        if kept and kept["own"] == self._program.digest(path) and (not kept["rests"] or self._holds(kept["rests"])):
            return decoded(kept["findings"]), {}
        silent = kept["silent"] if kept else {}
        return None, {code: since[0] for code, since in silent.items() if self._holds(since)}

    def keep(
        self,
        path: Path,
        settings: Settings,
        findings: tuple[Finding, ...],
        rests: str | None,
        silent: Mapping[str, str],
    ) -> None:
        """Keep what was found in ``path``, as it was when it was asked for, and the rules that found nothing.

        ``rests``, and what ``silent`` gives each rule, are names of the grounds for it that were learned.
        """
        text = encoded(findings)
        if text is None or not self._program.steady or (rests is not None and not self._overview):
            return
        value = {
            "own": self._program.digest(path),
            "rests": self._since(rests) if rests is not None else None,
            "findings": text,
            "silent": {code: self._since(name) for code, name in silent.items()},
        }
        self._store.put("findings", _key(path, settings), json.dumps(value))

    def _since(self, rests: str) -> tuple[str, str]:
        """Return the name of grounds with the epoch in which they are as they are."""
        return rests, self._epochs.setdefault(rests, self._now)

    def _holds(self, since: Sequence[str]) -> bool:
        """Tell whether the epoch has not ended that ``since`` gives beside the name of grounds."""
        return self._epochs.get(since[0]) == since[1]

    def learn(self, written: Mapping[str, str]) -> None:
        """Take over grounds that were written down in this run."""
        for name, text in written.items():
            self._store.put("grounds", self._grounds_key(name), text)

    def save(self) -> None:
        """Write what is new where the next run finds it."""
        if not self._program.steady:
            return
        if self._overview and (self._changed or self._epochs != self._state["epochs"]):
            state = {"files": self._files, "imports": self._imports, "epochs": self._epochs}
            self._store.put("state", self._program.layout.encode(), json.dumps(state, separators=(",", ":")))
            for path in self._changed:
                text = self._program.text(path)
                if text is not None:
                    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 1)).decode()
                    self._store.put("text", os.fsencode(path), json.dumps([self._program.digest(path), packed]))
        self._store.save()

    def companies(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Divide ``paths`` into those that have much in common to be worked out."""
        imports = dict(zip(self._program.members, self._imports, strict=True)) if self._overview else {}
        leader = {path: files[0] for files in companies(self._program, imports) for path in files}
        found: dict[Path, list[Path]] = {}
        for path in paths:
            found.setdefault(leader.get(path, path), []).append(path)
        return list(found.values())

    def _parsed(self, kind: str, key: bytes) -> Any:
        text = self._store.get(kind, key)
        return json.loads(text) if text is not None else None

    @cached_property
    def _overview(self) -> bool:
        """Whether all members can be read without much more work than was asked for."""
        checked = set(self._program.files)
        others = (path for path in self._program.members if path not in checked)
        return sum(map(_size, others)) <= _AFFORDABLE + sum(map(_size, checked))

    @cached_property
    def _files(self) -> list[str | None]:
        """What the content of each member is known by."""
        return [self._program.digest(path) for path in self._program.members]

    @cached_property
    def _imports(self) -> list[tuple[str, ...]]:
        """What each member imports."""
        return self._program.all_imports()

    @cached_property
    def _now(self) -> str:
        """The epoch that begins now: in a program that holds the same, it is the same."""
        return _digest("\n".join([self._program.layout, *map(str, self._files)]))

    @cached_property
    def _state(self) -> dict[str, Any]:
        """The program as the last run saw it that had the same files."""
        kept = self._parsed("state", self._program.layout.encode()) if self._overview else None
        return kept or {"files": [None] * len(self._program.members), "imports": [], "epochs": {}}

    @cached_property
    def _changed(self) -> list[Path]:
        """The members that do not hold what they held then."""
        both = zip(self._program.members, self._state["files"], self._files, strict=True)
        return [path for path, before, now in both if before is None or before != now]

    @cached_property
    def _epochs(self) -> dict[str, str]:
        """The epochs that have not ended, by the name of what has not changed since they began."""
        epochs: dict[str, str] = self._state["epochs"]
        if not self._changed or not epochs:
            return dict(epochs)
        both = zip(self._program.members, self._state["imports"], strict=True)
        self._program.know_imports({path: tuple(targets) for path, targets in both if path not in self._changed})
        paths = set(self._changed)
        changed = frozenset(number for number, path in enumerate(self._program.members) if path in paths)
        changes = Changes(self._program, {path: self._text_before(path) for path in self._changed})
        ended: dict[str, bool] = {}

        def has_ended(name: str) -> bool:
            if name not in ended:
                written = self._parsed("grounds", self._grounds_key(name))
                ended[name] = (
                    written is None
                    or any(map(changes.touch, facts_in(written, self._program.members, changed)))
                    or any(map(has_ended, written[1]))
                )
            return ended[name]

        return {name: epoch for name, epoch in epochs.items() if not has_ended(name)}

    def _text_before(self, path: Path) -> str | None:
        digest, packed = self._parsed("text", os.fsencode(path)) or (None, "")
        if digest is None or digest != self._state["files"][self._program.members.index(path)]:
            return None
        return zlib.decompress(base64.b64decode(packed)).decode("utf-8", "surrogatepass")

    def _grounds_key(self, name: str) -> bytes:
        """Return the key of written grounds: they name the members of the program by number."""
        return f"{name} {self._program.layout}".encode()


def _key(path: Path, settings: Settings) -> bytes:
    return os.fsencode(path) + b"\0" + _digest(json.dumps(settings)).encode()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
