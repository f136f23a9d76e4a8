"""One notation for every spelling of a computation, and what the names in it stand for, across methods, classes and files.

``x / y``, ``ops.div(x, y)``, ``self.div(x, y)`` with ``ops.Div()`` in ``self.div``, and ``x.div(y)`` are all ``divide``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import libcst as cst

from mslint.semantics.cells import CellClass, is_self, method_of, self_name
from mslint.semantics.flow import function_called, held, lineage_here, owner_of, passed, returned
from mslint.semantics.foreign import calls_named, class_at, function_at, home_of, users_of
from mslint.semantics.module import Binding, Module
from mslint.semantics.operations import SPELLINGS, operation_called
from mslint.semantics.reaching import reaching

_HOMES = (
    "mindspore.ops.",
    "mindspore.nn.",
    "mindspore.mint.",
    "mindspore.numpy.",
    "mindspore.Tensor",
    "mindspore.Parameter",
)
_BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.Power: "power",
    cst.AddAssign: "add",
    cst.SubtractAssign: "subtract",
    cst.MultiplyAssign: "multiply",
    cst.DivideAssign: "divide",
    cst.PowerAssign: "power",
}
_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
}
_OPERANDS = (
    "input",
    "x",
    "logits",
    "other",
    "y",
    "input_x",
    "condition",
    "min",
    "max",
    "min_value",
    "max_value",
    "clip_value_min",
    "clip_value_max",
)
FLOAT32_EPSILON = 2.0**-23
_MOST_STEPS = 400
_LONGEST = 60


@dataclass(frozen=True)
class Expression:
    """An expression of a file; with ``part``, one element of the tuple that it is."""

    module: Module
    node: cst.CSTNode
    part: int | None = None

    @property
    def row(self) -> int:
        """The row it starts in."""
        return self.module.start(self.node).row

    @property
    def code(self) -> str:
        """Its source text in one line, the middle left out if it is long."""
        text = " ".join(self.module.code(self.node).split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"

    @property
    def file(self) -> str:
        """The name of its file, without folders."""
        return self.module.source.path.name


@dataclass(frozen=True)
class Formula:
    """What is computed at the outside of ``expression``: ``operation`` on ``operands``; an empty operation is unknown."""

    expression: Expression
    operation: str = ""
    operands: tuple[Expression, ...] = ()
    built: tuple[cst.Arg, ...] = ()
    """The arguments that the operator was built with."""
    called: tuple[cst.Arg, ...] = ()
    """The arguments that it is called with, operands included."""

    @property
    def first(self) -> Expression:
        """The first operand."""
        return self.operands[0]

    def setting(self, *names: str) -> cst.BaseExpression | None:
        """Return the argument that is passed under one of the keywords ``names``."""
        for argument in (*self.built, *self.called):
            if argument.keyword is not None and argument.keyword.value in names:
                return argument.value
        return None


def read(expression: Expression) -> Formula:
    """Return the outermost operation of ``expression``."""
    known: dict[Expression, Formula] = expression.module.remember(read, dict)
    if expression not in known:
        known[expression] = _read(expression)
    return known[expression]


def _read(expression: Expression) -> Formula:
    module, node = expression.module, expression.node
    if isinstance(node, cst.BinaryOperation) and type(node.operator) in _BINARY:
        operands = (Expression(module, node.left), Expression(module, node.right))
        return Formula(expression, _BINARY[type(node.operator)], operands)
    if isinstance(node, cst.AugAssign) and type(node.operator) in _BINARY:
        operands = (Expression(module, node.target), Expression(module, node.value))
        return Formula(expression, _BINARY[type(node.operator)], operands)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return Formula(expression, "negative", (Expression(module, node.expression),))
    if isinstance(node, cst.Subscript):
        return Formula(expression, "index", (Expression(module, node.value),))
    if isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT"):
        return Formula(expression, "same", (Expression(module, node.value),))
    if isinstance(node, cst.Call):
        return _read_call(expression, node)
    return Formula(expression)


def _read_call(expression: Expression, call: cst.Call) -> Formula:
    module = expression.module
    # What stands behind a star cannot be counted.
    certain = takewhile(lambda argument: not argument.star, call.args)
    given = tuple(Expression(module, argument.value) for argument in certain if _is_operand(argument))
    name, built = operator_of(module, call)
    if name is not None:
        operation = name if name in SPELLINGS else _operation(name)
        return (
            Formula(expression, operation, given, built, tuple(call.args))
            if operation and given
            else Formula(expression)
        )
    function = call.func
    if isinstance(function, cst.Attribute):
        operation = operation_called(function.attr.value)
        # A method of a tensor: neither a function of another package nor a method of the project.
        if operation and not _is_own(module, function) and module.resolve(function) is None:
            owner = Expression(module, function.value)
            if not classes_of(owner, calls=0):
                return Formula(expression, operation, (owner, *given), (), tuple(call.args))
    return Formula(expression)


def _is_operand(argument: cst.Arg) -> bool:
    return argument.keyword is None or argument.keyword.value in _OPERANDS


def operator_of(module: Module, call: cst.Call) -> tuple[str | None, tuple[cst.Arg, ...]]:
    """Return the MindSpore operator, layer or function that ``call`` runs, and the arguments it was built with.

    ``ops.exp(x)``, ``ops.Exp()(x)``, ``exp = ops.Exp()``, ``self.exp = ops.Exp()``; of a layer that ends in an activation
    (``nn.SequentialCell``, ``nn.Dense(activation=...)``) the activation.
    """
    function = call.func
    for candidate in _callables(module, function):
        if isinstance(candidate, cst.Call):
            name = module.resolve(candidate.func)
            final = _final_activation(module, name, candidate)
            if final is not None:
                return final, ()
            if name is not None and name.startswith(_HOMES):
                return name, tuple(candidate.args)
        elif isinstance(candidate, (cst.Name, cst.Attribute)):
            name = module.resolve(candidate)
            if name is not None and name.startswith(_HOMES):
                return name, ()
    return None, ()


def _callables(module: Module, function: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """Yield the expressions that ``function`` may be, itself first."""
    yield function
    if isinstance(function, cst.Attribute):
        yield from held(module, function)
    elif isinstance(function, cst.Name):
        yield from (binding.value for binding in reaching(module, function) if binding.value is not None)


def _final_activation(module: Module, name: str | None, built: cst.Call) -> str | None:
    """Return the activation that the layer made by ``built`` ends with, as an operation, if it is one that matters."""
    if name is None or not name.startswith("mindspore.nn."):
        return None
    if name.endswith(".SequentialCell") and built.args:
        last: cst.BaseExpression = built.args[-1].value
        while isinstance(last, (cst.List, cst.Tuple)) and last.elements:
            last = last.elements[-1].value
        if isinstance(last, cst.Call):
            inner = module.resolve(last.func)
            operation = _operation(inner) if inner else ""
            return operation if operation in ("softmax", "sigmoid") else _final_activation(module, inner, last)
    for argument in built.args:
        if argument.keyword is not None and argument.keyword.value == "activation":
            value = argument.value.func if isinstance(argument.value, cst.Call) else argument.value
            if isinstance(value, cst.SimpleString):
                word = str(value.evaluated_value)
            else:
                word = _operation(module.resolve(value) or "")
            return word if word in ("softmax", "sigmoid") else None
    return None


def _operation(name: str) -> str:
    return operation_called(name.rpartition(".")[2]) if name.startswith(_HOMES) else ""


def _is_own(module: Module, function: cst.Attribute) -> bool:
    """Tell whether ``function`` is an attribute of the object itself: what it calls is then no method of a tensor."""
    method = method_of(module, function)
    return method is not None and is_self(function, self_name(method))


def values(expression: Expression, *, calls: int = 3, through: bool = True) -> tuple[Expression, ...]:
    """Return what ``expression`` may be once names, attributes, parameters and helper calls are replaced by what they hold.

    Conditional expressions give both sides. With ``through``, operations that keep each number as it is (reshape, cast,
    indexing ...) give what they are applied to. ``calls`` bounds how many calls are followed, inwards to what a function
    of the project returns or outwards to what its callers pass.
    """
    known: dict[object, tuple[Expression, ...]] = expression.module.remember(values, dict)
    key = (expression, calls, through)
    if key not in known:
        known[key] = tuple(_values(expression, calls, through))
    return known[key]


def _values(expression: Expression, calls: int, through: bool) -> Iterator[Expression]:
    seen: set[Expression] = set()
    stack = [(expression, calls)]
    while stack and len(seen) < _MOST_STEPS:
        current, left = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        following = list(_meant(current, left, through))
        if following:
            stack.extend(reversed(following))
        else:
            yield current


def _meant(current: Expression, calls: int, through: bool) -> Iterator[tuple[Expression, int]]:
    module, node = current.module, current.node
    if isinstance(node, cst.Name):
        for binding in reaching(module, node):
            yield from _bound(module, binding, node.value, current.part, calls)
        yield from ((item, calls) for item in _constant_elsewhere(module, node))
    elif isinstance(node, cst.Attribute):
        found = list(held(module, node)) or list(_class_level(module, node))
        yield from ((Expression(module, value, current.part), calls) for value in found)
        if not found:
            yield from ((item, calls) for item in _constant_elsewhere(module, node))
    elif isinstance(node, cst.IfExp):
        yield Expression(module, node.body, current.part), calls
        yield Expression(module, node.orelse, current.part), calls
    elif isinstance(node, cst.Tuple) and current.part is not None and current.part < len(node.elements):
        yield Expression(module, node.elements[current.part].value), calls
    elif isinstance(node, cst.Call):
        inside = callees(module, node) if calls else []
        for home, function in inside:
            for value in returned(home, function):
                yield Expression(home, value, current.part), calls - 1
        if not inside and through:
            formula = read(Expression(module, node))
            if formula.operation in ("same", "index"):
                yield formula.first, calls
    elif isinstance(node, cst.Subscript):
        index = _index(node)
        if index is not None and isinstance(node.value, (cst.Name, cst.Call)) and _is_tuple(module, node.value, calls):
            yield Expression(module, node.value, index), calls
        elif through:
            yield Expression(module, node.value), calls
    elif through and isinstance(node, cst.Attribute) and node.attr.value == "T":
        yield Expression(module, node.value), calls


def _index(node: cst.Subscript) -> int | None:
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        value = node.slice[0].slice.value
        if isinstance(value, cst.Integer):
            return int(value.value)
    return None


def _is_tuple(module: Module, node: cst.BaseExpression, calls: int) -> bool:
    """Tell whether ``node`` is visibly a tuple, so that an index picks one of several values."""
    if isinstance(node, cst.Call):
        found = callees(module, node) if calls else []
        return any(isinstance(value, cst.Tuple) for home, function in found for value in returned(home, function))
    if not isinstance(node, cst.Name):
        return False
    for value in (binding.value for binding in reaching(module, node)):
        if isinstance(value, cst.Tuple) or (isinstance(value, cst.Call) and _is_tuple(module, value, calls)):
            return True
    return False


def _bound(
    module: Module, binding: Binding, name: str, part: int | None, calls: int
) -> Iterator[tuple[Expression, int]]:
    node = binding.node
    if binding.value is not None:
        yield Expression(module, binding.value, part), calls
    elif isinstance(node, cst.AugAssign):
        yield Expression(module, node), calls
    elif isinstance(node, cst.Assign):
        for target in node.targets:
            if isinstance(target.target, (cst.Tuple, cst.List)):
                for index, element in enumerate(target.target.elements):
                    if isinstance(element.value, cst.Name) and element.value.value == name:
                        yield Expression(module, node.value, index), calls
    elif isinstance(node, (cst.For, cst.CompFor)):
        if isinstance(node.target, cst.Name):
            yield Expression(module, node.iter), calls
    elif isinstance(node, cst.Param):
        method = method_of(module, node)
        if method is not None and name == self_name(method):
            return
        if node.default is not None:
            yield Expression(module, node.default), calls
        if calls:
            for argument in arguments(module, node):
                yield argument, calls - 1


def _class_level(module: Module, node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """Yield what the class body assigns to the attribute of ``self`` that ``node`` is."""
    owner = owner_of(module, node)
    if owner is None or not _is_own(module, node):
        return
    for cell in lineage_here(module, owner):
        for binding in module.bindings.get(cell.node, {}).get(node.attr.value, []):
            if binding.value is not None:
                yield binding.value


def _constant_elsewhere(module: Module, node: cst.BaseExpression) -> Iterator[Expression]:
    """Yield what another file of the project assigns to the module-level name that ``node`` refers to."""
    reference = module.resolve(node)
    found = home_of(module, reference) if reference else None
    if found is None or found[0] is module:
        return
    home, name = found
    for binding in home.bindings[home.tree].get(name, []):
        if binding.value is not None:
            yield Expression(home, binding.value)


def callees(module: Module, call: cst.Call) -> list[tuple[Module, cst.FunctionDef]]:
    """Return the functions of the project that ``call`` runs: helpers, methods, and ``construct`` of the cells it calls."""
    known: dict[cst.Call, list[tuple[Module, cst.FunctionDef]]] = module.remember(callees, dict)
    if call not in known:
        known[call] = []  # what is found while the question is open must not ask it again
        known[call] = _callees(module, call)
    return known[call]


def _callees(module: Module, call: cst.Call) -> list[tuple[Module, cst.FunctionDef]]:
    here = function_called(module, call)
    if here is not None:
        return [(module, here)]
    function = call.func
    reference = module.resolve(function)
    if reference is not None:
        elsewhere = function_at(module, reference)
        return [elsewhere] if elsewhere is not None else []
    if isinstance(function, cst.Attribute):
        owner = owner_of(module, function) if _is_own(module, function) else None
        # A method of a base class in another file, or one of an object whose class is known.
        holders = (
            bases_elsewhere(module, owner) if owner is not None else classes_of(Expression(module, function.value))
        )
        for cell in holders:
            if function.attr.value in cell.methods:
                return [(cell.module, cell.methods[function.attr.value])]
    return [
        (cell.module, cell.methods["construct"])
        for cell in classes_of(Expression(module, function))
        if "construct" in cell.methods
    ]


def bases_elsewhere(module: Module, owner: CellClass) -> list[CellClass]:
    """Return the bases of ``owner`` that other files of the project define, nearest first."""
    found = (class_at(module, base) for base in owner.lineage if ".py:" in base)
    return [cell for cell in found if cell is not None and cell.module is not module]


def classes_of(expression: Expression, *, calls: int = 2) -> list[CellClass]:
    """Return the classes of the project that the object ``expression`` may be an instance of."""
    found = []
    for value in values(expression, calls=calls, through=False):
        if isinstance(value.node, cst.Call):
            reference = value.module.resolve(value.node.func)
            cell = class_at(value.module, reference) if reference else None
            if cell is not None and cell not in found:
                found.append(cell)
    return found


def arguments(module: Module, parameter: cst.Param) -> list[Expression]:
    """Return what the program's calls pass for ``parameter`` of a function or method."""
    known: dict[cst.Param, list[Expression]] = module.remember(arguments, dict)
    if parameter not in known:
        known[parameter] = []
        known[parameter] = list(_arguments(module, parameter))
    return known[parameter]


