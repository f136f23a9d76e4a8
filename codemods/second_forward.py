"""Does it show in the numbers that the old code runs its network once more for the gradient?"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.gradient_site import Site
from codemods.python_forward import changing_variable, written
from mslint.semantics.cells import CellClass, method_of, self_name
from mslint.semantics.gradients import TRAIN_STEPS, names_of_network, normal, sole_value
from mslint.semantics.module import Module
from mslint.semantics.sensitivity import is_name
from mslint.semantics.stateful import stateful_part


def doubt(module: Module, sites: Sequence[Site]) -> str | None:
    """Return why a second forward pass may show in the old numbers, or None if it cannot."""
    mode = module.program.mode(module.source.path.absolute())
    one_graph = all(compiled(module, site) for site in sites)
    if one_graph and mode == "graph":
        return None
    if mode != "pynative" and not one_graph:
        stale = next(filter(None, (changing_variable(module, site) for site in sites)), None)
        if stale is not None:
            return (
                f"in graph mode the forward pass for the loss is Python that sees each new value of `{stale}`, while the "
                "compiled gradient keeps the first one; after the rewrite the loss does so too"
            )
    reused = all(_reused(module, site) for site in sites)
    if reused and (one_graph or mode == "pynative"):
        return None
    part = _written(module, sites) or stateful_part(module) or _unseen(module, sites)
    if part is None:
        return None
    if mode != "graph" and not reused:
        return (
            "the old code runs the forward pass twice a step in PyNative mode, since set_grad() is not called on the "
            f"network: what keeps statistics or draws random numbers ({part}) does so twice, and once after the rewrite"
        )
    return (
        "forward pass and gradient are compiled apart, so the old code runs the forward pass twice a step: what keeps "
        f"statistics or draws random numbers ({part}) does so twice, and once after the rewrite"
    )


def resting_on_graph_mode(module: Module, sites: Sequence[Site]) -> str | None:
    """Return what the user should know who runs in PyNative mode a program that sets graph mode; None if nothing."""
    mode = module.program.mode(module.source.path.absolute())
    if mode != "graph" or all(_reused(module, site) for site in sites) or stateful_part(module) is None:
        return None
    return (
        "the program sets graph mode, where both forward passes were one already; in PyNative mode, what keeps statistics or "
        "draws random numbers would do so once a step, not twice"
    )


def _written(module: Module, sites: Sequence[Site]) -> str | None:
    found = next(filter(None, (written(module, site) for site in sites)), None)
    return f"`{found}`, which the forward pass writes" if found is not None else None


def _unseen(module: Module, sites: Sequence[Site]) -> str | None:
    """Return why the network that is trained may hold layers that were not read, or None if all of it was."""
    program, path = module.program, module.source.path.absolute()
    owners = {site.owner.name for site in sites if site.owner is not None}
    for owner in sorted(owners):
        if not any(program.uses_any(user, (owner,)) for user in program.users(path)):
            return f"perhaps: nothing here builds {owner}, so its network is not seen"
    called = any(user != path for user in program.users(path)) or program.is_script(path)
    return None if owners or called else "perhaps: nothing here runs this file, so its network is not seen"


def compiled(module: Module, site: Site) -> bool:
    """Tell whether graph mode puts forward pass and gradient into one graph: in a Cell's method or a jit function."""
    if site.function is None:
        return False
    method = method_of(module, site.call)
    if method is not None and site.owner is not None:
        return any(base.startswith("mindspore.nn.") for base in site.owner.lineage)
    return any(
        (module.resolve(d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator) or "").endswith(".jit")
        for d in site.function.decorators
    )


def _reused(module: Module, site: Site) -> bool:
    """Tell whether PyNative mode reuses the forward pass: set_grad() on the network, and the very same tensors."""
    if not all(isinstance(argument.value, (cst.Name, cst.Attribute)) for argument in site.arguments):
        return False
    network = site.application.network
    assert network is not None
    text = normal(module, sole_value(module, network))
    if _undone(module, site):
        return False
    this = self_name(site.function) if site.function else "self"
    if text == f"_({this}.network)" and site.owner and any(base in TRAIN_STEPS for base in site.owner.lineage):
        return True
    names = {normal(module, network)} | names_of_network(module, site.application)
    if site.owner is not None and isinstance(network_value := sole_value(module, network), cst.Attribute):
        names |= _also_called(module, site.owner, network_value)
    for candidate in module.calls:
        function = candidate.func
        if not isinstance(function, cst.Attribute) or function.attr.value != "set_grad":
            continue
        if candidate.args and module.code(candidate.args[0].value) != "True":
            continue
        # A method's `self.network` is another object in another class.
        if site.owner is not None:
            is_same = module.enclosing(candidate, cst.ClassDef) is site.owner.node
        else:
            is_same = _is_same_variable(module, site, function.value)
        conditional = any(isinstance(item, (cst.If, cst.Try)) for item in module.ancestors(candidate))
        if is_same and not conditional and normal(module, function.value) in names:
            return True
    return False


def _is_same_variable(module: Module, site: Site, receiver: cst.BaseExpression) -> bool:
    """Tell whether the variable in ``receiver`` is that of its name at ``site``, or is what the function there is passed."""
    root = receiver
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name):
        return False
    here, there = module.lookup(root.value, site.call), module.lookup(root.value, receiver)
    if [binding.node for binding in here] == [binding.node for binding in there]:
        return True
    if site.function is None or not any(isinstance(binding.node, cst.Param) for binding in here):
        return False
    name = site.function.name.value
    calls = [call for call in module.calls if is_name(call.func, name)]
    return len(calls) == 1 and any(
        is_name(argument.value, root.value)
        and [binding.node for binding in module.lookup(root.value, argument.value)] == [item.node for item in there]
        for argument in calls[0].args
    )


def _undone(module: Module, site: Site) -> bool:
    """Tell whether ``set_grad(False)`` may be called on the network: in this class, or on a variable anywhere."""
    program = module.program
    assert site.application.network is not None
    names = {normal(module, site.application.network)} | names_of_network(module, site.application)
    for file in program.neighbourhood(module.source.path.absolute()):
        for receiver in program.facts(file).ungraded:
            if f"_({receiver})" in names or not receiver.startswith("self."):
                return True
    return False


def _also_called(module: Module, owner: CellClass, network: cst.Attribute) -> set[str]:
    """Return the constructor's argument that ``self.network`` holds: set_grad() may be called on that."""
    value = owner.value(network.attr.value)
    return {normal(module, value)} if isinstance(value, cst.Name) else set()
