"""What the value of an expression depends on: the rank, the clock, a counter. Nothing of these: it is equal on all ranks.

Values are followed through variables, attributes, parameters (to the calls of the program that reach the function) and
returned values, across files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mslint.program.calls import CallGraph, CallSite, Function
from mslint.program.facts import dotted

_MOST_STEPS = 300
_RANK_FUNCTIONS = re.compile(
    r"^mindspore\..*\.(_?get_(local_|global_)?rank(_id)?|_get_rank_helper|get_world_rank_from_group_rank"
    r"|get_group_rank_from_world_rank)$"
)
_RANK_VARIABLES = re.compile(
    r"^(RANK|RANK_ID|LOCAL_RANK|OMPI_COMM_WORLD_(LOCAL_)?RANK|PMI_RANK|SLURM_PROCID|(ASCEND_)?DEVICE_ID|DEVICE_INDEX)$"
)
_RANK_SETTINGS = {
    "mindspore.get_context": {"device_id"},
    "mindspore.get_auto_parallel_context": {"global_rank"},
}
_CLOCK = re.compile(
    r"^(time\.|datetime\.|os\.(getpid|urandom|times)|uuid\.|secrets\."
    r"|(numpy\.random|random)\.(?!(seed|Random|RandomState|default_rng)$))"
)
_ENVIRONMENT = ("os.getenv", "os.environ.get", "os.environ")
_RANK_NAME = re.compile(r"^(.*_)?(rank|rank_id|rankid|device_id|shard_id)$", re.IGNORECASE)

Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


class Source(Enum):
    """What makes a value differ between ranks or between one evaluation and the next."""

    RANK = "the rank"
    NAMED_RANK = "what is called a rank and comes from outside the program"
    CLOCK = "the clock or another draw"
    COUNTER = "a counter"
    UNKNOWN = "something that could not be followed"


@dataclass(frozen=True)
class Place:
    """Where a value gets what it depends on: a row of a file and the text there."""

    path: Path
    row: int
    text: str


Dependence = dict[Source, Place]
"""What a value depends on, each with the place that says so; empty where it is the same on every rank."""


@dataclass(frozen=True)
class _File:
    """The parts of a parsed file that values are followed through."""

    body: list[ast.stmt]
    functions: Functions
    attributes: dict[str, list[tuple[str, ast.expr, ast.expr]]]
    """By attribute: the function that assigns it, the object it is an attribute of, the value."""


class Values:
    """Answers about the values of one program, whose calls are known from ``graph``."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.program = graph.program

    def dependence(self, path: Path, function: str, text: str, within: Container[str]) -> Dependence:
        """Return what the expression ``text`` depends on, written in ``function`` of ``path``.

        Of the calls that give ``function`` its arguments, those made by functions in ``within`` count.
        """
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {Source.UNKNOWN: Place(path, 1, text)}
        return _Walk(self, within).of(path, function, node)

    def level(self, path: Path) -> list[ast.stmt]:
        """Return the statements at module level of ``path``; none if it cannot be read."""
        return self._file(path).body

    def definition(self, path: Path, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the function ``name`` of ``path``, its name dotted if it stands in a class or in another one."""
        found = self._file(path).functions.get(name)
        if found is not None:
            self.program.enters(path, found)
        return found

    def assigned(self, path: Path, attribute: str) -> list[tuple[str, ast.expr, ast.expr]]:
        """Return what ``path`` assigns to an attribute: the function, the object that it is an attribute of, the value."""
        self.program.tree(path)  # this rests on all functions of the file
        return self._file(path).attributes.get(attribute, [])

    def _file(self, path: Path) -> _File:
        return self.program.remember((_parts, path), lambda: _parts(self.program.level(path)))

    def attribute_values(self, attribute: str) -> Iterator[tuple[Path, str, ast.expr]]:
        """Yield what the program assigns to an attribute of any object but ``self``: file, function, value."""
        mention = re.compile(rf"\b{attribute}\b")
        for path in dict.fromkeys(function.path for function in self.graph.functions.values()):
            touches = self.program.says(path, mention) and attribute in self.program.facts(path).touched
            for function, target, value in self.assigned(path, attribute) if touches else ():
                if not _is_self(target):
                    yield path, function, value

    def resolve(self, path: Path, name: str) -> str:
        """Return what the dotted ``name`` is in ``path``; a name that is no import of the file, unchanged."""
        found = self.program.dotted_in(path, name)
        if found is None:
            head, dot, rest = name.partition(".")
            target = self.program.facts(path).nested_imports.get(head)
            found = self.program.canonical(path, target + dot + rest) if target else None
        return found or name


def values_of(graph: CallGraph) -> Values:
    """Return the values of the program of ``graph``."""
    return graph.remember(Values, lambda: Values(graph))


class _Walk:
    """One question, followed until it is answered or costs too much."""

    def __init__(self, values: Values, within: Container[str]) -> None:
        self.values = values
        self.within = within
        self.left = _MOST_STEPS
        self.seen: set[tuple[Path, str, str]] = set()

    def of(self, path: Path, function: str, node: ast.expr) -> Dependence:
        self.left -= 1
        if self.left < 0:
            return {Source.UNKNOWN: self._place(path, node)}
        if isinstance(node, ast.Constant):
            return {Source.CLOCK: self._place(path, node)} if node.value is None else {}
        if isinstance(node, ast.Name):
            return self._name(path, function, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(path, function, node)
        if isinstance(node, ast.Call):
            return self._call(path, function, node)
        if isinstance(node, ast.Subscript):
            if dotted(node.value) and self.values.resolve(path, dotted(node.value) or "") in _ENVIRONMENT:
                return self._variable(path, node, node.slice)
            return self.of(path, function, node.value)
        if isinstance(node, ast.IfExp):
            return _merged([self.of(path, function, part) for part in (node.body, node.orelse)])
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return _merged([self.of(path, function, part) for part in parts])

    def _place(self, path: Path, node: ast.expr) -> Place:
        return Place(path, getattr(node, "lineno", 1), ast.unparse(node))

    def _name(self, path: Path, function: str, node: ast.Name) -> Dependence:
        key = (path, function, node.id)
        if key in self.seen:
            return {}
        self.seen.add(key)
        outer = function
        while outer:
            definition = self.values.definition(path, outer)
            if definition is not None:
                found = list(_assigned(definition.body, node.id))
                parameters = [item.arg for item in _parameters(definition.args)]
                if node.id in parameters:
                    found_here = self._parameter(path, outer, node)
                    return _merged([found_here, *self._assigned_values(path, outer, node, found)])
                if found:
                    return _merged(self._assigned_values(path, outer, node, found))
            outer = outer.rpartition(".")[0]
        found = list(_assigned(self.values.level(path), node.id))
        if found:
            return _merged(self._assigned_values(path, "", node, found))
        return self._imported(path, node)

    def _assigned_values(
        self, path: Path, function: str, name: ast.Name, found: list[tuple[ast.expr, bool]]
    ) -> Iterator[Dependence]:
        for value, counts in found:
            yield self.of(path, function, value)
            if counts:
                yield {Source.COUNTER: self._place(path, value)}

    def _imported(self, path: Path, node: ast.Name) -> Dependence:
        target = self.values.resolve(path, node.id)
        home, _, name = target.rpartition(":")
        if not home.endswith(".py"):
            return {}
        found = list(_assigned(self.values.level(Path(home)), name))
        return _merged(self._assigned_values(Path(home), "", node, found))

    def _parameter(self, path: Path, function: str, name: ast.Name) -> Dependence:
        graph = self.values.graph
        called = graph.functions.get(f"{path}:{function}")
        if called is None:
            return {Source.UNKNOWN: self._place(path, name)}
        default = dict(called.defaults).get(name.id)
        answers: list[Dependence] = []
        for call in graph.callers(called.node):
            if call.caller not in self.within:
                continue
            passed = argument(call, called, name.id)
            text = passed if passed is not None else default
            if text is None:
                answers.append({Source.UNKNOWN: self._place(path, name)})
            else:
                home = (call.path, call.function) if passed is not None else (path, "")
                value = ast.parse(text, mode="eval").body
                ast.increment_lineno(value, (call.row if passed is not None else called.row) - 1)
                answers.append(self.of(*home, value))
        if not answers:
            if _RANK_NAME.match(name.id):
                return {Source.NAMED_RANK: self._place(path, name)}
            return {Source.UNKNOWN: self._place(path, name)}
        return _merged(answers)

    def _attribute(self, path: Path, function: str, node: ast.Attribute) -> Dependence:
        key = (path, function, ast.unparse(node))
        if key in self.seen:
            return {}
        self.seen.add(key)
        if isinstance(node.value, ast.Name) and node.value.id == "self" and "." in function:
            return self._member(path, function, node)
        home, _, name = self.values.resolve(path, dotted(node) or "").rpartition(":")
        if home.endswith(".py"):
            found = list(_assigned(self.values.level(Path(home)), name))
            if found:
                return _merged(self._assigned_values(Path(home), "", ast.Name(name), found))
        answers = [self.of(*place) for place in self.values.attribute_values(node.attr)]
        known = _merged(answers)
        if not known and _RANK_NAME.match(node.attr):
            return {Source.NAMED_RANK: self._place(path, node)}
        return known

    def _member(self, path: Path, function: str, node: ast.Attribute) -> Dependence:
        """Follow ``self.x`` to what the methods of the class assign."""
        owner = function.rpartition(".")[0]
        answers: list[Dependence] = []
        for method, target, value in self.values.assigned(path, node.attr):
            if _is_self(target) and method.rpartition(".")[0] == owner:
                answers.append(self.of(path, method, value))
                if _reads(value, ast.unparse(target)) or not method.endswith(".__init__"):
                    answers.append({Source.COUNTER: self._place(path, value)})
        if not answers and _RANK_NAME.match(node.attr):
            return {Source.NAMED_RANK: self._place(path, node)}
        return _merged(answers)

    def _variable(self, path: Path, node: ast.expr, name: ast.expr) -> Dependence:
        """Read an environment variable."""
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _RANK_VARIABLES.match(name.value):
            return {Source.RANK: self._place(path, node)}
        return {}

    def _call(self, path: Path, function: str, node: ast.Call) -> Dependence:
        name = dotted(node.func)
        target = self.values.resolve(path, name) if name else ""
        arguments = [*node.args, *(word.value for word in node.keywords)]
        if _RANK_FUNCTIONS.match(target):
            return {Source.RANK: self._place(path, node)}
        if target in _ENVIRONMENT and arguments:
            return self._variable(path, node, arguments[0])
        if target in _RANK_SETTINGS and arguments:
            asked = arguments[0]
            known = isinstance(asked, ast.Constant) and asked.value in _RANK_SETTINGS[target]
            return {Source.RANK: self._place(path, node)} if known else {}
        if _CLOCK.match(target):
            return {Source.CLOCK: self._place(path, node)}
        answers = [self.of(path, function, part) for part in arguments]
        if isinstance(node.func, ast.Attribute):
            answers.append(self.of(path, function, node.func.value))
        if name:
            site = CallSite(path, function, node.lineno, name, (), (), ())
            for called in (
                self.values.graph.targets(site) if f"{path}:{function}" in self.values.graph.functions else ()
            ):
                answers.append(self._returned(self.values.graph.functions[called]))
        return _merged(answers)

    def _returned(self, called: Function) -> Dependence:
        definition = self.values.definition(called.path, called.name)
        if definition is None or called.name.endswith(("__init__", "construct", "__call__")):
            return {}
        found = [item.value for item in ast.walk(definition) if isinstance(item, ast.Return) and item.value is not None]
        return _merged([self.of(called.path, called.name, value) for value in found])


def argument(call: CallSite, called: Function, name: str) -> str | None:
    """Return the text that ``call`` passes for the parameter ``name`` of ``called``; None if it leaves it out."""
    word = call.keyword(name)
    if word is not None:
        return word
    parameters = list(called.parameters)
    if parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    if name not in parameters or any(text.startswith("*") for text in call.arguments):
        return None
    index = parameters.index(name)
    return call.arguments[index] if index < len(call.arguments) else None


def _merged(answers: Iterable[Dependence]) -> Dependence:
    result: Dependence = {}
    for answer in answers:
        for source, place in answer.items():
            result.setdefault(source, place)
    return result


def _parts(tree: ast.Module | None) -> _File:
    if tree is None:
        return _File([], {}, {})
    functions: Functions = {}
    attributes: dict[str, list[tuple[str, ast.expr, ast.expr]]] = {}
    stack: list[tuple[str, str, ast.AST]] = [("", "", node) for node in reversed(tree.body)]
    while stack:
        prefix, function, node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = prefix + node.name
            functions[function] = node
            prefix = f"{function}."
        elif isinstance(node, ast.ClassDef):
            prefix = f"{prefix}{node.name}."
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target, value in _pairs(targets, node.value):
                if isinstance(target, ast.Attribute):
                    attributes.setdefault(target.attr, []).append((function, target, value))
        stack.extend((prefix, function, child) for child in reversed(list(ast.iter_child_nodes(node))))
    return _File(tree.body, functions, attributes)


def _pairs(targets: Iterable[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each single target with the value it gets; of a tuple taken apart, the part if it is written out."""
    for target in targets:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, value
        elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _pairs([one], part)
        else:
            for one in target.elts:
                yield from _pairs([one], value)


def _assigned(body: Iterable[ast.stmt], name: str) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the values that the statements of one scope give the variable ``name``, and whether it counts by them."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target, value in _pairs(targets, node.value):
                if isinstance(target, ast.Name) and target.id == name:
                    yield value, False
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            for target, value in _pairs([node.target], node.iter):
                if isinstance(target, ast.Name) and target.id == name:
                    yield value, True
        elif isinstance(node, ast.NamedExpr) and node.target.id == name:
            yield node.value, False
        stack.extend(ast.iter_child_nodes(node))


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _is_self(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _reads(value: ast.expr, target: str) -> bool:
    return any(isinstance(item, ast.Attribute) and ast.unparse(item) == target for item in ast.walk(value))
