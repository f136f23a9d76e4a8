"""Statements of a step that only compute values for local variables: they may be moved, and dropped when unread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from codemods.gradient_site import Site, is_stored, reads
from mslint.semantics.cells import is_self, self_name
from mslint.semantics.gradients import Statement
from mslint.semantics.module import Module, find, walk
from mslint.semantics.sensitivity import operator_called

_BUILTINS = frozenset(
    "range len print tuple list isinstance zip enumerate float int bool str max min".split()  # noqa: SIM905
)
_TENSOR_METHODS = frozenset(["astype", "to", "view", "reshape", "mean", "sum", "squeeze", "float", "half"])
_ORDERED = ("assign", "Assign", "depend", "Depend", "NPU", "load", "Load", "scatter", "Scatter")
_SHARING: tuple[type[cst.Global | cst.Nonlocal], ...] = (cst.Global, cst.Nonlocal)
_LEAVES = (cst.Return, cst.Raise, cst.Del, cst.Global, cst.Nonlocal, cst.Await, cst.Yield, cst.With, cst.Try)


def unread(
    module: Module, site: Site, gone: list[cst.CSTNode], wanted: Iterable[str] = ()
) -> list[cst.SimpleStatementLine]:
    """Return the statements of the function that set a variable which, once ``gone`` is gone, nothing reads."""
    if site.function is None:
        return []
    gone = list(gone)
    shared = {item.name.value for kind in _SHARING for held in find(site.function, kind) for item in held.names}
    removed: list[cst.SimpleStatementLine] = []
    changed = True
    while changed:
        changed = False
        for line in find(site.function, cst.SimpleStatementLine):
            name = variable_set(line)
            if (
                line in removed
                or name is None
                or name in wanted
                or name in shared
                or len(module.bindings[site.function].get(name, [])) != 1
            ):
                continue
            places = list(reads(module, name, site.function))
            if places and all(inside(module, place, gone) for place in places) and inert(module, site, line):
                removed.append(line)
                gone.append(line)
                changed = True
    return removed


def variable_set(line: Statement) -> str | None:
    """Return the variable that is all that ``line`` sets, if it sets one."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    if not isinstance(line.body[0], cst.Assign) or len(line.body[0].targets) != 1:
        return None
    target = line.body[0].targets[0].target
    return target.value if isinstance(target, cst.Name) else None


def inside(module: Module, node: cst.CSTNode, holders: list[cst.CSTNode]) -> bool:
    """Tell whether ``node`` is one of ``holders`` or stands in one."""
    return any(item in holders for item in (node, *module.ancestors(node)))


def variables_bound(module: Module, statement: Statement) -> Iterator[str]:
    """Yield the variables that ``statement`` gives a value."""
    for name in find(statement, cst.Name):
        parent = module.parents[name]
        stored = isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.Element) and is_stored(module, parent))
        if stored or (isinstance(parent, (cst.For, cst.AugAssign, cst.AnnAssign)) and parent.target is name):
            yield name.value


def inert(module: Module, site: Site, statement: cst.CSTNode) -> bool:
    """Tell whether ``statement`` only computes values for local variables, so that a network may run before or after it."""
    for item in walk(statement):
        if isinstance(item, _LEAVES):
            return False
        if isinstance(item, cst.Call) and not _pure(module, site, item):
            return False
        if isinstance(item, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)) and not isinstance(
            item.target, (cst.Name, cst.Tuple)
        ):
            return False
    return True


def _pure(module: Module, site: Site, call: cst.Call) -> bool:
    if isinstance(call.func, cst.Name) and call.func.value in _BUILTINS and not module.lookup(call.func.value, call):
        return True
    name = operator_called(module, site.owner, call)
    if name and name.startswith("mindspore."):
        return not name.rpartition(".")[2].startswith(_ORDERED)
    this = self_name(site.function) if site.function else ""
    return (
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in _TENSOR_METHODS
        and not is_self(call.func, this)
    )
