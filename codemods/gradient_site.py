"""The places where a gradient function is called, read so that they can be rewritten; or the reason why they cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from codemods.base import Manual
from mslint.findings import Edit
from mslint.semantics.cells import CellClass, all_classes, class_of, is_self, method_of, self_name
from mslint.semantics.gradients import (
    Application,
    GradientOperator,
    Statement,
    gradient_operators,
    normal,
    sensitivity,
    sole_value,
    statement_of,
)
from mslint.semantics.module import Module, find
from mslint.semantics.sensitivity import operator_called

_GRADIENTS = ("mindspore.grad", "mindspore.value_and_grad")
# Operators and methods that start or read the overflow status of an Ascend device: what runs between clearing and reading
# it is what is checked, so the forward pass must not be moved across them.
_STATUS = ("NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUClearFloatStatusV2", "NPUGetFloatStatus")
_STATUS_METHODS = ("start_overflow_check",)


@dataclass
class Site:
    """One call of a gradient function.

    ``result`` is the expression whose value is what the script uses (the call, or the half of its result that holds the
    gradients of the weights); ``target`` what it is assigned to, None if it is used inside a larger expression.
    """

    application: Application
    call: cst.Call
    statement: Statement
    function: cst.FunctionDef | None
    owner: CellClass | None
    sensitivity: cst.Arg | None
    result: cst.BaseExpression
    target: str | None
    inputs_used: bool = False
    """With ``get_all``: whether the gradients of the inputs are used too."""
    edits: list[Edit] = field(default_factory=list)
    """Edits that reading only the weights' half makes necessary elsewhere."""

    @property
    def arguments(self) -> list[cst.Arg]:
        """The arguments of the network, without the sensitivity."""
        return [argument for argument in self.call.args if argument is not self.sensitivity]


def read_sites(module: Module, operator: GradientOperator) -> list[Site]:
    """Return the calls of what ``operator`` is applied to.

    Raises Manual where one of its uses cannot be rewritten: then none is.
    """
    for use in operator.escapes:
        if _is_assigned_beside_others(module, use):
            raise Manual(
                f"the operator is assigned beside other things in row {module.start(use).row}; give it a statement of its own"
            )
        raise Manual(
            f"the GradOperation itself is handed on in row {module.start(use).row}; "
            "build the gradient function with mindspore.value_and_grad where the network is known and hand that on"
        )
    if operator.partial is not None:
        raise Manual(
            f"the operator is built by the functools.partial in row {module.start(operator.partial).row}; "
            "write GradOperation with its options where it is used"
        )
    if None in (operator.get_all, operator.get_by_list, operator.sens_param):
        raise Manual(
            "the options of GradOperation are not literal True or False, so what it returns is not known; write them out"
        )
    _check_holder(module, operator)
    sites: list[Site] = []
    for application in operator.applications:
        for use in application.escapes:
            raise Manual(
                f"the gradient function is handed on in row {module.start(use).row}, where its calls are not seen; if they "
                "pass no keywords, hand on mindspore.grad(network, None, weights), which is called the same way"
            )
        if application.network is None:
            raise Manual(
                f"what is differentiated in row {module.start(application.node).row} is out of sight; pass network and "
                "weights as arguments of their own"
            )
        if not application.invocations:
            raise Manual(
                f"the gradient function made in row {module.start(application.node).row} is never called here; drop it, or "
                "write mindspore.grad(network, None, weights) in its place"
            )
        sites.extend(_site(module, operator, application, invocation) for invocation in application.invocations)
    for site in sites:
        _check_site(module, operator, site)
    return sites


def _is_assigned_beside_others(module: Module, use: cst.CSTNode) -> bool:
    """Tell whether ``use`` is one of several values of an assignment: ``a, b = use, 1``."""
    values = module.parents[module.parents[use]]
    assign = module.parents.get(values)
    return isinstance(assign, cst.Assign) and isinstance(assign.targets[0].target, cst.Tuple) and assign.value is values


