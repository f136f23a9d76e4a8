"""Logarithms of probabilities and of sums of exponentials, written as stable functions of the logits."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from codemods.base import Manual
from codemods.imports import reach_operator
from codemods.inlining import (
    Strength,
    Written,
    check_unchanged,
    check_unsharded,
    is_simple,
    named_above,
    other_reads,
    sole_binding,
    spliced,
    strength_of,
)
from codemods.leftovers import is_plain
from mslint.findings import Edit
from mslint.semantics.cells import method_of, self_name
from mslint.semantics.epsilon import added_epsilon
from mslint.semantics.formula import Expression, Formula, callees, numbers, operator_of, read, same
from mslint.semantics.gradients import statement_of
from mslint.semantics.module import Binding, Module, find, walk
from mslint.semantics.normalisation import axis as reduced_axis
from mslint.semantics.probability import is_one

_LOOSEST_BOUND = 1e-3
"""A lower bound of a probability up to here is an epsilon by another name."""
_PRODUCERS = ("softmax", "sigmoid", "exp")
_PICKING = ("gather", "gatherd", "gatherelements", "gathernd", "indexselect", "take")
_NO_SOFTMAX = "what the logarithm is taken of is no plain softmax, sigmoid or sum of exponentials where it can be read"


class StableForm:
    """The logarithm or softmax that ``place`` computes, as a function of the logits.

    ``edits`` are those that the new form needs elsewhere: imports, a name for logits that are used twice.
    """

    def __init__(self, module: Module, place: cst.BaseExpression) -> None:
        self.module = module
        self.place = place
        self.edits: list[Edit] = []
        self._followed: list[tuple[cst.Name, Binding]] = []
        self._given: dict[str, Expression] = {}
        self._inside: cst.Call | None = None
        check_unsharded(module, place)

    def of(self, expression: Expression) -> Written:
        """Return the logarithm of ``expression``, an epsilon in it left out."""
        if expression.module is not self.module:
            raise Manual(
                f"the probability is made in another file, {expression.file}:{expression.row}; return the logits there "
                "as well, and take ops.log_softmax of them here"
            )
        node = expression.node
        if isinstance(node, cst.Name):
            return self.of(self._held(node))
        if isinstance(node, cst.Call) and operator_of(self.module, node)[0] is None:
            inside = callees(self.module, node)
            if inside:
                return self._returned(node, *inside[0])
        return self._of_formula(read(expression))

    def _of_formula(self, formula: Formula) -> Written:
        operation = formula.operation
        if operation == "softmax":
            return self._log_softmax(formula.first, softmax_axis(formula))
        if operation == "sum":
            return self._log_sum_exp(formula)
        if operation == "exp":
            return self.written(formula.first)
        if operation == "sigmoid":
            return self._softplus(self.written(formula.first).negated())
        if operation == "subtract" and is_one(formula.first):
            return self.of_complement(formula.operands[1])
        if operation == "divide" and len(formula.operands) == 2:
            return self._quotient(formula)
        if operation == "add":
            added = added_epsilon(formula)
            if added is not None:
                return self.of(added.value)
        if operation == "clip" and _keeps_probabilities(formula):
            return self.of(formula.first)
        if operation in ("same", "index"):
            return self._through(formula, self.of(formula.first))
        raise Manual(f"{_NO_SOFTMAX} (row {formula.expression.row}); {self._remedy()}")

    def _remedy(self) -> str:
        return "take ops.log_softmax of the logits, or a cross entropy from logits, where they are at hand"

    def _held(self, name: cst.Name) -> Expression:
        """Return what the only assignment of a variable gives it."""
        if name.value in self._given:
            return self._given[name.value]
        binding = sole_binding(self.module, name, f"`{name.value}` comes from elsewhere; {self._remedy()}")
        if isinstance(binding.node, cst.Param):
            raise Manual(
                f"`{name.value}` is an argument, and whoever passes it made it a probability; pass the logits, and "
                f"{self._remedy()}"
            )
        self._followed.append((name, binding))
        if isinstance(binding.node, cst.AugAssign):
            return Expression(self.module, binding.node)
        value = binding.value or _element(binding)
        if value is None:
            raise Manual(f"`{name.value}` is one of several results in row {self.module.start(binding.node).row}")
        return Expression(self.module, value)

    def _is_kept(self) -> bool:
        """Tell whether a variable that was followed stays, so that what it holds is computed anyway.

        It is read elsewhere too, or its assignment is no statement that could go.
        """
        if not all(is_plain(binding.node, statement_of(self.module, binding.node)) for _, binding in self._followed):
            return True
        gone = {item for part in (self.place, *(b.value or b.node for _, b in self._followed)) for item in walk(part)}
        return any(
            read_elsewhere not in gone
            for name, binding in self._followed
            for read_elsewhere in other_reads(self.module, binding, name)
        )

    def _returned(self, call: cst.Call, home: Module, function: cst.FunctionDef) -> Written:
        """Go into a helper that does nothing but return an expression of its arguments."""
        row = home.start(function).row
        where = f"row {row}" if home is self.module else f"{home.source.path.name}:{row}"
        name = function.name.value
        if home is not self.module:
            raise Manual(
                f"the probability is made in another file, by `{name}` in {where}; return the logits there as well, and "
                f"{self._remedy()}"
            )
        body = [item for item in function.body.body if not _is_docstring(item)]
        line = body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else None
        result = line.body[0] if line is not None and len(line.body) == 1 else None
        if not isinstance(result, cst.Return) or result.value is None or self._inside is not None:
            raise Manual(
                f"the probability is made by `{name}` in {where}, which does more than return it; let it return the logits, "
                f"and {self._remedy()}"
            )
        if function.name.value == "construct" or (method_of(home, function) is function and self._overridden(function)):
            raise Manual(f"`{name}` in {where} may be another one in a subclass or a cell of its own; {self._remedy()}")
        self._given = self._arguments(call, function)
        self._inside = call
        return self.of(Expression(home, result.value))

    def _overridden(self, function: cst.FunctionDef) -> bool:
        program, path = self.module.program, self.module.source.path.absolute()
        owner = self.module.enclosing(function, cst.ClassDef)
        known = (
            [program.class_facts(item) for item in program.subclasses(f"{path}:{owner.name.value}")] if owner else []
        )
        return any(facts is not None and function.name.value in facts[1].methods for facts in known)

    def _arguments(self, call: cst.Call, function: cst.FunctionDef) -> dict[str, Expression]:
        parameters = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
        if method_of(self.module, function) is function:
            caller = method_of(self.module, call)
            if caller is None or self_name(caller) != parameters[0]:
                raise Manual(f"`{function.name.value}` is called from outside its class; {self._remedy()}")
            parameters = parameters[1:]
        given = {}
        for index, argument in enumerate(call.args):
            if argument.star or index >= len(parameters):
                raise Manual(f"the arguments of `{function.name.value}` cannot be told apart; {self._remedy()}")
            name = argument.keyword.value if argument.keyword is not None else parameters[index]
            given[name] = Expression(self.module, argument.value)
        if set(parameters) - given.keys():
            raise Manual(f"`{function.name.value}` is called with defaults; {self._remedy()}")
        return given

    def _log_softmax(self, logits: Expression, axis: str | None) -> Written:
        arguments = (self.written(logits).code, *([axis] if axis else ()))
        return Written(f"{self.function('log_softmax')}(", arguments, ")")

    def function(self, name: str) -> str:
        """Return how the function ``name`` of ``mindspore.ops`` is written here."""
        reached = reach_operator(self.module, name, self.place)
        self.edits += reached.edits
        return reached.expression

    def _log_sum_exp(self, formula: Formula) -> Written:
        exponent = self.argument_of("exp", formula.first)
        arguments = (self.written(exponent).code, *sum_settings(formula))
        return Written(f"{self.function('logsumexp')}(", arguments, ")")

    def _softplus(self, negated: Written) -> Written:
        """Return log(sigmoid(x)) = -softplus(-x), which neither overflows nor loses its gradient; ops.logsigmoid does."""
        return Written(f"-{self.function('softplus')}(", (negated.code,), ")", Strength.SIGNED)

    def of_complement(self, probability: Expression) -> Written:
        """Return the logarithm of one minus ``probability``."""
        return self._softplus(self._logits(probability))

    def _logits(self, probability: Expression) -> Written:
        """Return x where ``probability`` is sigmoid(x), reshaped or picked from perhaps."""
        formula = read(self._seen(probability))
        if formula.operation in ("same", "index"):
            return self._through(formula, self._logits(formula.first))
        return self.written(self.argument_of("sigmoid", formula.expression))

    def _quotient(self, formula: Formula) -> Written:
        above, below = formula.operands
        by_hand = self.softmax_by_hand(formula)
        if by_hand is not None:
            return self._log_softmax(*by_hand)
        odds = self._odds(above, below)
        if odds is not None:
            return self.written(odds)
        numerator, denominator = self.of(above), self.of(below).at_least(Strength.PRODUCT)
        return Written(f"{numerator.code} - {denominator.code}", strength=Strength.SUM)

    def softmax_by_hand(self, formula: Formula) -> tuple[Expression, str] | None:
        """Return x and the axis where a quotient is exp(x) / sum(exp(x)) along it."""
        above, below = formula.operands[:2]
        part = read(self._seen(below))
        added = added_epsilon(part)
        part = read(self._seen(added.value)) if added is not None else part
        if part.operation != "sum" or not same(part.first, above):
            return None
        exponent = self.argument_of("exp", above)
        settings = sum_settings(part)
        if len(settings) < 2:
            raise Manual(f"the sum in row {part.expression.row} does not keep its axis; write ops.softmax by hand")
        self._seen(part.first)
        return exponent, settings[0]

    def _seen(self, expression: Expression) -> Expression:
        while isinstance(expression.node, cst.Name):
            expression = self._held(expression.node)
        return expression

    def _odds(self, above: Expression, below: Expression) -> Expression | None:
        """Return x where the quotient is sigmoid(x) / (1 - sigmoid(x))."""
        rest = read(below)
        added = added_epsilon(rest)
        rest = read(added.value) if added is not None else rest
        if rest.operation == "subtract" and is_one(rest.first) and same(rest.operands[1], above):
            return self.argument_of("sigmoid", above)
        return None

    def argument_of(self, operation: str, expression: Expression) -> Expression:
        """Return what ``operation`` is applied to, if that is what ``expression`` is."""
        expression = self._seen(expression)
        formula = read(expression)
        if formula.operation != operation or expression.module is not self.module:
            raise Manual(f"{_NO_SOFTMAX} (row {expression.row}); {self._remedy()}")
        return formula.first

    def _through(self, formula: Formula, inner: Written) -> Written:
        """Return ``inner`` with what is done to the first operand of ``formula``: a reshape, a cast, picking elements."""
        node = formula.expression.node
        if formula.operation == "index" and not (isinstance(node, cst.Subscript) or _picks(self.module, node)):
            raise Manual(f"elements are picked from the probability in row {formula.expression.row}; {self._remedy()}")
        for part in _beside(node, formula.first.node):
            self._check(part)
        if inner.strength is Strength.SIGNED:
            return self._through(formula, inner.negated()).negated()
        inner = inner.at_least(Strength.ATOM)
        mark = "\0"
        head, _, tail = spliced(self.module, node, {formula.first.node: mark}).partition(mark)
        return Written(head + inner.head, inner.arguments, inner.tail + tail)

    def written(self, expression: Expression) -> Written:
        """Return ``expression`` as it is to be written at the place of the logarithm."""
        node = expression.node
        assert isinstance(node, cst.BaseExpression)
        inside = self._inside
        if inside is not None and any(item is node for item in walk(self._home())):
            return self._substituted(node)
        self._check(node)
        if not is_simple(node) and node not in set(walk(self.place)) and self._is_kept():
            holder = self._followed[-1][1].name
            name, edits = named_above(self.module, node, "logits" if self.is_only_one() else f"{holder}_logits")
            self.edits += edits
            return Written(name)
        return Written(spliced(self.module, node, {}), strength=strength_of(node))

    def is_only_one(self) -> bool:
        """Tell whether the function makes but one probability, so that its logits need no name of their own.

        Several rewrites of one pass must not call different things alike.
        """
        calls = find(self.module.scope(self.place), cst.Call)
        made = [call for call in calls if read(Expression(self.module, call)).operation in _PRODUCERS]
        return len(made) <= 1

    def _home(self) -> cst.CSTNode:
        """Return the helper that was gone into."""
        assert self._inside is not None
        return callees(self.module, self._inside)[0][1]

    def _substituted(self, node: cst.BaseExpression) -> Written:
        """Return an expression of a helper with the arguments of its call in the place of its parameters."""
        if not is_simple(node) and self._is_kept():
            raise Manual(
                "the probability is used elsewhere too, so a helper would compute the logits twice; let it return the "
                f"logits, and {self._remedy()}"
            )
        replacements: dict[cst.CSTNode, str] = {}
        for name in find(node, cst.Name):
            given = self._given.get(name.value)
            parent = self.module.parents[name]
            is_word = isinstance(parent, (cst.Attribute, cst.Arg)) and getattr(parent, "value", None) is not name
            if given is None or is_word:
                continue
            if name.value in {other for item, other in _names(replacements)} and not is_simple(given.node):
                raise Manual(f"`{name.value}` would be computed twice; {self._remedy()}")
            self._check(given.node)
            text = Written(spliced(self.module, given.node, {}), strength=strength_of(given.node))
            alone = isinstance(parent, (cst.Arg, cst.Index)) or name is node
            replacements[name] = text.code if alone else text.at_least(Strength.ATOM).code
        only = self._given.get(node.value) if isinstance(node, cst.Name) else None
        strength = strength_of(only.node if only is not None else node)
        return Written(spliced(self.module, node, replacements), strength=strength)

    def _check(self, node: cst.CSTNode) -> None:
        place: cst.CSTNode = self.place
        if self.module.scope(node) is self.module.scope(place):
            check_unchanged(self.module, node, place)


def _element(binding: Binding) -> cst.BaseExpression | None:
    """Return what a variable gets where as many values as variables are assigned at once."""
    node = binding.node
    if not isinstance(node, cst.Assign) or len(node.targets) != 1 or not isinstance(node.value, cst.Tuple):
        return None
    target = node.targets[0].target
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    if len(elements) != len(node.value.elements):
        return None
    for part, element in zip(elements, node.value.elements, strict=True):
        if isinstance(part.value, cst.Name) and part.value.value == binding.name:
            return element.value
    return None


def _names(replacements: Mapping[cst.CSTNode, str]) -> list[tuple[cst.CSTNode, str]]:
    return [(node, node.value) for node in replacements if isinstance(node, cst.Name)]


def _beside(node: cst.CSTNode, inner: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the parts of a call or subscript ``node`` other than ``inner``, which it is applied to."""
    if isinstance(node, cst.Call):
        return [argument.value for argument in node.args if argument.value is not inner]
    return list(node.slice) if isinstance(node, cst.Subscript) else []


