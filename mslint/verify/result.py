"""What a verification found, as plain data; every reporter reads it, none of it needs MindSpore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    remarks: tuple[str, ...] = ()


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
    changed: tuple[str, ...] = ()
    """The files that the rewritten side replaces."""
    codemods: tuple[str, ...] = field(default=())

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
