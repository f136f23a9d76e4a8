"""``functional-grad``: from ``GradOperation`` to ``mindspore.grad`` and ``mindspore.value_and_grad``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.gradient_drop_in import apply_in_place, differentiated, position, read_result
from codemods.gradient_home import Home, alike, find_home, weights_may_change
from codemods.gradient_site import Site, read_sites
from codemods.imports import drop_unreferenced, joined, reach
from codemods.inert_statements import unread
from codemods.merged_step import gradient_function, merge
from codemods.one_forward import NotOneForward, OneForward, one_forward
from codemods.second_forward import compiled, doubt, resting_on_graph_mode
from codemods.statements import call, remove, remove_all
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.semantics.cells import CellClass
from mslint.semantics.gradients import GradientOperator, statement_of
from mslint.semantics.module import Module

_SENS_PARAM_SINCE = (2, 10)
"""First release known to have ``sens_param`` in ``grad`` and ``value_and_grad``: 2.10.0 has it, 2.7.0 has not (measured)."""


class FunctionalGrad(Codemod):
    """Replace GradOperation by MindSpore's functional gradients.

    What it does
        One forward: where a training step runs ``loss = network(*inputs)`` and then differentiates the same network at the
        same inputs, both become one ``mindspore.value_and_grad``, built once in ``__init__``; a class without one gets an
        ``__init__`` that hands everything on to its base. A sensitivity filled with a number becomes a factor of the loss;
        one that is a tensor of its own is handed over with ``sens_param=True``. An operator that serves several networks
        becomes a gradient function of each.

        Drop-in: elsewhere ``GradOperation(get_by_list=True)(network, weights)`` becomes
        ``mindspore.grad(network, None, weights)``, which returns the same numbers.

    When it is safe
        The drop-in always is: MindSpore 2.10.0 gives bit-equal gradients in graph and PyNative mode. One forward is safe in
        a program that sets graph mode, where equal forward passes are merged by the compiler, and in PyNative mode if
        ``set_grad()`` was called on the network, which makes MindSpore reuse the forward pass, or if no layer keeps
        statistics or draws random numbers.

    When it is unsafe
        In PyNative mode without ``set_grad()`` the old code runs the forward pass twice: BatchNorm moves its statistics
        twice a step and Dropout draws two masks, one for the loss and another for the gradient. The rewrite does each once;
        numbers change, for the better.

        In graph mode a forward pass that is a Python function sees each new value of a variable when it computes the loss,
        and the first one for ever in its compiled gradient; after the rewrite the loss is the compiled one.

    When it is left to you
        The operator or the gradient function is handed to other code; an overflow status is cleared between forward pass
        and gradient; micro-batch gradients are added up; one loss is differentiated for several optimizers; a gradient is
        differentiated again; a ``functools.partial`` kept in a variable builds the operator; weights are not named and
        the program changes ``requires_grad``. The message says what to do.
    """

    name = "functional-grad"
    summary = "GradOperation becomes mindspore.value_and_grad (one forward pass) or mindspore.grad"
    applicability = (
        "safe; unsafe where the old code visibly runs the forward pass twice; manual where uses are out of sight"
    )
    rules = ("MS101",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, GradientOperator)
        return _Rewrite(module, finding.subject, target_version).fix()

    def tidy(self, module: Module, after: str) -> str:
        return drop_unreferenced(module.program, module.source.path.absolute(), module.source.text, after)


@dataclass(frozen=True)
class _Part:
    """The rewrite of the sites that differentiate one network by one list of weights."""

    edits: list[Edit]
    applicability: Applicability
    message: str
    home: Home | None


class _Rewrite:
    """The rewrite of one operator with all its applications: all of them or none."""

    def __init__(self, module: Module, operator: GradientOperator, target_version: tuple[int, int]) -> None:
        self.module = module
        self.operator = operator
        self.sens_param_known = target_version >= _SENS_PARAM_SINCE
        self.version = ".".join(map(str, target_version))
        self.sites = read_sites(module, operator)
        if not self.sites:
            raise Manual("it is never applied; drop it")
        self.names: list[tuple[CellClass | None, str]] = []
        """Attributes that gradient functions of other parts take, with their class."""

    def fix(self) -> Fix:
        groups = self._groups()
        owners = [self._owner(sites) for sites in groups]
        parts = [self._part(sites, owners.count(owner) > 1) for sites, owner in zip(groups, owners, strict=True)]
        edits = [edit for part in parts for edit in part.edits]
        holder = statement_of(self.module, self.operator.holder) if self.operator.holder is not None else None
        if holder is not None and not any(part.home is not None and part.home.replaced is holder for part in parts):
            edits.append(self._remove_holder(holder))
        worst = Applicability.UNSAFE if any(part.applicability is Applicability.UNSAFE for part in parts) else None
        message = "; ".join(dict.fromkeys(part.message for part in parts))
        # What several parts insert at one place stands there in order; an import that they share stands there once.
        unique = dict.fromkeys(edits)
        inserted = joined(edit for edit in unique if edit.start == edit.end)
        replaced = [edit for edit in unique if edit.start != edit.end]
        return Fix(FunctionalGrad.name, worst or Applicability.SAFE, message, (*inserted, *replaced))

    def _groups(self) -> list[list[Site]]:
        """Return the sites, those together that can share one gradient function."""
        groups: list[list[Site]] = []
        for site in self.sites:
            group = next((group for group in groups if self._together(group, site)), None)
            if group is None:
                groups.append([site])
            else:
                group.append(site)
        return groups

    def _together(self, group: list[Site], site: Site) -> bool:
        return self._owner(group) is self._owner([site]) and alike(self.module, group[0], site)

    def _owner(self, sites: list[Site]) -> CellClass | None:
        """Return the class that holds the gradient function of ``sites``, if one does."""
        return self.operator.owner or sites[0].owner

    def _part(self, sites: list[Site], one_of_several: bool) -> _Part:
        try:
            home = self._home(sites, "value_and_grad", one_of_several)
            merged = [
                one_forward(self.module, self.operator, site, self.sens_param_known, self._needed(site, home))
                for site in sites
            ]
            part = self._one_forward(merged, home)
        except NotOneForward as reason:
            part = self._drop_in(sites, one_of_several, str(reason))
        if part.home is not None:
            self.names.append((self._owner(sites), part.home.callee.rpartition(".")[2]))
        return part

    def _home(self, sites: list[Site], kind: str, one_of_several: bool) -> Home | None:
        """Return where the gradient function of ``sites`` is built once, if it can be."""
        home = find_home(self.module, self.operator, sites, self._attribute(sites, kind, one_of_several))
        if home is None or not one_of_several or sites[0].application.kept_in is not None:
            return home
        if home.callee == self.operator.variable:
            # One variable cannot hold several gradient functions.
            return None
        if sites[0] is self.sites[0]:
            return home
        # The first gradient function takes the place of the operator, the others stand below.
        return replace(home, replaced=None, anchor=home.anchor or home.replaced)

    def _needed(self, site: Site, home: Home | None) -> set[str]:
        """Return the variables that the statement or expression reads which makes the gradient function."""
        texts = (
            [home.network, home.weights, home.callee]
            if home is not None
            else differentiated(self.module, site.application)
        )
        trees = [ast.parse(text, mode="eval") for text in texts]
        return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def _one_forward(self, merged: Sequence[OneForward], home: Home | None) -> _Part:
        module, first = self.module, merged[0]
        sites = [one.site for one in merged]
        if len({(m.scaled, m.scale, m.extra, m.tuple_output, m.weighed is None) for m in merged}) > 1:
            raise NotOneForward("its calls weigh the loss in different ways")
        reached = reach(module, "mindspore.value_and_grad", self._anchor())
        edits = list(reached.edits)
        if home is None:
            self._check_recompilation(sites)
            if first.scaled or first.site.owner is not None:
                raise NotOneForward("the gradient function cannot be built once, outside the step")
            weighed = ", sens_param=True" if first.weighed is not None else ""
            callees = []
            for site in sites:
                network, weights = differentiated(module, site.application)
                callees.append(f"{reached.expression}({network}, None, {weights}{weighed})")
        else:
            callees = [home.callee] * len(merged)
            edits += home.edits(module, gradient_function(module, home, reached.expression, first))
        for one, callee in zip(merged, callees, strict=True):
            edits += merge(module, one, callee)
        edits += self._remove_kept(sites, home)
        message = "run the network once: value_and_grad returns the loss and its gradients together"
        shown = doubt(module, sites)
        if shown is None:
            words = filter(None, (message, resting_on_graph_mode(module, sites)))
            return _Part(edits, Applicability.SAFE, "; ".join(words), home)
        return _Part(edits, Applicability.UNSAFE, f"{message}; {shown}", home)

    def _drop_in(self, sites: list[Site], one_of_several: bool, reason: str) -> _Part:
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
        inputs = position(sites)
        home = self._home(sites, "grad", one_of_several)
        if home is None:
            self._check_recompilation(sites)
            self._check_weights(sites)
        else:
            head = f"{home.assigned} = {reached.expression}("
            edits += home.edits(module, call(module, home.indent, head, [home.network, inputs, home.weights, *words]))
        for application in dict.fromkeys(site.application for site in sites):
            edits += apply_in_place(module, application, home, reached.expression, inputs, words)
        for site in sites:
            edits += read_result(module, operator, site)
            if home is not None:
                gone = unread(module, site, [site.application.node], self._needed(site, home))
                edits += remove_all(module, [(line, True) for line in gone])
        message = (
            f"mindspore.grad in place of GradOperation, with the same numbers; the forward pass stays apart: {reason}"
        )
        # GradOperation(get_all) skips inputs that are no tensors, mindspore.grad does not: what they are is not known here.
        unsafe = any(site.inputs_used for site in sites)
        return _Part(edits, Applicability.UNSAFE if unsafe else Applicability.SAFE, message, home)

    def _check_recompilation(self, sites: Sequence[Site]) -> None:
        """Refuse to build a gradient function at each step where graph mode would compile it anew each time.

        A GradOperation that is built once remembers the function it compiled; ``mindspore.grad`` of every step is a new
        one: 2 ms against 160 ms a step in graph mode, measured on a small network (MindSpore 2.10.0, CPU).
        """
        mode = self.module.program.mode(self.module.source.path.absolute())
        if self.operator.holder is None or mode == "pynative" or all(compiled(self.module, site) for site in sites):
            return
        raise Manual(
            "in graph mode a gradient function built at each step is compiled anew each time; build it once, where the "
            "network is known: grad_fn = mindspore.value_and_grad(network, None, weights)"
        )

    def _check_weights(self, sites: Sequence[Site]) -> None:
        """Refuse to settle on the weights where the gradient function is made when GradOperation looks for them later."""
        for site in sites:
            kept = site.application.kept_in
            if kept is not None and site.application.weights is None and weights_may_change(self.module, site):
                raise Manual(
                    f"the gradient function in row {self.module.start(kept).row} names no weights, so each step takes those "
                    "that are trainable then, and the program changes requires_grad; name the weights"
                )

    def _attribute(self, sites: list[Site], kind: str, one_of_several: bool) -> str | None:
        """Return a free name for the attribute that is to hold the gradient function, None to keep the operator's own."""
        owner = self._owner(sites)
        if owner is None:
            return None
        old = (self.operator.attribute or "").removesuffix("_no_sens")
        if kind == "grad" and not one_of_several and self.operator.construction is not None:
            return None
        name = old.replace("grad", kind, 1) if "grad" in old and "value" not in old else kind
        taken = self._taken(owner)
        network = sites[0].application.network
        if one_of_several and isinstance(network, (cst.Name, cst.Attribute)):
            name += f"_{self.module.code(network).rpartition('.')[2]}"
        while name in taken:
            name += "_fn"
        return name

    def _taken(self, owner: CellClass) -> set[str]:
        """Return the attributes that instances of ``owner`` have."""
        taken = {*owner.methods, *owner.assigned, *(name for holder, name in self.names if holder is owner)}
        for relative in (*owner.lineage, *self.module.program.subclasses(owner.reference)):
            known = self.module.program.class_facts(relative)
            if known:
                taken |= known[1].methods | known[1].assigned
        if self.operator.construction is None:
            taken.add(self.operator.attribute or "")
        return taken

    def _anchor(self) -> cst.CSTNode:
        return self.operator.construction or self.sites[0].call

    def _remove_holder(self, line: cst.CSTNode) -> Edit:
        """Return the edit that takes out the statement that built the old operator, if it is one of its own."""
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Manual(
                f"the operator is built beside other statements in row {self.module.start(line).row}; give it its own line"
            )
        block = self.module.parents[line]
        if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
            raise Manual(
                f"the block around row {self.module.start(line).row} holds nothing but the operator; build it outside"
            )
        return remove(self.module, line)

    def _remove_kept(self, sites: Sequence[Site], home: Home | None) -> list[Edit]:
        """Return the edits that take out gradient functions kept in variables that the new one replaces."""
        edits = []
        for application in dict.fromkeys(site.application for site in sites):
            line = statement_of(self.module, application.kept_in) if application.kept_in is not None else None
            if line is not None and (home is None or line is not home.replaced):
                edits.append(remove(self.module, line))
        return edits