def _picks(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether a call picks elements of one tensor into another."""
    if not isinstance(node, cst.Call):
        return False
    name = operator_of(module, node)[0] or (node.func.attr.value if isinstance(node.func, cst.Attribute) else "")
    return name.rpartition(".")[2].replace("_", "").lower() in _PICKING


def _is_docstring(line: cst.CSTNode) -> bool:
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    statement = line.body[0]
    return isinstance(statement, cst.Expr) and isinstance(statement.value, cst.SimpleString)


def _keeps_probabilities(formula: Formula) -> bool:
    """Tell whether a clip only keeps a probability from 0 and 1."""
    lower, upper = [numbers(operand) for operand in formula.operands[1:3]] if len(formula.operands) == 3 else ((), ())
    return bool(lower and upper) and max(lower) <= _LOOSEST_BOUND and min(upper) >= 1 - _LOOSEST_BOUND


def softmax_axis(formula: Formula) -> str | None:
    """Return how the axis of a softmax is to be written behind the logits; None where it is the default, the last one."""
    module, node = formula.expression.module, formula.expression.node
    assert isinstance(node, cst.Call)
    name = operator_of(module, node)[0] or ""
    if name in ("softmax", "sigmoid") or name.rpartition(".")[2] == "Softmax2d":
        raise Manual(
            f"the softmax in row {formula.expression.row} is the end of a layer; take it out of the layer first"
        )
    if formula.setting("dtype") is not None:
        raise Manual(f"the softmax in row {formula.expression.row} changes the type; cast the logits before instead")
    given = formula.setting("axis", "dim")
    keyword = given is not None
    if given is None and len(formula.operands) > 1:
        given = _expression(formula.operands[1].node)
    if given is None and formula.built:
        given = formula.built[0].value
    if given is None:
        if name.startswith("mindspore.mint."):
            raise Manual(f"the softmax in row {formula.expression.row} has no dim; say which")
        return None
    if not _is_integer(given) and not (is_simple(given) and given not in [item.value for item in formula.built]):
        raise Manual(f"the axis of the softmax, `{module.code(given)}`, is not written as a number; {_NO_SOFTMAX}")
    return f"axis={module.code(given)}" if keyword else module.code(given)


def _expression(node: cst.CSTNode) -> cst.BaseExpression:
    assert isinstance(node, cst.BaseExpression)
    return node


def _is_integer(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node = node.expression
    return isinstance(node, cst.Integer)


def sum_settings(formula: Formula) -> list[str]:
    """Return axis and, where it is kept, ``True``, of a sum: by position, since releases name them differently."""
    along = reduced_axis(formula)
    if along is None:
        raise Manual(f"the sum in row {formula.expression.row} is over all axes; ops.logsumexp wants to be told which")
    if along.module is not formula.expression.module:
        raise Manual(f"the axis of the sum in row {formula.expression.row} is out of sight")
    module = along.module
    return [spliced(module, along.node, {}), *(["True"] if keeps_axis(formula) else [])]


def keeps_axis(formula: Formula) -> bool:
    """Tell whether a sum keeps the axis that it is along."""
    kept = formula.setting("keepdims", "keepdim", "keep_dims")
    if kept is None and formula.built:
        kept = formula.built[0].value
    elif kept is None and len(formula.operands) > 2:
        kept = _expression(formula.operands[2].node)
    if kept is None or (isinstance(kept, cst.Name) and kept.value == "False"):
        return False
    if isinstance(kept, cst.Name) and kept.value == "True":
        return True
    raise Manual(f"whether the sum in row {formula.expression.row} keeps its axis is not written there")
