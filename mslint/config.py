"""What a project says in ``[tool.mslint]`` of its pyproject.toml, or in its mslint.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from mslint.console import UsageError, nearest
from mslint.language import LANGUAGES, translated
from mslint.source.files import SKIPPED, matched, patterns
from mslint.source.text import shown
from mslint.source.toml import read_toml

Version = tuple[int, int]
NEWEST: Version = (2, 10)
"""The MindSpore that a program is taken to run on, unless it says otherwise."""


@dataclass(frozen=True)
class VerifySettings:
    """``[tool.mslint.verify]``: how scripts are run, where the command line does not say. None: not given."""

    entry: str | None = None
    args: tuple[str, ...] = ()
    fake_data: bool = False
    inputs: tuple[str, ...] = ()
    ranks: int | None = None
    timeout: float | None = None


@dataclass(frozen=True)
class Config:
    """The settings of a project.

    ``folder`` is absolute and free of symbolic links; paths and patterns are relative to it. ``file`` is None where no
    configuration was found; ``select`` and ``exclude`` are None where the built-in choice holds.
    """

    folder: Path
    file: Path | None = None
    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    target_version: Version = NEWEST
    baseline: str | None = None
    lang: str | None = None
    verify: VerifySettings = VerifySettings()

    def excludes(self, path: Path, is_folder: bool) -> bool:
        """Tell whether the absolute ``path`` is to be left out."""
        if self.exclude is None and is_folder and path.name in SKIPPED:
            return True
        if not self._excluded or not path.is_relative_to(self.folder):
            return False
        return bool(matched(patterns(self._excluded), path.relative_to(self.folder), is_folder))

    @cached_property
    def _excluded(self) -> tuple[str, ...]:
        return (*(self.exclude or ()), *self.extend_exclude)

    def selectors(self) -> Iterator[str]:
        """Yield all that is written to choose rules."""
        yield from self.select or ()
        yield from self.extend_select
        yield from self.ignore
        for ignored in self.per_file_ignores.values():
            yield from ignored


def _keys(settings: type[Config] | type[VerifySettings]) -> tuple[str, ...]:
    return tuple(item.name.replace("_", "-") for item in fields(settings) if item.name not in ("folder", "file"))


KEYS = _keys(Config)
VERIFY_KEYS = _keys(VerifySettings)


class Configurations:
    """The configuration of each file: the nearest one upwards from its folder, or the one that is given for all."""

    def __init__(self, given: Config | None = None) -> None:
        self._given = given
        self._known: dict[Path, Config] = {}
        self._by_name: dict[str, Config] = {}

    def of(self, file: Path) -> Config:
        """Return the configuration for ``file``."""
        return self._within(os.path.dirname(file))

    def within(self, folder: Path) -> Config:
        """Return the configuration for what lies in ``folder``."""
        return self._within(str(folder))

    def _within(self, folder: str) -> Config:
        if folder not in self._by_name:
            self._by_name[folder] = self.at(Path(os.path.realpath(folder)))
        return self._by_name[folder]

    def at(self, folder: Path) -> Config:
        """Return the configuration for what lies in ``folder``, which is absolute and free of symbolic links."""
        if self._given is not None:
            return self._given
        if folder not in self._known:
            above = folder.parent
            self._known[folder] = _config_in(folder) or (self.at(above) if above != folder else Config(Path.cwd()))
        return self._known[folder]


def read_config(file: Path) -> Config:
    """Return the configuration in ``file``."""
    table = _table(file)
    if table is None:
        raise UsageError(translated("{file}: has no [tool.mslint]; add it, or name another file", file=shown(file)))
    return _config(file, table)


def parse_version(text: str) -> Version:
    """Return the version of MindSpore written as ``2.10`` or ``2.10.0``."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", text)
    if not match:
        raise ValueError(f"{text!r} is no version of MindSpore such as 2.10")
    return int(match[1]), int(match[2])


FILES = ("mslint.toml", "pyproject.toml")
"""Where a configuration may stand; if in both, the first counts alone."""


def _config_in(folder: Path) -> Config | None:
    for file in (folder / name for name in FILES):
        if os.path.isfile(file) and (table := _table(file)) is not None:
            return _config(file, table)
    return None


