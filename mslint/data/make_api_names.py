"""Write api_names.json: the one public name of each MindSpore API, by the other names that it can be imported under.

Two names are one API if they are bound to one object. Names that the prefix rules of ``semantics/api.py`` already lead to
the public one are left out.

usage: python mslint/data/make_api_names.py  (needs MindSpore and mslint)
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from mslint.semantics.api import by_prefix

HOMES = (
    "mindspore.communication",
    "mindspore.nn",
    "mindspore.amp",
    "mindspore",
    "mindspore.common.initializer",
    "mindspore.ops",
    "mindspore.dataset",
    "mindspore.dataset.transforms",
    "mindspore.dataset.vision",
    "mindspore.dataset.text",
    "mindspore.dataset.audio",
    "mindspore.train",
    "mindspore.parallel",
    "mindspore.mint",
    "mindspore.mint.nn",
    "mindspore.mint.nn.functional",
    "mindspore.numpy",
    "mindspore.scipy",
)
"""The modules under which the documentation lists APIs; of several names the one in the first of these is the public one."""

NOT_FOR_USERS = ("mindspore.run_check", "mindspore.rewrite", "mindspore.graph", "mindspore.parallel.cluster")


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield ``package`` and all that lies in it and that can be imported here, names with an underscore apart."""
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
        if any(part.startswith("_") for part in found.name.split(".")) or found.name.startswith(NOT_FOR_USERS):
            continue
        # Some modules want a device, some write to the screen when they are imported.
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            yield import_module(found.name)


def spellings(package: ModuleType) -> list[list[str]]:
    """Return the names of each class and function of ``package``, one list for each object."""
    found: dict[int, list[str]] = {}
    for module in modules(package):
        for name, value in vars(module).items():
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            if (getattr(value, "__module__", None) or "").startswith(package.__name__):
                found.setdefault(id(value), []).append(f"{module.__name__}.{name}")
    return list(found.values())


def public(names: list[str]) -> str | None:
    """Return the one of ``names`` that users are to write, or None if all are internal."""
    listed = [name for name in names if _home(name) in HOMES and _is_listed(name)]
    return min(listed, key=lambda name: (HOMES.index(_home(name)), name)) if listed else None


def _home(name: str) -> str:
    return name.rpartition(".")[0]


def _is_listed(name: str) -> bool:
    home, _, last = name.rpartition(".")
    # grad, vmap and their like are documented as mindspore.grad, but stand in the list of mindspore.ops alone.
    lists = ("mindspore", "mindspore.ops") if home == "mindspore" else (home,)
    return any(last in getattr(import_module(listing), "__all__", ()) for listing in lists)


def table() -> dict[str, object]:
    """Read the table off the installed MindSpore."""
    mindspore = import_module("mindspore")
    found: dict[str, str] = {}
    for names in spellings(mindspore):
        home = public(names)
        found.update((name, home) for name in names if home and by_prefix(name) != home)
    return {"mindspore": mindspore.__version__, "names": dict(sorted(found.items()))}


if __name__ == "__main__":
    text = json.dumps(table(), indent=0)
    Path(__file__).with_name("api_names.json").write_text(f"{text}\n", encoding="utf-8")
