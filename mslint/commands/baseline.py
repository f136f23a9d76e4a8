"""``mslint baseline``: put up with the findings that are there now, so that only new ones are reported."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mslint.baseline import USUAL_NAME, counted, pruned, read, save, written_anew
from mslint.commands.examination import Examination, examine_all
from mslint.commands.work import STDIN, Work, add_paths, add_selection, prepare
from mslint.console import UsageError, warning
from mslint.engine import SYNTAX_ERROR
from mslint.language import counted as number_of
from mslint.language import translated
from mslint.source.text import shown

OPERANDS = "{write,prune} [PATH ...]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint baseline``."""
    parser.add_argument(
        "action", choices=("write", "prune"), help="write: put up with what is found now; prune: drop what is gone"
    )
    add_paths(parser)
    add_selection(parser, baseline="the baseline (default: the configuration's, else mslint-baseline.toml)")


def run(options: Namespace) -> int:
    """Write or prune the baseline of each file checked; 2 if something could not be checked."""
    work = prepare(options)
    if STDIN in work.paths:
        raise UsageError(translated("a baseline is written for files, not for standard input"))
    done = examine_all(work)
    here = work.configurations.within(Path.cwd()).folder / USUAL_NAME
    named = {work.baseline_for(path) for path in (*work.files, here)} - {None}
    usual = None if named else here
    homeless = sum(work.baseline_for(Path(finding.filename)) is None for finding in done.findings)
    if named and homeless:
        findings = number_of(homeless, "finding")
        warning(
            translated("{findings} left out: the configuration of their files names no baseline", findings=findings)
        )
    for file in sorted({file for file in (usual, *named) if file is not None}):
        _update(file, options.action, done, partial(_belongs, work, file, usual))
    if usual:
        print(
            translated(
                'Add `baseline = "{name}"` below [tool.mslint] in pyproject.toml, or check with `--baseline {file}`.',
                name=usual.name,
                file=shown(usual),
            )
        )
    return 0 if done.complete else 2


def _belongs(work: Work, file: Path, usual: Path | None, path: Path) -> bool:
    return (work.baseline_for(path) or usual) == file


def _update(file: Path, action: str, done: Examination, belongs: Callable[[Path], bool]) -> None:
    asked = {path: codes for path, codes in done.asked.items() if belongs(path)}
    own = [one for one in done.findings if one.code != SYNTAX_ERROR[0] and belongs(Path(one.filename))]
    found = counted(own, done.texts, file)
    old = read(file) if action == "prune" or file.exists() else {}
    new = (pruned if action == "prune" else written_anew)(old, found, asked, file)
    save(file, new)
    dropped = sum(count - new.get(entry, 0) for entry, count in old.items() if count > new.get(entry, 0))
    gone = translated(", {number} dropped", number=dropped)
    print(f"{shown(file)}: {number_of(sum(new.values()), 'finding')}{gone if dropped else ''}")
