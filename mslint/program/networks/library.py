"""What calls of MindSpore and of packages that are not read mean for the networks of a program."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from mslint.program.following.values import NONE, Call, Class, Constant, Function, Reference, Sequence, Value
from mslint.program.networks.objects import STOPPING
from mslint.program.networks.optimizers import (
    OPTIMIZERS,
    add_step,
    add_step_by_call,
    layers,
    make_optimizer,
    weights_of,
)
from mslint.program.networks.parts import copied, either, is_network, parts, things_in
from mslint.program.networks.values import (
    GradientMaker,
    Many,
    Mapping,
    Parameters,
    Reason,
    Tensor,
    Thing,
    WithLoss,
)

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter

_LISTS = ("ParameterTuple", "tuple", "list", "deque", "sorted", "set", "ParameterList", "reversed", "iter")
_WRAPPERS = ("jit", "ms_function", "partial", "auto_mixed_precision", "recompute", "ms_class", "jit_class", "shard")
_GRADIENTS = ("value_and_grad", "grad", "ForwardValueAndGrad", "vjp", "jvp")


def call_reference(interpreter: Interpreter, name: str, call: Call) -> Value:
    """Return what calling ``name``, which the program does not define, gives."""
    last = name.rpartition(".")[2]
    if last == "isinstance" and len(call.arguments) == 2:
        answer = _is_instance(interpreter, *call.arguments)
        return Tensor() if answer is None else Constant(answer)
    if STOPPING.match(last):
        return Tensor()
    if last in _LISTS:
        return call.arguments[0] if call.arguments else Sequence([])
    handler = _FUNCTIONS.get(last)
    found = handler(interpreter, call) if handler is not None else None
    if found is not None:
        return found
    if name in ("copy.deepcopy", "copy.copy") and call.arguments:
        return copied(call.arguments[0], interpreter.things)
    if last in _GRADIENTS:
        add_step_by_call(interpreter, call, 1 if last == "ForwardValueAndGrad" else 2)
        return Reference("gradients")
    if last in _WRAPPERS and call.arguments:
        return call.arguments[0]
    if name.startswith("mindspore."):
        if last == "Parameter":
            return _parameter(interpreter, name, call)
        if last in ("CellList", "SequentialCell"):
            return interpreter.make("interface", name, interpreter.place_of(call), layers(call.arguments))
        if last == "WithLossCell" and len(call.arguments) > 1:
            return WithLoss(call.arguments[0], call.arguments[1])
    return call_foreign(interpreter, name, call)


def _parameter(interpreter: Interpreter, name: str, call: Call) -> Value:
    parameter = interpreter.make("parameter", name, interpreter.place_of(call))
    required = call.argument(2, "requires_grad")
    if isinstance(required, Constant) and not required.value:
        parameter.frozen = Reason(True, interpreter.place_of(call))
    return parameter


def _is_instance(interpreter: Interpreter, value: Value, kind: Value) -> bool | None:
    if isinstance(kind, Class) and isinstance(value, Tensor):
        return False
    if isinstance(kind, Class) and isinstance(value, Thing) and value.kind == "class":
        return kind.reference in interpreter.program.lineage(value.reference)
    if isinstance(kind, Reference) and kind.name.endswith(".Tensor") and isinstance(value, (Tensor, Thing)):
        return isinstance(value, Tensor)
    if isinstance(kind, Reference) and kind.name in ("dict", "list", "tuple", "str"):
        if isinstance(value, (Tensor, Mapping)):
            return isinstance(value, Mapping) and kind.name == "dict"
    if isinstance(kind, Reference) and kind.name == "mindspore.nn.Cell" and is_network(value):
        return True
    return None


def call_foreign(interpreter: Interpreter, name: str, call: Call) -> Value:
    """Return what calling something that is not read gives: judged by what it gets."""
    following, place = interpreter.following, interpreter.place_of(call)
    ours = name.startswith("mindspore.")
    given = [item for argument in call.given for item in parts(argument)]
    networks = [item for item in given if is_network(item)]
    if OPTIMIZERS.match(name):
        return make_optimizer(interpreter, call.argument(0, "params") or Tensor(), call)
    optimizers = [item for item in given if isinstance(item, Thing) and item.kind == "optimizer"]
    if optimizers and not following:
        trained = _trained_by_call(name, call, given)
        if trained is not None:
            network, target = trained
            add_step(interpreter, target, weights_of(optimizers[0], place), call)
            return interpreter.make("interface", name, place, [network])
    if any(isinstance(item, Parameters) for item in given) and not following:
        return make_optimizer(interpreter, either(list(call.given)), call)
    if optimizers:
        return optimizers[0]
    is_class = name.rpartition(".")[2][:1].isupper()
    if following and not (ours and is_class):
        return interpreter.computed(*call.given)
    if ours:
        return interpreter.make("interface", name, place, networks) if is_class else Tensor()
    return interpreter.make("unknown", name, place, networks)


def _trained_by_call(name: str, call: Call, given: list[Value]) -> tuple[Value, Value] | None:
    """Return the network that ``call`` trains and what it differentiates of it.

    Whoever gets a network and an optimizer trains the one by the other: nn.TrainOneStepCell, Model, a trainer.
    """
    trainable = [
        item
        for item in given
        if isinstance(item, (Function, WithLoss)) or (isinstance(item, Thing) and item.kind in ("class", "unknown"))
    ]
    if not trainable:
        return None
    words = (call.keywords.get(word) for word in ("network", "net", "model"))
    network = next((value for value in words if value is not None), trainable[0])
    loss = call.argument(1 if name.endswith(".Model") else len(call.arguments), "loss_fn")
    is_loss = isinstance(loss, Function) or (isinstance(loss, Thing) and loss.kind != "optimizer")
    return network, WithLoss(network, loss) if loss is not None and is_loss else network


def _filter(interpreter: Interpreter, call: Call) -> Value | None:
    if not call.arguments:
        return Sequence([])
    listed = [item for item in parts(call.arguments[-1]) if isinstance(item, Parameters)]
    if not listed:
        return call.arguments[-1]
    test = call.arguments[0]
    asks = isinstance(test, Function) and _asks(interpreter, test)
    things = tuple(thing for item in listed for thing in item.things)
    trainable = asks or all(item.trainable for item in listed)
    return Parameters(things, trainable, not asks or any(item.partial for item in listed))


def _asks(interpreter: Interpreter, test: Function) -> bool:
    """Tell whether ``test`` asks a parameter whether it is frozen."""
    interpreter.program.enters(test.scope.path, test.node)
    return "requires_grad" in ast.unparse(test.node)


def _map(interpreter: Interpreter, call: Call) -> Value | None:
    if not call.arguments:
        return Sequence([])
    function, *lists = call.arguments
    return Many(interpreter.call(function, Call([interpreter.objects.element(one) for one in lists], {})))


def _enumerate(interpreter: Interpreter, call: Call) -> Value | None:
    if not call.arguments:
        return None
    return Many(Sequence([Tensor(), interpreter.objects.element(call.arguments[0])]))


def _zip(interpreter: Interpreter, call: Call) -> Value | None:
    return Many(Sequence([interpreter.objects.element(argument) for argument in call.arguments]))


def _getattr(interpreter: Interpreter, call: Call) -> Value | None:
    if len(call.arguments) < 2:
        return None
    holder, key = call.arguments[:2]
    if isinstance(key, Constant) and isinstance(key.value, str):
        return interpreter.objects.attribute(holder, key.value, interpreter.scope.path)
    return interpreter.make("unknown", "getattr", interpreter.place_of(call))


def _setattr(interpreter: Interpreter, call: Call) -> Value | None:
    holder = call.arguments[0] if len(call.arguments) == 3 else None
    key = call.arguments[1] if holder is not None else None
    if isinstance(call.node, ast.Call) and isinstance(key, Constant) and key.value == "requires_grad":
        target = ast.Attribute(call.node.args[0], "requires_grad", ast.Store())
        interpreter.assign_attribute(target, call.arguments[2], call.node)
        return NONE
    if not isinstance(holder, Thing):
        return None
    holder.children.append(call.arguments[2])
    return NONE


def _gradient_maker(interpreter: Interpreter, call: Call) -> Value | None:
    flag = call.argument(1, "get_by_list") or Constant(False)
    return GradientMaker(not (isinstance(flag, Constant) and not flag.value))


def _load(interpreter: Interpreter, call: Call) -> Value | None:
    _mark_loaded(call)
    return Sequence([Tensor(), Tensor()])


def _read_checkpoint(interpreter: Interpreter, call: Call) -> Value | None:
    _mark_loaded(call)
    return interpreter.make("unknown", "load_checkpoint", interpreter.place_of(call))


def _mark_loaded(call: Call) -> None:
    for thing in (item for argument in call.given for item in things_in(argument)):
        thing.is_network = thing.loaded = True


_FUNCTIONS: dict[str, Callable[[Interpreter, Call], Value | None]] = {
    "filter": _filter,
    "map": _map,
    "enumerate": _enumerate,
    "zip": _zip,
    "getattr": _getattr,
    "setattr": _setattr,
    "GradOperation": _gradient_maker,
    "load_param_into_net": _load,
    "load_checkpoint": _read_checkpoint,
}
"""What functions do that are known by their last name, whichever package they are from; None where that cannot be told."""
