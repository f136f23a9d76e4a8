"""``stable-loss``: formulas that an epsilon was to protect, written in a form that needs none."""

from __future__ import annotations

import re
from math import log

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.binary_cross_entropy import fused
from codemods.inlining import Written, free_name, lines_above, other_reads, put, sole_binding, spliced, strength_of
from codemods.leftovers import drop_leftovers
from codemods.logarithms import StableForm
from codemods.statements import remove
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.semantics.epsilon import Added, added_epsilon
from mslint.semantics.flow import held
from mslint.semantics.formula import Expression, Formula, operator_of, read
from mslint.semantics.gradients import statement_of
from mslint.semantics.module import Module, find
from mslint.semantics.normalisation import axis
from mslint.semantics.probability import is_one
from mslint.semantics.reaching import reaching
from mslint.semantics.tensors import Kind, values_at
from mslint.semantics.unstable import (
    GuardedLogarithm,
    HalfEpsilon,
    LostEpsilon,
    NormalisedByHand,
    ReturnedProbability,
    ShiftedLogits,
    SoftmaxByHand,
)

_LEAST_HALF = "1e-7"
"""The smallest round number that float16 does not make 0; it holds it as 1.2e-7."""
_SHIFT_INVARIANT = (
    "CrossEntropyLoss",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "Softmax",
    "LogSoftmax",
)
_WIDE = re.compile(r"mindspore\.(float64|double)$")


class StableLoss(Codemod):
    """Write losses in the form that needs no epsilon, and drop epsilons that do nothing.

    What it does
        ``log(softmax(x) + e)`` becomes ``ops.log_softmax(x)``, inside ``ops.nll_loss`` a cross entropy;
        ``t * log(sigmoid(x) + e) + (1 - t) * log(1 - sigmoid(x) + e)`` becomes
        ``ops.binary_cross_entropy_with_logits(x, t)``, with its mean or sum as the reduction, and a half of it alone
        ``-ops.softplus(-x)`` or ``-ops.softplus(x)`` (``ops.logsigmoid`` is -inf from -90 on, on CPU);
        ``log(sum(exp(x)) + e)`` becomes ``ops.logsumexp(x)``, ``exp(x) / (sum(exp(x)) + e)`` ``ops.softmax(x)``, the
        logarithm of an exponential its argument and that of odds the logit. Variables, ``self.softmax`` and helper methods
        that only return are seen through. What the old form leaves without a reader goes; what is read elsewhere stays.

        An epsilon added to all logits of a softmax or cross entropy, and one that float32 does not see beside a constant,
        is dropped. One that float16 does not see becomes 1e-7, which it does.

    When it is safe
        Dropping an epsilon changes no number beyond rounding: a softmax does not move when all its logits do, and
        ``1 - 1e-15`` is 1 for tensors of float32 and less.

    When it is unsafe
        The stable forms change the loss and the gradient of samples that the epsilon capped: that is what they are for. They
        are no faster. Labels of BCE with logits must have the type and shape of the logits. Infinite logits, of a mask
        perhaps, become infinite losses; mask with -1e4 instead.

    When it is left to you
        The probability is made in another file, by a caller, by a layer, in several ways, or in a helper that does more than
        return it: then the logits must be passed on by hand. Normalisations are only pointed at: ``ops.L2Normalize`` divides
        by ``sqrt(max(sum, e))``, which for small norms is another number.
    """

    name = "stable-loss"
    summary = "an epsilon in a loss becomes a form that needs none: log_softmax, BCE with logits, logsumexp"
    applicability = (
        "unsafe: the loss of samples that the epsilon capped changes; safe where the epsilon has no effect; manual where "
        "the logits are out of reach"
    )
    rules = ("MS201", "MS202")

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        return _fix(module, finding.subject)

    def tidy(self, module: Module, after: str) -> str:
        return drop_leftovers(module, after)


def _fix(module: Module, subject: object) -> Fix:
    if isinstance(subject, GuardedLogarithm):
        return _logarithm(module, subject)
    if isinstance(subject, ShiftedLogits):
        return _shift(module, subject)
    if isinstance(subject, LostEpsilon):
        return _lost(module, subject)
    if isinstance(subject, SoftmaxByHand):
        return _softmax(module, subject)
    if isinstance(subject, NormalisedByHand):
        return _normalisation(subject)
    if isinstance(subject, HalfEpsilon):
        return _half(module, subject)
    assert isinstance(subject, ReturnedProbability)
    raise Manual("two files must change together: return the logits here, and take ops.log_softmax of them there")