def _arguments(module: Module, parameter: cst.Param) -> Iterator[Expression]:
    function = module.scope(parameter)
    if not isinstance(function, cst.FunctionDef):
        return
    names = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
    if method_of(module, function) is function:
        names = names[1:]
    for home, call in callers(module, function):
        value = passed(call, names, parameter.name.value)
        if value is not None:
            yield Expression(home, value)


def callers(module: Module, function: cst.FunctionDef) -> Iterator[tuple[Module, cst.Call]]:
    """Yield the calls in the program that are seen to run ``function``, with their files."""
    owner = owner_of(module, function) if method_of(module, function) is function else None
    name = function.name.value
    for home in users_of(module, owner.name if owner is not None else name):
        if owner is not None and name == "__init__":
            yield from ((home, call) for call in calls_named(home, owner.name) if _builds(home, call, owner))
            continue
        candidates = [(home, call) for call in calls_named(home, name)]
        if owner is not None and name == "construct":
            candidates = [*((home, call) for call in _instance_calls(home, owner)), *_handed_on(home, owner)]
        for place, call in dict.fromkeys(candidates):
            if (module, function) in callees(place, call):
                yield place, call


def _builds(home: Module, call: cst.Call, owner: CellClass) -> bool:
    reference = home.resolve(call.func)
    return reference is not None and class_at(home, reference) is owner


