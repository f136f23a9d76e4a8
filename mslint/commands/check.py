"""``mslint check``: report what hurts a training program."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from codemods.registry import all_codemods
from mslint import language
from mslint.baseline import Baselines
from mslint.commands.examination import examine_all
from mslint.commands.work import Work, add_paths, add_selection, prepare
from mslint.console import UsageError, error, has_colour
from mslint.engine import SYNTAX_ERROR
from mslint.findings import Finding
from mslint.report.summary import Outcome, summary
from mslint.rules.registry import all_rules, load
from mslint.source.text import shown

if TYPE_CHECKING:
    from mslint.cache.store import Store

FORMATS = ("full", "concise", "json", "jsonl", "sarif", "github", "gitlab")
_FOR_PEOPLE = ("full", "concise")

OPERANDS = "[PATH ...]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint check``."""
    add_paths(parser)
    parser.add_argument(
        "--output-format",
        metavar="FORMAT",
        choices=FORMATS,
        default="full",
        help=f"{', '.join(FORMATS)} (default: full)",
    )
    parser.add_argument("--output-file", metavar="FILE", type=Path, help="write the report there")
    parser.add_argument("--statistics", action="store_true", help="count findings by rule instead of listing them")
    parser.add_argument("--show-files", action="store_true", help="list the files that would be checked")
    parser.add_argument("--exit-zero", action="store_true", help="findings alone do not make the exit code 1")
    parser.add_argument("--no-cache", action="store_true", help="work everything out anew, and keep nothing")
    parser.add_argument(
        "--cache-dir",
        metavar="DIR",
        type=Path,
        default=os.environ.get("MSLINT_CACHE_DIR") or None,
        help="where findings are kept (default: $MSLINT_CACHE_DIR, else .mslint_cache beside the configuration)",
    )
    parser.add_argument("--jobs", metavar="N", type=_jobs, help="processes to share the work (default: as it is worth)")
    add_selection(parser)


def run(options: Namespace) -> int:
    """Check and report; 1 if there are findings, 2 if something could not be checked."""
    work = prepare(options)
    if options.show_files:
        with _output(options.output_file) as stream:
            stream.write(_listed([shown(path) for path in work.files], options.output_format))
        for problem in work.unreadable:
            error(str(problem))
        return 2 if work.unreadable else 0
    done = examine_all(work, lambda: None if options.no_cache else _store(work, options.cache_dir), options.jobs)
    baselines = Baselines(work.baseline_for)
    findings = baselines.fresh(done.findings, done.texts, exempt={SYNTAX_ERROR[0]})
    outcome = Outcome(done.complete, baselines.silenced, baselines.gone(done.asked))
    with _output(options.output_file) as stream:
        stream.write(_report(findings, done.texts, outcome, options, has_colour(stream)))
    if not done.complete:
        return 2
    return 1 if findings and not options.exit_zero else 0


def _jobs(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of processes such as 4")
    return int(text)


def _store(work: Work, folder: Path | None) -> Store | None:
    """Return where findings are kept from one run to the next; None if it cannot be told whether they still hold."""
    from mslint.cache.fingerprint import fingerprint
    from mslint.cache.store import store_in

    plugins = [entry for entry in (*all_rules(), *all_codemods()) if isinstance(entry, type)]
    name = fingerprint(plugins)
    if name is None:
        return None
    return store_in(folder or work.configurations.within(Path.cwd()).folder / ".mslint_cache", name)


def _documentation(codes: set[str]) -> dict[str, tuple[str, str]]:
    """Return summary and full text of the rules with ``codes``."""
    rules = [load(rule) for rule in all_rules() if rule.code in codes]
    return {
        rule.code: (language.summary("rules", rule.code, rule.summary), cleandoc(rule.__doc__ or rule.summary))
        for rule in rules
    }


def _output(file: Path | None) -> nullcontext[TextIO] | TextIO:
    if file is None:
        return nullcontext(sys.stdout)
    try:
        return file.open("w", encoding="utf-8", newline="\n", errors="backslashreplace")
    except OSError as problem:
        raise UsageError(f"{file}: cannot be written ({problem.strerror})") from None


def _report(
    findings: Sequence[Finding], texts: Mapping[str, str], outcome: Outcome, options: Namespace, colour: bool
) -> str:
    if options.statistics:
        from mslint.report import statistics

        return statistics.render(findings, options.output_format)
    if options.output_format == "sarif":
        from mslint.report import sarif

        return sarif.render(findings, texts, _documentation({finding.code for finding in findings}))
    report = import_module(f"mslint.report.{options.output_format}")
    rendered: str = report.render(findings, texts, colour)
    return rendered + summary(findings, outcome) if options.output_format in _FOR_PEOPLE else rendered


def _listed(names: Sequence[str], output_format: str) -> str:
    import json

    if output_format == "json":
        return json.dumps(names, indent=2, ensure_ascii=False) + "\n"
    return "".join(f"{json.dumps(name, ensure_ascii=False) if output_format == 'jsonl' else name}\n" for name in names)
