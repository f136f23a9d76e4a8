"""What the calls of MindSpore, Python's library and anything else outside the program mean to a rehearsal of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.datasets import dataset_class
from mslint.program.rehearsal.values import (
    DEVICE_ID,
    NONE,
    RANK,
    RANK_SIZE,
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
    join,
    named,
    options,
    parts,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

END = Symbol(("end of the run",))

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
_INITIALISES = {"init", "init_process_group"}
_RANKS = {"get_rank": RANK, "get_group_size": RANK_SIZE, "get_world_size": RANK_SIZE, "get_local_rank": DEVICE_ID}
_STEPS = frozenset(
    """TrainOneStepCell TrainOneStepWithLossScaleCell BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell
    PipelineCell build_train_network""".split()  # noqa: SIM905
)
_OPTIMIZERS = frozenset(
    """ASGD Ada Adadelta Adagrad Adam AdaMax AdamOffload AdamWeightDecay AdaFactor AdaSumByDeltaWeightWrapCell
    AdaSumByGradWrapCell FTRL Lamb LARS LazyAdam Momentum Optimizer ProximalAdagrad RMSProp Rprop SGD thor AdamW
    NAdam RAdam Adamax""".split()  # noqa: SIM905
)
_GRADIENTS = frozenset({"value_and_grad", "grad", "get_grad"})
_SIZES = frozenset(
    """get_dataset_size get_batch_size get_repeat_count output_shapes output_types num_classes get_class_indexing
    get_col_names dynamic_min_max_shapes set_dynamic_columns sync_update reset save __len__""".split()  # noqa: SIM905
)
_SELECTS = frozenset({"project", "filter", "skip", "take", "map", "apply"})
_SAME = frozenset({"int", "str", "float", "abs", "copy.copy", "copy.deepcopy"})
_PASSED_ON = frozenset(
    """mindspore.jit mindspore.ms_function mindspore.jit_class mindspore.amp.auto_mixed_precision
    mindspore.parallel.AutoParallel
    mindspore.nn.GraphCell mindspore.dataset.connect_network_with_dataset mindspore.connect_network_with_dataset
    mindspore.parallel.auto_parallel.AutoParallel mindspore.train.connect_network_with_dataset""".split()  # noqa: SIM905
)
_SETTINGS = frozenset(
    {"easydict.EasyDict", "argparse.Namespace", "types.SimpleNamespace", "ml_collections.ConfigDict", "addict.Dict"}
)
_CALLED_WITH_THEIR_OWN = ("mindspore.", "map", "filter", "sorted", "max", "min", "print", "functools.")


class Foreign:
    """The meaning of everything that the program does not define itself."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self.parallel_context: dict[object, Value] = {}
        """What ``set_auto_parallel_context`` was given."""

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
            return self._environment(index)
        return derived(("item", holder.key, index.key), index)

    def _environment(self, name: Value) -> Value:
        known = _ENVIRONMENT.get(name.value) if isinstance(name, Constant) and isinstance(name.value, str) else None
        return known or Symbol(("environment", name.key))

    # ------------------------------------------------------------------ calls

    def call(
        self, function: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None, is_open: bool
    ) -> Value:
        """Return what calling ``function``, which is nothing of the program, gives."""
        if isinstance(function, Reference):
            return self._call_reference(function.name, arguments, keywords, node, is_open)
        if isinstance(function, Method):
            return self._call_method(function.owner, function.name, arguments, keywords, node, is_open)
        if isinstance(function, Made):
            return self._call_made(function, arguments, keywords, node)
        if isinstance(function, Symbol):
            return self._call_symbol(function, arguments, keywords, node)
        return derived(("call", function.key, self._rehearsal.place(node)), *arguments, *keywords.values())

    def _call_reference(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None, is_open: bool
    ) -> Value:
        rehearsal = self._rehearsal
        if name.startswith("mindspore."):
            return self._call_mindspore(name, arguments, keywords, node, is_open)
        if name.startswith(("numpy.random.", "random.")):
            rehearsal.event(name, arguments, keywords, node, is_open)
        handler = _FUNCTIONS.get(name)
        if handler is not None:
            found = handler(self, arguments, keywords, node)
            if found is not None:
                return found
        if name in _SAME and arguments:
            return _converted(name, arguments[0])
        if name in _SETTINGS:
            table = next((one for one in arguments if isinstance(one, Table)), Table(named(keywords)))
            return Table(dict(table.names), open=True, settings=rehearsal.place(node))
        if name in ("sys.exit", "exit", "quit", "os._exit"):
            return END
        if name.rpartition(".")[2] in ("train", "fit", "eval"):
            self._model(name.rpartition(".")[2], arguments, keywords, node)
        self._hand_on(name, arguments, keywords, node)
        return derived(("call", name, rehearsal.place(node)), *arguments, *keywords.values())

    def _hand_on(self, name: str, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None) -> None:
        """Follow functions that another library gets: it is going to call them."""
        if name.startswith(_CALLED_WITH_THEIR_OWN):
            return
        for value in (*arguments, *keywords.values()):
            for option in options(value):
                if isinstance(option, (Function, Partial)):
                    self._rehearsal.call(option, [], {}, node, True)

    def _call_mindspore(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None, is_open: bool
    ) -> Value:
        rehearsal = self._rehearsal
        last = name.rpartition(".")[2]
        if last in _GRADIENTS and name.startswith(("mindspore.ops.", "mindspore.grad", "mindspore.value_and_grad")):
            return Made("gradient", rehearsal.place(node))
        if last == "GradOperation":
            return Made("GradOperation", rehearsal.place(node))
        if name in _PASSED_ON:
            if last == "AutoParallel":
                self._auto_parallel(keywords, arguments)
            if arguments or keywords:
                return arguments[0] if arguments else next(iter(keywords.values()))
        if last in _RANKS and ".ops." not in name and ".nn." not in name:
            return _RANKS[last]
        if name.startswith("mindspore.ops.") or (name.startswith("mindspore.nn.") and last != "DistributedGradReducer"):
            return Made(name, rehearsal.place(node), tuple(arguments), tuple(keywords.items()))
        event = rehearsal.event(name, arguments, keywords, node, is_open)
        if last == "set_auto_parallel_context":
            for word, value in keywords.items():
                rehearsal.write(self.parallel_context, word, value)
                if word in ("device_num", "global_rank"):
                    rehearsal.equate(value, RANK_SIZE if word == "device_num" else RANK)
        elif last == "reset_auto_parallel_context":
            for setting in list(self.parallel_context):
                rehearsal.write(self.parallel_context, setting, NONE)
        elif last == "get_auto_parallel_context":
            return self._get_parallel_context(arguments)
        elif last == "get_context":
            wanted = arguments[0] if arguments else NONE
            is_device = isinstance(wanted, Constant) and wanted.value == "device_id"
            return DEVICE_ID if is_device else Symbol(("context", wanted.key))
        if name.startswith("mindspore.dataset."):
            if last == "zip":
                return Pipeline(derived(("zip",), *arguments).data)
            if dataset_class(last) is not None:
                for source in (event.argument(0, "source"), keywords.get("sampler")):
                    self._follow_source(source)
                return Pipeline(frozenset({event.number}))
        return Made(name, rehearsal.place(node), tuple(arguments), tuple(keywords.items()))

    def _follow_source(self, source: Value | None) -> None:
        """Follow what a data set is going to ask its source or sampler, to learn whether that uses the rank itself."""
        for option in options(source) if source is not None else ():
            if isinstance(option, Object):
                for name in ("__getitem__", "__iter__", "__next__", "__len__"):
                    method = self._rehearsal.member(option, name)
                    if method is not None:
                        index: list[Value] = [Symbol(("index", option.key))] if name == "__getitem__" else []
                        self._rehearsal.call(method, index, {}, None)
            elif isinstance(option, (Function, Partial)):
                self._rehearsal.call(option, [], {}, None, True)

    def _auto_parallel(self, keywords: Mapping[str, Value], arguments: list[Value]) -> None:
        mode = keywords.get("parallel_mode") or (arguments[1] if len(arguments) > 1 else Constant("semi_auto"))
        known = mode.value if isinstance(mode, Constant) else "semi_auto"
        mode = Constant({"semi_auto": "semi_auto_parallel"}.get(str(known), "auto_parallel"))
        self._rehearsal.write(self.parallel_context, "parallel_mode", mode)

    def _get_parallel_context(self, arguments: list[Value]) -> Value:
        wanted = arguments[0].value if arguments and isinstance(arguments[0], Constant) else None
        if wanted == "device_num":
            return RANK_SIZE
        if wanted == "global_rank":
            return RANK
        default = Constant("stand_alone") if wanted == "parallel_mode" else Symbol(("parallel context", wanted))
        return self.parallel_context.get(wanted, default)

    def _call_made(
        self, made: Made, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
    ) -> Value:
        rehearsal = self._rehearsal
        given = (*arguments, *keywords.values())
        last = made.name.rpartition(".")[2]
        if last == "GradOperation":
            return Made("gradient", rehearsal.place(node))
        if last == "gradient" or last in _STEPS or last in _OPTIMIZERS:
            self._train(given, node)
        return derived(("call", made.key, rehearsal.place(node)), made, *given)

    def _train(self, given: tuple[Value, ...], node: ast.AST | None) -> None:
        for value in given:
            for number in parts(value)[0]:
                self._rehearsal.trained.setdefault(number, self._rehearsal.place(node))

    def _evaluate(self, given: tuple[Value, ...], node: ast.AST | None) -> None:
        for value in given:
            for number in parts(value)[0]:
                self._rehearsal.evaluated.setdefault(number, self._rehearsal.place(node))

    def _call_symbol(
        self, symbol: Symbol, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None
    ) -> Value:
        given = (*arguments, *keywords.values())
        key = symbol.key
        name = key[2] if isinstance(key, tuple) and len(key) == 3 and key[0] == "attribute" else None
        if isinstance(name, str):
            if name in _SIZES:
                return Symbol(("call", symbol.key, self._rehearsal.place(node)))
            if name in ("add_sampler", "use_sampler"):
                self._sampled(symbol, node)
            elif name in ("train", "fit", "eval"):
                self._model(name, arguments, keywords, node)
        self._hand_on("", arguments, keywords, node)
        return derived(("call", symbol.key, self._rehearsal.place(node)), symbol, *given)

    def _sampled(self, pipeline: Value, node: ast.AST | None) -> None:
        for number in parts(pipeline)[0]:
            self._rehearsal.sampled.setdefault(number, self._rehearsal.place(node))

    # ------------------------------------------------------------------ methods

    def _call_method(
        self,
        owner: Value,
        name: str,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST | None,
        is_open: bool,
    ) -> Value:
        if name == "dataset_strategy":
            strategy = arguments[0] if arguments else keywords.get("config", NONE)
            self._rehearsal.write(self.parallel_context, "dataset_strategy", strategy)
        if isinstance(owner, Pipeline):
            return self._call_pipeline(owner, name, arguments, keywords, node)
        if isinstance(owner, Sequence):
            return self._call_sequence(owner, name, arguments, node)
        if isinstance(owner, Table):
            return self._call_table(owner, name, arguments, keywords, node)
        if isinstance(owner, Constant) and isinstance(owner.value, str) and not keywords:
            return self._call_text(owner.value, name, arguments, node)
        if isinstance(owner, (Made, Object)):
            kinds = [owner.name] if isinstance(owner, Made) else list(owner.kind.foreign())
            if any(kind.rpartition(".")[2] == "Model" for kind in kinds) or isinstance(owner, Made):
                self._rehearsal.event(f"{kinds[0]}.{name}", arguments, keywords, node, is_open)
                self._model(name, arguments, keywords, node)
            if name.startswith(("set_", "to_float", "add_flags", "shard", "recompute")):
                return owner
            if isinstance(owner, Object) and name == "grad" and _is_step(owner):
                return Made("gradient", self._rehearsal.place(node))
        return derived(("call", owner.key, name, self._rehearsal.place(node)), owner, *arguments, *keywords.values())

    def _model(self, name: str, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None) -> None:
        """Follow ``Model.train``, ``fit`` and ``eval``: which data set serves for what."""
        if name in ("train", "fit"):
            data = keywords.get("train_dataset") or (arguments[1] if len(arguments) > 1 else None)
            self._train((data,) if data else (), node)
            checked = keywords.get("valid_dataset") or (arguments[2] if name == "fit" and len(arguments) > 2 else None)
            self._evaluate((checked,) if checked else (), node)
        elif name == "eval":
            data = keywords.get("valid_dataset") or (arguments[0] if arguments else None)
            self._evaluate((data,) if data else (), node)

    def _call_pipeline(
        self, owner: Pipeline, name: str, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
    ) -> Value:
        place = self._rehearsal.place(node)
        if name in _SIZES:
            return Symbol(("call", owner.key, name, place))
        if name in ("add_sampler", "use_sampler"):
            self._sampled(owner, node)
            return owner
        if name in ("zip", "concat"):
            return Pipeline(owner.data | derived(("with",), *arguments, *keywords.values()).data)
        if name == "split" and arguments and isinstance(arguments[0], Sequence):
            return Sequence([owner for _ in arguments[0].items])
        if name in _SELECTS and any(parts(value)[1] for value in arguments):
            self._sampled(owner, node)
        if name in ("create_dict_iterator", "create_tuple_iterator", "split", "__iter__"):
            return Symbol(("iterator", owner.key, place), owner.data)
        return owner

    def _call_sequence(self, owner: Sequence, name: str, arguments: list[Value], node: ast.AST | None) -> Value:
        if name in ("append", "add") and arguments:
            owner.items.append(arguments[0])
            return NONE
        if name == "insert" and len(arguments) == 2:
            owner.items.append(arguments[1])
            return NONE
        if name == "extend" and arguments:
            owner.items.append(self._rehearsal.element(arguments[0]))
            return NONE
        if name == "pop" and owner.items:
            return join(owner.items)
        return owner if name == "copy" else derived(("call", name, self._rehearsal.place(node)), owner, *arguments)

    def _call_table(
        self, owner: Table, name: str, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
    ) -> Value:
        place = self._rehearsal.place(node)
        if name in ("get", "pop", "setdefault") and arguments:
            if isinstance(arguments[0], Constant) and arguments[0].value in owner.names:
                return owner.names[arguments[0].value]
            default = arguments[1] if len(arguments) > 1 else NONE
            return derived(("item", owner.key, place), owner) if owner.open else join([*owner.names.values(), default])
        if name == "items":
            return Sequence([Sequence([Constant(key), value]) for key, value in owner.names.items()])
        if name == "values" and owner.names:
            return Sequence(list(owner.names.values()))
        if name == "keys":
            return Sequence([Constant(key) for key in owner.names])
        if name == "update":
            given = arguments[0] if arguments else Table(named(keywords))
            if isinstance(given, Table):
                for key, value in given.names.items():
                    self._rehearsal.write(owner.names, key, value)
            else:
                owner.open = True
            return NONE
        return owner if name == "copy" else derived(("call", name, place), owner, *arguments)

    def _call_text(self, text: str, name: str, arguments: list[Value], node: ast.AST | None) -> Value:
        known = [argument.value for argument in arguments if isinstance(argument, Constant)]
        if len(known) == len(arguments) and all(isinstance(argument, (str, int)) for argument in known):
            if name in ("lower", "upper", "strip", "startswith", "endswith", "replace", "format"):
                try:
                    return Constant(getattr(text, name)(*known))
                except (TypeError, IndexError, KeyError, ValueError):
                    pass
        return derived(("call", name, self._rehearsal.place(node)), *arguments)

    # ------------------------------------------------------------------ classes with bases in other libraries

    def base_call(
        self, this: Object, method: str, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
    ) -> Value:
        """Return what ``super().method(...)`` gives where the base is another library's; a constructor keeps what it gets."""
        if method == "__init__" and _is_step(this):
            given = dict(zip(("network", "optimizer", "scale_sense"), arguments, strict=False))
            given.update(keywords)
            for name, value in given.items():
                self._rehearsal.write(this.names, name, value)
            self._rehearsal.write(
                this.names,
                "grad",
                Made("GradOperation", self._rehearsal.place(node)),
            )
            return NONE
        if method in ("train", "fit", "eval") and any(kind.endswith("Model") for kind in this.kind.foreign()):
            self._model(method, arguments, keywords, node)
        if method in ("construct", "__call__") and _is_step(this):
            self._train((*arguments, *keywords.values()), node)
        return derived(("super", method, self._rehearsal.place(node)), *arguments, *keywords.values())

    def called(
        self, called: Object, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
    ) -> Value | None:
        """Return what calling an object gives, if its code need not be followed: a forward pass is nothing to this file."""
        foreign = list(called.kind.foreign())
        given = (*arguments, *keywords.values())
        lasts = {kind.rpartition(".")[2] for kind in foreign}
        if lasts & _STEPS or (lasts & _OPTIMIZERS and any(kind.startswith("mindspore.") for kind in foreign)):
            self._train(given, node)
            return None
        is_cell = any(kind.startswith("mindspore.nn.") for kind in foreign)
        if is_cell and not _updates(called):
            return derived(("call", called.key, self._rehearsal.place(node)), *given)
        return None


