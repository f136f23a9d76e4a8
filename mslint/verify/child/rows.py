"""Draws what stands in for rows and batches of data sets; nothing of it touches the random numbers of the script."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mslint.verify.conditions import Input

Row = dict[str, Any]
_IMAGE = (256, 256, 3)
_WORDS = ("the", "network", "learns", "a", "small", "step", "at", "every", "batch", "of", "words")


def draw(name: str, number: int, shape: tuple[int, ...], dtype: str, below: int | None = None) -> Any:
    """An array that depends on nothing but the arguments."""
    random = np.random.RandomState(zlib.crc32(f"{name}:{number}".encode()))
    if dtype == "bool":
        return random.randint(0, 2, shape).astype(np.bool_)
    if "int" in dtype:
        return random.randint(0, 2 if below is None else below, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def batch(inputs: list[Input], names: list[str], number: int) -> tuple[Any, ...]:
    """One batch of the columns that the user has described."""
    return tuple(
        draw(name, number, given.shape, given.dtype, given.below) for name, given in zip(names, inputs, strict=True)
    )


def _image(number: int, shape: tuple[int, ...] = _IMAGE) -> Any:
    return draw("image", number, shape, "uint8", 256)


def _encoded(number: int) -> Any:
    """A JPEG file of random pixels, of which there are a few only."""
    if not _files:
        from PIL import Image

        for each in range(4):
            stream = io.BytesIO()
            Image.fromarray(_image(each)).save(stream, "JPEG")
            _files.append(np.frombuffer(stream.getvalue(), np.uint8))
    return _files[number % len(_files)]


_files: list[Any] = []


def _label(number: int, classes: int = 10, dtype: str = "uint32") -> Any:
    return np.array(number % classes, dtype)


def _small(height: int, width: int, channels: int, dtype: str = "uint32") -> Callable[[int], Row]:
    return lambda number: {"image": _image(number, (height, width, channels)), "label": _label(number, dtype=dtype)}


# Columns, shapes and types as MindSpore documents them for the files of each data set.
_KNOWN: Mapping[str, Callable[[int], Row]] = {
    "MnistDataset": _small(28, 28, 1),
    "FashionMnistDataset": _small(28, 28, 1),
    "KMnistDataset": _small(28, 28, 1),
    "EMnistDataset": _small(28, 28, 1),
    "USPSDataset": _small(16, 16, 1),
    "SemeionDataset": _small(16, 16, 1),
    "Cifar10Dataset": _small(32, 32, 3),
    "SVHNDataset": _small(32, 32, 3),
    "STL10Dataset": _small(96, 96, 3, "int32"),
    "Cifar100Dataset": lambda number: {
        "image": _image(number, (32, 32, 3)), "coarse_label": _label(number), "fine_label": _label(number),
    },
    "TextFileDataset": lambda number: {"text": np.array(_sentence(number))},
    "IMDBDataset": lambda number: {"text": np.array(_sentence(number)), "label": _label(number, 2)},
}  # fmt: skip
# Data sets of image files: encoded unless the script asks for decoded ones.
_IMAGE_FILES: Mapping[str, Callable[[int], Row]] = {
    "ImageFolderDataset": lambda number: {"label": _label(number, dtype="int32")},
    "ManifestDataset": lambda number: {"label": _label(number, dtype="uint64")},
    "Caltech256Dataset": lambda number: {"label": _label(number)},
    "Places365Dataset": lambda number: {"label": _label(number)},
    "SUN397Dataset": lambda number: {"label": _label(number)},
    "Food101Dataset": lambda number: {"label": _label(number)},
    "CelebADataset": lambda number: {"attr": draw("attr", number, (40,), "uint32")},
}
_IMAGE_COLUMNS = ("image", "img", "data")
_LABEL_COLUMNS = ("label", "labels", "target")


def _sentence(number: int) -> str:
    return " ".join(_WORDS[(number + place * place) % len(_WORDS)] for place in range(8))


def documented_row(kind: str, options: Mapping[str, Any]) -> Callable[[int], Row] | None:
    """How rows of a data set of MindSpore look, by its class and arguments; None where only its files would tell."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    if kind in _IMAGE_FILES:
        others = _IMAGE_FILES[kind]
        image = _image if options.get("decode") else _encoded
        return lambda number: {"image": image(number), **others(number)}
    if kind == "MindDataset" and options.get("columns_list"):
        columns = list(options["columns_list"])
        if all(column in (*_IMAGE_COLUMNS, *_LABEL_COLUMNS) for column in columns):
            return lambda number: {
                column: _encoded(number) if column in _IMAGE_COLUMNS else _label(number, dtype="int64")
                for column in columns
            }
    if kind == "TFRecordDataset" and options.get("schema") is not None:
        return _declared(options["schema"], options.get("columns_list"))
    return None


def _declared(schema: Any, columns: Any) -> Callable[[int], Row] | None:
    """Rows as a schema declares them; where a length is left open, 1."""
    import json
    from pathlib import Path

    try:
        text = Path(schema).read_text(encoding="utf-8") if isinstance(schema, str) else schema.to_json()
        declared = json.loads(text)["columns"]
    except (OSError, ValueError, KeyError):
        return None
    if isinstance(declared, dict):
        declared = [{"name": name, **column} for name, column in declared.items()]
    wanted = [column for column in declared if not columns or column["name"] in columns]

    def row(number: int) -> Row:
        return {
            column["name"]: draw(
                column["name"], number, tuple(max(length, 1) for length in column.get("shape", ())), column["type"]
            )
            for column in wanted
        }

    return row
