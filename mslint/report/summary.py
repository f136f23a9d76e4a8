"""The last line of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mslint.findings import Applicability, Finding
from mslint.language import counted, translated


class Outcome(NamedTuple):
    """How a check went: whether all could be checked, and how many findings a baseline silenced or holds in vain."""

    complete: bool
    silenced: int = 0
    gone: int = 0


def summary(findings: Sequence[Finding], outcome: Outcome) -> str:
    """Return how much was found and how much of it can be rewritten, and what the baseline has to do with it."""
    lines = [_found(findings)] if findings else [translated("All checks passed.")] if outcome.complete else []
    if outcome.silenced:
        silenced = counted(outcome.silenced, "more finding" if findings else "finding")
        lines.append(translated("{findings} in the baseline.", findings=silenced))
    if outcome.gone:
        gone = counted(outcome.gone, "finding")
        lines.append(translated("{findings} of the baseline gone: `mslint baseline prune` drops them.", findings=gone))
    return "".join(f"{line}\n" for line in lines)


def _found(findings: Sequence[Finding]) -> str:
    safe = _count(findings, Applicability.SAFE)
    unsafe = _count(findings, Applicability.UNSAFE)
    found = counted(len(findings), "finding")
    if safe and unsafe:
        return translated(
            "Found {findings} ({safe} fixable with `mslint fix`, {unsafe} more with `mslint fix --unsafe-fixes`).",
            findings=found,
            safe=safe,
            unsafe=unsafe,
        )
    if safe:
        return translated("Found {findings} ({safe} fixable with `mslint fix`).", findings=found, safe=safe)
    if unsafe:
        return translated(
            "Found {findings} ({unsafe} with `mslint fix --unsafe-fixes`).", findings=found, unsafe=unsafe
        )
    return translated("Found {findings}.", findings=found)


def _count(findings: Sequence[Finding], applicability: Applicability) -> int:
    return sum(finding.fix is not None and finding.fix.applicability is applicability for finding in findings)
