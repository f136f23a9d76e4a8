"""What expressions of a training program stand for when the program is followed without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True, order=True)
class Place:
    """A stretch of a file; rows from 1, columns from 0 in bytes, as ``ast`` counts them."""

    path: Path
    row: int
    column: int
    end_row: int
    end_column: int

    @classmethod
    def of(cls, path: Path, node: ast.expr | ast.stmt) -> Place:
        """Return where ``node`` of ``path`` stands."""
        return cls(path, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


@dataclass(frozen=True)
class Feature:
    """The output of a network that is not trained, computed from nothing that is trained.

    ``network`` is the network's name as written where it is called, ``place`` the outermost call that returns nothing but
    this output, ``reason`` why the network counts as not trained.
    """

    place: Place
    network: str
    reason: Reason
    layers: int
    """How many layers with parameters the network has."""
    weighted: bool
    """Whether parameters of it are among the weights all the same."""
    frame: int = field(compare=False, default=0)
    outer: Place | None = field(compare=False, default=None)
    """The call in the loss itself that it comes from."""


@dataclass(frozen=True)
class Reason:
    """Why a network is not trained: frozen at ``place``, or left out by the optimizer made at ``place``."""

    frozen: bool
    place: Place


@dataclass(frozen=True)
class Flow:
    """What a tensor depends on: trained parameters (by an open gradient path) and outputs of networks not trained."""

    trained: bool = False
    features: frozenset[Feature] = frozenset()
    hushed: frozenset[Thing] = frozenset()
    """Networks that are trained by way of this, although ``set_grad(False)`` or the like was called on them."""


CLOSED = Flow()
TRAINED = Flow(trained=True)


class Value:
    """Anything that a name can stand for."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Tensor(Value):
    """A tensor, a number, or data of a kind that does not matter."""

    flow: Flow = CLOSED


@dataclass(eq=False, slots=True)
class Constant(Value):
    """A literal."""

    value: object


@dataclass(eq=False, slots=True)
class Sequence(Value):
    """A list or tuple whose items are known one by one."""

    items: list[Value]


@dataclass(eq=False, slots=True)
class Many(Value):
    """Items of one kind, how many is not known."""

    item: Value


@dataclass(eq=False, slots=True)
class Mapping(Value):
    """A dictionary; ``others`` are the values under keys that are not known."""

    entries: dict[object, Value]
    others: list[Value]


@dataclass(eq=False, slots=True)
class Union(Value):
    """One of several things, depending on conditions that are not known."""

    options: tuple[Value, ...]


@dataclass(eq=False, slots=True)
class Interface(Value):
    """A name of MindSpore or of another package that is not read."""

    name: str


@dataclass(eq=False, slots=True)
class File(Value):
    """A module of the project."""

    path: Path


@dataclass(eq=False, slots=True)
class Class(Value):
    """A class of the project."""

    reference: str
    path: Path
    node: ast.ClassDef


@dataclass(eq=False)
class Scope:
    """Names of a running function, and the scope around it."""

    path: Path
    names: dict[str, Value]
    outer: Scope | None = None


@dataclass(eq=False, slots=True)
class Function(Value):
    """A function of the project, with the scope it was defined in and what it is bound to."""

    path: Path
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    outer: Scope | None = None
    this: Value | None = None
    owner: str | None = None
    """The class that defines it."""


@dataclass(eq=False, slots=True)
class Parent(Value):
    """``super()``: what comes after the class ``owner`` in the lineage of ``this``."""

    this: Thing
    owner: str


@dataclass(eq=False, slots=True)
class Member(Value):
    """A method that a thing has from MindSpore or from a package that is not read."""

    this: Value
    name: str


@dataclass(eq=False, slots=True)
class Parameters(Value):
    """Parameters of some networks; ``partial`` if not all of them are meant.

    ``trainable`` leaves out those that are frozen. ``one`` says that it is a single one of them.
    """

    things: tuple[Thing, ...]
    trainable: bool
    partial: bool = False
    one: bool = False
    optimizer: Weights | None = None
    """What the optimizer that they were taken from updates."""


@dataclass(eq=False, slots=True)
class GradientMaker(Value):
    """A ``GradOperation``."""

    by_list: bool


@dataclass(eq=False, slots=True)
class WithLoss(Value):
    """A network whose output goes into a loss function with the last input."""

    network: Value
    loss: Value


@dataclass(frozen=True)
class Hush:
    """``set_grad(False)`` or ``set_train(False)`` on a network."""

    method: str
    place: Place
    maker: Thing | None
    """The object in whose constructor it stands."""
    late: bool
    """Whether an optimizer had listed the network's parameters before."""


