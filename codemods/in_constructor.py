"""What of a training step already holds in ``__init__``, where the gradient function is to be built."""

from __future__ import annotations

import libcst as cst

from codemods.gradient_site import Site
from mslint.semantics.cells import CellClass, is_self, self_name
from mslint.semantics.gradients import TRAIN_STEPS, sole_value
from mslint.semantics.module import Module, find

# What nn.TrainOneStepCell.__init__ assigns (read in 2.10.0's mindspore/nn/wrap/cell_wrapper.py).
_TRAIN_STEP_ATTRIBUTES = ("network", "optimizer", "weights", "sens", "grad_reducer")
_PARAMETER_LISTS = ("trainable_params", "get_parameters", "untrainable_params")
_CONTAINERS = ("mindspore.ParameterTuple", "tuple", "list")


def expression_in_init(
    module: Module, owner: CellClass, init: cst.FunctionDef | None, site: Site, expression: cst.BaseExpression
) -> tuple[str, set[str]] | None:
    """Return ``expression``, used in a step, as it reads in ``__init__``, and the attributes of ``self`` it needs there."""
    value = sole_value(module, expression)
    this = self_name(site.function) if site.function else ""
    if init is not None and this != self_name(init):
        return None
    if isinstance(value, cst.Call):
        return _call_in_init(module, owner, init, site, value)
    root = value
    while isinstance(root, cst.Attribute) and not is_self(root, this):
        root = root.value
    if isinstance(root, cst.Attribute):
        attribute = root.attr.value
        return (
            (module.code(value), {attribute}) if assigned_in_init(module, owner, init, attribute) is not None else None
        )
    if isinstance(root, cst.Name) and root.value != this:
        bound = module.lookup(root.value, root)
        if bound and all(module.scope(found.node) is module.tree for found in bound):
            return module.code(value), set()
    return None


def _call_in_init(
    module: Module, owner: CellClass, init: cst.FunctionDef | None, site: Site, value: cst.Call
) -> tuple[str, set[str]] | None:
    function = value.func
    if isinstance(function, cst.Attribute) and function.attr.value in _PARAMETER_LISTS and not value.args:
        inner = expression_in_init(module, owner, init, site, function.value)
        return (f"{inner[0]}.{function.attr.value}()", inner[1]) if inner else None
    name = module.resolve(function) or (function.value if isinstance(function, cst.Name) else "")
    if name in _CONTAINERS and len(value.args) == 1 and not value.args[0].star:
        inner = expression_in_init(module, owner, init, site, value.args[0].value)
        return (f"{module.code(function)}({inner[0]})", inner[1]) if inner else None
    return None


def assigned_in_init(
    module: Module, owner: CellClass, init: cst.FunctionDef | None, attribute: str
) -> list[cst.CSTNode] | None:
    """Return the statements of ``init`` after which ``self.attribute`` is what it stays; None if that cannot be told."""
    if set_from_outside(module, owner, attribute):
        return None
    found = owner.assigned.get(attribute, [])
    if found:
        return [item.statement for item in found] if all(item.method is init for item in found) else None
    if not _inherited(module, owner, attribute):
        return None
    if init is None:
        return []
    for call in find(init, cst.Call):
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "__init__"
            and (isinstance(call.func.value, cst.Call) or module.resolve(call.func.value))
        ):
            return [call]
    return None


def may_be_none(module: Module, owner: CellClass, init: cst.FunctionDef | None, attribute: str) -> bool:
    """Tell whether ``self.attribute`` is visibly None after some runs of ``__init__``: an object that is not to train."""
    values = [item.value for item in owner.assigned.get(attribute, []) if item.method is init]
    return any(value is not None and _none_among(module, init, value) for value in values)


def _none_among(module: Module, init: cst.FunctionDef | None, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.IfExp):
        return _none_among(module, init, value.body) or _none_among(module, init, value.orelse)
    if not isinstance(value, cst.Name) or init is None:
        return False
    bound = module.lookup(value.value, value)
    if len(bound) != 1 or not isinstance(bound[0].node, cst.Param):
        return value.value == "None"
    default = bound[0].node.default
    return isinstance(default, cst.Name) and default.value == "None"


def _inherited(module: Module, owner: CellClass, attribute: str) -> bool:
    """Tell whether a base sets ``attribute`` in its ``__init__``, and none sets it later."""
    bases = [known[1] for base in owner.lineage if (known := module.program.class_facts(base)) is not None]
    if any(attribute in base.updated for base in bases):
        return False
    of_mindspore = attribute in _TRAIN_STEP_ATTRIBUTES and any(base in TRAIN_STEPS for base in owner.lineage)
    return of_mindspore or any(attribute in base.assigned for base in bases)


def set_from_outside(module: Module, owner: CellClass, attribute: str) -> bool:
    """Tell whether a subclass or other code may give ``attribute`` another value once ``__init__`` is through."""
    program, path = module.program, module.source.path.absolute()
    for reference in program.subclasses(owner.reference):
        known = program.class_facts(reference)
        if known is not None and attribute in known[1].assigned:
            return True
    return any(attribute in program.facts(file).touched for file in program.neighbourhood(path))
