"""From a Cell or a jit function to the bytes of its MindIR: by the compiler's front end alone, or ready to be run."""

from __future__ import annotations

import inspect
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, _c_expression
from mindspore.train import mind_ir_pb2

from mslint.verify.child.sources import with_sources
from mslint.verify.operators import COMMUNICATION, operator_of

try:
    from mindspore.graph import api
except ImportError:  # before 2.10
    from mindspore.common import api

# With this phase the compiler stops before kernel selection: operators without a CPU kernel do not matter.
_PHASE = "export.mindir"

__all__ = [
    "NoMindIR",
    "api",
    "blank_results",
    "cell_graph",
    "communicates",
    "compiled_cell",
    "compiled_function",
    "descriptor",
    "function_graph",
    "has_backward",
]


class NoMindIR(Exception):
    """A graph compiles but cannot be written as MindIR, as it runs Python code in between (PyExecute)."""

    def __init__(self, reason: str, has_backward: bool) -> None:
        super().__init__(reason)
        self.has_backward = has_backward


def cell_graph(cell: Any, arguments: Any, options: Any) -> bytes:
    """The MindIR ``ModelProto`` of a Cell called with these arguments. Raises NoMindIR, or whatever the compiler raises."""
    executor = api._cell_graph_executor
    # As a call would: gives parameters their final names, without which equally named ones do not compile.
    cell._self_check()
    compile_arguments = cell._get_compile_args(arguments)
    executor.set_real_args(arguments, options)
    phase, _ = executor.compile(cell, *compile_arguments, phase=_PHASE, do_convert=False, **options)
    return _serialised(executor._graph_executor, phase)


def compiled_cell(cell: Any, arguments: Any, options: Any) -> bytes:
    """The same of a Cell compiled to the end, as a call with these arguments then finds it."""
    cell._self_check()
    cell.compile(*arguments, **options)
    return _serialised(api._cell_graph_executor._graph_executor, cell.phase_cache[cell.phase])


def function_graph(executor: Any, arguments: Any, options: Any) -> bytes:
    """The MindIR ``ModelProto`` of a function held by a ``_JitExecutor``."""
    own = arguments[1:] if executor.obj is not None else arguments
    # 2.7 has no such argument and always compiles to the end.
    phase = {"phase": _PHASE} if "phase" in inspect.signature(executor.compile).parameters else {}
    compiled = executor.compile(executor.fn.__name__, *own, **phase, **options)
    return _serialised(executor._graph_executor, compiled)


def compiled_function(executor: Any, arguments: Any, options: Any) -> bytes:
    """The same of a function compiled to the end, as a call with these arguments then finds it."""
    own = arguments[1:] if executor.obj is not None else arguments
    return _serialised(executor._graph_executor, executor.compile(executor.fn.__name__, *own, **options))


def has_backward(graph: bytes) -> bool:
    """Whether the compiler put gradient nodes into the graph."""
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(graph)
    return any(
        node.domain.startswith("Gradients") for function in (model.graph, *model.functions) for node in function.node
    )


def communicates(graph: bytes) -> bool:
    """Whether ranks exchange something in the graph."""
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(graph)
    return any(
        operator_of(node) in COMMUNICATION for function in (model.graph, *model.functions) for node in function.node
    )


def blank_results(graph: bytes) -> Any:
    """What a call of the graph would give in structure, shapes and types; all zeros."""
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(graph)
    results = tuple(
        _blank(output.attr_info) if output.HasField("attr_info") else _blank_tensor(output.tensor[0])
        for output in model.graph.output
    )
    return results[0] if len(results) == 1 else results


def _blank(described: Any) -> Any:
    if described.values:
        return tuple(map(_blank, described.values))
    if described.type == mind_ir_pb2.AttributeProto.SCALAR or not described.tensors:
        return 0
    return _blank_tensor(described.tensors[0])


def _blank_tensor(described: Any) -> Any:
    name = mind_ir_pb2.TensorProto.DataType.Name(described.data_type).lower()
    kind = getattr(ms, {"float": "float32", "double": "float64"}.get(name, name))
    # A length that is known when the graph runs only is negative.
    return Tensor(np.zeros([max(length, 1) for length in described.dims], np.float32)).astype(kind)


def descriptor() -> bytes:
    """The protobuf description of MindIR: with it the parent reads graphs without MindSpore."""
    return bytes(mind_ir_pb2.DESCRIPTOR.serialized_pb)


def _serialised(executor: Any, phase: str) -> bytes:
    try:
        return with_sources(bytes(executor.get_func_graph_proto(phase, "mind_ir", False)))
    except RuntimeError as error:
        # Before 2.10 there is no text form to look for gradients in.
        dump = getattr(_c_expression, "dump_func_graph", None)
        text = dump(executor.get_func_graph(phase)) if dump is not None else ""
        raise NoMindIR(str(error).strip().split("\n")[0], "Gradients/" in text) from None