@dataclass(eq=False)
class Thing(Value):
    """An object: a network, one of its layers, a parameter, an optimizer, or something that is not known.

    ``kind`` is ``class`` (of the project, see ``reference``), ``interface`` (of a package, by ``reference``),
    ``parameter``, ``optimizer`` or ``unknown``.
    """

    kind: str
    reference: str
    place: Place
    attributes: dict[str, Value] = field(default_factory=dict)
    children: list[Value] = field(default_factory=list)
    parent: Thing | None = None
    frozen: Reason | None = None
    is_network: bool = False
    """For something unknown: whether the program treats it as a network."""
    is_layer: bool = False
    """For an object of a class of the project: whether it descends from a layer with parameters."""
    transient: bool = False
    """Whether it was made in a forward pass, as a record of tensors."""
    loaded: bool = False
    """Whether weights were loaded into it."""
    hushed: list[Hush] = field(default_factory=list)
    weights: Weights | None = None
    """Of an optimizer: what it updates."""

    def frozen_by(self) -> Reason | None:
        """Return why it is frozen, itself or as part of something."""
        thing: Thing | None = self
        while thing is not None:
            if thing.frozen:
                return thing.frozen
            thing = thing.parent if thing.kind == "unknown" else None
        return None


@dataclass(eq=False)
class Weights:
    """What a training step differentiates by; ``known`` if that could be followed to the networks."""

    things: tuple[Thing, ...]
    known: bool
    every: bool
    """Whether they were listed with the frozen ones."""
    place: Place
    held: frozenset[int] = frozenset()
    """Identities of the parts whose parameters they are: those not frozen when the weights were listed, or all of them."""


@dataclass(eq=False)
class TrainingStep:
    """``target`` is differentiated by ``weights``."""

    target: Value
    weights: Weights
    place: Place


def parts(value: Value) -> Iterator[Value]:
    """Yield ``value`` itself, or what it is put together from."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Sequence):
            stack.extend(reversed(item.items))
        elif isinstance(item, Many):
            stack.append(item.item)
        elif isinstance(item, Mapping):
            stack.extend([*item.entries.values(), *item.others])
        elif isinstance(item, Union):
            stack.extend(item.options)
        else:
            yield item


def things_in(value: Value) -> list[Thing]:
    """Return the things that ``value`` is or holds."""
    return [item for item in parts(value) if isinstance(item, Thing)]


def below(thing: Thing) -> Iterator[Thing]:
    """Yield ``thing`` and everything it is built from."""
    stack = [thing]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        for value in (*item.attributes.values(), *item.children):
            stack.extend(things_in(value))


def copied(value: Value, made: list[Thing], twins: dict[int, Thing] | None = None) -> Value:
    """Return a deep copy of ``value``; the new things are added to ``made``."""
    known = {} if twins is None else twins
    if isinstance(value, Sequence):
        return Sequence([copied(item, made, known) for item in value.items])
    if isinstance(value, Many):
        return Many(copied(value.item, made, known))
    if isinstance(value, Mapping):
        entries = {key: copied(item, made, known) for key, item in value.entries.items()}
        return Mapping(entries, [copied(item, made, known) for item in value.others])
    if isinstance(value, Union):
        return Union(tuple(copied(option, made, known) for option in value.options))
    if not isinstance(value, Thing):
        return value
    if id(value) not in known:
        twin = known[id(value)] = replace(value, attributes={}, children=[], hushed=list(value.hushed))
        made.append(twin)
        twin.attributes.update((name, copied(held, made, known)) for name, held in value.attributes.items())
        twin.children.extend(copied(child, made, known) for child in value.children)
    return known[id(value)]


def either(values: list[Value]) -> Value:
    """Return the value that is one of ``values``."""
    options: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, Union) else (value,):
            if not any(option is known for known in options):
                options.append(option)
    objects = [item for item in options if not (isinstance(item, Constant) and item.value is None)]
    tensors = [item for item in objects if isinstance(item, Tensor)]
    if len(tensors) > 1:
        objects = [item for item in objects if not isinstance(item, Tensor)]
        objects.append(Tensor(joined(item.flow for item in tensors)))
    if not objects:
        return options[0] if options else Tensor()
    return objects[0] if len(objects) == 1 else Union(tuple(objects[:6]))


def joined(flows: Iterator[Flow]) -> Flow:
    """Return what a value depends on that is computed from all of these."""
    known = [flow for flow in flows if flow is not CLOSED]
    if len(known) <= 1:
        return known[0] if known else CLOSED
    return Flow(
        any(flow.trained for flow in known),
        frozenset().union(*(flow.features for flow in known)),
        frozenset().union(*(flow.hushed for flow in known)),
    )
