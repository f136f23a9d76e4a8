"""Findings for code hosts: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from mslint import __version__
from mslint.findings import Edit, Finding, Fix, Position, Related, Severity
from mslint.report.fingerprints import fingerprints
from mslint.report.markdown import markdown, plain
from mslint.report.places import in_file, in_words
from mslint.source.text import shown

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(findings: Sequence[Finding], texts: Mapping[str, str], documentation: Mapping[str, tuple[str, str]]) -> str:
    """Return the findings as one SARIF run; columns count characters, as in every other format.

    ``texts`` are those that the findings are in, by name; ``documentation`` holds, by code, each rule's summary and its full
    text.
    """
    marks = fingerprints(findings, texts)
    run = {
        "tool": {
            "driver": {"name": "mslint", "semanticVersion": __version__, "rules": _rules(findings, documentation)}
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, mark) for finding, mark in zip(findings, marks, strict=True)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rules(findings: Sequence[Finding], documentation: Mapping[str, tuple[str, str]]) -> list[dict[str, object]]:
    """Return the descriptors of the rules that the results name."""
    described: dict[str, dict[str, object]] = {}
    for finding in findings:
        descriptor: dict[str, object] = {"id": finding.code, "name": finding.name}
        if finding.code in documentation:
            # https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support wants all three.
            summary, text = documentation[finding.code]
            descriptor |= {
                "shortDescription": {"text": summary},
                "fullDescription": {"text": plain(text).partition("\n\n")[0]},
                "help": {"text": plain(text), "markdown": markdown(text)},
            }
        described[finding.code] = descriptor
    return [described[code] for code in sorted(described)]


def _result(finding: Finding, fingerprint: str) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": in_words(finding) + finding.message},
        "locations": [_location(finding)],
        "partialFingerprints": {"mslintStatement/v1": fingerprint},
    }
    if finding.related:
        result["relatedLocations"] = [
            {**_location(item), "id": number, "message": {"text": in_words(item) + item.message}}
            for number, item in enumerate(finding.related)
        ]
    # A rewrite of a cell is none of rows and columns of the file.
    if finding.fix is not None and finding.fix.edits and finding.cell is None:
        result["fixes"] = [_fix(finding.filename, finding.fix)]
    return result


def _location(place: Finding | Related) -> dict[str, object]:
    region = _region(in_file(place, place.start), in_file(place, place.end))
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.filename)}, "region": region}}


def _fix(filename: str, fix: Fix) -> dict[str, object]:
    by_file: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_file.setdefault(shown(Path(edit.filename)) if edit.filename else filename, []).append(edit)
    return {
        "description": {"text": f"{fix.message} ({fix.codemod}, {fix.applicability.value})"},
        "artifactChanges": [
            {"artifactLocation": {"uri": _uri(name)}, "replacements": [_replacement(edit) for edit in edits]}
            for name, edits in by_file.items()
        ],
    }


def _replacement(edit: Edit) -> dict[str, object]:
    return {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.content}}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {
        "startLine": start.row,
        "startColumn": start.column,
        "endLine": end.row,
        "endColumn": end.column,
    }


def _uri(filename: str) -> str:
    name = quote(filename.replace("\\", "/"), errors="surrogateescape")
    return f"file://{name}" if filename.startswith("/") else name
