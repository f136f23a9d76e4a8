"""Named arrays in one file: how tensors travel between the children and the parent. Needs numpy only.

The weights and optimizer states of a large network are gigabytes: they are written without a copy, mapped into memory
when they are read, and what another file holds already is not written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_ALIGNMENT = 64
_LENGTH_BYTES = 8


class _Entry(NamedTuple):
    """Where an array lies."""

    name: str
    dtype: str
    shape: list[int]
    uniform: bool
    """One element stands for all: fresh optimizer states are large and all zero."""
    file: str | None
    """Another file that holds it."""
    offset: int


def save_arrays(path: Path, arrays: Mapping[str, Any], like: Path | None = None) -> None:
    """Write numpy arrays under names of any spelling. An interrupted write leaves the old file or none.

    Arrays that the file ``like`` holds under the same name, with the same bits, are written as being there.
    """
    import numpy as np

    known = _entries(like) if like is not None and like.exists() else {}
    held = load_arrays(like) if like is not None else {}
    unfinished = path.with_suffix(".unfinished")
    index: list[_Entry] = []
    with open(unfinished, "wb") as file:
        for name, given in arrays.items():
            array = np.asarray(given, order="C")
            if name in held and same_bits(array, held[name]):
                index.append(known[name]._replace(file=known[name].file or str(like)))
                continue
            uniform = array.size > 1 and _uniform(array)
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            index.append(_Entry(name, array.dtype.str, list(array.shape), uniform, None, file.tell()))
            (array.reshape(-1)[:1] if uniform else array).tofile(file)
        end = file.tell()
        file.write(json.dumps(index).encode())
        file.write(end.to_bytes(_LENGTH_BYTES, "little"))
    unfinished.replace(path)


def load_arrays(
    path: Path, other: Path | None = None, arrays_of_other: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The arrays of `save_arrays` in the order in which they were given, to be read only; no file, no arrays.

    What lies in the file ``other``, whose arrays are given, are the very same objects.
    """
    import numpy as np

    if not path.exists():
        return {}
    files: dict[str, Any] = {}
    arrays = {}
    for entry in _entries(path).values():
        if entry.file is not None and entry.file == str(other) and arrays_of_other:
            arrays[entry.name] = arrays_of_other[entry.name]
            continue
        file = entry.file or str(path)
        if file not in files:
            files[file] = np.memmap(file, np.uint8, "r")
        dtype = np.dtype(entry.dtype)
        size = dtype.itemsize * (1 if entry.uniform else int(np.prod(entry.shape, dtype=np.int64)))
        stored = files[file][entry.offset : entry.offset + size].view(np.ndarray).view(dtype)
        arrays[entry.name] = np.broadcast_to(stored, entry.shape) if entry.uniform else stored.reshape(entry.shape)
    return arrays


def same_bits(one: Any, other: Any) -> bool:
    """Whether two arrays have the same type, shape and bits."""
    import numpy as np

    if one is other:
        return True
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.itemsize not in (1, 2, 4, 8):
        return bool(np.array_equal(one, other))
    bits = np.dtype(f"u{one.dtype.itemsize}")
    if one.flags.c_contiguous and other.flags.c_contiguous and one.nbytes % 8 == 0:
        # Eight bytes at a time.
        one, other, bits = one.reshape(-1), other.reshape(-1), np.dtype("u8")
    return bool(np.array_equal(one.view(bits), other.view(bits)))


def _entries(path: Path) -> dict[str, _Entry]:
    with open(path, "rb") as file:
        length = file.seek(-_LENGTH_BYTES, os.SEEK_END)
        start = int.from_bytes(file.read(), "little")
        file.seek(start)
        index = json.loads(file.read(length - start))
    return {name: _Entry(name, *rest) for name, *rest in index}


def _uniform(array: Any) -> bool:
    first = array.flat[0]
    return bool(first == array.flat[-1]) and bool((array == first).all())