def _check_holder(module: Module, operator: GradientOperator) -> None:
    if operator.attribute and operator.owner:
        built = operator.owner.assigned.get(operator.attribute, [])
        if len(built) > 1:
            raise Manual(f"self.{operator.attribute} is assigned in {len(built)} places; keep one")
        for reference in module.program.subclasses(operator.owner.reference):
            found = module.program.class_facts(reference)
            if found and found[0] != module.source.path.absolute() and operator.attribute in found[1].reads:
                raise Manual(
                    f"the subclass {found[1].name} in {found[0].name} uses self.{operator.attribute} too; "
                    "rewrite both together"
                )
        if operator.construction is not None:
            _check_outside_reads(module, operator.attribute)
            _check_other_files(module, operator.attribute)
    elif operator.variable and operator.holder and len(module.lookup(operator.variable, operator.holder)) > 1:
        raise Manual(f"{operator.variable} is assigned more than once; give each gradient function its own name")


def _check_outside_reads(module: Module, attribute: str) -> None:
    for node in find(module.tree, cst.Attribute):
        if node.attr.value != attribute or module.resolve(node) is not None:
            continue
        method = method_of(module, node)
        if method is None or not is_self(node, self_name(method)):
            raise Manual(
                f"{module.code(node)} in row {module.start(node).row} may be the same attribute, used from outside; "
                "rewrite both together"
            )


def _check_other_files(module: Module, attribute: str) -> None:
    program, path = module.program, module.source.path.absolute()
    read = re.compile(rf"\.{attribute}$")
    for file in sorted(program.neighbourhood(path)):
        facts = program.facts(file)
        outside = file != path and any(
            not use.startswith("self.") and _of_an_object(program.dotted_in(file, use))
            for use in program.uses(file, read)
        )
        if outside or attribute in facts.named or attribute in facts.touched:
            raise Manual(
                f"{file.name} may use the attribute {attribute} from outside; rewrite both together, or rename this one if "
                "that is another"
            )


def _of_an_object(resolved: str | None) -> bool:
    """Tell whether a dotted name is an attribute of something in the project rather than a name of a module."""
    return resolved is None or ("." in resolved.rpartition(".py:")[2] and ".py:" in resolved)


def _site(module: Module, operator: GradientOperator, application: Application, call: cst.Call) -> Site:
    statement = statement_of(module, call)
    assert statement is not None
    function = module.enclosing(call, cst.FunctionDef)
    holder = class_of(module, call)
    owner = all_classes(module)[holder] if holder else None
    weight = sensitivity(operator, call)
    site = Site(application, call, statement, function, owner, weight, call, None)
    if operator.get_all:
        _take_weights_half(module, site)
    parent = module.parents[site.result]
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1 and site.target is None:
        site.target = module.code(parent.targets[0].target)
        if isinstance(parent.targets[0].target, cst.Tuple) and not parent.targets[0].target.lpar:
            site.target = f"({site.target})"
    elif isinstance(parent, cst.AnnAssign) and parent.value is site.result:
        site.target = module.code(parent.target)
    return site


def _take_weights_half(module: Module, site: Site) -> None:
    """Reduce ``(gradients of inputs, gradients of weights)`` to its second half where the script uses only that."""
    parent = module.parents[site.call]
    if _index(parent) == 1:
        assert isinstance(parent, cst.Subscript)
        site.result = parent
        return
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        if isinstance(target, cst.Tuple) and len(target.elements) == 2:
            first, second = (element.value for element in target.elements)
            if isinstance(first, cst.Name) and not list(_reads(module, first.value, site)):
                site.target = module.code(second)
                return
        if isinstance(target, cst.Name):
            reads = list(_reads(module, target.value, site))
            halves = [module.parents[read] for read in reads]
            if reads and all(_index(half) == 1 for half in halves):
                site.edits = [module.replace(half, target.value) for half in halves]
                return
    site.inputs_used = True


def _index(node: cst.CSTNode) -> int | None:
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    inner = node.slice[0].slice
    if isinstance(inner, cst.Index) and isinstance(inner.value, cst.Integer):
        return int(inner.value.value)
    return None


def _reads(module: Module, name: str, site: Site) -> Iterator[cst.Name]:
    yield from reads(module, name, site.function or module.tree)


