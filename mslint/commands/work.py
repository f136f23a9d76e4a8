"""What check and fix share: the options that say which files and which rules, and what comes of them."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mslint.config import Config, Configurations, Version, parse_version, read_config
from mslint.console import UsageError, error, remedy, warning
from mslint.language import translated
from mslint.rules.registry import AnyRule, all_rules
from mslint.rules.selection import check_selectors, selected
from mslint.source.files import located, matched, patterns, python_files
from mslint.source.text import NOTEBOOK_SUFFIX, Source, Unreadable, decode, read, shown, stand_in

if TYPE_CHECKING:
    from mslint.program.project import Program
    from mslint.source.notebook import Notebook

STDIN = Path("-")


def add_paths(parser: ArgumentParser) -> None:
    """Add what names files and folders."""
    help = "files, folders, or - for standard input"
    parser.add_argument("paths", metavar="PATH", nargs="*", default=[], type=Path, help=help)
    parser.add_argument("--stdin-filename", metavar="NAME", default="-", help="what standard input is called")
    parser.add_argument("--force-exclude", action="store_true", help="leave out excluded files that are named, too")


def add_selection(parser: ArgumentParser, baseline: str = "leave out the findings that it holds") -> None:
    """Add the options that choose rules, configuration and the MindSpore to write for; ``baseline`` says what that is for."""
    group = parser.add_argument_group(
        "rules", "RULES: comma-separated codes, beginnings of codes, names, categories, severities, or ALL"
    )
    for option, meaning in (
        ("--select", "only these, whatever the configuration says"),
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
        help="not these in files that match; repeatable",
    )
    parser.add_argument("--target-version", metavar="X.Y", type=_version, help="MindSpore to write for (default: 2.10)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="pyproject.toml or mslint.toml to use")
    parser.add_argument("--baseline", metavar="FILE", type=Path, help=baseline)


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


class Wishes(NamedTuple):
    """What the command line says: it goes before what the configurations say."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    target_version: Version | None = None
    baseline: Path | None = None


