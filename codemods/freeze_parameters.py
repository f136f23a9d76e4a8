"""``freeze-parameters``: from a switch that freezes nothing to ``requires_grad = False`` on the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.statements import in_lines, indentation, insert_after, newline
from mslint.findings import Applicability, Edit, Finding, Fix, Position
from mslint.program.following.values import Stretch
from mslint.program.training import VainFreeze, training_of
from mslint.semantics.module import Module, dotted, find

_LISTING = ("trainable_params", "get_parameters")
_USUAL_NAMES = ("param", "parameter", "p")


class FreezeParameters(Codemod):
    """Freeze the parameters of a network that ``set_grad(False)`` or ``set_train(False)`` was meant to freeze.

    What it does
        ``self.teacher.set_grad(False)`` becomes a loop that sets ``requires_grad = False`` on the parameters of the network.
        The switch goes, for it does nothing else: losses and updates with the loop are the same with and without it, in
        graph and PyNative mode (measured on MindSpore 2.10.0). ``set_train(False)`` stays in front of the loop: it holds
        Dropout and the statistics of BatchNorm, which the loop does not (after a ``set_train()`` on the whole network the
        statistics of a frozen BatchNorm move). Where the optimizer was built some rows above, the loop goes above it, since
        ``trainable_params()`` leaves out what is frozen when it is called; ``get_parameters()``, which leaves out nothing,
        becomes ``trainable_params()``.

    When it is safe
        Never: until now the network was trained.

    When it is unsafe
        Always, on purpose: the network is no longer trained, and the loss is another one from the second step on.

    When it is left to you
        Another step trains the network, as a critic that is held still while the generator learns: its parameters must stay
        trainable, and the step gets the weights of the other network alone. The optimizer is built out of sight before
        anything is frozen. The switch is part of a larger expression.
    """

    name = "freeze-parameters"
    summary = "set_grad(False) or set_train(False) meant as a freeze becomes requires_grad = False"
    applicability = "unsafe: the network is no longer trained; manual where another step trains it"
    rules = ("MS103",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, VainFreeze)
        return _Freeze(module, finding, finding.subject).fix()


class _Freeze:
    """The rewrite of the switches that one block turns off for one network: one loop for all of them."""

    def __init__(self, module: Module, finding: Finding, item: VainFreeze) -> None:
        self.module = module
        self.item = item
        switch = next(
            call for call in module.calls if module.start(call) == finding.start and module.end(call) == finding.end
        )
        self.switch = self._leading(switch)
        self.statement = _statement(module, self.switch)

    def _leading(self, switch: cst.Call) -> cst.Call:
        """Return the switch that the loop takes the place of where one block turns off several for one network."""
        statement = _statement(self.module, switch)
        network = _network(self.module, switch)
        places = {item.hush.place for item in training_of(self.module.program, self.module.source.path).vain}
        rows = {place.row for place in places if place.path == self.module.source.path}
        kin = [
            call
            for line in _block(self.module, statement)
            if isinstance(line, cst.SimpleStatementLine)
            for call in find(line, cst.Call)
            if self.module.start(call).row in rows and _is_switch(call) and _network(self.module, call) == network
        ]
        return next((call for call in kin if _method(call) == "set_grad"), kin[0] if kin else switch)

    def fix(self) -> Fix:
        item = self.item
        if item.other is not None:
            raise Manual(
                f"another step ({self._where(item.other)}) trains the network, so its parameters must stay trainable; give "
                f"the optimizer of this step ({self._where(item.weights)}) the trainable_params() of the other networks alone"
            )
        self._check_groups()
        edits = self._listing() if item.every else []
        edits += self._early() if item.hush.late else self._in_place()
        kept = (
            "set_grad(False) goes, it does nothing else"
            if item.hush.method == "set_grad"
            else "set_train(False) stays for Dropout and BatchNorm"
        )
        message = (
            f"freeze the parameters for real; until now the step ({self._where(item.step)}) trains them, so the numbers "
            f"change; {kept}"
        )
        if item.picked:
            message += (
                f"; it takes for granted that the test which picks the weights ({self._where(item.weights)}) does not leave "
                "this network out already"
            )
        return Fix(FreezeParameters.name, Applicability.UNSAFE, message, tuple(edits))

    def _where(self, place: Stretch) -> str:
        return place.seen_from(self.module.source.path)

    def _in_place(self) -> list[Edit]:
        """Return the edits that put the loop where the switch stands."""
        module, statement = self.module, self.statement
        self._check_layers_below()
        self._check_listed_above()
        inner = self._inner()
        name, network = self._name(), self._frozen()
        if isinstance(inner, cst.Return):
            place = module.start(statement)
            text = in_lines(module, self._loop(name, network)).lstrip() + indentation(module, statement)
            return [Edit(place, place, text), *self._without_switch()]
        if isinstance(inner, cst.Expr) and inner.value is self.switch and _method(self.switch) == "set_grad":
            head, body = self._loop(name, network)
            return [module.replace(inner, head.lstrip()), insert_after(module, statement, body + newline(module))]
        loop = insert_after(module, statement, in_lines(module, self._loop(name, network)))
        return [*self._without_switch(), loop]

    def _early(self) -> list[Edit]:
        """Return the edits that put the loop above the optimizer that was built before the switch."""
        module, statement = self.module, self.statement
        refusal = Manual(
            f"the optimizer ({self._where(self.item.weights)}) lists the weights before this row is reached, and keeps them; "
            f"write the loop above it: for param in {_network(module, self.switch)}.get_parameters(): "
            "param.requires_grad = False"
        )
        optimizer = self._optimizer()
        inner = self._inner()
        if optimizer is None or not isinstance(inner, cst.Expr) or inner.value is not self.switch:
            raise refusal
        built = _statement(module, optimizer)
        block = module.parents[statement]
        if module.parents[built] is not block or not any(_lists(call) for call in find(optimizer, cst.Call)):
            raise refusal
        network = self._frozen()
        if self._made_since(module.start(built), network):
            raise refusal
        place = module.start(built)
        text = in_lines(module, self._loop(self._name(), network)).lstrip() + indentation(module, built)
        gone = [self._statement_gone()] if _method(self.switch) == "set_grad" else []
        return [Edit(place, place, text), *gone]

    def _statement_gone(self) -> Edit:
        start, end = self.module.start(self.statement), self.module.end(self.statement)
        last = end.row == len(self.module.lines)
        behind = self.module.lines[end.row - 1][end.column - 1 :].strip()
        if behind or last or len(_block(self.module, self.statement)) == 1:
            raise Manual("the optimizer is built before this row is reached; freeze the parameters above it")
        return Edit(Position(start.row, 1), Position(end.row + 1, 1), "")

    def _made_since(self, place: Position, network: str) -> bool:
        """Tell whether ``network``, or what it is part of, is assigned between ``place`` and the switch."""
        end = self.module.start(self.statement)
        for assign in find(self.module.tree, cst.Assign):
            if place <= self.module.start(assign) < end:
                targets = [dotted(target.target) for target in assign.targets]
                if any(target and (network == target or network.startswith(f"{target}.")) for target in targets):
                    return True
        return False

    def _check_groups(self) -> None:
        """Refuse where the optimizer gets a group of this network's parameters alone: MindSpore refuses an empty one."""
        module, optimizer = self.module, self._optimizer()
        if optimizer is None:
            return
        network = _network(module, self.switch).rpartition(".")[2]
        scope = module.scope(optimizer)
        for call in find(scope, cst.Call):
            listed = call.func.value if isinstance(call.func, cst.Attribute) and _lists(call) else None
            if listed is None or (dotted(listed) or "").rpartition(".")[2] != network:
                continue
            if isinstance(module.parents[call], cst.DictElement):
                raise Manual(
                    f"the optimizer gets a group of this network's parameters alone (row {module.start(call).row}), which "
                    "would be empty, an error; drop the group, and set requires_grad = False"
                )

    def _listing(self) -> list[Edit]:
        """Return the edits that let the optimizer list what is not frozen."""
        optimizer = self._optimizer()
        listings = [
            call.func.attr
            for call in (find(optimizer, cst.Call) if optimizer is not None else ())
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "get_parameters"
        ]
        if not listings:
            raise Manual(
                f"the optimizer ({self._where(self.item.weights)}) gets frozen parameters, too, and updates them; give it "
                "trainable_params() and freeze the parameters before it is built"
            )
        return [self.module.replace(name, "trainable_params") for name in listings]

    def _optimizer(self) -> cst.Call | None:
        place, module = self.item.weights, self.module
        if place.path != module.source.path:
            return None
        line = module.lines[place.row - 1].encode()
        start = Position(place.row, len(line[: place.column].decode(errors="ignore")) + 1)
        end_line = module.lines[place.end_row - 1].encode()
        end = Position(place.end_row, len(end_line[: place.end_column].decode(errors="ignore")) + 1)
        calls = module.calls
        return next((call for call in calls if module.start(call) == start and module.end(call) == end), None)

    def _inner(self) -> cst.Expr | cst.Assign | cst.Return:
        """Return the statement around the switch, of a kind that a loop can stand beside."""
        line = self.statement
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Manual("the switch shares its row with other statements; give it a row of its own")
        inner = line.body[0]
        value = inner.value if isinstance(inner, (cst.Expr, cst.Assign, cst.Return)) else None
        if not isinstance(inner, (cst.Expr, cst.Assign, cst.Return)) or self.switch not in _chain(value):
            raise Manual("the switch is part of a larger expression; give it a row of its own")
        return inner

    def _frozen(self) -> str:
        """Return the network's name where the loop stands."""
        inner = self._inner()
        if isinstance(inner, cst.Assign):
            target = dotted(inner.targets[0].target) if len(inner.targets) == 1 else None
            if target is not None:
                return target
        network = self.switch
        for link in _chain(inner.value):
            network = link
        assert isinstance(network.func, cst.Attribute)
        name = dotted(network.func.value)
        if name is None:
            raise Manual("the network has no name here; keep it in a variable, then freeze its parameters")
        return name

    def _check_layers_below(self) -> None:
        """Refuse to freeze an object in the middle of its own constructor: layers made later would not be frozen."""
        function = self.module.enclosing(self.statement, cst.FunctionDef)
        network = self._frozen()
        if function is None or function.name.value != "__init__" or "." in network or not function.params.params:
            return
        if network != function.params.params[0].name.value:
            return
        here = self.module.start(self.statement)
        for assign in find(function, cst.Assign):
            written = dotted(assign.targets[0].target) or ""
            if written.startswith(f"{network}.") and self.module.start(assign) > here:
                raise Manual(
                    f"layers are made below (row {self.module.start(assign).row}); freeze the parameters at the end of "
                    "__init__"
                )

    def _check_listed_above(self) -> None:
        """Refuse to freeze what a variable has listed before: the optimizer that gets it updates them all the same."""
        module, optimizer = self.module, self._optimizer()
        scope, here = module.scope(self.statement), module.start(self.statement)
        if optimizer is None or module.scope(optimizer) is not scope or module.start(optimizer) < here:
            return
        for assign in find(scope, cst.Assign):
            if module.start(assign) < here and any(_lists(call) for call in find(assign.value, cst.Call)):
                raise Manual(
                    f"weights are listed above (row {module.start(assign).row}), and frozen parameters stay in a list that "
                    "has them; freeze the parameters before that"
                )

    def _without_switch(self) -> list[Edit]:
        """Return the edit that takes ``.set_grad(False)`` out of a chain; ``set_train(False)`` stays."""
        if _method(self.switch) != "set_grad":
            return []
        assert isinstance(self.switch.func, cst.Attribute)
        return [Edit(self.module.start(self.switch.func.dot), self.module.end(self.switch), "")]

    def _loop(self, name: str, network: str) -> list[str]:
        indent = indentation(self.module, self.statement)
        step = self.module.tree.default_indent
        return [f"{indent}for {name} in {network}.get_parameters():", f"{indent}{step}{name}.requires_grad = False"]

    def _name(self) -> str:
        """Return a name for a parameter: the one that the file's own loops use, if nothing else is called so here."""
        own = [self.module.code(loop.target) for loop in find(self.module.tree, cst.For) if _freezes(loop)]
        scope = self.module.scope(self.statement)
        for name in (*own, *_USUAL_NAMES, "frozen_parameter"):
            found = self.module.bindings[scope].get(name, [])
            read = any(item.value == name for item in find(scope, cst.Name)) if not found else False
            if all(isinstance(binding.node, cst.For) and _freezes(binding.node) for binding in found) and not read:
                return name
        raise Manual("no name is free for the loop over the parameters; write it by hand")


