"""A file as Python's own parser shows it: what stands in it, and what its names may stand for.

The screens of rules look here whether a file can hold anything for them, for a tenth of what it costs to read the file with
libcst. Where a rule follows a name to the assignments that reach it, here all that the file assigns to anything of that name
counts: what is said of a name may be too much, and should never be too little.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Set
from functools import lru_cache
from itertools import product
from math import nan
from typing import Any, TypeGuard

from mslint.semantics.api import canonical
from mslint.semantics.operations import operation_called

_ANY = "*"
"""Among the names of what is called: another file of the project may give it any name."""
_OPERATIONS: dict[type, tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.Pow: ("power", operator.pow),
}
_CALCULATING = frozenset({"negative", *(name for name, _ in _OPERATIONS.values())})
_ELSEWHERE = sys.stdlib_module_names | {
    "numpy",
    "scipy",
    "cv2",
    "PIL",
    "torch",
    "pandas",
    "sklearn",
    "matplotlib",
    "tqdm",
}
"""Packages that hand on neither operators of MindSpore nor constants of the project."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BINDING = frozenset({
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension, ast.arguments, ast.arg,
    *_DEFINITIONS, ast.ClassDef, ast.Import, ast.ImportFrom,
})  # fmt: skip
_WITHOUT_NODES = frozenset(["ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"])
_MOST_NUMBERS = 30


