"""Follows a program without running it: walks its statements and expressions in the order in which they would run.

What a value is, how the branches of an undecided test meet and what a call of another package means is for the purpose at
hand to say (purpose.py): package ``networks`` asks which networks are trained, package ``rehearsal`` what each rank of a
distributed run does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mslint.program.following import syntax
from mslint.program.following.purpose import Purpose
from mslint.program.following.values import (
    NONE,
    Call,
    Class,
    Constant,
    Either,
    Function,
    Names,
    Parent,
    Place,
    Scope,
    Sequence,
    Value,
    options,
)
from mslint.program.project import Program

_ENOUGH_TO_NAME = 1000


class Exhausted(Exception):
    """The program is too large to be followed to the end."""


@dataclass(eq=False, slots=True)
class Frame:
    """A function, class body or file that is being followed."""

    scope: Scope
    function: str = ""
    """Its name, with that of its class; empty at module level."""
    owner: Class | None = None
    """The class that the function is a method of."""
    this: Value | None = None
    """Its ``self``."""
    called: Place | None = None
    """Where it was called."""
    number: int = 0
    returned: list[Value] = field(default_factory=list)


class Follower(Purpose):
    """Follows code of ``program`` for at most ``most_steps`` steps."""

    def __init__(self, program: Program, most_steps: int) -> None:
        self.program = program
        self.steps_left = most_steps
        self.frames: list[Frame] = []
        self.active: list[object] = []
        """The functions that are being followed, outermost first."""

    @property
    def frame(self) -> Frame:
        """What is followed now."""
        return self.frames[-1]

    @property
    def scope(self) -> Scope:
        """The names that are seen now."""
        return self.frames[-1].scope

    @contextmanager
    def within(self, scope: Scope) -> Iterator[Scope]:
        """What is followed inside sees ``scope``."""
        frame = self.frames[-1]
        before, frame.scope = frame.scope, scope
        try:
            yield scope
        finally:
            frame.scope = before

    def spend(self) -> None:
        """Count a step."""
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Exhausted

    def run(self, function: Function, frame: Frame, key: object) -> bool:
        """Follow the body of ``function`` in ``frame``; ``key`` says which function it is."""
        self.program.enters(function.scope.path, function.node)
        self.frames.append(frame)
        self.active.append(key)
        try:
            if isinstance(function.node, ast.Lambda):
                frame.returned.append(self.value(function.node.body))
                return False
            return self.block(function.node.body)
        finally:
            self.active.pop()
            self.frames.pop()

    # Statements

    def block(self, body: list[ast.stmt]) -> bool:
        """Follow statements up to one after which the run does not go on."""
        return all(map(self.statement, body))

    def statement(self, node: ast.stmt) -> bool:
        """Follow one statement. To give a name to a constant or to a function costs no step (see ``Bodies.level``)."""
        if type(node) not in _NAMING or syntax.only_names(node) is None:
            return self._follow_statement(node)
        steps_left, self.steps_left = self.steps_left, _ENOUGH_TO_NAME
        goes_on = self._follow_statement(node)
        self.steps_left = steps_left
        return goes_on

    def _follow_statement(self, node: ast.stmt) -> bool:
        self.reach(node)
        handler = _STATEMENTS.get(type(node))
        return bool(getattr(self, handler)(node)) if handler else True

    def reach(self, node: ast.stmt) -> None:
        """Note that the run comes to ``node``."""
        self.spend()

    def do_return(self, node: ast.Return) -> bool:
        self.frame.returned.append(self.value(node.value) if node.value else NONE)
        return False

    def do_raise(self, node: ast.Raise) -> bool:
        return False

    def do_jump(self, node: ast.Break | ast.Continue) -> bool:
        return False

    def do_expression(self, node: ast.Expr) -> bool:
        self.value(node.value)
        return True

    def do_assign(self, node: ast.Assign) -> bool:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value, node)
        return True

    def do_annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.assign(node.target, self.value(node.value), node)
        return True

    def do_augmented(self, node: ast.AugAssign) -> bool:
        before = self.value(node.target)
        self.assign(node.target, self.operated(node.op, before, self.value(node.value)), node)
        return True

    def do_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        for name, target in syntax.imported_names(node):
            self.bind(name, self.imported(target))
        return True

    def do_global(self, node: ast.Global) -> bool:
        return True

    def do_assert(self, node: ast.Assert) -> bool:
        return True

    # Names and what is assigned to

    def bind(self, name: str, value: Value) -> None:
        """Let the variable ``name`` be ``value`` from here on."""
        self.scope.names[name] = value

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Assign ``value`` to ``target``, as ``node`` says."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.assign_attribute(target, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, self.unpacked(value, target.elts), strict=True):
                self.assign(part, item, node)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, self.remaining(value), node)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value)

    def remaining(self, value: Value) -> Value:
        """Return what a starred target gets of ``value``."""
        return value

    # Expressions

    def value(self, node: ast.expr) -> Value:
        """Return what ``node`` is here and now."""
        handler = _EXPRESSIONS.get(type(node))
        return self.seen(getattr(self, handler)(node) if handler else self.unread(node))

    def seen(self, value: Value) -> Value:
        """Note that an expression is ``value``; return what to take it for."""
        return value

    def of_constant(self, node: ast.Constant) -> Value:
        return Constant(node.value)

    def of_name(self, node: ast.Name) -> Value:
        scope: Scope | None = self.scope
        while scope is not None:
            found = scope.names.get(node.id)
            if found is not None:
                return found
            scope = scope.outer
        return self.unbound(node.id)

    def of_attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr)

    def of_subscript(self, node: ast.Subscript) -> Value:
        holder = self.value(node.value)
        index = self.value(node.slice)
        return self.joined([self.item(option, index) for option in options(holder)])

    def of_operation(self, node: ast.BinOp) -> Value:
        return self.operated(node.op, self.value(node.left), self.value(node.right))

    def of_named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.assign(node.target, value, node)
        return value

    def of_inner(self, node: ast.Await | ast.Starred | ast.FormattedValue) -> Value:
        return self.value(node.value)

    # Calls

    def of_call(self, node: ast.Call) -> Value:
        frame = self.frame
        if syntax.is_super(node) and frame.owner is not None and isinstance(frame.this, self.objects_are):
            return Parent(frame.this, frame.owner)
        function = self.value(node.func)
        return self.called(function, self.passed(node))

    def passed(self, node: ast.Call) -> Call:
        """Return what ``node`` passes."""
        call = Call([], {}, node)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                held = self.value(argument.value)
                if isinstance(held, Sequence):
                    call.arguments.extend(held.items)
                else:
                    self.pass_items(call, held)
            else:
                call.arguments.append(self.value(argument))
        for word in node.keywords:
            value = self.value(word.value)
            if word.arg is not None:
                call.keywords[word.arg] = value
            else:
                self.pass_keywords(call, value)
        return call

    def called(self, function: Value, call: Call) -> Value:
        """Return what calling ``function``, which may be one of several, gives."""
        if isinstance(function, Either):
            return self.joined([self.called(option, call) for option in function.options])
        return self.call(function, call)

    def parameters(self, function: Function, call: Call) -> Names:
        """Return the names that the parameters of ``function`` have when it is called like this."""
        signature = function.node.args
        given = syntax.parameter_names(signature)
        names: Names = dict(zip(given, call.arguments, strict=False))
        rest = dict(call.keywords)
        for name in (*given, *syntax.keyword_only_names(signature)):
            if name in rest:
                names[name] = rest.pop(name)
            elif name not in names:
                names[name] = self.missing(function, name, call)
        if signature.vararg:
            names[signature.vararg.arg] = Sequence(call.arguments[len(given) :])
        if signature.kwarg:
            names[signature.kwarg.arg] = self.further(rest, call)
        return names


_STATEMENTS = {
    ast.Return: "do_return", ast.Raise: "do_raise", ast.Break: "do_jump", ast.Continue: "do_jump",
    ast.Expr: "do_expression", ast.Assign: "do_assign", ast.AnnAssign: "do_annotated", ast.AugAssign: "do_augmented",
    ast.Import: "do_import", ast.ImportFrom: "do_import", ast.FunctionDef: "do_function",
    ast.AsyncFunctionDef: "do_function", ast.ClassDef: "do_class", ast.If: "do_if", ast.For: "do_for",
    ast.AsyncFor: "do_for", ast.While: "do_while", ast.With: "do_with", ast.AsyncWith: "do_with", ast.Try: "do_try",
    ast.Global: "do_global", ast.Assert: "do_assert",
}  # fmt: skip
_NAMING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Assign)
_EXPRESSIONS = {
    ast.Constant: "of_constant", ast.Name: "of_name", ast.Attribute: "of_attribute", ast.Subscript: "of_subscript",
    ast.BinOp: "of_operation", ast.UnaryOp: "of_unary", ast.Compare: "of_comparison", ast.BoolOp: "of_and_or",
    ast.IfExp: "of_conditional", ast.List: "of_list", ast.Tuple: "of_list", ast.Set: "of_list", ast.Dict: "of_dict",
    ast.ListComp: "of_comprehension", ast.SetComp: "of_comprehension", ast.GeneratorExp: "of_comprehension",
    ast.DictComp: "of_dict_comprehension", ast.Lambda: "of_lambda", ast.Yield: "of_yield", ast.YieldFrom: "of_yield",
    ast.NamedExpr: "of_named", ast.Await: "of_inner", ast.Starred: "of_inner", ast.FormattedValue: "of_inner",
    ast.Call: "of_call",
}  # fmt: skip
