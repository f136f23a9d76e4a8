"""What a verification found, as plain data; every reporter reads it, none of it needs MindSpore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb
from statistics import median, quantiles

from mslint.findings import Verdict


@dataclass(frozen=True)
class Counts:
    """What the compiled graphs of one training step hold, compiler bookkeeping apart."""

    forward: int
    backward: int
    optimizer: int
    communication: int
    other: int
    """Work on gradients between backward and optimizer (clipping, unscaling), and recomputed forward nodes."""
    subgraphs: int
    saved_bytes: int
    """Outputs of forward nodes that backward nodes read: what must be kept in memory between the two."""
    peak_bytes: int
    """The most memory that results need at once when nodes run in the graph's order; an estimate."""
    operators: Mapping[str, Mapping[str, int]]
    """Nodes by kind and operator."""

    @property
    def by_operator(self) -> dict[str, int]:
        """Nodes of every kind by operator."""
        total: dict[str, int] = {}
        for operators in self.operators.values():
            for operator, count in operators.items():
                total[operator] = total.get(operator, 0) + count
        return dict(sorted(total.items()))


@dataclass(frozen=True)
class PynativeCounts:
    """What one training step costs in PyNative mode."""

    autograd_nodes: int
    """Nodes of the autograd graph behind the loss."""
    forward_runs: int
    """How often the differentiated network ran."""
    operator_calls: int | None
    """Dispatched operators; None before MindSpore 2.10, which cannot tell."""
    by_operator: Mapping[str, int]


@dataclass(frozen=True)
class GraphNode:
    """A node of a compiled graph that computes something."""

    operator: str
    kind: str
    """One of `mslint.verify.mindir.KINDS`."""
    cells: tuple[str, ...]
    """The cells it lies in, the outermost first, each as ``attribute-Class``."""
    gradient_of: str | None
    """The forward operator whose gradient a backward node belongs to."""
    shapes: tuple[str, ...]
    """Type and dimensions of its outputs."""
    bytes: int
    source: str | None
    """``file:line`` of the user's code, relative to the project."""
    forward: int | None
    """The number of the forward node that a backward node belongs to, if the graph still has that."""
    counterpart: int | None = None
    """The number of the node on the other side that looks like it; without one it was removed or added."""


@dataclass(frozen=True)
class GraphView:
    """The compiled graphs of a step: nodes known by their number, and which give data to which."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StepTime:
    """How long a step took on this machine, measured in turn on both sides."""

    before: tuple[float, ...]
    """Milliseconds of each measured step."""
    after: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        return median(self.before), median(self.after)

    @property
    def ratio(self) -> float:
        """Of the rewritten script's time to the original's."""
        before, after = self.medians
        return after / before

    @property
    def quartiles(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Between these lies the middle half of the measured times, before and after."""
        before, after = (quantiles(times, n=4, method="inclusive") for times in (self.before, self.after))
        return (before[0], before[2]), (after[0], after[2])

    @property
    def within_noise(self) -> bool:
        """Whether chance may have made one side the faster one in as many pairs of steps (sign test, 5 %).

        Both steps of a pair were made one after the other, so that what slows the machine slows both.
        """
        pairs = [before - after for before, after in zip(self.before, self.after, strict=False) if before != after]
        fewer = min(sum(pair > 0 for pair in pairs), sum(pair < 0 for pair in pairs))
        chance = float(sum(comb(len(pairs), wins) for wins in range(fewer + 1)) / 2 ** len(pairs))
        return chance > 0.025


@dataclass(frozen=True)
class Rewrite:
    """A file that the rewritten side replaces."""

    path: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """Two sets of named tensors."""

    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    max_abs_diff: float
    max_rel_diff: float
    """Relative to the largest magnitude of the tensor in which the difference stands."""
    worst: str | None
    """The tensor with the largest relative difference; None if all are equal bit by bit."""
    equal: bool
    """Same names, and every tensor within the tolerance."""
    bit_equal: bool
    differing: tuple[str, ...] = ()
    """The tensors beyond the tolerance."""

    @property
    def names_equal(self) -> bool:
        return not self.only_before and not self.only_after


@dataclass(frozen=True)
class Loss:
    """The loss before and after; of a loss that is no scalar, the mean."""

    before: float
    after: float
    comparison: Comparison


@dataclass(frozen=True)
class StepResult:
    """One training step of the original and its counterpart in the rewritten script."""

    mode: str
    name: str
    location: str | None
    verdict: Verdict
    reason: str
    before: Counts | None = None
    after: Counts | None = None
    pynative_before: PynativeCounts | None = None
    pynative_after: PynativeCounts | None = None
    loss: Loss | None = None
    outputs: Comparison | None = None
    gradients: Comparison | None = None
    gradients_from: str | None = None
    """``optimizer``: as they reached it; ``gradient function``: as it returned them."""
    parameters: Comparison | None = None
    """All parameters after the step: weights, optimizer states, statistics of normalisations."""
    tolerance: float | None = None
    """By how much of its largest value a tensor may differ from its counterpart and count as equal."""
    remarks: tuple[str, ...] = ()
    graph_before: GraphView | None = None
    """Only where it was asked for."""
    graph_after: GraphView | None = None
    time: StepTime | None = None
    """Only where it was asked for."""

    @property
    def rounded(self) -> bool:
        """Whether something that was compared is not equal bit by bit."""
        found = [self.outputs, self.gradients, self.parameters, self.loss.comparison if self.loss else None]
        return any(comparison is not None and not comparison.bit_equal for comparison in found)


@dataclass(frozen=True)
class ModeResult:
    """What one mode showed."""

    mode: str
    verdict: Verdict
    reason: str
    steps: tuple[StepResult, ...] = ()
    stand_ins: tuple[str, ...] = ()
    output: str = ""
    """The end of what the script printed, where it could not be verified."""
    mindspore: str | None = None
    native_mode: str | None = None
    """The mode that the script itself asks for."""


@dataclass(frozen=True)
class Verification:
    """The whole answer of `mslint.verify.verify`."""

    script: str
    verdict: Verdict
    reason: str
    modes: tuple[ModeResult, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    codemods: tuple[str, ...] = field(default=())

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that the rewritten side replaces."""
        return tuple(rewrite.path for rewrite in self.rewrites)

    @property
    def steps(self) -> tuple[StepResult, ...]:
        return tuple(step for mode in self.modes for step in mode.steps)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Everything that was replaced or dropped so that the script runs here, each once."""
        return tuple(dict.fromkeys(stand_in for mode in self.modes for stand_in in mode.stand_ins))

    @property
    def mindspore(self) -> str | None:
        return next((mode.mindspore for mode in self.modes if mode.mindspore), None)
