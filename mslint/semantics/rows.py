"""Python loops over the rows of a tensor: what a round reads, what it hands to the next one, what becomes of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

import libcst as cst

from mslint.program.operators import operators_of
from mslint.semantics.criteria import (
    ADDING_OPERATORS,
    CHOOSING_OPERATORS,
    FEWEST_ROUNDS,
    GLUING_OPERATORS,
    HOST_METHODS,
    HOST_PACKAGES,
    REDUCING_OPERATORS,
    SCATTERING_OPERATORS,
)
from mslint.semantics.flow import function_called, held, owner_of
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module, children, dotted, find, walk
from mslint.semantics.tensors import Kind, Values, loop_variables, values_of

Loop = cst.For | cst.ListComp | cst.GeneratorExp


class How(Enum):
    """What becomes of a round's result."""

    LISTED = "put in a list"
    ADDED = "added up"
    GROWN = "concatenated to what there is"
    STORED = "stored in its row"
    SELECTED = "selected into what there is"


@dataclass(frozen=True)
class Gathered:
    """A variable that collects results: how, in which statement, and, of a list, the call that glues it together."""

    name: str
    how: How
    node: cst.CSTNode
    value: cst.CSTNode
    glue: cst.Call | None = None


@dataclass(frozen=True)
class RowLoop:
    """A loop whose rounds each read one row of ``tensors`` and know nothing of each other."""

    node: Loop
    header: cst.CSTNode
    """The expression that is looped over."""
    rows: tuple[cst.Subscript, ...]
    """Reads of one row; empty where the loop runs over the tensor itself."""
    tensors: tuple[str, ...]
    gathered: tuple[Gathered, ...]
    counters: tuple[str, ...]
    """Variables that count the rows."""
    local: frozenset[str]
    """Variables that each round sets before it reads them."""
    computed: frozenset[str]
    """Variables that hold a row or what is computed from one."""


@dataclass(frozen=True)
class GrowingConcat:
    """A loop that concatenates to a variable in each round and uses it for nothing else."""

    loop: cst.For
    gathered: Gathered


# What picks a number of elements that the data decide, or draws for each row: the body cannot be run for all rows at once.
_PER_ROW = frozenset(
    """
    RandomChoiceWithMask random_choice_with_mask NonZero nonzero argwhere Unique unique UniqueWithPad unique_with_pad
    masked_select MaskedSelect NMSWithMask nms linear_sum_assignment multinomial randperm Randperm shuffle choice
    UniformCandidateSampler unique_consecutive batched_nms BoundingBoxDecode_
    """.split()  # noqa: SIM905
)
# `mindspore.vmap` takes no body that differentiates (measured on 2.10.0): the rows of a Jacobian stay apart.
_GRADIENTS = frozenset(["GradOperation", "grad", "value_and_grad", "jvp", "vjp", "jacfwd", "jacrev"])


def row_loops(module: Module, function: cst.FunctionDef) -> Iterator[RowLoop]:
    """Yield the loops of ``function`` over rows of a tensor, of nested ones the outermost."""
    found: set[cst.CSTNode] = set()
    for node in inventories(module)[function].loops:
        if not found or found.isdisjoint(module.ancestors(node)):
            loop = _Reader(values_of(module, function), node).read()
            if loop is not None:
                found.add(node)
                yield loop


def growing_concats(module: Module, function: cst.FunctionDef) -> Iterator[GrowingConcat]:
    """Yield the loops that concatenate to a variable in each round and use it for nothing else."""
    for node in inventories(module)[function].loops:
        if isinstance(node, cst.For):
            values = values_of(module, function)
            body = _Body(values, node.body)
            for gathered in body.gathered:
                if gathered.how is How.GROWN and gathered.name not in body.carried and _is_tensor(values, gathered):
                    yield GrowingConcat(node, gathered)


def _is_tensor(values: Values, gathered: Gathered) -> bool:
    return isinstance(gathered.node, cst.Assign) and values.kind(gathered.node.value) is Kind.TENSOR


