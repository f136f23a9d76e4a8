"""Findings that a project puts up with for now: those that were there when mslint came, kept in a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mslint.console import UsageError
from mslint.findings import Finding
from mslint.source.files import located
from mslint.source.text import Unreadable, shown
from mslint.source.toml import quoted, read_toml

if TYPE_CHECKING:
    from mslint.source.identity import Identity

USUAL_NAME = "mslint-baseline.toml"
_VERSION = 1
_HEAD = """\
# Findings that `mslint check` leaves out. `mslint baseline prune` drops those that are gone, `mslint baseline write` adds
# those that are there; one a line, so that two versions can be merged.
"""
_KEYS = ("path", "rule", "symbol", "text")


class Entry(NamedTuple):
    """A finding, wherever it stands in its file; ``path`` is relative to the folder of the baseline."""

    path: str
    identity: Identity


Counts = Mapping[Entry, int]
Asked = Mapping[Path, Collection[str]]
"""The files that were checked to the end, each with the codes of the rules that it was checked by."""


class Baselines:
    """The baselines of the files in one run; ``file_for`` gives the one of a file, if there is one."""

    def __init__(self, file_for: Callable[[Path], Path | None]) -> None:
        self._file_for = file_for
        self._left: dict[Path, Counter[Entry]] = {}
        self.silenced = 0

    def fresh(self, findings: Sequence[Finding], texts: Mapping[str, str], exempt: Collection[str]) -> list[Finding]:
        """Return the findings that no baseline holds (any more); those of the codes in ``exempt`` none can."""
        files = [None if one.code in exempt else self._file_for(Path(one.filename)) for one in findings]
        held = [finding for finding, file in zip(findings, files, strict=True) if file is not None]
        if not held:
            return list(findings)
        from mslint.source.identity import identities  # takes its time to import

        known = iter(identities(held, texts))  # costs a parse of each file: not without need
        return [
            finding
            for finding, file in zip(findings, files, strict=True)
            if file is None or not self._silences(file, Entry(_relative(Path(finding.filename), file), next(known)))
        ]

    def _silences(self, file: Path, entry: Entry) -> bool:
        left = self._of(file)
        if not left[entry]:
            return False
        left[entry] -= 1
        self.silenced += 1
        return True

    def gone(self, asked: Asked) -> int:
        """Return how many findings of the baselines were not met in the files ``asked``."""
        by_file: dict[Path, dict[Path, Collection[str]]] = {}
        for path, codes in asked.items():
            if (file := self._file_for(path)) is not None:
                by_file.setdefault(file, {})[path] = codes
        return sum(
            left[entry]
            for file, part in by_file.items()
            for left in [self._of(file)]
            for entry in _judged(left, part, file)
        )

    def _of(self, file: Path) -> Counter[Entry]:
        if file not in self._left:
            self._left[file] = Counter(read(file))
        return self._left[file]


def read(file: Path) -> dict[Entry, int]:
    """Return how often each finding is in the baseline ``file``."""
    if not os.path.exists(file):
        raise UsageError(f"{shown(file)}: no such file; `mslint baseline write` makes the baseline")
    document = read_toml(file)
    from mslint.source.identity import Identity

    items = document.get("findings")
    found: dict[Entry, int] = {}
    if document.get("version") != _VERSION or not isinstance(items, list):
        raise _broken(file, f"it has no `version = {_VERSION}` and list of findings")
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in _KEYS):
            raise _broken(file, f"finding {number} lacks one of {', '.join(_KEYS)}")
        count = item.get("count", 1)
        if not isinstance(count, int) or count < 1:
            raise _broken(file, f"the count of finding {number} is no number above 0")
        entry = Entry(item["path"], Identity(item["rule"], item["symbol"], item["text"]))
        found[entry] = max(found.get(entry, 0), count)  # twice in one file: two branches were merged
    return found


def _broken(file: Path, what: str) -> UsageError:
    return UsageError(
        f"{shown(file)}: is no baseline: {what}; `mslint baseline write` makes it anew once it is deleted"
    )


def save(file: Path, counts: Counts) -> None:
    """Write the baseline ``file``, sorted, one entry a line."""
    from mslint.source.write import write

    lines = [_line(entry, counts[entry]) for entry in sorted(counts)]
    data = "".join([_HEAD, f"version = {_VERSION}\n", "findings = [\n", *lines, "]\n"]).encode()
    try:
        if file.exists():
            write(file, data)
        else:
            file.write_bytes(data)
    except OSError as problem:
        raise UsageError(f"{shown(file)}: cannot be written ({problem.strerror}); name another --baseline") from None
    except Unreadable as problem:
        raise UsageError(str(problem)) from None


def _line(entry: Entry, count: int) -> str:
    values = (entry.path, entry.identity.code, entry.identity.symbol, entry.identity.text)
    written = ", ".join(f"{key} = {quoted(value)}" for key, value in zip(_KEYS, values, strict=True))
    return f"  {{{written}{f', count = {count}' if count > 1 else ''}}},\n"


def counted(findings: Sequence[Finding], texts: Mapping[str, str], file: Path) -> Counter[Entry]:
    """Return ``findings`` as entries of the baseline ``file``."""
    from mslint.source.identity import identities

    known = zip(findings, identities(findings, texts), strict=True)
    return Counter(Entry(_relative(Path(finding.filename), file), identity) for finding, identity in known)


def written_anew(old: Counts, found: Counts, asked: Asked, file: Path) -> dict[Entry, int]:
    """Return ``found``, and of ``old`` what was not asked for."""
    judged = _judged(old, asked, file)
    return {**{entry: max(count, found.get(entry, 0)) for entry, count in old.items() if entry not in judged}, **found}


def pruned(old: Counts, found: Counts, asked: Asked, file: Path) -> dict[Entry, int]:
    """Return ``old`` without what is gone: not found where it was asked for, or in a file that is no more."""
    judged = _judged(old, asked, file)
    left = {
        entry: min(count, found.get(entry, 0)) if entry in judged else count * (file.parent / entry.path).exists()
        for entry, count in old.items()
    }
    return {entry: count for entry, count in left.items() if count}


def _judged(entries: Iterable[Entry], asked: Asked, file: Path) -> set[Entry]:
    codes = {_relative(path, file): codes for path, codes in asked.items()}
    return {entry for entry in entries if entry.identity.code in codes.get(entry.path, ())}


def _relative(path: Path, file: Path) -> str:
    """Return ``path`` as the baseline ``file`` names it; a name that is no UTF-8 cannot be written as it is."""
    relative = os.path.relpath(located(path), os.path.realpath(file.parent)).replace(os.sep, "/")
    return relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