def _instance_calls(home: Module, owner: CellClass) -> Iterator[cst.Call]:
    """Yield the calls of what instances of ``owner`` are assigned to, and of instances on the spot."""
    for built in calls_named(home, owner.name):
        parent = home.parents[built]
        if isinstance(parent, cst.Call) and parent.func is built:
            yield parent
        for name in _names_of(home, built):
            yield from calls_named(home, name)


def _names_of(home: Module, built: cst.Call) -> Iterator[str]:
    parent = home.parents[built]
    if isinstance(parent, cst.Assign):
        for target in parent.targets:
            if isinstance(target.target, cst.Name):
                yield target.target.value
            elif isinstance(target.target, cst.Attribute):
                yield target.target.attr.value


def _handed_on(home: Module, owner: CellClass) -> Iterator[tuple[Module, cst.Call]]:
    """Yield the calls, in other cells, of the attribute that keeps an instance of ``owner`` given to their constructor."""
    for built in calls_named(home, owner.name):
        names = set(_names_of(home, built))
        for call in home.calls:
            given = [item for item in call.args if item.value is built or getattr(item.value, "value", None) in names]
            reference = home.resolve(call.func) if given else None
            keeper = class_at(home, reference) if reference else None
            constructor = keeper.methods.get("__init__") if keeper is not None else None
            if keeper is None or constructor is None:
                continue
            parameters = [param.name.value for param in constructor.params.params]
            for attribute, kept in keeper.assigned.items():
                if any(isinstance(item.value, cst.Name) and item.value.value in parameters for item in kept):
                    yield from ((keeper.module, use) for use in calls_named(keeper.module, attribute))


