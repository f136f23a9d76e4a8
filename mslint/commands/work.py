"""What check and fix share: the options that say which files and which rules, and what comes of them."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.config import Config, Version, find_config, parse_version, read_config
from mslint.console import UsageError, error, remedy, warning
from mslint.rules.registry import AnyRule, all_rules
from mslint.rules.selection import check_selectors, selected
from mslint.source.files import Exclusion, matched, patterns, python_files
from mslint.source.text import Source, Unreadable, decode, read, shown

if TYPE_CHECKING:
    from mslint.program.project import Program

STDIN = Path("-")


def add_paths(parser: ArgumentParser) -> None:
    """Add what names files and folders."""
    help = "files and folders (default: .); - reads standard input"
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help=help)
    parser.add_argument("--stdin-filename", metavar="NAME", default="-", help="what standard input is called")


def add_selection(parser: ArgumentParser) -> None:
    """Add the options that choose rules, configuration and the MindSpore to write for."""
    group = parser.add_argument_group("rules", "RULES: comma-separated codes, beginnings of codes, names, or ALL")
    for option, meaning in (
        ("--select", "only these; sets the configuration's choice aside"),
        ("--ignore", "not these"),
        ("--extend-select", "these too"),
    ):
        group.add_argument(option, metavar="RULES", type=_comma_separated, action="extend", help=meaning)
    group.add_argument(
        "--per-file-ignores",
        metavar="PATTERN:RULES",
        type=_pattern_and_rules,
        action="append",
        default=[],
        help="not these in files that match (as in .gitignore); repeatable",
    )
    parser.add_argument("--target-version", metavar="X.Y", type=_version, help="MindSpore to write for (default: 2.10)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="pyproject.toml or mslint.toml to use")


def _comma_separated(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        # An unset variable in a script, most likely: nothing selected would pass everything.
        raise argparse.ArgumentTypeError(f"{text!r} names no rule; leave the option out, or write ALL")
    return items


def _pattern_and_rules(text: str) -> tuple[str, list[str]]:
    pattern, colon, rules = text.rpartition(":")
    if not colon or not pattern:
        raise argparse.ArgumentTypeError(f"{text!r} is no PATTERN:RULES such as tests/*:MS101,MS2")
    return pattern, _comma_separated(rules)


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


@dataclass(frozen=True)
class Work:
    """The files to look at, and the rules that hold for each."""

    paths: tuple[Path, ...]
    config: Config
    rules: tuple[AnyRule, ...]
    per_file_ignores: Mapping[tuple[Path, str], tuple[str, ...]]
    """Selectors by the folder that a pattern is relative to and the pattern."""
    target_version: Version
    stdin_filename: str = "<stdin>"

    @property
    def files(self) -> list[Path]:
        """The Python files, standard input apart; a warning if there are none at all."""
        return self._found[0]

    @property
    def unreadable(self) -> list[Unreadable]:
        """The paths under which there may be more files, but which cannot be looked at."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[list[Path], list[Unreadable]]:
        problems: list[Unreadable] = []
        files = python_files([path for path in self.paths if path != STDIN], self._excluded, problems.append)
        if not files and not problems and STDIN not in self.paths:
            warning(f"no Python files found under {', '.join(map(str, self.paths))}")
        return files, sorted(problems, key=lambda problem: problem.filename)

    @cached_property
    def program(self) -> Program:
        """The program that the files make up."""
        from mslint.program.project import Program

        try:
            typed = self._standard_input
        except Unreadable:  # whoever reads the sources is told
            typed = None
        return Program(self.files) if typed is None else Program([typed.path], {typed.path: typed.text})

    @cached_property
    def _standard_input(self) -> Source | None:
        if STDIN not in self.paths:
            return None
        source = decode(_standard_input(), Path(self.stdin_filename).absolute(), self.stdin_filename)
        return replace(source, from_stdin=True)

    @property
    def _excluded(self) -> Exclusion:
        if not self.config.exclude:
            return lambda path, is_folder: False
        spec, folder = patterns(self.config.exclude), self.config.folder.resolve()
        return lambda path, is_folder: (
            path.is_relative_to(folder) and bool(matched(spec, path.relative_to(folder), is_folder))
        )

    def sources(self) -> Iterator[Source | None]:
        """Read the files in order; what cannot be read is reported and given as None."""
        for problem in self.unreadable:
            error(str(problem))
            yield None
        for path in [*(path for path in self.paths if path == STDIN), *self.files]:
            try:
                yield self._standard_input if path == STDIN else read(path)
            except Unreadable as problem:
                error(str(problem))
                yield None

    def rules_for(self, path: Path) -> Sequence[AnyRule]:
        """Return the rules that hold for the file at the absolute ``path``."""
        ignore: list[str] = []
        for (folder, pattern), selectors in self.per_file_ignores.items():
            if path.is_relative_to(folder) and matched(patterns((pattern,)), path.relative_to(folder)):
                ignore += selectors
        return selected(self.rules, ["ALL"], ignore) if ignore else self.rules


