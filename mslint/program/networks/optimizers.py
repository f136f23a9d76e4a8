"""Objects that the program makes: networks, the optimizers that hold their parameters, and the steps that train them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mslint.program.following.values import Call, Class, Constant, Function, Sequence, Stretch, Value, options
from mslint.program.networks.parts import below, is_rest, parts
from mslint.program.networks.values import (
    GradientMaker,
    Many,
    Mapping,
    Parameters,
    Tensor,
    Thing,
    TrainingStep,
    Weight,
    Weights,
    WithLoss,
)

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter

WITH_PARAMETERS = re.compile(
    r"^mindspore\.(nn|mint\.nn|experimental)\..*(Conv|Dense|Linear|BatchNorm|LayerNorm|GroupNorm|InstanceNorm|SyncBatch"
    r"|Embedding|LSTM|GRU|RNN|PReLU|Transformer|MultiheadAttention|Bilinear|Thor)"
)
"""MindSpore's layers that have parameters of their own."""
OPTIMIZERS = re.compile(
    r"^mindspore\.(nn|mint\.optim|experimental\.optim|nn\.optim|nn\.optim\.\w+)\."
    r"(Optimizer|A[dD]a\w*|ASGD|SGD|Momentum|RMSProp|RMSprop|Rprop|Lamb|LARS|LazyAdam|FTRL|ProximalAdagrad|Thor|thor)$"
)


def make_object(interpreter: Interpreter, made: Class, call: Call) -> Thing:
    """Return a new object of a class of the project."""
    lineage = interpreter.program.lineage(made.reference)
    if any(OPTIMIZERS.match(base) for base in lineage):
        return make_optimizer(interpreter, call.argument(0, "params", "parameters") or Tensor(), call)
    thing = interpreter.make("class", made.reference, interpreter.place_of(call))
    thing.is_network = any(base.startswith("mindspore.nn.") for base in lineage)
    thing.is_layer = any(WITH_PARAMETERS.match(base) for base in lineage)
    constructor = interpreter.definitions.method(thing, "__init__")
    if constructor is not None:
        interpreter.invoke(constructor, call)
    else:
        construct_base(interpreter, thing, call)
    return thing


def construct_base(interpreter: Interpreter, thing: Thing, call: Call) -> None:
    """Let ``thing`` have what the constructor of its MindSpore base gives it."""
    lineage = interpreter.program.lineage(thing.reference)
    name = next((base.rpartition(".")[2] for base in lineage if base.startswith("mindspore.")), "")
    network = call.argument(0, "network")
    if "TrainOneStep" in name and network is not None:
        optimizer = call.argument(1, "optimizer") or Tensor()
        weights = weights_of(optimizer, interpreter.place_of(call))
        held = Parameters(weights.things, not weights.every, optimizer=weights) if weights.known else optimizer
        thing.attributes.update(network=network, optimizer=optimizer, weights=held, grad=GradientMaker(True))
        add_step(interpreter, network, weights, call)
    elif name in ("SequentialCell", "CellList"):
        thing.children.extend(layers(call.arguments))
    elif name == "WithLossCell" and len(call.arguments) > 1:
        thing.attributes.update(_backbone=call.arguments[0], _loss_fn=call.arguments[1])


def layers(arguments: list[Value]) -> list[Value]:
    """Return the layers of a container that is made from, or gets, ``arguments``."""
    found: list[Value] = []
    for argument in arguments:
        if isinstance(argument, Sequence):
            found.extend(argument.items)
        elif isinstance(argument, Mapping):
            found.extend([*argument.entries.values(), *argument.others])
        elif isinstance(argument, Thing) and argument.children and len(arguments) == 1:
            found.extend(argument.children)
        else:
            found.append(argument.item if isinstance(argument, Many) else argument)
    return found


def make_optimizer(interpreter: Interpreter, given: Value, call: Call) -> Thing:
    """Return a new optimizer of the parameters ``given``."""
    place = interpreter.place_of(call)
    optimizer = interpreter.make("optimizer", "optimizer", place)
    optimizer.weights = weights_of(given, place)
    return optimizer


def weights_of(given: Value, place: Stretch) -> Weights:
    """Return the parameters that ``given`` are, or that the optimizer in it holds."""
    things: list[Thing] = []
    held: set[int] = set()
    whole: set[int] = set()
    known, every = False, False
    for item in parts(given):
        if isinstance(item, Parameters):
            things.extend(item.things)
            whole |= item.optimizer.whole if item.optimizer else _listed_whole(item)
            known, every = True, every or not item.trainable
            place = item.optimizer.place if item.optimizer else place
            held |= item.optimizer.held if item.optimizer else _listed(item)
        elif isinstance(item, Thing) and item.kind == "optimizer" and item.weights is not None:
            things.extend(item.weights.things)
            known, every, place = item.weights.known, item.weights.every, item.weights.place
            held |= item.weights.held
            whole |= item.weights.whole
        elif isinstance(item, Thing) and item.kind == "parameter":
            things.append(item)
            held.add(id(item))
            whole.add(id(item))
            known = True
        elif isinstance(item, Weight):
            things.append(item.layer)
            held.add(id(item.layer))
            known = True
        elif is_rest(item) or (isinstance(item, Thing) and item.kind == "unknown"):
            return Weights((), False, False, place)
    tracked = known and all(thing.kind != "unknown" or thing.is_network for thing in things)
    tracked = tracked and not any(map(is_rest, things))
    return Weights(tuple(dict.fromkeys(things)), tracked, every, place, frozenset(held), frozenset(whole))


def _listed(parameters: Parameters) -> set[int]:
    """Return the identities of the parts whose parameters are in the list as it is now."""
    found = (item for root in parameters.things for item in below(root))
    return {id(item) for item in found if not parameters.trainable or item.frozen_by() is None}


def _listed_whole(parameters: Parameters) -> set[int]:
    return set() if parameters.partial else {id(thing) for thing in parameters.things}


def add_step(interpreter: Interpreter, target: Value, weights: Weights, call: Call) -> None:
    """Note that ``target`` is differentiated by ``weights``."""
    if interpreter.following:
        return
    for item in options(target):
        if isinstance(item, (Thing, Function, WithLoss)):
            step = TrainingStep(item, weights, interpreter.place_of(call), interpreter.branches)
            interpreter.training_steps.append(step)


def add_step_by_call(interpreter: Interpreter, call: Call, position: int) -> None:
    """Note a step made by ``value_and_grad(f, ..., weights)`` or the like, whose weights stand at ``position``."""
    target, weights = call.argument(0, "fn", "network"), call.argument(position, "weights")
    if target is not None and weights is not None and not isinstance(weights, Constant):
        add_step(interpreter, target, weights_of(weights, interpreter.place_of(call)), call)