def elements(expression: Expression) -> tuple[Expression, ...]:
    """Return the elements of a list or tuple; anything else as its only one."""
    node = expression.node
    if isinstance(node, (cst.List, cst.Tuple)):
        return tuple(Expression(expression.module, element.value) for element in node.elements)
    return (expression,)


def numbers(expression: Expression, *, calls: int = 0) -> tuple[float, ...]:
    """Return the numbers that ``expression`` may be, as far as they are written in the program.

    Defaults of parameters count; what callers pass only as far as ``calls`` allows.
    """
    known: dict[object, tuple[float, ...]] = expression.module.remember(numbers, dict)
    key = (expression, calls)
    if key not in known:
        known[key] = ()
        known[key] = tuple(_numbers(expression, calls))
    return known[key]


def _numbers(expression: Expression, calls: int) -> Iterator[float]:
    for value in values(expression, calls=calls, through=False):
        node = value.node
        if isinstance(node, (cst.Integer, cst.Float)):
            yield float(node.evaluated_value)
        elif isinstance(node, cst.Call) and _called(node) == "float" and len(node.args) == 1:
            yield from numbers(Expression(value.module, node.args[0].value))
        elif isinstance(node, cst.Attribute) and node.attr.value == "eps" and isinstance(node.value, cst.Call):
            if _called(node.value) == "finfo":
                yield FLOAT32_EPSILON
        elif isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.Call)):
            formula = read(value)
            if formula.operation == "same":
                yield from numbers(formula.first)
            elif formula.operation in _ARITHMETIC:
                yield from _calculated(formula)


