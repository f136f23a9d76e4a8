"""What a PyNative step costs: autograd nodes, operator calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mindspore as ms
from mindspore import Tensor

from mslint.verify.child.state import tensors

_HALF_PRECISION = {ms.float16: "float16", ms.bfloat16: "bfloat16"}
# Helpers of MindSpore's own Python code that pass the dispatcher and compute nothing.
_HELPERS = {"typeof", "sequence_len", "make_range", "shape"}


def count_autograd_nodes(outputs: Any) -> Counter[str]:
    """The nodes of the autograd graph behind the outputs, by name.

    Tensors carry ``_grad_node``, nodes ``next_functions`` (2.10; earlier versions have no such attribute: nothing is
    counted). Wrapper objects are made anew on every access: nodes are told apart by ``_unique_id``.
    """
    waiting = [node for tensor in tensors(outputs) if (node := getattr(tensor, "_grad_node", None)) is not None]
    seen = set()
    names: Counter[str] = Counter()
    while waiting:
        node = waiting.pop()
        identity = _value(node._unique_id)
        if identity in seen:
            continue
        seen.add(identity)
        names[str(_value(node.name))] += 1
        waiting += [edge[0] for edge in node.next_functions if edge[0] is not None]
    return names


def _value(member: Any) -> Any:
    return member() if callable(member) else member


class OperatorCalls:
    """Counts operators as MindSpore dispatches them (`mindspore.MsDispatchMode`, new in 2.10).

    Every forward operator passes the dispatcher, and those backward operators that are built from operators.
    """

    def __init__(self) -> None:
        self.half_precision: set[str] = set()
        """The types of half precision that operators gave since the last clearing."""
        self._counts: Counter[str] | None = None
        half = self.half_precision
        if hasattr(ms, "MsDispatchMode"):
            counts: Counter[str] = Counter()
            self._counts = counts

            class Counting(ms.MsDispatchMode):  # type: ignore[misc]
                def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
                    counts[func.name] += 1
                    result = func(*args, **(kwargs or {}))
                    if isinstance(result, Tensor) and result.dtype in _HALF_PRECISION:
                        half.add(_HALF_PRECISION[result.dtype])
                    return result

            # Stays on until the process ends.
            Counting().__enter__()

    def clear(self) -> None:
        if self._counts is not None:
            self._counts.clear()
            self.half_precision.clear()

    def counts(self) -> dict[str, int] | None:
        """The calls since the last clearing; None where MindSpore has no dispatcher to ask."""
        if self._counts is None:
            return None
        return {name: count for name, count in sorted(self._counts.items()) if name not in _HELPERS}
