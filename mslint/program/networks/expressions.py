"""What expressions stand for when networks are followed, how conditions are decided and parameters bound."""

from __future__ import annotations

import ast
from abc import abstractmethod
from contextlib import AbstractContextManager

from mslint.program.facts import dotted
from mslint.program.following import constants
from mslint.program.following.constants import SIGNS
from mslint.program.following.follower import Follower
from mslint.program.following.syntax import defaults, parameter_names
from mslint.program.following.values import (
    Call,
    Class,
    Constant,
    Either,
    Function,
    Names,
    Scope,
    Sequence,
    Value,
    options,
)
from mslint.program.networks.definitions import Definitions
from mslint.program.networks.methods import MOST_ITEMS
from mslint.program.networks.objects import Objects
from mslint.program.networks.parts import either, is_network, parts
from mslint.program.networks.values import Many, Mapping, Parameters, Tensor, Thing

_ANY = "**"
"""Stands for keywords whose names are not known."""
_EQUALITIES = ("==", "!=", "is", "is not")


class Expressions(Follower):
    """The part of the interpreter that reads expressions."""

    objects_are = Thing
    definitions: Definitions
    objects: Objects
    following: bool
    choice = 0
    alternatives = 1
    """Which of several networks is followed where an attribute may hold any of them, and of how many."""

    @abstractmethod
    def computed(self, *values: Value) -> Value:
        """Return what is computed from ``values``."""

    @abstractmethod
    def looping(self, may_skip: bool = False) -> AbstractContextManager[None]:
        """What is followed inside is done to each item of something, or ``may_skip`` some."""

    def seen(self, value: Value) -> Value:
        self.spend()
        return value

    def unread(self, node: ast.expr) -> Value:
        return Tensor()

    def imported(self, target: str) -> Value:
        return self.definitions.meant(self.program.canonical(self.scope.path, target))

    def unbound(self, name: str) -> Value:
        return self.definitions.in_file(self.scope.path, name)

    def joined(self, values: list[Value]) -> Value:
        return either(values)

    # Assignments

    def assign_attribute(self, target: ast.Attribute, value: Value, node: ast.AST) -> None:
        holder = self.value(target.value)
        self.objects.assign(holder, target.attr, value, node)
        thaws = not isinstance(value, Constant) or bool(value.value)
        if target.attr == "requires_grad" and isinstance(target.value, ast.Attribute) and thaws:
            if not isinstance(holder, Parameters):
                self.objects.thaw(self.value(target.value.value))

    def assign_item(self, target: ast.Subscript, value: Value) -> None:
        changed = self.objects.assign_item(self.value(target.value), self.value(target.slice), value)
        if changed is not None and isinstance(target.value, ast.Name):
            self.bind(target.value.id, changed)

    def unpacked(self, value: Value, targets: list[ast.expr]) -> list[Value]:
        if isinstance(value, Either):
            fitting = [v.items for v in value.options if isinstance(v, Sequence) and len(v.items) == len(targets)]
            if fitting:
                value = Sequence([either(list(column)) for column in zip(*fitting, strict=True)])
        plain = not any(isinstance(target, ast.Starred) for target in targets)
        if isinstance(value, Sequence) and len(value.items) == len(targets) and plain:
            return value.items
        return [self.objects.element(value) for _ in targets]

    def remaining(self, value: Value) -> Value:
        return Many(self.objects.element(value))

    def do_augmented(self, node: ast.AugAssign) -> bool:
        before = self.value(node.target)
        self.assign(node.target, self._added(before, self.value(node.value)), node)
        return True

    def _added(self, left: Value, right: Value) -> Value:
        held = [*parts(left), *parts(right)]
        listed = [item for item in held if isinstance(item, Parameters)]
        if listed and len(listed) == len(held):
            things = tuple(thing for item in listed for thing in item.things)
            return Parameters(things, all(item.trainable for item in listed), any(item.partial for item in listed))
        if listed:
            return Sequence([left, right])
        if isinstance(left, Sequence) and isinstance(right, Sequence):
            items = left.items + right.items
            return Sequence(items) if len(items) <= MOST_ITEMS else Many(either(items))
        if isinstance(left, (Sequence, Many)) or isinstance(right, (Sequence, Many)):
            return Many(either([self.objects.element(left), self.objects.element(right)]))
        if isinstance(left, Thing) and left.kind in ("unknown", "class") and not self.following:
            return left
        return self.computed(left, right)

    # Names, attributes, items

    def attribute(self, holder: Value, name: str) -> Value:
        if isinstance(holder, Either):
            return either([self.objects.attribute(option, name, self.scope.path) for option in holder.options])
        value = self.objects.attribute(holder, name, self.scope.path)
        if self.following and isinstance(value, Either) and all(map(is_network, value.options)):
            # Of several networks that an attribute may hold, this run supposes one.
            self.alternatives = max(self.alternatives, len(value.options))
            return value.options[self.choice % len(value.options)]
        return value

    def of_subscript(self, node: ast.Subscript) -> Value:
        holder = self.value(node.value)
        key = None if isinstance(node.slice, ast.Slice) else self.value(node.slice)
        return either([self.objects.item(option, key) for option in options(holder)])

    def item(self, holder: Value, index: Value) -> Value:
        return self.objects.item(holder, index)

    # Operators and displays

    def operated(self, sign: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(sign, ast.Add) and not isinstance(left, Thing):
            return self._added(left, right)
        if isinstance(sign, ast.Mult) and isinstance(left, Sequence):
            return Many(either(left.items)) if left.items else left
        return self.computed(left, right)

    def of_unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self._truth_value(node)
        operand = self.value(node.operand)
        known = None
        if isinstance(operand, Constant) and isinstance(node.op, ast.USub):
            known = constants.negative(operand.value)
        return known or self.computed(operand)

    def of_comparison(self, node: ast.Compare) -> Value:
        return self._truth_value(node)

    def _truth_value(self, node: ast.expr) -> Value:
        truth = self.truth(node)
        return Tensor() if truth is None else Constant(truth)

    def of_and_or(self, node: ast.BoolOp) -> Value:
        truth = self.truth(node)
        values = [self.value(item) for item in node.values]
        plain = all(isinstance(value, (Constant, Tensor)) for value in values)
        return Constant(truth) if truth is not None and plain else either(values)

    def of_conditional(self, node: ast.IfExp) -> Value:
        truth = self.truth(node.test)
        if truth is not None:
            return self.value(node.body if truth else node.orelse)
        return either([self.value(node.body), self.value(node.orelse)])

    def of_lambda(self, node: ast.Lambda) -> Value:
        return Function(self.scope, node)

    def of_list(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items: list[Value] = []
        is_counted = True
        for element in node.elts[:MOST_ITEMS]:
            if not isinstance(element, ast.Starred):
                items.append(self.value(element))
                continue
            value = self.value(element.value)
            if isinstance(value, Sequence):
                items.extend(value.items)
            else:
                items.append(self.objects.element(value))
                is_counted = False
        return Sequence(items) if is_counted else Many(either(items))

    def of_dict(self, node: ast.Dict) -> Value:
        result = Mapping({}, [])
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            if key is None:
                if isinstance(value, Mapping):
                    result.entries.update(value.entries)
                    result.others.extend(value.others)
            elif isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                result.entries[key.value] = value
            else:
                result.others.append(value)
        return result

    def of_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        return self._comprehended(node.elt, node.generators)

    def of_dict_comprehension(self, node: ast.DictComp) -> Value:
        value = self._comprehended(node.value, node.generators)
        return Mapping({}, [value.item]) if isinstance(value, Many) else value

    def _comprehended(self, element: ast.expr, generators: list[ast.comprehension]) -> Value:
        tests = [ast.unparse(test) for generator in generators for test in generator.ifs]
        with self.within(Scope(self.scope.path, {}, self.scope)):
            for generator in generators:
                iterated = self.value(generator.iter)
                self.assign(generator.target, self.objects.element(iterated), generator.target)
            with self.looping(may_skip=bool(tests)):
                value = self.value(element)
        if isinstance(value, Parameters) and value.one:
            asks = ["requires_grad" in test for test in tests]
            return Parameters(value.things, value.trainable or any(asks), value.partial or not all(asks))
        return Many(value)

    def of_yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else Tensor()
        self.frame.returned.append(Many(value))
        return value

    # Conditions

    def truth(self, node: ast.expr) -> bool | None:
        """Return whether a condition holds, None if that is not known."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            answers = [self.truth(item) for item in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        value = self.value(node)
        if isinstance(value, Constant):
            return bool(value.value)
        return True if isinstance(value, (Function, Class)) else None

    def _comparison(self, node: ast.Compare) -> bool | None:
        if len(node.ops) != 1:
            return None
        if dotted(node.left) == "__name__":
            return isinstance(node.ops[0], ast.Eq) and self.scope is self.definitions.script
        left, right = self.value(node.left), self.value(node.comparators[0])
        sign = SIGNS[type(node.ops[0])]
        if sign in ("is", "is not") and isinstance(right, Constant) and right.value is None:
            if isinstance(left, Constant):
                return (left.value is None) == (sign == "is")
            if isinstance(left, Tensor) or (isinstance(left, Thing) and left.kind != "unknown"):
                return sign == "is not"
            return None
        if isinstance(left, Constant) and isinstance(right, Constant) and sign in _EQUALITIES:
            return constants.compared(sign, left.value, right.value)
        return None

    # Arguments and parameters

    def pass_items(self, call: Call, held: Value) -> None:
        call.arguments.append(Many(self.objects.element(held)))

    def pass_keywords(self, call: Call, held: Value) -> None:
        for given in options(held):
            if isinstance(given, Mapping):
                call.keywords.update((str(key), item) for key, item in given.entries.items())
                if given.others:
                    call.keywords[_ANY] = either(given.others)

    def parameters(self, function: Function, call: Call) -> Names:
        signature = function.node.args
        given = parameter_names(signature)
        spread = call.arguments[-1] if call.arguments and len(call.arguments) <= len(given) else None
        if isinstance(spread, Many):
            # The last argument is an unknown number of them: all parameters from there on may get one.
            reached = dict.fromkeys(given[len(call.arguments) - 1 :], spread.item)
            call = Call(call.arguments[:-1], {**reached, **call.keywords}, call.node)
        names = super().parameters(function, call)
        if signature.vararg:
            rest = [spread] if isinstance(spread, Many) else call.arguments[len(given) :]
            if any(isinstance(item, Many) for item in rest):
                items = [item.item if isinstance(item, Many) else item for item in rest]
                names[signature.vararg.arg] = Many(either(items))
            elif not call.given and self.following:
                names[signature.vararg.arg] = Many(Tensor())
        return names

    def missing(self, function: Function, name: str, call: Call) -> Value:
        if _ANY in call.keywords:
            return call.keywords[_ANY]
        default = next((default for known, default in defaults(function.node.args) if known == name), None)
        if default is None:
            return Tensor()
        with self.within(function.scope):
            return self.value(default)

    def further(self, keywords: dict[str, Value], call: Call) -> Value:
        others: dict[object, Value] = {name: value for name, value in keywords.items() if name != _ANY}
        return Mapping(others, [keywords[_ANY]] if _ANY in keywords else [])
