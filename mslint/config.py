"""What a project says in ``[tool.mslint]`` of its pyproject.toml, or in its mslint.toml."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mslint.console import UsageError, nearest
from mslint.source.text import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Version = tuple[int, int]
NEWEST: Version = (2, 10)
"""The MindSpore that a program is taken to run on, unless it says otherwise."""

KEYS = ("select", "ignore", "extend-select", "per-file-ignores", "exclude", "target-version")


@dataclass(frozen=True)
class Config:
    """The settings of a project; patterns are relative to ``folder``. ``select`` is None where nothing is selected."""

    folder: Path
    file: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    target_version: Version = NEWEST


def find_config(paths: Sequence[Path]) -> Config:
    """Return the configuration that holds for ``paths``: the first found from the folder they share upwards."""
    folders = [path if os.path.isdir(path) else path.parent for path in (path.absolute() for path in paths)]
    start = Path(os.path.commonpath([os.path.normpath(folder) for folder in folders])) if folders else Path.cwd()
    for folder in [start, *start.parents]:
        for file in (folder / "mslint.toml", folder / "pyproject.toml"):
            if os.path.isfile(file) and (table := _table(file)) is not None:
                return _config(file, table)
    return Config(start)


def read_config(file: Path) -> Config:
    """Return the configuration in ``file``."""
    table = _table(file)
    if table is None:
        raise UsageError(f"{shown(file)}: has no [tool.mslint]")
    return _config(file.absolute(), table)


def parse_version(text: str) -> Version:
    """Return the version of MindSpore written as ``2.10`` or ``2.10.0``."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", text)
    if not match:
        raise ValueError(f"{text!r} is no version of MindSpore such as 2.10")
    return int(match[1]), int(match[2])


def _table(file: Path) -> Mapping[str, object] | None:
    """Return our part of ``file``; None for a pyproject.toml that has none."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{shown(file)}: cannot be read: {reason}") from None
    if file.name != "pyproject.toml":
        return document
    tools = document.get("tool", {})
    table = tools.get("mslint") if isinstance(tools, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise UsageError(f"{shown(file)}: tool.mslint must be a table")
    return table


def _config(file: Path, table: Mapping[str, object]) -> Config:
    reader = _Reader(shown(file), table)
    for key in table:
        if key not in KEYS:
            raise UsageError(f"{shown(file)}: unknown key {key!r} in [tool.mslint]{nearest(key, KEYS)}")
    return Config(
        folder=file.parent,
        file=file,
        select=reader.strings("select") if "select" in table else None,
        ignore=reader.strings("ignore"),
        extend_select=reader.strings("extend-select"),
        per_file_ignores=dict(reader.lists("per-file-ignores")),
        exclude=reader.strings("exclude"),
        target_version=reader.version("target-version"),
    )


@dataclass(frozen=True)
class _Reader:
    """Values of the expected kinds, or an error that names file and key."""

    filename: str
    table: Mapping[str, object]

    def strings(self, key: str) -> tuple[str, ...]:
        return self._strings(key, self.table.get(key, []))

    def lists(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        value = self.table.get(key, {})
        if not isinstance(value, Mapping):
            raise UsageError(f'{self.filename}: {key} must be a table such as {{"tests/*" = ["MS1"]}}')
        for pattern, codes in value.items():
            yield pattern, self._strings(f"{key}.{pattern}", codes)

    def version(self, key: str) -> Version:
        value = self.table.get(key, ".".join(map(str, NEWEST)))
        if not isinstance(value, str):
            # TOML reads 2.10 as the number 2.1: what was meant cannot be told any more.
            raise UsageError(f'{self.filename}: {key} must stand in quotes, as in {key} = "2.10"')
        try:
            return parse_version(value)
        except ValueError as error:
            raise UsageError(f'{self.filename}: {key}: {error}; write it as "2.10"') from None

    def _strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f'{self.filename}: {key} must be a list of strings such as ["MS101"]')
        return tuple(value)