@dataclass(frozen=True)
class Work:
    """The files to look at, and what holds for each."""

    paths: tuple[Path, ...]
    configurations: Configurations
    wishes: Wishes
    stdin_filename: str = "<stdin>"
    force_exclude: bool = False
    _chosen: dict[Path | None, list[AnyRule]] = field(default_factory=dict)
    """The rules by file of the configuration."""

    @property
    def files(self) -> list[Path]:
        """The Python files and notebooks, standard input apart; a warning if there are none at all."""
        return self._found[0]

    @property
    def unreadable(self) -> list[Unreadable]:
        """The paths under which there may be more files, but which cannot be looked at."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[list[Path], list[Unreadable]]:
        problems: list[Unreadable] = []
        wanted = [path for path in self.paths if path != STDIN and not (self.force_exclude and self.keeps_out(path))]
        files = python_files(wanted, self._excluded, problems.append)
        if not files and not problems and wanted:
            warning(translated("no Python files found under {paths}", paths=", ".join(map(str, wanted))))
        return files, sorted(problems, key=lambda problem: problem.filename)

    def _excluded(self, path: Path, is_folder: bool) -> bool:
        return self.configurations.at(path.parent).excludes(path, is_folder)

    def keeps_out(self, path: Path) -> bool:
        """Tell whether a walk from the folder of its configuration would leave the file at ``path`` out."""
        top, place = self.configurations.of(path).folder, located(path)
        folders = [folder for folder in place.parents if folder.is_relative_to(top) and folder != top]
        return self._excluded(place, place.is_dir()) or any(self._excluded(folder, True) for folder in folders)

    @cached_property
    def program(self) -> Program:
        """The program that the files make up."""
        from mslint.program.project import Program

        try:
            typed = self._standard_input
        except Unreadable:  # whoever reads the sources is told
            typed = None
        if typed is not None:
            return Program([typed.path], {typed.path: typed.text})
        scripts = [path for path in self.files if path.suffix != NOTEBOOK_SUFFIX]
        texts = {stand_in(path): notebook.text for path, notebook in self.notebooks.items()}
        return Program([*scripts, *texts], texts)

    @cached_property
    def notebooks(self) -> dict[Path, Notebook]:
        """The notebooks among the files, those that can be read."""
        found: dict[Path, Notebook] = {}
        for path in [STDIN] * self.takes_stdin + [path for path in self.files if path.suffix == NOTEBOOK_SUFFIX]:
            with suppress(Unreadable):  # whoever reads the sources is told
                source = self._standard_input if path == STDIN else read(path)
                if source is not None and source.notebook is not None:
                    found[source.file] = source.notebook
        return found

    @property
    def takes_stdin(self) -> bool:
        """Whether standard input is to be looked at: named, and its file not left out."""
        return STDIN in self.paths and not (self.force_exclude and self.keeps_out(Path(self.stdin_filename)))

    @cached_property
    def _standard_input(self) -> Source | None:
        if not self.takes_stdin:
            return None
        source = decode(_standard_input(), Path(self.stdin_filename).absolute(), self.stdin_filename)
        return replace(source, from_stdin=True)

    def sources(self) -> Iterator[Source | None]:
        """Read the files in order; what cannot be read is reported and given as None."""
        for problem in self.unreadable:
            error(str(problem))
            yield None
        for path in [*[STDIN] * self.takes_stdin, *self.files]:
            try:
                yield self._standard_input if path == STDIN else read(path)
            except Unreadable as problem:
                error(str(problem))
                yield None

    def rules_for(self, path: Path) -> Sequence[AnyRule]:
        """Return the rules that hold for the file at ``path``."""
        config = self.configurations.of(path)
        rules = self.rules_by(config)
        if not config.per_file_ignores and not self.wishes.per_file_ignores:
            return rules
        own = [(config.folder, pattern, selectors) for pattern, selectors in config.per_file_ignores.items()]
        asked = [(Path.cwd(), pattern, selectors) for pattern, selectors in self.wishes.per_file_ignores]
        place = located(path)
        ignore: list[str] = []
        for folder, pattern, selectors in (*own, *asked):
            if place.is_relative_to(folder) and matched(patterns((pattern,)), place.relative_to(folder)):
                ignore += selectors
        return selected(rules, ["ALL"], ignore) if ignore else rules

    def rules_by(self, config: Config) -> list[AnyRule]:
        """Return the rules that hold where ``config`` does. Raises UsageError if it names rules that there are not."""
        if config.file not in self._chosen:
            self._chosen[config.file] = self._choose(config)
        return self._chosen[config.file]

    def _choose(self, config: Config) -> list[AnyRule]:
        rules, wishes = all_rules(), self.wishes
        if config.file:
            with _rule_remedy():
                check_selectors(rules, config.selectors(), shown(config.file))
        if wishes.select is not None:
            return selected(rules, [*wishes.select, *wishes.extend_select], wishes.ignore)
        chosen = ["ALL"] if config.select is None else config.select
        return selected(
            rules, [*chosen, *config.extend_select, *wishes.extend_select], [*config.ignore, *wishes.ignore]
        )

    def version_for(self, path: Path) -> Version:
        """Return the MindSpore that the file at ``path`` is written for."""
        return self.wishes.target_version or self.configurations.of(path).target_version

    def baseline_for(self, path: Path) -> Path | None:
        """Return the baseline that holds for the file at ``path``; there need not be such a file yet."""
        if self.wishes.baseline is not None:
            return self.wishes.baseline.absolute()
        config = self.configurations.of(path)
        return config.folder / config.baseline if config.baseline is not None else None


def _standard_input() -> bytes:
    if sys.stdin is None:  # so Python starts with a closed descriptor
        raise Unreadable("-", None, "standard input is closed", "name a file instead")
    try:
        return sys.stdin.buffer.read()
    except OSError as problem:
        raise Unreadable("-", None, f"cannot be read ({problem.strerror})", "name a file instead") from None


def prepare(options: Namespace) -> Work:
    """Bring command line and configuration together."""
    wishes = Wishes(
        None if options.select is None else tuple(options.select),
        tuple(options.extend_select or ()),
        tuple(options.ignore or ()),
        tuple((pattern, tuple(selectors)) for pattern, selectors in options.per_file_ignores),
        options.target_version,
        options.baseline,
    )
    _check(wishes)
    configurations = Configurations(read_config(options.config) if options.config else None)
    paths = options.paths or _usual_paths(configurations.within(Path.cwd()))
    if STDIN in paths and len(paths) > 1:
        raise UsageError(translated("- (standard input) stands alone"))
    work = Work(tuple(paths), configurations, wishes, options.stdin_filename, options.force_exclude)
    for path in paths:  # a mistake is told even if there is no file that it matters for
        work.rules_by(configurations.within(path) if os.path.isdir(path) else configurations.of(path))
    return work


def _usual_paths(config: Config) -> list[Path]:
    """Return what to look at where the command line does not say."""
    for path in config.paths:
        if not os.path.exists(config.folder / path):
            raise UsageError(
                f"{shown(config.file or config.folder)}: paths: {path}: no such file or folder; correct it"
            )
    return [config.folder / path for path in config.paths] or [Path()]


def _check(wishes: Wishes) -> None:
    rules = all_rules()
    with _rule_remedy():
        check_selectors(rules, wishes.select or (), "--select")
        check_selectors(rules, wishes.ignore, "--ignore")
        check_selectors(rules, wishes.extend_select, "--extend-select")
        for pattern, selectors in wishes.per_file_ignores:
            check_selectors(rules, selectors, "--per-file-ignores")
            try:
                patterns((pattern,))
            except ValueError:
                raise UsageError(f"--per-file-ignores: {pattern!r} is no pattern; write one as in .gitignore") from None


def _rule_remedy() -> AbstractContextManager[None]:
    return remedy(translated("`mslint rule` lists them"))
