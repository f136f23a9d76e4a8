"""Puts substitutes in the place of functions and classes of MindSpore."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any


def replace_everywhere(original: Any, substitute: Any) -> None:
    """Every module of MindSpore that holds the object holds the substitute from now on.

    The script is not imported yet, so that its own ``from mindspore import ...`` finds the substitute too.
    """
    for module, attribute in _holders().get(id(original), ()):
        setattr(module, attribute, substitute)


def prepare_replacing() -> None:
    """Look through MindSpore now instead of at the first replacement."""
    _holders()


@cache
def _holders() -> dict[int, list[tuple[ModuleType, str]]]:
    """Where functions and classes of MindSpore are held: by the identity of the object, as modules first have it."""
    # The compiler imports these at its first gradient, and they register rules for the classes of operators.
    for module_name in ("mindspore.ops._grad_experimental", "mindspore.ops._vmap", "mindspore.mint.distributed"):
        importlib.import_module(module_name)
    holders: dict[int, list[tuple[ModuleType, str]]] = {}
    for name, module in list(sys.modules.items()):
        if name == "mindspore" or name.startswith("mindspore."):
            for attribute, value in vars(module).items():
                if callable(value):
                    holders.setdefault(id(value), []).append((module, attribute))
    return holders
