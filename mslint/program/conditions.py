"""The test under which a statement of the program runs, as far as the code around it and around its calls shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mslint.program.facts import dotted
from mslint.program.project import Program

Function = ast.FunctionDef | ast.AsyncFunctionDef


def condition_of(program: Program, path: Path, row: int) -> str | None:
    """Return the test that decides whether the statement in ``row`` runs on what it works on; None if none is seen.

    A test under which that is made in the first place decides nothing: ``if deep: net = Net(); freeze(net)``.
    """
    tree = program.tree(path)
    if tree is None:
        return None
    around = list(_around(tree, row))
    inside = around
    for position, node in enumerate(around):
        if isinstance(node, Function):
            inside = around[position + 1 :]
    for node in reversed(inside):
        if isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
            in_body = _holds(node.body, row)
            if not _is_made_in(node.body if in_body else node.orelse, row):
                return ast.unparse(node.test if in_body else ast.UnaryOp(ast.Not(), node.test))
    name = ".".join(node.name for node in around if isinstance(node, (Function, ast.ClassDef)))
    return _condition_of_calls(program, path, name) if name else None


def _condition_of_calls(program: Program, path: Path, name: str) -> str | None:
    """Return the test around the first call of the function ``name``, if all its calls stand under one."""
    calls = program.call_graph(path).callers(f"{path}:{name}")
    tests = [[one for one in call.conditions if "__name__" not in one.test] for call in calls]
    if not tests or not all(tests):
        return None
    innermost = tests[0][-1]
    return innermost.test if innermost.holds else f"not ({innermost.test})"


def _around(node: ast.AST, row: int) -> Iterator[ast.AST]:
    """Yield the statements that hold ``row``, outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and child.lineno <= row <= (child.end_lineno or child.lineno):
            yield child
            yield from _around(child, row)


def _holds(block: list[ast.stmt], row: int) -> bool:
    return any(statement.lineno <= row <= (statement.end_lineno or statement.lineno) for statement in block)


def _is_made_in(block: list[ast.stmt], row: int) -> bool:
    """Tell whether ``block`` itself makes something that its statement in ``row`` works on."""
    made: set[str] = set()
    for statement in block:
        if _holds([statement], row):
            read = {dotted(node) or "" for node in ast.walk(statement) if isinstance(node, (ast.Name, ast.Attribute))}
            return not made.isdisjoint(read)
        if isinstance(statement, ast.Assign):
            made.update(dotted(target) or "?" for target in statement.targets)
    return False
