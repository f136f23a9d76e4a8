"""Which rules a user wants: by code, by the beginning of a code, by name, or ALL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mslint.console import UsageError, nearest
from mslint.rules.registry import AnyRule


def selected(rules: Iterable[AnyRule], select: Sequence[str], ignore: Sequence[str]) -> list[AnyRule]:
    """Return the rules that ``select`` means and ``ignore`` does not; the longer selector wins, ``ignore`` a draw."""
    return [rule for rule in rules if _strength(rule, select) > _strength(rule, ignore)]


def check_selectors(rules: Iterable[AnyRule], selectors: Iterable[str], origin: str) -> None:
    """Refuse a selector that means no rule; ``origin`` says where it stands."""
    rules = list(rules)
    for selector in selectors:
        if not any(_matches(rule, selector) for rule in rules):
            known = [word for rule in rules for word in (rule.code, rule.name)]
            raise UsageError(f"unknown rule {selector!r} in {origin}{nearest(selector, known)}")


def _strength(rule: AnyRule, selectors: Iterable[str]) -> int:
    """Return how closely the selectors name ``rule``; -1 if they do not mean it."""
    return max((_length(rule, selector) for selector in selectors if _matches(rule, selector)), default=-1)


def _length(rule: AnyRule, selector: str) -> int:
    if selector == rule.name:
        return len(rule.code)
    return 0 if selector == "ALL" else len(selector)


def _matches(rule: AnyRule, selector: str) -> bool:
    return selector in ("ALL", rule.name) or (selector != "" and rule.code.startswith(selector))
