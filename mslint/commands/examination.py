"""All files of a run examined: what check reports and the baseline holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from codemods.registry import all_codemods
from mslint.commands.proposals import examine
from mslint.commands.work import Work
from mslint.console import Progress, error
from mslint.findings import Finding
from mslint.rules.registry import Narrowed
from mslint.source.notebook import in_cells
from mslint.source.text import Source


@dataclass
class Examination:
    """The findings in all files, and the texts they are in by name.

    ``complete`` unless something could not be checked to the end. ``asked`` holds, for each file that could, the codes of
    the rules all of whose findings are known.
    """

    findings: list[Finding] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    asked: dict[Path, frozenset[str]] = field(default_factory=dict)


def examine_all(work: Work) -> Examination:
    """Examine the files of ``work``; what fails is told at once."""
    done = Examination()
    with Progress(len(work.files)) as progress:
        for source in work.sources():
            if source is None:
                done.complete = False
            else:
                progress.step(source.filename)
                _examine(source, work, done)
    return done


def _examine(source: Source, work: Work, done: Examination) -> None:
    rules = work.rules_for(source.file)
    checked = examine(source, rules, work.program, all_codemods(), work.version_for(source.file))
    for failure in checked.failures:
        error(failure)
    if checked.complete:
        codes = (rule.code for rule in rules if not isinstance(rule, Narrowed))
        done.asked[source.file] = frozenset(codes)
    else:
        done.complete = False
    done.findings += (in_cells(finding, work.notebooks) for finding in checked.findings)
    if checked.findings:
        done.texts |= source.notebook.texts() if source.notebook else {source.filename: source.text}
