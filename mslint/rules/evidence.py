"""What was measured of a rule's rewrite, for the findings of the rule to carry along."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parents[1] / "data" / "evidence.json"


def evidence_of(code: str) -> Mapping[str, object] | None:
    """Return the version of MindSpore, the command and the counts before and after, by mode; None if nothing was measured.

    data/make_evidence.py measures them. Counts of forward and backward nodes, bytes kept for the backward, autograd nodes and
    operator calls are of one training step of the fixture that the command names, not of the user's program.
    """
    return _table().get(code)


@cache
def _table() -> Mapping[str, Mapping[str, object]]:
    import json

    rules: Mapping[str, Mapping[str, object]] = json.loads(_TABLE.read_text(encoding="utf-8"))["rules"]
    return rules
