"""Findings as GitHub Actions takes them from a step's output, to show them beside the lines of a pull request.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mslint.findings import Finding, Severity
from mslint.report.places import in_file

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return one workflow command for each finding."""
    return "".join(_command(finding) + "\n" for finding in findings)


def _command(finding: Finding) -> str:
    start, end = in_file(finding, finding.start), in_file(finding, finding.end)
    properties = {
        "title": f"mslint {finding.code} ({finding.name})",
        "file": finding.filename,
        "line": start.row,
        "endLine": end.row,
        "col": start.column,
    }
    if start.row == end.row:
        properties["endColumn"] = end.column  # over several lines GitHub takes no columns
    else:
        del properties["col"]
    listed = ",".join(f"{key}={_in_property(str(value))}" for key, value in properties.items())
    place = f"{finding.text_name}:{finding.start.row}:{finding.start.column}"
    return f"::{_COMMANDS[finding.severity]} {listed}::{_in_message(f'{place}: {finding.code} {finding.message}')}"


def _in_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_property(text: str) -> str:
    return _in_message(text).replace(":", "%3A").replace(",", "%2C")
