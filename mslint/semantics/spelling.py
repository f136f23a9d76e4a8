"""A file as it is spelled: which of its functions training may run, and which operators its names may stand for.

Python's own syntax tree is read here, which costs a tenth of libcst's, to learn where a rule need not look. So whatever does
not show, such as an operator that another file of the project hands on under a name of its own, counts as possible.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache

from mslint.semantics.api import canonical
from mslint.semantics.criteria import TENSOR_FACTS, TENSOR_METHODS
from mslint.semantics.syntax import arguments, children, dotted, is_constant, last_name, root_name, targets

Loop = ast.For | ast.AsyncFor

_ANY = "*"
"""Among the words for an operator: it may be any."""
_ARRAYS = frozenset(["numpy", "cv2", "scipy", "PIL"])
_ELSEWHERE = sys.stdlib_module_names | _ARRAYS | {"torch", "tqdm", "pandas", "sklearn", "matplotlib", "faiss"}
"""Packages that hand on no operator of MindSpore."""
_OPERATORS = ("mindspore.ops.", "mindspore.nn.", "mindspore.numpy.", "mindspore.mint.", "mindspore.Tensor")
_NOT_NETWORKS = ("Metric", "Callback", "LearningRateSchedule", "Optimizer")
_LISTS = frozenset(
    """
    range enumerate zip list tuple dict set sorted reversed map filter CellList SequentialCell ParameterTuple ParameterList
    ModuleList CellDict
    """.split()  # noqa: SIM905
)
_TENSORS = frozenset(["Tensor", "Parameter"])
_LEAVES = frozenset([ast.Name, ast.Constant])
_NOTED = frozenset([ast.Call, ast.Attribute, ast.Subscript, ast.For, ast.AsyncFor, ast.comprehension, ast.arg])
_OF_TENSORS = TENSOR_FACTS | TENSOR_METHODS


@dataclass(eq=False)
class Function:
    """What stands in one function, functions nested in it apart."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    around: Function | None
    """The function that it is nested in."""
    of_class: bool
    """Whether it is a method of a class that has bases and so may be a Cell."""
    calls: list[ast.Call] = field(default_factory=list)
    subscripts: list[ast.Subscript] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    values: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    """What is assigned to a variable."""
    sources: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    """What a variable is given a part of, is added to or is looped over."""
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    treated_as_tensors: set[str] = field(default_factory=set)
    """Variables of which something is asked that only tensors know, here or in a function that is nested in this one."""
    nested: list[Function] = field(default_factory=list)
    """All functions nested in an outermost one."""

    @property
    def outermost(self) -> Function:
        """The function that all the others around are nested in."""
        return self if self.around is None else self.around.outermost

    @property
    def parameters(self) -> set[str]:
        """The names of what it can be passed by position or keyword."""
        given = self.node.args
        return {argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)}

    def origins(self, name: str) -> Iterator[ast.expr]:
        """Yield what the variable ``name`` may be, or be a part of."""
        yield from self.values.get(name, ())
        for value in self.sources.get(name, ()):
            yield from value.elts if isinstance(value, ast.Tuple) else [value]


