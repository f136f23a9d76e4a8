"""What expressions are in a rehearsal; a test that cannot be decided is a symbol that says which test it is."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from mslint.program.following import constants
from mslint.program.following.constants import SIGNS
from mslint.program.following.follower import Follower
from mslint.program.following.syntax import defaults
from mslint.program.following.values import Call
from mslint.program.rehearsal.assumptions import Assumptions, combined
from mslint.program.rehearsal.journal import Journal
from mslint.program.rehearsal.objects import Objects
from mslint.program.rehearsal.values import (
    NONE,
    Constant,
    Function,
    Object,
    Pipeline,
    Place,
    Sequence,
    Symbol,
    Table,
    Value,
    by_rank,
    derived,
    join,
    parts,
)


class Expressions(Follower):
    """The part of a rehearsal that reads expressions."""

    objects_are = Object
    assumptions: Assumptions
    journal: Journal
    objects: Objects

    def place(self, node: ast.AST | None) -> Place:
        """Return where ``node`` stands."""
        return Place(self.scope.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    def unread(self, node: ast.expr) -> Value:
        inner = [self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return derived(("expression", self.place(node)), *inner)

    def attribute(self, holder: Value, name: str) -> Value:
        return self.objects.attribute(holder, name)

    def item(self, holder: Value, index: Value) -> Value:
        return self.objects.item(holder, index)

    def joined(self, values: list[Value]) -> Value:
        return join(values)

    def of_comparison(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        answers: list[Value] = []
        for comparison, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            answers.append(self.assumptions.compared(SIGNS[type(comparison)], left, right))
            left = right
        return answers[0] if len(answers) == 1 else combined("and", answers)

    def of_unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return self.assumptions.negated(value)
        known = (
            constants.negative(value.value) if isinstance(value, Constant) and isinstance(node.op, ast.USub) else None
        )
        return known or derived(("unary", type(node.op).__name__, value.key), value)

    def of_and_or(self, node: ast.BoolOp) -> Value:
        stops = isinstance(node.op, ast.Or)
        left: list[Value] = []
        for part in node.values:
            value = self.value(part)
            known = self.assumptions.truth(value)
            if known is stops:
                left.append(value)
                break
            if known is None or part is node.values[-1]:
                left.append(value)
        return left[0] if len(left) == 1 else combined("or" if stops else "and", left)

    def of_conditional(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        results: list[Value] = []

        def side(expression: ast.expr) -> Callable[[], bool]:
            def run() -> bool:
                results.append(self.value(expression))
                return True

            return run

        self.branch(test, side(node.body), side(node.orelse))
        return join(results)

    @abstractmethod
    def branch(self, test: Value, then: Callable[[], bool], otherwise: Callable[[], bool]) -> bool:
        """Follow the side of a branch that ``test`` decides for, or both; tell whether the run goes on after it."""

    def operated(self, sign: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, Pipeline) and isinstance(sign, ast.Add):
            return Pipeline(left.data | parts(right)[0])
        if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(sign, ast.Add):
            return Sequence([*left.items, *right.items])
        if isinstance(left, Constant) and isinstance(right, Constant):
            known = constants.computed(sign, left.value, right.value)
            if known is not None:
                return known
        return derived(("operation", type(sign).__name__, left.key, right.key), left, right)

    def of_list(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                held = self.value(element.value)
                items.extend(held.items if isinstance(held, Sequence) else [self.objects.element(held)])
            else:
                items.append(self.value(element))
        return Sequence(items)

    def of_dict(self, node: ast.Dict) -> Value:
        table = Table()
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            name = self.value(key) if key is not None else None
            if isinstance(name, Constant):
                table.names[name.value] = value
            elif name is None and isinstance(value, Table):
                table.names.update(value.names)
                table.open = table.open or value.open
            else:
                table.open = True
        return table

    def of_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        chosen = self._generators(node.generators)
        item = self.value(node.elt)
        return Sequence([join([item, by_rank(("chosen", self.place(node)))]) if chosen else item])

    def of_dict_comprehension(self, node: ast.DictComp) -> Value:
        self._generators(node.generators)
        return Table({"?": self.value(node.value)}, open=True)

    def _generators(self, generators: list[ast.comprehension]) -> bool:
        """Follow what a comprehension goes through; tell whether its tests choose by the rank."""
        chosen = False
        for generator in generators:
            self.assign(generator.target, self.objects.element(self.value(generator.iter)), generator.target)
            for test in generator.ifs:
                chosen = parts(self.value(test))[1] or chosen
        return chosen

    def of_lambda(self, node: ast.Lambda) -> Value:
        return Function(self.scope, node, defaults=self.defaults(node.args))

    def defaults(self, arguments: ast.arguments) -> dict[str, Value]:
        """Return what parameters are where a call does not say it."""
        return {name: self.value(default) for name, default in defaults(arguments)}

    def of_yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else NONE
        self.frame.returned.append(self.objects.element(value) if isinstance(node, ast.YieldFrom) else value)
        return Symbol(("sent", self.place(node)))

    def pass_items(self, call: Call, held: Value) -> None:
        call.open = True
        call.rest.append(self.objects.element(held))

    def pass_keywords(self, call: Call, held: Value) -> None:
        if isinstance(held, Table):
            call.keywords.update((name, item) for name, item in held.names.items() if isinstance(name, str))
            call.open = call.open or held.open
        else:
            call.open = True