def _unsafe(message: str, edits: list[Edit]) -> Fix:
    return Fix(StableLoss.name, Applicability.UNSAFE, message, tuple(dict.fromkeys(edits)))


def _safe(message: str, edits: list[Edit]) -> Fix:
    return Fix(StableLoss.name, Applicability.SAFE, message, tuple(dict.fromkeys(edits)))


def _logarithm(module: Module, subject: GuardedLogarithm) -> Fix:
    place, capped = subject.logarithm, _capped(subject.added)
    if place.module is not module:
        raise Manual(
            f"the logarithm is taken in another file, {place.file}:{place.row}; return the logits here and take "
            "ops.log_softmax of them there"
        )
    call = place.node
    assert isinstance(call, cst.Call)
    if not _is_natural(module, call):
        raise Manual("the logarithm is no natural one; take a stable natural logarithm of the logits and scale it")
    pair = fused(module, place)
    if pair is not None:
        return _unsafe(
            f"BCE with logits in the place of two logarithms: {capped}; logits of any size have a finite loss; it takes "
            "for granted that the labels have the float type and the shape of the logits",
            pair,
        )
    edits = _at_producer(module, call) or _at_logarithm(module, call)
    return _unsafe(
        f"the stable logarithm: {capped}; it takes for granted that no logit is infinite, as after a mask with -inf",
        edits,
    )


def _at_logarithm(module: Module, call: cst.Call) -> list[Edit]:
    form = StableForm(module, call)
    written = form.of(read(Expression(module, call)).first)
    name = "log_sum" if "logsumexp" in written.head else "log_probs"
    edits = _cross_entropy(form, call, written) or put(module, call, written, name)
    return [*form.edits, *edits]


def _at_producer(module: Module, call: cst.Call) -> list[Edit]:
    """Return the edits that take the logarithm where a variable becomes a probability of itself: ``x = softmax(x)``."""
    added = added_epsilon(read(read(Expression(module, call)).first))
    if added is None:
        return []
    complement = read(added.value).operation == "subtract" and is_one(read(added.value).first)
    name = (read(added.value).operands[1] if complement else added.value).node
    bound = reaching(module, name) if isinstance(name, cst.Name) else []
    value, assigned = (bound[0].value, bound[0].node) if len(bound) == 1 else (None, None)
    if value is None or not isinstance(name, cst.Name) or not isinstance(assigned, cst.Assign):
        return []
    formula = read(Expression(module, value))
    producers = ("sigmoid",) if complement else ("softmax", "sigmoid")
    if formula.operation not in producers or not _read_as(value, name.value):
        return []
    form = StableForm(module, value)
    written = form.of_complement(formula.expression) if complement else form.of(formula.expression)
    line = statement_of(module, call)
    alone = not other_reads(module, bound[0], name) and len(assigned.targets) == 1
    if alone and isinstance(line, cst.SimpleStatementLine) and _gives_itself(module, call, added.value):
        return [*form.edits, *put(module, value, written, name.value), remove(module, line)]
    variable = free_name(module, value, "log_probs" if form.is_only_one() else f"log_{name.value}")
    assignment = f"{variable} = {written.code}"
    edit = module.replace(assigned, assignment) if alone else lines_above(module, value, [assignment])
    return [*form.edits, edit, *put(module, call, Written(variable), variable)]


def _read_as(node: cst.CSTNode, name: str) -> list[cst.Name]:
    return [item for item in find(node, cst.Name) if item.value == name]


def _capped(added: Added) -> str:
    if added.amount is None:
        return f"{added.written} no longer caps it and no longer cuts off the gradient of what is far off"
    return (
        f"values change by {added.amount:g} / p at most where the probability p is well above {added.amount:g}, and are no "
        f"longer cut off at {log(added.amount):.3g}, with the gradient, where it is not"
    )


def _is_natural(module: Module, call: cst.Call) -> bool:
    name = operator_of(module, call)[0] or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
    return name.rpartition(".")[2] in ("log", "Log")


