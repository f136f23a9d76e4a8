"""Where a file takes gradients through ``GradOperation``: operators, what they are applied to, what is computed beside them.

The criterion of MS101 and of its codemod. Facts about MindSpore (2.10.0, measured, shared/verifier.md A): ``GradOperation``
returns gradients of the weights only with ``get_by_list``; with ``sens_param`` its last positional argument weighs the
output. ``nn.TrainOneStepCell`` holds ``self.grad`` (by list, with sensitivity) and ``self.grad_no_sens`` (by list).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from mslint.semantics.cells import CellClass, all_classes, class_of, is_self, method_of, self_name
from mslint.semantics.module import Module, find

Kept = tuple[cst.Assign | cst.AnnAssign, CellClass | None, str | None, str | None]
"""Where something is kept: the assignment, and the class and attribute or the variable it goes to."""

GRAD_OPERATION = "mindspore.ops.GradOperation"
_PARTIAL = "functools.partial"
TRAIN_STEPS = ("mindspore.nn.TrainOneStepCell", "mindspore.nn.TrainOneStepWithLossScaleCell")
_OPTIONS = ("get_all", "get_by_list", "sens_param")
_INHERITED = {"grad": (False, True, True), "grad_no_sens": (False, True, False)}

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


@dataclass(eq=False)
class Application:
    """``operator(network, weights)``: the gradient function, and the calls of it."""

    node: cst.Call
    network: cst.BaseExpression | None
    weights: cst.BaseExpression | None
    invocations: list[cst.Call] = field(default_factory=list)
    escapes: list[cst.CSTNode] = field(default_factory=list)
    """Uses of the gradient function other than calling it."""
    kept_in: cst.CSTNode | None = None
    """The assignment that keeps the gradient function, if it is kept."""


@dataclass
class GradientOperator:
    """One ``GradOperation``: built here (``construction``) or inherited (``construction`` is None)."""

    construction: cst.Call | None
    get_all: bool | None
    get_by_list: bool | None
    sens_param: bool | None
    owner: CellClass | None = None
    attribute: str | None = None
    """The attribute of ``owner`` that holds it."""
    variable: str | None = None
    """The variable that holds it."""
    holder: cst.CSTNode | None = None
    """The assignment to that attribute or variable."""
    origin: str = ""
    """For an inherited operator, the class that builds it."""
    partial: cst.CSTNode | None = None
    """The assignment of the ``functools.partial`` that builds it, if that is kept in a variable."""
    applications: list[Application] = field(default_factory=list)
    escapes: list[cst.CSTNode] = field(default_factory=list)
    """Uses of the operator other than applying it: passed as an argument, returned, kept in a container."""

    @property
    def trains(self) -> bool:
        """Whether it differentiates with respect to parameters somewhere."""
        if self.get_by_list is None:
            return any(application.weights is not None for application in self.applications)
        return self.get_by_list and bool(self.applications or self.escapes)


@dataclass(frozen=True)
class Forward:
    """The forward pass that a training step runs beside its gradient, in the same block and with the same arguments."""

    call: cst.Call
    statement: cst.SimpleStatementLine
    assignment: cst.BaseSmallStatement
    target: cst.BaseExpression
    """What the loss is assigned to."""
    between: tuple[Statement, ...]
    """The statements after it and before the gradient."""


def gradient_operators(module: Module) -> list[GradientOperator]:
    """Return the gradient operators that ``module`` builds or inherits, in source order."""
    return module.remember(gradient_operators, lambda: _Search(module).run())


class _Search:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.classes = all_classes(module)

    def run(self) -> list[GradientOperator]:
        found = []
        for call in self.module.calls:
            if self.module.resolve(call.func) == GRAD_OPERATION:
                found.append(self._built(call, call.args))
            elif self._is_partial(call):
                found += self._built_by(call)
        return found + list(self._inherited())

    def _is_partial(self, call: cst.Call) -> bool:
        """Tell whether ``call`` is ``functools.partial(GradOperation, ...)``."""
        return (
            bool(call.args)
            and self.module.resolve(call.args[0].value) == GRAD_OPERATION
            and self.module.resolve(call.func) == _PARTIAL
        )

    def _built_by(self, partial: cst.Call) -> Iterator[GradientOperator]:
        """Yield the operators that are built by calling ``partial``."""
        arguments = partial.args[1:]
        parent = self.module.parents[partial]
        if isinstance(parent, cst.Call) and parent.func is partial:
            yield self._built(parent, [*arguments, *parent.args])
            return
        kept = self._kept(partial)
        if kept is None:
            yield GradientOperator(partial, *_options(arguments), escapes=[partial])
            return
        for use in self._uses(kept):
            holder = self.module.parents[use]
            if isinstance(holder, cst.Call) and holder.func is use:
                operator = self._built(holder, [*arguments, *holder.args])
            else:
                operator = GradientOperator(partial, *_options(arguments), escapes=[use])
            operator.partial = kept[0]
            yield operator

    def _built(self, call: cst.Call, arguments: Sequence[cst.Arg]) -> GradientOperator:
        operator = GradientOperator(call, *_options(arguments))
        parent = self.module.parents[call]
        if isinstance(parent, cst.Call) and parent.func is call:
            operator.applications.append(self._application(parent))
            return operator
        kept = self._kept(call)
        if kept is None:
            operator.escapes.append(call)
            return operator
        operator.holder, operator.owner, operator.attribute, operator.variable = kept
        for use in self._uses(kept):
            self._note(operator, use)
        return operator

    def _note(self, operator: GradientOperator, use: cst.CSTNode) -> None:
        parent = self.module.parents[use]
        if isinstance(parent, cst.Call) and parent.func is use:
            operator.applications.append(self._application(parent))
        else:
            operator.escapes.append(use)

    def _application(self, call: cst.Call) -> Application:
        network, weights = _argument(call, 0, "fn"), _argument(call, 1, "weights")
        application = Application(call, network, weights)
        parent = self.module.parents[call]
        if isinstance(parent, cst.Call) and parent.func is call:
            application.invocations.append(parent)
            return application
        kept = self._kept(call)
        if kept is None:
            application.escapes.append(call)
            return application
        application.kept_in = kept[0]
        for use in self._uses(kept):
            holder = self.module.parents[use]
            if isinstance(holder, cst.Call) and holder.func is use:
                application.invocations.append(holder)
            else:
                application.escapes.append(use)
        return application

    def _kept(self, value: cst.Call) -> Kept | None:
        assign = self.module.parents[value]
        if isinstance(assign, cst.Assign) and len(assign.targets) == 1:
            target = assign.targets[0].target
        elif isinstance(assign, cst.AnnAssign):
            target = assign.target
        else:
            return None
        if isinstance(target, cst.Name):
            scope = self.module.scope(assign)
            if isinstance(scope, cst.ClassDef):
                return assign, self.classes[scope], target.value, None
            return assign, None, None, target.value
        method = method_of(self.module, value)
        owner = class_of(self.module, value)
        if method and owner and isinstance(target, cst.Attribute) and is_self(target, self_name(method)):
            return assign, self.classes[owner], target.attr.value, None
        return None

    def _uses(self, kept: Kept) -> Iterator[cst.CSTNode]:
        assign, owner, attribute, variable = kept
        if attribute is not None:
            if owner is None:
                return
            yield from owner.reads(attribute)
            for other in self.classes.values():
                if owner.reference in other.lineage and attribute not in other.assigned:
                    yield from other.reads(attribute)
            return
        assert variable is not None
        scope = self.module.scope(assign)
        for name in find(scope, cst.Name):
            parent = self.module.parents[name]
            if name.value != variable or isinstance(parent, (cst.AssignTarget, cst.Param)):
                continue
            if isinstance(parent, (cst.AnnAssign, cst.AugAssign)) and parent.target is name:
                continue
            if isinstance(parent, cst.Attribute) and parent.attr is name:
                continue
            if isinstance(parent, cst.Arg) and parent.keyword is name:
                continue
            if any(binding.node is assign for binding in self.module.lookup(variable, name)):
                yield name

    def _inherited(self) -> Iterator[GradientOperator]:
        for owner in self.classes.values():
            for attribute in sorted({name for base in owner.lineage for name in self._offered(base)}):
                if attribute in owner.assigned:
                    continue
                source = next(base for base in owner.lineage if attribute in self._offered(base))
                if source.startswith(f"{self.module.source.path.absolute()}:"):
                    continue
                get_all, get_by_list, sens_param = self._offered(source)[attribute]
                operator = GradientOperator(None, get_all, get_by_list, sens_param, owner, attribute, origin=source)
                for use in owner.reads(attribute):
                    self._note(operator, use)
                if operator.applications or operator.escapes:
                    yield operator

    def _offered(self, base: str) -> dict[str, tuple[bool, bool, bool]]:
        """Return the gradient operators that instances of the class ``base`` hold, by attribute."""
        if base in TRAIN_STEPS:
            return _INHERITED
        found = self.module.program.class_facts(base)
        if not found:
            return {}
        path, facts = found
        offered = {}
        for attribute, built in facts.built.items():
            if self.module.program.dotted_in(path, built.callee) == GRAD_OPERATION:
                words = dict(built.keywords)
                offered[attribute] = tuple(words.get(option) is True for option in _OPTIONS)
        return offered  # type: ignore[return-value]


def _options(arguments: Sequence[cst.Arg]) -> tuple[bool | None, bool | None, bool | None]:
    values: dict[str, bool | None] = dict.fromkeys(_OPTIONS, False)
    # Those of a functools.partial come first, its keywords too.
    for index, argument in enumerate(sorted(arguments, key=lambda argument: argument.keyword is not None)):
        if argument.star:
            return None, None, None
        name = argument.keyword.value if argument.keyword else _OPTIONS[index] if index < len(_OPTIONS) else ""
        value = argument.value.value if isinstance(argument.value, cst.Name) else ""
        values[name] = {"True": True, "False": False}.get(value)
    return values["get_all"], values["get_by_list"], values["sens_param"]


def _argument(call: cst.Call, index: int, name: str) -> cst.BaseExpression | None:
    for position, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword.value == name if argument.keyword else position == index:
            return argument.value
    return None


def normal(module: Module, node: cst.CSTNode) -> str:
    """Return an expression's text in one normal layout."""
    text = module.tree.code_for_node(node)
    # A comment inside the expression must not swallow the closing bracket.
    return ast.unparse(ast.parse(f"_(\n{text}\n)"))


