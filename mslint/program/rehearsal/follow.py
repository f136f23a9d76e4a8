"""A rehearsal: a program read in the order in which it would run, without running it.

Statements are followed from an entry point through calls, other files, methods, handed-on functions and decorators; what
cannot be known is a symbol. Of a branch that the known values decide only the one side is followed, else both. The trace is
the list of calls of other libraries (``Event``) with what they were given, in order.

Given the *facts* of a distributed run (the tests around ``init()`` that led there), ``device_num > 1`` and its like are
decided, so that the trace is that of one rank among several.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from mslint.program.facts import dotted
from mslint.program.following.follower import Exhausted, Frame
from mslint.program.following.syntax import imported_module, imported_names
from mslint.program.following.values import Call
from mslint.program.project import Program
from mslint.program.rehearsal.assumptions import Assumptions, affirmed
from mslint.program.rehearsal.events import Event
from mslint.program.rehearsal.expressions import Expressions
from mslint.program.rehearsal.journal import Journal
from mslint.program.rehearsal.library import Library
from mslint.program.rehearsal.modules import Modules
from mslint.program.rehearsal.objects import Objects
from mslint.program.rehearsal.values import (
    NONE,
    Class,
    Function,
    Key,
    Names,
    Object,
    Parallel,
    Partial,
    Place,
    Reference,
    Scope,
    Sequence,
    Symbol,
    Table,
    Value,
    derived,
    join,
    named,
    options,
    parts,
)

__all__ = ["Event", "Rehearsal"]

_MOST_STEPS = 60_000
_DEEPEST = 24
_OFTEN = 30
"""A function that was followed so often (a logger's, a registry's) is taken to go on as it did."""
_PLAIN_DECORATORS = ("property", "staticmethod", "classmethod")


class Rehearsal(Expressions):
    """What happens when ``entry`` is started. ``facts`` are tests whose outcome is given."""

    def __init__(self, program: Program, entry: Path, facts: Mapping[Key, bool]) -> None:
        super().__init__(program, _MOST_STEPS)
        self.entry = entry
        self.events: list[Event] = []
        self.trained: dict[int, Place] = {}
        """Where each data set (number of the event that built it) feeds a training step."""
        self.evaluated: dict[int, Place] = {}
        """Where each data set is evaluated on."""
        self.sampled: dict[int, Place] = {}
        """Where each data set got a sampler after it was built."""
        self.split: dict[int, Place] = {}
        """Where each data set is split in parts."""
        self.executed: set[tuple[Path, int]] = set()
        """The statements that were reached, by file and row."""
        self.rank_readers: set[Key] = set()
        """Functions and classes in whose code a rank or the number of ranks is used."""
        self.parallel_context: Names = {}
        """What ``set_auto_parallel_context`` was given."""
        self.chosen_by_rank = False
        """Whether what is followed now runs, or runs in this round of a loop, on some ranks alone."""
        self.complete = True
        self.assumptions = Assumptions(facts)
        self.journal = Journal()
        self.modules = Modules(self)
        self.objects = Objects(self)
        self.library = Library(self)
        self._followed: dict[tuple[Path, int], list[Value]] = {}
        self._settled: dict[tuple[Path, int], Value | None] = {}
        """What functions that were followed often gave each time, None if not always the same."""
        try:
            self.modules.module(entry)
        except (Exhausted, RecursionError):
            self.complete = False

    def let_go_of_names(self) -> None:
        """Forget what all names are in the end, for those who ask what happened: nothing more can be followed then."""
        del self.modules, self.objects, self.library, self.journal, self._followed, self._settled

    def event(self, name: str, call: Call) -> Event:
        """Note a call of another library."""
        calls = tuple(frame.called for frame in self.frames if frame.called is not None)
        place = self.place(call.node)
        self.events.append(
            Event.of(
                len(self.events), name, call, place, self.frame.function, calls, self.assumptions.added, self.scope
            )
        )
        return self.events[-1]

    def seen(self, value: Value) -> Value:
        if isinstance(value, Symbol):
            value = self.assumptions.meaning(value)
        if isinstance(value, Parallel) or (isinstance(value, Symbol) and value.parallel):
            self.rank_readers.update(frame.owner.key for frame in self.frames if frame.owner is not None)
            self.rank_readers.update(self.active)
        return value

    # ------------------------------------------------------------------ names

    def bind(self, name: str, value: Value) -> None:
        scope = self.scope
        at_home = self.modules.module(scope.path).scope if name in scope.global_names else scope
        self.journal.write(at_home.names, name, value)

    def of_name(self, node: ast.Name) -> Value:
        scope: Scope | None = self.scope
        while scope is not None:
            if scope.outer is None:
                self.modules.ask_for_passed_on(scope.path, node.id)
            found = self.modules.held(scope.names, node.id)
            if found is not None:
                return found
            scope = scope.outer
        return self.unbound(node.id)

    def unbound(self, name: str) -> Value:
        path = self.scope.path
        for base in reversed(self.program.facts(path).stars):
            if base.partition(".")[0] == "mindspore":
                return Reference(self.program.canonical(path, f"{base}.{name}"))
        return Reference(name)

    def imported(self, target: str) -> Value:
        return self.modules.imported(self.scope.path, target)

    def do_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        path = self.scope.path
        if isinstance(node, ast.Import):
            super().do_import(node)
            for alias in node.names:
                self.imported(alias.name)
            return True
        home = self.program.module(path, imported_module(node))
        if home and any(alias.name == "*" for alias in node.names):
            self.modules.passes_on(path, home)
            for name, exported in list(self.modules.module(home).scope.names.items()):
                if isinstance(name, str) and not name.startswith("_"):
                    self.bind(name, exported)
        for name, target in imported_names(node):
            self.bind(name, self.modules.imported_from(path, home, target))
        return True

    # ------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt]) -> bool:
        with self.assumptions:
            return all(map(self.statement, body))

    def reach(self, node: ast.stmt) -> None:
        self.spend()
        self.executed.add((self.scope.path, node.lineno))

    def do_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        function: Value = Function(self.scope, node, defaults=self.defaults(node.args))
        for decorator in reversed(node.decorator_list):
            function = self._decorated(decorator, function)
        self.bind(node.name, function)
        return True

    def _decorated(self, decorator: ast.expr, function: Value) -> Value:
        wrapper = self.value(decorator)
        is_class = isinstance(wrapper, Class) and dotted(decorator) not in _PLAIN_DECORATORS
        if is_class or isinstance(wrapper, (Function, Partial)):
            return self.called(wrapper, Call([function], {}, decorator))
        return function

    def do_class(self, node: ast.ClassDef) -> bool:
        outer = self.scope
        kind = Class(outer, node, tuple(self.value(base) for base in node.bases))
        self.frames.append(Frame(Scope(outer.path, kind.names, outer), node.name, kind))
        self.block([item for item in node.body if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))])
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # A method sees the names around the class, not those in it.
                kind.names[item.name] = Function(outer, item, kind, defaults=self.defaults(item.args))
        self.frames.pop()
        self.bind(node.name, kind)
        return True

    def do_expression(self, node: ast.Expr) -> bool:
        value = self.value(node.value)
        return not (isinstance(value, Symbol) and value.key == ("end of the run",))

    def assign_attribute(self, target: ast.Attribute, value: Value, node: ast.AST) -> None:
        self.objects.set_attribute(self.value(target.value), target.attr, value)

    def assign_item(self, target: ast.Subscript, value: Value) -> None:
        holder = self.value(target.value)
        index = self.value(target.slice)
        if isinstance(holder, Table):
            self.objects.set_item(holder, index, value)

    def unpacked(self, value: Value, targets: list[ast.expr]) -> list[Value]:
        starred = any(isinstance(target, ast.Starred) for target in targets)
        columns: list[list[Value]] = [[] for _ in targets]
        for option in options(value):
            fits = isinstance(option, Sequence) and len(option.items) == len(targets) and not starred
            for number, column in enumerate(columns):
                column.append(option.items[number] if fits else self.objects.element(option, number))  # type: ignore[attr-defined]
        return [join(column) for column in columns]

    def do_if(self, node: ast.If) -> bool:
        return self.branch(self.value(node.test), lambda: self.block(node.body), lambda: self.block(node.orelse))

    def branch(self, test: Value, then: Callable[[], bool], otherwise: Callable[[], bool]) -> bool:
        """Follow the side of a branch that ``test`` decides for, or both; tell whether the run goes on after it."""
        known = self.assumptions.truth(test)
        if known is not None:
            return then() if known else otherwise()
        key, positive = affirmed(test.key)
        chosen, splits = self.chosen_by_rank, parts(test)[1]
        self.chosen_by_rank = chosen or splits
        trials = []
        for run, holds in ((then, positive), (otherwise, not positive)):
            with self.assumptions:
                self.assumptions.assume(key, holds)
                trials.append(self.journal.trial(run))
        self.journal.settle(*trials)
        goes_on = [trial.goes_on for trial in trials]
        if all(goes_on):
            self.chosen_by_rank = chosen
        if goes_on == [False, True]:
            self.assumptions.assume(key, not positive)
        elif goes_on == [True, False]:
            self.assumptions.assume(key, positive)
        return any(goes_on)

    def do_for(self, node: ast.For | ast.AsyncFor) -> bool:
        self.assign(node.target, self.objects.element(self.value(node.iter)), node)
        self._repeated(node.body)
        return self.block(node.orelse)

    def _repeated(self, body: list[ast.stmt]) -> None:
        chosen = self.chosen_by_rank
        self.journal.optional(lambda: self.block(body))
        self.chosen_by_rank = chosen

    def do_while(self, node: ast.While) -> bool:
        if self.assumptions.truth(self.value(node.test)) is False:
            return self.block(node.orelse)
        self._repeated(node.body)
        return True

    def do_with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                if isinstance(value, Object):
                    enter = self.objects.member(value, "__enter__")
                    value = self.called(enter, Call([], {}, node)) if enter is not None else value
                self.assign(item.optional_vars, value, node)
        return self.block(node.body)

    def do_try(self, node: ast.Try) -> bool:
        goes_on = self.block(node.body)
        if goes_on:
            goes_on = self.block(node.orelse)
        elif node.handlers:
            outcomes = [self.block(handler.body) for handler in node.handlers]
            goes_on = any(outcomes)
        return self.block(node.finalbody) and goes_on

    def do_global(self, node: ast.Global) -> bool:
        self.scope.global_names = self.scope.global_names | set(node.names)
        return True

    def do_assert(self, node: ast.Assert) -> bool:
        test = self.value(node.test)
        known = self.assumptions.truth(test)
        if known is None:
            self.assumptions.assume(*affirmed(test.key))
        return known is not False

    # ------------------------------------------------------------------ calls

    def call(self, function: Value, call: Call) -> Value:
        self.spend()
        if isinstance(function, Function):
            return self._call_function(function, call)
        if isinstance(function, Class):
            return self._make(function, call)
        if isinstance(function, Partial):
            keywords = {**dict(function.keywords), **call.keywords}
            return self.called(
                function.function, Call([*function.arguments, *call.arguments], keywords, call.node, call.open)
            )
        if isinstance(function, Object):
            return self._call_object(function, call)
        return self.library.call(function, call)

    def _make(self, kind: Class, call: Call) -> Value:
        made = Object(kind, self.place(call.node))
        maker = next((one.names["__init__"] for one in kind.lineage() if "__init__" in one.names), None)
        if isinstance(maker, Function):
            self.called(self.objects.bound(maker, made), call)
        else:
            self.library.base_call(made, "__init__", call)
        return made

    def _call_object(self, called: Object, call: Call) -> Value:
        known = self.library.object_called(called, call)
        if known is not None:
            return known
        for name in ("__call__", "construct"):
            method = self.objects.member(called, name)
            if method is not None:
                return self.called(method, call)
        return derived(("called", called.key, self.place(call.node)), *call.given)

    def _call_function(self, function: Function, call: Call) -> Value:
        if function.bound is not None:
            call = Call([function.bound, *call.arguments], call.keywords, call.node, call.open)
        key = function.key
        if self.active.count(key) > 1 or len(self.active) >= _DEEPEST:
            return derived(("again", key, self.place(call.node)), *call.given)
        start = (function.scope.path, function.node.lineno)
        if start in self._settled:
            return self._settled[start] or derived(("again", key, self.place(call.node)), *call.given)
        result = self._follow(function, key, call)
        followed = self._followed.setdefault(start, [])
        followed.append(result)
        if len(followed) >= _OFTEN:
            self._settled[start] = followed[0] if len({one.key for one in followed}) == 1 else None
        return result

    def _follow(self, function: Function, key: Key, call: Call) -> Value:
        names = self.parameters(function, call)
        frame = Frame(
            Scope(function.scope.path, names, function.scope),
            f"{function.owner.name}.{function.name}" if function.owner else function.name,
            function.owner,
            next(iter(names.values()), None),
            self.place(call.node) if call.node is not None else None,
        )
        chosen = self.chosen_by_rank
        with self.assumptions:
            goes_on = self.run(function, frame, key)
        self.chosen_by_rank = chosen
        if self.program.is_generator(function.scope.path, function.node):
            return Sequence([join(frame.returned)] if frame.returned else [])
        if goes_on:
            return join([*frame.returned, NONE])
        return join(frame.returned) if frame.returned else Symbol(("end of the run",))

    def missing(self, function: Function, name: str, call: Call) -> Value:
        default = None if call.open else function.defaults.get(name)
        return default or derived(("parameter", function.key, name, self.place(call.node)), *call.rest)

    def further(self, keywords: dict[str, Value], call: Call) -> Value:
        return Table(named(keywords), open=call.open)