def _cross_entropy(form: StableForm, call: cst.Call, written: Written) -> list[Edit]:
    """Return the edits that make ``nll_loss`` of a log_softmax along axis 1 the cross entropy that it is."""
    module = form.module
    argument = module.parents[call]
    outer = module.parents[argument]
    if not isinstance(argument, cst.Arg) or not isinstance(outer, cst.Call) or outer.args[0] is not argument:
        return []
    is_log_softmax = written.head.endswith("log_softmax(") and written.tail == ")"
    along = written.arguments[1:] if is_log_softmax else ()
    if along not in (("1",), ("axis=1",)) or module.resolve(outer.func) != "mindspore.ops.nll_loss":
        return []
    form.edits.clear()
    function = form.function("cross_entropy")
    edits = put(module, call, Written(written.arguments[0]), "inputs")
    return [module.replace(outer.func, function), *edits]


def _shift(module: Module, subject: ShiftedLogits) -> Fix:
    added, consumer = subject.added, subject.consumer
    node = added.expression.node
    if added.expression.module is not module or module.scope(node) is not module.scope(consumer.expression.node):
        raise Manual(
            f"the logits are moved in another function than the {consumer.operation.replace('_', ' ')}; drop {added.written}"
            " there if nothing else reads them"
        )
    _check_consumer(consumer)
    _check_only_logits(module, consumer.first, node)
    message = (
        f"without {added.written}: {consumer.operation.replace('_', ' ')} does not change when all logits move by the same "
        "amount, so the numbers are the same up to rounding"
    )
    statement = statement_of(module, node)
    if _gives_itself(module, node, added.value):
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            raise Manual(f"drop {added.written}; the statement shares its line with others")
        return _safe(message, [remove(module, statement)])
    if isinstance(node, cst.AugAssign):
        raise Manual(f"drop {added.written}")
    assert isinstance(node, cst.BaseExpression)
    value = Written(spliced(module, added.value.node, {}), strength=strength_of(added.value.node))
    return _safe(message, put(module, node, value, "scores"))


def _check_consumer(consumer: Formula) -> None:
    """Refuse where the function that gets the logits may be another one than a softmax or a cross entropy."""
    module, call = consumer.expression.module, consumer.expression.node
    function = call.func if isinstance(call, cst.Call) else None
    built: list[cst.CSTNode] = []
    if isinstance(function, cst.Name):
        built = [binding.value or binding.node for binding in reaching(module, function)]
    elif isinstance(function, cst.Attribute):
        built = list(held(module, function))
    if len(built) < 2:
        return
    for value in built:
        name = module.resolve(value.func) if isinstance(value, cst.Call) else None
        if name is None or name.rpartition(".")[2] not in _SHIFT_INVARIANT:
            raise Manual(
                f"what the logits go into may be another function (row {module.start(value).row}); drop the epsilon if that "
                "is a softmax or a cross entropy too"
            )


def _check_only_logits(module: Module, logits: Expression, place: cst.CSTNode) -> None:
    """Refuse unless all that reads the moved logits is a softmax or a cross entropy, between ``place`` and here."""
    node = logits.node
    if node is place:
        return
    if not isinstance(node, cst.Name):
        if read(logits).operation in ("same", "index"):
            _check_only_logits(module, read(logits).first, place)
            return
        raise Manual("the logits are moved where other code may read them; drop the epsilon if none does")
    binding = sole_binding(module, node, "the logits come from elsewhere; drop the epsilon there")
    for other in other_reads(module, binding, node):
        if not _goes_into_softmax(module, other):
            raise Manual(
                f"`{node.value}` is read in row {module.start(other).row} too, where the epsilon may count; drop it if it "
                "does not"
            )
    if isinstance(binding.node, cst.AugAssign):
        if binding.node is not place:
            raise Manual("the logits are changed in between; drop the epsilon by hand")
    elif binding.value is not None:
        _check_only_logits(module, Expression(module, binding.value), place)


def _goes_into_softmax(module: Module, name: cst.Name) -> bool:
    call = module.parents[module.parents[name]]
    formula = read(Expression(module, call)) if isinstance(call, cst.Call) else None
    return (
        formula is not None
        and formula.operation in ("softmax", "log_softmax", "cross_entropy")
        and formula.first.node is name
    )


def _gives_itself(module: Module, node: cst.CSTNode, value: Expression) -> bool:
    """Tell whether the statement would only assign a variable to itself without the epsilon."""
    if isinstance(node, cst.AugAssign):
        return True
    parent = module.parents[node]
    return (
        isinstance(parent, cst.Assign)
        and len(parent.targets) == 1
        and module.code(parent.targets[0].target) == module.code(value.node)
    )


