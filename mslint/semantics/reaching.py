"""Which assignments a variable may hold at the place where it is read: the last ones before it, branch by branch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.semantics.module import Binding, Module, walk


def reaching(module: Module, name: cst.Name) -> list[Binding]:
    """Return the bindings that ``name`` may have where it stands, the nearest first.

    In the function that binds it, an assignment hides the earlier ones if it is certain to run before the use; of those in
    branches each counts, except the ones in another branch of an ``if`` that holds the use. A variable read before all its
    assignments (it comes from the previous round of a loop), and one of an outer scope, may have any of them.
    """
    bindings = module.lookup(name.value, name)
    if len(bindings) < 2 or module.scope(name) is not module.scope(bindings[0].node):
        return list(reversed(bindings))
    order = _order(module)
    above = set(module.ancestors(name))
    found: list[Binding] = []
    for binding in reversed(bindings):
        if (
            order[binding.node] > order[name]
            or _is_around(binding.node, above)
            or _elsewhere(module, binding.node, above)
        ):
            continue
        found.append(binding)
        if _certain(module, binding.node, above):
            break
    return found or list(reversed(bindings))


def from_rounds_before(module: Module, name: cst.Name) -> list[Binding]:
    """Return the bindings beside those of ``reaching`` that ``name`` may have from an earlier round of a loop around it."""
    found = {binding.node for binding in reaching(module, name)}
    scope = module.scope(name)
    loops = [
        item
        for item in module.ancestors(name)
        if isinstance(item, (cst.For, cst.While))
        and module.scope(item) is scope
        and not all(item in set(module.ancestors(node)) for node in found)
    ]
    return [
        binding
        for binding in module.lookup(name.value, name)
        if binding.node not in found and any(loop in set(module.ancestors(binding.node)) for loop in loops)
    ]


def _order(module: Module) -> dict[cst.CSTNode, int]:
    return module.remember(_order, lambda: {node: index for index, node in enumerate(walk(module.tree))})


def _is_around(node: cst.CSTNode, above: set[cst.CSTNode]) -> bool:
    """Tell whether the use stands in the very statement that binds: there the name still has its old value."""
    return node in above and isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign))


def _elsewhere(module: Module, node: cst.CSTNode, above: set[cst.CSTNode]) -> bool:
    """Tell whether ``node`` is in a branch of an ``if`` of which the use is in the other one."""
    child: cst.CSTNode = node
    for parent in module.ancestors(node):
        if parent in above:
            if not isinstance(parent, cst.If):
                return False
            other = parent.orelse if child is parent.body else parent.body if child is parent.orelse else None
            return other is not None and other in above
        child = parent
    return False


def _certain(module: Module, node: cst.CSTNode, above: set[cst.CSTNode]) -> bool:
    """Tell whether the block that holds ``node`` also holds the use, so that the one is certain to run before the other."""
    block = next(_blocks(module, node), None)
    return block is None or block in above


def _blocks(module: Module, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for item in module.ancestors(node):
        if isinstance(item, (cst.IndentedBlock, cst.Module, cst.FunctionDef, cst.Lambda)):
            yield item
