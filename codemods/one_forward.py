"""Can the forward pass that a training step runs for its loss and the one inside its gradient become one?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from codemods.gradient_site import Site, reads
from codemods.in_constructor import set_from_outside
from codemods.inert_statements import inert, inside, unread, variable_set, variables_bound
from codemods.statements import one_line
from mslint.semantics.cells import is_self, self_name
from mslint.semantics.gradients import (
    Forward,
    GradientOperator,
    Statement,
    find_forward,
    normal,
    sole_value,
    statement_of,
)
from mslint.semantics.module import Binding, Module, find, walk
from mslint.semantics.sensitivity import Scale, is_name, operator_called, scale_of

_ZEROS = ("mindspore.ops.zeros_like", "mindspore.ops.ZerosLike", "mindspore.numpy.zeros_like")
_ANEW = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda)


class NotOneForward(Exception):
    """The step keeps its two forward passes; the text says why."""


@dataclass
class OneForward:
    """How one site's forward pass and gradient merge.

    ``outputs`` and ``gradients`` are assigned together at the place of the forward pass, or of the gradient if
    ``at_gradient``; ``removed`` are statements that only the old gradient needed. The gradient function is
    ``value_and_grad`` of the network itself, with the sensitivity handed to it if ``weighed``, or, if ``scaled``, of a
    function that multiplies the loss by ``scale``.
    """

    site: Site
    forward: Forward
    outputs: str
    gradients: str
    removed: list[Statement]
    at_gradient: bool
    weighed: str | None = None
    scaled: bool = False
    scale: str = ""
    loss: str = "loss"
    tuple_output: bool = False
    extra: tuple[str, ...] = ()
    """Arguments that the scaling function takes beside the network's."""

    @property
    def extra_parameters(self) -> list[str]:
        """The names that the scaling function gives to ``extra``."""
        return [text.rpartition(".")[2] for text in self.extra]


def one_forward(
    module: Module, operator: GradientOperator, site: Site, sens_param_known: bool, needed: Iterable[str]
) -> OneForward:
    """Return how ``site`` comes to run its network once; ``needed`` are variables that building the function reads.

    Raises NotOneForward where it does not run it twice, or where that cannot be proved to be the same twice.
    """
    forward = find_forward(module, operator, site.application, site.call)
    if forward is None:
        raise NotOneForward("no forward pass of the same network and arguments stands before the gradient in its block")
    if _may_be_replaced(module, site, forward):
        raise NotOneForward(f"{module.code(forward.call.func)} may be replaced by another network after __init__")
    for argument in site.arguments:
        if any(isinstance(item, _ANEW) for item in walk(argument.value)):
            raise NotOneForward(
                f"`{module.code(argument)}` is worked out anew for the gradient, and may be another value then"
            )
    alone = isinstance(site.statement, cst.SimpleStatementLine) and len(site.statement.body) == 1
    if not alone and site.statement is not forward.statement:
        raise NotOneForward("the gradient is taken in the head of a block or beside other statements in one line")
    if site.inputs_used:
        raise NotOneForward("the gradients of the inputs are used too")
    target = forward.target
    merged = OneForward(site, forward, _target(module, target), site.target or "", [], False)
    kept: list[cst.CSTNode] = [argument.value for argument in site.arguments]
    if site.sensitivity is not None:
        _weigh(module, merged, target, site.sensitivity.value, sens_param_known)
        if merged.weighed is not None:
            kept.append(site.sensitivity.value)
    if not merged.gradients:
        merged.gradients = fresh(module, site, "grads")
    merged.removed += _only_for_gradient(module, merged, kept, needed)
    merged.at_gradient = _place(module, merged, kept, needed)
    return merged


def _may_be_replaced(module: Module, site: Site, forward: Forward) -> bool:
    """Tell whether the step may run another network than the one that its gradient function was made of in ``__init__``."""
    called = forward.call.func
    if (
        site.owner is None
        or not isinstance(called, cst.Attribute)
        or not isinstance(site.application.network, cst.Name)
    ):
        return False
    return set_from_outside(module, site.owner, called.attr.value)


def _target(module: Module, target: cst.BaseExpression) -> str:
    text = module.code(target)
    return f"({text})" if isinstance(target, cst.Tuple) and not target.lpar else text


def fresh(module: Module, site: Site, name: str) -> str:
    """Return ``name``, or a longer one that the function of ``site`` does not use yet."""
    where = site.function or module.tree
    used = {item.value for item in find(where, cst.Name)}
    while name in used:
        name += "_"
    return name


