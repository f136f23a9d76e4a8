"""What a rehearsal of a program (see follow.py) knows of the values in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

from mslint.program.following import values as following
from mslint.program.following.values import (
    NONE,
    Constant,
    Either,
    Function,
    Key,
    Method,
    Names,
    Place,
    Reference,
    Scope,
    Sequence,
    Value,
    options,
)

__all__ = [
    "DEVICE_ID", "NONE", "RANK", "RANK_SIZE", "Class", "Constant", "Either", "Function", "Key", "Later", "Made", "Method",
    "ModuleValue", "Names", "Object", "Parallel", "Partial", "Pipeline", "Place", "Reference", "Scope", "Sequence", "Symbol",
    "Table", "Value", "by_rank", "derived", "join", "named", "options", "parts",
]  # fmt: skip


@dataclass(frozen=True)
class Parallel(Value):
    """A number that only a distributed run has: see the three below."""

    name: str

    @property
    def key(self) -> Key:
        return ("parallel", self.name)


RANK_SIZE = Parallel("number of ranks")
RANK = Parallel("rank")
DEVICE_ID = Parallel("device id")
"""The number of a device within its host: equal to the rank on one host only."""


@dataclass(frozen=True)
class Symbol(Value):
    """A value that is not known, but always the same for one ``key``.

    ``data`` are the data sets it was computed from (numbers of events), ``parallel`` tells whether a rank or the number of
    ranks went into it, and ``local`` whether a device id did.
    """

    origin: Key
    data: frozenset[int] = frozenset()
    parallel: bool = False
    local: bool = False
    depth: int = field(default=1, compare=False)
    """How many symbols deep ``key`` is nested."""

    @property
    def key(self) -> Key:
        return self.origin


@dataclass(frozen=True, eq=False)
class Made(Value):
    """What a call of another library's class or function returned."""

    name: str
    place: Place
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def key(self) -> Key:
        return ("made", self.name, self.place)


@dataclass(frozen=True)
class Pipeline(Value):
    """A data set: the numbers of the events that built its sources."""

    data: frozenset[int]

    @property
    def key(self) -> Key:
        return ("pipeline", self.data)


@dataclass(eq=False)
class Class(following.Class):
    """A class of the program, whose body was followed; ``bases`` may be other libraries' classes."""

    bases: tuple[Value, ...] = ()
    names: Names = field(default_factory=dict)

    def lineage(self) -> Iterator[Class]:
        """Yield the class and its bases in the program, nearest first."""
        yield self
        for base in self.bases:
            for option in options(base):
                if isinstance(option, Class) and option is not self:
                    yield from option.lineage()

    def foreign(self) -> Iterator[str]:
        """Yield the canonical names of its bases in other libraries."""
        for one in self.lineage():
            for base in one.bases:
                yield from (option.name for option in options(base) if isinstance(option, Reference))


@dataclass(eq=False)
class Object(Value):
    """An instance of a class of the program."""

    kind: Class
    place: Place
    names: Names = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return ("object", self.kind.key, self.place)


@dataclass(eq=False)
class ModuleValue(Value):
    """A file of the program, imported."""

    scope: Scope

    @property
    def key(self) -> Key:
        return ("module", self.scope.path)


@dataclass(frozen=True)
class Later(Value):
    """A name imported from a file that is run only when the name is used."""

    path: Path
    name: str


@dataclass(eq=False)
class Table(Value):
    """A dictionary; ``open`` if it may hold more than is known.

    ``settings`` is where a configuration object (EasyDict and the like) was made: what stands in it is for people to
    change, so its plain values decide nothing.
    """

    names: Names = field(default_factory=dict)
    open: bool = False
    settings: Place | None = None

    @property
    def key(self) -> Key:
        return ("table", self.settings) if self.settings else ("value", id(self))


@dataclass(eq=False)
class Partial(Value):
    """``functools.partial(function, ...)``."""

    function: Value
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


_MOST_OPTIONS = 8
_DEEPEST_KEY = 6


def named(values: Mapping[str, Value]) -> Names:
    """Return keyword arguments as a dictionary of the program."""
    return {name: value for name, value in values.items()}  # noqa: C416 (dict() would keep the type of the keys)


def join(values: Iterable[Value]) -> Value:
    """Return the value that is one of ``values``."""
    found: dict[Key, Value] = {}
    for value in values:
        for option in options(value):
            found.setdefault(option.key, option)
    if not found:
        return NONE
    if len(found) == 1:
        return next(iter(found.values()))
    if len(found) > _MOST_OPTIONS:
        return derived(("one of", tuple(found)), *found.values())
    return Either(tuple(found.values()))


def derived(key: Key, *sources: Value) -> Symbol:
    """Return the unknown value ``key`` that was computed from ``sources``."""
    data: frozenset[int] = frozenset()
    parallel = local = False
    depth = 0
    for source in sources:
        more, also, too = parts(source)
        data, parallel, local = data | more, parallel or also, local or too
        depth = max([depth, *(option.depth for option in options(source) if isinstance(option, Symbol))])
    if depth >= _DEEPEST_KEY:
        # Keys that hold keys double in size with every step: put a digest in the place of a large one.
        return Symbol(("digest", md5(repr(key).encode(), usedforsecurity=False).hexdigest()), data, parallel, local)
    return Symbol(key, data, parallel, local, depth + 1)


def by_rank(key: Key) -> Symbol:
    """Return the unknown value ``key`` that differs between ranks."""
    return derived(key, RANK)


def parts(value: Value, depth: int = 3) -> tuple[frozenset[int], bool, bool]:
    """Return the data sets that ``value`` holds, whether it holds a rank or number of ranks, and whether a device id."""
    if isinstance(value, Parallel):
        return frozenset(), value is not DEVICE_ID, value is DEVICE_ID
    if isinstance(value, Symbol):
        return value.data, value.parallel, value.local
    if isinstance(value, Pipeline):
        return value.data, False, False
    if depth == 0:
        return frozenset(), False, False
    if isinstance(value, Either):
        depth += 1
    data: frozenset[int] = frozenset()
    parallel = local = False
    for item in _held(value):
        more, also, too = parts(item, depth - 1)
        data, parallel, local = data | more, parallel or also, local or too
    return data, parallel, local


def _held(value: Value) -> Iterable[Value]:
    if isinstance(value, Either):
        return value.options
    if isinstance(value, Sequence):
        return value.items
    if isinstance(value, (Table, Object)):
        return list(value.names.values())
    if isinstance(value, Method):
        return (value.owner,)
    if isinstance(value, (Made, Partial)):
        return (*value.arguments, *(part for _, part in value.keywords))
    return ()
