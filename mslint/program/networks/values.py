"""What expressions stand for when the question is which networks a program builds and how it trains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mslint.program.following.values import Stretch, Value
from mslint.program.networks.branches import Branch


@dataclass(frozen=True)
class Feature:
    """The output of a network that is not trained, computed from nothing that is trained.

    ``network`` is the network's name as written where it is called, ``place`` the outermost call that returns nothing but
    this output, ``reason`` why the network counts as not trained.
    """

    place: Stretch
    network: str
    reason: Reason
    layers: int
    """How many layers with parameters the network has."""
    weighted: bool
    """Whether parameters of it are among the weights all the same."""
    frame: int = field(compare=False, default=0)
    outer: Stretch | None = field(compare=False, default=None)
    """The call in the loss itself that it comes from."""


@dataclass(frozen=True)
class Reason:
    """Why a network is not trained: frozen at ``place``, or left out by the optimizer made at ``place``."""

    frozen: bool
    place: Stretch
    conditional: bool = False
    """Whether it is frozen under a condition that is not known."""
    branches: frozenset[Branch] = field(compare=False, default=frozenset())
    """How undecided tests went where it is frozen."""


@dataclass(frozen=True)
class Flow:
    """What a tensor depends on: trained parameters (by an open gradient path) and outputs of networks not trained."""

    trained: bool = False
    features: frozenset[Feature] = frozenset()
    hushed: frozenset[Thing] = frozenset()
    """Networks that are trained by way of this, although ``set_grad(False)`` or the like was called on them."""


CLOSED = Flow()
TRAINED = Flow(trained=True)


@dataclass(eq=False, slots=True)
class Tensor(Value):
    """A tensor, a number, or data of a kind that does not matter."""

    flow: Flow = CLOSED


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
class File(Value):
    """A module of the project."""

    path: Path


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
    place: Stretch
    maker: Thing | None
    """The object in whose constructor it stands."""
    late: bool
    """Whether an optimizer had listed the network's parameters before."""


@dataclass(eq=False)
class Thing(Value):
    """An object: a network, one of its layers, a parameter, an optimizer, or something that is not known.

    ``kind`` is ``class`` (of the project, see ``reference``), ``interface`` (of a package, by ``reference``),
    ``parameter``, ``optimizer``, ``unknown``, or ``rest``: several objects that are not told apart.
    """

    kind: str
    reference: str
    place: Stretch
    attributes: dict[str, Value] = field(default_factory=dict)
    children: list[Value] = field(default_factory=list)
    parent: Thing | None = None
    unsure: int = 0
    """How many conditions that are not known led to where it was made."""
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


@dataclass(eq=False, slots=True)
class Weight(Tensor):
    """A single weight of ``layer``, while networks are built."""

    layer: Thing = field(kw_only=True)


@dataclass(eq=False)
class Weights:
    """What a training step differentiates by; ``known`` if that could be followed to the networks."""

    things: tuple[Thing, ...]
    known: bool
    every: bool
    """Whether they were listed with the frozen ones."""
    place: Stretch
    held: frozenset[int] = frozenset()
    """Identities of the parts whose parameters they are: those not frozen when the weights were listed, or all of them."""
    whole: frozenset[int] = frozenset()
    """Identities of those of ``things`` whose parameters are listed without a test that may leave some out."""


@dataclass(eq=False)
class TrainingStep:
    """``target`` is differentiated by ``weights``."""

    target: Value
    weights: Weights
    place: Stretch
    branches: frozenset[Branch] = frozenset()
    """How undecided tests went where the step is made."""
