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

from mslint.program.following.syntax import imported_module, imported_names
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
_fields_with_nodes: dict[type, tuple[str, ...]] = {}
_MOST_NUMBERS = 30
_MOST_ROUNDS = 3
"""A counter, which is computed from itself, has more numbers after each."""


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
        self._operations: dict[ast.AST, set[str]] = {}
        self._names: dict[tuple[str, ...], set[str]] = {}
        self._operators: dict[tuple[str, ...], bool] = {}
        self._projects: dict[str, bool] = {}
        self._numbers: dict[str, set[float]] = {}
        self._settled: set[str] = set()
        """The names whose numbers are known for good."""
        self._visited: set[str] = set()
        """The names come by in the round under way, in which numbers are worked out."""
        for function in self.functions:
            self._read(function)

    def _read(self, function: Function) -> None:
        stack: list[ast.AST] = [function.root]
        is_outside = function is self.functions[0]
        while stack:
            node = stack.pop()
            kind = type(node)
            if is_outside and kind in _DEFINITIONS:
                self.functions.append(Function(node))  # type: ignore[arg-type]
                continue
            function.nodes[kind].append(node)
            if kind in _BINDING:
                self._bind(node)
            names = _fields_with_nodes.get(kind)
            if names is None:
                names = _fields_with_nodes[kind] = tuple(name for name in kind._fields if name not in _WITHOUT_NODES)
            for name in names:
                value = getattr(node, name, None)
                if type(value) is list:
                    stack += [part for part in value if isinstance(part, ast.AST)]
                elif isinstance(value, ast.AST):
                    stack.append(value)

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
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            self._has_star |= _package(imported_module(node)) not in _ELSEWHERE
        for name, target in imported_names(node):
            self._imported[name].append(target)

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
        if node not in self._operations:
            self._operations[node] = self._find_operations(node)
        return self._operations[node]

    def _find_operations(self, node: ast.AST) -> set[str]:
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            return {_OPERATIONS[type(node.op)][0]} if type(node.op) in _OPERATIONS else set()
        if isinstance(node, ast.UnaryOp):
            return {"negative"} if isinstance(node.op, ast.USub) else set()
        if isinstance(node, ast.Call) and not self.is_from(node.func, _ELSEWHERE):
            return {operation for name in self.names(node.func) if (operation := operation_called(name))}
        return set()

    def names(self, called: ast.AST) -> set[str]:
        """Return the last names, as ``plain`` ones, of what ``called`` may be or be an instance of."""
        path = _path(called)
        if path not in self._names:
            self._names[path] = {plain(name) for meaning in self._meanings(path) for name in self._last_names(meaning)}
        return self._names[path]

    def _meanings(self, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the paths of all that ``path`` stands for; itself first."""
        found = [path]
        for meaning in found:
            found += {_path(value) for value in self._values.get(meaning[-1], ())}.difference(found)
        return found

    def _last_names(self, path: tuple[str, ...]) -> Iterator[str]:
        root, *rest = path
        yield path[-1]
        if self._is_project(root):
            yield _ANY
        for home in self._imported.get(root, ()):
            yield canonical(".".join([home, *rest])).rpartition(".")[2]

    def is_operator(self, called: ast.AST) -> bool:
        """Tell whether ``called`` may be, or be an instance of, something of MindSpore, of the project or of this file."""
        path = _path(called)
        if path not in self._operators:
            self._operators[path] = any(map(self._names_operator, self._meanings(path)))
        return self._operators[path]

    def _names_operator(self, path: tuple[str, ...]) -> bool:
        root, last = path[0], path[-1]
        is_mindspore = "mindspore" in map(_package, self._imported.get(root, ()))
        return last in self._defined or is_mindspore or self._is_project(root)

    def is_from_project(self, node: ast.AST) -> bool:
        """Tell whether ``node`` may be something of another file of the project, or of a package that is not known."""
        root = _path(node)[0]
        if root not in self._projects:
            self._projects[root] = self._leads_to_project(root)
        return self._projects[root]

    def _leads_to_project(self, name: str) -> bool:
        roots = [name]
        for root in roots:  # ``c`` of ``c = constants``
            aliased = (value for value in self._values.get(root, ()) if isinstance(value, (ast.Name, ast.Attribute)))
            roots += {_path(value)[0] for value in aliased}.difference(roots)
        return any(map(self._is_project, roots))

    def _is_project(self, root: str) -> bool:
        if root in self._imported:
            return any(_package(home) not in {"mindspore", *_ELSEWHERE} for home in self._imported[root])
        return self._has_star and root not in ("", "self")  # what another function binds hides nothing here

    def is_from(self, node: ast.AST, packages: Collection[str]) -> bool:
        """Tell whether ``node`` is surely something of one of ``packages``."""
        root = _path(node)[0]
        if root in self._values or root in self._defined:  # a variable called ``time`` hides the package
            return False
        homes = self._imported.get(root, ())
        return bool(homes) and all(_package(home) in packages for home in homes)

    def numbers(self, node: ast.AST) -> set[float]:
        """Return the numbers that the expression ``node`` may be, NaN for one that is not known."""
        if isinstance(node, ast.Constant):
            return {_number(float, node.value)} if isinstance(node.value, (int, float)) else set()
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named_numbers(node)
        found = [self.numbers(operand) for operand in operands(node)]
        operations = self.operations(node)
        if isinstance(node, (ast.IfExp, ast.Tuple, ast.Subscript)) or "same" in operations or _makes_float(node):
            return set().union(*found)
        # Of a call, not all operands are numbers: of ops.div(1, 1e8, rounding_mode=None) the first and the last are none.
        fewest = 1 if "negative" in operations else 2
        if sum(map(bool, found)) < fewest or operations.isdisjoint(_CALCULATING):
            return set()
        if isinstance(node, ast.UnaryOp):
            return {-number for number in found[0]}
        if not isinstance(node, (ast.BinOp, ast.AugAssign)) or len(found[0]) * len(found[1]) > _MOST_NUMBERS:
            return {nan}
        return {_number(_OPERATIONS[type(node.op)][1], *pair) for pair in product(*found)}

    def _named_numbers(self, node: ast.Name | ast.Attribute) -> set[float]:
        name = last_name(node)
        if name not in self._settled and name not in self._visited:
            if self._visited:
                self._work_out(name)
            else:
                self._settle(name)
        of_type = (
            name == "eps" and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
        )  # finfo(...).eps
        return self._numbers[name] | ({nan} if of_type or self.is_from_project(node) else set())

    def _settle(self, name: str) -> None:
        """Work out the numbers of ``name``, and of all that it is computed from, itself perhaps: ``t = 1``, ``t /= 1e8``."""
        try:
            for _ in range(_MOST_ROUNDS):
                self._visited.clear()
                before = self._numbers.copy()
                self._work_out(name)
                if self._numbers == before:
                    break
            self._settled |= self._visited
        finally:  # even where this is nested too deeply: the screen of another rule may ask for less
            self._visited.clear()

    def _work_out(self, name: str) -> None:
        self._visited.add(name)
        self._numbers.setdefault(name, set())
        self._numbers[name] = {number for value in self._values.get(name, ()) for number in self.numbers(value)}


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


def _makes_float(node: ast.AST) -> bool:
    """Tell whether ``node`` calls ``float``, or NumPy's name for it."""
    return isinstance(node, ast.Call) and last_name(node.func) == "float"


def _path(node: ast.AST) -> tuple[str, ...]:
    """Return the names in ``node``, or in what it calls: ``a``, ``b``, ``c`` for ``a.b[0].c(d)``.

    The first is empty where no name comes first, the last where an element is picked.
    """
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name):
        return (node.id,)
    names = [last_name(node)]
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
    names.append(node.id if isinstance(node, ast.Name) else "")
    return tuple(reversed(names))


def _package(name: str) -> str:
    return name.partition(".")[0]


def _number(calculate: Callable[..., float], *given: float) -> float:
    try:
        return float(calculate(*given))
    except (ArithmeticError, TypeError, ValueError):
        return nan
