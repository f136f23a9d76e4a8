"""In graph mode an optimizer's Python code does not run; so its graph itself keeps the gradients it is given."""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer
from mindspore.train import mind_ir_pb2

from mslint.verify.child.state import OWN
from mslint.verify.operators import operator_of

OPTIMIZERS = (nn.Optimizer, ExperimentalOptimizer)
_map = ops.HyperMap()
_created: list[weakref.ref[Any]] = []


def _keep(kept: Any, gradient: Any) -> Any:
    return ops.assign(kept, ops.cast(gradient, ops.dtype(kept)))


# Graph parsing reads this function's source: it must stand in a file, and its first argument must be called self.
def _construct(self, gradients):  # type: ignore[no-untyped-def]
    kept = _map(_keep, self.mslint_kept, gradients)
    seen = ops.assign(self.mslint_seen, self.mslint_yes)
    return self.mslint_update(ops.depend(gradients, (kept, seen)))


def live_optimizers() -> list[Any]:
    """The optimizers of the process, created since `follow_optimizers`, in the order of their creation."""
    return [optimizer for reference in _created if (optimizer := reference()) is not None]


def follow_optimizers() -> None:
    """Note every optimizer that is created from now on."""
    for kind in OPTIMIZERS:
        _hook_creation(kind)


def _hook_creation(kind: Any) -> None:
    initialise = kind.__init__

    @functools.wraps(initialise)
    def hooked(self: Any, *arguments: Any, **options: Any) -> None:
        _created.append(weakref.ref(self))
        initialise(self, *arguments, **options)

    kind.__init__ = hooked


def paired_gradients(optimizer: Any, gradients: Any) -> list[tuple[Any, Any]]:
    """The parameters of an optimizer with the dense gradients given to it."""
    parameters = list(optimizer.parameters)
    if not isinstance(gradients, (tuple, list)) or len(gradients) != len(parameters):
        return []
    return [
        (parameter, gradient)
        for parameter, gradient in zip(parameters, gradients, strict=True)
        if isinstance(gradient, Tensor)
    ]


@contextmanager
def recording(optimizers: Sequence[Any]) -> Iterator[None]:
    """Graphs compiled inside keep what reaches the optimizers; `recorded` tells it after the graph has run.

    The optimizers stay the objects they are: only their class becomes a subclass, so that every reference to them, in
    cells, closures and lists, sees the change.
    """
    classes = [type(optimizer) for optimizer in optimizers]
    for optimizer, kind in zip(optimizers, classes, strict=True):
        # A graph compiled before refers to these: they are made once.
        if not hasattr(optimizer, "mslint_kept"):
            _give_memory(optimizer)
        optimizer.mslint_seen.set_data(Tensor(0, ms.int32))
        members = {"construct": _construct, "mslint_update": kind.construct, "__module__": kind.__module__}
        object.__setattr__(optimizer, "__class__", type(kind.__name__, (kind,), members))
    try:
        yield
    finally:
        for optimizer, kind in zip(optimizers, classes, strict=True):
            object.__setattr__(optimizer, "__class__", kind)


def kept_gradients(optimizer: Any) -> list[tuple[Any, Any]]:
    """The parameters of a recorded optimizer with the gradients that it was given last."""
    return paired_gradients(optimizer, list(optimizer.mslint_kept))


def recorded(optimizers: Sequence[Any]) -> list[Any]:
    """Those of the optimizers that the compiled graph has called: `kept_gradients` holds what they were given."""
    return [optimizer for optimizer in optimizers if int(optimizer.mslint_seen.asnumpy())]


def without_recording(serialised: bytes) -> bytes:
    """A MindIR ``ModelProto`` without the nodes that keep gradients: what is left is the graph as the script has it.

    Compared node by node with graphs that keep nothing, of 12 programs in fixtures: the operators, their scopes and what
    they read are the same, only the order of side effects is not.
    """
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(serialised)
    for function in (model.graph, *model.functions):
        readers: dict[str, list[str]] = defaultdict(list)
        for node in function.node:
            for given in node.input:
                readers[given].append(node.output[0])
        keeping = {
            node.output[0]
            for node in function.node
            if operator_of(node) == "Assign" and node.input[0].rpartition(":")[2].startswith(OWN)
        }
        casts = {
            node.output[0]
            for node in function.node
            if operator_of(node) == "Cast" and readers[node.output[0]] and keeping.issuperset(readers[node.output[0]])
        }
        for place in reversed(range(len(function.node))):
            if function.node[place].output[0] in keeping | casts:
                del function.node[place]
    return bytes(model.SerializeToString())


def _give_memory(optimizer: Any) -> None:
    kept = [
        Parameter(
            Tensor(np.zeros(parameter.shape, _kept_type(parameter))),
            name=f"{OWN}gradient.{parameter.name}",
            requires_grad=False,
        )
        for parameter in optimizer.parameters
    ]
    seen = Parameter(Tensor(0, ms.int32), name=f"{OWN}seen.{id(optimizer)}", requires_grad=False)
    # Not by setattr: these are no parameters of the optimizer that a script may list or save.
    for name, value in {
        "mslint_kept": ParameterTuple(kept),
        "mslint_seen": seen,
        "mslint_yes": Tensor(1, ms.int32),
    }.items():
        object.__setattr__(optimizer, name, value)


def _kept_type(parameter: Any) -> Any:
    # Gradients of half precision may arrive in float32 (mixed precision, unscaling): float32 holds both exactly.
    return np.float64 if parameter.dtype == ms.float64 else np.float32
