"""What a rehearsal takes for true: tests that led to where it stands, and values known to be a rank or number of ranks."""

from __future__ import annotations

from collections.abc import Mapping

from mslint.program.following import constants
from mslint.program.following.constants import MIRRORED, OPPOSITE
from mslint.program.rehearsal.values import (
    RANK_SIZE,
    Constant,
    Either,
    Key,
    Made,
    Method,
    Parallel,
    Sequence,
    Symbol,
    Table,
    Value,
    derived,
    options,
)

_ABOVE_ONE = ((">", "1", True), (">=", "2", True), ("==", "1", False), ("<=", "1", False), ("<", "2", False))
_AT_LEAST = {">=": True, "<": False}
_GREATER = {">": True, ">=": True, "!=": True, "==": False, "<": False, "<=": False}


class Assumptions:
    """Tests, by their key, with whether they hold. Those added inside ``with`` are forgotten afterwards."""

    def __init__(self, given: Mapping[Key, bool]) -> None:
        self._holding: dict[Key, bool] = {}
        for key, holds in given.items():
            self.assume(key, holds)
        self._given = self._holding
        self._kept: list[dict[Key, bool]] = []
        self._equal: dict[Key, Value] = {
            key[1]: RANK_SIZE for key in given if isinstance(key, tuple) and len(key) == 3 and self.is_rank_size(key[1])
        }
        """Values that are known to be the rank or the number of ranks without being computed from it."""

    def assume(self, key: Key, holds: bool) -> None:
        """Take the test ``key`` for decided from here on."""
        self._holding = {**self._holding, key: holds}
        if isinstance(key, tuple) and key and key[0] == "and" and holds:
            for part in key[1]:
                self.assume(*part)
        if isinstance(key, tuple) and key and key[0] == "or" and not holds:
            for part, positive in key[1]:
                self.assume(part, not positive)

    def __enter__(self) -> None:
        self._kept.append(self._holding)

    def __exit__(self, *_: object) -> None:
        self._holding = self._kept.pop()

    @property
    def added(self) -> tuple[tuple[Key, bool], ...]:
        """What is assumed beyond what was given."""
        return tuple((key, holds) for key, holds in self._holding.items() if self._given.get(key) is not holds)

    def is_rank_size(self, key: Key) -> bool:
        """Tell whether ``key`` is known to be a number above one."""
        return any(
            self._holding.get((sign, key, ("constant", "int", number))) is holds for sign, number, holds in _ABOVE_ONE
        )

    def equate(self, value: Value, meaning: Parallel) -> None:
        """Take ``value``, where it is not known, for ``meaning`` from here on."""
        for option in options(value):
            if isinstance(option, Symbol):
                self._equal[option.key] = meaning

    def meaning(self, symbol: Symbol) -> Value:
        """Return what ``symbol`` is known to be equal to, else itself."""
        return self._equal.get(symbol.key, symbol) if self._equal else symbol

    # ------------------------------------------------------------------ tests

    def truth(self, value: Value) -> bool | None:
        """Tell whether ``value`` counts as true; None if that is not known."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, Either):
            known = self._holding.get(value.key)
            if known is not None:
                return known
            answers = {self.truth(option) for option in value.options}
            return answers.pop() if len(answers) == 1 else None
        if isinstance(value, Parallel):
            return True if value is RANK_SIZE else None
        if isinstance(value, Sequence):
            return True if value.items else None
        if isinstance(value, Table):
            return True if value.names else None
        known = self._holding.get(value.key)
        if known is not None:
            return known
        if isinstance(value, Symbol):
            return True if self.is_rank_size(value.key) else self._compound(value.key)
        return None if isinstance(value, (Method, Made)) else True

    def _compound(self, key: Key) -> bool | None:
        """Decide a test that consists of others."""
        if not isinstance(key, tuple) or not key or key[0] not in ("and", "or"):
            return self._by_others(key)
        answers = []
        for part, positive in key[1]:
            known = self._holding.get(part)
            if known is None:
                known = self._compound(part)
            answers.append(None if known is None else known is positive)
        if key[0] == "and":
            return False if False in answers else True if all(answers) else None
        return True if True in answers else None if None in answers else False

    def _by_others(self, key: Key) -> bool | None:
        """Decide ``x == a`` where the facts say ``x == b`` or ``x in (...)``."""
        if not (isinstance(key, tuple) and len(key) == 3 and key[0] in ("==", "in")):
            return None
        sign, value, wanted = key
        wanted_constants = _constants(sign, wanted)
        if wanted_constants is None:
            return None
        for other, holds in self._holding.items():
            if not holds or not isinstance(other, tuple) or len(other) != 3 or other[1] != value:
                continue
            allowed = _constants(other[0], other[2])
            if not allowed:
                continue
            if not allowed & wanted_constants:
                return False
            if allowed <= wanted_constants:
                return True
        return None

    def compared(self, sign: str, left: Value, right: Value) -> Value:
        """Return ``left sign right``."""
        if isinstance(left, Either) or isinstance(right, Either):
            found = [self.compared(sign, a, b) for a in options(left) for b in options(right)]
            answers = {answer.value if isinstance(answer, Constant) else None for answer in found}
            if len(answers) == 1 and None not in answers:
                return found[0]
            return derived((sign, left.key, right.key), left, right)
        if isinstance(right, Parallel) and not isinstance(left, Parallel) and sign in MIRRORED:
            return self.compared(MIRRORED[sign], right, left)
        if isinstance(left, Symbol) and self.is_rank_size(left.key):
            left = RANK_SIZE
        known = _decided(sign, left, right)
        if known is not None:
            return Constant(known)
        # One test under one name, whichever way it is put.
        if sign in OPPOSITE:
            return self.negated(self.compared(OPPOSITE[sign], left, right))
        key_right = right.key
        if isinstance(right, Sequence):
            key_right = ("choice", tuple(sorted((item.key for item in right.items), key=repr)))
        return derived((sign, left.key, key_right), left, right)

    def negated(self, value: Value) -> Value:
        """Return ``not value``."""
        known = self.truth(value)
        if known is not None:
            return Constant(not known)
        key, positive = affirmed(value.key)
        return derived(("not", key) if positive else key, value)


def combined(sign: str, values: list[Value]) -> Value:
    """Return the undecided ``values`` joined by ``and`` or ``or``."""
    return derived((sign, tuple(affirmed(value.key) for value in values)), *values)


def affirmed(key: Key) -> tuple[Key, bool]:
    """Take ``not`` off a test: the test in it, and whether it stands for itself."""
    if isinstance(key, tuple) and key and key[0] == "not":
        return key[1], False
    return key, True


def _constants(sign: Key, right: Key) -> set[Key] | None:
    """Return the literals that a test ``x == right`` or ``x in right`` allows ``x`` to be."""
    if sign == "==":
        found = {right}
    elif sign == "in" and isinstance(right, tuple) and bool(right) and right[0] == "choice":
        found = set(right[1])
    else:
        return None
    return found if all(isinstance(key, tuple) and key[0] == "constant" for key in found) else None


def _decided(sign: str, left: Value, right: Value) -> bool | None:
    """Decide a comparison of values that are known well enough."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constants.compared(sign, left.value, right.value)
    if sign in ("is", "is not", "==", "!=") and isinstance(right, Constant) and right.value is None:
        if not isinstance(left, (Symbol, Method, Made)) or (sign.startswith("is") and isinstance(left, Made)):
            return sign in ("is not", "!=")
    if sign in ("in", "not in") and isinstance(right, Sequence) and isinstance(left, Constant):
        if any(isinstance(item, Constant) and item.value == left.value for item in right.items):
            return sign == "in"
        return sign == "not in" if all(isinstance(item, Constant) for item in right.items) else None
    if not (isinstance(left, Parallel) and isinstance(right, Constant) and isinstance(right.value, int)):
        return None
    # All that is known of the number of ranks is that there are at least two; of a rank, that it is no negative number.
    least = 2 if left is RANK_SIZE else 0
    return (_GREATER if right.value < least else _AT_LEAST if right.value == least else {}).get(sign)
