"""What methods give that lists, dictionaries and networks have from Python or MindSpore."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mslint.program.following.values import NONE, Call, Constant, Method, Sequence, Value
from mslint.program.networks.objects import ADDING_METHODS, CHILD_METHODS, PARAMETER_METHODS, SETTERS, STOPPING
from mslint.program.networks.optimizers import construct_base, layers
from mslint.program.networks.parts import below, either
from mslint.program.networks.values import Hush, Many, Mapping, Parameters, Tensor, Thing

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter

MOST_ITEMS = 64
_NAMED = ("parameters_and_names", "named_parameters")
_HUSHING = {"set_grad": "set_grad", "set_train": "set_train", "train": "set_train", "eval": "set_train"}
"""Methods that switch training of a network on or off, with what each amounts to."""


def call_method(interpreter: Interpreter, method: Method, call: Call) -> Value:
    """Return what calling ``method`` gives."""
    owner, name = method.owner, method.name
    if isinstance(owner, Thing):
        return _of_thing(interpreter, owner, name, call)
    if isinstance(owner, (Sequence, Many)) and name in ("append", "extend", "insert", "add") and call.arguments:
        _add(interpreter, owner, call.arguments[-1], all_of_it=name == "extend")
        return NONE
    if isinstance(owner, Parameters) and name in ("append", "extend", "insert") and call.arguments:
        interpreter.objects.list_too(owner, call.arguments[-1])
        return NONE
    if isinstance(owner, Sequence) and name == "pop" and owner.items:
        return either(owner.items)
    if isinstance(owner, Mapping):
        return _of_mapping(interpreter, owner, name, call)
    return Tensor() if STOPPING.match(name) else interpreter.computed(owner, *call.given)


def _add(interpreter: Interpreter, owner: Sequence | Many, added: Value, all_of_it: bool) -> None:
    item = interpreter.objects.element(added) if all_of_it else added
    if isinstance(item, Parameters) and item.one and interpreter.may_skip:
        item = replace(item, partial=True)
    if isinstance(owner, Many):
        owner.item = either([owner.item, item])
    elif len(owner.items) < MOST_ITEMS:
        owner.items.extend(added.items if all_of_it and isinstance(added, Sequence) else [item])


def _of_mapping(interpreter: Interpreter, owner: Mapping, name: str, call: Call) -> Value:
    values = either([*owner.entries.values(), *owner.others])
    if name == "items":
        return Many(Sequence([Tensor(), values]))
    if name == "values":
        return Many(values)
    if name in ("get", "pop", "setdefault") and call.arguments:
        return interpreter.objects.item(owner, call.arguments[0])
    if name == "update" and call.arguments and isinstance(call.arguments[0], Mapping):
        owner.entries.update(call.arguments[0].entries)
        owner.others.extend(call.arguments[0].others)
    return Tensor()


def _of_thing(interpreter: Interpreter, thing: Thing, name: str, call: Call) -> Value:
    if name in PARAMETER_METHODS:
        thing.is_network = True
        if name in _NAMED:
            return Many(Sequence([Tensor(), Parameters((thing,), False, one=True)]))
        return Parameters((thing,), PARAMETER_METHODS[name])
    if name in _HUSHING:
        _hush(interpreter, thing, name, call)
        return thing
    if name == "__init__":
        construct_base(interpreter, thing, call)
        return NONE
    if name in CHILD_METHODS:
        cell = interpreter.make("unknown", "cell", interpreter.place_of(call), [thing])
        cell.is_network = True
        return Many(Sequence([Tensor(), cell])) if name == "cells_and_names" else Many(cell)
    if name in ADDING_METHODS:
        thing.children.extend(layers(call.arguments[-1:]))
        return NONE
    if SETTERS.match(name):
        return thing
    if thing.kind in ("parameter", "interface") and name not in ("construct", "__call__"):
        return interpreter.computed(thing, *call.arguments)
    return interpreter.apply(thing, call)


def _hush(interpreter: Interpreter, thing: Thing, name: str, call: Call) -> None:
    """Note that ``set_grad(False)`` or the like is called on ``thing``, or that it is taken back."""
    if interpreter.following:
        return
    flag = next(iter(call.given), Constant(name != "eval"))
    thing.is_network = True
    method = _HUSHING[name]
    thing.hushed = [item for item in thing.hushed if item.method != method]
    if isinstance(flag, Constant) and not flag.value:
        frame = interpreter.frame
        maker = frame.this if frame.function == "__init__" and isinstance(frame.this, Thing) else None
        thing.hushed.append(Hush(method, interpreter.place_of(call), maker, _is_listed(interpreter, thing)))


def _is_listed(interpreter: Interpreter, thing: Thing) -> bool:
    """Tell whether parameters of ``thing`` are among the weights of an optimizer or a training step made so far."""
    own = {id(item) for item in below(thing)}
    listed = [item.weights.held for item in interpreter.things if item.weights is not None]
    return any(own & held for held in (*listed, *(step.weights.held for step in interpreter.training_steps)))
