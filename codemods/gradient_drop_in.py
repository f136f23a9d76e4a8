"""The text of a functional gradient that takes the place of an old one and leaves every call where it is."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.base import Manual
from codemods.gradient_home import Home
from codemods.gradient_site import Site
from codemods.statements import call, inner_comments, line_limit, newline, one_line, remove
from mslint.findings import Edit
from mslint.semantics.gradients import Application, GradientOperator, statement_of
from mslint.semantics.module import Module


def differentiated(module: Module, application: Application) -> tuple[str, str]:
    """Return the network and the weights of ``application`` as they stand in the file."""
    assert application.network is not None
    network = module.code(application.network)
    if application.weights is not None:
        return network, module.code(application.weights)
    if not isinstance(application.network, (cst.Name, cst.Attribute)):
        raise Manual("no weights are given and what is differentiated is no plain network; name the weights")
    return network, f"{network}.trainable_params()"


def apply_in_place(
    module: Module, application: Application, home: Home | None, function: str, position: str, words: Sequence[str]
) -> list[Edit]:
    """Return the edits that put the functional gradient in the place of what ``application`` makes.

    ``function`` is mindspore.grad as written here, called with ``position`` and ``words`` where there is no ``home``.
    """
    if home is not None:
        if application.kept_in is not None:
            line = statement_of(module, application.kept_in)
            if line is home.replaced or line is None:
                return []
            uses = [module.replace(call_.func, home.callee) for call_ in application.invocations]
            return [remove(module, line), *uses]
        return [_called(module, application, home.callee)]
    network, weights = differentiated(module, application)
    return [_called(module, application, f"{function}({', '.join([network, position, weights, *words])})")]


def _called(module: Module, application: Application, callee: str) -> Edit:
    """Return the edit that puts ``callee`` in the place of an application, the arguments behind it laid out anew."""
    invocation = module.parents[application.node]
    if not isinstance(invocation, cst.Call) or invocation.func is not application.node:
        return module.replace(application.node, callee)
    if not _laid_out_anew(module, invocation):
        return module.replace(application.node, callee)
    start, end = module.start(application.node), module.end(invocation)
    before = module.lines[start.row - 1][: start.column - 1]
    arguments = [one_line(module, argument.value if argument.keyword else argument) for argument in invocation.args]
    indent = before[: len(before) - len(before.lstrip())]
    lines = call(module, indent, f"{before.lstrip()}{callee}(", arguments)
    if max(map(len, lines)) > line_limit(module):
        return module.replace(application.node, callee)
    return Edit(start, end, newline(module).join(lines)[len(before) :])


def _laid_out_anew(module: Module, invocation: cst.Call) -> bool:
    """Tell whether a call of several lines, which another callee puts out of line, is written anew as a whole."""
    start, end = module.start(invocation), module.end(invocation)
    return start.row < end.row and not inner_comments(module, invocation)


def read_result(module: Module, operator: GradientOperator, site: Site) -> list[Edit]:
    """Return the edits that make the site read a result without the half for the inputs, and pass sens by position."""
    edits = list(site.edits)
    applied_here = site.call.func is site.application.node
    by_keyword = site.sensitivity is not None and site.sensitivity.keyword is not None
    if site.sensitivity is not None and by_keyword and not (applied_here and _laid_out_anew(module, site.call)):
        edits.append(Edit(module.start(site.sensitivity), module.start(site.sensitivity.value), ""))
    if operator.get_all and not site.inputs_used:
        if site.result is not site.call:
            edits.append(Edit(module.end(site.call), module.end(site.result), ""))
        elif site.target is not None:
            assign = module.parents[site.call]
            assert isinstance(assign, cst.Assign)
            if module.code(assign.targets[0].target) != site.target:
                edits.append(module.replace(assign.targets[0].target, site.target))
    return edits


def position(sites: Sequence[Site]) -> str:
    """Return which inputs to differentiate by, as ``grad_position``: those whose gradients the script uses."""
    used = [site for site in sites if site.inputs_used]
    if not used:
        return "None"
    counts = {len(site.arguments) for site in sites}
    starred = any(argument.star for site in sites for argument in site.arguments)
    if len(used) < len(sites) or len(counts) != 1 or starred or counts == {1}:
        raise Manual(
            "the gradients of the inputs are used too, and for one input or a list of unknown length mindspore.grad "
            "returns them in another structure; take them apart by hand"
        )
    return f"({', '.join(str(index) for index in range(counts.pop()))})"
