"""One line a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mslint.findings import Applicability, Finding
from mslint.report.style import Style


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return ``path:row:column: CODE message [fix]``, line by line."""
    paint = Style(colour)
    lines = []
    for finding in findings:
        place = f"{finding.text_name}:{finding.start.row}:{finding.start.column}"
        lines.append(
            f"{paint.bold(place)}: {paint.severity(finding, finding.code)} {finding.message}{_mark(finding)}\n"
        )
    return "".join(lines)


def _mark(finding: Finding) -> str:
    if finding.fix is None or finding.fix.applicability not in (Applicability.SAFE, Applicability.UNSAFE):
        return ""
    return " [fix]" if finding.fix.applicability is Applicability.SAFE else " [unsafe fix]"
