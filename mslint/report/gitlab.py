"""Findings as GitLab takes them for its code quality report.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mslint.findings import Finding, Position, Severity
from mslint.report.fingerprints import fingerprints
from mslint.report.places import in_file, in_words

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return the findings as a JSON array; GitLab tells by the fingerprints which of them are new."""
    marks = fingerprints(findings, texts)
    issues = [_issue(finding, mark) for finding, mark in zip(findings, marks, strict=True)]
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(finding: Finding, fingerprint: str) -> dict[str, object]:
    return {
        "description": f"{finding.code} {in_words(finding)}{finding.message}",
        "check_name": finding.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": finding.filename.replace("\\", "/"),
            "positions": {"begin": _position(finding, finding.start), "end": _position(finding, finding.end)},
        },
    }


def _position(finding: Finding, position: Position) -> dict[str, int]:
    place = in_file(finding, position)
    return {"line": place.row, "column": place.column}
