"""What everything that the program does not define itself means to a rehearsal of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.following.values import Call
from mslint.program.rehearsal import containers, feeding
from mslint.program.rehearsal.framework import call_framework, set_parallel
from mslint.program.rehearsal.objects import Inherited
from mslint.program.rehearsal.python_functions import FUNCTIONS, environment
from mslint.program.rehearsal.values import (
    NONE,
    Constant,
    Function,
    Made,
    Method,
    Object,
    Partial,
    Pipeline,
    Reference,
    Sequence,
    Symbol,
    Table,
    Value,
    derived,
    named,
    options,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

END = Symbol(("end of the run",))
_SETTINGS = frozenset(
    {"easydict.EasyDict", "argparse.Namespace", "types.SimpleNamespace", "ml_collections.ConfigDict", "addict.Dict"}
)
_EXITS = ("sys.exit", "exit", "quit", "os._exit")
_MODEL_CALLS = ("train", "fit", "eval")
_CALLED_WITH_THEIR_OWN = ("mindspore.", "map", "filter", "sorted", "max", "min", "print", "functools.")


class Library:
    """The meaning of everything that the program does not define itself."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    # ------------------------------------------------------------------ names

    def attribute(self, holder: Reference, name: str, path: Path) -> Value:
        """Return ``holder.name``."""
        full = f"{holder.name}.{name}"
        if not full.startswith("mindspore."):
            return Reference(full)
        if name.endswith(("_PARALLEL", "STAND_ALONE")):
            return Constant(name.lower())
        if name in ("PYNATIVE_MODE", "GRAPH_MODE"):
            return Constant(int(name == "PYNATIVE_MODE"))
        return Reference(self._rehearsal.program.canonical(path, full))

    def item(self, holder: Reference, index: Value) -> Value:
        """Return ``holder[index]``."""
        if holder.name == "os.environ" and isinstance(index, Constant):
            return environment(index)
        return derived(("item", holder.key, index.key), index)

    # ------------------------------------------------------------------ calls

    def call(self, function: Value, call: Call) -> Value:
        """Return what calling ``function``, which is nothing of the program, gives."""
        if isinstance(function, Reference):
            return self._call_reference(function.name, call)
        if isinstance(function, Method):
            return self._call_method(function.owner, function.name, call)
        if isinstance(function, Made):
            return self._call_made(function, call)
        if isinstance(function, Symbol):
            return self._call_symbol(function, call)
        if isinstance(function, Inherited):
            return self.base_call(function.this, function.name, call)
        return derived(("call", function.key, self._rehearsal.place(call.node)), *call.given)

    def _call_reference(self, name: str, call: Call) -> Value:
        rehearsal = self._rehearsal
        if name.startswith("mindspore."):
            return call_framework(rehearsal, name, call)
        if name.startswith(("numpy.random.", "random.")):
            rehearsal.event(name, call)
        handler = FUNCTIONS.get(name)
        found = handler(rehearsal, call) if handler is not None else None
        if found is not None:
            return found
        if name in _SETTINGS:
            table = next((one for one in call.arguments if isinstance(one, Table)), Table(named(call.keywords)))
            return Table(dict(table.names), open=True, settings=rehearsal.place(call.node))
        if name in _EXITS:
            return END
        if name.rpartition(".")[2] in _MODEL_CALLS:
            feeding.call_model(rehearsal, name.rpartition(".")[2], call)
        self._hand_on(name, call)
        return derived(("call", name, rehearsal.place(call.node)), *call.given)

    def _hand_on(self, name: str, call: Call) -> None:
        """Follow functions that another library gets: it is going to call them."""
        if name.startswith(_CALLED_WITH_THEIR_OWN):
            return
        for value in call.given:
            for option in options(value):
                if isinstance(option, (Function, Partial)):
                    self._rehearsal.called(option, Call([], {}, call.node, open=True))

    def _call_made(self, made: Made, call: Call) -> Value:
        place = self._rehearsal.place(call.node)
        if made.name.rpartition(".")[2] == "GradOperation":
            return Made("gradient", place)
        if feeding.trains_when_called(made.name):
            feeding.train(self._rehearsal, call.given, call)
        return derived(("call", made.key, place), made, *call.given)

    def _call_symbol(self, symbol: Symbol, call: Call) -> Value:
        place = self._rehearsal.place(call.node)
        key = symbol.key
        name = key[2] if isinstance(key, tuple) and len(key) == 3 and key[0] == "attribute" else None
        if isinstance(name, str):
            if name in containers.SIZES:
                return Symbol(("call", symbol.key, place))
            if name in containers.SAMPLERS:
                feeding.sample(self._rehearsal, symbol, call)
            elif name in _MODEL_CALLS:
                feeding.call_model(self._rehearsal, name, call)
        self._hand_on("", call)
        return derived(("call", symbol.key, place), symbol, *call.given)

    def _call_method(self, owner: Value, name: str, call: Call) -> Value:
        rehearsal = self._rehearsal
        if name == "dataset_strategy":
            set_parallel(
                rehearsal,
                "dataset_strategy",
                call.arguments[0] if call.arguments else call.keywords.get("config", NONE),
            )
        if isinstance(owner, Pipeline):
            return containers.call_pipeline(rehearsal, owner, name, call)
        if isinstance(owner, Sequence):
            return containers.call_sequence(rehearsal, owner, name, call)
        if isinstance(owner, Table):
            return containers.call_table(rehearsal, owner, name, call)
        if isinstance(owner, Constant) and isinstance(owner.value, str) and not call.keywords:
            return containers.call_text(rehearsal, owner.value, name, call)
        if isinstance(owner, (Made, Object)):
            found = self._call_foreign_method(owner, name, call)
            if found is not None:
                return found
        return derived(("call", owner.key, name, rehearsal.place(call.node)), owner, *call.given)

    def _call_foreign_method(self, owner: Made | Object, name: str, call: Call) -> Value | None:
        kinds = [owner.name] if isinstance(owner, Made) else list(owner.kind.foreign())
        if any(kind.rpartition(".")[2] == "Model" for kind in kinds) or isinstance(owner, Made):
            self._rehearsal.event(f"{kinds[0]}.{name}", call)
            feeding.call_model(self._rehearsal, name, call)
        if name.startswith(("set_", "to_float", "add_flags", "shard", "recompute")):
            return owner
        if isinstance(owner, Object) and name == "grad" and feeding.is_step(owner):
            return Made("gradient", self._rehearsal.place(call.node))
        return None

    # ------------------------------------------------------------------ classes with bases in other libraries

    def base_call(self, this: Object, method: str, call: Call) -> Value:
        """Return what ``super().method(...)`` gives where the base is another library's; a constructor keeps what it gets."""
        rehearsal = self._rehearsal
        if method == "__init__" and feeding.is_step(this):
            given = dict(zip(("network", "optimizer", "scale_sense"), call.arguments, strict=False))
            given.update(call.keywords)
            given["grad"] = Made("GradOperation", rehearsal.place(call.node))
            for name, value in given.items():
                rehearsal.journal.write(this.names, name, value)
            return NONE
        if method in _MODEL_CALLS and any(kind.endswith("Model") for kind in this.kind.foreign()):
            feeding.call_model(rehearsal, method, call)
        if method in ("construct", "__call__") and feeding.is_step(this):
            feeding.train(rehearsal, call.given, call)
        return derived(("super", method, rehearsal.place(call.node)), *call.given)

    def object_called(self, called: Object, call: Call) -> Value | None:
        """Return what calling an object gives, if its code need not be followed: a forward pass is nothing to a rehearsal."""
        foreign = list(called.kind.foreign())
        if feeding.takes_steps(foreign):
            feeding.train(self._rehearsal, call.given, call)
            return None
        is_cell = any(kind.startswith("mindspore.nn.") for kind in foreign)
        if is_cell and not feeding.updates(called):
            return derived(("call", called.key, self._rehearsal.place(call.node)), *call.given)
        return None
