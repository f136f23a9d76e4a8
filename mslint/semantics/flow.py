"""Where a value comes from: the expressions it is computed from, through variables, attributes and helper methods.

Reading is flow-insensitive: of a variable assigned in several places every assignment counts. A rule that needs the order
of statements looks at rows itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mslint.semantics.cells import CellClass, cell_classes, class_of, is_self, method_of, self_name
from mslint.semantics.module import Module, children, find

_MOST_NODES = 4000


@dataclass(frozen=True)
class Origin:
    """One expression that a value is computed from.

    ``node`` stands in ``module``; ``depth`` counts the calls that were followed to get there (into helper methods and
    functions, or out to the callers of the function whose parameter it is).
    """

    module: Module
    node: cst.CSTNode
    depth: int


def origins(module: Module, node: cst.CSTNode, *, calls: int = 2, callers: bool = False) -> Iterator[Origin]:
    """Yield every expression that ``node`` is computed from, ``node`` itself first.

    Variables lead to all that is assigned to them, ``self.x`` to what the class assigns to it, calls of methods of the
    same class and of functions of the same file to what these return (at most ``calls`` calls deep; their arguments count
    anyway), parameters, with ``callers``, to the arguments of the calls in the same file.
    """
    seen: set[cst.CSTNode] = set()
    stack = [Origin(module, node, 0)]
    while stack and len(seen) < _MOST_NODES:
        origin = stack.pop()
        if origin.node in seen:
            continue
        seen.add(origin.node)
        yield origin
        stack.extend(_steps(origin, calls, callers))


def _steps(origin: Origin, calls: int, callers: bool) -> Iterator[Origin]:
    module, node, depth = origin.module, origin.node, origin.depth
    if isinstance(node, cst.Name):
        for value in definitions(module, node):
            yield Origin(module, value, depth)
        if callers and depth < calls:
            for argument in arguments_for(module, node):
                yield Origin(module, argument, depth + 1)
        return
    if isinstance(node, cst.Attribute):
        for value in held(module, node):
            yield Origin(module, value, depth)
        if not _is_member_of_self(module, node):
            yield Origin(module, node.value, depth)
        return
    if isinstance(node, cst.Call):
        for passed_on in node.args:
            yield Origin(module, passed_on.value, depth)
        yield Origin(module, node.func, depth)
        if depth < calls:
            function = function_called(module, node)
            if function is not None:
                for value in returned(module, function):
                    yield Origin(module, value, depth + 1)
        return
    if isinstance(node, cst.Lambda):
        yield Origin(module, node.body, depth)
        return
    for child in children(node):
        if isinstance(child, cst.BaseExpression) or not isinstance(node, cst.BaseExpression):
            yield Origin(module, child, depth)
        else:
            yield from (Origin(module, inner, depth) for inner in children(child))


def definitions(module: Module, name: cst.Name) -> Iterator[cst.CSTNode]:
    """Yield what the variable ``name`` gets its value from; of a tuple that is taken apart, the part if it is plain."""
    for binding in module.lookup(name.value, name):
        if binding.value is not None:
            yield binding.value
        elif isinstance(binding.node, cst.Assign):
            yield from _unpacked(binding.node, name.value)
        elif isinstance(binding.node, cst.AugAssign):
            yield binding.node.value
        elif isinstance(binding.node, (cst.For, cst.CompFor)):
            yield binding.node.iter


def _unpacked(assign: cst.Assign, name: str) -> Iterator[cst.CSTNode]:
    for target in assign.targets:
        if not isinstance(target.target, (cst.Tuple, cst.List)):
            continue
        parts = [element.value for element in target.target.elements]
        value = assign.value
        if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(parts):
            for part, element in zip(parts, value.elements, strict=True):
                if any(item.value == name for item in find(part, cst.Name)):
                    yield element.value
        else:
            yield value


def held(module: Module, node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """Yield what the class assigns to ``self.x``, in the class itself and in its bases in the same file."""
    owner = owner_of(module, node)
    if owner is None or not _is_member_of_self(module, node):
        return
    for cell in lineage_here(module, owner):
        for assigned in cell.assigned.get(node.attr.value, []):
            if assigned.value is not None:
                yield assigned.value
            elif isinstance(assigned.statement, (cst.Assign, cst.AugAssign)):
                yield assigned.statement.value


def lineage_here(module: Module, owner: CellClass) -> list[CellClass]:
    """Return ``owner`` and those of its bases that the same file defines, nearest first."""
    cells = cell_classes(module)
    names = {cell.reference: cell for cell in cells.values()}
    return [owner, *(names[base] for base in owner.lineage if base in names)]


def owner_of(module: Module, node: cst.CSTNode) -> CellClass | None:
    """Return the top-level class whose method holds ``node``."""
    holder = class_of(module, node)
    known = cell_classes(module).get(holder.name.value) if holder is not None else None
    return known if known is not None and known.node is holder else None


def _is_member_of_self(module: Module, node: cst.Attribute) -> bool:
    method = method_of(module, node)
    return method is not None and is_self(node, self_name(method))


def function_called(module: Module, call: cst.Call) -> cst.FunctionDef | None:
    """Return the function or method of the same file that ``call`` runs: ``f()``, ``self.f()``."""
    function = call.func
    if isinstance(function, cst.Name):
        bound = module.lookup(function.value, call)
        nodes = [binding.node for binding in bound if isinstance(binding.node, cst.FunctionDef)]
        return nodes[0] if len(nodes) == len(bound) == 1 else None
    if isinstance(function, cst.Attribute) and _is_member_of_self(module, function):
        owner = owner_of(module, call)
        for cell in lineage_here(module, owner) if owner is not None else []:
            if function.attr.value in cell.methods:
                return cell.methods[function.attr.value]
    return None


def returned(module: Module, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Yield the expressions that ``function`` itself returns."""
    for statement in find(function, cst.Return):
        if statement.value is not None and module.enclosing(statement, cst.FunctionDef) is function:
            yield statement.value


def arguments_for(module: Module, name: cst.Name) -> Iterator[cst.BaseExpression]:
    """Yield what calls in the same file pass for the parameter that ``name`` is, if it is one."""
    for binding in module.lookup(name.value, name):
        if not isinstance(binding.node, cst.Param):
            continue
        function = module.enclosing(binding.node, cst.FunctionDef)
        if function is None:
            continue
        parameters = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
        if method_of(module, function) is function:
            parameters = parameters[1:]
        for call in module.calls:
            if function_called(module, call) is function:
                value = passed(call, parameters, name.value)
                if value is not None:
                    yield value


def passed(call: cst.Call, parameters: list[str], name: str) -> cst.BaseExpression | None:
    """Return what ``call`` passes for the parameter ``name`` of a function with ``parameters``."""
    for index, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword.value == name if argument.keyword else parameters[index : index + 1] == [name]:
            return argument.value
    return None