class Function:
    """What stands in a function or method called ``name``, nested ones included."""

    def __init__(self, root: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.root = root
        self.name = "" if isinstance(root, ast.Module) else root.name
        self.nodes: dict[type, list[Any]] = defaultdict(list)

    def of(self, *kinds: type) -> list[Any]:
        """Return the nodes of ``kinds`` in it, in no order."""
        return [node for kind in kinds for node in self.nodes.get(kind, ())]


class Outline:
    """The functions of a file, and what its names may stand for, read in one walk over ``tree``."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions = [Function(tree)]
        """The first one is what stands in no function."""
        self._values: dict[str, list[ast.AST]] = defaultdict(list)
        """What variables and attributes get: by assignments, defaults and loops; each part of a tuple gets the whole."""
        self._imported: dict[str, list[str]] = defaultdict(list)
        """The dotted names of what is imported under a name."""
        self._has_star = False
        self._defined: set[str] = set()
        """The names of functions, classes and parameters."""
        self._names: dict[tuple[str, str], set[str]] = {}
        self._numbers: dict[str, set[float]] = {}
        for function in self.functions:
            self._read(function)

    def _read(self, function: Function) -> None:
        stack: list[ast.AST] = [function.root]
        while stack:
            node = stack.pop()
            if isinstance(node, _DEFINITIONS) and function is self.functions[0]:
                self.functions.append(Function(node))
                continue
            function.nodes[type(node)].append(node)
            if type(node) in _BINDING:
                self._bind(node)
            for name in node._fields:
                if name not in _WITHOUT_NODES:
                    value = getattr(node, name, None)
                    stack += [part for part in (value if type(value) is list else [value]) if isinstance(part, ast.AST)]

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assign(target, node.value)
                if isinstance(node, ast.AugAssign):
                    self._assign(target, node)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._assign(node.target, node.iter)
        elif isinstance(node, ast.arguments):
            positional = node.posonlyargs + node.args
            for parameters, defaults in ((positional, node.defaults), (node.kwonlyargs, node.kw_defaults)):
                for parameter, default in zip(reversed(parameters), reversed(defaults), strict=False):
                    if default is not None:
                        self._values[parameter.arg].append(default)
        elif isinstance(node, ast.arg):
            self._defined.add(node.arg)
        elif isinstance(node, (*_DEFINITIONS, ast.ClassDef)):
            self._defined.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)

    def _assign(self, target: ast.AST, value: ast.AST | None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._assign(element, value)
        elif value is not None and last_name(target):
            self._values[last_name(target)].append(value)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        home = "" if isinstance(node, ast.Import) else "." * node.level + (node.module or "") + "."
        for alias in node.names:
            if alias.name == "*":
                self._has_star |= _package(home) not in _ELSEWHERE
            elif alias.asname or home:
                self._imported[alias.asname or alias.name].append(home + alias.name)
            else:
                self._imported[_package(alias.name)].append(_package(alias.name))

    def of(self, *kinds: type) -> list[Any]:
        """Return the nodes of ``kinds`` in the file, in no order."""
        return [node for function in self.functions for node in function.of(*kinds)]

    def origins(self, expression: ast.AST) -> Iterator[ast.AST]:
        """Yield ``expression`` and what it may be computed from, through names, operations and calls."""
        seen: set[str] = set()
        stack = [expression]
        while stack:
            node = stack.pop()
            yield node
            stack += operands(node)
            name = last_name(node)
            if name and name not in seen:
                seen.add(name)
                stack += self._values.get(name, ())

    def may_be(self, called: ast.AST, names: Set[str]) -> bool:
        """Tell whether ``called`` may be, or be an instance of, something with one of ``names``, given as ``plain`` ones."""
        found = self.names(called)
        return _ANY in found or not found.isdisjoint(names)

    def operations(self, node: ast.AST) -> set[str]:
        """Return the operations that ``node`` itself may compute; see ``semantics.operations``.

        An operator that another file of the project hands on counts by its name.
        """
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            return {_OPERATIONS[type(node.op)][0]} if type(node.op) in _OPERATIONS else set()
        if isinstance(node, ast.UnaryOp):
            return {"negative"} if isinstance(node.op, ast.USub) else set()
        if isinstance(node, ast.Call) and not self.is_from(node.func, _ELSEWHERE):
            return {operation for name in self.names(node.func) if (operation := operation_called(name))}
        return set()

    def names(self, called: ast.AST) -> set[str]:
        """Return the last names, as ``plain`` ones, of what ``called`` may be or be an instance of."""
        key = _ends(called)
        if key not in self._names:
            self._names[key] = {
                plain(name) for root, last in self._meanings(key) for name in self._last_names(root, last)
            }
        return self._names[key]

    def _meanings(self, key: tuple[str, str]) -> list[tuple[str, str]]:
        """Return the first and the last name of what ``key``, given in the same way, stands for; itself first."""
        found = [key]
        for _, last in found:
            found += {_ends(value) for value in self._values.get(last, ())}.difference(found)
        return found

    def _last_names(self, root: str, last: str) -> Iterator[str]:
        yield last
        if self._is_project(root):
            yield _ANY
        for home in self._imported.get(root, ()):
            yield canonical(home if root == last else f"{home}.{last}").rpartition(".")[2]

    def is_operator(self, called: ast.AST) -> bool:
        """Tell whether ``called`` may be, or be an instance of, something of MindSpore, of the project or of this file."""
        return any(
            last in self._defined
            or self._is_project(root)
            or "mindspore" in map(_package, self._imported.get(root, ()))
            for root, last in self._meanings(_ends(called))
        )

    def is_from_project(self, node: ast.AST) -> bool:
        """Tell whether ``node`` may be something of another file of the project, or of a package that is not known."""
        return self._is_project(_ends(node)[0])

    def _is_project(self, root: str) -> bool:
        if root in self._imported:
            return any(_package(home) not in {"mindspore", *_ELSEWHERE} for home in self._imported[root])
        return self._has_star and bool(root) and root not in self._values and root not in self._defined

    def is_from(self, node: ast.AST, packages: Collection[str]) -> bool:
        """Tell whether ``node`` is surely something of one of ``packages``."""
        homes = self._imported.get(_ends(node)[0], ())
        return bool(homes) and all(_package(home) in packages for home in homes)

    def numbers(self, node: ast.AST) -> set[float]:
        """Return the numbers that the expression ``node`` may be, NaN for one that is not known."""
        if isinstance(node, ast.Constant):
            return {_number(float, node.value)} if isinstance(node.value, (int, float)) else set()
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named_numbers(node)
        found = [self.numbers(operand) for operand in operands(node)]
        operations = self.operations(node)
        if isinstance(node, (ast.IfExp, ast.Tuple, ast.Subscript)) or "same" in operations or is_call_of(node, "float"):
            return set().union(*found)
        # Of a call, the last two operands count: of ops.pow(10, -8) ``ops`` comes first.
        if not found or not all(found[-2:]) or operations.isdisjoint(_CALCULATING):
            return set()
        if isinstance(node, ast.UnaryOp):
            return {-number for number in found[0]}
        if not isinstance(node, ast.BinOp) or len(found[0]) * len(found[1]) > _MOST_NUMBERS:
            return {nan}
        return {_number(_OPERATIONS[type(node.op)][1], *pair) for pair in product(*found)}

    def _named_numbers(self, node: ast.Name | ast.Attribute) -> set[float]:
        name = last_name(node)
        if name not in self._numbers:
            self._numbers[name] = set()  # what is computed from itself, such as a counter, has no more numbers
            self._numbers[name] = {number for value in self._values.get(name, ()) for number in self.numbers(value)}
        of_type = (
            name == "eps" and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
        )  # finfo(...).eps
        return self._numbers[name] | ({nan} if of_type or self.is_from_project(node) else set())


@lru_cache(maxsize=1)
def outline(tree: ast.Module) -> Outline:
    """Return the outline of the file with ``tree``; the screens of several rules ask for it, one after the other."""
    return Outline(tree)


def operands(node: ast.AST) -> list[ast.AST]:
    """Return what ``node`` computes with, consists of or picks from; of a call the arguments, and what it is a method of."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [*node.elts]
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*owner, *node.args, *(keyword.value for keyword in node.keywords)]
    return []


def indices(subscript: ast.Subscript) -> list[ast.expr]:
    """Return the indices and slices of ``subscript``, one for each axis."""
    inside = subscript.slice
    return inside.elts if isinstance(inside, ast.Tuple) and inside.elts else [inside]


def last_name(node: ast.AST) -> str:
    """Return ``c`` for ``a.b.c`` and for ``c``, and nothing for what has no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_call_of(node: ast.AST, *names: str) -> TypeGuard[ast.Call]:
    """Tell whether ``node`` calls one of Python's own functions ``names``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def plain(name: str) -> str:
    """Return ``name`` in small letters without underscores: MindSpore has many an operator both as a class and a function."""
    return name.replace("_", "").lower()


def _ends(node: ast.AST) -> tuple[str, str]:
    """Return the names that ``node``, or what it calls, starts and ends with: ``a`` and ``c`` for ``a.b[0].c(d)``."""
    while isinstance(node, ast.Call):
        node = node.func
    last = last_name(node)
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return (node.id if isinstance(node, ast.Name) else "", last)


def _package(name: str) -> str:
    return name.partition(".")[0]


def _number(calculate: Callable[..., float], *given: float) -> float:
    try:
        return float(calculate(*given))
    except (ArithmeticError, TypeError, ValueError):
        return nan
