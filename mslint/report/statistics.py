"""How often each rule fired."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from mslint.findings import Applicability, Finding


def render(findings: Sequence[Finding], output_format: str) -> str:
    """Return counts by rule, most frequent first: a table, or objects in the JSON formats."""
    counts = Counter((finding.code, finding.name) for finding in findings)
    fixable = Counter(f.code for f in findings if f.fix and f.fix.applicability is Applicability.SAFE)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if output_format in ("json", "jsonl"):
        entries = [
            {"code": code, "name": name, "count": count, "fixable": fixable[code]} for (code, name), count in ordered
        ]
        if output_format == "jsonl":
            return "".join(json.dumps(entry) + "\n" for entry in entries)
        return json.dumps(entries, indent=2) + "\n"
    return "".join(
        f"{count:6} {code}  {name}{f'  ({fixable[code]} fixable with `mslint fix`)' if fixable[code] else ''}\n"
        for (code, name), count in ordered
    )
