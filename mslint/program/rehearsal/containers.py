"""What the methods of lists, dictionaries, texts and data pipelines give in a rehearsal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mslint.program.following.values import Call
from mslint.program.rehearsal import feeding
from mslint.program.rehearsal.values import (
    NONE,
    Constant,
    Function,
    Pipeline,
    Sequence,
    Symbol,
    Table,
    Value,
    by_rank,
    derived,
    join,
    named,
    parts,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal

SIZES = frozenset(
    """get_dataset_size get_batch_size get_repeat_count output_shapes output_types num_classes get_class_indexing
    get_col_names dynamic_min_max_shapes set_dynamic_columns sync_update reset save __len__""".split()  # noqa: SIM905
)
"""Methods of a data set that tell something about it."""
SAMPLERS = ("add_sampler", "use_sampler")
_SELECTS = frozenset({"project", "filter", "skip", "take", "map", "apply"})
_ITERATORS = ("create_dict_iterator", "create_tuple_iterator", "split", "__iter__")
_TEXT_METHODS = ("lower", "upper", "strip", "startswith", "endswith", "replace", "format")


def call_pipeline(rehearsal: Rehearsal, owner: Pipeline, name: str, call: Call) -> Value:
    """Return what the method ``name`` of a data set gives."""
    place = rehearsal.place(call.node)
    if name in SIZES:
        return Symbol(("call", owner.key, name, place))
    if name in SAMPLERS:
        feeding.sample(rehearsal, owner, call)
        return owner
    if name in ("zip", "concat"):
        return Pipeline(owner.data | derived(("with",), *call.given).data)
    if name == "split":
        feeding.split(rehearsal, owner, call)
    if name == "split" and call.arguments and isinstance(call.arguments[0], Sequence):
        return Sequence([owner for _ in call.arguments[0].items])
    if name in _SELECTS and any(parts(value)[1] or _chooses(rehearsal, name, value, call) for value in call.given):
        feeding.sample(rehearsal, owner, call)
    return Symbol(("iterator", owner.key, place), owner.data) if name in _ITERATORS else owner


def _chooses(rehearsal: Rehearsal, name: str, value: Value, call: Call) -> bool:
    """Tell whether ``value`` is a function by which a data set is filtered and that asks for the rank."""
    if name != "filter" or not isinstance(value, Function):
        return False
    rehearsal.called(value, Call([], {}, call.node, open=True))
    return value.key in rehearsal.rank_readers


def call_sequence(rehearsal: Rehearsal, owner: Sequence, name: str, call: Call) -> Value:
    """Return what the method ``name`` of a list gives."""
    arguments = call.arguments
    added: Value | None = None
    if name in ("append", "add") and arguments:
        added = arguments[0]
    elif name == "insert" and len(arguments) == 2:
        added = arguments[1]
    elif name == "extend" and arguments:
        added = rehearsal.objects.element(arguments[0])
    if added is not None:
        place = rehearsal.place(call.node)
        owner.items.append(join([added, by_rank(("chosen", place))]) if rehearsal.chosen_by_rank else added)
        return NONE
    if name == "pop" and owner.items:
        return join(owner.items)
    return owner if name == "copy" else derived(("call", name, rehearsal.place(call.node)), owner, *arguments)


def call_table(rehearsal: Rehearsal, owner: Table, name: str, call: Call) -> Value:
    """Return what the method ``name`` of a dictionary gives."""
    arguments = call.arguments
    place = rehearsal.place(call.node)
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
        given = arguments[0] if arguments else Table(named(call.keywords))
        if isinstance(given, Table):
            for key, value in given.names.items():
                rehearsal.journal.write(owner.names, key, value)
        else:
            owner.open = True
        return NONE
    return owner if name == "copy" else derived(("call", name, place), owner, *arguments)


def call_text(rehearsal: Rehearsal, text: str, name: str, call: Call) -> Value:
    """Return what the method ``name`` of a text gives."""
    known = [argument.value for argument in call.arguments if isinstance(argument, Constant)]
    if len(known) == len(call.arguments) and all(isinstance(argument, (str, int)) for argument in known):
        if name in _TEXT_METHODS:
            try:
                return Constant(getattr(text, name)(*known))
            except (TypeError, IndexError, KeyError, ValueError):
                pass
    return derived(("call", name, rehearsal.place(call.node)), *call.arguments)