def _calculated(formula: Formula) -> Iterator[float]:
    parts = [numbers(operand) for operand in formula.operands]
    if all(len(set(part)) == 1 for part in parts):
        try:
            yield _ARITHMETIC[formula.operation](*(part[0] for part in parts))
        except (ArithmeticError, ValueError, TypeError):
            return


def _called(call: cst.Call) -> str:
    function = call.func
    return function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")


def same(one: Expression, other: Expression) -> bool:
    """Tell whether two expressions are the same numbers, reshaped or cast perhaps: one variable, one formula on it."""
    return _key(one, 6) == _key(other, 6)


def _key(expression: Expression, depth: int) -> object:
    module, node = expression.module, expression.node
    if depth == 0:
        return id(node)
    formula = read(expression)
    if formula.operation == "same":
        return _key(formula.first, depth)
    if formula.operation == "index":
        return (_key(formula.first, depth), module.code(node))
    if isinstance(node, cst.Name):
        bound = reaching(module, node)
        if len(bound) == 1 and bound[0].value is not None:
            return _key(Expression(module, bound[0].value), depth - 1)
        return (node.value, *(id(binding.node) for binding in bound))
    if formula.operation:
        return (formula.operation, *(_key(operand, depth - 1) for operand in formula.operands))
    if isinstance(node, (cst.Attribute, cst.Integer, cst.Float)):
        return module.code(node)
    return id(node)
