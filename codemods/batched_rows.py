"""A loop's body on the whole tensor: elementwise functions and reductions of one tensor's rows need no ``mindspore.vmap``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import libcst as cst

from codemods.row_function import RowFunction
from codemods.row_operators import KEEPS, is_axis, is_primary
from codemods.row_results import built_operator
from mslint.findings import Edit, Position
from mslint.semantics.extents import called
from mslint.semantics.module import dotted, find
from mslint.semantics.rows import How
from mslint.semantics.tensors import Kind, loop_variables

_ELEMENTWISE = frozenset(
    """
    abs absolute exp expm1 log log1p sqrt rsqrt square sin cos tan tanh sigmoid relu gelu erf floor ceil round sign neg
    negative reciprocal isnan isfinite logsigmoid silu float
    """.split()  # noqa: SIM905
)
_ALONG_AN_AXIS = frozenset(["softmax", "logsoftmax"])
_REDUCING = frozenset("sum mean amax amin reducesum reducemean reducemax reducemin".split())  # noqa: SIM905
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)

Axes = int | None
"""How many axes a row's value has more than the row itself; None for a single number."""
_NUMBER = "a Python number"
_SUM = "what earlier rounds added up"


class _NotSimpleError(Exception):
    """Something that is left to ``vmap``."""


def batched(function: RowFunction) -> RowFunction | None:
    """Return ``function`` with a body that computes all rows at once, rows along the first axis; None if that is not simple.

    Simple are bodies of assignments of elementwise functions and reductions of the rows of one tensor, with numbers beside
    them. Two values are combined only where they provably have as many axes: broadcasting counts axes from the last, so the
    axis of the rows would else meet another one. An axis counted from the first moves by one; one counted from the last
    stays, which is right only for rows that have an axis (``needs_axis``): MindSpore takes axis -1 of a single number, too.
    A reduction of the whole row becomes one of what is left when all axes but that of the rows are made one, whatever their
    number.
    """
    try:
        return _Reader(function).read()
    except _NotSimpleError:
        return None


