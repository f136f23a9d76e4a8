"""What the syntax of a program alone says about how it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mslint.program.facts import dotted

Declaration = ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign

_DEFINITIONS = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Pass,
    ast.Raise, ast.Assert,
)  # fmt: skip


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds and the dotted target it stands for, star imports apart."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            yield name, alias.name if alias.asname else name
        elif alias.name != "*":
            base = imported_module(node)
            yield alias.asname or alias.name, base + alias.name if base.endswith(".") else f"{base}.{alias.name}"


def imported_module(node: ast.ImportFrom) -> str:
    """Return what ``node`` imports from; leading dots are relative."""
    return "." * node.level + (node.module or "")


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a file is imported, whatever the conditions around them."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from module_level(statement.body)
            yield from module_level(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from module_level(handler.body)
        else:
            yield statement


def bound_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a definition or an assignment binds."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        for item in ast.walk(target):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                yield item.id


def declarations(node: ast.ClassDef) -> dict[str, Declaration]:
    """Return the methods and attributes in the body of a class; of two with one name the later counts."""
    found: dict[str, Declaration] = {}
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[item.name] = item
        elif isinstance(item, ast.Assign):
            found.update((target.id, item) for target in item.targets if isinstance(target, ast.Name))
    return found


def only_defines(statement: ast.stmt) -> bool:
    """Tell whether ``statement``, at module level, only gives names to things."""
    if isinstance(statement, ast.If):
        return all(map(only_defines, (*statement.body, *statement.orelse)))
    if isinstance(statement, ast.Try):
        handled = [item for handler in statement.handlers for item in handler.body]
        return all(map(only_defines, (*statement.body, *statement.orelse, *statement.finalbody, *handled)))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, _DEFINITIONS)


def only_names(statement: ast.stmt) -> str | None:
    """Return the name that ``statement`` gives to a constant or to a function, if it does no more than that."""
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        plain = len(statement.targets) == 1 and isinstance(statement.value, ast.Constant)
        return target.id if plain and isinstance(target, ast.Name) else None
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = (*statement.args.defaults, *statement.args.kw_defaults)
        plain = all(isinstance(default, ast.Constant | None) for default in given)
        return statement.name if plain and not statement.decorator_list else None
    return None


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the last names of what a function is decorated with."""
    written = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return {name.rpartition(".")[2] for decorator in written if (name := dotted(decorator))}


def is_super(node: ast.expr) -> bool:
    """Tell whether ``node`` is ``super()``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def yields(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Tell whether ``node`` is a generator."""
    stack: list[ast.AST] = [] if isinstance(node, ast.Lambda) else list(node.body)
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(item))
    return False


def parameter_names(arguments: ast.arguments) -> list[str]:
    """Return the parameters that can be passed by position."""
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]


def keyword_only_names(arguments: ast.arguments) -> list[str]:
    """Return the parameters that can only be passed by name."""
    return [argument.arg for argument in arguments.kwonlyargs]


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters that have a default, with it; those passed by position from the last to the first."""
    yield from zip(reversed(parameter_names(arguments)), reversed(arguments.defaults), strict=False)
    for name, default in zip(keyword_only_names(arguments), arguments.kw_defaults, strict=True):
        if default is not None:
            yield name, default
