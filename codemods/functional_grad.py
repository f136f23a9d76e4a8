"""``functional-grad``: from ``GradOperation`` to ``mindspore.grad`` and ``mindspore.value_and_grad``."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.gradient_home import Home, find_home
from codemods.gradient_site import Site, read_sites
from codemods.imports import drop_unreferenced, reach
from codemods.one_forward import NotOneForward, OneForward, one_forward, unread
from codemods.statements import (
    call,
    comments,
    comments_above,
    in_lines,
    indentation,
    inner_comments,
    newline,
    one_line,
    remove,
    remove_all,
)
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.semantics.cells import CellClass, method_of, self_name
from mslint.semantics.gradients import (
    TRAIN_STEPS,
    Application,
    GradientOperator,
    normal,
    sole_value,
    statement_of,
)
from mslint.semantics.module import Module, find
from mslint.semantics.stateful import stateful_part

_SENS_PARAM_SINCE = (2, 10)
"""First release known to have ``sens_param`` in ``grad`` and ``value_and_grad``: 2.10.0 has it, 2.7.0 has not (measured)."""


class FunctionalGrad(Codemod):
    """Replace GradOperation by MindSpore's functional gradients.

    What it does
        One forward: where a training step runs ``loss = network(*inputs)`` and then differentiates the same network at the
        same inputs, both become one ``mindspore.value_and_grad``, built once in ``__init__``. A sensitivity filled with a
        number becomes a factor of the loss; one that is a tensor of its own is handed over with ``sens_param=True``.

        Drop-in: elsewhere ``GradOperation(get_by_list=True)(network, weights)`` becomes
        ``mindspore.grad(network, None, weights)``, which returns the same numbers.

    When it is safe
        The drop-in always is: MindSpore 2.10.0 gives bit-equal gradients in graph and PyNative mode. One forward is safe in
        graph mode, where equal forward passes are merged by the compiler, and in PyNative mode if ``set_grad()`` was called
        on the network, which makes MindSpore reuse the forward pass, or if no layer keeps statistics or draws random
        numbers.

    When it is unsafe
        In PyNative mode without ``set_grad()`` the old code runs the forward pass twice: BatchNorm moves its statistics
        twice a step and Dropout draws two masks, one for the loss and another for the gradient. The rewrite does each once;
        numbers change, for the better.

    When it is left to you
        The operator or the gradient function is handed to other code; an overflow status is cleared between forward pass
        and gradient; micro-batch gradients are added up; one loss is differentiated for several optimizers; a gradient is
        differentiated again. The message says what to do.
    """

    name = "functional-grad"
    summary = "GradOperation becomes mindspore.value_and_grad (one forward pass) or mindspore.grad"
    applicability = (
        "safe; unsafe where the old code visibly runs the forward pass twice; manual where uses are out of sight"
    )
    rules = ("MS101",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, GradientOperator)
        try:
            return _Rewrite(module, finding.subject, target_version).fix()
        except Manual as reason:
            return Fix(self.name, Applicability.MANUAL, str(reason))

    def tidy(self, module: Module, after: str) -> str:
        return drop_unreferenced(module.program, module.source.path.absolute(), module.source.text, after)


class _Rewrite:
    """The rewrite of one operator with all its applications: all of them or none."""

    def __init__(self, module: Module, operator: GradientOperator, target_version: tuple[int, int]) -> None:
        self.module = module
        self.operator = operator
        self.sens_param_known = target_version >= _SENS_PARAM_SINCE
        self.version = ".".join(map(str, target_version))
        self.sites = read_sites(module, operator)
        if not self.sites:
            raise Manual("it is never applied")

    def fix(self) -> Fix:
        try:
            home = find_home(self.module, self.operator, self.sites, self._attribute())
            merged = [
                one_forward(self.module, self.operator, site, self.sens_param_known, self._needed(site, home))
                for site in self.sites
            ]
            return self._one_forward(merged, home)
        except NotOneForward as reason:
            return self._drop_in(str(reason))

    def _why_not_once(self) -> str:
        applied = {normal(self.module, a.network) for a in self.operator.applications if a.network is not None}
        if len(applied) > 1:
            return "one operator serves several networks; give each a gradient function of its own"
        return "the gradient function cannot be built once, outside the step"

    def _needed(self, site: Site, home: Home | None) -> set[str]:
        """Return the variables that the statement or expression reads which makes the gradient function."""
        texts = [home.network, home.weights, home.callee] if home is not None else self._texts(site)
        trees = [ast.parse(text, mode="eval") for text in texts]
        return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def _one_forward(self, merged: Sequence[OneForward], home: Home | None) -> Fix:
        first = merged[0]
        if len({(m.scaled, m.scale, m.extra, m.tuple_output, m.weighed is None) for m in merged}) > 1:
            raise NotOneForward("its calls weigh the loss in different ways")
        reached = reach(self.module, "mindspore.value_and_grad", self._anchor())
        edits = list(reached.edits)
        if home is None:
            self._check_recompilation()
            if first.scaled or first.site.owner is not None:
                raise NotOneForward(self._why_not_once())
            callees = [self._built(reached.expression, *self._texts(m.site), first) for m in merged]
            edits += self._remove_holder()
        else:
            callees = [home.callee] * len(merged)
            edits += home.edits(self.module, self._builder(home, reached.expression, first))
            if home.replaced is not statement_of(self.module, self.operator.holder or self.module.tree):
                edits += self._remove_holder()
        for one, callee in zip(merged, callees, strict=True):
            edits += self._merge(one, callee)
        edits += self._remove_kept(home)
        return self._concluded(edits)

    def _concluded(self, edits: list[Edit]) -> Fix:
        message = "run the network once: value_and_grad returns the loss and its gradients together"
        doubt = self._doubt()
        if doubt is None:
            return Fix(FunctionalGrad.name, Applicability.SAFE, message, _unique(edits))
        return Fix(FunctionalGrad.name, Applicability.UNSAFE, f"{message}; {doubt}", _unique(edits))

    def _doubt(self) -> str | None:
        """Return why a second forward pass may show in the old numbers, or None if it cannot."""
        mode = self.module.program.mode(self.module.source.path.absolute())
        compiled = all(self._compiled(site) for site in self.sites)
        if compiled and mode == "graph":
            return None
        reused = all(self._reused(site) for site in self.sites)
        if reused and (compiled or mode == "pynative"):
            return None
        part = stateful_part(self.module) or self._unseen()
        if part is None:
            return None
        if mode != "graph" and not reused:
            return (
                "the old code runs the forward pass twice a step in PyNative mode, since set_grad() is not called on the "
                f"network: what keeps statistics or draws random numbers ({part}) does so twice, and once after the rewrite"
            )
        return (
            "forward pass and gradient are compiled apart, so the old code runs the forward pass twice a step: what keeps "
            f"statistics or draws random numbers ({part}) does so twice, and once after the rewrite"
        )

    def _unseen(self) -> str | None:
        """Return why the network that is trained may hold layers that were not read, or None if all of it was."""
        program, path = self.module.program, self.module.source.path.absolute()
        owners = {site.owner.name for site in self.sites if site.owner is not None}
        for owner in sorted(owners):
            used = any(
                use.rpartition(".")[2] == owner for user in program.users(path) for use in program.facts(user).uses
            )
            if not used:
                return f"perhaps: nothing here builds {owner}, so its network is not seen"
        called = any(user != path for user in program.users(path)) or program.is_script(path)
        return None if owners or called else "perhaps: nothing here runs this file, so its network is not seen"

    def _compiled(self, site: Site) -> bool:
        """Tell whether graph mode puts forward pass and gradient into one graph: in a Cell's method or a jit function."""
        if site.function is None:
            return False
        method = method_of(self.module, site.call)
        if method is not None and site.owner is not None:
            return any(base.startswith("mindspore.nn.") for base in site.owner.lineage)
        return any(
            (
                self.module.resolve(d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator) or ""
            ).endswith(".jit")
            for d in site.function.decorators
        )

    def _reused(self, site: Site) -> bool:
        """Tell whether PyNative mode reuses the forward pass: set_grad() on the network, and the very same tensors."""
        if not all(isinstance(argument.value, (cst.Name, cst.Attribute)) for argument in site.arguments):
            return False
        network = site.application.network
        assert network is not None
        text = normal(self.module, sole_value(self.module, network))
        if self._undone(site):
            return False
        this = self_name(site.function) if site.function else "self"
        if text == f"_({this}.network)" and site.owner and any(base in TRAIN_STEPS for base in site.owner.lineage):
            return True
        names = {text, normal(self.module, network)}
        if site.owner is not None and isinstance(network_value := sole_value(self.module, network), cst.Attribute):
            names |= self._also_called(site.owner, network_value)
        for candidate in find(self.module.tree, cst.Call):
            function = candidate.func
            if not isinstance(function, cst.Attribute) or function.attr.value != "set_grad":
                continue
            if candidate.args and self.module.code(candidate.args[0].value) != "True":
                continue
            # A method's `self.network` is another object in another class; a variable is told by its name.
            same_class = site.owner is None or self.module.enclosing(candidate, cst.ClassDef) is site.owner.node
            conditional = any(isinstance(item, (cst.If, cst.Try)) for item in self.module.ancestors(candidate))
            if same_class and not conditional and normal(self.module, function.value) in names:
                return True
        return False

    def _undone(self, site: Site) -> bool:
        """Tell whether ``set_grad(False)`` may be called on the network: in this class, or on a variable anywhere."""
        program = self.module.program
        assert site.application.network is not None
        network = self.module.code(site.application.network)
        for file in program.neighbourhood(self.module.source.path.absolute()):
            for receiver in program.facts(file).ungraded:
                if receiver == network or not receiver.startswith("self."):
                    return True
        return False

    def _also_called(self, owner: CellClass, network: cst.Attribute) -> set[str]:
        """Return the constructor's argument that ``self.network`` holds: set_grad() may be called on that."""
        value = owner.value(network.attr.value)
        return {normal(self.module, value)} if isinstance(value, cst.Name) else set()

    def _attribute(self) -> str | None:
        """Return a free name for the attribute that is to hold the value_and_grad function."""
        owner = self.operator.owner or self.sites[0].owner
        if owner is None:
            return None
        old = self.operator.attribute or ""
        name = old.replace("grad", "value_and_grad", 1) if "grad" in old and "value" not in old else "value_and_grad"
        taken = set(owner.methods) | set(owner.assigned)
        for base in owner.lineage:
            known = self.module.program.class_facts(base)
            if known:
                taken |= known[1].methods | known[1].assigned
        while name in taken:
            name += "_fn"
        return name

    def _anchor(self) -> cst.CSTNode:
        return self.operator.construction or self.sites[0].call

    def _texts(self, site: Site) -> tuple[str, str]:
        application = site.application
        assert application.network is not None
        network = self.module.code(application.network)
        if application.weights is not None:
            return network, self.module.code(application.weights)
        if not isinstance(application.network, (cst.Name, cst.Attribute)):
            raise Manual("no weights are given and what is differentiated is no plain network; name the weights")
        return network, f"{network}.trainable_params()"

    def _built(self, function: str, network: str, weights: str, one: OneForward) -> str:
        weighed = ", sens_param=True" if one.weighed is not None else ""
        return f"{function}({network}, None, {weights}{weighed})"

    def _builder(self, home: Home, function: str, one: OneForward) -> list[str]:
        """Return the statements that make the value_and_grad function."""
        head = f"{home.assigned} = {function}("
        if not one.scaled:
            words = ["sens_param=True"] if one.weighed is not None else []
            return call(self.module, home.indent, head, [home.network, "None", home.weights, *words])
        inner = home.indent + self._indent_unit(home)
        parameters = self._parameters(one)
        starred = any(parameter.startswith("*") for parameter in parameters)
        signature = [*one.extra_parameters, *parameters] if starred else [*parameters, *one.extra_parameters]
        name = self._closure_name(home)
        loss = f"{one.loss}[0]" if one.tuple_output else one.loss
        product = f"{loss} * {one.scale}" if one.scale else loss
        return [
            *call(self.module, home.indent, f"def {name}(", signature, "):"),
            *call(self.module, inner, f"{one.loss} = {home.network}(", parameters),
            f"{inner}return {product}, {one.loss}",
            "",
            *call(self.module, home.indent, head, [name, "None", home.weights, "has_aux=True"]),
        ]

    def _indent_unit(self, home: Home) -> str:
        """Return what the function around ``home`` indents its body by: files mix."""
        line = home.replaced or home.anchor
        function = self.module.enclosing(line, cst.FunctionDef) if line is not None else None
        outer = len(indentation(self.module, function)) if function is not None else 0
        return home.indent[outer:] or self.module.tree.default_indent

    def _closure_name(self, home: Home) -> str:
        line = home.replaced or home.anchor
        scope = self.module.scope(line) if line is not None else self.module.tree
        name = "scaled_loss"
        while name in self.module.bindings[scope] or name == home.network:
            name += "_"
        return name

    def _parameters(self, one: OneForward) -> list[str]:
        """Return the parameters of the scaling function: the names the network is called with, if they are names."""
        names = []
        for argument in one.site.arguments:
            if not isinstance(argument.value, cst.Name) or argument.star not in ("", "*"):
                return ["*inputs"]
            names.append(argument.star + argument.value.value)
        bare = [name.lstrip("*") for name in names]
        reserved = {one.loss, *one.extra_parameters}
        if len(set(bare)) < len(bare) or reserved & set(bare) or not bare:
            return ["*inputs"]
        return names

    def _merge(self, one: OneForward, callee: str) -> list[Edit]:
        """Return the edits that make forward pass and gradient of one site a single statement."""
        module, site = self.module, one.site
        arguments = [one_line(module, argument) for argument in site.arguments]
        if one.weighed is not None:
            arguments.append(one.weighed)
        starred = any(argument.startswith("*") for argument in arguments)
        if one.scaled:
            arguments = [*one.extra, *arguments] if starred else [*arguments, *one.extra]
        value = f"(_, {one.outputs})" if one.scaled else one.outputs
        old = site.statement if one.at_gradient else one.forward.statement
        indent = indentation(module, old)
        lines = call(module, indent, f"{value}, {one.gradients} = {callee}(", arguments)
        whole = site.target is not None
        gone = list(one.removed)
        if one.at_gradient:
            gone.append(one.forward.statement)
        elif whole:
            assert isinstance(site.statement, cst.SimpleStatementLine)
            gone.append(site.statement)
        gone.sort(key=module.start)
        # Comments above a statement that goes stay where they are if the merged statement comes later.
        later = {statement: module.start(statement) > module.start(old) for statement in gone}
        edits = [*site.edits, *remove_all(module, later.items())]
        moved = [
            text
            for statement in gone
            for text in (*(comments_above(module, statement) if later[statement] else []), *comments(module, statement))
        ]
        if not whole:
            edits.append(module.replace(site.result, one.gradients))
        if one.at_gradient and not whole:
            edits.append(self._above(site.statement, moved, lines))
        else:
            edits.append(self._replaced(old, moved, lines))
        return edits

    def _replaced(self, statement: cst.CSTNode, moved: list[str], lines: list[str]) -> Edit:
        """Return the edit that puts ``lines`` in the place of a one-line statement, with comments from elsewhere above."""
        module = self.module
        assert isinstance(statement, cst.SimpleStatementLine)
        indent = indentation(module, statement)
        above = [indent + text for text in (*inner_comments(module, statement.body[0]), *moved)]
        text = newline(module).join([*above, *lines])
        return module.replace(statement.body[0], text[len(indent) :])

    def _above(self, statement: cst.CSTNode, moved: list[str], lines: list[str]) -> Edit:
        indent = indentation(self.module, statement)
        text = in_lines(self.module, [*(indent + comment for comment in moved), *lines])
        start = self.module.start(statement)
        return Edit(start, start, text[len(indent) :] + indent)

    def _remove_holder(self) -> list[Edit]:
        """Return the edit that takes out the statement that built the old operator, if it is one of its own."""
        holder = self.operator.holder
        line = statement_of(self.module, holder) if holder is not None else None
        if line is None:
            return []
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Manual(f"the operator is built beside other statements in row {self.module.start(line).row}")
        block = self.module.parents[line]
        if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
            raise Manual(
                f"the block around row {self.module.start(line).row} holds nothing but the operator; build it outside"
            )
        return [remove(self.module, line)]

    def _remove_kept(self, home: Home | None) -> list[Edit]:
        """Return the edits that take out gradient functions kept in variables that the new one replaces."""
        edits = []
        for application in self.operator.applications:
            line = statement_of(self.module, application.kept_in) if application.kept_in is not None else None
            if line is not None and (home is None or line is not home.replaced):
                edits.append(remove(self.module, line))
        return edits

    def _drop_in(self, reason: str) -> Fix:
        """Return the rewrite that leaves every call where it is."""
        module, operator = self.module, self.operator
        if operator.sens_param and not self.sens_param_known:
            raise Manual(
                f"mindspore.grad has no sens_param in MindSpore {self.version}, and {reason}; "
                "multiply the loss inside the differentiated function"
            )
        reached = reach(module, "mindspore.grad", self._anchor())
        edits = list(reached.edits)
        words = ["sens_param=True"] if operator.sens_param else []
        position = self._position()
        home = find_home(module, operator, self.sites, None)
        if home is None:
            self._check_recompilation()
        if home is not None:
            head = f"{home.assigned} = {reached.expression}("
            lines = call(module, home.indent, head, [home.network, position, home.weights, *words])
            edits += home.edits(module, lines)
        kept = home is not None and home.replaced is statement_of(module, operator.holder or module.tree)
        if not kept:
            edits += self._remove_holder()
        for application in operator.applications:
            edits += self._apply_in_place(application, home, reached.expression, position, words)
        for site in self.sites:
            edits += self._read_result(site)
            if home is not None:
                gone = unread(module, site, [site.application.node], self._needed(site, home))
                edits += remove_all(module, [(line, True) for line in gone])
        message = (
            f"mindspore.grad in place of GradOperation, with the same numbers; the forward pass stays apart: {reason}"
        )
        return Fix(FunctionalGrad.name, self._drop_in_applicability(), message, _unique(edits))

    def _check_recompilation(self) -> None:
        """Refuse to build a gradient function at each step where graph mode would compile it anew each time.

        A GradOperation that is built once remembers the function it compiled; ``mindspore.grad`` of every step is a new
        one: 2 ms against 160 ms a step in graph mode, measured on a small network (MindSpore 2.10.0, CPU).
        """
        mode = self.module.program.mode(self.module.source.path.absolute())
        if self.operator.holder is None or mode == "pynative" or all(self._compiled(site) for site in self.sites):
            return
        raise Manual(
            "in graph mode a gradient function built at each step is compiled anew each time; build it once, where the "
            "network is known: grad_fn = mindspore.value_and_grad(network, None, weights)"
        )

    def _apply_in_place(
        self, application: Application, home: Home | None, function: str, position: str, words: list[str]
    ) -> list[Edit]:
        module = self.module
        site = next(site for site in self.sites if site.application is application)
        if home is not None:
            if application.kept_in is not None:
                line = statement_of(module, application.kept_in)
                if line is home.replaced or line is None:
                    return []
                uses = [module.replace(call_.func, home.callee) for call_ in application.invocations]
                return [remove(module, line), *uses]
            return [self._called(application, home.callee)]
        network, weights = self._texts(site)
        return [self._called(application, f"{function}({', '.join([network, position, weights, *words])})")]

    def _called(self, application: Application, callee: str) -> Edit:
        """Return the edit that puts ``callee`` in the place of an application, the arguments behind it laid out anew."""
        module = self.module
        invocation = module.parents[application.node]
        if not isinstance(invocation, cst.Call) or invocation.func is not application.node:
            return module.replace(application.node, callee)
        if not self._laid_out_anew(invocation):
            return module.replace(application.node, callee)
        start, end = module.start(application.node), module.end(invocation)
        before = module.lines[start.row - 1][: start.column - 1]
        arguments = [one_line(module, argument.value if argument.keyword else argument) for argument in invocation.args]
        lines = call(module, "", f"{before}{callee}(", arguments)
        return Edit(start, end, newline(module).join(lines)[len(before) :])

    def _laid_out_anew(self, invocation: cst.Call) -> bool:
        """Tell whether a call of several lines, which another callee puts out of line, is written anew as a whole."""
        start, end = self.module.start(invocation), self.module.end(invocation)
        return start.row < end.row and not inner_comments(self.module, invocation)

    def _read_result(self, site: Site) -> list[Edit]:
        """Return the edits that make the site read a result without the half for the inputs, and pass sens by position."""
        module = self.module
        edits = list(site.edits)
        applied_here = site.call.func is site.application.node
        by_keyword = site.sensitivity is not None and site.sensitivity.keyword is not None
        if site.sensitivity is not None and by_keyword and not (applied_here and self._laid_out_anew(site.call)):
            edits.append(Edit(module.start(site.sensitivity), module.start(site.sensitivity.value), ""))
        if self.operator.get_all and not site.inputs_used:
            if site.result is not site.call:
                edits.append(Edit(module.end(site.call), module.end(site.result), ""))
            elif site.target is not None:
                assign = module.parents[site.call]
                assert isinstance(assign, cst.Assign)
                if module.code(assign.targets[0].target) != site.target:
                    edits.append(module.replace(assign.targets[0].target, site.target))
        return edits

    def _position(self) -> str:
        used = [site for site in self.sites if site.inputs_used]
        if not used:
            return "None"
        counts = {len(site.arguments) for site in self.sites}
        starred = any(argument.star for site in self.sites for argument in site.arguments)
        if len(used) < len(self.sites) or len(counts) != 1 or starred or counts == {1}:
            raise Manual(
                "the gradients of the inputs are used too, and for one input or a list of unknown length mindspore.grad "
                "returns them in another structure; take them apart by hand"
            )
        return f"({', '.join(str(index) for index in range(counts.pop()))})"

    def _drop_in_applicability(self) -> Applicability:
        # GradOperation(get_all) skips inputs that are no tensors, mindspore.grad does not: what they are is not known here.
        return Applicability.UNSAFE if any(site.inputs_used for site in self.sites) else Applicability.SAFE


def _unique(edits: list[Edit]) -> tuple[Edit, ...]:
    return tuple(dict.fromkeys(edits))