def reads(module: Module, name: str, where: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the places below ``where`` that read the variable ``name``."""
    for node in find(where, cst.Name):
        if node.value != name:
            continue
        parent = module.parents[node]
        if isinstance(parent, (cst.AssignTarget, cst.Param)):
            continue
        if isinstance(parent, cst.Element) and is_stored(module, parent):
            continue
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            continue
        yield node


def is_stored(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` is (part of) the target of an assignment or loop."""
    holder, parent = node, module.parents[node]
    while isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
        holder, parent = parent, module.parents[parent]
    return isinstance(parent, cst.AssignTarget) or (
        isinstance(parent, (cst.For, cst.CompFor)) and parent.target is holder
    )


def _check_site(module: Module, operator: GradientOperator, site: Site) -> None:
    row = module.start(site.call).row
    for argument in site.call.args:
        if argument.star == "**" or (argument.keyword and argument is not site.sensitivity):
            raise Manual(
                f"row {row} calls the gradient function with keyword arguments, which mindspore.grad refuses in graph "
                "mode; pass them by position"
            )
    if operator.sens_param and site.sensitivity is None:
        raise Manual(
            f"the sensitivity in row {row} is packed into the other arguments; pass it as the last argument of its own"
        )
    assert site.application.network is not None
    differentiated = sole_value(module, site.application.network)
    if isinstance(differentiated, cst.Call) and (
        isinstance(differentiated.func, cst.Call) or module.resolve(differentiated.func) in _GRADIENTS
    ):
        raise Manual(f"row {row} differentiates a gradient (second order); rewrite inner and outer gradient together")
    _check_status(module, site)
    _check_accumulation(module, site)
    _check_twins(module, site)


def _check_status(module: Module, site: Site) -> None:
    if site.function is None:
        return
    found = []
    for call in find(site.function, cst.Call):
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        operator = (operator_called(module, site.owner, call) or "").rpartition(".")[2]
        if (name in _STATUS_METHODS or operator in _STATUS) and module.start(call) < module.start(site.call):
            # The clearing itself is what to point at, not the allocation before it.
            found.append(("Clear" not in operator and name not in _STATUS_METHODS, module.start(call), call))
    for _, _, call in sorted(found, key=lambda item: item[:2])[:1]:
        raise Manual(
            f"the overflow status is cleared in row {module.start(call).row}, between forward pass and gradient: "
            "with one forward pass it would be cleared too late. Let nn.TrainOneStepWithLossScaleCell or "
            "mindspore.amp.all_finite(grads) find the overflow, then rewrite"
        )


def _check_accumulation(module: Module, site: Site) -> None:
    if site.owner is None:
        return
    for call in find(site.owner.node, cst.Call):
        if not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "clone"):
            continue
        words = {argument.keyword.value for argument in call.args if argument.keyword}
        if "init" in words or "prefix" in words:
            raise Manual(
                f"gradients of micro-batches are added up in parameters (row {module.start(call).row}); "
                "rewrite together with the accumulation"
            )


def _check_twins(module: Module, site: Site) -> None:
    """Refuse two gradients of one loss for two lists of weights: one gradient of the joined list is the right rewrite."""
    assert site.application.network is not None
    network = normal(module, sole_value(module, site.application.network))
    inputs = [normal(module, argument) for argument in site.arguments]
    for operator in gradient_operators(module):
        for application in operator.applications:
            if application.network is None or application is site.application:
                continue
            for call in application.invocations:
                weight = sensitivity(operator, call)
                if (
                    weight is not None
                    and site.sensitivity is not None
                    and normal(module, weight) != normal(module, site.sensitivity)
                ):
                    # Weighed differently: two losses, in effect.
                    continue
                others = [normal(module, argument) for argument in call.args if argument is not weight]
                if (
                    module.enclosing(call, cst.FunctionDef) is site.function
                    and normal(module, sole_value(module, application.network)) == network
                    and others == inputs
                    and _weights(module, application) != _weights(module, site.application)
                ):
                    raise Manual(
                        f"rows {module.start(site.call).row} and {module.start(call).row} differentiate one loss twice, for "
                        "two lists of weights; take one value_and_grad of the joined list and split its result"
                    )


def _weights(module: Module, application: Application) -> str:
    return normal(module, sole_value(module, application.weights)) if application.weights else ""
