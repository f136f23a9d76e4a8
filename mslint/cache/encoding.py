"""Findings as JSON and back, exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from mslint.findings import Applicability, Edit, Finding, Fix, Position, Related, Severity


def encoded(findings: Sequence[Finding]) -> str | None:
    """Return ``findings`` as JSON; None if that would not give them back as they are."""
    try:
        text = json.dumps([_plain(finding) for finding in findings], separators=(",", ":"))
        return text if decoded(text) == tuple(findings) else None
    except (TypeError, ValueError):  # a plugin may give evidence that JSON does not know
        return None


def texts_in(value: object) -> list[str]:
    """Return all texts in findings or parts of them."""
    plain = _plain(value)
    if isinstance(plain, str):
        return [plain]
    parts = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, (list, tuple)) else ()
    return [text for part in parts for text in texts_in(part)]


def decoded(text: str) -> tuple[Finding, ...]:
    """Return the findings that ``encoded`` wrote."""
    return tuple(map(_finding, json.loads(text)))


def _plain(value: object) -> object:
    if isinstance(value, Position):
        return [value.row, value.column]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        named = ((item.name, getattr(value, item.name)) for item in fields(value) if item.name != "subject")
        return {name: _plain(one) for name, one in named if one is not None}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _finding(plain: dict[str, Any]) -> Finding:
    fix = _fix(plain["fix"]) if "fix" in plain else None
    related = tuple(Related(**_placed(item)) for item in plain["related"])
    return Finding(**{**_placed(plain), "severity": Severity(plain["severity"]), "fix": fix, "related": related})


def _fix(plain: dict[str, Any]) -> Fix:
    edits = tuple(Edit(**_placed(item)) for item in plain["edits"])
    return Fix(**{**plain, "applicability": Applicability(plain["applicability"]), "edits": edits})


def _placed(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain, "start": Position(*plain["start"]), "end": Position(*plain["end"])}
