"""One training step as it is seen: what ran in it and what it gave."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mslint.verify.arrays import load_arrays, save_arrays
from mslint.verify.child.state import (
    as_array,
    input_arrays,
    live_parameters,
    parameter_arrays,
    restore,
    restore_inputs,
    snapshot,
    tensors,
    to_array,
)
from mslint.verify.job import graph_file, repeated_inputs_file, result_file, state_file


class Step:
    """Collects the graphs, calls and numbers of one step and writes them to the job's folder.

    Creating it takes the state before the step, or puts the replayed run's into this process.
    """

    def __init__(
        self,
        index: int,
        name: str,
        location: str | None,
        inputs: Any,
        out: Path,
        replay: Path | None,
        *,
        numbers: bool = True,
        own_state: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.location = location
        self.sites: set[Any] = set()
        self.training_sites: set[Any] = set()
        """Those that take gradients."""
        self.optimizers: list[Any] = []
        self.gradients = 0
        """How many gradients were taken so far."""
        self.repetitions = 0
        """How often the step came round before an optimizer ended it."""
        self.complete = False
        self._began = time.monotonic()
        self._remarks: dict[str, None] = {}
        self._out = out
        self._replay = replay
        self._graphs: dict[Any, dict[str, Any]] = {}
        self._countable = True
        self._autograd: Counter[str] = Counter()
        self._cell_runs: Counter[int] = Counter()
        self._network: Any = None
        self._losses: dict[str, Any] = {}
        self._outputs: list[Any] = []
        self._gradients: dict[str, Any] = {}
        self._optimizer_gradients: dict[str, Any] = {}
        self._names = {id(parameter): name for name, parameter in live_parameters().items()}
        self._numbers = numbers
        if not numbers:
            return
        if replay is None or own_state:
            save_arrays(state_file(out, index), snapshot(inputs))
        if replay is None:
            return
        if state_file(replay, index).exists():
            for remark in restore(load_arrays(state_file(replay, index)), inputs):
                self.remark(remark)
        else:
            self.remark("the original script has no such step to start from")

    @property
    def has_gradient(self) -> bool:
        return self.gradients > 0

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def remark(self, text: str) -> None:
        """Something the user should know; said once."""
        self._remarks[text] = None

    def repeat(self, inputs: Any) -> None:
        """The step comes round with other inputs, before an optimizer ended it."""
        self.repetitions += 1
        if self._replay is None:
            save_arrays(repeated_inputs_file(self._out, self.index, self.repetitions), input_arrays(inputs))
        else:
            saved = load_arrays(repeated_inputs_file(self._replay, self.index, self.repetitions))
            for remark in restore_inputs(saved, inputs):
                self.remark(remark)

    def add_graph(self, site: Any, serialised: bytes, role: str) -> None:
        """A graph that runs in the step; each once, however often the step comes round."""
        if site not in self._graphs:
            path = graph_file(self._out, self.index, len(self._graphs))
            path.write_bytes(serialised)
            self._graphs[site] = {"file": path.name, "role": role}

    def lack_graph(self, why: str) -> None:
        """A graph of the step has no MindIR: its nodes cannot be counted."""
        self._countable = False
        self.remark(f"nodes not counted, no MindIR of {why}")

    def add_forward(self, outputs: Any, nodes: Counter[str], function: Any) -> None:
        """A differentiated forward pass of PyNative mode; its first tensor is the loss unless the step returns one.

        Where the function is a cell its runs count: it did not run here if an earlier run of it could be used.
        """
        self._autograd += nodes
        if id(function) in self._cell_runs:
            self._network = function
        self.add_loss("forward", outputs)

    def add_cell_run(self, cell: Any, differentiated: bool) -> None:
        """A cell ran as Python. In a differentiated function the first one is the network whose runs count."""
        self._cell_runs[id(cell)] += 1
        if differentiated and self._network is None:
            self._network = cell

    def add_loss(self, source: str, value: Any) -> None:
        found = list(tensors(value))
        if found:
            self._losses[source] = to_array(found[0])

    def add_output(self, value: Any) -> None:
        """What the training cell or function gave back."""
        self._outputs = [to_array(tensor) for tensor in tensors(value)]
        self.add_loss("output", value)

    def add_gradients(self, gradients: Iterable[tuple[Any, Any]]) -> None:
        """Gradients as the gradient function gave them, each with its parameter or the name of its input."""
        self._gradients.update({self._name_of(target): gradient for target, gradient in gradients})

    def add_update(self, gradients: Iterable[tuple[Any, Any]]) -> None:
        """Gradients as they reached an optimizer, each with its parameter."""
        self._optimizer_gradients.update({self._name_of(target): gradient for target, gradient in gradients})

    def _name_of(self, target: Any) -> str:
        # Two networks of a script may have parameters of the same name.
        return target if isinstance(target, str) else self._names.get(id(target), target.name)

    def save_result(self) -> None:
        """Write the numbers that are known by now, with all parameters as they are now."""
        if not self._numbers:
            return
        result: dict[str, Any] = {}
        # The most outward value wins: what the training cell returns, then the gradient function's, then a forward's.
        for source in ("output", "value", "forward", "separate"):
            if source in self._losses:
                result["loss"] = self._losses[source]
                break
        result.update({f"output:{number}": array for number, array in enumerate(self._outputs)})
        gradients = self._optimizer_gradients or self._gradients
        result.update({f"gradient:{name}": as_array(gradient) for name, gradient in gradients.items()})
        result.update(parameter_arrays())
        like = result_file(self._replay, self.index) if self._replay is not None else None
        save_arrays(result_file(self._out, self.index), result, like)

    def summary(self, calls: dict[str, int] | None, half_precision: Iterable[str]) -> dict[str, Any]:
        """The step's entry in the report."""
        if self.repetitions:
            self.remark(f"it came round {self.repetitions} more times before an optimizer ran; all are counted")
        return {
            "name": self.name,
            "location": self.location,
            "graphs": list(self._graphs.values()) if self._countable else [],
            "optimizers": sorted({type(optimizer).__name__ for optimizer in self.optimizers}),
            "gradients_from": "optimizer" if self._optimizer_gradients else "gradient function",
            "autograd_nodes": dict(self._autograd),
            "forward_runs": self._cell_runs[id(self._network)],
            "operator_calls": calls,
            "half_precision": sorted(half_precision),
            "remarks": list(self._remarks),
        }
