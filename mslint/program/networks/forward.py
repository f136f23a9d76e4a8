"""What the output of a network depends on: the calls of a forward pass, and which parameters in it are trained."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from mslint.program.following.values import Call, Stretch, Value, options
from mslint.program.networks.library import call_foreign
from mslint.program.networks.objects import STOPPING
from mslint.program.networks.optimizers import WITH_PARAMETERS
from mslint.program.networks.parts import below, either, is_record, is_rest, joined, mapped
from mslint.program.networks.values import Feature, Flow, GradientMaker, Reason, Tensor, Thing, Weights

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter

_MOST_LAYERS = 200


class Forward:
    """The calls of networks that ``interpreter`` follows, if the step differentiates by ``weights``."""

    def __init__(self, interpreter: Interpreter, weights: Weights | None) -> None:
        self._interpreter = interpreter
        self.weights = weights
        self._members: set[int] = set()
        if weights is not None and weights.known:
            self._members = {id(thing) for root in weights.things for thing in below(root)}

    # Calls

    def build(self, thing: Thing, call: Call) -> Value:
        """Return what calling ``thing`` gives while networks are built: their forward pass is of no interest then."""
        interpreter = self._interpreter
        if is_rest(thing):
            return thing
        if thing.kind == "class":
            trains = any(isinstance(value, GradientMaker) for value in thing.attributes.values())
            method = interpreter.definitions.method(thing, "construct") if trains else None
            if method is None and (trains or not thing.is_network):
                method = interpreter.definitions.method(thing, "__call__")
            return interpreter.invoke(method, call) if method is not None else Tensor()
        return call_foreign(interpreter, thing.reference, call) if thing.kind == "unknown" else Tensor()

    def apply(self, thing: Thing, call: Call) -> Value:
        """Return what ``thing`` computes of what ``call`` passes."""
        interpreter = self._interpreter
        interpreter.called_things.add(id(thing))
        place = interpreter.place_of(call)
        if len(interpreter.frames) == 2:
            interpreter.outermost_call = place
        given = joined(interpreter.flow(value) for value in call.given)
        reason = self.reason_untrained(thing)
        if reason is not None and not given.trained and call.given:
            return Tensor(Flow(False, frozenset((self._feature(thing, call, place, reason),))))
        if not given.trained and reason is not None:
            return Tensor(given)
        result = self._output(thing, call, given)
        if interpreter.flow(result).trained:
            interpreter.opened.add(place)
            if thing.hushed and self.holds_trained(thing):
                return mapped(result, lambda flow: replace(flow, hushed=flow.hushed | {thing}))
        return result

    def _feature(self, thing: Thing, call: Call, place: Stretch, reason: Reason) -> Feature:
        interpreter = self._interpreter
        written = ast.unparse(call.node.func) if isinstance(call.node, ast.Call) else ""
        holders = self._holders(thing)
        weighted = self.weights is not None and any(id(holder) in self.weights.held for holder in holders)
        return Feature(
            place, written, reason, len(holders), weighted, interpreter.frame.number, interpreter.outermost_call
        )

    def _output(self, thing: Thing, call: Call, given: Flow) -> Value:
        interpreter = self._interpreter
        if thing.kind == "class":
            method = interpreter.definitions.method(thing, "construct") or interpreter.definitions.method(
                thing, "__call__"
            )
            if method is None:
                return self._through(thing, call, given)
            interpreter.visited.add(thing.reference)
            return interpreter.invoke(method, call)
        if thing.kind == "interface":
            if STOPPING.match(thing.reference.rpartition(".")[2]):
                return Tensor()
            return self._through(thing, call, given)
        if thing.kind == "unknown" and thing.parent is not None and is_record(thing.parent):
            return interpreter.computed(thing.parent, *call.given)
        if is_rest(thing) or (thing.kind == "unknown" and thing.frozen_by() is None):
            return Tensor(replace(given, trained=True))
        return Tensor(given)

    def _through(self, thing: Thing, call: Call, given: Flow) -> Value:
        """Pass the input through the layers of a container, or through what a wrapper wraps."""
        inputs = Call(call.arguments, call.keywords)
        result: Value | None = None
        for layer in thing.children[:_MOST_LAYERS]:
            result = either([self._interpreter.call(option, inputs) for option in options(layer)])
            inputs = Call([result], {})
        return result if result is not None else Tensor(replace(given, trained=given.trained or self.trains(thing)))

    def seen_from_outside(self, result: Value, frame: int, call: Stretch) -> Value:
        """Let the features that a helper returns, if nothing trained is with them, be those of the call of the helper."""
        interpreter = self._interpreter
        flow = interpreter.flow(result)
        if flow.trained:
            interpreter.opened.add(call)
            return result
        if not any(feature.frame == frame for feature in flow.features):
            return result
        outside = interpreter.frame.number

        def relocated(flow: Flow) -> Flow:
            features = (
                replace(feature, place=call, frame=outside) if feature.frame == frame else feature
                for feature in flow.features
            )
            return replace(flow, features=frozenset(features))

        return mapped(result, relocated)

    # What is trained

    def trains(self, thing: Thing) -> bool:
        """Tell whether ``thing``, a layer or a parameter itself, has parameters that the step trains."""
        return _has_own_parameters(thing) and thing.frozen_by() is None and self._is_member(thing)

    def holds_trained(self, thing: Thing) -> bool:
        """Tell whether anything in ``thing`` is trained."""
        return any(self.trains(item) for item in below(thing))

    def _is_member(self, thing: Thing) -> bool:
        if self.weights is None or not self.weights.known:
            return True
        item: Thing | None = thing
        while item is not None:
            if id(item) in self._members:
                return True
            item = item.parent
        return False

    def _holders(self, thing: Thing) -> list[Thing]:
        return [item for item in below(thing) if _has_own_parameters(item)]

    def reason_untrained(self, thing: Thing) -> Reason | None:
        """Return why nothing of ``thing`` is trained; None if something is, may be, or if it has no parameters."""
        learnable = [item for item in self._holders(thing) if not (item.kind == "parameter" and item.frozen)]
        if any(item.transient for item in learnable):
            return None  # a layer made in the forward pass: no optimizer can hold it, and nobody meant that
        if not learnable or any(item.frozen_by() is None and self._is_member(item) for item in learnable):
            return None
        frozen = [reason for item in learnable if (reason := item.frozen_by())]
        if len(frozen) == len(learnable):
            reason = thing.frozen_by() or frozen[0]
            return replace(reason, conditional=any(item.conditional for item in frozen))
        if self.weights is not None and self.weights.known and self.weights.things:
            return Reason(False, self.weights.place)
        return None


def _has_own_parameters(thing: Thing) -> bool:
    if thing.kind == "parameter":
        return True
    if thing.kind == "unknown":
        return thing.is_network or thing.frozen_by() is not None
    return thing.is_layer or (thing.kind == "interface" and bool(WITH_PARAMETERS.match(thing.reference)))