@dataclass
class _Reader:
    """Follows one round."""

    function: RowFunction
    edits: list[Edit] = field(default_factory=list)
    known: dict[str, Axes | str] = field(default_factory=dict)
    expression: str = ""
    counts_from_last: bool = False

    def read(self) -> RowFunction:
        module, loop = self.function.module, self.function.loop
        whole = ""
        arguments = [argument for argument in self.function.arguments if argument.axis is not None]
        if len(arguments) != 1 or arguments[0].axis != 0:
            raise _NotSimpleError
        self.expression = arguments[0].expression
        for target, value in loop_variables(self.function.header):
            if value is not None:
                assert isinstance(target, cst.Name)
                self.known[target.value] = 0
                if dotted(value) is not None:
                    self.edits += [module.replace(name, self.expression) for name in self._reads(target.value)]
                elif isinstance(loop.node, cst.For) and "\n" not in self.expression:
                    whole, self.expression = f"{target.value} = {self.expression}", target.value
                else:
                    raise _NotSimpleError
        if isinstance(loop.node, cst.For):
            self._read_statements(loop.node.body)
        elif self._axes(loop.node.elt) in (_NUMBER, _SUM):
            raise _NotSimpleError
        return replace(
            self.function,
            replaced=self._replaced(),
            respelled=self.edits,
            dropped=[],
            imports=[],
            whole=whole,
            needs_axis=self.counts_from_last and not self._shows_axis(),
        )

    def _shows_axis(self) -> bool:
        """Tell whether an index of a row has a slice beside the row's number, so that a row is no single number."""
        return any(
            isinstance(part.slice, cst.Slice)
            for row in self.function.rests
            if isinstance(row, cst.Subscript)
            for part in row.slice
            if not any(name.value in self.function.loop.counters for name in find(part, cst.Name))
        )

    def _reads(self, name: str) -> list[cst.Name]:
        """Return where the body reads the loop's variable ``name``, which it sets nowhere."""
        found = [node for node in find(self.function.body, cst.Name) if node.value == name]
        if any(
            not isinstance(self.function.module.lookup(name, node)[0].node, (cst.For, cst.CompFor)) for node in found
        ):
            raise _NotSimpleError
        return found

    def _replaced(self) -> dict[cst.CSTNode, str]:
        """Return what stands for each read of a row: the whole tensor, indexed behind the axis of the rows."""
        texts: dict[cst.CSTNode, str] = {}
        for row in self.function.loop.rows:
            rest = self.function.rests[row]
            texts[row] = self.expression + (f"[:, {rest}]" if rest else "")
        return texts

    def _read_statements(self, body: cst.BaseSuite) -> None:
        collecting = {gathered.node: gathered for gathered in self.function.loop.gathered}
        if not isinstance(body, cst.IndentedBlock):
            raise _NotSimpleError
        for line in body.body:
            statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            gathered = collecting.get(statement) if statement is not None else None
            if gathered is not None:
                value = gathered.value if gathered.how is How.ADDED else _element(gathered.value)
                if not isinstance(value, cst.BaseExpression) or self._axes(value) in (_NUMBER, _SUM):
                    raise _NotSimpleError
            elif isinstance(statement, cst.Assign) and len(statement.targets) == 1:
                target = statement.targets[0].target
                if not isinstance(target, cst.Name) or target.value == self.expression:
                    raise _NotSimpleError
                self.known[target.value] = self._axes(statement.value)
            else:
                raise _NotSimpleError

    def _axes(self, node: cst.BaseExpression) -> Axes | str:
        """Return how many axes the value of ``node`` has; note the edits that compute it for all rows."""
        if isinstance(node, cst.Name) and node.value in self.known:
            return self.known[node.value]
        if isinstance(node, cst.Name) and node.value in {item.name for item in self.function.loop.gathered}:
            return _SUM
        if isinstance(node, cst.Subscript):
            return self._row(node)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            return self._axes(node.expression)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _ARITHMETIC):
            return _together(self._axes(node.left), self._axes(node.right))
        if isinstance(node, cst.Call):
            return self._called(node)
        counts = any(name.value in self.function.loop.counters for name in find(node, cst.Name))
        if self.function.values.kind(node) is Kind.NUMBER and not counts:
            return _NUMBER
        raise _NotSimpleError

    def _row(self, row: cst.Subscript) -> int:
        if row not in self.function.rests:
            raise _NotSimpleError
        axes = 0
        for part in (element.slice for element in row.slice):
            picks = any(name.value in self.function.loop.counters for name in find(part, cst.Name))
            if isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis):
                raise _NotSimpleError
            if not isinstance(part, cst.Index):
                axes += picks
            elif isinstance(part.value, cst.Name) and part.value.value == "None":
                axes += 1
            else:
                axes -= not picks
        return axes

    def _called(self, call: cst.Call) -> Axes | str:
        name, operator = called(self.function.module, call), self.function.values.operator(call)
        function = call.func
        if operator is None and isinstance(function, cst.Attribute):
            operand, arguments = function.value, list(call.args)
        elif operator is not None and operator.startswith("mindspore.ops.") and call.args and _is_plain(call.args[0]):
            operand, arguments = call.args[0].value, list(call.args[1:])
            if not _has_no_settings(built_operator(self.function.module, self.function.values, call)):
                raise _NotSimpleError
        else:
            raise _NotSimpleError
        axes = self._axes(operand)
        if isinstance(axes, str):
            raise _NotSimpleError
        if name in _ELEMENTWISE and not arguments:
            return axes
        if name in _ALONG_AN_AXIS:
            self._shift(arguments, axes)
            return axes
        if name in _REDUCING or (operator is None and name in ("max", "min") and not arguments):
            return self._reduced(call, operand, arguments, axes)
        raise _NotSimpleError

    def _reduced(self, call: cst.Call, operand: cst.BaseExpression, arguments: list[cst.Arg], axes: Axes) -> Axes:
        module = self.function.module
        if arguments:
            removed, keeps = self._shift(arguments, axes)
            assert axes is not None
            return axes if keeps else axes - removed
        if axes is None or not all(part.isidentifier() for part in self.expression.split(".")):
            raise _NotSimpleError
        flat = f"reshape({self.expression}.shape[0], -1)"
        end = module.end(call)
        closing = Position(end.row, end.column - 1)
        if isinstance(call.func, cst.Attribute) and call.func.value is operand:
            attribute = call.func.attr
            last = f"a{attribute.value}" if attribute.value in ("max", "min") else attribute.value
            self.edits += [module.replace(attribute, f"{flat}.{last}"), Edit(closing, closing, "-1")]
            return None
        if not is_primary(operand):
            raise _NotSimpleError
        behind = module.end(operand)
        self.edits += [Edit(behind, behind, f".{flat}, -1")]
        return None

    def _shift(self, arguments: list[cst.Arg], axes: Axes) -> tuple[int, bool]:
        """Move the axes that ``arguments`` name; return how many there are, and whether they are kept."""
        if axes is None:
            raise _NotSimpleError
        numbers: list[cst.BaseExpression] = []
        keeps = False
        for position, argument in enumerate(arguments):
            keyword = argument.keyword.value if argument.keyword is not None else ""
            value = argument.value
            if (keyword in ("axis", "dim") or (not keyword and position == 0 and not argument.star)) and is_axis(value):
                numbers = [item.value for item in value.elements] if isinstance(value, cst.Tuple) else [value]
            elif keyword in KEEPS and isinstance(value, cst.Name) and value.value in ("True", "False"):
                keeps = value.value == "True"
            else:
                raise _NotSimpleError
        if not numbers:
            raise _NotSimpleError
        for number in numbers:
            self.counts_from_last |= not isinstance(number, cst.Integer)
            if isinstance(number, cst.Integer):
                self.edits.append(self.function.module.replace(number, str(int(number.value, 0) + 1)))
        return len(numbers), keeps


def _element(value: cst.CSTNode) -> cst.CSTNode:
    """Return what a round puts in the list, of ``[x]`` and ``(x,)`` too."""
    return value.elements[0].value if isinstance(value, (cst.List, cst.Tuple)) and len(value.elements) == 1 else value


def _is_plain(argument: cst.Arg) -> bool:
    return argument.keyword is None and not argument.star


def _has_no_settings(built: cst.Call | None) -> bool:
    return built is None or not built.args


def _together(left: Axes | str, right: Axes | str) -> Axes | str:
    """Return the axes of a value computed from two, which broadcasting must not shift against each other."""
    if left in (_NUMBER, _SUM):
        return right
    if right in (_NUMBER, _SUM) or left == right:
        return left
    raise _NotSimpleError
