"""Attributes and items of values, as far as it matters which networks and parameters they hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.following.syntax import decorators
from mslint.program.following.values import (
    Call,
    Class,
    Constant,
    Either,
    Function,
    Method,
    Parent,
    Reference,
    Sequence,
    Stretch,
    Value,
)
from mslint.program.networks.parts import below, either, is_rest, joined, parts
from mslint.program.networks.values import (
    CLOSED,
    TRAINED,
    File,
    Many,
    Mapping,
    Parameters,
    Reason,
    Tensor,
    Thing,
    Weight,
)

if TYPE_CHECKING:
    from mslint.program.networks.interpreter import Interpreter

PARAMETER_METHODS = {
    "trainable_params": True,
    "get_parameters": False,
    "parameters_and_names": False,
    "parameters": False,
    "named_parameters": False,
    "parameters_dict": False,
    "untrainable_params": False,
}
"""Methods of a network that give its parameters, with whether they leave out the frozen ones."""
CHILD_METHODS = ("cells", "cells_and_names", "name_cells", "modules")
"""Methods of a network that give the networks in it."""
ADDING_METHODS = ("append", "insert", "extend", "insert_child_to_cell", "add_module", "register_module")
SETTERS = re.compile(
    r"^(set_\w+|to_float|to|half|recompute|add_flags|add_flags_recursive|shard|update_parameters_name|load_state_dict|train"
    r"|eval|pipeline_stage|flatten_weights|compile|check_names|init_parameters_data|cast_inputs|cuda|astype)$"
)
"""Methods of a network that give the network itself."""
STOPPING = re.compile(
    r"^(stop_gradient|StopGradient|detach|asnumpy|numpy|item|tolist|argmax|argmin|Argmax|Argmin|ArgMaxWithValue|shape|Shape"
    r"|dtype|DType|rank|Rank|size|Size|ndim|zeros_like|ZerosLike|ones_like|OnesLike|equal|Equal|not_equal|NotEqual|greater"
    r"|Greater|greater_equal|GreaterEqual|less|Less|less_equal|LessEqual|isnan|IsNan|isfinite|isinf|logical_\w+|Logical\w+"
    r"|sign|floor|ceil|round|len|int|float|bool|str|range|isinstance|hasattr|print|type|new_zeros|new_ones|nonzero|argsort"
    r"|randn|rand|randint|normal|StandardNormal|standard_normal|uniform)$"
)
"""Functions and methods whose output has no gradient."""
_WEIGHTS = ("weight", "bias", "gamma", "beta", "embedding_table")
_PARAMETER_FIELDS = ("data", "name", "shape", "dtype", "requires_grad")
_OPTIMIZER_FIELDS = ("parameters", "params", "_original_params", "param_groups")
_TENSOR_VIEWS = ("T", "H", "mT", "data")
_NOWHERE = Stretch(Path(), 1, 0, 1, 0)
_OWN_METHODS = (*CHILD_METHODS, "append", "insert_child_to_cell", "extend")


class Objects:
    """What the values of ``interpreter`` hold."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._canonical: dict[tuple[Path, str], str] = {}

    # Attributes

    def attribute(self, holder: Value, name: str, path: Path) -> Value:
        """Return ``holder.name``, written in ``path``."""
        definitions = self._interpreter.definitions
        if isinstance(holder, Thing):
            return self._of_thing(holder, name)
        if isinstance(holder, Parent) and isinstance(holder.this, Thing):
            return definitions.inherited(holder.this, holder.owner, name) or Method(holder.this, name)
        if isinstance(holder, File):
            return definitions.of_file(holder.path, name)
        if isinstance(holder, Reference):
            key = (path, f"{holder.name}.{name}")
            if key not in self._canonical:
                self._canonical[key] = self._interpreter.program.canonical(*key)
            return Reference(self._canonical[key])
        if isinstance(holder, Class):
            return definitions.of_class(holder, name)
        if isinstance(holder, Parameters) and name in _PARAMETER_FIELDS:
            return Tensor()
        return holder if isinstance(holder, Tensor) and name in _TENSOR_VIEWS else Method(holder, name)

    def _of_thing(self, thing: Thing, name: str) -> Value:
        if name in thing.attributes:
            return thing.attributes[name]
        if is_rest(thing):
            return Method(thing, name) if name in PARAMETER_METHODS or SETTERS.match(name) else thing
        found = self._interpreter.definitions.inherited(thing, None, name) if thing.kind == "class" else None
        if isinstance(found, Function) and decorators(found.node) & {"property", "cached_property"}:
            return self._interpreter.invoke(found, Call([], {}))
        if found is not None:
            return found
        if thing.kind == "optimizer" and thing.weights is not None and name in _OPTIMIZER_FIELDS:
            return Parameters(thing.weights.things, not thing.weights.every, optimizer=thing.weights)
        if name in PARAMETER_METHODS or SETTERS.match(name) or name.startswith("__"):
            return Method(thing, name)
        if thing.kind == "interface" and name in _WEIGHTS:
            if not self._interpreter.following:
                return Weight(layer=thing)
            return Tensor(TRAINED if self._interpreter.trains(thing) else CLOSED)
        if thing.kind in ("parameter", "interface", "optimizer") or name in _OWN_METHODS:
            return Method(thing, name)
        return self._unknown_part(thing, name)

    def _unknown_part(self, thing: Thing, name: str) -> Thing:
        part = thing.attributes[name] = Thing("unknown", name, thing.place, parent=thing, unsure=thing.unsure)
        return part

    def assign(self, holder: Value, name: str, value: Value, node: ast.AST) -> None:
        """Let ``holder.name`` be ``value`` from here on, as ``node`` says."""
        for item in parts(holder):
            if name == "requires_grad":
                self._freeze(item, value, node)
            elif isinstance(item, Thing):
                known = item.attributes.get(name)
                item.attributes[name] = either([known, value]) if known and self._interpreter.unsure else value

    def _freeze(self, holder: Value, value: Value, node: ast.AST) -> None:
        interpreter = self._interpreter
        if interpreter.following:
            return
        thaws = not isinstance(value, Constant) or bool(value.value)
        place, unsure, branches = interpreter.place(node), interpreter.unsure, interpreter.branches
        if isinstance(holder, Thing) and holder.kind == "parameter":
            holder.frozen = None if thaws else Reason(True, place, unsure > holder.unsure, branches)
        if not isinstance(holder, Parameters):
            return
        for root in holder.things:
            interpreter.is_complete = interpreter.is_complete and not (thaws and is_rest(root))
            for thing in below(root):
                if thaws:
                    thing.frozen = None
                elif not (interpreter.may_skip or holder.partial):
                    thing.frozen = Reason(True, place, unsure > root.unsure, branches)
                thing.is_network = thing.is_network or thing is root

    def thaw(self, layer: Value) -> None:
        """Let a weight of ``layer`` be trained again, and with it, for all that is known, the layer."""
        for item in parts(layer) if not self._interpreter.following else ():
            thing = item if isinstance(item, Thing) else None
            while thing is not None:
                thing.frozen = None
                thing = thing.parent if thing.kind == "unknown" else None

    # Items

    def item(self, holder: Value, key: Value | None) -> Value:
        """Return ``holder[key]``; None stands for a slice."""
        index = key.value if isinstance(key, Constant) else None
        if isinstance(holder, Sequence):
            if key is None:
                return Many(either(holder.items)) if holder.items else holder
            return _at(holder.items, index)
        if isinstance(holder, Many):
            return holder if key is None else holder.item
        if isinstance(holder, Mapping):
            if isinstance(index, (str, int)) and index in holder.entries:
                return holder.entries[index]
            return either([*holder.others, *([] if index is not None else holder.entries.values())])
        if isinstance(holder, Parameters):
            return Parameters(holder.things, holder.trainable, partial=not holder.one, one=True)
        return self._item_of_thing(holder, key) if isinstance(holder, Thing) else self._interpreter.computed(holder)

    def _item_of_thing(self, holder: Thing, key: Value | None) -> Value:
        interpreter = self._interpreter
        if is_rest(holder):
            return holder
        if holder.children and holder.kind == "interface":
            if key is None:
                return interpreter.make("interface", holder.reference, holder.place, list(holder.children))
            return _at(holder.children, key.value if isinstance(key, Constant) else None)
        method = interpreter.definitions.method(holder, "__getitem__")
        if method is not None and key is not None:
            return interpreter.invoke(method, Call([key], {}))
        return self._of_thing(holder, "[]") if holder.kind == "unknown" else interpreter.computed(holder)

    def element(self, value: Value) -> Value:
        """Return any one item of ``value``."""
        if isinstance(value, Either):
            return either([self.element(option) for option in value.options])
        if isinstance(value, Parameters):
            return Parameters(value.things, value.trainable, value.partial, one=True)
        if isinstance(value, Thing) and value.children:
            return either(value.children)
        if isinstance(value, Thing) and value.kind == "unknown":
            return self._of_thing(value, "[]")
        if isinstance(value, (Mapping, Constant)):
            return Tensor()
        return self.item(value, Constant("any"))

    def assign_item(self, holder: Value, key: Value, value: Value) -> Value | None:
        """Let ``holder[key]`` be ``value``; return what the holder is from then on, where it is another value."""
        changed: Value | None = None
        for item in parts(holder) if isinstance(holder, Either) else (holder,):
            if isinstance(item, Mapping):
                if isinstance(key, Constant) and isinstance(key.value, (str, int)):
                    item.entries[key.value] = value
                else:
                    item.others.append(value)
            elif isinstance(item, Sequence):
                item.items[:] = [either([known, value]) for known in item.items] or [value]
            elif isinstance(item, Many):
                item.item = either([item.item, value])
            elif isinstance(item, Tensor):
                changed = Tensor(joined(iter((item.flow, self._interpreter.flow(value)))))
            elif isinstance(item, Parameters):
                self.list_too(item, value)
            elif isinstance(item, Thing):
                item.children.append(value)
        return changed

    def list_too(self, holder: Parameters, added: Value) -> None:
        """Let the list ``holder`` hold ``added``, too: one or several of its items are that from here on."""
        for item in parts(added):
            if isinstance(item, Parameters):
                holder.things += tuple(thing for thing in item.things if thing not in holder.things)
                holder.trainable, holder.partial = holder.trainable and item.trainable, holder.partial or item.partial
            elif isinstance(item, (Thing, Weight)):
                holder.things += (item.layer if isinstance(item, Weight) else item,)
            else:
                holder.things += (self._interpreter.make("unknown", "parameters", _NOWHERE),)


def _at(items: list[Value], index: object) -> Value:
    if isinstance(index, int) and -len(items) <= index < len(items):
        return items[index]
    return either(items) if items else Tensor()
