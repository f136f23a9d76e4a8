"""Findings with the rewrites that codemods propose for them: the one way that both check and fix get them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.base import Manual
from codemods.registry import AnyCodemod
from mslint.config import Version
from mslint.console import internal_error
from mslint.engine import Checked, Screened, check_source
from mslint.findings import Applicability, Finding, Fix
from mslint.rules.registry import AnyRule
from mslint.source.text import Source

if TYPE_CHECKING:
    from mslint.program.project import Program


def examine(
    source: Source,
    rules: Iterable[AnyRule],
    program: Program,
    codemods: Sequence[AnyCodemod],
    target_version: Version,
    known: Screened | None = None,
) -> Checked:
    """Return what ``rules`` find in ``source``, each finding with its fix.

    A finding that brings no fix along gets the one that the first fitting codemod proposes. ``known`` is what screening the
    file has told, if that was done before.
    """
    checked = check_source(source, rules, program, known)
    if checked.module is None:
        return checked
    findings: list[Finding] = []
    failures = list(checked.failures)
    for finding in checked.findings:
        for entry in codemods if finding.fix is None else ():
            if finding.code not in entry.rules:
                continue
            try:
                codemod = entry()
                if not codemod.applies(finding):
                    continue
                finding = replace(finding, fix=codemod.propose(checked.module, finding, target_version))
            except Manual as reason:
                finding = replace(finding, fix=Fix(entry.name, Applicability.MANUAL, str(reason)))
            except Exception as exception:
                failures.append(internal_error(f"codemod {entry.name}", source.filename, exception))
            break
        if source.notebook and finding.fix:
            finding = replace(finding, fix=source.notebook.within_cells(finding.fix))
        # The subject has served; kept, it would hold the file's whole tree in memory until the report is written.
        findings.append(replace(finding, subject=None))
    return replace(checked, findings=tuple(findings), failures=tuple(failures))
