"""The last line of a report."""

from __future__ import annotations

from collections.abc import Sequence

from mslint.findings import Applicability, Finding


def summary(findings: Sequence[Finding], complete: bool) -> str:
    """Return how much was found and how much of it can be rewritten; ``complete`` if all files could be checked."""
    if not findings:
        return "All checks passed.\n" if complete else ""
    safe = _count(findings, Applicability.SAFE)
    unsafe = _count(findings, Applicability.UNSAFE)
    ways = [
        f"{safe} fixable with `mslint fix`" if safe else "",
        f"{unsafe} {'more ' if safe else ''}with `mslint fix --unsafe-fixes`" if unsafe else "",
    ]
    known = ", ".join(way for way in ways if way)
    return f"Found {counted(len(findings), 'finding')}{f' ({known})' if known else ''}.\n"


def counted(number: int, noun: str) -> str:
    """Return ``1 finding``, ``2 findings``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _count(findings: Sequence[Finding], applicability: Applicability) -> int:
    return sum(finding.fix is not None and finding.fix.applicability is applicability for finding in findings)
