"""Python's own syntax tree, and short ways to ask for what stands in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_PLAIN_FIELDS = frozenset(["ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"])


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of each type of node that hold nodes worth a visit."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        leaf = kind in (ast.Name, ast.Constant, ast.Import, ast.ImportFrom)
        self[kind] = () if leaf else tuple(name for name in kind._fields if name not in _PLAIN_FIELDS)
        return self[kind]


_fields = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """Return the expressions, statements and clauses that ``node`` directly consists of, in order."""
    found: list[ast.AST] = []
    for name in _fields[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and what is below it, in no order."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return what ``call`` passes, keywords or not."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def indices(subscript: ast.Subscript) -> list[ast.expr]:
    """Return the indices and slices of ``subscript``."""
    inside = subscript.slice
    return inside.elts if isinstance(inside, ast.Tuple) and inside.elts else [inside]


def is_constant(node: ast.AST, value: object) -> bool:
    """Tell whether ``node`` is the constant ``value``, such as None or an ellipsis."""
    return isinstance(node, ast.Constant) and node.value is value


def is_name(node: ast.AST, name: str) -> bool:
    """Tell whether ``node`` is the variable ``name``."""
    return isinstance(node, ast.Name) and node.id == name


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for a chain of attributes on a name, and nothing for anything else."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST) -> str:
    """Return ``c`` for ``a.b.c`` and for ``c``, and nothing for what is not named."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def root_name(node: ast.AST) -> str:
    """Return the name that ``node`` starts with: ``a`` for ``a.b[c](d)``."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return ""
    return node.id


def targets(target: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the variables and attributes that an assignment to ``target`` sets, in tuples, too."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from targets(item)
    elif isinstance(target, ast.Starred):
        yield from targets(target.value)
    elif isinstance(target, (ast.Name, ast.Attribute)):
        yield target