def _table(file: Path) -> Mapping[str, object] | None:
    """Return our part of ``file``; None for a pyproject.toml that has none."""
    document = read_toml(file)
    if file.name != "pyproject.toml":
        return document
    tools = document.get("tool", {})
    table = tools.get("mslint") if isinstance(tools, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise UsageError(f"{shown(file)}: tool.mslint must be a table: write [tool.mslint] above its keys")
    return table


def _config(file: Path, table: Mapping[str, object]) -> Config:
    home = "tool.mslint" if file.name == "pyproject.toml" else ""
    if not home and "tool" in table:
        raise UsageError(
            translated("{file}: [tool.mslint] is for pyproject.toml; here its keys stand at the top", file=shown(file))
        )
    top = _Reader(shown(file), home, "", table)
    top.refuse_unknown(KEYS)
    verify = _Reader(shown(file), home, "verify", top.table_of("verify"))
    verify.refuse_unknown(VERIFY_KEYS)
    return Config(
        folder=Path(os.path.realpath(file.parent)),
        file=file.absolute(),
        paths=top.strings("paths", "src/"),
        select=top.strings("select") if "select" in table else None,
        extend_select=top.strings("extend-select"),
        ignore=top.strings("ignore"),
        per_file_ignores=dict(top.lists("per-file-ignores")),
        exclude=top.patterns("exclude") if "exclude" in table else None,
        extend_exclude=top.patterns("extend-exclude"),
        target_version=top.version("target-version"),
        baseline=top.string("baseline", "mslint-baseline.toml"),
        lang=top.one_of("lang", LANGUAGES),
        verify=VerifySettings(
            entry=verify.string("entry", "main"),
            args=verify.strings("args", "--epochs=1"),
            fake_data=verify.flag("fake-data"),
            inputs=verify.strings("inputs", "image=float32[4,3,32,32]"),
            ranks=verify.whole_number("ranks"),
            timeout=verify.number("timeout"),
        ),
    )


class _Reader(NamedTuple):
    """Values of the expected kinds, or an error that names file and key."""

    filename: str
    home: str
    """The table that is ours; empty where the file is."""
    section: str
    table: Mapping[str, object]

    def refuse_unknown(self, known: Collection[str]) -> None:
        for key in self.table:
            if key not in known:
                where = self._table(self.section)
                near = nearest(key, known) or translated("; there are {keys}", keys=", ".join(known))
                told = (
                    translated("unknown key {key!r} in {where}{near}", key=key, where=where, near=near)
                    if where
                    else translated("unknown key {key!r}{near}", key=key, near=near)
                )
                raise UsageError(f"{self.filename}: {told}")

    def _table(self, section: str) -> str:
        """Return how the head of a section is written; nothing for the top of the file."""
        name = ".".join(filter(None, (self.home, section)))
        return f"[{name}]" if name else ""

    def strings(self, key: str, example: str = "MS101") -> tuple[str, ...]:
        return self._strings(key, self.table.get(key, []), example)

    def string(self, key: str, example: str) -> str | None:
        value = self.table.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise self._must(key, f'be a string such as "{example}"')
        return value

    def one_of(self, key: str, known: Sequence[str]) -> str | None:
        value = self.table.get(key)
        if value is not None and value not in known:
            raise self._must(key, "be " + " or ".join(f'"{word}"' for word in known))
        return None if value is None else str(value)

    def patterns(self, key: str) -> tuple[str, ...]:
        return self._valid_patterns(key, self.strings(key, "data/"))

    def lists(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        value = self.table.get(key, {})
        if not isinstance(value, Mapping):
            raise self._must(key, 'be a table such as {"tests/*" = ["MS1"]}')
        self._valid_patterns(key, tuple(value))
        for pattern, codes in value.items():
            yield pattern, self._strings(f"{key}.{pattern}", codes, "MS101")

    def table_of(self, key: str) -> Mapping[str, object]:
        value = self.table.get(key, {})
        if not isinstance(value, Mapping):
            raise self._must(key, f"be a table: write {self._table(key)} above its keys")
        return value

    def flag(self, key: str) -> bool:
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            raise self._must(key, "be true or false")
        return value

    def whole_number(self, key: str) -> int | None:
        value = self.table.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self._must(key, "be a whole number above 0")
        return value

    def number(self, key: str) -> float | None:
        value = self.table.get(key)
        if value is not None and not (
            isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9
        ):
            raise self._must(key, "be a number above 0")
        return value

    def version(self, key: str) -> Version:
        value = self.table.get(key, ".".join(map(str, NEWEST)))
        if not isinstance(value, str):
            # TOML reads 2.10 as the number 2.1: what was meant cannot be told any more.
            raise self._must(key, f'stand in quotes, as in {key} = "2.10"')
        try:
            return parse_version(value)
        except ValueError as error:
            raise UsageError(f'{self.filename}: {key}: {error}; write it as "2.10"') from None

    def _strings(self, key: str, value: object, example: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._must(key, f'be a list of strings such as ["{example}"]')
        return tuple(value)

    def _valid_patterns(self, key: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        for line in lines:
            try:
                patterns((line,))
            except ValueError:
                raise UsageError(
                    f"{self.filename}: {key}: {line!r} is no pattern; write one as in .gitignore"
                ) from None
        return lines

    def _must(self, key: str, what: str) -> UsageError:
        return UsageError(f"{self.filename}: {self.section and self.section + '.'}{key} must {what}")
