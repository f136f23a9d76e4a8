"""What a file must hold for MS204 to find anything in it."""

from __future__ import annotations

import ast

from mslint.semantics.criteria import COMPARISONS
from mslint.semantics.outline import Outline, indices, operands, outline

_MAKING = COMPARISONS | {"bool"}
_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def has_mask(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may index anything by what a comparison, or a cast to bool, makes."""
    file = outline(tree)
    return any(
        _makes_mask(file, origin)
        for subscript in file.of(ast.Subscript)
        for index in indices(subscript)
        for origin in file.origins(index)
    )


def _makes_mask(file: Outline, node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return not any(isinstance(test, _TESTS) for test in node.ops)
    # A comparison that another file hands on under a name of its own goes unseen: any function from there might be one.
    return isinstance(node, ast.Call) and (
        not file.names(node.func).isdisjoint(_MAKING) or any("bool" in file.names(kind) for kind in operands(node))
    )
