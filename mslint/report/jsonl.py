"""Findings for programs that read line by line: one JSON object each, with the keys of the JSON format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mslint.findings import Finding
from mslint.report.json import as_object


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return one line for each finding."""
    return "".join(json.dumps(as_object(finding), ensure_ascii=False) + "\n" for finding in findings)
