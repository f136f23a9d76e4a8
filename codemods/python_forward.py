"""What a forward pass that is a Python function, no Cell, reads and writes beside its arguments."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from codemods.gradient_site import Site
from mslint.semantics.cells import CellClass, is_self, method_of, self_name
from mslint.semantics.gradients import sole_value
from mslint.semantics.module import Module, find, walk

Function = cst.FunctionDef | cst.Lambda

_CHANGES = ("append", "extend", "insert", "pop", "update", "add", "remove", "clear", "setdefault")
"""Methods that change a container in place."""
_LOOPS = (cst.For, cst.While)
_FIXED = (cst.FunctionDef, cst.ClassDef, cst.Param)
_SHARING: tuple[type[cst.Global | cst.Nonlocal], ...] = (cst.Global, cst.Nonlocal)


def forward_functions(module: Module, site: Site) -> list[Function]:
    """Return the function or method of this file that ``site`` differentiates, and those that it calls."""
    assert site.application.network is not None
    found: list[Function] = []
    queue = [sole_value(module, site.application.network)]
    while queue:
        function = _function(module, site, queue.pop())
        if function is not None and function not in found:
            found.append(function)
            queue += [call.func for call in find(function.body, cst.Call)]
    return found


def _function(module: Module, site: Site, node: cst.BaseExpression) -> Function | None:
    if isinstance(node, cst.Lambda):
        return node
    if isinstance(node, cst.Name):
        bound = [binding.node for binding in module.lookup(node.value, node)]
        return bound[0] if len(bound) == 1 and isinstance(bound[0], cst.FunctionDef) else None
    method = method_of(module, node)
    if isinstance(node, cst.Attribute) and site.owner and method and is_self(node, self_name(method)):
        return site.owner.methods.get(node.attr.value)
    return None


def changing_variable(module: Module, site: Site) -> str | None:
    """Return a variable or attribute that the forward pass reads and that has another value from step to step."""
    for function in forward_functions(module, site):
        for name in find(function.body, cst.Name):
            parent = module.parents[name]
            is_member = isinstance(parent, cst.Attribute) and parent.attr is name
            is_keyword = isinstance(parent, cst.Arg) and parent.keyword is name
            if not is_member and not is_keyword and _changes(module, function, name):
                return name.value
        if isinstance(function, cst.FunctionDef) and site.owner is not None:
            for attribute in find(function.body, cst.Attribute):
                if is_self(attribute, self_name(function)) and _is_set_later(module, site.owner, attribute.attr.value):
                    return module.code(attribute)
    return None


def _changes(module: Module, function: Function, name: cst.Name) -> bool:
    bound = module.lookup(name.value, name)
    scope = module.scope(bound[0].node) if bound else function
    if scope is function or function in module.ancestors(scope):
        return False
    values = [item.node for item in bound if item.target is None and not isinstance(item.node, _FIXED)]
    below = any(module.start(node) > module.start(function) for node in values)
    shared = any(
        item.name.value == name.value for kind in _SHARING for held in find(module.tree, kind) for item in held.names
    )
    return shared or (len(values) > 1 and below) or any(_is_in_loop(module, function, node) for node in values)


def _is_in_loop(module: Module, function: Function, node: cst.CSTNode) -> bool:
    """Tell whether a loop gives the variable a value in each round, to a function that was made before."""
    around = [item for item in (node, *module.ancestors(node)) if isinstance(item, _LOOPS)]
    return not set(around) <= set(module.ancestors(function))


def _is_set_later(module: Module, owner: CellClass, attribute: str) -> bool:
    program = module.program
    return any(item.method.name.value != "__init__" for item in owner.assigned.get(attribute, ())) or any(
        attribute in program.facts(file).touched for file in program.neighbourhood(module.source.path.absolute())
    )


def written(module: Module, site: Site) -> str | None:
    """Return what the forward pass writes outside of itself: a variable, an attribute, a container."""
    return next((text for function in forward_functions(module, site) for text in _written(module, function)), None)


def _written(module: Module, function: Function) -> Iterator[str]:
    for item in walk(function.body):
        if isinstance(item, (cst.Global, cst.Nonlocal)):
            yield item.names[0].name.value
        elif isinstance(item, (cst.AssignTarget, cst.AugAssign)):
            target = item.target
            if isinstance(target, (cst.Attribute, cst.Subscript)) and _is_outside(module, function, target):
                yield module.code(target)
        elif isinstance(item, cst.Call) and isinstance(item.func, cst.Attribute):
            if item.func.attr.value in _CHANGES and _is_outside(module, function, item.func.value):
                yield module.code(item.func.value)


def _is_outside(module: Module, function: Function, node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is part of something that the function neither makes nor gets, ``self`` apart."""
    root = node
    while isinstance(root, (cst.Attribute, cst.Subscript)):
        root = root.value
    if not isinstance(root, cst.Name):
        return False
    bound = module.lookup(root.value, root)
    if isinstance(function, cst.FunctionDef) and root.value == self_name(function) and method_of(module, node):
        return True
    return bool(bound) and module.scope(bound[0].node) is not function
