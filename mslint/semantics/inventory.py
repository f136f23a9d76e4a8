"""The loops, subscripts, calls and computations of each function, found in one walk over the file."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from mslint.semantics.module import Module, children

_COUNTED = frozenset(
    (cst.FunctionDef, cst.For, cst.ListComp, cst.GeneratorExp, cst.Subscript, cst.Call, cst.BinaryOperation)
)
"""A set of types is asked faster than `isinstance`: libcst's nodes have an abstract base."""


@dataclass
class Inventory:
    """What stands in one function, functions nested in it apart, in source order."""

    loops: list[cst.For | cst.ListComp | cst.GeneratorExp] = field(default_factory=list)
    subscripts: list[cst.Subscript] = field(default_factory=list)
    calls: list[cst.Call] = field(default_factory=list)
    computations: list[cst.BinaryOperation] = field(default_factory=list)


def inventories(module: Module) -> dict[cst.FunctionDef, Inventory]:
    """Return the inventory of each function of ``module``, in source order."""
    return module.remember(inventories, lambda: _take(module))


def _take(module: Module) -> dict[cst.FunctionDef, Inventory]:
    found: dict[cst.FunctionDef, Inventory] = {}
    stack: list[tuple[cst.CSTNode, Inventory]] = [(module.tree, Inventory())]
    while stack:
        node, inventory = stack.pop()
        if type(node) not in _COUNTED:
            pass
        elif isinstance(node, cst.FunctionDef):
            inventory = found[node] = Inventory()
        elif isinstance(node, (cst.For, cst.ListComp, cst.GeneratorExp)):
            inventory.loops.append(node)
        elif isinstance(node, cst.Subscript):
            inventory.subscripts.append(node)
        elif isinstance(node, cst.Call):
            inventory.calls.append(node)
        elif isinstance(node, cst.BinaryOperation):
            inventory.computations.append(node)
        stack.extend((child, inventory) for child in reversed(children(node)))
    return found
