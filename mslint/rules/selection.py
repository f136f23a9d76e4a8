"""Which rules a user wants: by code, the beginning of a code, name, category, severity, or ALL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mslint.console import UsageError, nearest
from mslint.findings import Severity
from mslint.language import translated
from mslint.rules.registry import AnyRule, Narrowed, category

_SEVERITIES = frozenset(Severity)
_BROAD = len("MS1")
"""A category or severity says as much as the beginning of a code that stands for a category."""


def selected(rules: Iterable[AnyRule], select: Sequence[str], ignore: Sequence[str]) -> list[AnyRule]:
    """Return the rules that ``select`` means and ``ignore`` does not; the longer selector wins, ``ignore`` a draw.

    A rule that is wanted for some severities only comes back narrowed to them.
    """
    chosen: list[AnyRule] = []
    for rule in rules:
        wanted = frozenset(s for s in Severity if _strength(rule, s, select) > _strength(rule, s, ignore))
        known, wanted = (rule.rule, wanted & rule.severities) if isinstance(rule, Narrowed) else (rule, wanted)
        if wanted:
            chosen.append(known if wanted == _SEVERITIES else Narrowed(known, wanted))
    return chosen


def check_selectors(rules: Iterable[AnyRule], selectors: Iterable[str], origin: str) -> None:
    """Refuse a selector that means no rule; ``origin`` says where it stands."""
    rules = list(rules)
    for selector in selectors:
        if not any(_matches(rule, severity, selector) for rule in rules for severity in Severity):
            words = [word for rule in rules for word in (rule.code, rule.name, category(rule)) if word]
            known = ["ALL", *(severity.value for severity in Severity), *words]
            raise UsageError(
                translated(
                    "unknown rule {rule!r} in {origin}{near}",
                    rule=selector,
                    origin=origin,
                    near=nearest(selector, known),
                )
            )


def _strength(rule: AnyRule, severity: Severity, selectors: Iterable[str]) -> int:
    """Return how closely the selectors name ``rule``; -1 if they do not mean it."""
    return max((_length(rule, selector) for selector in selectors if _matches(rule, severity, selector)), default=-1)


def _length(rule: AnyRule, selector: str) -> int:
    if selector == rule.name:
        return len(rule.code)
    if selector == "ALL":
        return 0
    return len(selector) if rule.code.startswith(selector) else _BROAD


def _matches(rule: AnyRule, severity: Severity, selector: str) -> bool:
    if not selector:
        return False
    return selector in ("ALL", rule.name, category(rule), severity.value) or rule.code.startswith(selector)