class Spelling:
    """The functions of a file that training may run, and what its names may stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: list[Function] = []
        """Those that training may run."""
        self._all_functions: list[Function] = []
        self.values: dict[str, list[ast.expr]] = defaultdict(list)
        """What is assigned to variables and attributes of a name, or what they are given a part of."""
        self._imported: dict[str, list[str]] = defaultdict(list)
        self._defined: set[str] = set()
        self._called: set[str] = set()
        self._has_star = False
        self._words: dict[str, frozenset[str]] = {}
        self._operands: dict[Function, set[str]] = {}
        # Training runs functions of the file and methods of its classes; no class that stands in something else is known.
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                trained = not any(self._is_no_network(base) for base in node.bases)
                has_bases = any(not isinstance(base, ast.Name) or base.id != "object" for base in node.bases)
                for item in node.body:
                    self._read(item, trained=trained, of_class=has_bases)
            else:
                self._read(node, trained=True, of_class=False)

    def _is_no_network(self, base: ast.expr) -> bool:
        return self.package(base) == "mindspore" and (self._origin(base) or "").rpartition(".")[2] in _NOT_NETWORKS

    def _read(self, top: ast.stmt, *, trained: bool, of_class: bool) -> None:
        stack: list[tuple[ast.AST, Function | None, bool]] = [(top, None, trained)]
        while stack:
            node, function, trained = stack.pop()
            kind = type(node)
            if kind in _NOTED:
                if isinstance(node, ast.Call):
                    self._called.add(last_name(node.func))
                if function is not None:
                    _note(node, function)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._defined.add(node.name)
                trained = trained and (function is not None or node.name != "__init__")
                function = Function(node, function, of_class)
                self._all_functions.append(function)
                if function.around is not None:
                    function.outermost.nested.append(function)
                if trained:
                    self.functions.append(function)
            elif isinstance(node, ast.ClassDef):
                function, trained = None, False
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
                self._assign(node, function)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
            for child in children(node):
                if type(child) not in _LEAVES:
                    stack.append((child, function, trained))

    def _assign(
        self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign, function: Function | None
    ) -> None:
        if node.value is None:
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            whole = isinstance(target, ast.Name) and not isinstance(node, ast.AugAssign)
            for part in targets(target):
                self.values[last_name(part)].append(node.value)
                if function is not None and isinstance(part, ast.Name):
                    (function.values if whole else function.sources)[part.id].append(node.value)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        home = "" if isinstance(node, ast.Import) else "." * node.level + (node.module or "") + "."
        for alias in node.names:
            origin = home + alias.name
            package = origin.partition(".")[0]
            if alias.name == "*":
                self._has_star |= package not in _ELSEWHERE
            elif alias.asname or home:
                self._imported[alias.asname or alias.name].append(origin)
            else:
                self._imported[package].append(package)

    def package(self, called: ast.expr) -> str:
        """Return the package that ``called`` is imported from; empty where that is not seen or is the file's own."""
        return (self._origin(called) or "").partition(".")[0]

    def _origin(self, called: ast.expr) -> str | None:
        """Return the canonical name of what is imported and called, or is built and called; a relative one has a dot."""
        while isinstance(called, ast.Call):
            called = called.func
        first, dot, rest = dotted(called).partition(".")
        found = self._imported.get(first)
        if not found:
            return None
        home = next((home for home in found if home.startswith("mindspore")), found[0])
        return canonical(f"{home}{dot}{rest}")

    def words(self, called: ast.expr) -> frozenset[str]:
        """Return the last names of what ``called`` may be or be an instance of."""
        direct = self._direct_words(called)
        return direct.union(*map(self._given_words, direct))

    def _direct_words(self, called: ast.expr) -> frozenset[str]:
        while isinstance(called, ast.Call):
            called = called.func
        name = last_name(called)
        origin = self._origin(called)
        if origin is None:
            hidden = self._has_star and isinstance(called, ast.Name) and name not in self.values
            return frozenset([name, _ANY] if hidden else [name])
        package, own = origin.partition(".")[0], origin.rpartition(".")[2]
        handed_on = package != "mindspore" and package not in _ELSEWHERE
        return frozenset([name, own, _ANY] if handed_on else [name, own])

    def _given_words(self, name: str) -> frozenset[str]:
        """Return the words for what is assigned to ``name``, directly or by way of other names."""
        known = self._words.get(name)
        if known is None:
            found: set[str] = set()
            queue = {name}
            while queue:
                for value in self.values.get(queue.pop(), ()):
                    if isinstance(value, (ast.Name, ast.Attribute, ast.Call)):
                        words = self._direct_words(value)
                        queue |= words - found
                        found |= words
            known = self._words[name] = frozenset(found)
        return known

    def may_be(self, called: ast.expr, operators: Set[str]) -> bool:
        """Tell whether ``called`` may be one of ``operators``."""
        words = self.words(called)
        return _ANY in words or not words.isdisjoint(operators)

    def may_be_plainly(self, called: ast.expr, operators: Set[str]) -> bool:
        """Tell the same of ``operators`` that are given in small letters without underscores."""
        return any(word == _ANY or word.replace("_", "").lower() in operators for word in self.words(called))

    def is_trained(self, function: Function) -> bool:
        """Tell whether training may run ``function``: outside of Cells none that only calls numpy and the like."""
        outermost = function.outermost
        return (
            outermost.of_class
            or self.runs_operators(outermost)
            or not any(self.package(call.func) in _ARRAYS for call in outermost.calls)
        )

    def runs_operators(self, function: Function) -> bool:
        """Tell whether ``function`` may call an operator of MindSpore."""
        return any(self.is_operator(call.func) for call in function.calls)

    def is_operator(self, called: ast.expr) -> bool:
        """Tell whether ``called`` may be an operator of MindSpore."""
        seen: set[str] = set()
        queue = [called]
        while queue:
            node = queue.pop()
            origin = self._origin(node)
            if origin is not None:
                package = origin.partition(".")[0]
                if origin.startswith(_OPERATORS) if package == "mindspore" else package not in _ELSEWHERE:
                    return True
                continue
            root = root_name(node)
            if self._has_star and root not in self.values:
                return True
            for name in {root, last_name(node)} - seen:
                seen.add(name)
                queue += self.values.get(name, ())
        return False

    def is_passed(self, function: Function, name: str) -> bool:
        """Tell whether calls in this file may pass something for ``name``, as a parameter of ``function``."""
        return name in function.parameters and function.node.name in self._called

    def may_be_tensor(self, function: Function, node: ast.expr) -> bool:
        """Tell whether the expression ``node`` of ``function`` may be a tensor, or parts of one, and be known as that."""
        seen: set[tuple[str, Function | None]] = set()
        queue: list[tuple[ast.expr, Function | None]] = [(node, function)]
        while queue:
            item, place = queue.pop()
            if isinstance(item, ast.Name):
                functions = self._all_functions if place is None else [place]
                if any(self._is_treated_as_tensor(one, item.id) for one in functions):
                    return True
                if (item.id, place) not in seen:
                    seen.add((item.id, place))
                    origins = [(value, place) for one in functions for value in one.origins(item.id)]
                    queue += origins or [(value, place) for value in self.values.get(item.id, ())]
            elif isinstance(item, ast.Attribute):
                if item.attr in ("T", "mT"):
                    return True
                if (f".{item.attr}", None) not in seen and item.attr not in ("shape", "ndim", "size"):
                    seen.add((f".{item.attr}", None))
                    # It does not show here which methods assign to the attribute.
                    queue += [(value, None) for value in self.values.get(item.attr, ())]
            elif isinstance(item, ast.Call):
                if self._may_give_tensor(item):
                    return True
                if isinstance(item.func, ast.Attribute) and self._origin(item.func) is None:
                    queue.append((item.func.value, place))
            elif isinstance(item, ast.BinOp):
                queue += [(item.left, place), (item.right, place)]
            elif isinstance(item, (ast.UnaryOp, ast.Starred)):
                queue.append((item.operand if isinstance(item, ast.UnaryOp) else item.value, place))
            elif isinstance(item, ast.Subscript):
                if _has_axes(item):
                    return True
                queue.append((item.value, place))
            elif isinstance(item, (ast.Compare, ast.IfExp)):
                return True
        return False

    def _is_treated_as_tensor(self, function: Function, name: str) -> bool:
        outermost = function.outermost
        annotation = function.annotations.get(name)
        return (
            name in outermost.treated_as_tensors
            or name in self._operands_of(outermost)
            or (annotation is not None and self.may_be(annotation, _TENSORS))
        )

    def _may_give_tensor(self, call: ast.Call) -> bool:
        called: ast.expr = call
        while isinstance(called, ast.Call):
            called = called.func
        name = last_name(called)
        if name in _LISTS or self.package(called) in _ELSEWHERE:
            return False
        if self._has_star or name in self.values or name in self._defined or self._origin(called) is not None:
            return True
        return isinstance(called, ast.Attribute) and name in TENSOR_METHODS

    def _operands_of(self, outermost: Function) -> set[str]:
        """Return the variables that are the first argument of what may be an operator."""
        found = self._operands.get(outermost)
        if found is None:
            found = self._operands[outermost] = {
                first.id
                for function in (outermost, *outermost.nested)
                for call in function.calls
                for first in map(_unstarred, call.args[:1])
                if isinstance(first, ast.Name) and self.is_operator(call.func)
            }
        return found


