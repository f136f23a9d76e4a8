"""Reads compiled MindIR into networkx and counts what a training step is made of. Needs no MindSpore."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import networkx as nx

from mslint.verify.operators import BOOKKEEPING, COMMUNICATION, SEQUENCES, operator_of
from mslint.verify.result import Counts

CALL = "SubgraphCall"
"""What a node is called that calls a sub-graph, as control flow does; what it calls is counted as it stands there."""
KINDS = ("forward", "backward", "optimizer", "communication", "other")

_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float64",
}  # fmt: skip
# Bytes of an element by TensorProto.DataType.
_ITEM_BYTES = {
    1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16, 16: 2, 17: 8,
}  # fmt: skip


def read_model(serialised: bytes, descriptor: bytes) -> Any:
    """Parse a ``ModelProto`` with the description that came along with it.

    ``descriptor`` is the serialised file descriptor of MindSpore's ``mind_ir.proto``, in which its versions differ.
    """
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(descriptor)
    description = pool.FindMessageTypeByName("mind_ir.ModelProto")
    if hasattr(message_factory, "GetMessageClass"):
        message_class = message_factory.GetMessageClass(description)
    else:  # before protobuf 4.22
        message_class = message_factory.MessageFactory(pool).GetPrototype(description)
    model = message_class()
    model.ParseFromString(serialised)
    return model


def graph_of(model: Any, optimizers: Collection[str] = (), *, update_only: bool = False) -> nx.DiGraph:
    """The nodes of the main graph and its sub-graphs with the flow of data between them.

    Nodes are ``(graph name, output name)`` and carry ``op``, ``scope``, ``kind``, ``bytes`` and ``shapes`` (one entry for
    each element of the output), ``source`` (``file:line``), ``identity`` and, in backward nodes, ``forward`` (the
    identity of the node they belong to), ``function`` and ``order`` (the place in the graph's own order). Edges carry
    ``data``: False where they only order side effects. ``optimizers`` are the class names of optimizers, by which their
    scopes are known; with ``update_only`` the whole graph is an optimizer's.
    """
    functions = {function.name for function in model.functions}
    graph = nx.DiGraph(outputs=[(model.graph.name, output.name) for output in model.graph.output])
    for function in (model.graph, *model.functions):
        parameters = {parameter.name for parameter in function.parameter}
        for order, node in enumerate(function.node):
            operator = operator_of(node)
            if operator in functions or ":" in operator:
                # A sub-graph, or the node that chooses one.
                operator = CALL
            name = (function.name, node.output[0])
            outputs = _outputs(node)
            graph.add_node(
                name,
                op=operator,
                scope=node.domain,
                bytes=tuple(map(_tensor_bytes, outputs)),
                shapes=tuple(map(_shape, outputs)),
                source=node.doc_string or None,
                **_identities(node),
                function=function.name,
                order=order,
                index=_constant(node) if operator == "Constant" else None,
                # Reading goes through Load; a parameter as such is given to operators that write it.
                writes=operator not in BOOKKEEPING and bool(node.input) and node.input[0] in parameters,
                inputs=tuple((function.name, given) for given in node.input),
            )
            for position, given in enumerate(node.input):
                ordering = operator == "UpdateState" or (operator in ("Depend", "Load") and position > 0)
                graph.add_edge((function.name, given), name, data=not ordering)
    # Inputs and parameters have no node of their own.
    graph.remove_nodes_from([name for name in graph if "op" not in graph.nodes[name]])
    _classify(graph, optimizers, update_only)
    return graph


def count(graphs: Iterable[nx.DiGraph]) -> Counts:
    """Count all graphs that ran in a step; their memory peaks are not added up, as they run one after another."""
    operators = {kind: Counter[str]() for kind in KINDS}
    subgraphs = saved = peak = 0
    for graph in graphs:
        for name in working_nodes(graph):
            node = graph.nodes[name]
            operators[node["kind"]][node["op"]] += 1
        subgraphs += len({node["function"] for _, node in graph.nodes(data=True)}) - 1
        saved += saved_bytes(graph)
        peak = max(peak, peak_bytes(graph))
    return Counts(
        **{kind: counted.total() for kind, counted in operators.items()},
        subgraphs=subgraphs,
        saved_bytes=saved,
        peak_bytes=peak,
        operators={kind: dict(sorted(counted.items())) for kind, counted in operators.items() if counted},
    )


def half_precision(graphs: Iterable[nx.DiGraph]) -> set[str]:
    """The types of half precision that nodes give."""
    types = {shape.partition("[")[0] for graph in graphs for name in graph for shape in graph.nodes[name]["shapes"]}
    return types & {"float16", "bfloat16"}


def saved_bytes(graph: nx.DiGraph) -> int:
    """Bytes of the outputs of forward nodes that backward nodes read, each once."""
    read = {
        source
        for name in working_nodes(graph)
        if graph.nodes[name]["kind"] == "backward"
        for given in graph.nodes[name]["inputs"]
        for source in sources_of(graph, given)
        if graph.nodes[source[0]]["kind"] == "forward"
    }
    return sum(_bytes(graph, source) for source in read)


def peak_bytes(graph: nx.DiGraph) -> int:
    """The most bytes alive at once: a result lives from its node to its last reader, each made when it is first needed.

    Sub-graphs run inside the main graph: the largest one's peak is added. Optimizers work in place, they take nothing.
    """
    peaks: dict[str, int] = {}
    order: dict[str, list[Any]] = {}
    for name in _by_need(graph):
        order.setdefault(graph.nodes[name]["function"], []).append(name)
    for function, names in order.items():
        last_reader: dict[Any, Any] = {}
        for name in names:
            for given in graph.nodes[name]["inputs"]:
                for source in sources_of(graph, given):
                    last_reader[source] = name
        for output in graph.graph["outputs"]:
            # What the graph gives back lives to its end.
            last_reader.update(dict.fromkeys(sources_of(graph, output)))
        born: Counter[Any] = Counter()
        dying: Counter[Any] = Counter()
        for source, reader in last_reader.items():
            born[source[0]] += _bytes(graph, source)
            dying[reader] += _bytes(graph, source)
        alive = peaks[function] = 0
        for name in names:
            alive += born[name]
            peaks[function] = max(peaks[function], alive)
            alive -= dying[name]
    main = next(iter(graph.nodes(data="function")), (None, None))[1]
    inner = [peak for function, peak in peaks.items() if function != main]
    return peaks.get(main or "", 0) + max(inner, default=0)


def working_nodes(graph: nx.DiGraph) -> Iterator[Any]:
    """The nodes that compute something, in the order of their graphs."""
    return (name for name, operator in graph.nodes(data="op") if operator not in BOOKKEEPING)


def _by_need(graph: nx.DiGraph) -> list[Any]:
    """The working nodes, each behind those that it reads: the order in which the compiler puts them, too.

    The graph's own order is not taken, as it tells which side effects come first: those that keep gradients, as well.
    """
    placed: dict[Any, None] = {}
    read: dict[Any, list[Any]] = {
        name: [source for given in graph.nodes[name]["inputs"] for source, _ in sources_of(graph, given)]
        for name in working_nodes(graph)
    }
    outputs = [source for output in graph.graph["outputs"] for source, _ in sources_of(graph, output)]
    inner = {source for sources in read.values() for source in sources}
    for root in (*outputs, *(name for name in read if name not in inner), *read):
        waiting = [(root, iter(read[root]))] if root not in placed else []
        while waiting:
            name, sources = waiting[-1]
            following = next((source for source in sources if source not in placed), None)
            if following is None:
                placed[name] = None
                waiting.pop()
            else:
                waiting.append((following, iter(read[following])))
    return list(placed)


def _classify(graph: nx.DiGraph, optimizers: Collection[str], update_only: bool) -> None:
    names = "|".join(map(re.escape, sorted(optimizers)))
    optimizer_scope = re.compile(rf"-({names})/") if names else None
    for _, node in graph.nodes(data=True):
        scope = node["scope"]
        if node["op"] in COMMUNICATION:
            node["kind"] = "communication"
        elif update_only or (optimizer_scope is not None and optimizer_scope.search(scope)) or _updates(node):
            node["kind"] = "optimizer"
        elif scope.startswith("Gradients"):
            node["kind"] = "backward"
        elif scope.startswith("recompute_"):
            node["kind"] = "other"
        else:
            node["kind"] = "forward"
    # What is neither, but works on gradients: clipping, unscaling, overflow detection.
    flow = nx.subgraph_view(graph, filter_edge=lambda source, target: graph.edges[source, target]["data"])
    reached: set[Any] = set()
    waiting = [name for name in working_nodes(graph) if graph.nodes[name]["kind"] in ("backward", "communication")]
    while waiting:
        for follower in flow.successors(waiting.pop()):
            if follower not in reached:
                reached.add(follower)
                waiting.append(follower)
    for name in reached:
        if graph.nodes[name]["kind"] == "forward":
            graph.nodes[name]["kind"] = "other"
    # What serves an optimizer alone: the next learning rate, powers of its decay rates.
    for name in reversed([*nx.topological_sort(flow)]):
        readers = [graph.nodes[reader]["kind"] for reader in flow.successors(name)]
        if graph.nodes[name]["kind"] == "forward" and readers and set(readers) == {"optimizer"}:
            graph.nodes[name]["kind"] = "optimizer"


def _updates(node: Any) -> bool:
    """Whether a node outside any cell writes a parameter: the scopes of jit functions do not name the optimizer."""
    return bool(node["writes"] and node["scope"].count("/") == 1 and not node["scope"].startswith("Gradients"))


def sources_of(graph: nx.DiGraph, name: Any, element: int | None = None) -> Iterator[tuple[Any, int | None]]:
    """The computing nodes, each with the element of its output, that a name stands for behind bookkeeping."""
    while name in graph:
        node = graph.nodes[name]
        operator, inputs = node["op"], node["inputs"]
        if operator in ("Depend", "Load"):
            name = inputs[0]
        elif operator in ("TupleGetItem", "ListGetItem"):
            element = graph.nodes[inputs[1]]["index"] if inputs[1] in graph else None
            name = inputs[0]
        elif operator in SEQUENCES and element is not None and element < len(inputs):
            name, element = inputs[element], None
        elif operator in SEQUENCES:
            for given in inputs:
                yield from sources_of(graph, given)
            return
        else:
            if operator not in BOOKKEEPING:
                yield name, element if len(node["bytes"]) > 1 else None
            return


def _bytes(graph: nx.DiGraph, source: tuple[Any, int | None]) -> int:
    name, element = source
    if graph.nodes[name]["kind"] == "optimizer":
        return 0
    elements: tuple[int, ...] = graph.nodes[name]["bytes"]
    return sum(elements) if element is None or element >= len(elements) else elements[element]


def _outputs(node: Any) -> tuple[Any, ...]:
    """What describes the tensors that a node gives."""
    for attribute in node.attribute:
        if attribute.name == "shape":
            return tuple(_tensors(attribute))
    return ()


def _identities(node: Any) -> dict[str, str | None]:
    known = {attribute.name: attribute.s.decode("utf-8", "replace") for attribute in node.primal_attr}
    return {"identity": known.get("unique_id"), "forward": known.get("forward_unique_id")}


def _tensors(attribute: Any) -> Iterator[Any]:
    yield from attribute.tensors
    for value in attribute.values:
        yield from _tensors(value)


def _tensor_bytes(tensor: Any) -> int:
    size = _ITEM_BYTES.get(tensor.data_type, 0)
    for dimension in tensor.dims:
        # -1 is a dimension known at run time only.
        size *= max(dimension, 1)
    return size


def _shape(tensor: Any) -> str:
    dimensions = ", ".join("?" if dimension < 0 else str(dimension) for dimension in tensor.dims)
    return f"{_TYPES.get(tensor.data_type, 'type ' + str(tensor.data_type))}[{dimensions}]"


def _constant(node: Any) -> int | None:
    """The value of a constant if it is one integer: the index of a TupleGetItem."""
    for attribute in node.attribute:
        if attribute.name == "value":
            if len(attribute.ints) == 1:
                return int(attribute.ints[0])
            if attribute.HasField("i"):
                return int(attribute.i)
    return None
