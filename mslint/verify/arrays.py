"""Named arrays in one file: how tensors travel between the children and the parent. Needs numpy only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_INDEX = "index"


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write numpy arrays under names of any spelling. An interrupted write leaves the old file or none.

    Of an array of equal elements one is written: fresh optimizer states are large and all zero.
    """
    import numpy as np

    stored = {}
    for name, array in arrays.items():
        uniform = array.size > 1 and bool((array == array.flat[0]).all())
        stored[name] = array.flat[:1].reshape((1,) * array.ndim) if uniform else array
    index = [[name, list(array.shape)] for name, array in arrays.items()]
    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        np.savez(
            file,
            **{_INDEX: np.array(json.dumps(index))},
            **{f"array{number}": array for number, array in enumerate(stored.values())},
        )
    unfinished.replace(path)


def load_arrays(path: Path) -> dict[str, Any]:
    """The arrays of `save_arrays` in the order in which they were given; no file, no arrays."""
    import numpy as np

    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return {
            name: np.array(np.broadcast_to(stored[f"array{number}"], shape))
            for number, (name, shape) in enumerate(json.loads(str(stored[_INDEX])))
        }
