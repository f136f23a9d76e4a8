"""Which way undecided tests went on the way to a place of a program, and whether one run can come to two such places."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mslint.program.following.values import Scope

Branch = tuple[Scope, str, bool]
"""A test as written in a scope, without its negations, and whether it holds."""

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.NotIn: ast.In,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
}


def branches_of(scope: Scope, test: ast.expr, holds: bool) -> Iterator[Branch]:
    """Yield what is known to hold, or not to, where ``test`` does or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from branches_of(scope, test.operand, not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == holds:
            for part in test.values:
                yield from branches_of(scope, part, holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
        opposite = ast.Compare(test.left, [_OPPOSITES[type(test.ops[0])]()], test.comparators)
        yield scope, ast.unparse(opposite), not holds
    else:
        yield scope, ast.unparse(test), holds


def exclude_each_other(some: frozenset[Branch], others: frozenset[Branch]) -> bool:
    """Tell whether no run takes both ``some`` branches and the ``others``."""
    return any((scope, test, not holds) in others for scope, test, holds in some)