def _weigh(
    module: Module, merged: OneForward, target: cst.BaseExpression, sens: cst.BaseExpression, sens_param_known: bool
) -> None:
    """Settle how the sensitivity ``sens`` reaches the one forward pass."""
    site = merged.site
    value = sole_value(module, sens)
    if isinstance(target, cst.Name):
        merged.loss = target.value
        scale = scale_of(module, site.owner, value, merged.loss)
        if scale is not None:
            _scale(module, merged, scale)
            return
    outputs = _outputs(module, merged, target)
    looped = _tuple_from_loop(module, merged, sens, outputs)
    if looped is not None:
        _scale_first_output(module, merged, looped)
        return
    if outputs and isinstance(value, cst.Tuple) and len(value.elements) == len(outputs) > 1:
        scales = [
            scale_of(module, site.owner, sole_value(module, element.value), name)
            for element, name in zip(value.elements, outputs, strict=True)
        ]
        zeros = [
            _zero(module, site, sole_value(module, element.value), name)
            for element, name in zip(value.elements, outputs, strict=True)
        ]
        if scales[0] is not None and all(zeros[1:]):
            _scale_first_output(module, merged, scales[0])
            return
    if _uses(module, sens, {*outputs, *_names_of(module, target)}):
        raise NotOneForward("the sensitivity is computed from the loss in a way that mslint does not see through")
    if not sens_param_known:
        raise NotOneForward("this MindSpore has no sens_param in value_and_grad")
    merged.weighed = one_line(module, sens)


def _scale_first_output(module: Module, merged: OneForward, scale: Scale) -> None:
    merged.tuple_output = True
    merged.loss = "outputs"
    _scale(module, merged, scale)
    merged.scaled = True


def _tuple_from_loop(module: Module, merged: OneForward, sens: cst.BaseExpression, outputs: list[str]) -> Scale | None:
    """Return the scale of the first output where a loop appends zeros for the others.

    ``sens = (scale,)`` and ``for i in range(1, len(outputs)): sens += (zeros_like(outputs[i]),)``.
    """
    site = merged.site
    bound = module.lookup(sens.value, sens) if isinstance(sens, cst.Name) else []
    if len(bound) != 2 or not outputs or not isinstance(sens, cst.Name) or site.function is None:
        return None
    first, appended = bound
    loop = module.enclosing(appended.node, cst.For)
    if not isinstance(first.value, cst.Tuple) or len(first.value.elements) != 1 or loop not in merged.forward.between:
        return None
    opened = statement_of(module, first.node)
    assert isinstance(loop, cst.For)
    if opened not in merged.forward.between or not _appends_zeros(module, merged, loop, sens.value):
        return None
    if not all(inside(module, place, [loop, sens]) for place in reads(module, sens.value, site.function)):
        return None
    scale = scale_of(module, site.owner, sole_value(module, first.value.elements[0].value), outputs[0])
    if scale is not None:
        merged.removed += [opened, loop]
    return scale


