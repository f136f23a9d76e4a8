"""Named arrays in one file: how tensors travel between the children and the parent. Needs numpy only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAMES = "names"


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write numpy arrays under names of any spelling. An interrupted write leaves the old file or none."""
    import numpy as np

    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        np.savez(
            file,
            **{_NAMES: np.array(json.dumps(list(arrays)))},
            **{f"array{number}": array for number, array in enumerate(arrays.values())},
        )
    unfinished.replace(path)


def load_arrays(path: Path) -> dict[str, Any]:
    """The arrays of `save_arrays` in the order in which they were given; no file, no arrays."""
    import numpy as np

    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        names = json.loads(str(stored[_NAMES]))
        return {name: stored[f"array{number}"] for number, name in enumerate(names)}
