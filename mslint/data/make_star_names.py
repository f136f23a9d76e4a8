"""Write star_names.json: what ``from module import *`` binds, for the modules of MindSpore that people import so.

usage: python mslint/data/make_star_names.py  (needs MindSpore)
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

MODULES = (
    "mindspore",
    "mindspore.common",
    "mindspore.communication",
    "mindspore.context",
    "mindspore.dataset",
    "mindspore.nn",
    "mindspore.numpy",
    "mindspore.ops",
    "mindspore.ops.composite",
    "mindspore.ops.functional",
    "mindspore.ops.operations",
    "mindspore.train",
    "mindspore.train.callback",
)


def names(module: str) -> list[str]:
    """Return the names that a star import of ``module`` binds."""
    found = vars(import_module(module))
    return sorted(found.get("__all__") or (name for name in found if not name.startswith("_")))


def table() -> dict[str, object]:
    """Read the table off the installed MindSpore."""
    version = import_module("mindspore").__version__
    return {"mindspore": version, "names": {module: names(module) for module in MODULES}}


if __name__ == "__main__":
    text = json.dumps(table(), indent=0)
    Path(__file__).with_name("star_names.json").write_text(f"{text}\n", encoding="utf-8")