def _appends_zeros(module: Module, merged: OneForward, loop: cst.For, name: str) -> bool:
    """Tell whether all that ``loop`` does is to append zeros to the tuple ``name`` for each output but the first."""
    line = loop.body.body[0] if len(loop.body.body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
    if not isinstance(small, cst.AugAssign) or not isinstance(small.value, cst.Tuple) or loop.orelse is not None:
        return False
    zeros = small.value.elements[0].value
    if len(small.value.elements) != 1 or not isinstance(zeros, cst.Call) or len(zeros.args) != 1:
        return False
    texts = [normal(module, node) for node in (small.target, loop.iter, zeros.args[0].value)]
    index = module.code(loop.target)
    return (
        texts == [f"_({name})", f"_(range(1, len({merged.outputs})))", f"_({merged.outputs}[{index}])"]
        and isinstance(small.operator, cst.AddAssign)
        and operator_called(module, merged.site.owner, zeros) in _ZEROS
    )


def _names_of(module: Module, target: cst.BaseExpression) -> set[str]:
    """Return the names that whatever reads ``target`` contains: of variables, attributes, containers."""
    names: set[str] = set()
    for part in [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]:
        while isinstance(part, cst.Subscript):
            part = part.value
        names.add(part.attr.value if isinstance(part, cst.Attribute) else module.code(part))
    return names


def _uses(module: Module, value: cst.BaseExpression, names: set[str]) -> bool:
    """Tell whether one of ``names`` occurs in ``value``, or in what the variables in it were computed from."""
    queue, seen = [value], set()
    while queue:
        for name in find(queue.pop(), cst.Name):
            if name.value in names:
                return True
            if name.value not in seen:
                seen.add(name.value)
                queue.extend(found.value for found in module.lookup(name.value, name) if found.value is not None)
                # Part of a tuple: the whole tuple counts.
                queue.extend(
                    found.node.value
                    for found in module.lookup(name.value, name)
                    if isinstance(found.node, (cst.Assign, cst.AugAssign))
                )
    return False


def _outputs(module: Module, merged: OneForward, target: cst.BaseExpression) -> list[str]:
    """Return the variables that hold the outputs of the forward pass, one by one; also if unpacked a statement later."""
    if isinstance(target, cst.Tuple):
        return [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
    for statement in merged.forward.between:
        for assign in find(statement, cst.Assign):
            unpacked = assign.targets[0].target
            if isinstance(unpacked, cst.Tuple) and is_name(assign.value, merged.outputs):
                return [e.value.value for e in unpacked.elements if isinstance(e.value, cst.Name)]
    return [target.value] if isinstance(target, cst.Name) else []


def _zero(module: Module, site: Site, value: cst.BaseExpression, output: str) -> bool:
    if isinstance(value, cst.Call) and len(value.args) == 1 and is_name(value.args[0].value, output):
        name = operator_called(module, site.owner, value)
        return name in _ZEROS
    scale = scale_of(module, site.owner, value, output)
    if scale is None or not isinstance(scale.value, (cst.Integer, cst.Float)):
        return False
    return float(scale.value.value) == 0.0


def _scale(module: Module, merged: OneForward, scale: Scale) -> None:
    value = scale.value
    if value is None or (isinstance(value, (cst.Integer, cst.Float)) and float(value.value) == 1.0):
        return
    site = merged.site
    merged.scaled = True
    merged.scale = one_line(module, value)
    if not isinstance(value, (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.Call, cst.Subscript)) or value.lpar:
        merged.scale = f"({merged.scale})"
    extra = []
    this = self_name(site.function) if site.function else ""
    for name in find(value, cst.Name):
        bound = [found for found in module.lookup(name.value, name) if not _is_fixed(found)]
        # Of a variable that changes, compiled code would keep the first value.
        local = bound and (len(bound) > 1 or any(module.scope(found.node) is not module.tree for found in bound))
        parent = module.parents[name]
        is_member = isinstance(parent, cst.Attribute) and parent.attr is name
        if local and not is_member and name.value not in (this, merged.loss) and name.value not in extra:
            extra.append(name.value)
    held = (
        site.owner.value(value.attr.value)
        if site.owner and isinstance(value, cst.Attribute) and is_self(value, this)
        else None
    )
    if isinstance(held, cst.Call) and module.resolve(held.func) in ("mindspore.Parameter", "mindspore.Tensor"):
        # A tensor that the function closes over would be a constant of the compiled graph: hand it in.
        assert isinstance(value, cst.Attribute)
        merged.scale = value.attr.value
        merged.extra = (module.code(value),)
        return
    merged.extra = tuple(extra)


def _is_fixed(binding: Binding) -> bool:
    return binding.target is not None or isinstance(binding.node, (cst.FunctionDef, cst.ClassDef))


def _only_for_gradient(
    module: Module, merged: OneForward, kept: list[cst.CSTNode], needed: Iterable[str]
) -> list[cst.SimpleStatementLine]:
    """Return the statements whose variables only the old gradient call reads."""
    site = merged.site
    if site.function is None:
        return []
    gone: list[cst.CSTNode] = [site.application.node, *merged.removed]
    if site.sensitivity is not None and merged.weighed is None:
        gone.append(site.sensitivity)
    wanted = {name.value for node in kept for name in find(node, cst.Name)} | set(merged.extra) | set(needed)
    return unread(module, site, gone, wanted)


def _place(module: Module, merged: OneForward, kept: list[cst.CSTNode], made_of: Iterable[str]) -> bool:
    """Return whether the merged statement stands at the gradient's place rather than at the forward pass's."""
    staying = [statement for statement in merged.forward.between if statement not in merged.removed]
    for statement in list(staying):
        if variable_set(statement) == merged.gradients and inert(module, merged.site, statement):
            # `grads = None`, set anew by the gradient: left standing it would now undo it.
            merged.removed.append(statement)
            staying.remove(statement)
    results = {
        name.value for target in find(merged.site.statement, cst.AssignTarget) for name in find(target, cst.Name)
    }
    needed = {name.value for node in kept for name in find(node, cst.Name)} | set(merged.extra) | set(made_of)
    arguments = {name.value for argument in merged.site.arguments for name in find(argument, cst.Name)}
    network = {name.value for name in find(merged.forward.call.func, cst.Name)}
    for name in sorted(_names_of(module, merged.forward.target) & (arguments | network | set(made_of))):
        raise NotOneForward(f"the forward pass gives `{name}` another value, which the gradient reads")
    for statement in staying:
        if any(isinstance(item, cst.Return) for item in walk(statement)):
            raise NotOneForward(f"row {module.start(statement).row} may leave the step before the gradient is taken")
        if not inert(module, merged.site, statement):
            raise NotOneForward(
                f"row {module.start(statement).row}, between forward pass and gradient, may change what the network computes"
            )
        bound = set(variables_bound(module, statement))
        if arguments & bound:
            raise NotOneForward(
                f"row {module.start(statement).row} changes the network's arguments before the gradient"
            )
        if network & bound:
            raise NotOneForward(f"row {module.start(statement).row} changes the network before the gradient")
        if results & {name.value for name in find(statement, cst.Name)}:
            raise NotOneForward(f"row {module.start(statement).row} uses a variable that the gradient sets anew")
    if not any(needed & set(variables_bound(module, statement)) for statement in staying):
        return False
    outputs = {name.value for name in find(merged.forward.target, cst.Name)}
    for statement in staying:
        if outputs & {name.value for name in find(statement, cst.Name)}:
            raise NotOneForward(f"row {module.start(statement).row} needs the loss and gives what the gradient needs")
    return True
