"""``stop-gradient``: outputs of networks that are not trained enter the loss through ``ops.stop_gradient``."""

from __future__ import annotations

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.imports import reach_operator
from codemods.wrapping import wrap
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.program.conditions import condition_of
from mslint.program.derivatives import input_derivative
from mslint.program.following.values import Stretch
from mslint.program.training import LossInput, training_of
from mslint.semantics.module import Module, find

_PROPERTIES = (
    "shape",
    "dtype",
    "ndim",
    "size",
    "itemsize",
    "nbytes",
    "strides",
    "T",
    "mT",
    "H",
    "real",
    "imag",
    "data",
)
_OF_OBJECTS = ("sample", "rsample", "mode", "kl", "kl_loss", "log_prob", "nll", "entropy")


class StopGradient(Codemod):
    """Put ``ops.stop_gradient`` around the call of a network that is not trained.

    What it does
        ``target = self.teacher(image)`` becomes ``target = ops.stop_gradient(self.teacher(image))``. A call that returns a
        tuple, list or dict is wrapped as a whole: ``ops.stop_gradient`` stops each tensor in it, in both modes, and returns
        the same structure (measured on MindSpore 2.10.0).

    When it is safe
        The network has no parameter among the weights, its input depends on nothing that is trained, and all scripts that
        use the file could be followed. Then no gradient that anybody asks for passes the call: loss, gradients and updated
        parameters stay the same to the bit, in graph and PyNative mode.

    When it is unsafe
        The frozen network is among the weights all the same: in graph mode ``requires_grad = False`` keeps no gradient from
        a parameter that the optimizer holds, so the step trains the network until now and no longer does after the rewrite.
        (PyNative mode gives such parameters zeros before and after; the optimizer's weight decay moves them in any case.
        Give it ``trainable_params()``.) It is unsafe as well where no script shows what feeds the code, where not every
        script could be followed to its end, where the network is frozen only under a test, so that other runs may train it,
        and where the program differentiates by inputs somewhere: that derivative would become zero if it passes the call.

    When it is left to you
        One call runs the network together with parts that are trained; or the output is an object with tensors in it, such
        as a distribution or a named tuple, which ``ops.stop_gradient`` does not stop, or turns into a plain tuple.
    """

    name = "stop-gradient"
    summary = "the output of a network that is not trained goes through ops.stop_gradient"
    applicability = "safe; unsafe where the network is among the weights or its surroundings are out of sight"
    rules = ("MS102",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, LossInput)
        return self._fix(module, finding, finding.subject)

    def _fix(self, module: Module, finding: Finding, item: LossInput) -> Fix:
        network = item.feature.network
        if item.shared:
            raise Manual(
                f"the call runs `{network}` together with parts that are trained; let it return the features of "
                f"`{network}`, put ops.stop_gradient around them, then run the trained parts"
            )
        call = _call_at(module, finding)
        part = _read_as_object(module, call)
        if part is not None:
            raise Manual(
                f"the output is read through `.{part}`, so it is an object and no tensor, which ops.stop_gradient does not "
                "stop; put ops.stop_gradient around the tensors that are taken from it"
            )
        reached = reach_operator(module, "stop_gradient", call)
        edits: list[Edit] = [*reached.edits, *wrap(module, call, reached.expression, _in_same_row(module, item))]
        doubt = _doubt(module, item)
        message = f"stop the gradient behind `{network}`"
        if doubt is None:
            certain = f"{message}: nothing that is trained lies there, so loss and gradients stay the same"
            return Fix(self.name, Applicability.SAFE, certain, tuple(edits))
        return Fix(self.name, Applicability.UNSAFE, f"{message}; {doubt}", tuple(edits))


def _call_at(module: Module, finding: Finding) -> cst.Call:
    for call in module.calls:
        if module.start(call) == finding.start and module.end(call) == finding.end:
            return call
    raise Manual("the call stands inside a string; put ops.stop_gradient around it by hand")


def _read_as_object(module: Module, call: cst.Call) -> str | None:
    """Return an attribute that the output of ``call`` is read through and that tensors and containers do not have."""
    for value in (call, *_named(module, call)):
        attribute = module.parents[value]
        if not isinstance(attribute, cst.Attribute) or attribute.value is not value:
            continue
        user = module.parents[attribute]
        called = isinstance(user, cst.Call) and user.func is attribute
        name = attribute.attr.value
        if name in _OF_OBJECTS if called else name not in _PROPERTIES:
            return name
    return None


def _named(module: Module, call: cst.Call) -> list[cst.Name]:
    """Return where the variable is read that holds the output of ``call`` and nothing else."""
    holder = module.parents[call]
    scope = module.scope(call)
    for bindings in module.bindings[scope].values():
        for binding in bindings:
            if binding.node is holder and binding.value is call:
                return [name for name in find(scope, cst.Name) if name.value == binding.name]
    return []


def _in_same_row(module: Module, item: LossInput) -> int:
    """Return how many calls are to be wrapped in the row where ``item`` stands."""
    features = training_of(module.program, module.source.path).features(module.source.path)
    return sum(other.place.row == item.place.row and not other.shared for other in features)


def _doubt(module: Module, item: LossInput) -> str | None:
    """Return why the numbers may change, or None if they cannot."""
    network = item.feature.network
    if item.trained:
        return (
            f"parameters of `{network}` are among the weights: in graph mode they get gradients, frozen or not, and these "
            "become zero; build the optimizer from trainable_params() after the freeze, or weight decay goes on moving them"
        )
    reason = item.feature.reason
    if reason.conditional:
        test = condition_of(module.program, reason.place.path, reason.place.row)
        where = f"where `{test}` holds" if test is not None else "under a test"
        return (
            f"`{network}` is frozen only {where} ({_where(module, reason.place)}); where it is trained instead, it would no "
            "longer be"
        )
    if not item.known:
        return (
            "what feeds and trains this code could not be followed to its end, so that rests on its inputs being data and "
            f"on `{network}` being in no optimizer"
        )
    derivative = input_derivative(module.program, module.source.path)
    if derivative is not None:
        return (
            f"the program may differentiate by inputs ({_where(module, derivative)}), and such a derivative becomes zero "
            "where it passes the call"
        )
    return None


def _where(module: Module, place: Stretch) -> str:
    return place.seen_from(module.source.path)
