"""Follows a training program from a place on, without running it: which networks it builds, how it trains them.

The interpreter walks the statements of the project's own functions with values that say what a name stands for. Where a
condition is not known it takes both branches. Two questions are answered that way: *building* (what networks does a script
make, which parameters does it freeze, what does each optimizer hold) and *following* (what does a loss depend on).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from mslint.program.facts import dotted
from mslint.program.project import Program
from mslint.program.values import (
    CLOSED,
    TRAINED,
    Class,
    Constant,
    Feature,
    File,
    Flow,
    Function,
    GradientMaker,
    Hush,
    Interface,
    Many,
    Mapping,
    Member,
    Parameters,
    Parent,
    Place,
    Reason,
    Scope,
    Sequence,
    Tensor,
    Thing,
    TrainingStep,
    Union,
    Value,
    Weights,
    WithLoss,
    below,
    copied,
    either,
    joined,
    parts,
    things_in,
)

_DEEPEST = 40
_ANY = "**"
"""Stands for keywords whose names are not known."""
_MOST_ITEMS = 64
_WITH_PARAMETERS = re.compile(
    r"^mindspore\.(nn|mint\.nn|experimental)\..*(Conv|Dense|Linear|BatchNorm|LayerNorm|GroupNorm|InstanceNorm|SyncBatch"
    r"|Embedding|LSTM|GRU|RNN|PReLU|Transformer|MultiheadAttention|Bilinear|Thor)"
)
_OPTIMIZERS = re.compile(
    r"^mindspore\.(nn|mint\.optim|experimental\.optim|nn\.optim|nn\.optim\.\w+)\."
    r"(Optimizer|A[dD]a\w*|ASGD|SGD|Momentum|RMSProp|RMSprop|Rprop|Lamb|LARS|LazyAdam|FTRL|ProximalAdagrad|Thor|thor)$"
)
_PARAMETER_METHODS = {
    "trainable_params": True,
    "get_parameters": False,
    "parameters_and_names": False,
    "parameters": False,
    "named_parameters": False,
    "parameters_dict": False,
    "untrainable_params": False,
}
_NAMED = ("parameters_and_names", "named_parameters")
_STOPPING = re.compile(
    r"^(stop_gradient|StopGradient|detach|asnumpy|numpy|item|tolist|argmax|argmin|Argmax|Argmin|ArgMaxWithValue|shape|Shape"
    r"|dtype|DType|rank|Rank|size|Size|ndim|zeros_like|ZerosLike|ones_like|OnesLike|equal|Equal|not_equal|NotEqual|greater"
    r"|Greater|greater_equal|GreaterEqual|less|Less|less_equal|LessEqual|isnan|IsNan|isfinite|isinf|logical_\w+|Logical\w+"
    r"|sign|floor|ceil|round|len|int|float|bool|str|range|isinstance|hasattr|print|type|new_zeros|new_ones|nonzero|argsort"
    r"|randn|rand|randint|normal|StandardNormal|standard_normal|uniform)$"
)
_WEIGHT_LISTS = ("ParameterTuple", "tuple", "list", "sorted", "set", "ParameterList", "reversed", "iter")
_WRAPPERS = ("jit", "ms_function", "partial", "auto_mixed_precision", "recompute", "ms_class", "jit_class", "shard")
_SETTERS = re.compile(
    r"^(set_\w+|to_float|to|half|recompute|add_flags|add_flags_recursive|shard|update_parameters_name|load_state_dict|train"
    r"|eval|pipeline_stage|flatten_weights|compile|check_names|init_parameters_data|cast_inputs|cuda|astype)$"
)


_Declaration = ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign


class Exhausted(Exception):
    """The program is too large to be followed to the end."""


class _Frame:
    """A function that is being followed."""

    def __init__(self, number: int, owner: str | None, this: Value | None, name: str) -> None:
        self.number = number
        self.owner = owner
        self.this = this
        self.name = name
        self.returned: list[Value] = []


class Interpreter:
    """Follows code of ``program``."""

    def __init__(self, program: Program, most_steps: int) -> None:
        self.program = program
        self.steps_left = most_steps
        self.things: list[Thing] = []
        self.training_steps: list[TrainingStep] = []
        self.weights: Weights | None = None
        self.following = False
        self.opened: set[Place] = set()
        """Calls whose output depends on trained parameters: to be left open whatever else holds there."""
        self.visited: set[str] = set()
        """Classes whose ``construct`` was followed."""
        self.choice = 0
        self.alternatives = 1
        """Which of several networks is followed where an attribute may hold any of them, and of how many."""
        self.called: set[int] = set()
        """Identities of the things that were called while following."""
        self._members: dict[int, bool] = {}
        self._symbols: dict[Path, dict[str, list[ast.stmt]]] = {}
        self._lineages: dict[str, list[tuple[str, dict[str, _Declaration]]]] = {}
        self._canonical: dict[tuple[Path, str], str] = {}
        self._globals: dict[tuple[Path, str], Value] = {}
        self._frames: list[_Frame] = [_Frame(0, None, None, "")]
        self._active: list[ast.AST] = []
        self._frame_count = 0
        self._unsure = 0
        self._loops: list[tuple[int, list[bool]]] = []
        self._without_gradient = 0
        self._outer: Place | None = None

    # Entry points

    def run_file(self, path: Path) -> None:
        """Follow the module level of ``path`` as a script."""
        tree = self.program.tree(path)
        if tree is not None:
            scope = Scope(path, {})
            self._script = (path, scope)
            self._run(tree.body, scope)

    _script: tuple[Path, Scope] | None = None

    def run_unstarted(self) -> None:
        """Follow the training steps that the script made and did not call where it could be seen."""
        for thing in list(self.things):
            method = self.method(thing, "construct")
            if method is not None and any(isinstance(value, GradientMaker) for value in thing.attributes.values()):
                self._enter(method)

    def follow(self, target: Value, weights: Weights | None) -> Flow:
        """Return what the loss that ``target`` computes from a batch depends on, if it is differentiated by ``weights``."""
        self.weights = weights
        self._members = {}
        if weights is not None and weights.known:
            for root in weights.things:
                for thing in below(root):
                    self._members[id(thing)] = True
        self.following = True
        self._frames = [_Frame(0, None, None, "")]
        self._active, self._unsure, self._loops = [], 0, []
        try:
            return self.flow(self._loss(target))
        finally:
            self.following = False

    def _loss(self, target: Value) -> Value:
        if isinstance(target, WithLoss):
            output = self._loss(target.network)
            return self._call(target.loss, [output, Tensor()], {}, None, target.loss, "")
        if isinstance(target, Thing):
            method = self.method(target, "construct")
            if method is None and target.kind == "interface":
                return self._call(target, [Tensor()], {}, None, target, "")
            self.visited.add(target.reference)
            return self._enter(method) if method else Tensor(TRAINED)
        return self._enter(target) if isinstance(target, Function) else Tensor(TRAINED)

    def _enter(self, function: Function) -> Value:
        """Follow a function that gets a batch."""
        given = function.node.args
        names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        if function.this is not None:
            names = names[1:]
        values: dict[str, Value] = {name: Tensor() for name in names}
        return self._invoke(function, [], values, relocate=None)

    def make_alone(self, made: Class) -> Thing:
        """Return a new object of a class of the project, made from arguments that are not known."""
        place = Place.of(made.path, made.node)
        thing = self._thing("class", made.reference, place)
        thing.is_network = True
        constructor = self.method(thing, "__init__")
        if constructor is not None and not isinstance(constructor.node, ast.Lambda):
            given = constructor.node.args
            names = [argument.arg for argument in (*given.posonlyargs, *given.args)][1:]
            required = names[: len(names) - len(given.defaults)]
            required += [a.arg for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is None]
            unknown: dict[str, Value] = {name: self._thing("unknown", name, place) for name in required}
            self._invoke(constructor, [], unknown, relocate=None)
        return thing

    # Statements: each returns whether what follows it is not reached

    def _run(self, body: list[ast.stmt], scope: Scope) -> bool:
        return any(self._statement(statement, scope) for statement in body)

    def _statement(self, node: ast.stmt, scope: Scope) -> bool:
        self._spend()
        if isinstance(node, ast.Assign):
            value = self.value(node.value, scope)
            for target in node.targets:
                self._assign(target, value, scope, node)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self.value(node.value, scope), scope, node)
        elif isinstance(node, ast.AugAssign):
            self._augment(node, scope)
        elif isinstance(node, ast.Expr):
            self.value(node.value, scope)
        elif isinstance(node, ast.Return):
            self._frames[-1].returned.append(self.value(node.value, scope) if node.value else Constant(None))
            return True
        elif isinstance(node, ast.Raise):
            return True
        elif isinstance(node, (ast.Continue, ast.Break)):
            if self._loops and self._unsure > self._loops[-1][0]:
                self._loops[-1][1][0] = True
            return True
        elif isinstance(node, ast.If):
            return self._branch(node, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._for(node, scope)
        elif isinstance(node, ast.While):
            for _ in range(2 if self.following else 1):
                self._run(node.body, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self._with(node, scope)
        elif isinstance(node, ast.Try):
            ended = self._run(node.body, scope)
            for handler in node.handlers:
                with self._doubt():
                    self._run(handler.body, scope)
            self._run(node.finalbody, scope)
            return ended
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scope.names[node.name] = Function(scope.path, node, scope)
        elif isinstance(node, ast.ClassDef):
            known = isinstance(scope.names.get(node.name), Class) or scope.outer is None
            if known and self._symbols_of(scope.path).get(node.name):
                scope.names[node.name] = Class(f"{scope.path}:{node.name}", scope.path, node)
            else:
                scope.names[node.name] = Interface(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, scope)
        return False

    def _spend(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Exhausted

    @contextmanager
    def _doubt(self) -> Iterator[None]:
        """What runs inside may or may not happen."""
        self._unsure += 1
        try:
            yield
        finally:
            self._unsure -= 1

    def _branch(self, node: ast.If, scope: Scope) -> bool:
        truth = self._truth(node.test, scope)
        if truth is not None:
            return self._run(node.body if truth else node.orelse, scope)
        before = dict(scope.names)
        with self._doubt():
            first_ends = self._run(node.body, scope)
        first, scope.names = scope.names, before
        with self._doubt():
            second_ends = self._run(node.orelse, scope)
        if first_ends and second_ends:
            return True
        if second_ends:
            scope.names = first
        elif not first_ends:
            scope.names = {
                name: either([item[name] for item in (first, scope.names) if name in item])
                for name in {**first, **scope.names}
            }
        return False

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        iterated = self.value(node.iter, scope)
        rounds = self._rounds(iterated)
        self._loops.append((self._unsure, [False]))
        for item in rounds:
            self._assign(node.target, item, scope, node)
            self._run(node.body, scope)
        self._loops.pop()
        self._run(node.orelse, scope)

    def _rounds(self, iterated: Value) -> list[Value]:
        if isinstance(iterated, Sequence) and len(iterated.items) <= 8 and things_in(iterated):
            return list(iterated.items)
        return [self._element(iterated)] * (2 if self.following else 1)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
        off = any("no_grad" in ast.unparse(item.context_expr) for item in node.items)
        for item in node.items:
            value = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, value, scope, node)
        self._without_gradient += off
        try:
            return self._run(node.body, scope)
        finally:
            self._without_gradient -= off

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else name
            elif alias.name == "*":
                continue
            else:
                name, base = alias.asname or alias.name, "." * node.level + (node.module or "")
                target = base + alias.name if base.endswith(".") else f"{base}.{alias.name}"
            scope.names[name] = self._known(self.program.canonical(scope.path, target))

    def _assign(self, target: ast.expr, value: Value, scope: Scope, node: ast.stmt | ast.expr) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(target, value, scope, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, scope, node)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, Many(self._element(value)), scope, node)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value, scope)

    def _assign_attribute(self, target: ast.Attribute, value: Value, scope: Scope, node: ast.stmt | ast.expr) -> None:
        for holder in parts(self.value(target.value, scope)):
            if target.attr == "requires_grad":
                self._freeze(holder, value, Place.of(scope.path, node))
            elif isinstance(holder, Thing):
                known = holder.attributes.get(target.attr)
                holder.attributes[target.attr] = either([known, value]) if known and self._unsure else value

    def _freeze(self, holder: Value, value: Value, place: Place) -> None:
        if not isinstance(value, Constant) or self.following:
            return
        reason = Reason(True, place)
        if isinstance(holder, Thing) and holder.kind == "parameter":
            holder.frozen = None if value.value else reason
        if not isinstance(holder, Parameters):
            return
        skipping = bool(self._loops) and (self._unsure > self._loops[-1][0] or self._loops[-1][1][0])
        for root in holder.things:
            for thing in below(root):
                if value.value:
                    thing.frozen = None
                elif not (skipping or holder.partial):
                    thing.frozen = reason
                thing.is_network = thing.is_network or thing is root

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, scope: Scope, node: ast.stmt | ast.expr) -> None:
        if isinstance(value, Union):
            fitting = [v for v in value.options if isinstance(v, Sequence) and len(v.items) == len(target.elts)]
            if fitting:
                value = Sequence([either([v.items[i] for v in fitting]) for i in range(len(target.elts))])
        plain = not any(isinstance(element, ast.Starred) for element in target.elts)
        if isinstance(value, Sequence) and len(value.items) == len(target.elts) and plain:
            for element, item in zip(target.elts, value.items, strict=True):
                self._assign(element, item, scope, node)
        else:
            for element in target.elts:
                self._assign(element, self._element(value), scope, node)

    def _assign_item(self, target: ast.Subscript, value: Value, scope: Scope) -> None:
        holder = self.value(target.value, scope)
        key = self.value(target.slice, scope)
        for item in parts(holder) if isinstance(holder, Union) else (holder,):
            if isinstance(item, Mapping):
                if isinstance(key, Constant) and isinstance(key.value, (str, int)):
                    item.entries[key.value] = value
                else:
                    item.others.append(value)
            elif isinstance(item, Sequence):
                item.items[:] = [either([known, value]) for known in item.items] or [value]
            elif isinstance(item, Many):
                item.item = either([item.item, value])
            elif isinstance(item, Tensor):
                item = Tensor(joined(iter((item.flow, self.flow(value)))))
                if isinstance(target.value, ast.Name):
                    scope.names[target.value.id] = item
            elif isinstance(item, Thing):
                item.children.append(value)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        load = ast.copy_location(_loading(node.target), node.target)
        before, change = self.value(load, scope), self.value(node.value, scope)
        self._assign(node.target, self._added(before, change), scope, node)

    def _added(self, left: Value, right: Value) -> Value:
        listed = [item for item in (*parts(left), *parts(right)) if isinstance(item, Parameters)]
        if listed and all(isinstance(item, Parameters) for item in (*parts(left), *parts(right))):
            things = tuple(thing for item in listed for thing in item.things)
            return Parameters(things, all(item.trainable for item in listed), any(item.partial for item in listed))
        if listed:
            return Sequence([left, right])
        if isinstance(left, Sequence) and isinstance(right, Sequence):
            items = left.items + right.items
            return Sequence(items) if len(items) <= _MOST_ITEMS else Many(either(items))
        if isinstance(left, (Sequence, Many)) or isinstance(right, (Sequence, Many)):
            return Many(either([self._element(left), self._element(right)]))
        if isinstance(left, Thing) and left.kind in ("unknown", "class") and not self.following:
            return left
        return self._computed(left, right)

    # Expressions

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """Return what ``node`` stands for."""
        self._spend()
        handler = _HANDLERS.get(type(node))
        return handler(self, node, scope) if handler else Tensor()

    def flow(self, value: Value) -> Flow:
        """Return what ``value``, taken as a tensor or a container of tensors, depends on."""
        if isinstance(value, Tensor):
            return value.flow
        if isinstance(value, Thing):
            if value.kind == "parameter" and self.following and self.trains(value):
                return TRAINED
            if _is_record(value):
                return joined(
                    item.flow for held in value.attributes.values() for item in parts(held) if isinstance(item, Tensor)
                )
            return CLOSED
        if isinstance(value, (Sequence, Many, Mapping, Union)):
            return joined(self.flow(item) for item in parts(value))
        return CLOSED

    def _computed(self, *values: Value) -> Value:
        return Tensor(joined(self.flow(value) for value in values)) if self.following else Tensor()

    def _constant(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Constant)
        return Constant(node.value)

    def _name(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Name)
        place: Scope | None = scope
        while place is not None:
            if node.id in place.names:
                return place.names[node.id]
            place = place.outer
        return self._global(scope.path, node.id)

    def _global(self, path: Path, name: str) -> Value:
        if self._script is not None and self._script[0] == path and name in self._script[1].names:
            return self._script[1].names[name]
        key = (path, name)
        if key not in self._globals:
            self._globals[key] = Interface(name)
            self._globals[key] = self._find_global(path, name)
        return self._globals[key]

    def _find_global(self, path: Path, name: str) -> Value:
        for node in reversed(self._symbols_of(path).get(name, [])):
            if isinstance(node, ast.ClassDef):
                return Class(f"{path}:{name}", path, node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return Function(path, node)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                return self.value(node.value, Scope(path, {}))
            scope = Scope(path, {})
            self._statement(node, scope)
            if name in scope.names:
                return scope.names[name]
        resolved = self.program.name_in(path, name)
        return self._known(resolved) if resolved else Interface(name)

    def _known(self, resolved: str) -> Value:
        """Return what an answer of ``Program.canonical`` stands for."""
        if resolved.endswith(".py"):
            return File(Path(resolved))
        home, colon, name = resolved.rpartition(":")
        if colon and home.endswith(".py"):
            head, *rest = name.split(".")
            value = self._global(Path(home), head)
            for attribute in rest:
                value = self._attribute_of(value, attribute, Path(home))
            return value
        return Interface(resolved)

    def _symbols_of(self, path: Path) -> dict[str, list[ast.stmt]]:
        table = self._symbols.get(path)
        if table is None:
            table = self._symbols[path] = {}
            tree = self.program.tree(path)
            for node in _module_level(tree.body) if tree is not None else ():
                for name in _bound_names(node):
                    table.setdefault(name, []).append(node)
        return table

    def _attribute(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Attribute)
        holder = self.value(node.value, scope)
        if isinstance(holder, Union):
            return either([self._attribute_of(option, node.attr, scope.path) for option in holder.options])
        return self._chosen(self._attribute_of(holder, node.attr, scope.path))

    def _chosen(self, value: Value) -> Value:
        """Of several networks that an attribute may hold, return the one that this run supposes."""
        if self.following and isinstance(value, Union) and all(_is_network(option) for option in value.options):
            self.alternatives = max(self.alternatives, len(value.options))
            return value.options[self.choice % len(value.options)]
        return value

    def _attribute_of(self, holder: Value, name: str, path: Path) -> Value:
        if isinstance(holder, Thing):
            return self._thing_attribute(holder, name)
        if isinstance(holder, Parent):
            found = self._inherited(holder.this, holder.owner, name)
            return found or Member(holder.this, name)
        if isinstance(holder, File):
            found_name = self.program.name_in(holder.path, name)
            submodule = None if found_name else self.program.module(holder.path, f".{name}")
            if submodule:
                return File(submodule)
            return (
                self._global(holder.path, name)
                if self._symbols_of(holder.path).get(name)
                else self._known(found_name or f"{holder.path.stem}.{name}")
            )
        if isinstance(holder, Interface):
            key = (path, f"{holder.name}.{name}")
            if key not in self._canonical:
                self._canonical[key] = self.program.canonical(*key)
            return Interface(self._canonical[key])
        if isinstance(holder, Class):
            return self._class_attribute(holder, name)
        if isinstance(holder, Parameters) and name in ("data", "name", "shape", "dtype", "requires_grad"):
            return Tensor()
        if isinstance(holder, Tensor):
            if _STOPPING.match(name) and name not in ("numpy", "item", "round", "floor", "ceil", "sign"):
                return Member(holder, name)
            return Member(holder, name) if name not in ("T", "H", "mT", "data") else holder
        return Member(holder, name)

    def _class_attribute(self, holder: Class, name: str) -> Value:
        found = self._declared(holder.reference, None, name)
        if found is None:
            return Interface(name)
        owner, item = found
        if isinstance(item, ast.Assign):
            return self.value(item.value, Scope(_path(owner), {}))
        bound = holder if _is_decorated(item, "classmethod") else None
        return Function(_path(owner), item, None, bound, owner)

    def _declared(self, reference: str, after: str | None, name: str) -> tuple[str, _Declaration] | None:
        """Return what a class, or the nearest of its bases behind ``after``, declares as ``name``, and which of them."""
        if reference not in self._lineages:
            self._lineages[reference] = list(self._lineage(reference))
        lineage = self._lineages[reference]
        start = next((index + 1 for index, (owner, _) in enumerate(lineage) if owner == after), 0)
        return next(((owner, members[name]) for owner, members in lineage[start:] if name in members), None)

    def _lineage(self, reference: str) -> Iterator[tuple[str, dict[str, _Declaration]]]:
        for base in self.program.lineage(reference):
            home = _path(base)
            for node in self._symbols_of(home).get(base.rpartition(":")[2], []) if ".py:" in base else ():
                if isinstance(node, ast.ClassDef):
                    yield base, _declarations(node)

    def method(self, thing: Thing, name: str) -> Function | None:
        """Return the method ``name`` of an object of a class of the project, bound to it."""
        if thing.kind != "class":
            return None
        found = self._inherited(thing, None, name)
        return found if isinstance(found, Function) else None

    def _inherited(self, thing: Thing, after: str | None, name: str) -> Value | None:
        found = self._declared(thing.reference, after, name)
        if found is None:
            return None
        owner, item = found
        if isinstance(item, ast.Assign):
            return self.value(item.value, Scope(_path(owner), {}))
        return Function(_path(owner), item, None, None if _is_decorated(item, "staticmethod") else thing, owner)

    def _thing_attribute(self, thing: Thing, name: str) -> Value:
        if name in thing.attributes:
            return thing.attributes[name]
        if thing.kind == "class":
            found = self._inherited(thing, None, name)
            if isinstance(found, Function):
                decorators = [dotted(d) or "" for d in getattr(found.node, "decorator_list", [])]
                if any(d.rpartition(".")[2] in ("property", "cached_property") for d in decorators):
                    return self._invoke(found, [], {}, relocate=None)
            if found is not None:
                return found
        if thing.kind == "optimizer" and thing.weights is not None:
            if name in ("parameters", "params", "_original_params", "param_groups"):
                return Parameters(thing.weights.things, not thing.weights.every, optimizer=thing.weights)
            return Member(thing, name)
        if name in _PARAMETER_METHODS or _SETTERS.match(name) or name.startswith("__"):
            return Member(thing, name)
        if thing.kind in ("parameter", "interface"):
            if thing.kind == "interface" and name in ("weight", "bias", "gamma", "beta", "embedding_table"):
                return Tensor(TRAINED if self.following and self.trains(thing) else CLOSED)
            return Member(thing, name)
        if name in ("cells", "cells_and_names", "name_cells", "append", "insert_child_to_cell", "extend", "modules"):
            return Member(thing, name)
        part = Thing("unknown", name, thing.place, parent=thing)
        thing.attributes[name] = part
        return part

    def _subscript(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Subscript)
        holder = self.value(node.value, scope)
        key = None if isinstance(node.slice, ast.Slice) else self.value(node.slice, scope)
        options = holder.options if isinstance(holder, Union) else (holder,)
        return either([self._item(option, key) for option in options])

    def _item(self, holder: Value, key: Value | None) -> Value:
        """Return ``holder[key]``; None stands for a slice."""
        index = key.value if isinstance(key, Constant) else None
        if isinstance(holder, Sequence):
            if key is None:
                return Many(either(holder.items)) if holder.items else holder
            if isinstance(index, int) and -len(holder.items) <= index < len(holder.items):
                return holder.items[index]
            return either(holder.items) if holder.items else Tensor()
        if isinstance(holder, Many):
            return holder if key is None else holder.item
        if isinstance(holder, Mapping):
            if isinstance(index, (str, int)) and index in holder.entries:
                return holder.entries[index]
            return either([*holder.others, *([] if index is not None else holder.entries.values())])
        if isinstance(holder, Parameters):
            return Parameters(holder.things, holder.trainable, partial=not holder.one, one=True)
        if isinstance(holder, Thing):
            if holder.children and holder.kind == "interface":
                if key is None:
                    return self._thing("interface", holder.reference, holder.place, children=list(holder.children))
                if isinstance(index, int) and -len(holder.children) <= index < len(holder.children):
                    return holder.children[index]
                return either(holder.children)
            if holder.kind == "class":
                method = self.method(holder, "__getitem__")
                if method is not None and key is not None:
                    return self._invoke(method, [key], {}, relocate=None)
            return self._thing_attribute(holder, "[]") if holder.kind == "unknown" else self._computed(holder)
        return self._computed(holder)

    def _element(self, value: Value) -> Value:
        """Return any one item of ``value``."""
        if isinstance(value, Union):
            return either([self._element(option) for option in value.options])
        if isinstance(value, Parameters):
            return Parameters(value.things, value.trainable, value.partial, one=True)
        if isinstance(value, Thing) and value.children:
            return either(value.children)
        if isinstance(value, Mapping):
            return Tensor()
        if isinstance(value, Thing) and value.kind == "unknown":
            return self._thing_attribute(value, "[]")
        return self._item(value, Constant("any")) if not isinstance(value, Constant) else Tensor()

    def _binary(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.BinOp)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(node.op, ast.Add) and not isinstance(left, Thing):
            return self._added(left, right)
        if isinstance(node.op, ast.Mult) and isinstance(left, Sequence):
            return Many(either(left.items)) if left.items else left
        return self._computed(left, right)

    def _operands(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, (ast.UnaryOp, ast.Compare))
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            operand = self.value(node.operand, scope)
            if (
                isinstance(operand, Constant)
                and isinstance(node.op, ast.USub)
                and isinstance(operand.value, (int, float))
            ):
                return Constant(-operand.value)
            return self._computed(operand)
        truth = self._truth(node, scope)
        return Tensor() if truth is None else Constant(truth)

    def _either_of(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, (ast.BoolOp, ast.IfExp))
        if isinstance(node, ast.BoolOp):
            truth = self._truth(node, scope)
            values = [self.value(item, scope) for item in node.values]
            plain = all(isinstance(value, (Constant, Tensor)) for value in values)
            return Constant(truth) if truth is not None and plain else either(values)
        truth = self._truth(node.test, scope)
        if truth is not None:
            return self.value(node.body if truth else node.orelse, scope)
        return either([self.value(node.body, scope), self.value(node.orelse, scope)])

    def _lambda(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Lambda)
        return Function(scope.path, node, scope)

    def _sequence(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
        items: list[Value] = []
        for element in node.elts[:_MOST_ITEMS]:
            value = self.value(element.value if isinstance(element, ast.Starred) else element, scope)
            if isinstance(element, ast.Starred) and not isinstance(value, Sequence):
                return Many(either([*items, self._element(value)]))
            items.extend(value.items if isinstance(element, ast.Starred) and isinstance(value, Sequence) else [value])
        return Sequence(items)

    def _mapping(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Dict)
        result = Mapping({}, [])
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is None:
                inner = value if isinstance(value, Mapping) else None
                result.entries.update(inner.entries if inner else {})
                result.others.extend(inner.others if inner else [])
            elif isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                result.entries[key.value] = value
            else:
                result.others.append(value)
        return result

    def _comprehension(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
        inner = Scope(scope.path, {}, scope)
        tests = [ast.unparse(test) for generator in node.generators for test in generator.ifs]
        for generator in node.generators:
            iterated = self.value(generator.iter, inner)
            self._assign(generator.target, self._element(iterated), inner, generator.target)
        value = self.value(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        if isinstance(value, Parameters) and value.one:
            asks = ["requires_grad" in test for test in tests]
            return Parameters(value.things, value.trainable or any(asks), value.partial or not all(asks))
        return Mapping({}, [value]) if isinstance(node, ast.DictComp) else Many(value)

    def _inside(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, (ast.Starred, ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom))
        value = self.value(node.value, scope) if node.value is not None else Tensor()
        if isinstance(node, ast.NamedExpr):
            self._assign(node.target, value, scope, node)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            self._frames[-1].returned.append(Many(value))
        return value

    def _truth(self, node: ast.expr, scope: Scope) -> bool | None:
        """Return whether a condition holds, None if that is not known."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._truth(node.operand, scope)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            answers = [self._truth(item, scope) for item in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        if isinstance(node, ast.Compare):
            return self._comparison(node, scope)
        value = self.value(node, scope)
        if isinstance(value, Constant):
            return bool(value.value)
        return True if isinstance(value, (Function, Class)) else None

    def _comparison(self, node: ast.Compare, scope: Scope) -> bool | None:
        if len(node.ops) != 1:
            return None
        if dotted(node.left) == "__name__":
            return isinstance(node.ops[0], ast.Eq) and self._script is not None and scope is self._script[1]
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, Constant) and right.value is None:
            if isinstance(left, Constant):
                return (left.value is None) == isinstance(operator, ast.Is)
            if isinstance(left, Tensor) or (isinstance(left, Thing) and left.kind != "unknown"):
                return isinstance(operator, ast.IsNot)
            return None
        if isinstance(left, Constant) and isinstance(right, Constant):
            if isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
                return (left.value == right.value) == isinstance(operator, (ast.Eq, ast.Is))
        return None

    # Calls

    def _call_node(self, node: ast.expr, scope: Scope) -> Value:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            frame = self._frames[-1]
            if isinstance(frame.this, Thing) and frame.owner:
                return Parent(frame.this, frame.owner)
        function = self.value(node.func, scope)
        arguments: list[Value] = []
        for argument in node.args:
            value = self.value(argument, scope)
            if not isinstance(argument, ast.Starred):
                arguments.append(value)
            elif isinstance(value, Sequence):
                arguments.extend(value.items)
            else:
                arguments.append(Many(self._element(value)))
        keywords: dict[str, Value] = {}
        for word in node.keywords:
            value = self.value(word.value, scope)
            if word.arg:
                keywords[word.arg] = value
            for given in value.options if isinstance(value, Union) and not word.arg else (value,):
                if isinstance(given, Mapping) and not word.arg:
                    keywords.update((str(key), item) for key, item in given.entries.items())
                    if given.others:
                        keywords[_ANY] = either(given.others)
        place = Place.of(scope.path, node)
        written = ast.unparse(node.func) if self.following else ""
        options = function.options if isinstance(function, Union) else (function,)
        result = either([self._call(option, arguments, keywords, place, option, written) for option in options])
        if self._without_gradient and self.following:
            return Tensor()
        return result

    def _call(
        self,
        function: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
        place: Place | None,
        holder: Value,
        written: str,
    ) -> Value:
        if isinstance(function, Function):
            return self._invoke(function, arguments, keywords, relocate=place, written=written)
        where = place or Place(Path(), 1, 0, 1, 0)
        if isinstance(function, Class):
            return self._instance(function, arguments, keywords, where)
        if isinstance(function, Interface):
            return self._interface(function.name, arguments, keywords, where)
        if isinstance(function, Member):
            return self._member(function, arguments, keywords, where, written)
        if isinstance(function, GradientMaker):
            weights = arguments[1] if len(arguments) > 1 else keywords.get("weights")
            if function.by_list and weights is not None and arguments:
                self._trains(arguments[0], self._weights(weights, where), where)
            return Interface("gradients")
        if isinstance(function, Thing):
            return self._apply(function, arguments, keywords, where, written)
        if isinstance(function, WithLoss):
            output = self._call(function.network, arguments[:-1], keywords, place, holder, written)
            return self._call(function.loss, [output, *arguments[-1:]], {}, place, holder, written)
        return self._computed(*arguments, *keywords.values())

    def _invoke(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        *,
        relocate: Place | None,
        written: str = "",
    ) -> Value:
        node = function.node
        if self._active.count(node) > 1 or len(self._active) > _DEEPEST:
            return self._computed(*arguments, *keywords.values())
        scope = Scope(function.path, {}, function.outer)
        if function.this is not None:
            arguments = [function.this, *arguments]
        self._bind(function, arguments, keywords, scope)
        self._frame_count += 1
        this = function.this or (arguments[0] if arguments and function.owner else None)
        frame = _Frame(self._frame_count, function.owner, this, getattr(node, "name", "<lambda>"))
        self._frames.append(frame)
        self._active.append(node)
        loops, self._loops = self._loops, []
        try:
            if isinstance(node, ast.Lambda):
                frame.returned.append(self.value(node.body, scope))
            else:
                self._run(node.body, scope)
        finally:
            self._loops = loops
            self._active.pop()
            self._frames.pop()
        result = either(frame.returned) if frame.returned else Constant(None)
        if self.following and relocate is not None:
            result = self._seen_from_outside(result, frame.number, relocate, written)
        return result

    def _seen_from_outside(self, result: Value, frame: int, call: Place, written: str) -> Value:
        """Let the features that a helper returns, if nothing trained is with them, be those of the call of the helper."""
        flow = self.flow(result)
        if flow.trained:
            self.opened.add(call)
            return result
        if not any(feature.frame == frame for feature in flow.features):
            return result
        outside = self._frames[-1].number
        return _mapped(
            result,
            lambda flow: replace(
                flow,
                features=frozenset(
                    replace(feature, place=call, frame=outside) if feature.frame == frame else feature
                    for feature in flow.features
                ),
            ),
        )

    def _bind(self, function: Function, arguments: list[Value], keywords: dict[str, Value], scope: Scope) -> None:
        given = function.node.args
        names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        rest: list[Value] = []
        for position, value in enumerate(arguments):
            if isinstance(value, Many) and value is arguments[-1] and len(arguments) <= len(names):
                scope.names.update((name, value.item) for name in names[position:] if name not in keywords)
                rest.append(value)
            elif position < len(names):
                scope.names[names[position]] = value
            else:
                rest.append(value)
        others: dict[object, Value] = {}
        unnamed = keywords.get(_ANY)
        known = {*names, *(argument.arg for argument in given.kwonlyargs)}
        for name, value in keywords.items():
            if name in known:
                scope.names[name] = value
            elif name != _ANY:
                others[name] = value
        if unnamed is not None:
            for name in known - scope.names.keys():
                scope.names[name] = unnamed
        if given.vararg:
            scope.names[given.vararg.arg] = (
                Sequence(rest)
                if not any(isinstance(x, Many) for x in rest)
                else Many(either([item.item if isinstance(item, Many) else item for item in rest]))
            )
            if not arguments and not rest and self.following and not keywords:
                scope.names[given.vararg.arg] = Many(Tensor())
        if given.kwarg:
            scope.names[given.kwarg.arg] = Mapping(others, [unnamed] if unnamed is not None else [])
        defaults = [*zip(reversed(names), reversed(given.defaults), strict=False)]
        defaults += [(a.arg, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
        for name, default in defaults:
            if name not in scope.names:
                scope.names[name] = self.value(default, function.outer or Scope(function.path, {}))
        for name in known:
            if name not in scope.names:
                scope.names[name] = Tensor()

    def _thing(self, kind: str, reference: str, place: Place, children: list[Value] | None = None) -> Thing:
        thing = Thing(kind, reference, place, children=children or [], transient=self.following)
        self.things.append(thing)
        return thing

    def _instance(self, made: Class, arguments: list[Value], keywords: dict[str, Value], place: Place) -> Thing:
        lineage = self.program.lineage(made.reference)
        if any(_OPTIMIZERS.match(base) for base in lineage):
            given = keywords.get("params") or keywords.get("parameters") or (arguments[0] if arguments else Tensor())
            return self._optimizer(given, place)
        thing = self._thing("class", made.reference, place)
        thing.is_network = any(base.startswith("mindspore.nn.") for base in lineage)
        thing.is_layer = any(_WITH_PARAMETERS.match(base) for base in lineage)
        constructor = self.method(thing, "__init__")
        if constructor is not None:
            self._invoke(constructor, arguments, keywords, relocate=None)
        else:
            self._inherit(thing, arguments, keywords, place)
        return thing

    def _inherit(self, thing: Thing, arguments: list[Value], keywords: dict[str, Value], place: Place) -> None:
        """Let ``thing`` have what the constructor of its MindSpore base gives it."""
        base = next((b for b in self.program.lineage(thing.reference) if b.startswith("mindspore.")), "")
        name = base.rpartition(".")[2]
        network = keywords.get("network") or (arguments[0] if arguments else None)
        if "TrainOneStep" in name and network is not None:
            optimizer = keywords.get("optimizer") or (arguments[1] if len(arguments) > 1 else Tensor())
            weights = self._weights(optimizer, place)
            thing.attributes.update(
                network=network,
                optimizer=optimizer,
                weights=Parameters(weights.things, not weights.every, optimizer=weights)
                if weights.known
                else optimizer,
                grad=GradientMaker(True),
            )
            self._trains(network, weights, place)
        elif name in ("SequentialCell", "CellList"):
            thing.children.extend(self._layers(arguments))
        elif name == "WithLossCell" and len(arguments) > 1:
            thing.attributes.update(_backbone=arguments[0], _loss_fn=arguments[1])

    def _layers(self, arguments: list[Value]) -> list[Value]:
        layers: list[Value] = []
        for argument in arguments:
            if isinstance(argument, Sequence):
                layers.extend(argument.items)
            elif isinstance(argument, Mapping):
                layers.extend([*argument.entries.values(), *argument.others])
            elif isinstance(argument, Thing) and argument.children and len(arguments) == 1:
                layers.extend(argument.children)
            else:
                layers.append(argument.item if isinstance(argument, Many) else argument)
        return layers

    def _optimizer(self, given: Value, place: Place) -> Thing:
        optimizer = self._thing("optimizer", "optimizer", place)
        optimizer.weights = self._weights(given, place)
        return optimizer

    def _weights(self, given: Value, place: Place) -> Weights:
        things: list[Thing] = []
        held: set[int] = set()
        known, every = False, False
        for item in parts(given):
            if isinstance(item, Parameters):
                things.extend(item.things)
                known, every = True, every or not item.trainable
                place = item.optimizer.place if item.optimizer else place
                held |= item.optimizer.held if item.optimizer else _listed(item)
            elif isinstance(item, Thing) and item.kind == "optimizer" and item.weights is not None:
                things.extend(item.weights.things)
                known, every, place = item.weights.known, item.weights.every, item.weights.place
                held |= item.weights.held
            elif isinstance(item, Thing) and item.kind == "parameter":
                things.append(item)
                held.add(id(item))
                known = True
            elif isinstance(item, Thing) and item.kind == "unknown":
                return Weights((), False, False, place)
        tracked = known and all(thing.kind != "unknown" or thing.is_network for thing in things)
        return Weights(tuple(dict.fromkeys(things)), tracked, every, place, frozenset(held))

    def _trains(self, target: Value, weights: Weights, place: Place) -> None:
        if self.following:
            return
        for item in target.options if isinstance(target, Union) else (target,):
            if isinstance(item, (Thing, Function, WithLoss)):
                self.training_steps.append(TrainingStep(item, weights, place))

    def _interface(self, name: str, arguments: list[Value], keywords: dict[str, Value], place: Place) -> Value:
        last = name.rpartition(".")[2]
        everything = [*arguments, *keywords.values()]
        ours = name.startswith("mindspore.")
        if last == "isinstance" and len(arguments) == 2:
            answer = self._is_instance(arguments[0], arguments[1])
            return Tensor() if answer is None else Constant(answer)
        if _STOPPING.match(last):
            return Tensor()
        if last in _WEIGHT_LISTS or last in ("filter", "map"):
            return self._same(last, arguments)
        if last == "enumerate" and arguments:
            return Many(Sequence([Tensor(), self._element(arguments[0])]))
        if last == "zip":
            return Many(Sequence([self._element(argument) for argument in arguments]))
        if last == "getattr" and len(arguments) > 1:
            key = arguments[1]
            if isinstance(key, Constant) and isinstance(key.value, str):
                return self._attribute_of(arguments[0], key.value, place.path)
            return self._unknown(last, place)
        if last == "setattr" and len(arguments) == 3 and isinstance(arguments[0], Thing):
            arguments[0].children.append(arguments[2])
            return Constant(None)
        if name in ("copy.deepcopy", "copy.copy") and arguments:
            return copied(arguments[0], self.things)
        if last == "GradOperation":
            flag = keywords.get("get_by_list") or (arguments[1] if len(arguments) > 1 else Constant(False))
            return GradientMaker(not (isinstance(flag, Constant) and not flag.value))
        if last in ("value_and_grad", "grad", "ForwardValueAndGrad", "vjp", "jvp"):
            position = 1 if last == "ForwardValueAndGrad" else 2
            weights = keywords.get("weights") or (arguments[position] if len(arguments) > position else None)
            differentiated = arguments[0] if arguments else keywords.get("fn") or keywords.get("network")
            if differentiated is not None and weights is not None and not (isinstance(weights, Constant)):
                self._trains(differentiated, self._weights(weights, place), place)
            return Interface("gradients")
        if ours and last == "Parameter":
            parameter = self._thing("parameter", name, place)
            required = keywords.get("requires_grad") or (arguments[2] if len(arguments) > 2 else None)
            if isinstance(required, Constant) and not required.value:
                parameter.frozen = Reason(True, place)
            return parameter
        if last in ("load_param_into_net", "load_checkpoint"):
            for thing in (item for argument in everything for item in things_in(argument)):
                thing.is_network = thing.loaded = True
            return Sequence([Tensor(), Tensor()]) if last == "load_param_into_net" else self._unknown(last, place)
        if last in _WRAPPERS and arguments:
            return arguments[0]
        if ours and last in ("CellList", "SequentialCell"):
            return self._thing("interface", name, place, self._layers(arguments))
        if ours and last == "WithLossCell" and len(arguments) > 1:
            return WithLoss(arguments[0], arguments[1])
        return self._foreign(name, arguments, keywords, place)

    def _is_instance(self, value: Value, kind: Value) -> bool | None:
        if isinstance(kind, Class) and isinstance(value, Tensor):
            return False
        if isinstance(kind, Class) and isinstance(value, Thing) and value.kind == "class":
            return kind.reference in self.program.lineage(value.reference)
        if isinstance(kind, Interface) and kind.name.endswith(".Tensor") and isinstance(value, (Tensor, Thing)):
            return isinstance(value, Tensor)
        if isinstance(kind, Interface) and kind.name in ("dict", "list", "tuple", "str"):
            if isinstance(value, (Tensor, Mapping)):
                return isinstance(value, Mapping) and kind.name == "dict"
        if isinstance(kind, Interface) and kind.name == "mindspore.nn.Cell" and _is_network(value):
            return True
        return None

    def _foreign(self, name: str, arguments: list[Value], keywords: dict[str, Value], place: Place) -> Value:
        """Call something that is not read: judge by what it gets."""
        everything = [*arguments, *keywords.values()]
        ours = name.startswith("mindspore.")
        given = [item for argument in everything for item in parts(argument)]
        if _OPTIMIZERS.match(name):
            return self._optimizer(keywords.get("params") or (arguments[0] if arguments else Tensor()), place)
        optimizers = [item for item in given if isinstance(item, Thing) and item.kind == "optimizer"]
        networks = [
            item
            for item in given
            if isinstance(item, (Function, WithLoss)) or (isinstance(item, Thing) and item.kind in ("class", "unknown"))
        ]
        if optimizers and networks and not self.following:
            # Whoever gets a network and an optimizer trains the one by the other: nn.TrainOneStepCell, Model, a trainer.
            network = keywords.get("network") or keywords.get("net") or keywords.get("model") or networks[0]
            loss = keywords.get("loss_fn") or (arguments[1] if len(arguments) > 1 and name.endswith(".Model") else None)
            target = WithLoss(network, loss) if isinstance(loss, (Thing, Function)) and loss.__class__ else network
            if isinstance(loss, Thing) and loss.kind == "optimizer":
                target = network
            self._trains(target, self._weights(optimizers[0], place), place)
            wrapper = self._thing("interface", name, place, [network])
            return wrapper
        if any(isinstance(item, Parameters) for item in given) and not self.following:
            return self._optimizer(either(everything), place)
        if optimizers:
            return optimizers[0]
        if self.following and not (ours and _is_class_name(name)):
            return self._computed(*everything)
        if ours:
            children = [item for item in given if isinstance(item, Thing) and item.is_network]
            return self._thing("interface", name, place, list(children)) if _is_class_name(name) else Tensor()
        made = self._unknown(name, place)
        made.children.extend(item for item in given if isinstance(item, Thing) and item.is_network)
        return made

    def _unknown(self, name: str, place: Place) -> Thing:
        return self._thing("unknown", name, place)

    def _same(self, name: str, arguments: list[Value]) -> Value:
        if not arguments:
            return Sequence([])
        if name == "map":
            return Many(self._call(arguments[0], [self._element(x) for x in arguments[1:]], {}, None, arguments[0], ""))
        value = arguments[-1] if name == "filter" else arguments[0]
        listed = [item for item in parts(value) if isinstance(item, Parameters)]
        if name == "filter" and listed:
            test = arguments[0]
            asks = isinstance(test, Function) and "requires_grad" in ast.unparse(test.node)
            things = tuple(thing for item in listed for thing in item.things)
            trainable = asks or all(item.trainable for item in listed)
            return Parameters(things, trainable, not asks or any(item.partial for item in listed))
        return value

    def _member(
        self, member: Member, arguments: list[Value], keywords: dict[str, Value], place: Place, written: str
    ) -> Value:
        this, name = member.this, member.name
        if isinstance(this, Thing):
            return self._thing_member(this, name, arguments, keywords, place, written)
        if isinstance(this, (Sequence, Many)) and name in ("append", "extend", "insert", "add") and arguments:
            added = arguments[-1]
            if isinstance(this, Many):
                this.item = either([this.item, self._element(added) if name == "extend" else added])
            elif len(this.items) < _MOST_ITEMS:
                this.items.extend(
                    added.items
                    if name == "extend" and isinstance(added, Sequence)
                    else [self._element(added) if name == "extend" else added]
                )
            return Constant(None)
        if isinstance(this, Sequence) and name == "pop" and this.items:
            return either(this.items)
        if isinstance(this, Mapping):
            values = either([*this.entries.values(), *this.others])
            if name == "items":
                return Many(Sequence([Tensor(), values]))
            if name == "values":
                return Many(values)
            if name in ("get", "pop", "setdefault") and arguments:
                return self._item(this, arguments[0])
            if name == "update" and arguments and isinstance(arguments[0], Mapping):
                this.entries.update(arguments[0].entries)
                this.others.extend(arguments[0].others)
            return Tensor()
        if _STOPPING.match(name):
            return Tensor()
        return self._computed(this, *arguments, *keywords.values())

    def _thing_member(
        self, thing: Thing, name: str, arguments: list[Value], keywords: dict[str, Value], place: Place, written: str
    ) -> Value:
        if name in _PARAMETER_METHODS:
            thing.is_network = True
            found = Parameters((thing,), _PARAMETER_METHODS[name])
            if name in _NAMED:
                return Many(Sequence([Tensor(), Parameters((thing,), False, one=True)]))
            return found
        if name in ("set_grad", "set_train", "train", "eval"):
            self._hush(thing, name, arguments, keywords, place)
            return thing
        if name == "__init__":
            self._inherit(thing, arguments, keywords, place)
            return Constant(None)
        if name in ("cells", "cells_and_names", "name_cells", "modules"):
            cell = self._thing("unknown", "cell", place, [thing])
            cell.is_network = True
            return Many(Sequence([Tensor(), cell])) if name == "cells_and_names" else Many(cell)
        if name in ("append", "insert", "extend", "insert_child_to_cell", "add_module", "register_module"):
            thing.children.extend(self._layers(arguments[-1:]))
            return Constant(None)
        if _SETTERS.match(name):
            return thing
        if name == "construct" or name == "__call__":
            return self._apply(thing, arguments, keywords, place, written)
        if thing.kind == "parameter" or thing.kind == "interface":
            return self._computed(thing, *arguments)
        return self._apply(thing, arguments, keywords, place, written)

    def _hush(self, thing: Thing, name: str, arguments: list[Value], keywords: dict[str, Value], place: Place) -> None:
        if self.following:
            return
        flag = next(iter((*arguments, *keywords.values())), Constant(name != "eval"))
        thing.is_network = True
        method = {"train": "set_train", "eval": "set_train"}.get(name, name)
        thing.hushed = [item for item in thing.hushed if item.method != method]
        if isinstance(flag, Constant) and not flag.value:
            frame = self._frames[-1]
            maker = frame.this if frame.name == "__init__" and isinstance(frame.this, Thing) else None
            thing.hushed.append(Hush(method, place, maker, self._listed_before(thing)))

    def _listed_before(self, thing: Thing) -> bool:
        own = {id(item) for item in below(thing)}
        listed = [item.weights.held for item in self.things if item.weights is not None]
        return any(own & held for held in (*listed, *(step.weights.held for step in self.training_steps)))

    def _apply(
        self, thing: Thing, arguments: list[Value], keywords: dict[str, Value], place: Place, written: str
    ) -> Value:
        """Call an object."""
        if not self.following:
            if thing.kind == "class" and any(isinstance(v, (GradientMaker,)) for v in thing.attributes.values()):
                method = self.method(thing, "construct") or self.method(thing, "__call__")
                return self._invoke(method, arguments, keywords, relocate=None) if method else Tensor()
            if thing.kind == "class" and not thing.is_network:
                method = self.method(thing, "__call__")
                return self._invoke(method, arguments, keywords, relocate=None) if method else Tensor()
            if thing.kind == "unknown":
                return self._foreign(thing.reference, arguments, keywords, place)
            return Tensor()
        self.called.add(id(thing))
        if len(self._frames) == 2:
            self._outer = place
        given = joined(self.flow(value) for value in (*arguments, *keywords.values()))
        reason = self.reason_untrained(thing)
        if reason is not None and not given.trained and (arguments or keywords):
            holders = self._holders(thing)
            weighted = self.weights is not None and any(id(holder) in self.weights.held for holder in holders)
            frame = self._frames[-1].number
            feature = Feature(place, written, reason, len(holders), weighted, frame, self._outer)
            return Tensor(Flow(False, frozenset((feature,))))
        if given.trained or reason is None:
            result = self._output(thing, arguments, keywords, place, written, given)
            if self.flow(result).trained:
                self.opened.add(place)
                if thing.hushed and self.holds_trained(thing):
                    return _mapped(result, lambda flow: replace(flow, hushed=flow.hushed | {thing}))
            return result
        return Tensor(given)

    def _output(
        self,
        thing: Thing,
        arguments: list[Value],
        keywords: dict[str, Value],
        place: Place,
        written: str,
        given: Flow,
    ) -> Value:
        if thing.kind == "class":
            method = self.method(thing, "construct") or self.method(thing, "__call__")
            if method is not None:
                self.visited.add(thing.reference)
                return self._invoke(method, arguments, keywords, relocate=place, written=written)
            return self._through(thing, arguments, keywords, place, given)
        if thing.kind == "interface":
            if _STOPPING.match(thing.reference.rpartition(".")[2]):
                return Tensor()
            if thing.children:
                return self._through(thing, arguments, keywords, place, given)
            return Tensor(replace(given, trained=given.trained or self.trains(thing)))
        if thing.kind == "unknown" and thing.parent is not None and _is_record(thing.parent):
            return self._computed(thing.parent, *arguments, *keywords.values())
        if thing.kind == "unknown" and thing.frozen_by() is None:
            return Tensor(replace(given, trained=True))
        return Tensor(given)

    def _through(
        self, thing: Thing, arguments: list[Value], keywords: dict[str, Value], place: Place, given: Flow
    ) -> Value:
        """Pass the input through the layers of a container, or through what a wrapper wraps."""
        result: Value | None = None
        for layer in thing.children[:200]:
            inputs = arguments if result is None else [result]
            options = layer.options if isinstance(layer, Union) else (layer,)
            result = either(
                [self._call(x, inputs, keywords if inputs is arguments else {}, place, x, "") for x in options]
            )
        return result if result is not None else Tensor(replace(given, trained=given.trained or self.trains(thing)))

    # What is trained

    def trains(self, thing: Thing) -> bool:
        """Tell whether ``thing``, a layer or a parameter itself, has parameters that the step trains."""
        if not self._has_own_parameters(thing) or thing.frozen_by() is not None:
            return False
        return self._is_member(thing)

    def holds_trained(self, thing: Thing) -> bool:
        """Tell whether anything in ``thing`` is trained."""
        return any(self.trains(item) for item in below(thing))

    def _is_member(self, thing: Thing) -> bool:
        if self.weights is None or not self.weights.known:
            return True
        item: Thing | None = thing
        while item is not None:
            if id(item) in self._members:
                return True
            item = item.parent
        return False

    def _has_own_parameters(self, thing: Thing) -> bool:
        if thing.kind == "parameter":
            return True
        if thing.kind == "unknown":
            return thing.is_network or thing.frozen_by() is not None
        return thing.is_layer or (thing.kind == "interface" and bool(_WITH_PARAMETERS.match(thing.reference)))

    def _holders(self, thing: Thing) -> list[Thing]:
        return [item for item in below(thing) if self._has_own_parameters(item)]

    def reason_untrained(self, thing: Thing) -> Reason | None:
        """Return why nothing of ``thing`` is trained; None if something is, may be, or if it has no parameters."""
        holders = self._holders(thing)
        learnable = [item for item in holders if not (item.kind == "parameter" and item.frozen)]
        if any(item.transient for item in learnable):
            return None  # a layer made in the forward pass: no optimizer can hold it, and nobody meant that
        if not learnable or any(item.frozen_by() is None and self._is_member(item) for item in learnable):
            return None
        frozen = [reason for item in learnable if (reason := item.frozen_by())]
        if len(frozen) == len(learnable):
            return thing.frozen_by() or frozen[0]
        if self.weights is not None and self.weights.known and self.weights.things:
            return Reason(False, self.weights.place)
        return None


def _listed(parameters: Parameters) -> set[int]:
    """Return the identities of the parts whose parameters are in the list as it is now."""
    found = (item for root in parameters.things for item in below(root))
    return {id(item) for item in found if not parameters.trainable or item.frozen_by() is None}


def _mapped(value: Value, change: Callable[[Flow], Flow]) -> Value:
    """Return ``value`` with every flow in it changed."""
    if isinstance(value, Tensor):
        return Tensor(change(value.flow))
    if isinstance(value, Sequence):
        return Sequence([_mapped(item, change) for item in value.items])
    if isinstance(value, Many):
        return Many(_mapped(value.item, change))
    if isinstance(value, Mapping):
        entries = {key: _mapped(item, change) for key, item in value.entries.items()}
        return Mapping(entries, [_mapped(item, change) for item in value.others])
    if isinstance(value, Union):
        return Union(tuple(_mapped(item, change) for item in value.options))
    if _is_record(value):
        value.attributes.update((name, _mapped(held, change)) for name, held in value.attributes.items())
    return value


def _is_network(value: Value) -> bool:
    return isinstance(value, Thing) and value.is_network


def _is_record(value: Value) -> TypeGuard[Thing]:
    """Tell whether ``value`` is an object that only keeps tensors together, such as a distribution."""
    return isinstance(value, Thing) and value.kind == "class" and value.transient


def _loading(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    return target


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _module_level(statement.body)
            yield from _module_level(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _module_level(handler.body)
        else:
            yield statement


def _bound_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        for item in ast.walk(target):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                yield item.id


def _declarations(node: ast.ClassDef) -> dict[str, _Declaration]:
    """Return the methods and attributes in the body of a class; of two with one name the later counts."""
    found: dict[str, _Declaration] = {}
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[item.name] = item
        elif isinstance(item, ast.Assign):
            found.update((target.id, item) for target in item.targets if isinstance(target, ast.Name))
    return found


def _is_decorated(item: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    return any(dotted(decorator) == name for decorator in item.decorator_list)


def _is_class_name(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper()


def _path(reference: str) -> Path:
    return Path(reference.rpartition(":")[0])


_Handler = Callable[[Interpreter, ast.expr, Scope], Value]
_HANDLERS: dict[type[ast.expr], _Handler] = {
    ast.Constant: Interpreter._constant,
    ast.Name: Interpreter._name,
    ast.Attribute: Interpreter._attribute,
    ast.Subscript: Interpreter._subscript,
    ast.BinOp: Interpreter._binary,
    ast.UnaryOp: Interpreter._operands,
    ast.Compare: Interpreter._operands,
    ast.BoolOp: Interpreter._either_of,
    ast.IfExp: Interpreter._either_of,
    ast.Lambda: Interpreter._lambda,
    ast.Tuple: Interpreter._sequence,
    ast.List: Interpreter._sequence,
    ast.Set: Interpreter._sequence,
    ast.Dict: Interpreter._mapping,
    ast.ListComp: Interpreter._comprehension,
    ast.SetComp: Interpreter._comprehension,
    ast.GeneratorExp: Interpreter._comprehension,
    ast.DictComp: Interpreter._comprehension,
    ast.Starred: Interpreter._inside,
    ast.Await: Interpreter._inside,
    ast.NamedExpr: Interpreter._inside,
    ast.Yield: Interpreter._inside,
    ast.YieldFrom: Interpreter._inside,
    ast.Call: Interpreter._call_node,
}