def _lists(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _LISTING


def _freezes(loop: cst.For) -> bool:
    """Tell whether ``loop`` sets ``requires_grad`` of its variable."""
    if not isinstance(loop.target, cst.Name):
        return False
    targets = (target.target for assign in find(loop.body, cst.Assign) for target in assign.targets)
    return any(dotted(target) == f"{loop.target.value}.requires_grad" for target in targets)


def _statement(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """Return the line or the one-line block that ``node`` stands in."""
    return next(
        item
        for item in module.ancestors(node)
        if isinstance(item, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    )


def _block(module: Module, statement: cst.CSTNode) -> Sequence[cst.BaseStatement]:
    """Return the statements that ``statement`` stands among."""
    block = module.parents[statement]
    return block.body if isinstance(block, (cst.Module, cst.IndentedBlock)) else ()


def _chain(value: cst.BaseExpression | None) -> Iterator[cst.Call]:
    """Yield the calls of ``net.a().b()``, the last first, as far as each is a method of what the one before returns."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and _is_setter(value.func.attr.value):
        yield value
        value = value.func.value


def _is_setter(method: str) -> bool:
    return method in ("set_grad", "set_train", "train", "eval", "to_float", "add_flags", "add_flags_recursive")


def _is_switch(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in ("set_grad", "set_train", "train", "eval")


def _method(switch: cst.Call) -> str:
    assert isinstance(switch.func, cst.Attribute)
    return str(switch.func.attr.value)


def _network(module: Module, switch: cst.Call) -> str:
    assert isinstance(switch.func, cst.Attribute)
    return module.code(switch.func.value)