def statement_of(module: Module, node: cst.CSTNode) -> Statement | None:
    """Return the innermost statement that holds ``node``."""
    for item in (node, *module.ancestors(node)):
        if isinstance(item, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return item
    return None


def sole_value(module: Module, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a local name stands for if it is assigned exactly once, followed to the end; else ``node`` itself."""
    seen = 0
    while isinstance(node, cst.Name) and seen < 5:
        found = module.lookup(node.value, node)
        if len(found) != 1 or found[0].value is None or isinstance(found[0].node, cst.AugAssign):
            break
        node, seen = found[0].value, seen + 1
    return node


def sensitivity(operator: GradientOperator, invocation: cst.Call) -> cst.Arg | None:
    """Return the argument of a gradient function's call that weighs the output."""
    if not operator.sens_param or not invocation.args:
        return None
    for argument in invocation.args:
        if argument.keyword and argument.keyword.value == "sens":
            return argument
    last = invocation.args[-1]
    return last if not last.keyword and not last.star else None


def find_forward(
    module: Module, operator: GradientOperator, application: Application, call: cst.Call
) -> Forward | None:
    """Return the forward pass that runs before ``call`` in the same block, with the same network and arguments."""
    if application.network is None:
        return None
    statement = statement_of(module, call)
    block = module.parents[statement] if statement else None
    if statement is None or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    weight = sensitivity(operator, call)
    arguments = [normal(module, argument) for argument in call.args if argument is not weight]
    networks = names_of_network(module, application)
    body: list[Statement] = [item for item in block.body if isinstance(item, _STATEMENTS)]
    index = body.index(statement)
    for place in range(index, -1, -1):
        candidate = body[place]
        assignment = _assignment(module, candidate, call if place == index else None)
        if assignment is None:
            continue
        target, forward = _assigned(assignment)
        if target is None or not isinstance(forward, cst.Call):
            continue
        function = forward.func
        if isinstance(function, cst.Attribute) and function.attr.value == "construct":
            function = function.value
        if normal(module, sole_value(module, function)) not in networks:
            continue
        if [normal(module, argument) for argument in forward.args] == arguments:
            assert isinstance(candidate, cst.SimpleStatementLine)
            return Forward(forward, candidate, assignment, target, tuple(body[place + 1 : index]))
    return None


def names_of_network(module: Module, application: Application) -> set[str]:
    """Return how a step may write the network: as where it is differentiated, or as the attribute that holds it.

    ``self.grad = operator(network, weights)`` beside ``self.network = network`` differentiates ``self.network``.
    """
    assert application.network is not None
    network = sole_value(module, application.network)
    names = {normal(module, network)}
    method, holder = method_of(module, application.node), class_of(module, application.node)
    if isinstance(network, cst.Name) and method and holder and len(module.lookup(network.value, network)) == 1:
        for attribute, found in all_classes(module)[holder].assigned.items():
            value = found[0].value
            held = isinstance(value, cst.Name) and value.value == network.value and found[0].method is method
            if held and len(found) == 1:
                names.add(f"_({self_name(method)}.{attribute})")
    return names


def _assignment(module: Module, line: Statement, gradient: cst.Call | None) -> cst.BaseSmallStatement | None:
    """Return the one statement in ``line``, or the one just before that of ``gradient``, which stands in the same line."""
    if not isinstance(line, cst.SimpleStatementLine):
        return None
    if gradient is None:
        return line.body[0] if len(line.body) == 1 else None
    above = {gradient, *module.ancestors(gradient)}
    place = next(index for index, item in enumerate(line.body) if item in above)
    return line.body[place - 1] if place > 0 else None


def _assigned(statement: cst.BaseSmallStatement) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """Return what ``statement`` assigns to and the value: ``x = value``, ``x: Tensor = value`` or ``(x := value)``."""
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return statement.targets[0].target, statement.value
    if isinstance(statement, cst.AnnAssign):
        return statement.target, statement.value
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.NamedExpr):
        return statement.value.target, statement.value.value
    return None, None
