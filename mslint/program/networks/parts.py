"""What values are put together from, and what is known of values that are one of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from mslint.program.following.values import Constant, Either, Sequence, Stretch, Value
from mslint.program.networks.values import CLOSED, Flow, Many, Mapping, Parameters, Tensor, Thing, Weight

_MOST_OPTIONS = 6
_NOWHERE = Stretch(Path(), 1, 0, 1, 0)


def parts(value: Value) -> Iterator[Value]:
    """Yield ``value`` itself, or what it is put together from."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Sequence):
            stack.extend(reversed(item.items))
        elif isinstance(item, Many):
            stack.append(item.item)
        elif isinstance(item, Mapping):
            stack.extend([*item.entries.values(), *item.others])
        elif isinstance(item, Either):
            stack.extend(item.options)
        else:
            yield item


def things_in(value: Value) -> list[Thing]:
    """Return the things that ``value`` is or holds."""
    return [item for item in parts(value) if isinstance(item, Thing)]


def below(thing: Thing) -> Iterator[Thing]:
    """Yield ``thing`` and everything it is built from."""
    stack = [thing]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        for value in (*item.attributes.values(), *item.children):
            stack.extend(things_in(value))


def copied(value: Value, made: list[Thing], twins: dict[int, Thing] | None = None) -> Value:
    """Return a deep copy of ``value``; the new things are added to ``made``."""
    known = {} if twins is None else twins
    if isinstance(value, Sequence):
        return Sequence([copied(item, made, known) for item in value.items])
    if isinstance(value, Many):
        return Many(copied(value.item, made, known))
    if isinstance(value, Mapping):
        entries = {key: copied(item, made, known) for key, item in value.entries.items()}
        return Mapping(entries, [copied(item, made, known) for item in value.others])
    if isinstance(value, Either):
        return Either(tuple(copied(option, made, known) for option in value.options))
    if not isinstance(value, Thing):
        return value
    if id(value) not in known:
        twin = known[id(value)] = replace(value, attributes={}, children=[], hushed=list(value.hushed))
        made.append(twin)
        twin.attributes.update((name, copied(held, made, known)) for name, held in value.attributes.items())
        twin.children.extend(copied(child, made, known) for child in value.children)
    return known[id(value)]


def either(values: list[Value]) -> Value:
    """Return the value that is one of ``values``."""
    options: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, Either) else (value,):
            if not any(option is known for known in options):
                options.append(option)
    objects = [item for item in options if not (isinstance(item, Constant) and item.value is None)]
    tensors = [item for item in objects if type(item) is Tensor]
    if len(tensors) > 1:
        objects = [item for item in objects if type(item) is not Tensor]
        objects.append(Tensor(joined(item.flow for item in tensors)))
    if not objects:
        return options[0] if options else Tensor()
    return objects[0] if len(objects) == 1 else Either(tuple(_most_of(objects)))


def _most_of(options: list[Value]) -> Iterator[Value]:
    """Yield as many of ``options`` as are worth following, all parameters among them, and what stands for the others."""
    others = [option for option in options if not isinstance(option, (Parameters, Weight))]
    yield from (option for option in options if isinstance(option, (Parameters, Weight)))
    yield from others[:_MOST_OPTIONS]
    rest = next((option for option in others if is_rest(option)), None)
    if len(others) > _MOST_OPTIONS and rest not in others[:_MOST_OPTIONS]:
        yield rest or Thing("rest", "", _NOWHERE)


def is_rest(value: Value) -> bool:
    """Tell whether ``value`` stands for more objects than are told apart: any of them may be trained."""
    return isinstance(value, Thing) and value.kind == "rest"


def joined(flows: Iterator[Flow]) -> Flow:
    """Return what a value depends on that is computed from all of these."""
    known = [flow for flow in flows if flow is not CLOSED]
    if len(known) <= 1:
        return known[0] if known else CLOSED
    return Flow(
        any(flow.trained for flow in known),
        frozenset().union(*(flow.features for flow in known)),
        frozenset().union(*(flow.hushed for flow in known)),
    )


def mapped(value: Value, change: Callable[[Flow], Flow]) -> Value:
    """Return ``value`` with every flow in it changed."""
    if isinstance(value, Tensor):
        return Tensor(change(value.flow))
    if isinstance(value, Sequence):
        return Sequence([mapped(item, change) for item in value.items])
    if isinstance(value, Many):
        return Many(mapped(value.item, change))
    if isinstance(value, Mapping):
        entries = {key: mapped(item, change) for key, item in value.entries.items()}
        return Mapping(entries, [mapped(item, change) for item in value.others])
    if isinstance(value, Either):
        return Either(tuple(mapped(item, change) for item in value.options))
    if is_record(value):
        value.attributes.update((name, mapped(held, change)) for name, held in value.attributes.items())
    return value


def is_network(value: Value) -> bool:
    """Tell whether ``value`` is an object that is used as a network."""
    return isinstance(value, Thing) and value.is_network


def is_record(value: Value) -> TypeGuard[Thing]:
    """Tell whether ``value`` is an object that only keeps tensors together, such as a distribution."""
    return isinstance(value, Thing) and value.kind == "class" and value.transient
