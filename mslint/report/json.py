"""Findings for programs to read. Keys and their meaning are a contract: design.md §8."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mslint.findings import Edit, Finding, Fix, Position, Related
from mslint.source.text import shown


def render(findings: Sequence[Finding], texts: Mapping[str, str], colour: bool) -> str:
    """Return the findings as a JSON array."""
    return json.dumps([as_object(finding) for finding in findings], indent=2, ensure_ascii=False) + "\n"


def as_object(finding: Finding) -> dict[str, object]:
    """Return one finding with the keys of the contract."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": finding.filename,
        "cell": finding.cell,
        "location": _position(finding.start),
        "end_location": _position(finding.end),
        "fix": _fix(finding.fix) if finding.fix else None,
        "related": [_related(related) for related in finding.related],
        "evidence": dict(finding.evidence) if finding.evidence is not None else None,
        "url": finding.url,
    }


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "codemod": fix.codemod,
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    """Return ``edit``; it names its file only where that is not the finding's, its cell only in a notebook."""
    elsewhere = {"filename": shown(Path(edit.filename))} if edit.filename else {}
    cell = {"cell": edit.cell} if edit.cell is not None else {}
    place = {"location": _position(edit.start), "end_location": _position(edit.end)}
    return {**elsewhere, **cell, "content": edit.content, **place}


def _related(related: Related) -> dict[str, object]:
    return {
        "message": related.message,
        "filename": related.filename,
        **({"cell": related.cell} if related.cell is not None else {}),
        "location": _position(related.start),
        "end_location": _position(related.end),
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}
