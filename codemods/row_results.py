"""What a loop over rows makes of its results, and what does the same to the results of all rows at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from codemods.base import Manual
from codemods.row_function import RowFunction
from mslint.semantics.extents import called
from mslint.semantics.flow import held
from mslint.semantics.formula import operator_of
from mslint.semantics.module import Binding, Module, dotted, find, walk
from mslint.semantics.reaching import reaching
from mslint.semantics.rows import Gathered, How, RowLoop, glue_around
from mslint.semantics.tensors import Values

_STACKING = frozenset(["stack", "Stack", "Pack", "pack"])
_CONCATENATING = frozenset(["concat", "Concat", "cat", "concatenate"])
_ADDING_UP = frozenset(["addn", "AddN", "accumulate_n", "AccumulateNV2", "sum"])
_CASTS = ("astype", "cast", "to")
_SAME_TYPE = (
    "sum",
    "prod",
    "max",
    "min",
    "amax",
    "amin",
    "abs",
    "reducesum",
    "square",
    "reshape",
    "squeeze",
    "flatten",
)
_WHOLE = frozenset(
    """
    int long bool all any argmax argmin countnonzero equal notequal less lessequal greater greaterequal eq ne lt le gt ge
    logicalnot logicaland logicalor isnan isinf isfinite
    """.split()  # noqa: SIM905
)
_HALF = re.compile(r"float16|bfloat16|\bhalf\b")
_ELSEWHERE = {
    How.GROWN: "the results grow by a concatenation in each round: collect them in a list and concatenate once afterwards",
    How.STORED: "the results are stored row by row, in place: collect them in a list and stack it afterwards",
    How.SELECTED: "each round selects into what earlier rounds left: compute all rows first, then select once",
}


@dataclass(frozen=True)
class Glue:
    """A call that makes one tensor of the list of results: the axis that the rows shall lie on, and what is done then."""

    call: cst.Call
    axis: int
    ending: str


@dataclass(frozen=True)
class Result:
    """One result of each round: its text in the row function and what collects it."""

    gathered: Gathered
    text: str
    column: int
    """Where that text starts in its line, from 0."""
    initial: cst.Assign | None = None
    """The statement that starts the list, or sets the sum to zero, and is not needed any more."""
    glues: tuple[Glue, ...] = ()
    subtracted: bool = False

    @property
    def axis(self) -> int:
        """The axis of the result that the rows lie on."""
        return self.glues[0].axis if self.glues else 0


def check_results(loop: RowLoop) -> None:
    """Raise ``Manual`` if results are collected in a way that ties the rounds together."""
    for gathered in loop.gathered:
        if gathered.how in _ELSEWHERE:
            raise Manual(_ELSEWHERE[gathered.how])


def read_results(function: RowFunction) -> list[Result]:
    """Return what each round of the loop gives; raise ``Manual`` if that is used in a way that cannot be rewritten."""
    module, values, loop = function.module, function.values, function.loop
    if not isinstance(loop.node, cst.For):
        glue = loop.gathered[0].glue
        assert glue is not None
        elt = loop.node.elt
        glues = (_read_glue(module, values, glue),)
        return [Result(loop.gathered[0], function.code(elt), module.start(elt).column - 1, glues=glues)]
    results = []
    for gathered in loop.gathered:
        if "." in gathered.name:
            raise Manual(f"the results are kept in the attribute `{gathered.name}`: collect them in a variable")
        read = _listed if gathered.how is How.LISTED else _added
        results.append(read(function, loop.node, gathered))
    return results


def type_doubts(function: RowFunction, results: list[Result]) -> list[str]:
    """Return what must hold for the sum over the rows to have the type, and the range, of one that is added up one by one.

    Measured on 2.10.0: ``0.0`` plus rows of int32 is float32 and ``.sum(0)`` of them int64; rows of float16 that are added to
    a float32 tensor do not overflow where their own sum does.
    """
    doubts = []
    for result in results:
        added = result.gathered.how is How.ADDED
        if not added and not any(glue.ending == ".sum(0)" for glue in result.glues):
            continue
        value = result.gathered.value
        if _is_whole(function.module, value):
            doubts.append("that a sum of whole numbers or truth values may become an int64")
        elif added and result.initial is None and _HALF.search(function.module.code(function.body)):
            doubts.append(
                f"that the sum over the rows does not leave float16, whatever type `{result.gathered.name}` has"
            )
    return list(dict.fromkeys(doubts))


def _is_whole(module: Module, node: cst.CSTNode, depth: int = 8) -> bool:
    """Tell whether ``node`` shows to hold whole numbers or truth values."""
    if isinstance(node, cst.Comparison):
        return True
    if isinstance(node, cst.Name) and depth:
        bound = reaching(module, node)
        return len(bound) == 1 and bound[0].value is not None and _is_whole(module, bound[0].value, depth - 1)
    if isinstance(node, cst.UnaryOperation):
        return _is_whole(module, node.expression, depth)
    if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.Divide):
        sides = (node.left, node.right)
        return any(_is_whole(module, side, depth) for side in sides) and all(
            isinstance(side, cst.Integer) or _is_whole(module, side, depth) for side in sides
        )
    if not isinstance(node, cst.Call):
        return False
    name = called(module, node)
    if name in _CASTS:
        types = [module.resolve(argument.value) or "" for argument in node.args]
        return any(kind.startswith(("mindspore.int", "mindspore.uint", "mindspore.bool")) for kind in types)
    if name in _SAME_TYPE:
        is_method = isinstance(node.func, cst.Attribute) and operator_of(module, node)[0] is None
        operand = node.func.value if is_method and isinstance(node.func, cst.Attribute) else node.args[0].value
        return _is_whole(module, operand, depth)
    return name in _WHOLE


def _listed(function: RowFunction, loop: cst.For, gathered: Gathered) -> Result:
    module, values = function.module, function.values
    value = gathered.value
    if isinstance(gathered.node, cst.Expr):
        assert isinstance(gathered.node.value, cst.Call)
        assert isinstance(gathered.node.value.func, cst.Attribute)
        if gathered.node.value.func.attr.value != "append":
            raise Manual(f"`{gathered.name}` gets several results a round")
    else:
        if not isinstance(value, (cst.Tuple, cst.List)) or len(value.elements) != 1:
            raise Manual(f"`{gathered.name}` gets several results a round")
        value = value.elements[0].value
    inside = set(find(loop, cst.Name))
    uses = [use for use in values.uses(gathered.name) if use not in inside]
    initial: cst.Assign | None = None
    glues: list[Glue] = []
    counted = False
    for use in uses:
        bound = _binding_at(module, use)
        if bound is not None:
            if initial is None and _starts(module, bound, loop) and _is_empty(bound.value):
                initial = bound
            continue
        reaching = {binding.node for binding in values.reaching(use)} - set(walk(loop))
        if initial is None or initial not in reaching:
            continue
        argument = module.parents[use]
        call = module.parents[argument] if isinstance(argument, cst.Arg) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "len":
            counted = True
            continue
        glue = glue_around(values, use)
        if glue is None or reaching != {initial}:
            raise Manual(
                f"the list `{gathered.name}` is also used in row {module.start(use).row}, other than to be glued together"
            )
        glues.append(_read_glue(module, values, glue))
    if initial is None:
        raise Manual(
            f"the list `{gathered.name}` does not start empty, in a statement of its own, right before the loop"
        )
    if not glues or len({glue.axis for glue in glues}) > 1:
        raise Manual(f"the list `{gathered.name}` is glued together along several axes")
    if counted and glues[0].axis != 0:
        raise Manual(f"`len({gathered.name})` counts the rows: use the length of the tensor's axis")
    return Result(gathered, function.code(value), module.start(value).column - 1, initial, tuple(glues))


def _binding_at(module: Module, use: cst.Name) -> cst.Assign | None:
    target = module.parents[use]
    assign = module.parents[target] if isinstance(target, cst.AssignTarget) else None
    return assign if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None


def _starts(module: Module, assign: cst.Assign, loop: cst.For) -> bool:
    """Tell whether ``assign`` is a statement of its own before ``loop`` in the same block."""
    line = module.parents[assign]
    return (
        isinstance(line, cst.SimpleStatementLine)
        and len(line.body) == 1
        and module.parents[line] is module.parents[loop]
        and module.start(line) < module.start(loop)
    )


def _is_empty(value: cst.BaseExpression) -> bool:
    if isinstance(value, (cst.List, cst.Tuple)):
        return not value.elements
    return (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Name)
        and value.func.value in ("list", "tuple")
        and not value.args
    )


def _added(function: RowFunction, loop: cst.For, gathered: Gathered) -> Result:
    text, subtracted, name = _addend(function, gathered)
    column = function.module.start(gathered.value).column - 1
    return Result(gathered, text, column, _zero(function, loop, name), subtracted=subtracted)


def _addend(function: RowFunction, gathered: Gathered) -> tuple[str, bool, cst.Name]:
    """Return the text of what a round adds, whether it subtracts it, and where the statement names the sum."""
    node = gathered.node
    if isinstance(node, cst.AugAssign):
        assert isinstance(node.target, cst.Name)
        if not isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign)):
            raise Manual(_product(gathered.name))
        return function.code(node.value), isinstance(node.operator, cst.SubtractAssign), node.target
    assert isinstance(node, cst.Assign)
    value = node.value
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply):
        if any(isinstance(side, cst.Name) and side.value == gathered.name for side in (value.left, value.right)):
            raise Manual(_product(gathered.name))
    if isinstance(value, cst.BinaryOperation):
        return _from_sum(function, value, gathered.name)
    if isinstance(value, cst.Call) and len(value.args) == 2:
        last = (function.values.operator(value) or "").rpartition(".")[2].lower()
        first, second = (argument.value for argument in value.args)
        if (
            last in ("add", "tensoradd", "sub", "subtract")
            and isinstance(first, cst.Name)
            and first.value == gathered.name
        ):
            return function.code(second), last.startswith("sub"), first
    raise Manual(
        f"how a round adds to `{gathered.name}` is not understood: write `{gathered.name} = {gathered.name} + ...`"
    )


def _product(name: str) -> str:
    return f"`{name}` is a product over the rows: collect the factors and use `ops.prod`"


def _from_sum(function: RowFunction, value: cst.BinaryOperation, name: str) -> tuple[str, bool, cst.Name]:
    """Read ``name + a``, ``a + name``, ``name - a``, and ``name + a - b``."""
    right = value.right
    if isinstance(value.operator, cst.Add) and isinstance(right, cst.Name) and right.value == name:
        return function.code(value.left), False, right
    leftmost: cst.BaseExpression = value
    first = value
    while isinstance(leftmost, cst.BinaryOperation):
        first, leftmost = leftmost, leftmost.left
        if not isinstance(first.operator, (cst.Add, cst.Subtract)) or (first is not value and first.lpar):
            raise Manual(f"how a round adds to `{name}` is not understood: write `{name} = {name} + ...`")
    if not isinstance(leftmost, cst.Name) or leftmost.value != name:
        raise Manual(f"how a round adds to `{name}` is not understood: write `{name} = {name} + ...`")
    subtracts = isinstance(first.operator, cst.Subtract)
    if first is value:
        return function.code(right), subtracts, leftmost
    # A node in brackets starts behind its first one, and ends before its last one.
    opening = first.right.lpar[0] if first.right.lpar else first.right
    closing = right.rpar[-1] if right.rpar else right
    rest = function.text(function.module.start(opening), function.module.end(closing))
    return f"-{rest}" if subtracts else rest, False, leftmost


def _zero(function: RowFunction, loop: cst.For, name: cst.Name) -> cst.Assign | None:
    """Return the statement that sets the sum to zero before ``loop``, if nothing else can have set or read it since."""
    module, values = function.module, function.values
    before = [binding for binding in values.reaching(name) if loop not in module.ancestors(binding.node)]
    if len(before) != 1 or not isinstance(before[0].node, cst.Assign) or not _starts(module, before[0].node, loop):
        return None
    initial = before[0].node
    number = initial.value
    if len(initial.targets) != 1 or not isinstance(number, (cst.Integer, cst.Float)) or float(number.value) != 0:
        return None
    between = (module.end(initial), module.start(loop))
    read = any(between[0] <= module.start(use) < between[1] for use in values.uses(name.value))
    return None if read else initial


def _read_glue(module: Module, values: Values, call: cst.Call) -> Glue:
    name = values.operator(call)
    last = (name or "").rpartition(".")[2]
    if name is None and isinstance(call.func, cst.Name):
        last = call.func.value
    if last in _ADDING_UP and len(call.args) == 1:
        return Glue(call, 0, ".sum(0)")
    if last in _STACKING:
        return Glue(call, _axis(module, values, call, last), "")
    if last in _CONCATENATING:
        axis = _axis(module, values, call, last)
        start, end = (axis, axis + 1) if axis >= 0 else (axis - 1, axis)
        return Glue(call, start, f".flatten(start_dim={start}, end_dim={end})")
    raise Manual(f"the results are glued together by `{module.code(call.func)}`: stack them and reduce the stack")


def _axis(module: Module, values: Values, call: cst.Call, last: str) -> int:
    """Return the axis that ``call`` glues along."""
    arguments = call.args[1:]
    if last[0].isupper():
        built = built_operator(module, values, call)
        if built is None:
            raise Manual(f"where `{module.code(call.func)}` is built is not seen")
        arguments = built.args
    if not arguments:
        return 0
    if len(arguments) == 1 and (arguments[0].keyword is None or arguments[0].keyword.value in ("axis", "dim")):
        number = module.code(arguments[0].value).replace(" ", "")
        if number.lstrip("-").isdecimal():
            return int(number)
    raise Manual(f"the axis of `{module.code(call)}` is no number")


def built_operator(module: Module, values: Values, call: cst.Call) -> cst.Call | None:
    """Return the call that builds the operator that ``call`` applies."""
    if isinstance(call.func, cst.Call):
        return call.func
    built: list[cst.CSTNode | None] = []
    if isinstance(call.func, cst.Attribute):
        built = list(held(module, call.func))
    elif isinstance(call.func, cst.Name):
        bindings: list[Binding] = values.reaching(call.func)
        built = [binding.value for binding in bindings]
    return built[0] if len(built) == 1 and isinstance(built[0], cst.Call) else None


def names_read_after(function: RowFunction) -> list[str]:
    """Return the variables of a round that are read after the loop."""
    module, values, loop = function.module, function.values, function.loop.node
    if not isinstance(loop, cst.For):
        return []
    inside = set(walk(loop))
    targets = [name.value for name in find(loop.target, cst.Name)]
    found = []
    for name in sorted({*function.loop.local, *targets}):
        for use in values.uses(name):
            if use in inside or dotted(use) is None or module.start(use) < module.start(loop):
                continue
            if _binding_at(module, use) is None and any(binding.node in inside for binding in values.reaching(use)):
                found.append(name)
                break
    return found
