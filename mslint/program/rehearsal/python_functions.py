"""What functions of Python's own library give in a rehearsal; None where nothing is known of what they were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mslint.program.following.values import Call
from mslint.program.rehearsal.values import (
    DEVICE_ID,
    NONE,
    RANK,
    RANK_SIZE,
    Constant,
    Object,
    Partial,
    Sequence,
    Symbol,
    Table,
    Value,
    join,
    named,
    options,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

_ENVIRONMENT = {
    "RANK_SIZE": RANK_SIZE,
    "DEVICE_NUM": RANK_SIZE,
    "WORLD_SIZE": RANK_SIZE,
    "MS_WORKER_NUM": RANK_SIZE,
    "OMPI_COMM_WORLD_SIZE": RANK_SIZE,
    "RANK_ID": RANK,
    "RANK": RANK,
    "OMPI_COMM_WORLD_RANK": RANK,
    "DEVICE_ID": DEVICE_ID,
    "ASCEND_DEVICE_ID": DEVICE_ID,
    "LOCAL_RANK": DEVICE_ID,
    "OMPI_COMM_WORLD_LOCAL_RANK": DEVICE_ID,
}
_CONVERSIONS: dict[str, Callable[..., object]] = {"int": int, "str": str, "float": float}


def environment(name: Value) -> Value:
    """Return what the environment variable ``name`` holds."""
    known = _ENVIRONMENT.get(name.value) if isinstance(name, Constant) and isinstance(name.value, str) else None
    return known or Symbol(("environment", name.key))


def _getenv(rehearsal: Rehearsal, call: Call) -> Value | None:
    return environment(call.arguments[0]) if call.arguments else None


def _getattr(rehearsal: Rehearsal, call: Call) -> Value | None:
    name = call.arguments[1] if len(call.arguments) >= 2 else None
    if isinstance(name, Constant) and isinstance(name.value, str):
        attribute = name.value
        return join(rehearsal.attribute(option, attribute) for option in options(call.arguments[0]))
    return None


def _setattr(rehearsal: Rehearsal, call: Call) -> Value | None:
    name = call.arguments[1] if len(call.arguments) == 3 else None
    if isinstance(name, Constant) and isinstance(name.value, str):
        rehearsal.objects.set_attribute(call.arguments[0], name.value, call.arguments[2])
    return NONE


def _partial(rehearsal: Rehearsal, call: Call) -> Value | None:
    if not call.arguments:
        return None
    return Partial(call.arguments[0], tuple(call.arguments[1:]), tuple(call.keywords.items()))


def _enumerate(rehearsal: Rehearsal, call: Call) -> Value | None:
    if not call.arguments:
        return None
    number = Symbol(("number", rehearsal.place(call.node)))
    return Sequence([Sequence([number, rehearsal.objects.element(call.arguments[0])])])


def _zip(rehearsal: Rehearsal, call: Call) -> Value | None:
    return Sequence([Sequence([rehearsal.objects.element(argument) for argument in call.arguments])])


def _held(rehearsal: Rehearsal, call: Call) -> Value | None:
    if call.arguments and isinstance(call.arguments[0], (Sequence, Object)):
        return call.arguments[0]
    return None if call.arguments else Sequence([])


def _next(rehearsal: Rehearsal, call: Call) -> Value | None:
    return rehearsal.objects.element(call.arguments[0]) if call.arguments else None


def _length(rehearsal: Rehearsal, call: Call) -> Value | None:
    return Symbol(("length", rehearsal.place(call.node)))


def _dict(rehearsal: Rehearsal, call: Call) -> Value | None:
    table = Table(named(call.keywords))
    for argument in call.arguments:
        if isinstance(argument, Table):
            table.names = {**argument.names, **table.names}
        else:
            table.open = True
    return table


def _nothing(rehearsal: Rehearsal, call: Call) -> Value | None:
    return NONE


def _bool(rehearsal: Rehearsal, call: Call) -> Value | None:
    if not call.arguments:
        return None
    known = rehearsal.assumptions.truth(call.arguments[0])
    return call.arguments[0] if known is None else Constant(known)


def _same(rehearsal: Rehearsal, call: Call) -> Value | None:
    return call.arguments[0] if call.arguments else None


def _converted(kind: str) -> Callable[[Rehearsal, Call], Value | None]:
    def convert(rehearsal: Rehearsal, call: Call) -> Value | None:
        value = call.arguments[0] if call.arguments else None
        if not isinstance(value, Constant):
            return value
        try:
            return Constant(_CONVERSIONS[kind](value.value))
        except (TypeError, ValueError):
            return value

    return convert


FUNCTIONS: dict[str, Callable[[Rehearsal, Call], Value | None]] = {
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "getattr": _getattr,
    "setattr": _setattr,
    "functools.partial": _partial,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _held,
    "tuple": _held,
    "iter": _held,
    "reversed": _held,
    "sorted": _held,
    "tqdm.tqdm": _held,
    "next": _next,
    "len": _length,
    "dict": _dict,
    "print": _nothing,
    "bool": _bool,
    "abs": _same,
    "copy.copy": _same,
    "copy.deepcopy": _same,
    **{kind: _converted(kind) for kind in _CONVERSIONS},
}
