"""What expressions can stand for when a program is followed without running it: the part that every purpose shares."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

Key = Hashable
"""Says which value it is: values with equal keys are equal in every run of the program."""


@dataclass(frozen=True, order=True)
class Place:
    """A row and column of a file; rows count from 1, columns from 0 in bytes, as ``ast`` counts them."""

    path: Path
    row: int
    column: int


@dataclass(frozen=True, order=True)
class Stretch(Place):
    """A part of a file, from its first character to behind its last."""

    end_row: int
    end_column: int

    @classmethod
    def of(cls, path: Path, node: ast.expr | ast.stmt) -> Stretch:
        """Return where ``node`` of ``path`` stands."""
        return cls(path, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)

    def seen_from(self, path: Path) -> str:
        """Return its row, with its file where that is not ``path``, for messages."""
        return f"row {self.row}" if self.path == path else f"{self.path.name}, row {self.row}"


class Value:
    """Something an expression can be."""

    __slots__ = ()

    @property
    def key(self) -> Key:
        """What makes it this value."""
        return ("value", id(self))


Names = dict[object, Value]


@dataclass(eq=False, slots=True)
class Scope:
    """The names that a function, or a file's module level, sees; ``outer`` is the scope around it."""

    path: Path
    names: Names
    outer: Scope | None = None
    global_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Constant(Value):
    """A number, text, truth value or None."""

    value: object

    @property
    def key(self) -> Key:
        return ("constant", type(self.value).__name__, repr(self.value))


NONE = Constant(None)


@dataclass(frozen=True, slots=True)
class Reference(Value):
    """Something of MindSpore or of another package that is not read, under its canonical name."""

    name: str

    @property
    def key(self) -> Key:
        return ("reference", self.name)


@dataclass(eq=False, slots=True)
class Method(Value):
    """A method that ``owner`` has from MindSpore, from Python or from a package that is not read."""

    owner: Value
    name: str

    @property
    def key(self) -> Key:
        return ("attribute", self.owner.key, self.name)


@dataclass(eq=False, slots=True)
class Sequence(Value):
    """A list, tuple or set whose items are known one by one."""

    items: list[Value]


@dataclass(frozen=True, slots=True)
class Either(Value):
    """One of several values: branches of the program disagree."""

    options: tuple[Value, ...]

    @property
    def key(self) -> Key:
        return ("either", tuple(option.key for option in self.options))


@dataclass(eq=False, slots=True)
class Class(Value):
    """A class of the program, defined in ``scope``."""

    scope: Scope
    node: ast.ClassDef

    @property
    def name(self) -> str:
        """Its name as defined."""
        return self.node.name

    @property
    def reference(self) -> str:
        """Its name in the program."""
        return f"{self.scope.path}:{self.node.name}"

    @property
    def key(self) -> Key:
        return ("class", self.scope.path, self.node.lineno)


@dataclass(eq=False, slots=True)
class Function(Value):
    """A function of the program, defined in ``scope``; bound to an object if it is a method of the class ``owner``."""

    scope: Scope
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    owner: Class | None = None
    bound: Value | None = None
    defaults: dict[str, Value] = field(default_factory=dict)
    """Defaults of parameters that were worked out where the function was defined."""

    @property
    def name(self) -> str:
        """Its name as defined."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def key(self) -> Key:
        place = ("function", self.scope.path, self.node.lineno, self.node.col_offset)
        return (*place, self.bound.key) if self.bound is not None else place


@dataclass(eq=False, slots=True)
class Parent(Value):
    """``super()``: what comes behind the class ``owner`` in the lineage of ``this``."""

    this: Value
    owner: Class


@dataclass(slots=True)
class Call:
    """What a call passes, and where it stands.

    ``node`` is the call itself, None where no code of the program makes it. ``open`` says that ``*`` or ``**`` may pass
    more than is known.
    """

    arguments: list[Value]
    keywords: dict[str, Value]
    node: ast.AST | None = None
    open: bool = False
    rest: list[Value] = field(default_factory=list)
    """What ``*`` passes, it is not known at which positions."""

    @property
    def given(self) -> tuple[Value, ...]:
        """All values that are passed."""
        return (*self.arguments, *self.keywords.values(), *self.rest)

    def argument(self, position: int, *names: str) -> Value | None:
        """Return what is passed by one of ``names``, or else at ``position``; None if nothing is."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.arguments[position] if position < len(self.arguments) else None


def options(value: Value) -> tuple[Value, ...]:
    """Return the values that ``value`` may be."""
    return value.options if isinstance(value, Either) else (value,)
