"""One name for every spelling of a MindSpore API."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

_DATA = Path(__file__).parents[1] / "data"
_PUBLIC_NAMES = _DATA / "api_names.json"
_STAR_NAMES = _DATA / "star_names.json"

# MindSpore re-exports its public names from the modules that define them: ``mindspore.ops.composite.GradOperation`` and
# ``mindspore.ops.GradOperation`` are one object. The first prefix that fits decides; what it gets wrong for 2.10.0 is in
# the table of public names, which data/make_api_names.py reads off MindSpore itself.
_HOMES = (
    ("mindspore.ops.", "mindspore.ops."),
    ("mindspore.nn.probability.", None),
    ("mindspore.nn.", "mindspore.nn."),
    ("mindspore.communication.", "mindspore.communication."),
    ("mindspore.context.", "mindspore."),
    ("mindspore.common.initializer.", "mindspore.common.initializer."),
    ("mindspore.common.", "mindspore."),
    ("mindspore.train.model.", "mindspore."),
    ("mindspore.train.amp.", "mindspore.amp."),
)


def canonical(name: str) -> str:
    """Return the public name of what the dotted ``name`` means; names outside MindSpore come back as they are."""
    return _public_names().get(name) or by_prefix(name)


def by_prefix(name: str) -> str:
    """Return what ``name`` most likely means where MindSpore, of another version than the table's, does not know it."""
    if not name.startswith("mindspore."):
        return name
    for prefix, home in _HOMES:
        if name.startswith(prefix):
            return name if home is None else home + name.rpartition(".")[2]
    return name


def star_names(module: str) -> frozenset[str]:
    """Return what ``from module import *`` binds, for a module of MindSpore; nothing for one that is not in the table."""
    return _star_names().get(module, frozenset())


@cache
def _public_names() -> dict[str, str]:
    names: dict[str, str] = json.loads(_PUBLIC_NAMES.read_text(encoding="utf-8"))["names"]
    return names


@cache
def _star_names() -> dict[str, frozenset[str]]:
    table = json.loads(_STAR_NAMES.read_text(encoding="utf-8"))["names"]
    return {module: frozenset(names) for module, names in table.items()}