def _lost(module: Module, subject: LostEpsilon) -> Fix:
    node = subject.place.node
    program, here = module.program, module.source.path.absolute()
    for path in sorted(program.neighbourhood(here) | {here}):
        if any(_WIDE.match(program.dotted_in(path, use) or "") for use in program.may_mean(path, _WIDE)):
            raise Manual(f"{path.name} computes in float64, which does see it; drop it if these tensors are float32")
    if not isinstance(node, (cst.BinaryOperation, cst.Call)):
        raise Manual("the constant is made elsewhere and may have other uses; drop the epsilon there")
    other = _beside(module, node)
    if other is None:
        raise Manual("the constant is used in other places too; drop the epsilon there")
    kind = values_at(module, other).kind(other)
    if kind in (Kind.ARRAY, Kind.NUMBER, Kind.LIST):
        raise Manual("it is added up in float64 by Python or NumPy, which do see it")
    edits = put(module, node, Written(_constant(module, node, subject.constant)), "limit")
    message = "without the epsilon: the constant is the same number in float32"
    # An operator of MindSpore bounds nothing but tensors.
    if kind is Kind.TENSOR or isinstance(module.parents[node], cst.Arg):
        return _safe(message, edits)
    return _unsafe(f"{message}; it takes for granted that `{module.code(other)}` is a tensor of float32 or less", edits)


def _beside(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor that the constant ``node`` is a bound of, or is added to."""
    parent = module.parents[node]
    if isinstance(parent, cst.BinaryOperation):
        return parent.right if parent.left is node else parent.left
    call = module.parents[parent] if isinstance(parent, cst.Arg) else None
    formula = read(Expression(module, call)) if isinstance(call, cst.Call) else None
    if formula is None or not formula.operation or formula.first.node is node:
        return None
    first = formula.first.node
    assert isinstance(first, cst.BaseExpression)
    return first


def _constant(module: Module, node: cst.BaseExpression, constant: float) -> str:
    """Return ``constant`` as it is written in ``node`` if it is a float there, else as Python writes a float."""
    written = (module.code(part) for part in find(node, cst.Float) if part.evaluated_value == constant)
    return next(written, repr(constant))


def _softmax(module: Module, subject: SoftmaxByHand) -> Fix:
    quotient = subject.quotient
    node = quotient.expression.node
    if quotient.expression.module is not module or not isinstance(node, cst.BaseExpression):
        raise Manual("the quotient stands elsewhere; write it as ops.softmax of the logits there")
    form = StableForm(module, node)
    found = form.softmax_by_hand(quotient)
    if found is None:
        raise Manual("the sum is not the sum of what is divided by it; write ops.softmax, if that is what is meant")
    logits, axis_text = found
    arguments = (form.written(logits).code, axis_text)
    edits = put(module, node, Written(f"{form.function('softmax')}(", arguments, ")"), "probs")
    message = (
        f"the softmax that this is: without {subject.added.written}, and without an overflow of the exponentials; values "
        "change by the share that the epsilon has of the sum"
    )
    return _unsafe(message, [*form.edits, *edits])


def _normalisation(subject: NormalisedByHand) -> Fix:
    found = subject.found
    if found.kind != "norm":
        raise Manual(f"a layer that divides by the {found.kind} must be built in __init__, with its epsilon")
    along = axis(read(found.added.value))
    where = f"axis={along.code}, " if along is not None else ""
    message = (
        f"ops.L2Normalize({where}epsilon={found.added.epsilon.code})(...) divides by sqrt(max(sum, e)): the gradient of a "
        "row of zeros stays finite, but for small norms the numbers are others"
    )
    return Fix(StableLoss.name, Applicability.DISPLAY, message)


def _half(module: Module, subject: HalfEpsilon) -> Fix:
    epsilon = subject.epsilon
    if epsilon.module is not module or not isinstance(epsilon.node, cst.Float):
        raise Manual(
            f"`{epsilon.code}` is set elsewhere and may serve float32 values too; give this one {_LEAST_HALF}, or compute it "
            "in float32"
        )
    message = (
        f"{_LEAST_HALF}, which float16 holds as 1.2e-7, in the place of an epsilon that is 0 there: what is 0 stays finite; "
        "computing this in float32 would keep the small numbers too"
    )
    return _unsafe(message, [module.replace(epsilon.node, _LEAST_HALF)])