@lru_cache(maxsize=1)
def spelling(tree: ast.Module) -> Spelling:
    """Return the spelling of the file with ``tree``; the rules ask for that of one file after another."""
    return Spelling(tree)


def _note(node: ast.AST, function: Function) -> None:
    if isinstance(node, ast.Call):
        function.calls.append(node)
    elif isinstance(node, ast.Attribute):
        if node.attr in _OF_TENSORS and isinstance(node.value, ast.Name):
            function.outermost.treated_as_tensors.add(node.value.id)
    elif isinstance(node, ast.Subscript):
        function.subscripts.append(node)
        if isinstance(node.value, ast.Name) and _has_axes(node):
            function.outermost.treated_as_tensors.add(node.value.id)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        if not isinstance(node, ast.comprehension):
            function.loops.append(node)
        over = [node.iter]
        if isinstance(node.iter, ast.Call) and last_name(node.iter.func) in ("zip", "enumerate"):
            over = arguments(node.iter)
        for target in targets(node.target):
            function.sources[last_name(target)] += over
    elif isinstance(node, ast.arg) and node.annotation is not None:
        function.annotations[node.arg] = node.annotation


def _has_axes(subscript: ast.Subscript) -> bool:
    """Tell whether ``subscript`` indexes more than one axis, as no list is."""
    return isinstance(subscript.slice, ast.Tuple) or is_constant(subscript.slice, ...)


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node
