"""The body of a loop over rows as a function of one row: its parameters, what they are given, its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from codemods.base import Manual
from codemods.row_helpers import HARMLESS, SIGNS, is_project_code, run_by, run_elsewhere
from codemods.row_operators import respelled
from codemods.statements import comments, comments_above
from mslint.findings import Edit, Position
from mslint.semantics.cells import is_self, method_of, self_name
from mslint.semantics.criteria import TENSOR_FACTS, TENSOR_METHODS
from mslint.semantics.flow import function_called, held
from mslint.semantics.module import Module, children, dotted, find, walk
from mslint.semantics.rows import RowLoop, operators_run, touches
from mslint.semantics.tensors import Kind, Values, loop_variables
from mslint.semantics.vectorising import Vectorised, vectorised

# One operator under three names; it was measured for matrices and, apart, for a matrix and a vector.
_MULTIPLYING = ("mindspore.ops.matmul", "Tensor.matmul", "operator.@")
_BY_A_VECTOR = "mindspore.ops.matmul with a vector"
_UNSUITABLE: dict[type[cst.CSTNode], str] = {
    cst.Continue: "a round can be cut short by `continue`: use `ops.where`",
    cst.While: "the body has a `while` loop of its own",
    cst.Try: "the body catches exceptions",
    cst.With: "the body has a `with` block",
    cst.Raise: "the body raises an exception: check before the loop",
    cst.Assert: "the body has an `assert`: check before the loop",
    cst.Del: "the body deletes a variable",
    cst.Global: "the body writes a global variable",
    cst.Nonlocal: "the body writes a variable of another function",
    cst.Lambda: "the body makes a function",
    cst.FunctionDef: "the body makes a function",
    cst.NamedExpr: "the body assigns inside an expression",
    cst.Await: "the body awaits something",
}


@dataclass(frozen=True)
class Argument:
    """One parameter of the row function: what it is given, and the axis that holds the rows (None: the same for all rows)."""

    parameter: str
    expression: str
    axis: int | None


@dataclass
class RowFunction:
    """A loop's body, read as a function of one row."""

    module: Module
    values: Values
    loop: RowLoop
    arguments: list[Argument] = field(default_factory=list)
    replaced: dict[cst.CSTNode, str] = field(default_factory=dict)
    """Expressions of the body with what stands for them in the function."""
    rests: dict[cst.CSTNode, str] = field(default_factory=dict)
    """Reads of one row with what is left of the index beside the row's number."""
    respelled: list[Edit] = field(default_factory=list)
    """Edits of the body that write operators by equal ones that ``vmap`` has a rule for."""
    imports: list[Edit] = field(default_factory=list)
    """Edits of the file's imports that these need."""
    mapped: list[tuple[cst.BaseExpression, int]] = field(default_factory=list)
    """The tensors whose rows are handed over, each with the axis of its rows."""
    dropped: list[cst.CSTNode] = field(default_factory=list)
    """Statements that only name a row, as a parameter now does."""
    whole: str = ""
    """A statement that names the tensor whose rows are looped over."""
    needs_axis: bool = False
    """Whether all rows at once are right only if a row has an axis, which nothing shows: else it counts the rows' own."""
    uses_self: bool = False
    looped: list[str] = field(default_factory=list)
    """Operators that ``vmap`` runs row by row after all."""
    unmeasured: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    """Operators that ``vmap`` runs for matrices, but not where an operand is a vector."""

    @property
    def body(self) -> cst.CSTNode:
        """The body of the loop or what the comprehension computes."""
        return self.loop.node.body if isinstance(self.loop.node, cst.For) else self.loop.node.elt

    @property
    def header(self) -> cst.For | cst.CompFor:
        """The node that binds the loop's variables."""
        return self.loop.node if isinstance(self.loop.node, cst.For) else self.loop.node.for_in

    def text(self, start: Position, end: Position) -> str:
        """Return the source text from ``start`` to ``end`` as it stands in the function."""
        edits = [*self.respelled, *(self.module.replace(node, text) for node, text in self.replaced.items())]
        inside = [edit for edit in edits if start <= edit.start and edit.end <= end]
        pieces, done = [], start
        for edit in sorted(inside, key=lambda edit: (edit.start, edit.end)):
            pieces += [self.module.text(done, edit.start), edit.content]
            done = edit.end
        return "".join([*pieces, self.module.text(done, end)])

    def code(self, node: cst.CSTNode) -> str:
        """Return the text of ``node`` as it stands in the function."""
        return self.text(self.module.start(node), self.module.end(node))


