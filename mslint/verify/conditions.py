"""Under which conditions a script is run: what stands in for its data, in a world of how many ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_INPUT = re.compile(r"(?:(?P<name>[^=\[\]]+)=)?(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,\s]*)\](?:<(?P<below>\d+))?")
DTYPES = (
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip


@dataclass(frozen=True)
class Input:
    """A column of the batches that stand in for a data set."""

    dtype: str
    shape: tuple[int, ...]
    """With the batch in front."""
    name: str | None = None
    below: int | None = None
    """Whole numbers are drawn from 0 up to this one, without it; None: 0 and 1."""


def parse_input(text: str) -> Input:
    """Read ``image=float32[4,3,32,32]``, ``float32[4,3]`` or ``label=int32[4]<10``; raises ValueError."""
    found = _INPUT.fullmatch(text.replace(" ", ""))
    if found is None:
        raise ValueError(
            f"{text!r} does not read NAME=TYPE[SHAPE], as image=float32[4,3,32,32] or label=int32[4]<10 do"
        )
    if found["dtype"] not in DTYPES:
        raise ValueError(f"{text!r}: there is no type {found['dtype']}, but {', '.join(DTYPES)}")
    shape = tuple(int(length) for length in found["shape"].split(",") if length)
    if 0 in shape:
        raise ValueError(f"{text!r}: a batch without elements trains nothing")
    below = int(found["below"]) if found["below"] else None
    if below == 0 or (below is not None and "int" not in found["dtype"]):
        raise ValueError(f"{text!r}: <{below} needs whole numbers and one that is below it")
    return Input(found["dtype"], shape, found["name"], below)


@dataclass(frozen=True)
class Conditions:
    """What the script finds where it runs; the same for both sides."""

    fake_data: bool = False
    """Random rows stand in for data sets whose files are missing."""
    inputs: Sequence[str] = ()
    """Columns of the batches that stand in for missing data sets whose columns nobody can know (see `parse_input`)."""
    ranks: int = 1
    """How large a world the script finds itself in."""
    launch: bool = False
    """Whether the other ranks of that world are there, as processes."""
    numbers: bool = True
    """False: steps are compiled, not run."""

    def __post_init__(self) -> None:
        for text in self.inputs:
            parse_input(text)

    @property
    def runs_steps(self) -> bool:
        """Communication without the other ranks cannot be run."""
        return self.numbers and (self.ranks == 1 or self.launch)
