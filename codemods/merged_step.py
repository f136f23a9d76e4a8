"""The text of a training step whose forward pass and gradient are one call of ``mindspore.value_and_grad``."""

from __future__ import annotations

import libcst as cst

from codemods.gradient_home import Home
from codemods.gradient_site import reads
from codemods.one_forward import OneForward, fresh
from codemods.statements import (
    call,
    comments,
    comments_above,
    in_lines,
    indentation,
    inner_comments,
    newline,
    one_line,
    remove_all,
)
from mslint.findings import Edit
from mslint.semantics.module import Module


def gradient_function(module: Module, home: Home, function: str, one: OneForward) -> list[str]:
    """Return the statements that make the gradient function of ``home``; ``function`` is value_and_grad as written here."""
    head = f"{home.assigned} = {function}("
    if not one.scaled:
        words = ["sens_param=True"] if one.weighed is not None else []
        return call(module, home.indent, head, [home.network, "None", home.weights, *words])
    inner = home.indent + _indent_unit(module, home)
    parameters = _parameters(one)
    starred = any(parameter.startswith("*") for parameter in parameters)
    signature = [*one.extra_parameters, *parameters] if starred else [*parameters, *one.extra_parameters]
    name = _closure_name(module, home)
    loss = f"{one.loss}[0]" if one.tuple_output else one.loss
    product = f"{loss} * {one.scale}" if one.scale else loss
    return [
        *call(module, home.indent, f"def {name}(", signature, "):"),
        *call(module, inner, f"{one.loss} = {home.network}(", parameters),
        f"{inner}return {product}, {one.loss}",
        "",
        *call(module, home.indent, head, [name, "None", home.weights, "has_aux=True"]),
    ]


def _indent_unit(module: Module, home: Home) -> str:
    """Return what the function around ``home`` indents its body by: files mix."""
    line = home.replaced or home.anchor
    function = module.enclosing(line, cst.FunctionDef) if line is not None else home.below
    outer = len(indentation(module, function)) if function is not None else 0
    return home.indent[outer:] or module.tree.default_indent


def _closure_name(module: Module, home: Home) -> str:
    line = home.replaced or home.anchor
    scope = module.scope(line) if line is not None else module.tree
    name = "scaled_loss"
    while name in module.bindings[scope] or name == home.network:
        name += "_"
    return name


def _parameters(one: OneForward) -> list[str]:
    """Return the parameters of the scaling function: the names the network is called with, if they are names."""
    names = []
    for argument in one.site.arguments:
        if not isinstance(argument.value, cst.Name) or argument.star not in ("", "*"):
            return ["*inputs"]
        names.append(argument.star + argument.value.value)
    bare = [name.lstrip("*") for name in names]
    reserved = {one.loss, *one.extra_parameters}
    if len(set(bare)) < len(bare) or reserved & set(bare) or not bare:
        return ["*inputs"]
    return names


def merge(module: Module, one: OneForward, callee: str) -> list[Edit]:
    """Return the edits that make forward pass and gradient of one site a single statement."""
    site = one.site
    arguments = [one_line(module, argument) for argument in site.arguments]
    if one.weighed is not None:
        arguments.append(one.weighed)
    starred = any(argument.startswith("*") for argument in arguments)
    if one.scaled:
        arguments = [*one.extra, *arguments] if starred else [*arguments, *one.extra]
    unused = "_" if not any(reads(module, "_", site.function or module.tree)) else fresh(module, site, "scaled")
    value = f"({unused}, {one.outputs})" if one.scaled else one.outputs
    old = site.statement if one.at_gradient else one.forward.statement
    indent = indentation(module, old)
    lines = call(module, indent, f"{value}, {one.gradients} = {callee}(", arguments)
    whole = site.target is not None
    if one.forward.statement is site.statement:
        return [
            *site.edits,
            *_in_one_line(module, one, lines),
            *remove_all(module, ((line, True) for line in one.removed)),
        ]
    gone = list(one.removed)
    if one.at_gradient:
        gone.append(one.forward.statement)
    elif whole:
        gone.append(site.statement)
    gone.sort(key=module.start)
    # Comments above a statement that goes stay where they are if the merged statement comes later.
    later = {statement: module.start(statement) > module.start(old) for statement in gone}
    edits = [*site.edits, *remove_all(module, later.items())]
    moved = [
        text
        for statement in gone
        for text in (*(comments_above(module, statement) if later[statement] else []), *comments(module, statement))
    ]
    if not whole:
        edits.append(module.replace(site.result, one.gradients))
    if one.at_gradient and not whole:
        edits.append(_above(module, site.statement, moved, lines))
    else:
        edits.append(_replaced(module, old, moved, lines))
    return edits


def _in_one_line(module: Module, one: OneForward, lines: list[str]) -> list[Edit]:
    """Return the edits for a forward pass and a gradient that stand side by side in one line."""
    site, first = one.site, one.forward.assignment
    indent = indentation(module, site.statement)
    text = newline(module).join(lines)[len(indent) :]
    if site.target is None:
        return [module.replace(first, text), module.replace(site.result, one.gradients)]
    last = next(item for item in module.ancestors(site.result) if isinstance(item, cst.BaseSmallStatement))
    return [Edit(module.start(first), module.end(last), text)]


def _replaced(module: Module, statement: cst.CSTNode, moved: list[str], lines: list[str]) -> Edit:
    """Return the edit that puts ``lines`` in the place of a one-line statement, with comments from elsewhere above."""
    assert isinstance(statement, cst.SimpleStatementLine)
    indent = indentation(module, statement)
    above = [indent + text for text in (*inner_comments(module, statement.body[0]), *moved)]
    text = newline(module).join([*above, *lines])
    return module.replace(statement.body[0], text[len(indent) :])


def _above(module: Module, statement: cst.CSTNode, moved: list[str], lines: list[str]) -> Edit:
    indent = indentation(module, statement)
    text = in_lines(module, [*(indent + comment for comment in moved), *lines])
    start = module.start(statement)
    return Edit(start, start, text[len(indent) :] + indent)