@dataclass
class _Reader:
    """Reads one loop."""

    values: Values
    node: Loop
    counters: list[str] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)

    def read(self) -> RowLoop | None:
        header = self.node if isinstance(self.node, cst.For) else self.node.for_in
        if not self._read_header(header):
            return None
        block = self.node.body if isinstance(self.node, cst.For) else self.node.elt
        body = _Body(self.values, block)
        if body.carried or body.leaves or not self._same_for_all(block, body):
            return None
        rows = self._rows(block, body)
        if rows is None or not (rows or self.elements):
            return None
        gathered = tuple(self._results(body, rows))
        if not gathered:
            return None
        code = self.values.module.code
        names = [code(row.value) for row in rows]
        if self.elements:
            names += [code(value) for _, value in loop_variables(header) if value is not None]
        return RowLoop(
            self.node,
            header.iter,
            tuple(rows),
            tuple(dict.fromkeys(names)),
            gathered,
            tuple(self.counters),
            frozenset(body.local),
            frozenset(body.computed_from(rows, self.elements)),
        )

    def _read_header(self, header: cst.For | cst.CompFor) -> bool:
        """Note the loop's variables; tell whether what it runs over can be the rows of a tensor."""
        if isinstance(header, cst.CompFor) and (header.inner_for_in or header.ifs):
            return False
        for target, value in loop_variables(header):
            if not isinstance(target, cst.Name):
                return False
            if value is None:
                self.counters.append(target.value)
            elif self.values.kind(value) in (Kind.TENSOR, Kind.PARTS):
                self.elements.append(target.value)
            else:
                return False
        if self.elements:
            return True
        over = header.iter
        if not self.counters or not isinstance(over, cst.Call) or not over.args:
            return False
        return self._counts_rows(over.args[min(1, len(over.args) - 1)].value)

    def _counts_rows(self, bound: cst.CSTNode) -> bool:
        """Tell whether ``bound`` may be the length of a tensor's axis, and not of a list, nor the number of axes."""
        if isinstance(bound, cst.Integer):
            return int(bound.value, 0) >= FEWEST_ROUNDS
        if isinstance(bound, cst.Attribute):
            if bound.attr.value == "ndim":
                return False
            found = list(held(self.values.module, bound))
            return all(not isinstance(value, cst.Integer) or int(value.value, 0) >= FEWEST_ROUNDS for value in found)
        if isinstance(bound, cst.Name):
            found = [binding.value for binding in self.values.reaching(bound) if binding.value is not None]
            return all(isinstance(value, cst.Name) or self._counts_rows(value) for value in found)
        if (
            isinstance(bound, cst.Call)
            and isinstance(bound.func, cst.Name)
            and bound.func.value == "len"
            and bound.args
        ):
            return self.values.kind(bound.args[0].value) in (Kind.TENSOR, Kind.PARTS)
        if isinstance(bound, cst.Call):
            return (self.values.operator(bound) or "").rpartition(".")[2] not in ("Rank", "rank")
        return True

    def _same_for_all(self, block: cst.CSTNode, body: _Body) -> bool:
        """Tell whether each round does the same, on the device, with a result whose shape does not hang on the data."""
        for call in find(block, cst.Call):
            if isinstance(call.func, cst.Subscript) or _name_of(call) == "getattr":
                return False
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in HOST_METHODS:
                return False
            run = operators_run(self.values, call) | self._made_by(call)
            if any(_is_per_row(name) or name.rpartition(".")[2] in _GRADIENTS for name in run):
                return False
            # numpy on plain numbers (a scale, a length) does no harm.
            if (self.values.operator(call) or "").partition(".")[0] in HOST_PACKAGES and any(
                name in body.local or name in self.counters + self.elements for name in read_names(call)
            ):
                return False
        return True

    def _made_by(self, call: cst.Call) -> set[str]:
        """Return the operator that made what ``call`` calls: of ``f = grad(network)``, its name for ``f(x)``."""
        makers = [call.func]
        if isinstance(call.func, cst.Name):
            makers = [binding.value for binding in self.values.reaching(call.func) if binding.value is not None]
        return {self.values.operator(maker) or "" for maker in makers if isinstance(maker, cst.Call)}

    def _rows(self, block: cst.CSTNode, body: _Body) -> list[cst.Subscript] | None:
        """Return the reads of one row, or None if the loop's counter picks from something that need not be a tensor."""
        rows: list[cst.Subscript] = []
        beside: list[cst.Subscript] = []
        for subscript in find(block, cst.Subscript):
            if not any(_picks(part.slice, self.counters) for part in subscript.slice):
                continue
            root = subscript.value
            while isinstance(root, cst.Subscript):
                root = root.value
            if isinstance(root, cst.Name) and (root.value in body.local or root.value in self.elements):
                continue
            if _is_stored(self.values.module, subscript):
                continue
            kind = self._picked_from(subscript, root)
            if kind is Kind.TENSOR:
                rows.append(subscript)
            elif kind is Kind.UNKNOWN and self._is_parameter(subscript.value):
                beside.append(subscript)
            elif kind is not Kind.PARTS:
                return None
        computed = body.computed_from(rows, self.elements) if beside else set()
        if beside and not self._counts_an_axis():
            return None
        if not all(self._is_computed_with(subscript, rows, computed) for subscript in beside):
            return None
        return sorted([*rows, *beside], key=self.values.module.start) if beside else rows

    def _counts_an_axis(self) -> bool:
        """Tell whether the loop's bound is the length of an axis, ``x.shape[0]``, as far as it is seen."""
        header = self.node if isinstance(self.node, cst.For) else self.node.for_in
        over = header.iter
        bound = over.args[-1].value if isinstance(over, cst.Call) and over.args else over
        if isinstance(bound, cst.Name):
            found = self.values.reaching(bound)
            if len(found) != 1 or not isinstance(found[0].node, cst.Assign):
                return False
            bound = found[0].value or found[0].node.value
        return self.values.is_shape(bound.value if isinstance(bound, cst.Subscript) else bound)

    def _is_parameter(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and all(
            isinstance(binding.node, cst.Param) for binding in self.values.reaching(node)
        )

    def _is_computed_with(self, subscript: cst.Subscript, rows: list[cst.Subscript], computed: set[str]) -> bool:
        """Tell whether ``subscript`` is added to, or multiplied with, a row of a tensor: so it is one, too."""
        whole = self.values.module.parents[subscript]
        if not isinstance(whole, cst.BinaryOperation) or not isinstance(
            whole.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
        ):
            return False
        other = whole.left if whole.right is subscript else whole.right
        return touches(other, rows, computed)

    def _picked_from(self, subscript: cst.Subscript, root: cst.BaseExpression) -> Kind:
        kind = self.values.kind(subscript.value)
        if kind is Kind.UNKNOWN and isinstance(root, cst.Name) and root is subscript.value:
            kind = self.values.from_callers(root)
        if kind is Kind.UNKNOWN:
            if len(subscript.slice) > 1:
                return Kind.TENSOR
            if isinstance(subscript.slice[0].slice, cst.Slice) and self._is_operand(subscript):
                return Kind.TENSOR
        if kind is Kind.LIST and _is_constant(self.values, subscript.value):
            return Kind.PARTS
        return kind

    def _is_operand(self, node: cst.CSTNode) -> bool:
        """Tell whether an operator that takes one tensor takes ``node``."""
        argument = self.values.module.parents.get(node)
        call = self.values.module.parents.get(argument) if isinstance(argument, cst.Arg) else None
        name = self.values.operator(call) if isinstance(call, cst.Call) else None
        return (
            bool(name)
            and str(name).startswith("mindspore.ops.")
            and str(name).rpartition(".")[2] not in GLUING_OPERATORS
        )

    def _results(self, body: _Body, rows: list[cst.Subscript]) -> Iterator[Gathered]:
        """Yield what collects results that come from the rows and makes one tensor of them."""
        if not isinstance(self.node, cst.For):
            glue = glue_around(self.values, self.node)
            if glue is not None:
                yield Gathered("", How.LISTED, glue, self.node.elt, glue)
            return
        tainted = body.computed_from(rows, self.elements)
        for gathered in body.gathered:
            if not touches(gathered.value, rows, tainted) and not touches(gathered.node, rows, tainted):
                continue
            if gathered.how is How.STORED and not _mentions(gathered.node, self.counters):
                continue
            if gathered.how is not How.LISTED:
                yield gathered
                continue
            glue = _glue_after(self.values, gathered.name, self.node)
            if glue is not None:
                yield Gathered(gathered.name, gathered.how, gathered.node, gathered.value, glue)


class _Body:
    """The body of a loop: what it hands from round to round.

    ``carried`` are the variables that a round reads as an earlier round left them, collectors apart; ``local`` are those that
    each round sets before it reads them; ``leaves`` tells whether a round can end the loop.
    """

    def __init__(self, values: Values, block: cst.CSTNode) -> None:
        self.values = values
        self.block = block
        self.gathered: list[Gathered] = []
        self.leaves = any(isinstance(node, (cst.Return, cst.Yield, cst.Break)) for node in walk(block))
        self._written: set[str] = set()
        self._early: dict[str, int] = {}
        """How often a variable is read before the round has set it."""
        self._in_collector: dict[str, int] = {}
        local = self._run(block, set())
        self._collected = list(self.gathered)
        # A list that each round starts anew is part of the round.
        self.gathered = [item for item in self.gathered if item.name not in local]
        self.local = local
        collectors = {item.name for item in self.gathered}
        self.carried = {
            name
            for name, reads in self._early.items()
            if (name in self._written or name in collectors) and reads > self._in_collector.get(name, 0)
        }

    def computed_from(self, rows: list[cst.Subscript], elements: list[str]) -> set[str]:
        """Return the variables of the body that depend on ``rows`` or on the variables ``elements``."""
        tainted = set(elements)
        before = -1
        while len(tainted) != before:
            before = len(tainted)
            for node in find(self.block, cst.Assign):
                if touches(node.value, rows, tainted):
                    tainted |= {name for target in node.targets for name in _target_names(target.target)}
            for loop in find(self.block, cst.For):
                if touches(loop.iter, rows, tainted):
                    tainted |= set(_target_names(loop.target))
            tainted |= {item.name for item in self._collected if touches(item.value, rows, tainted)}
        return tainted

    def _run(self, node: cst.CSTNode, known: set[str]) -> set[str]:
        """Follow ``node`` with the variables ``known`` set already; return those that are set afterwards."""
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            return known
        if isinstance(node, cst.If):
            self._read(node.test, known)
            one = self._run(node.body, set(known))
            other = self._run(node.orelse, set(known)) if node.orelse is not None else set(known)
            return one & other
        if isinstance(node, cst.For):
            self._read(node.iter, known)
            inner = self._run(node.body, known | set(_target_names(node.target)))
            return inner if node.orelse is None else self._run(node.orelse, inner)
        if isinstance(node, cst.While):
            self._read(node.test, known)
            return self._run(node.body, known)
        if isinstance(node, cst.Assign):
            return self._assign(node, known)
        if isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self._read(node.value, known)
            return known | set(_target_names(node.target))
        if isinstance(node, cst.AugAssign):
            return self._augment(node, known)
        if isinstance(node, cst.Expr):
            self._expression(node, known)
            return known
        if isinstance(node, cst.BaseExpression):
            self._read(node, known)
            return known
        for child in children(node):
            known = self._run(child, known)
        return known

    def _read(self, node: cst.CSTNode, known: set[str]) -> None:
        for name in read_names(node):
            if name not in known:
                self._early[name] = self._early.get(name, 0) + 1

    def _collect(self, name: str, how: How, node: cst.CSTNode, value: cst.CSTNode) -> None:
        self.gathered.append(Gathered(name, how, node, value))
        self._in_collector[name] = self._in_collector.get(name, 0) + 1

    def _assign(self, node: cst.Assign, known: set[str]) -> set[str]:
        self._read(node.value, known)
        for target in node.targets:
            if isinstance(target.target, cst.Subscript):
                self._store(target.target, node, node.value, known)
                continue
            names = list(_target_names(target.target))
            self._written.update(names)
            if len(names) == 1 and names[0] not in known:
                found = self._collecting(node.value, names[0])
                if found is not None:
                    self._collect(names[0], found[0], node, found[1])
                    continue
                if self._starts_collector(node, names[0]):
                    continue
            known = known | set(names)
        return known

    def _starts_collector(self, node: cst.Assign, name: str) -> bool:
        """Tell whether ``node`` only sets a collector in the first round, as in ``if i == 0: out = y``."""
        branch = self.values.module.enclosing(node, cst.If)
        if (
            branch is None
            or branch.orelse is None
            or not any(item is self.block for item in self.values.module.ancestors(branch))
        ):
            return False
        mentioned = sum(name == read for read in read_names(branch.test))
        collects = any(
            isinstance(item, cst.Assign)
            and list(_target_names(item.targets[0].target)) == [name]
            and self._collecting(item.value, name) is not None
            for item in walk(branch)
        )
        if collects and mentioned:
            self._in_collector[name] = self._in_collector.get(name, 0) + mentioned
        return collects

    def _augment(self, node: cst.AugAssign, known: set[str]) -> set[str]:
        self._read(node.value, known)
        if isinstance(node.target, cst.Subscript):
            self._store(node.target, node, node.value, known)
            return known
        for name in _target_names(node.target):
            self._written.add(name)
            if name in known:
                continue
            self._early[name] = self._early.get(name, 0) + 1
            listed = isinstance(node.value, (cst.Tuple, cst.List, cst.ListComp))
            self._collect(name, How.LISTED if listed else How.ADDED, node, node.value)
        return known

    def _store(self, target: cst.Subscript, node: cst.CSTNode, value: cst.CSTNode, known: set[str]) -> None:
        root: cst.BaseExpression = target
        while isinstance(root, cst.Subscript):
            for part in root.slice:
                self._read(part, known)
            root = root.value
        name = dotted(root)
        if name is None or name in known:
            return
        self._written.add(name)
        self._early[name] = self._early.get(name, 0) + 1
        self._collect(name, How.STORED, node, value)

    def _expression(self, node: cst.Expr, known: set[str]) -> None:
        call = node.value
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
            name = dotted(call.func.value)
            if call.func.attr.value in ("append", "extend") and name is not None:
                self._read(call.args[0].value, known)
                if name not in known:
                    self._early[name] = self._early.get(name, 0) + 1
                self._collect(name, How.LISTED, node, call.args[0].value)
                return
        self._read(call, known)

    def _collecting(self, value: cst.BaseExpression, name: str) -> tuple[How, cst.CSTNode] | None:
        """Return how ``name = value`` adds something to ``name``, and what, if that is all it does with it."""
        if sum(read == name for read in read_names(value)) != 1:
            return None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Add, cst.Subtract, cst.Multiply)):
            for one, other in ((value.left, value.right), (value.right, value.left)):
                if dotted(one) == name:
                    listed = isinstance(other, (cst.Tuple, cst.List, cst.ListComp))
                    return How.LISTED if listed else How.ADDED, other
                nested = self._collecting(one, name) if isinstance(one, cst.BinaryOperation) else None
                if (
                    nested is not None
                    and nested[0] is How.ADDED
                    and isinstance(value.operator, (cst.Add, cst.Subtract))
                ):
                    return How.ADDED, value
            return None
        if not isinstance(value, cst.Call) or not value.args:
            return None
        last = (self.values.operator(value) or "").rpartition(".")[2]
        operands: list[cst.BaseExpression] = [argument.value for argument in value.args]
        if isinstance(operands[0], (cst.Tuple, cst.List)):
            operands = [element.value for element in operands[0].elements] + operands[1:]
        if not any(dotted(operand) == name for operand in operands):
            return None
        if last in ADDING_OPERATORS:
            return How.ADDED, value
        if last in GLUING_OPERATORS:
            return How.GROWN, value
        if last in CHOOSING_OPERATORS:
            return How.SELECTED, value
        return (How.STORED, value) if last in SCATTERING_OPERATORS else None