def _is_step(this: Object) -> bool:
    return any(kind.rpartition(".")[2] in _STEPS for kind in this.kind.foreign())


def _updates(value: Value, depth: int = 3) -> bool:
    """Tell whether a Cell holds something that trains: a gradient function, an optimizer, a training step."""
    if isinstance(value, Made):
        last = value.name.rpartition(".")[2]
        return last in ("gradient", "GradOperation") or last in _STEPS or last in _OPTIMIZERS
    if depth == 0:
        return False
    held: list[Value] = []
    if isinstance(value, Object):
        if any(kind.rpartition(".")[2] in _STEPS | _OPTIMIZERS for kind in value.kind.foreign()):
            return True
        held = list(value.names.values())
    elif isinstance(value, Sequence):
        held = value.items
    return any(_updates(option, depth - 1) for item in held for option in options(item))


def _converted(name: str, value: Value) -> Value:
    if isinstance(value, Constant) and name in ("int", "str", "float"):
        try:
            return Constant({"int": int, "str": str, "float": float}[name](value.value))
        except (TypeError, ValueError):
            return value
    return value


def _getenv(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    return foreign._environment(arguments[0]) if arguments else None


def _getattr(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    if len(arguments) >= 2 and isinstance(arguments[1], Constant) and isinstance(arguments[1].value, str):
        return join(foreign._rehearsal.attribute(option, arguments[1].value) for option in options(arguments[0]))
    return None


def _setattr(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    if len(arguments) == 3 and isinstance(arguments[1], Constant) and isinstance(arguments[1].value, str):
        foreign._rehearsal.set_attribute(arguments[0], arguments[1].value, arguments[2])
    return NONE


def _partial(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    return Partial(arguments[0], tuple(arguments[1:]), tuple(keywords.items())) if arguments else None


def _enumerate(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    if not arguments:
        return None
    number = Symbol(("number", foreign._rehearsal.place(node)))
    return Sequence([Sequence([number, foreign._rehearsal.element(arguments[0])])])


def _zip(foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None) -> Value | None:
    return Sequence([Sequence([foreign._rehearsal.element(argument) for argument in arguments])])


def _held(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    if arguments and isinstance(arguments[0], (Sequence, Object)):
        return arguments[0]
    return None if arguments else Sequence([])


def _next(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    return foreign._rehearsal.element(arguments[0]) if arguments else None


def _length(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    return Symbol(("length", foreign._rehearsal.place(node)))


def _dict(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    table = Table(named(keywords))
    for argument in arguments:
        if isinstance(argument, Table):
            table.names = {**argument.names, **table.names}
        else:
            table.open = True
    return table


def _nothing(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    return NONE


def _bool(
    foreign: Foreign, arguments: list[Value], keywords: Mapping[str, Value], node: ast.AST | None
) -> Value | None:
    if not arguments:
        return None
    known = foreign._rehearsal.truth(arguments[0])
    return arguments[0] if known is None else Constant(known)


_FUNCTIONS: dict[str, Callable[..., Value | None]] = {
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
}
