"""Where the nodes of a tree stand, worked out for the statements that are asked about.

libcst knows no positions: they come from writing the code out, which for a whole file costs as much as parsing it. So only
the innermost statement that holds a node is written out, with all of its branches if it has any; in which row that starts,
Python's own parser says, whose statements are the same ones.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import takewhile

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

_Places = dict[cst.CSTNode, CodeRange]


class Positions:
    """The positions of the nodes of ``tree``, as ``libcst.metadata.PositionProvider`` has them.

    ``parents`` holds the node above each node, ``statements`` are those of the same text as ``ast`` reads it; None if it
    cannot.
    """

    def __init__(
        self, tree: cst.Module, parents: Mapping[cst.CSTNode, cst.CSTNode], statements: Sequence[ast.stmt] | None
    ) -> None:
        self._tree = tree
        self._parents = parents
        self._statements = statements
        self._known: _Places = {}

    def __getitem__(self, node: cst.CSTNode) -> CodeRange:
        if node not in self._known:
            self._known.update(self._places(*self._unit(node)))
        return self._known[node]

    def outermost(self, row: int) -> cst.CSTNode:
        """Return the last statement at module level that starts up to ``row``; the tree if none does, as far as is known."""
        found: cst.CSTNode = self._tree
        number = 0
        for statement in self._tree.body:
            if self._statements is None or self._statements[number].lineno > row:
                break
            found = statement
            number += _length(statement)
        return found

    def _unit(self, node: cst.CSTNode) -> tuple[cst.CSTNode, int, list[str]]:
        """Return the node to write out for the position of ``node``, the row that it starts in, and what indents it."""
        above = [node]
        while above[-1] in self._parents:
            above.append(self._parents[above[-1]])
        if above[-1] is not self._tree:  # a bracket, a comma or white space: nobody has noted what holds it
            return self._tree, 1, []
        statements, block, indents = self._statements, above.pop(), list[str]()
        while above and statements is not None:
            statement = above.pop()
            twin = statements[_number(block, statement)]
            body = getattr(statement, "body", None)
            if not (len(above) > 1 and above[-1] is body and isinstance(body, cst.IndentedBlock)):
                return statement, twin.lineno, indents
            statements, block = twin.body, above.pop()
            indents.append(self._tree.default_indent if body.indent is None else body.indent)
        return self._tree, 1, []

    def _places(self, unit: cst.CSTNode, row: int, indents: list[str]) -> _Places:
        provider = PositionProvider()
        state = PositionProvidingCodegenState(self._tree.default_indent, self._tree.default_newline, provider=provider)
        state.indent_tokens.extend(indents)
        unit._codegen(state)
        found: _Places = dict(provider._computed)  # type: ignore[arg-type]
        if unit is self._tree:
            return found
        # Empty rows, comments and decorators come before the row that counts as the first.
        before = row - found[unit].start.line
        return {node: _moved(place, before) for node, place in found.items()}


def _number(block: cst.CSTNode, statement: cst.CSTNode) -> int:
    """Return the number of ``statement`` in ``block`` as ``ast`` counts."""
    before = takewhile(lambda item: item is not statement, block.body)  # type: ignore[attr-defined]
    return sum(map(_length, before))


def _length(statement: cst.CSTNode) -> int:
    """Return how many statements ``statement`` is for ``ast``: each of several in one row is one."""
    return len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1


def _moved(place: CodeRange, rows: int) -> CodeRange:
    start, end = place.start, place.end
    return CodeRange(CodePosition(start.line + rows, start.column), CodePosition(end.line + rows, end.column))
