"""One name for every spelling of a MindSpore API."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

_STAR_NAMES = Path(__file__).parents[1] / "data" / "star_names.json"

# MindSpore re-exports its public names from the modules that define them: ``mindspore.ops.composite.GradOperation`` and
# ``mindspore.ops.GradOperation`` are one object (checked on 2.10.0 by ``is``). The first prefix that fits decides.
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
    """Return the public home of the dotted ``name``; names outside MindSpore come back as they are."""
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
def _star_names() -> dict[str, frozenset[str]]:
    table = json.loads(_STAR_NAMES.read_text(encoding="utf-8"))["names"]
    return {module: frozenset(names) for module, names in table.items()}
