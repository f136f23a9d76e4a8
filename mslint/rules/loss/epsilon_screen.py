"""What Python's own parser shows of a file that the rules about epsilons may report: no libcst is needed to look for it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import permutations, product

from mslint.semantics.api import canonical
from mslint.semantics.outline import Outline, first_operands, last_name, operands

_CASTS = frozenset({"cast", "astype", "to", "type", "half", "tensor", "parameter"})
_REDUCTIONS = frozenset({"var", "sum", "mean"})
_LARGEST = 1e-3
_LARGEST_LOST_IN_HALF = 3e-8
_LARGEST_LOST_IN_SINGLE = 2.0**-22
"""Relative to the number beside it, which may itself be rounded by 2 ** -24."""


def adds_epsilon(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may add an epsilon where it has no effect, or where a stable form does without (MS201)."""
    return _answer(tree, _Epsilons.are_replaceable)


def guards_half(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may guard a float16 value by an epsilon that float16 has not (MS202)."""
    return _answer(tree, _Epsilons.are_lost_in_half)


def _answer(tree: ast.Module, question: Callable[[_Epsilons], bool]) -> bool:
    try:
        return question(_epsilons(tree))
    except RecursionError:
        return True


@lru_cache(maxsize=1)  # both rules ask for a file, one after the other
def _epsilons(tree: ast.Module) -> _Epsilons:
    return _Epsilons(tree)


class _Epsilons:
    """The additions in a file of what may be an epsilon."""

    def __init__(self, tree: ast.Module) -> None:
        self.outline = outline = Outline(tree)
        self.added: dict[ast.AST, list[tuple[ast.AST, ast.AST]]] = {}
        """By the addition: the values that an epsilon may be added to, each with that epsilon."""
        self.tensors: set[ast.AST] = set()
        """The additions where operators may run."""
        optimizers = {method for item in tree.body if self._is_optimizer(item) for method in ast.iter_child_nodes(item)}
        self.parts = [part for part in outline.parts if part.root not in optimizers]
        for part in self.parts:
            found = {item: terms for item in part.formulas if (terms := [*self._terms(item)])}
            self.added |= found
            if found and outline.runs_operators(part):
                self.tensors.update(found)

    def _is_optimizer(self, node: ast.stmt) -> bool:
        """Tell whether ``node`` is surely the class of an optimizer, which neither rule reports."""
        bases = node.bases if isinstance(node, ast.ClassDef) else ()
        named = (self.outline.imported(base) for base in bases if last_name(base) == "Optimizer")
        return any(name is not None and canonical(name) == "mindspore.nn.Optimizer" for name in named)

    def _terms(self, formula: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        if "add" not in self.outline.operations(formula):
            return
        for value, epsilon in permutations(operands(formula), 2):
            if _is_named_epsilon(epsilon) or (
                not isinstance(value, ast.Constant) and self._may_be_small(epsilon, _LARGEST)
            ):
                yield value, epsilon

    def _may_be_small(self, expression: ast.AST, largest: float) -> bool:
        # A number that is not known is NaN, which compares with none.
        return any(not (number <= 0 or number > largest) for number in self.outline.numbers(expression))

    def _computing(self, *wanted: str) -> Iterator[ast.AST]:
        return (item for item in self.outline.formulas if not self.outline.operations(item).isdisjoint(wanted))

    def are_replaceable(self) -> bool:
        """Tell whether an addition may stand where a stable form does without, or be lost in float32."""
        return self._is_any_lost() or (
            bool(self.tensors)
            and (self._do_guard_logarithm() or self._do_shift() or self._do_normalise() or self._are_returned())
        )

    def _do_guard_logarithm(self) -> bool:
        return self._is_any(self._is_factor, [*self._computing("log")])

    def _do_shift(self) -> bool:
        return self._is_any(self._is_addition, [*self._computing("softmax", "log_softmax", "cross_entropy")])

    def _is_any(self, wanted: Callable[[ast.AST], bool], consumers: list[ast.AST]) -> bool:
        """Tell whether the ``consumers`` are applied to what is ``wanted``, perhaps in another function."""
        return any(wanted(operand) for item in consumers for operand in first_operands(item)) or (
            bool(consumers) and any(map(wanted, self._passed_on()))
        )

    def _do_normalise(self) -> bool:
        """Tell whether a quotient may have a norm, a deviation or a sum of exponentials, plus an epsilon, for a divisor."""
        return any(
            self._is_stable_quotient(above, below)
            for item in self._computing("divide")
            for above, below in permutations(operands(item), 2)
        ) or any(
            self._is_guarded_root(factor, {"rsqrt"})
            for item in self._computing("multiply")
            for factor in operands(item)
        )

    def _are_returned(self) -> bool:
        return any(part.is_construct and self._is_addition(value) for value, part in self.outline.returned)

    def _is_addition(self, expression: ast.AST) -> bool:
        return any(node in self.tensors for node in self.outline.meanings(expression))

    def _is_factor(self, expression: ast.AST) -> bool:
        """Tell whether ``expression`` may be an addition, or a product, quotient, bound or power of one."""
        followed = {"multiply", "divide", "clip", "power", "sqrt", "negative"}
        return any(node in self.tensors for node in self._inside(expression, followed))

    def _inside(self, expression: ast.AST, followed: Collection[str]) -> Iterator[ast.AST]:
        """Yield what ``expression`` may be, and what it is computed from by operations that are ``followed``."""
        seen: set[ast.AST] = set()
        stack = [expression]
        while stack:
            for node in self.outline.meanings(stack.pop()):
                if node not in seen:
                    seen.add(node)
                    yield node
                    if not self.outline.operations(node).isdisjoint(followed):
                        stack += operands(node)

    def _passed_on(self) -> Iterator[ast.AST]:
        """Yield what is passed to functions of the project, or returned by them: a rule follows it there."""
        for call in self.outline.formulas:
            if isinstance(call, ast.Call) and self.outline.runs_project(call):
                yield from operands(call)
        yield from (value for value, _ in self.outline.returned)

    def _is_stable_quotient(self, above: ast.AST, below: ast.AST) -> bool:
        values = self._guarded(below)
        statistics = self._computed(values)
        return (
            not statistics.isdisjoint({"norm", "std"})
            or (not statistics.isdisjoint({"sqrt", "power"}) and any(self._computing(*_REDUCTIONS)))
            or self._is_guarded_root(below, {"sqrt", "power"})
            or (
                any(self._may_be(value, {"sum", "mean"}, {"add"}) for value in values)
                and self._may_be_exponential(above)
            )
        )

    def _guarded(self, expression: ast.AST) -> list[ast.AST]:
        """Return the values that ``expression`` may be plus an epsilon."""
        added = (node for node in self.outline.meanings(expression) if node in self.tensors)
        return [value for node in added for value, _ in self.added[node]]

    def _computed(self, expressions: Iterable[ast.AST]) -> set[str]:
        meanings = (node for item in expressions for node in self.outline.meanings(item))
        return {operation for node in meanings for operation in self.outline.operations(node)}

    def _is_guarded_root(self, expression: ast.AST, roots: Collection[str]) -> bool:
        """Tell whether ``expression`` may be one of ``roots`` of a variance, sum or mean plus an epsilon."""
        return any(
            not self._computed(self._guarded(radicand)).isdisjoint(_REDUCTIONS)
            for node in self.outline.meanings(expression)
            if not self.outline.operations(node).isdisjoint(roots)
            for radicand in operands(node)
        )

    def _may_be_exponential(self, expression: ast.AST) -> bool:
        return self._may_be(expression, {"exp"}, {"multiply", "divide", "select", "index"})

    def _may_be(self, expression: ast.AST, wanted: Collection[str], followed: Collection[str]) -> bool:
        """Tell whether ``expression`` may be computed by operations ``wanted``, and from that by those ``followed``.

        What comes from another function may be.
        """
        outline = self.outline
        return any(
            last_name(node) in outline.parameters
            or outline.is_from_project(node)
            or not outline.operations(node).isdisjoint(wanted)
            or (isinstance(node, ast.Call) and outline.runs_project(node))
            for node in self._inside(expression, followed)
        )

    def _is_any_lost(self) -> bool:
        """Tell whether a bound, or a term of a sum, may be a number that an epsilon is added to or taken from."""
        terms = (operand for item in self._computing("add", "subtract") for operand in operands(item))
        bounds = (operand for item in self._computing("clip") for operand in operands(item))
        return any(map(self._is_lost, terms)) or any(
            self._is_lost(node) for bound in bounds for node in self.outline.meanings(bound)
        )

    def _is_lost(self, node: ast.AST) -> bool:
        if self.outline.operations(node).isdisjoint({"add", "subtract"}):
            return False
        sides = [numbers for operand in operands(node) if (numbers := self.outline.numbers(operand))]
        return any(
            not (0 in pair or _LARGEST_LOST_IN_SINGLE < abs(pair[0] / pair[1]) < 1 / _LARGEST_LOST_IN_SINGLE)
            for one, other in permutations(sides, 2)
            for pair in product(one, other)
        )

    def are_lost_in_half(self) -> bool:
        """Tell whether an epsilon or a bound may be 0 in float16, and what it guards may be float16."""
        parts = constructs = [part for part in self.parts if part.is_construct]
        if any(map(self._is_half, self.outline.formulas)) or any(_sets_attribute(part.root) for part in constructs):
            parts = self.parts
        return any(
            _is_named_epsilon(item) or self._may_be_small(item, _LARGEST_LOST_IN_HALF)
            for part in parts
            for formula in part.formulas
            for item in self._guards(formula)
        )

    def _guards(self, formula: ast.AST) -> list[ast.AST]:
        """Return what ``formula`` may add as an epsilon, or take for a bound."""
        if "clip" in self.outline.operations(formula):
            return operands(formula)
        return [epsilon for _, epsilon in self.added.get(formula, ())]

    def _is_half(self, formula: ast.AST) -> bool:
        """Tell whether ``formula`` may cast something to float16."""
        if not isinstance(formula, ast.Call) or "same" not in self.outline.operations(formula):
            return False
        names = {name.lower() for node in self.outline.callables(formula) for name in self.outline.names(node)}
        if names.isdisjoint(_CASTS) and all(keyword.arg != "dtype" for keyword in formula.keywords):
            return False
        types = (node for operand in operands(formula)[1:] for node in self.outline.meanings(operand, through=False))
        return "half" in names or any(
            last_name(node) in self.outline.parameters
            or self.outline.is_from_project(node)
            or not self.outline.names(node).isdisjoint({"float16", "half"})
            or (isinstance(node, ast.Constant) and node.value == "float16")
            for node in types
        )


def _sets_attribute(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) for item in ast.walk(node))


def _is_named_epsilon(node: ast.AST) -> bool:
    return last_name(node).lower().strip("_") in ("eps", "epsilon")
