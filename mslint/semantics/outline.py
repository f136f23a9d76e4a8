"""A file as Python's own parser shows it: what its names may be given, and which operations it may compute.

That costs a tenth of what ``formula`` is told by libcst's tree, and says less: where ``formula`` follows a name to the
assignments that reach it, here all that the file assigns to anything of that name counts, and what comes from another file
may be any number. An operator is known by its name, also one that another file of the project hands on.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache, cached_property
from itertools import product
from math import nan
from typing import Any

from mslint.semantics.operations import operation_called

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_EXTERNAL = frozenset({"numpy", "scipy", "math", "torch", "cv2", "os", "sys"})
"""Packages that hand on neither operators of MindSpore nor numbers of the project."""
_ARITHMETIC: dict[type[ast.AST], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.Pow: ("power", operator.pow),
}
_CALCULATING = frozenset({"negative", *(name for name, _ in _ARITHMETIC.values())})
_NUMERIC = (ast.Constant, ast.Name, ast.Attribute, ast.IfExp, ast.Tuple, ast.Subscript, ast.UnaryOp, ast.BinOp)
_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in ("ctx", "op", "ops", "id", "attr", "arg", "name"))
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind is not ast.Constant
}
"""Where nodes hold others: asked for these alone, a tree is walked three times as fast as by ``ast.walk``."""
_MOST_NUMBERS = 30
_MOST_ROUNDS = 8


class Part:
    """A function with all inside it, or what of a file stands in none."""

    def __init__(self, root: ast.Module | Definition) -> None:
        self.root = root
        self.formulas: list[ast.AST] = []
        """Its operations and calls."""
        self.is_construct = False


class Outline:
    """What the names of a file may be given, and what it may compute, from one walk of its ``tree``."""

    def __init__(self, tree: ast.Module) -> None:
        self.parameters: set[str] = set()
        self.returned: list[tuple[ast.expr, Part]] = []
        self.parts = [Part(tree)]
        self._given: dict[str, list[ast.AST]] = {}
        """What names and attributes get, from assignments, defaults and loops."""
        self._imports: dict[str, list[str]] = {}
        """The dotted names of what is imported under a name."""
        self._external: set[str] = set()
        self._defined: set[str] = set()
        self._has_star = False
        self._operations: dict[ast.AST, set[str]] = {}
        self._foreign: dict[str, bool] = {}
        for part in self.parts:
            self._walk(part)
        self._external -= self.parameters | self._defined | self._given.keys() | self._imports.keys()
        self.formulas = [formula for part in self.parts for formula in part.formulas]

    def _walk(self, part: Part) -> None:
        stack: list[Any] = [part.root]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind in _VISITS:
                _VISITS[kind](self, node, part)
                if isinstance(node, Definition) and part is self.parts[0]:
                    self.parts.append(Part(node))
                    continue
            for field in _FIELDS.get(kind, ()):
                value = getattr(node, field)
                if type(value) is list:
                    stack += value
                elif value is not None:
                    stack.append(value)

    def _formula(self, node: ast.BinOp | ast.Call, part: Part) -> None:
        part.formulas.append(node)

    def _augmented(self, node: ast.AugAssign, part: Part) -> None:
        part.formulas.append(node)
        self._bind(node.target, node)
        if isinstance(node.target, ast.Attribute):
            self._bind(node.target, node.value)

    def _return(self, node: ast.Return, part: Part) -> None:
        if node.value is not None:
            self.returned.append((node.value, part))

    def _assign(self, node: ast.Assign, part: Part) -> None:
        for target in node.targets:
            self._bind(target, node.value)

    def _assign_one(self, node: ast.AnnAssign | ast.NamedExpr, part: Part) -> None:
        if node.value is not None:
            self._bind(node.target, node.value)

    def _loop(self, node: ast.For | ast.comprehension, part: Part) -> None:
        self._bind(node.target, node.iter)

    def _function(self, node: Definition, part: Part) -> None:
        self._defined.add(node.name)
        part.is_construct |= node.name == "construct"

    def _class(self, node: ast.ClassDef, part: Part) -> None:
        self._defined.add(node.name)

    def _arguments(self, node: ast.arguments, part: Part) -> None:
        positional = node.posonlyargs + node.args
        self.parameters.update(argument.arg for argument in (*positional, *node.kwonlyargs))
        late = positional[len(positional) - len(node.defaults) :]
        for argument, default in zip([*late, *node.kwonlyargs], [*node.defaults, *node.kw_defaults], strict=True):
            if default is not None:
                self._given.setdefault(argument.arg, []).append(default)

    def _import(self, node: ast.Import, part: Part) -> None:
        for name in node.names:
            # ``import a.b`` binds ``a``.
            self._import_as(
                name.asname or name.name.partition(".")[0], name.name if name.asname else name.name.partition(".")[0]
            )

    def _import_from(self, node: ast.ImportFrom, part: Part) -> None:
        home = "." * node.level + (node.module or "")
        for name in node.names:
            if name.name != "*":
                self._import_as(name.asname or name.name, f"{home}.{name.name}")
            elif home.partition(".")[0] not in _EXTERNAL:
                self._has_star = True

    def _import_as(self, name: str, dotted: str) -> None:
        if dotted.partition(".")[0] in _EXTERNAL:
            self._external.add(name)
        else:
            self._imports.setdefault(name, []).append(dotted)

    def _bind(self, target: ast.expr, value: ast.AST) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._bind(element, value)
        elif isinstance(target, (ast.Name, ast.Attribute)):
            self._given.setdefault(last_name(target), []).append(value)

    def meanings(self, expression: ast.AST, *, through: bool = True) -> Iterator[ast.AST]:
        """Yield what ``expression`` may be, itself first, as far as names of the file, conditions and tuples show it.

        With ``through``, reshapes, casts, indices and the like give what they are applied to as well.
        """
        seen: set[str] = set()
        stack = [expression]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, (ast.Name, ast.Attribute)):
                name = last_name(node)
                if name not in seen:
                    seen.add(name)
                    stack += self._given.get(name, ())
                if through and isinstance(node, ast.Attribute) and name in ("T", "mT"):
                    stack.append(node.value)
            elif isinstance(node, ast.IfExp):
                stack += (node.body, node.orelse)
            elif isinstance(node, ast.Tuple):
                stack += node.elts
            elif isinstance(node, ast.Subscript):
                stack.append(node.value)
            elif through and isinstance(node, ast.Call) and self.operations(node) & {"same", "index"}:
                stack += first_operands(node)

    def operations(self, node: ast.AST) -> set[str]:
        """Return what ``node`` may compute: of a call, what anything of the names that it runs may."""
        if node not in self._operations:
            if isinstance(node, ast.Call):
                self._operations[node] = self._called(node)
            elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _ARITHMETIC:
                self._operations[node] = {_ARITHMETIC[type(node.op)][0]}
            else:
                is_minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
                self._operations[node] = {"negative"} if is_minus else set()
        return self._operations[node]

    def _called(self, call: ast.Call) -> set[str]:
        found: set[str] = set()
        for node in self.callables(call):
            if isinstance(node, ast.Name):
                found.update(_operation(dotted.rpartition(".")[2]) for dotted in self._imports.get(node.id, ()))
                if self._is_from_star(node.id):
                    found.add(_operation(node.id))
            # What is called on the object itself is what it holds under that name.
            elif _root(node) not in self._external and not _is_name(node.value, "self"):
                found.add(_operation(node.attr))
        found.discard("")
        return found

    def callables(self, call: ast.Call) -> Iterator[ast.Name | ast.Attribute]:
        """Yield the names and attributes that ``call`` may run, or that are called to make what it runs."""
        seen: set[str] = set()
        stack: list[ast.AST] = [call]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Call):
                stack.append(node.func)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                yield node
                name = last_name(node)
                if name not in seen and (isinstance(node, ast.Name) or isinstance(node.value, ast.Name)):
                    seen.add(name)
                    stack += self._given.get(name, ())

    def names(self, node: ast.AST) -> set[str]:
        """Return the last name of ``node`` and, of an imported one, those that it has where it comes from."""
        dotted = self._imports.get(node.id, ()) if isinstance(node, ast.Name) else ()
        return {last_name(node), *(name.rpartition(".")[2] for name in dotted)}

    def imported(self, node: ast.AST) -> str | None:
        """Return the dotted name of what is imported and called ``node`` here, if that can be nothing else."""
        root = _root(node)
        dotted = self._imports.get(root, ())
        if len(dotted) != 1 or any(root in names for names in (self._given, self.parameters, self._defined)):
            return None
        return dotted[0] + ast.unparse(node)[len(root) :]

    def runs_operators(self, part: Part) -> bool:
        """Tell whether ``part`` may call an operator of MindSpore, or is run as a Cell."""
        if part.is_construct:
            return True
        formulas = self.formulas if part is self.parts[0] else part.formulas
        calls = (item for item in formulas if isinstance(item, ast.Call))
        return any(
            root in self._imports or self._is_from_star(root)
            for call in calls
            for node in self.callables(call)
            for root in self._names(_root(node))
        )

    def runs_project(self, call: ast.Call) -> bool:
        """Tell whether ``call`` may run a function of the project."""
        callables = list(self.callables(call))
        if any(last_name(node) in self._defined or self.is_from_project(node) for node in callables):
            return True
        return not self.operations(call) and (not callables or any(self._is_own(_root(node)) for node in callables))

    def _is_own(self, name: str) -> bool:
        """Tell whether ``name`` may hold an object of the project; one that is empty stands for what has no name."""
        return not name or name in self.parameters or name in self._given

    def is_from_project(self, node: ast.AST) -> bool:
        """Tell whether ``node`` may name something of another file of the project, or be an attribute of it."""
        name = _root(node)
        if name not in self._foreign:
            self._foreign[name] = any(
                self._is_from_star(root)
                or any(dotted.partition(".")[0] != "mindspore" for dotted in self._imports.get(root, ()))
                for root in self._names(name)
            )
        return self._foreign[name]

    def _is_from_star(self, name: str) -> bool:
        return self._has_star and not any(
            name in names for names in (self._given, self._imports, self._external, self.parameters, self._defined)
        )

    def _names(self, name: str) -> set[str]:
        """Return ``name`` and the names that what it stands for starts with."""
        seen: set[str] = set()
        stack = [name] if name else []
        while stack:
            root = stack.pop()
            if root not in seen:
                seen.add(root)
                stack += filter(None, map(_root, self._given.get(root, ())))
        return seen

    def numbers(self, expression: ast.AST) -> set[float]:
        """Return the numbers that ``expression`` may be, NaN for one that is not known."""
        return set(self._find_numbers(expression, self._named_numbers))

    @cached_property
    def _named_numbers(self) -> dict[str, set[float]]:
        """The numbers that names and attributes may be: in each round those made of the numbers of the round before."""
        given = {name: values for name, items in self._given.items() if (values := [*filter(self._is_numeric, items)])}
        known: dict[str, set[float]] = {}
        for _ in range(_MOST_ROUNDS):
            found = {
                name: {number for item in items for number in self._find_numbers(item, known)}
                for name, items in given.items()
            }
            if found == known:
                return known
            known = found
        # What is counted up or down is no epsilon.
        return {name: n if all(map(float.is_integer, n)) else n | {nan} for name, n in known.items()}

    def _is_numeric(self, node: ast.AST) -> bool:
        """Tell whether ``node`` is of a kind that ``_find_numbers`` finds any in."""
        if isinstance(node, ast.Call):
            return _is_name(node.func, "float") or not self.operations(node).isdisjoint({"same", *_CALCULATING})
        return isinstance(node, _NUMERIC)

    def _find_numbers(self, node: ast.AST, known: dict[str, set[float]]) -> Iterator[float]:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (int, float)):  # True is none, and no small one
                yield _number(node.value)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from known.get(last_name(node), ())
            is_of_type = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)  # finfo(...).eps
            if self.is_from_project(node) or (is_of_type and last_name(node) == "eps"):
                yield nan
        elif isinstance(node, ast.IfExp):
            yield from self._find_numbers(node.body, known)
            yield from self._find_numbers(node.orelse, known)
        elif isinstance(node, ast.Tuple):
            for element in node.elts:
                yield from self._find_numbers(element, known)
        elif isinstance(node, ast.Subscript):
            yield from self._find_numbers(node.value, known)
        elif isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub):
                yield from (-number for number in self._find_numbers(node.operand, known))
        elif isinstance(node, ast.BinOp):
            left = set(self._find_numbers(node.left, known)) if type(node.op) in _ARITHMETIC else ()
            if left:
                right = set(self._find_numbers(node.right, known))
                yield from _calculated(_ARITHMETIC[type(node.op)][1], left, right)
        elif isinstance(node, ast.Call):
            operations = self.operations(node)
            if "same" in operations or _is_name(node.func, "float"):
                for operand in first_operands(node):
                    yield from self._find_numbers(operand, known)
            if operations & _CALCULATING:
                given = sum(any(True for _ in self._find_numbers(item, known)) for item in operands(node))
                if given > 1 or (given and "negative" in operations):
                    yield nan


_VISITS: dict[type, Callable[[Outline, Any, Part], None]] = {
    ast.BinOp: Outline._formula,
    ast.Call: Outline._formula,
    ast.AugAssign: Outline._augmented,
    ast.Return: Outline._return,
    ast.Assign: Outline._assign,
    ast.AnnAssign: Outline._assign_one,
    ast.NamedExpr: Outline._assign_one,
    ast.For: Outline._loop,
    ast.comprehension: Outline._loop,
    ast.FunctionDef: Outline._function,
    ast.AsyncFunctionDef: Outline._function,
    ast.ClassDef: Outline._class,
    ast.arguments: Outline._arguments,
    ast.Import: Outline._import,
    ast.ImportFrom: Outline._import_from,
}


def operands(node: ast.AST) -> list[ast.AST]:
    """Return what ``node`` computes with: its sides, or the arguments of a call and what may be a tensor with this method."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*owner, *node.args, *(keyword.value for keyword in node.keywords)]
    return []


def first_operands(node: ast.AST) -> list[ast.AST]:
    """Return what may be the first operand of ``node``."""
    if not isinstance(node, ast.Call):
        return operands(node)[:1]
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*owner, *node.args[:1], *(keyword.value for keyword in node.keywords)]


def last_name(node: ast.AST) -> str:
    """Return the name of ``node``, or of the attribute that it is; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@cache
def _operation(name: str) -> str:
    # MindSpore has some under a second name.
    return operation_called(name) or operation_called(re.sub("_?(ext|view|func)$", "", name, flags=re.IGNORECASE))


def _number(written: float) -> float:
    try:
        return float(written)
    except OverflowError:
        return nan


def _calculated(
    calculate: Callable[[float, float], float], left: Collection[float], right: Collection[float]
) -> Iterator[float]:
    if len(left) * len(right) > _MOST_NUMBERS:
        yield nan
        return
    for one, other in product(left, right):
        try:
            result = calculate(one, other)
        except (ArithmeticError, ValueError):
            continue
        if isinstance(result, float):
            # Always the same object, which is equal to itself in a set.
            yield nan if result != result else result
