"""What operators of MindIR are called, and which of them compute nothing or communicate. Imports nothing."""

from __future__ import annotations

from typing import Any

SEQUENCES = frozenset({"MakeTuple", "make_tuple", "MakeList", "make_list"})
BOOKKEEPING = SEQUENCES | {
    "Constant", "TupleGetItem", "ListGetItem", "Depend", "UpdateState", "Load", "Return", "Partial"
}  # fmt: skip
"""Operators that only tie others together; they compute nothing."""
COMMUNICATION = frozenset(
    {"AllReduce", "AllGather", "AllToAll", "AllToAllv", "AlltoAll", "AlltoAllV", "Barrier", "BatchISendIRecv"}
    | {"Broadcast", "CollectiveGather", "CollectiveScatter", "NeighborExchange", "NeighborExchangeV2"}
    | {"Receive", "Reduce", "ReduceScatter", "Send"}
)


def operator_of(node: Any) -> str:
    """The name of a node's operator: ``op_type`` reads ``REF::MatMul:4`` or ``Constant``."""
    return str(node.op_type).rsplit("::", 1)[-1].rsplit(":", 1)[0]
