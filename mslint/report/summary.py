"""The last line of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mslint.findings import Applicability, Finding


@dataclass(frozen=True)
class Outcome:
    """How a check went: whether all could be checked, and how many findings a baseline silenced or holds in vain."""

    complete: bool
    silenced: int = 0
    gone: int = 0


def summary(findings: Sequence[Finding], outcome: Outcome) -> str:
    """Return how much was found and how much of it can be rewritten, and what the baseline has to do with it."""
    lines = [_found(findings)] if findings else ["All checks passed."] if outcome.complete else []
    if outcome.silenced:
        lines.append(f"{counted(outcome.silenced, 'more finding' if findings else 'finding')} in the baseline.")
    if outcome.gone:
        lines.append(f"{counted(outcome.gone, 'finding')} of the baseline gone: `mslint baseline prune` drops them.")
    return "".join(f"{line}\n" for line in lines)


def _found(findings: Sequence[Finding]) -> str:
    safe = _count(findings, Applicability.SAFE)
    unsafe = _count(findings, Applicability.UNSAFE)
    ways = [
        f"{safe} fixable with `mslint fix`" if safe else "",
        f"{unsafe} {'more ' if safe else ''}with `mslint fix --unsafe-fixes`" if unsafe else "",
    ]
    known = ", ".join(way for way in ways if way)
    return f"Found {counted(len(findings), 'finding')}{f' ({known})' if known else ''}."


def counted(number: int, noun: str) -> str:
    """Return ``1 finding``, ``2 findings``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _count(findings: Sequence[Finding], applicability: Applicability) -> int:
    return sum(finding.fix is not None and finding.fix.applicability is applicability for finding in findings)
