"""What rewrites leave unused: variables and operators in attributes whose last reader went."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from codemods.imports import drop_unreferenced
from codemods.statements import comments, in_lines, indentation, remove_all
from mslint.findings import Edit
from mslint.semantics.cells import CellClass, all_classes
from mslint.semantics.gradients import statement_of
from mslint.semantics.module import Module, find
from mslint.source.edits import apply_edits

_OPERATORS = ("mindspore.ops.", "mindspore.nn.Softmax", "mindspore.nn.Sigmoid", "mindspore.nn.ReduceLogSumExp")


def drop_leftovers(module: Module, after: str) -> str:
    """Return ``after``, the rewritten text of ``module``, without variables, operators and imports that lost their last use.

    Comments of the statements that go stay where they are.
    """
    program, path = module.program, module.source.path.absolute()
    while True:
        rewritten = Module(replace(module.source, text=after), program)
        # What stands in a variable that goes may be the last to read another one.
        edits = [*_variables(rewritten, module.source.text)] or [*_operators(module, rewritten)]
        if not edits:
            return drop_unreferenced(program, path, module.source.text, after)
        after = apply_edits(after, edits)


def _variables(rewritten: Module, before: str) -> Iterator[Edit]:
    then = _reads(before)
    now = _reads(rewritten.source.text)
    for function in find(rewritten.tree, cst.FunctionDef):
        path = _path(rewritten, function)
        lost = _needed(then.get(path, {})) - _needed(now.get(path, {}))
        for name in sorted(lost):
            bindings = rewritten.bindings[function].get(name, [])
            lines = [statement_of(rewritten, binding.node) for binding in bindings]
            if all(is_plain(binding.node, line) for binding, line in zip(bindings, lines, strict=True)):
                yield from _without(rewritten, [line for line in lines if line is not None])


def _needed(reads: dict[str, bool]) -> set[str]:
    """Return the variables that something other than their own assignments reads."""
    return {name for name, own in reads.items() if not own}


def _reads(text: str) -> dict[str, dict[str, bool]]:
    """Return for each function the variables it reads, and of each whether only its own assignments read it."""
    found: dict[str, dict[str, bool]] = {}

    def visit(node: ast.AST, path: str, targets: frozenset[str]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            path = f"{path}.{node.name}"
        elif isinstance(node, ast.Assign):
            targets = frozenset(target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            # A function inside reads the variables of those around it.
            for end in range(len(path), 0, -1):
                if end == len(path) or path[end] == ".":
                    names = found.setdefault(path[:end], {})
                    names[node.id] = names.get(node.id, True) and node.id in targets
        for child in ast.iter_child_nodes(node):
            visit(child, path, targets)

    visit(ast.parse(text), "", frozenset())
    return found


def _path(module: Module, function: cst.FunctionDef) -> str:
    holders = [item for item in module.ancestors(function) if isinstance(item, (cst.FunctionDef, cst.ClassDef))]
    return "".join(f".{item.name.value}" for item in (*reversed(holders), function))


def is_plain(node: cst.CSTNode, line: cst.CSTNode | None) -> bool:
    """Tell whether ``line`` does nothing but the assignment ``node``, to one variable or attribute."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or line.body[0] is not node:
        return False
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        return isinstance(node.targets[0].target, (cst.Name, cst.Attribute))
    return isinstance(node, cst.AugAssign)


def _without(module: Module, lines: list[cst.SimpleStatementLine | cst.BaseCompoundStatement]) -> list[Edit]:
    """Return the edits that take ``lines`` out, of which comments stay; a block that held nothing else is left alone."""
    edits: list[Edit] = []
    bare = []
    for line in lines:
        block = module.parents[line]
        if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
            continue
        kept = comments(module, line)
        if kept:
            text = in_lines(module, [indentation(module, line) + comment for comment in kept])
            gone = remove_all(module, [(line, False)])[0]
            edits.append(replace(gone, content=text))
        else:
            bare.append((line, False))
    return [*edits, *remove_all(module, bare)]


def _operators(module: Module, rewritten: Module) -> Iterator[Edit]:
    """Yield the edits that take out operators built in ``__init__`` for an attribute that nothing reads any more."""
    then = {cell.name: cell for cell in all_classes(module).values()}
    for cell in all_classes(rewritten).values():
        old = then.get(cell.name)
        for attribute, assigned in cell.assigned.items() if old is not None else ():
            assert old is not None
            lost = any(old.reads(attribute)) and not _is_read(rewritten, cell, attribute)
            if lost and len(assigned) == 1 and _is_operator(rewritten, assigned[0].value):
                line = statement_of(rewritten, assigned[0].statement)
                if line is not None and is_plain(assigned[0].statement, line):
                    yield from _without(rewritten, [line])


def _is_read(module: Module, cell: CellClass, attribute: str) -> bool:
    """Tell whether anything in the file or in those that run together with it reads an attribute of this name."""
    here = sum(node.attr.value == attribute for node in find(module.tree, cst.Attribute))
    if here > len(cell.assigned[attribute]):
        return True
    program, path = module.program, module.source.path.absolute()
    others = program.neighbourhood(path) - {path}
    read = re.compile(rf"\.{attribute}$")
    return any(program.uses(other, read) for other in others) or attribute in {
        name for other in (*others, path) for name in program.facts(other).named
    }


def _is_operator(module: Module, value: cst.BaseExpression | None) -> bool:
    """Tell whether ``value`` builds an operator, or a layer without parameters, of constants."""
    if not isinstance(value, cst.Call) or not (module.resolve(value.func) or "").startswith(_OPERATORS):
        return False
    return not any(list(find(argument.value, cst.Call)) for argument in value.args)