def _picks(index: cst.BaseSlice, counters: list[str]) -> bool:
    """Tell whether ``index`` is one of ``counters`` or a slice of one element that starts there."""
    if isinstance(index, cst.Index):
        return isinstance(index.value, cst.Name) and index.value.value in counters
    if not isinstance(index, cst.Slice) or not isinstance(index.lower, cst.Name) or index.lower.value not in counters:
        return False
    upper = index.upper
    if not isinstance(upper, cst.BinaryOperation) or not isinstance(upper.operator, cst.Add):
        return False
    sides = {type(upper.left): upper.left, type(upper.right): upper.right}
    name, number = sides.get(cst.Name), sides.get(cst.Integer)
    return (
        isinstance(name, cst.Name)
        and name.value == index.lower.value
        and isinstance(number, cst.Integer)
        and number.value == "1"
    )


def _is_stored(module: Module, node: cst.Subscript) -> bool:
    current: cst.CSTNode = node
    parent = module.parents[current]
    while isinstance(parent, cst.Subscript) and parent.value is current:
        current, parent = parent, module.parents[parent]
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.AugAssign) and parent.target is current)


def _is_constant(values: Values, node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is a list of numbers."""
    if isinstance(node, (cst.List, cst.Tuple)):
        numbers = (cst.Integer, cst.Float, cst.UnaryOperation, cst.BinaryOperation)
        return all(isinstance(element.value, numbers) for element in node.elements)
    found: list[cst.CSTNode] = []
    if isinstance(node, cst.Attribute):
        found = list(held(values.module, node))
    elif isinstance(node, cst.Name):
        found = [binding.value for binding in values.module.lookup(node.value, node) if binding.value is not None]
    return bool(found) and all(
        isinstance(value, (cst.List, cst.Tuple)) and _is_constant(values, value) for value in found
    )


def _glue_after(values: Values, name: str, loop: cst.For) -> cst.Call | None:
    """Return the call outside of ``loop`` that makes one tensor of the list ``name``."""
    inside = set(find(loop, cst.Name))
    for use in values.uses(name.rpartition(".")[2]):
        if use in inside:
            continue
        whole: cst.CSTNode = use
        parent = values.module.parents.get(use)
        if isinstance(parent, cst.Attribute) and dotted(parent) == name:
            whole = parent
        glue = glue_around(values, whole)
        if glue is not None:
            return glue
    return None


def glue_around(values: Values, node: cst.CSTNode) -> cst.Call | None:
    """Return the call that stacks, concatenates or sums the list ``node``."""
    argument = values.module.parents.get(node)
    call = values.module.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not argument:
        return None
    if _name_of(call) in ("tuple", "list"):
        return glue_around(values, call)
    if _name_of(call) == "sum":
        return call
    last = (values.operator(call) or "").rpartition(".")[2]
    return call if last in GLUING_OPERATORS or last in REDUCING_OPERATORS else None


def _name_of(call: cst.Call) -> str:
    return call.func.value if isinstance(call.func, cst.Name) else ""


def operators_run(values: Values, call: cst.Call) -> set[str]:
    """Return the names of what ``call`` runs, through the project's functions and Cells."""
    module = values.module
    name = values.operator(call)
    targets = {name} if name else set()
    if isinstance(call.func, cst.Attribute):
        for value in held(module, call.func):
            if isinstance(value, cst.Call):
                targets.add(module.resolve(value.func) or "")
    called = function_called(module, call)
    owner = owner_of(module, called) if called is not None else None
    found: set[str] = set()
    if called is not None and owner is not None:
        for inner in find(called.body, cst.Call):
            operator = values_of(module, called).operator(inner)
            found.add(operator or "")
            if isinstance(inner.func, cst.Attribute):
                found.add(f".{inner.func.attr.value}")
    elif called is not None:
        targets.add(f"{module.source.path.absolute()}:{called.name.value}")
    for target in targets:
        found |= operators_of(module.program, target) if ".py:" in target else {target}
    return found


def _is_per_row(name: str) -> bool:
    last = name.rpartition(".")[2]
    on_host = name.startswith(("numpy.random.", "scipy.", "cv2.", "random.")) or (
        name.startswith(".") and last in HOST_METHODS
    )
    return last in _PER_ROW or on_host or name.endswith(" =")


def read_names(node: cst.CSTNode) -> Iterator[str]:
    """Yield the variables, and attributes of variables, that ``node`` reads."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Attribute):
            name = dotted(current)
            if name is not None and name.count(".") == 1 and name.startswith("self."):
                yield name
            else:
                stack.append(current.value)
        elif isinstance(current, cst.Name):
            yield current.value
        elif isinstance(current, cst.Arg):
            stack.append(current.value)
        else:
            stack.extend(children(current))


def _target_names(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, (cst.Name, cst.Attribute)):
        name = dotted(target)
        if name is not None:
            yield name
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _target_names(element.value)
    elif isinstance(target, cst.StarredElement):
        yield from _target_names(target.value)


def touches(node: cst.CSTNode, rows: Sequence[cst.Subscript], names: Set[str]) -> bool:
    """Tell whether ``node`` computes with one of ``rows`` or of ``names``; what only asks for their shape does not count."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Call) and _name_of(current) == "len":
            continue
        if isinstance(current, cst.Attribute):
            if current.attr.value in ("shape", "ndim", "dtype"):
                continue
            if dotted(current) in names:
                return True
            stack.append(current.value)
        elif isinstance(current, cst.Arg):
            stack.append(current.value)
        elif current in rows or (isinstance(current, cst.Name) and current.value in names):
            return True
        else:
            stack.extend(children(current))
    return False


def _mentions(node: cst.CSTNode, names: list[str]) -> bool:
    return any(name in names for name in read_names(node))
