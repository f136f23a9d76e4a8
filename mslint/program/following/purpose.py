"""What each purpose that a program is followed for has to answer; the walk itself is in follower.py."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from mslint.program.following.values import Call, Function, Value


class Purpose(ABC):
    """The meaning of values, branches and calls for the question at hand.

    ``do_...`` follow a statement and tell whether the run goes on after it, ``of_...`` return what an expression is.
    """

    objects_are: type[Value]
    """What an object of a class of the program is as a value."""

    # Statements: how the branches of an undecided test meet, how often a loop is followed

    @abstractmethod
    def do_if(self, node: ast.If) -> bool: ...

    @abstractmethod
    def do_for(self, node: ast.For | ast.AsyncFor) -> bool: ...

    @abstractmethod
    def do_while(self, node: ast.While) -> bool: ...

    @abstractmethod
    def do_with(self, node: ast.With | ast.AsyncWith) -> bool: ...

    @abstractmethod
    def do_try(self, node: ast.Try) -> bool: ...

    @abstractmethod
    def do_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool: ...

    @abstractmethod
    def do_class(self, node: ast.ClassDef) -> bool: ...

    # Names

    @abstractmethod
    def imported(self, target: str) -> Value:
        """Return what the dotted ``target`` is, imported here."""

    @abstractmethod
    def unbound(self, name: str) -> Value:
        """Return what ``name`` is where no scope binds it."""

    @abstractmethod
    def assign_attribute(self, target: ast.Attribute, value: Value, node: ast.AST) -> None: ...

    @abstractmethod
    def assign_item(self, target: ast.Subscript, value: Value) -> None: ...

    @abstractmethod
    def unpacked(self, value: Value, targets: list[ast.expr]) -> list[Value]:
        """Return what each of ``targets`` gets of ``value``."""

    # Values

    @abstractmethod
    def attribute(self, holder: Value, name: str) -> Value:
        """Return ``holder.name``."""

    @abstractmethod
    def item(self, holder: Value, index: Value) -> Value:
        """Return ``holder[index]``."""

    @abstractmethod
    def joined(self, values: list[Value]) -> Value:
        """Return the value that is one of ``values``."""

    @abstractmethod
    def operated(self, sign: ast.operator, left: Value, right: Value) -> Value:
        """Return ``left sign right``."""

    @abstractmethod
    def unread(self, node: ast.expr) -> Value:
        """Return what an expression of another kind is."""

    # Expressions

    @abstractmethod
    def of_unary(self, node: ast.UnaryOp) -> Value: ...

    @abstractmethod
    def of_comparison(self, node: ast.Compare) -> Value: ...

    @abstractmethod
    def of_and_or(self, node: ast.BoolOp) -> Value: ...

    @abstractmethod
    def of_conditional(self, node: ast.IfExp) -> Value: ...

    @abstractmethod
    def of_list(self, node: ast.List | ast.Tuple | ast.Set) -> Value: ...

    @abstractmethod
    def of_dict(self, node: ast.Dict) -> Value: ...

    @abstractmethod
    def of_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value: ...

    @abstractmethod
    def of_dict_comprehension(self, node: ast.DictComp) -> Value: ...

    @abstractmethod
    def of_lambda(self, node: ast.Lambda) -> Value: ...

    @abstractmethod
    def of_yield(self, node: ast.Yield | ast.YieldFrom) -> Value: ...

    # Calls

    @abstractmethod
    def call(self, function: Value, call: Call) -> Value:
        """Return what calling ``function`` gives."""

    @abstractmethod
    def pass_items(self, call: Call, held: Value) -> None:
        """Let ``call`` pass ``*held``, whose items are not known one by one."""

    @abstractmethod
    def pass_keywords(self, call: Call, held: Value) -> None:
        """Let ``call`` pass ``**held``."""

    @abstractmethod
    def missing(self, function: Function, name: str, call: Call) -> Value:
        """Return what the parameter ``name`` of ``function`` is where ``call`` does not say it."""

    @abstractmethod
    def further(self, keywords: dict[str, Value], call: Call) -> Value:
        """Return the dictionary of the ``keywords`` that no parameter takes."""
