"""Follows a training program from a place on, without running it: which networks it builds, how it trains them.

Where a condition is not known both branches are taken. Two questions are answered that way: *building* (what networks does a
script make, which parameters does it freeze, what does each optimizer hold) and *following* (what does a loss depend on).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mslint.program.following.follower import Frame
from mslint.program.following.syntax import keyword_only_names, parameter_names
from mslint.program.following.values import (
    Call,
    Class,
    Constant,
    Either,
    Function,
    Method,
    Reference,
    Scope,
    Sequence,
    Stretch,
    Value,
)
from mslint.program.networks.branches import Branch, branches_of
from mslint.program.networks.definitions import Definitions
from mslint.program.networks.expressions import Expressions
from mslint.program.networks.forward import Forward
from mslint.program.networks.library import call_reference
from mslint.program.networks.methods import MOST_ITEMS, call_method
from mslint.program.networks.objects import Objects
from mslint.program.networks.optimizers import add_step, make_object, weights_of
from mslint.program.networks.parts import either, is_record, joined, parts, things_in
from mslint.program.networks.values import (
    CLOSED,
    TRAINED,
    Flow,
    GradientMaker,
    Many,
    Mapping,
    Tensor,
    Thing,
    TrainingStep,
    Weights,
    WithLoss,
)
from mslint.program.project import Program

_DEEPEST = 40
_NOWHERE = Stretch(Path(), 1, 0, 1, 0)
_MOST_ROUNDS = 8


class Interpreter(Expressions):
    """Follows code of ``program``."""

    def __init__(self, program: Program, most_steps: int) -> None:
        super().__init__(program, most_steps)
        self.frames = [Frame(Scope(Path(), {}))]
        self.things: list[Thing] = []
        self.training_steps: list[TrainingStep] = []
        self.following = False
        self.forward = Forward(self, None)
        self.opened: set[Stretch] = set()
        """Calls whose output depends on trained parameters: to be left open whatever else holds there."""
        self.visited: set[str] = set()
        """Classes whose ``construct`` was followed."""
        self.called_things: set[int] = set()
        """Identities of the things that were called while following."""
        self.outermost_call: Stretch | None = None
        """The call in the loss itself that is being followed."""
        self.unsure = 0
        """How many conditions that are not known lead to where the program is."""
        self.definitions = Definitions(self)
        self.objects = Objects(self)
        self.is_complete = True
        """Whether nothing was left out that may be trained again."""
        self._taken: list[tuple[Scope, ast.expr, bool]] = []
        """The undecided tests that lead to where the program is, and whether they hold."""
        self._frame_count = 0
        self._loops: list[tuple[int, list[bool]]] = []
        self._without_gradient = 0

    # Entry points

    def run_file(self, path: Path) -> None:
        """Follow the module level of ``path`` as a script."""
        tree = self.program.level(path)
        if tree is not None:
            self.definitions.script = self.frame.scope = Scope(path, {})
            self.block(tree.body)

    def run_unstarted(self) -> None:
        """Follow the training steps that the script made and did not call where it could be seen."""
        for thing in list(self.things):
            method = self.definitions.method(thing, "construct")
            if method is not None and any(isinstance(value, GradientMaker) for value in thing.attributes.values()):
                self._enter(method)

    def follow(self, target: Value, weights: Weights | None) -> Flow:
        """Return what the loss that ``target`` computes from a batch depends on, if it is differentiated by ``weights``."""
        self.forward = Forward(self, weights)
        self.following = True
        self.frames = [Frame(Scope(Path(), {}))]
        self.active, self.unsure, self._taken, self._loops = [], 0, [], []
        try:
            return self.flow(self._loss(target))
        finally:
            self.following = False

    def _loss(self, target: Value) -> Value:
        if isinstance(target, WithLoss):
            return self.call(target.loss, Call([self._loss(target.network), Tensor()], {}))
        if isinstance(target, Thing):
            method = self.definitions.method(target, "construct")
            if method is None and target.kind == "interface":
                return self.call(target, Call([Tensor()], {}))
            self.visited.add(target.reference)
            return self._enter(method) if method else Tensor(TRAINED)
        return self._enter(target) if isinstance(target, Function) else Tensor(TRAINED)

    def _enter(self, function: Function) -> Value:
        """Follow a function that gets a batch."""
        given = function.node.args
        names = [*parameter_names(given), *keyword_only_names(given)]
        return self.invoke(function, Call([], {name: Tensor() for name in names[function.bound is not None :]}))

    def make_alone(self, made: Class) -> Thing:
        """Return a new object of a class of the project, made from arguments that are not known."""
        place = Stretch.of(made.scope.path, made.node)
        thing = self.make("class", made.reference, place)
        thing.is_network = True
        constructor = self.definitions.method(thing, "__init__")
        if constructor is not None:
            given = constructor.node.args
            names = parameter_names(given)[1:]
            required = names[: len(names) - len(given.defaults)]
            required += [a.arg for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is None]
            self.invoke(constructor, Call([], {name: self.make("unknown", name, place) for name in required}))
        return thing

    # Where it is

    def place(self, node: ast.AST) -> Stretch:
        """Return where ``node`` stands."""
        assert isinstance(node, (ast.expr, ast.stmt))
        return Stretch.of(self.scope.path, node)

    def place_of(self, call: Call) -> Stretch:
        """Return where ``call`` stands; nowhere, if the program does not write it."""
        return _NOWHERE if call.node is None else self.place(call.node)

    @property
    def branches(self) -> frozenset[Branch]:
        """How the undecided tests went that lead to where the program is."""
        return frozenset(branch for taken in self._taken for branch in branches_of(*taken))

    @property
    def may_skip(self) -> bool:
        """Whether the loop that is being followed may leave out some of its items here."""
        return bool(self._loops) and (self.unsure > self._loops[-1][0] or self._loops[-1][1][0])

    def make(self, kind: str, reference: str, place: Stretch, children: list[Value] | None = None) -> Thing:
        """Return a new object."""
        made = list(children or [])
        thing = Thing(kind, reference, place, children=made, unsure=self.unsure, transient=self.following)
        self.things.append(thing)
        return thing

    # Statements

    @contextmanager
    def _doubt(self, test: ast.expr | None = None, holds: bool = True) -> Iterator[None]:
        """What runs inside may or may not happen, as ``test`` says."""
        taken = len(self._taken)
        if test is not None:
            self._taken.append((self.scope, test, holds))
        self.unsure += 1
        try:
            yield
        finally:
            self.unsure -= 1
            del self._taken[taken:]

    def do_jump(self, node: ast.Break | ast.Continue) -> bool:
        if self._loops and self.unsure > self._loops[-1][0]:
            self._loops[-1][1][0] = True
        return False

    def do_if(self, node: ast.If) -> bool:
        truth = self.truth(node.test)
        if truth is not None:
            return self.block(node.body if truth else node.orelse)
        scope = self.scope
        before = dict(scope.names)
        with self._doubt(node.test, holds=True):
            first_goes_on = self.block(node.body)
        first, scope.names = scope.names, before
        with self._doubt(node.test, holds=False):
            second_goes_on = self.block(node.orelse)
        if first_goes_on is not second_goes_on:
            self._taken.append((scope, node.test, first_goes_on))
        if first_goes_on and second_goes_on:
            scope.names = {
                name: either([item[name] for item in (first, scope.names) if name in item])
                for name in {**first, **scope.names}
            }
        elif first_goes_on:
            scope.names = first
        return first_goes_on or second_goes_on

    def do_for(self, node: ast.For | ast.AsyncFor) -> bool:
        iterated = self.value(node.iter)
        rounds = [self.objects.element(iterated)] * (2 if self.following else 1)
        most = _MOST_ROUNDS if self.following else MOST_ITEMS
        if isinstance(iterated, Sequence) and len(iterated.items) <= most and things_in(iterated):
            rounds = list(iterated.items)
        with self.looping():
            for item in rounds:
                self.assign(node.target, item, node)
                self.block(node.body)
        self.block(node.orelse)
        return True

    @contextmanager
    def looping(self, may_skip: bool = False) -> Iterator[None]:
        self._loops.append((self.unsure, [may_skip]))
        try:
            yield
        finally:
            self._loops.pop()

    def do_while(self, node: ast.While) -> bool:
        for _ in range(2 if self.following else 1):
            self.block(node.body)
        return True

    def do_with(self, node: ast.With | ast.AsyncWith) -> bool:
        off = any("no_grad" in ast.unparse(item.context_expr) for item in node.items)
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, node)
        self._without_gradient += off
        try:
            return self.block(node.body)
        finally:
            self._without_gradient -= off

    def do_try(self, node: ast.Try) -> bool:
        goes_on = self.block(node.body)
        for handler in node.handlers:
            with self._doubt():
                self.block(handler.body)
        self.block(node.finalbody)
        return goes_on

    def do_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        self.bind(node.name, Function(self.scope, node))
        return True

    def do_class(self, node: ast.ClassDef) -> bool:
        is_known = self.scope.outer is None and self.definitions.binding(self.scope.path, node.name)
        self.bind(node.name, Class(self.scope, node) if is_known else Reference(node.name))
        return True

    # Calls

    def called(self, function: Value, call: Call) -> Value:
        result = super().called(function, call)
        return Tensor() if self._without_gradient and self.following else result

    def call(self, function: Value, call: Call) -> Value:
        if isinstance(function, Function):
            return self.invoke(function, call)
        if isinstance(function, Class):
            return make_object(self, function, call)
        if isinstance(function, Reference):
            return call_reference(self, function.name, call)
        if isinstance(function, Method):
            return call_method(self, function, call)
        if isinstance(function, GradientMaker):
            weights = call.argument(1, "weights")
            if function.by_list and weights is not None and call.arguments:
                add_step(self, call.arguments[0], weights_of(weights, self.place_of(call)), call)
            return Reference("gradients")
        if isinstance(function, Thing):
            return self.apply(function, call)
        if isinstance(function, WithLoss):
            output = self.call(function.network, Call(call.arguments[:-1], call.keywords, call.node))
            return self.call(function.loss, Call([output, *call.arguments[-1:]], {}, call.node))
        return self.computed(*call.given)

    def apply(self, thing: Thing, call: Call) -> Value:
        """Return what calling an object gives."""
        return self.forward.apply(thing, call) if self.following else self.forward.build(thing, call)

    def invoke(self, function: Function, call: Call) -> Value:
        """Return what calling a function of the program gives."""
        if self.active.count(function.node) > 1 or len(self.active) > _DEEPEST:
            return self.computed(*call.given)
        arguments = call.arguments if function.bound is None else [function.bound, *call.arguments]
        names = self.parameters(function, Call(arguments, call.keywords, call.node))
        this = function.bound or (arguments[0] if arguments and function.owner else None)
        self._frame_count += 1
        scope = Scope(function.scope.path, names, function.scope)
        frame = Frame(scope, function.name, function.owner, this, number=self._frame_count)
        loops, self._loops = self._loops, []
        taken = len(self._taken)
        try:
            self.run(function, frame, function.node)
        finally:
            self._loops = loops
            del self._taken[taken:]
        result = either(frame.returned) if frame.returned else Constant(None)
        if self.following and call.node is not None:
            return self.forward.seen_from_outside(result, frame.number, self.place(call.node))
        return result

    # What values depend on

    def computed(self, *values: Value) -> Value:
        """Return what is computed from ``values``."""
        return Tensor(joined(self.flow(value) for value in values)) if self.following else Tensor()

    def flow(self, value: Value) -> Flow:
        """Return what ``value``, taken as a tensor or a container of tensors, depends on."""
        if isinstance(value, Tensor):
            return value.flow
        if isinstance(value, Thing):
            if value.kind == "parameter" and self.following and self.trains(value):
                return TRAINED
            if is_record(value):
                return joined(
                    item.flow for held in value.attributes.values() for item in parts(held) if isinstance(item, Tensor)
                )
            return CLOSED
        if isinstance(value, (Sequence, Many, Mapping, Either)):
            return joined(self.flow(item) for item in parts(value))
        return CLOSED

    def trains(self, thing: Thing) -> bool:
        """Tell whether ``thing``, a layer or a parameter itself, has parameters that the step trains."""
        return self.forward.trains(thing)
