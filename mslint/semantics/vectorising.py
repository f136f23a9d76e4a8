"""What ``mindspore.vmap`` makes of an operator, as measured (data/make_vmap_operators.py)."""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parents[1] / "data" / "vmap_operators.json"

_RANDOM_OR_STATEFUL = re.compile(
    r"(?i)(dropout|batch_?norm|instance_?norm|rand|normal$|uniform|multinomial|bernoulli|poisson|gamma|gumbel|laplace"
    r"|assign|scatter|print|lstm|gru|rnn)"
)


class Vectorised(Enum):
    """What becomes of an operator in a function that ``mindspore.vmap`` runs for all rows."""

    ONCE = "runs once for all rows"
    LOOPED = "runs once for each row"
    REFUSED = "fails or computes other numbers"
    RANDOM = "draws random numbers or keeps state"
    UNKNOWN = "not measured"


def vectorised(operator: str) -> Vectorised:
    """Return what becomes of ``operator``: ``mindspore.ops.exp``, ``Tensor.exp`` or ``operator.+``."""
    found = _measured().get(operator)
    if found is not None:
        return found
    if operator.startswith(("mindspore.ops.", "mindspore.nn.", "Tensor.")) and _RANDOM_OR_STATEFUL.search(
        operator.rpartition(".")[2]
    ):
        return Vectorised.RANDOM
    return Vectorised.UNKNOWN


@cache
def _measured() -> dict[str, Vectorised]:
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    kinds = (("vectorised", Vectorised.ONCE), ("looped", Vectorised.LOOPED), ("refused", Vectorised.REFUSED))
    return {name: kind for key, kind in kinds for name in table[key]}