def _standard_input() -> bytes:
    if sys.stdin is None:  # so Python starts with a closed descriptor
        raise Unreadable("-", None, "standard input is closed", "name a file instead")
    try:
        return sys.stdin.buffer.read()
    except OSError as problem:
        raise Unreadable("-", None, f"cannot be read ({problem.strerror})", "name a file instead") from None


def prepare(options: Namespace) -> Work:
    """Bring command line and configuration together."""
    paths = options.paths or [Path()]
    if STDIN in paths and len(paths) > 1:
        raise UsageError("- (standard input) stands alone")
    places = [Path(options.stdin_filename) if path == STDIN else path for path in paths]
    config = read_config(options.config) if options.config else find_config([p for p in places if p != STDIN])
    cwd = Path.cwd()
    per_file = {(config.folder, pattern): tuple(codes) for pattern, codes in config.per_file_ignores.items()}
    per_file |= {(cwd, pattern): tuple(codes) for pattern, codes in options.per_file_ignores}
    _check_patterns("--per-file-ignores", (pattern for pattern, _ in options.per_file_ignores))
    if config.file:
        _check_patterns(f"{shown(config.file)}: exclude", config.exclude)
        _check_patterns(f"{shown(config.file)}: per-file-ignores", config.per_file_ignores)
    return Work(
        tuple(paths),
        config,
        tuple(_rules(config, options)),
        per_file,
        options.target_version or config.target_version,
        options.stdin_filename,
    )


def _check_patterns(origin: str, lines: Iterable[str]) -> None:
    for line in lines:
        try:
            patterns((line,))
        except ValueError:
            raise UsageError(f"{origin}: {line!r} is no pattern; write one as in .gitignore") from None


def _check_selectors(config: Config, options: Namespace) -> None:
    rules = all_rules()
    if config.file:
        written = [*(config.select or ()), *config.ignore, *config.extend_select]
        check_selectors(rules, [*written, *sum(config.per_file_ignores.values(), ())], str(config.file))
    for option in ("select", "ignore", "extend_select"):
        check_selectors(rules, getattr(options, option) or (), "--" + option.replace("_", "-"))
    for _, codes in options.per_file_ignores:
        check_selectors(rules, codes, "--per-file-ignores")


def _rules(config: Config, options: Namespace) -> list[AnyRule]:
    rules = all_rules()
    with remedy("`mslint rule` lists them"):
        _check_selectors(config, options)
    extended = options.extend_select or []
    ignored = options.ignore or []
    if options.select is not None:
        return selected(rules, [*options.select, *extended], ignored)
    chosen = ["ALL"] if config.select is None else config.select
    return selected(rules, [*chosen, *config.extend_select, *extended], [*config.ignore, *ignored])