def read_row_function(module: Module, values: Values, loop: RowLoop) -> RowFunction:
    """Return the body of ``loop`` as a function of one row; raise ``Manual`` if it is none."""
    function = RowFunction(module, values, loop)
    reader = _Reader(function)
    reader.check_header()
    reader.check_statements()
    reader.check_operations()
    reader.read_rows()
    reader.read_invariants()
    return function


class _Reader:
    """Fills in a ``RowFunction``."""

    def __init__(self, function: RowFunction) -> None:
        self.function = function
        self.module, self.values, self.loop = function.module, function.values, function.loop
        self.body = function.body
        self.inner = set(walk(self.body))
        self.collectors = {gathered.name for gathered in self.loop.gathered}
        method = method_of(self.module, self.loop.node)
        self.this = self_name(method) if method is not None and not _is_static(method) else ""
        self.round = set(self.loop.local) | set(self.loop.counters)

    def is_computed(self, node: cst.CSTNode) -> bool:
        """Tell whether ``node`` differs from row to row."""
        return touches(node, self.loop.rows, self.loop.computed) or any(
            name.value in self.loop.counters for name in find(node, cst.Name)
        )

    def check_header(self) -> None:
        over = self.function.header.iter
        if not isinstance(over, cst.Call) or not isinstance(over.func, cst.Name):
            return
        name, count = over.func.value, len(over.args)
        from_first = count == 1 or (name == "range" and count == 2 and self.module.code(over.args[0].value) == "0")
        if name in ("range", "enumerate") and not from_first:
            raise Manual(
                f"`{self.module.code(over)}` does not count all rows from the first: slice the tensors, then loop over all"
            )

    def check_statements(self) -> None:
        for gathered in self.loop.gathered:
            if (
                isinstance(self.loop.node, cst.For)
                and self.module.enclosing(gathered.node, cst.For) is not self.loop.node
            ):
                raise Manual(
                    f"an inner loop collects in `{gathered.name}`: compute what it loops over at once, with one more axis, "
                    "and collect one result a row"
                )
        for node in walk(self.body):
            for kind, reason in _UNSUITABLE.items():
                if isinstance(node, kind):
                    raise Manual(reason)
            if isinstance(node, (cst.If, cst.IfExp)) and self.is_computed(node.test):
                test = self.module.code(node.test)
                if not touches(node.test, self.loop.rows, self.loop.computed):
                    raise Manual(
                        f"`{test}` treats some rows differently, by their number: do these apart from the others"
                    )
                raise Manual(f"`{test}` decides by the values of a row what is computed: choose with `ops.where`")
            if isinstance(node, cst.BooleanOperation) and self.is_computed(node):
                raise Manual("`and`/`or` between values of a row: use `ops.logical_and`/`ops.logical_or`")
            if isinstance(node, (cst.Assign, cst.AugAssign)):
                self._check_assignment(node)
            if isinstance(node, cst.Subscript) and self._is_picked_by_row(node):
                raise Manual(
                    f"`{self.module.code(node)}` picks by values of the row; how many elements that gives may differ from "
                    "row to row: use `ops.where`, or `ops.gather` for an index"
                )
            if isinstance(node, cst.Subscript) and self._is_part_for_all(node):
                raise Manual(
                    f"`{self.module.code(node)}` is the same for all rows, and `mindspore.vmap` cannot index what is "
                    "(measured on MindSpore 2.10): assign it to a variable before the loop"
                )

    def _check_assignment(self, node: cst.Assign | cst.AugAssign) -> None:
        targets = [node.target] if isinstance(node, cst.AugAssign) else [target.target for target in node.targets]
        for target in targets:
            if isinstance(target, cst.Subscript) or (
                isinstance(target, cst.Attribute) and dotted(target) not in self.collectors
            ):
                raise Manual(f"the body writes `{self.module.code(target)}` in place")
            for name in find(target, cst.Name):
                if (
                    name.value not in self.loop.local
                    and name.value not in self.collectors
                    and dotted(target) not in self.collectors
                ):
                    raise Manual(f"the body also sets `{name.value}`, which outlives the round: split the loop")

    def _is_picked_by_row(self, node: cst.Subscript) -> bool:
        if node in self.loop.rows:
            return False
        return any(touches(part, self.loop.rows, self.loop.computed) for part in node.slice)

    def _is_part_for_all(self, node: cst.Subscript) -> bool:
        """Tell whether ``node`` takes a part of something that all rows share."""
        if node in self.loop.rows or self.is_computed(node) or self.values.is_shape(node.value):
            return False
        return not all(_is_new_axis(part.slice) for part in node.slice)

    def check_operations(self) -> None:
        for node in walk(self.body):
            if isinstance(node, cst.Call):
                self._check_call(node)
            elif isinstance(node, cst.BinaryOperation) and self.is_computed(node):
                self._check_operators([node.operator], [node.left, node.right])
            elif isinstance(node, cst.UnaryOperation) and self.is_computed(node):
                self._check_operators([node.operator])
            elif isinstance(node, cst.Comparison) and self.is_computed(node):
                if len(node.comparisons) > 1:
                    raise Manual("a chain of comparisons between values of a row: compare one by one")
                operands = [node.left, *(target.comparator for target in node.comparisons)]
                self._check_operators([target.operator for target in node.comparisons], operands)

    def _check_operators(self, operators: Iterable[cst.CSTNode], operands: Iterable[cst.BaseExpression] = ()) -> None:
        by_number = any(self.values.kind(operand) is Kind.NUMBER for operand in operands)
        for operator in operators:
            sign = SIGNS.get(type(operator))
            if sign is None:
                raise Manual(f"`{type(operator).__name__}` between values of a row is not vectorised")
            with_number = f"operator.{sign} with a number"
            if by_number and vectorised(with_number) is Vectorised.LOOPED:
                self._note(with_number, f"`{sign}` with a number")
            else:
                self._note(f"operator.{sign}", f"`{sign}`")

    def _check_call(self, call: cst.Call) -> None:
        if self._collects(call):
            return
        function = call.func
        name = self.values.operator(call)
        other = respelled(self.module, self.values, call) if self.is_computed(call) else None
        if other is not None and vectorised(other.operator) is Vectorised.ONCE:
            self.function.respelled += other.edits
            self.function.imports += other.imports
            return
        if name is None and isinstance(function, cst.Name) and not self.module.lookup(function.value, call):
            if function.value == "print":
                raise Manual("the body prints: print after the loop")
            if function.value not in HARMLESS and self.is_computed(call):
                raise Manual(f"Python's `{function.value}` takes values of a row")
            return
        if name is not None and name.startswith("mindspore."):
            self._note(name, f"`{self.module.code(function)}`")
            return
        helper = function_called(self.module, call)
        if helper is not None or is_project_code(self.values, call):
            runs = run_elsewhere(self.values, call)
            if helper is not None:
                runs = run_by(self.module, helper, f"`{self.module.code(function)}`")
            for operator, written in runs:
                self._note(operator, written)
            return
        run = {item for item in operators_run(self.values, call) if item and not item.startswith(".")}
        if isinstance(function, cst.Attribute) and not run:
            self._check_method(function)
            return
        if not self.is_computed(call) and name is not None:
            return
        if not run:
            raise Manual(f"what `{self.module.code(function)}` runs is not seen")
        for item in sorted(run):
            self._note(item, f"`{item}` in `{self.module.code(function)}`")

    def _check_method(self, function: cst.Attribute) -> None:
        if is_self(function, self.this):
            if not any(isinstance(value, cst.Call) for value in held(self.module, function)):
                raise Manual(f"what `{self.module.code(function)}` runs is not seen")
            return
        if function.attr.value not in TENSOR_METHODS and not _changes(function):
            raise Manual(f"what `{self.module.code(function)}` runs is not seen")
        if _changes(function):
            if dotted(function.value) in self.loop.local:
                return
            raise Manual(
                f"the body also changes `{self.module.code(function.value)}`, which is used as a Python object"
            )
        self._note(f"Tensor.{function.attr.value}", f"`.{function.attr.value}`")

    def _collects(self, call: cst.Call) -> bool:
        statement = self.module.parents.get(call)
        return any(gathered.node in (statement, call) for gathered in self.loop.gathered) and isinstance(
            call.func, cst.Attribute
        )

    def _note(self, operator: str, written: str) -> None:
        found = vectorised(operator)
        if operator.rpartition(".")[2].lower() == "squeeze":
            # Measured with a named axis alone: without one, an axis of the rows and the axis of the rows look alike.
            found = Vectorised.UNKNOWN
        if found is Vectorised.REFUSED:
            raise Manual(f"`mindspore.vmap` cannot run {written} for all rows (measured on MindSpore 2.10)")
        if found is Vectorised.RANDOM:
            raise Manual(f"{written} draws random numbers or keeps state, once for each row")
        if operator in _MULTIPLYING and vectorised(_BY_A_VECTOR) is not Vectorised.ONCE:
            self.function.vectors += [] if written in self.function.vectors else [written]
        noted = {Vectorised.LOOPED: self.function.looped, Vectorised.UNKNOWN: self.function.unmeasured}.get(found)
        if noted is not None and written not in noted:
            noted.append(written)

    def read_rows(self) -> None:
        """Make a parameter of each tensor whose rows are read."""
        for target, value in loop_variables(self.function.header):
            assert isinstance(target, cst.Name)
            if value is not None:
                self.function.arguments.append(Argument(target.value, self.module.code(value), 0))
                self.function.mapped.append((value, 0))
        parameters: dict[tuple[str, int], str] = {}
        for row in self.loop.rows:
            axis, rest = self._taken_out(row)
            expression = self.module.code(row.value)
            if any(name.value in self.round for name in _variables(row.value)):
                raise Manual(f"`{expression}` itself differs from round to round")
            if any(True for _ in find(row.value, cst.Call)):
                raise Manual(f"`{expression}` is computed anew in each round: assign it to a variable before the loop")
            parameter = parameters.get((expression, axis))
            if parameter is None:
                parameter = parameters[expression, axis] = self._alias(expression, axis) or self._parameter(row)
                self.function.arguments.append(Argument(parameter, expression, axis))
                self.function.mapped.append((row.value, axis))
            self.function.rests[row] = rest
            self.function.replaced[row] = parameter + (f"[{rest}]" if rest else "")
        counted = [name for name in find(self.body, cst.Name) if name.value in self.loop.counters]
        inside = {name for row in self.loop.rows for name in find(row, cst.Name)}
        for name in counted:
            if name not in inside:
                raise Manual(
                    f"the body uses the row's number `{name.value}` for more than reading a row: hand the rows of "
                    "`ops.arange` to the function, or compute on all rows at once"
                )

    def _taken_out(self, row: cst.Subscript) -> tuple[int, str]:
        """Return the axis that the counter picks from, and what is left of the index once it is taken out."""
        parts = [part.slice for part in row.slice]
        picks = [index for index, part in enumerate(parts) if self._counted(part)]
        if len(picks) != 1:
            raise Manual(f"`{self.module.code(row)}` picks from two axes by one number: use `.diagonal()`")
        where = picks[0]
        if any(not self._is_plain(part) for index, part in enumerate(parts) if index != where):
            raise Manual(f"`{self.module.code(row)}` mixes the row's number with another tensor as index")
        before, after = parts[:where], parts[where + 1 :]
        if any(map(_is_ellipsis, before)):
            axis = -(1 + sum(not _is_new_axis(part) for part in after))
        else:
            axis = sum(not _is_new_axis(part) for part in before)
        kept = [self.module.code(part).strip() for part in before]
        kept += ["None"] if isinstance(parts[where], cst.Slice) else []
        kept += [self.module.code(part).strip() for part in after]
        while kept and kept[-1] in (":", "..."):
            kept.pop()
        return axis, ", ".join(kept)

    def _counted(self, part: cst.CSTNode) -> bool:
        return any(name.value in self.loop.counters for name in find(part, cst.Name))

    def _is_plain(self, part: cst.BaseSlice) -> bool:
        """Tell whether ``part`` of an index is a number, a slice, a new axis or an ellipsis."""
        if isinstance(part, cst.Slice) or _is_ellipsis(part) or _is_new_axis(part):
            return True
        assert isinstance(part, cst.Index)
        return self.values.kind(part.value) is Kind.NUMBER

    def _parameter(self, row: cst.Subscript) -> str:
        name = dotted(row.value)
        if name is None:
            return self._unused("row")
        parts = {node for read in self.loop.rows for node in walk(read.value)}
        whole = any(node.value == name and node not in parts for node in find(self.body, cst.Name))
        return self._unused(f"{name}_row" if whole else name.rpartition(".")[2])

    def _alias(self, expression: str, axis: int) -> str | None:
        """Return the variable that a statement of the body names these rows by; the statement is dropped."""
        for row in self.loop.rows:
            if self.module.code(row.value) == expression and self._taken_out(row) == (axis, ""):
                name = self._named(row)
                if name is not None:
                    self.function.dropped.append(self.module.parents[self.module.parents[row]])
                    return name
        return None

    def _named(self, row: cst.Subscript) -> str | None:
        """Return the variable that a statement of the body assigns ``row`` to, if that is all it does."""
        assign = self.module.parents[row]
        line = self.module.parents[assign]
        if (
            not isinstance(assign, cst.Assign)
            or len(assign.targets) != 1
            or not isinstance(assign.targets[0].target, cst.Name)
            or self.module.parents[line] is not self.body
            or len(comments(self.module, line) + comments_above(self.module, line)) > 0
        ):
            return None
        name = assign.targets[0].target.value
        bound = [binding.node for binding in self.module.lookup(name, row) if binding.node in self.inner]
        return name if bound == [assign] else None

    def _unused(self, name: str) -> str:
        taken = {argument.parameter for argument in self.function.arguments} | self.round
        if name in taken and name.endswith("_row"):
            return self._unused(f"{name}_2")
        return self._unused(f"{name}_row") if name in taken else name

    def read_invariants(self) -> None:
        """Make a parameter of each variable of the function that the body reads."""
        inside = {node for row in self.function.replaced for node in walk(row)}
        given: dict[str, str] = {}
        elements = {argument.parameter for argument in self.function.arguments}
        for name in _variables(self.body):
            if name in inside or name.value in self.round or name.value in self.collectors:
                continue
            if isinstance(self.function.header, (cst.For, cst.CompFor)) and name.value in self._targets():
                continue
            if self.this and name.value == self.this:
                self._read_self(name, given)
                continue
            bindings = self.module.lookup(name.value, name)
            scope = self.module.scope(bindings[0].node) if bindings else self.module.tree
            if scope is self.module.tree or isinstance(scope, cst.ClassDef) or self._is_inner(bindings[0].node):
                continue
            if scope is not self.values.function:
                raise Manual(f"the body reads `{name.value}` of the function around")
            call = self.module.parents.get(name)
            if isinstance(call, cst.Call) and call.func is name:
                raise Manual(f"the body calls `{name.value}`, which is no function of the file")
            self._check_tensor(name)
            if name.value in given:
                continue
            if name.value in elements:
                raise Manual(f"`{name.value}` is both a row and a whole")
            given[name.value] = name.value
            self.function.arguments.append(Argument(name.value, name.value, None))

    def _targets(self) -> set[str]:
        return {target.value for target, _ in loop_variables(self.function.header) if isinstance(target, cst.Name)}

    def _is_inner(self, node: cst.CSTNode) -> bool:
        return node in self.inner

    def _read_self(self, name: cst.Name, given: dict[str, str]) -> None:
        attribute = self.module.parents.get(name)
        if not isinstance(attribute, cst.Attribute) or attribute.value is not name:
            raise Manual(f"the body hands `{name.value}` itself to something")
        call = self.module.parents.get(attribute)
        if isinstance(call, cst.Call) and call.func is attribute:
            self.function.uses_self = True
            return
        if dotted(attribute) in self.collectors:
            return
        if any(isinstance(value, cst.Call) and self._builds_cell(value) for value in held(self.module, attribute)):
            self.function.uses_self = True
            return
        self._check_tensor(attribute)
        expression = f"{name.value}.{attribute.attr.value}"
        if expression not in given:
            given[expression] = self._unused(attribute.attr.value)
            self.function.arguments.append(Argument(given[expression], expression, None))
        self.function.replaced[attribute] = given[expression]

    def _check_tensor(self, value: cst.BaseExpression) -> None:
        """Refuse a ``value`` that is read as another object than a tensor: ``vmap`` takes none."""
        read = self.module.parents.get(value)
        if isinstance(read, cst.Attribute) and read.attr.value not in TENSOR_METHODS | TENSOR_FACTS:
            raise Manual(f"the body reads `{self.module.code(read)}`: assign it to a variable before the loop")

    def _builds_cell(self, call: cst.Call) -> bool:
        """Tell whether ``call`` builds a layer or an operator, or something of the project, which is no tensor."""
        built = self.module.resolve(call.func) or ""
        last = built.rpartition(".")[2]
        return ".py:" in built or (built.startswith(("mindspore.nn.", "mindspore.ops.")) and last[:1].isupper())


def _variables(tree: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the names that ``tree`` reads as variables, not those of attributes and keywords."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Name):
            yield node
        elif isinstance(node, (cst.Attribute, cst.Arg)):
            stack.append(node.value)
        else:
            stack.extend(reversed(list(children(node))))


def _is_static(method: cst.FunctionDef) -> bool:
    decorators = [decorator.decorator for decorator in method.decorators]
    return any(isinstance(item, cst.Name) and item.value == "staticmethod" for item in decorators)


def _changes(function: cst.Attribute) -> bool:
    """Tell whether ``function`` is a method by which Python objects are changed."""
    return function.attr.value in ("append", "extend", "insert", "update", "pop")


def _is_ellipsis(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)


def _is_new_axis(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Name) and part.value.value == "None"
