"""The rank and the number of ranks handed down, as parameters, from where a training set is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from codemods.arguments import append_arguments, append_parameters
from codemods.base import Manual
from codemods.ranks import (
    assigned_pairs,
    at_hand,
    call_at,
    in_file,
    module_at,
    names_around,
    names_in,
    ranks_at,
    require_init_before,
)
from codemods.training_start import function_at, qualified
from mslint.findings import Edit
from mslint.program.distribution import Run
from mslint.program.rehearsal.values import RANK, RANK_SIZE, Place
from mslint.program.unsharded import Build
from mslint.semantics.module import Module, dotted, find

_NEW_NAMES = (("num_shards", "shard_id"), ("rank_size", "rank_id"))
_SIZE = re.compile(r"^(num_shards|device_num|rank_size|group_size|world_size|num_ranks|shards)$")
_RANK = re.compile(r"^(shard_id|rank_id|rank|global_rank|shard)$")
_HIGHEST = 4


@dataclass(frozen=True)
class Handed:
    """The parameters by which a function gets both, and the edits that give them to it."""

    size: str
    rank: str
    edits: tuple[Edit, ...]


def handed_down(
    home: Module,
    module: Module,
    node: cst.CSTNode,
    trained: Sequence[Build],
    others: Sequence[Build],
    names: tuple[str, str] | None = None,
    depth: int = 1,
) -> Handed:
    """Return how the function around ``node`` gets both from its callers.

    The calls that lead to what is ``trained`` on pass them; those that lead to ``others`` alone stay as they are. ``names``
    are the parameters that are there for it, if the function has some.
    """
    function = module.enclosing(node, cst.FunctionDef)
    if function is None or depth > _HIGHEST:
        raise Manual(
            "what is trained on and what is not is built by one and the same call; build the two apart, and shard the former"
        )
    size, rank = names or parameters_for(module, function) or _free(module, function)
    taken = positional(module, function)
    edits: list[Edit] = []
    if size not in parameter_names(function):
        added = append_parameters(module, function, [f"{size}=None", f"{rank}=None"])
        edits += in_file(module, home, added)
    elsewhere = {place for build in others if (place := _called_from(build, depth)) is not None}
    for place, builds in _by_caller(trained, depth, names_of(module, function)[0]):
        caller = module_at(home, place.path)
        call = call_at(caller, place, names_of(module, function))
        if call is None:
            raise Manual(f"how `{names_of(module, function)[0]}` is called is out of sight; hand both down to it")
        wanted = [name for name in (size, rank) if not _is_passed(caller, call, name, taken)]
        if not wanted:
            continue
        _require_no_other(builds[0].run, module, function, caller, call, place, wanted)
        if place in elsewhere:
            handed = handed_down(home, caller, call, builds, others, None, depth + 1)
            values, needed = (handed.size, handed.rank), list(handed.edits)
        else:
            ranks = ranks_at(caller, call, names_around(builds[0].run, builds[0].event, depth))
            require_init_before(builds, caller, call, ranks, depth)
            values, needed = (ranks.size, ranks.rank), list(in_file(caller, home, ranks.edits))
        given = {name: value for name, value in zip((size, rank), values, strict=True) if name in wanted}
        edits += needed
        edits += in_file(caller, home, _passed(caller, call, given, taken))
    return Handed(size, rank, tuple(dict.fromkeys(edits)))


def _require_no_other(
    run: Run,
    module: Module,
    function: cst.FunctionDef,
    caller: Module,
    call: cst.Call,
    place: Place,
    wanted: Sequence[str],
) -> None:
    """Refuse a call that may run another function than ``function``, too, one without the parameters ``wanted``."""
    this = f"{module.source.path.absolute()}:{qualified(module, function)}"
    functions = run.rehearsal.program.call_graph(run.entry).functions
    others = {*_seen_to_run(run, caller, place)}
    if (dotted(call.func) or "").partition(".")[0] in ("self", "cls"):
        others.update(_relatives(run, this))
    for node in sorted(others - {this}):
        other = functions.get(node)
        if other is not None and not {*wanted} <= {*other.parameters}:
            raise Manual(
                f"the call in row {place.row} of {place.path.name} may run `{other.name}`, too, which takes no {wanted[0]}; "
                "hand both down to all that it may run"
            )


def _seen_to_run(run: Run, caller: Module, place: Place) -> Iterator[str]:
    """Yield the functions that the call at ``place`` was seen to run, as nodes of the call graph."""
    for event in run.events:
        for called_from, inner in pairwise((*event.calls, event.place)):
            if called_from == place:
                module = module_at(caller, inner.path)
                yield f"{inner.path}:{qualified(module, function_at(module, inner.row))}"


def _relatives(run: Run, method: str) -> Iterator[str]:
    """Yield the methods that stand for ``method`` in classes that it is inherited by, or inherited from."""
    program = run.rehearsal.program
    owner, dot, name = method.rpartition(".")
    if ".py:" not in owner or not dot or name == "__init__":
        return
    for node in program.call_graph(run.entry).functions:
        other, _, same = node.rpartition(".")
        if same == name and ".py:" in other and (owner in program.lineage(other) or other in program.lineage(owner)):
            yield node


def handed_to_object(home: Module, module: Module, node: cst.CSTNode, build: Build, names: tuple[str, str]) -> Handed:
    """Return how the attributes ``names``, by which the method around ``node`` reads both, get them: by the constructor."""
    owner = module.enclosing(node, cst.ClassDef)
    methods = [item for item in owner.body.body if isinstance(item, cst.FunctionDef)] if owner is not None else []
    constructor = next((method for method in methods if method.name.value == "__init__"), None)
    if owner is None or constructor is None:
        raise Manual(f"where `{names[0]}` comes from is out of sight; give get_group_size() and get_rank() there")
    parameters = [_kept_parameter(module, constructor, name) for name in names]
    calls = list(_constructions(home, module, owner, build.run))
    if len(calls) != 1 or None in parameters:
        raise Manual(
            f"`{names[0]}` and `{names[1]}` are None or 1 in this run; give get_group_size() and get_rank() to the "
            f"{owner.name.value} that is trained on, where it is made"
        )
    caller, call = calls[0]
    taken = positional(module, constructor)
    function = qualified(caller, caller.enclosing(call, cst.FunctionDef))
    ranks = ranks_at(caller, call, names_in(build.run, caller, function))
    given = {str(parameters[0]): ranks.size, str(parameters[1]): ranks.rank}
    wanted = {name: value for name, value in given.items() if not _is_passed(caller, call, name, taken)}
    edits = [*(ranks.edits if wanted else ()), *_passed(caller, call, wanted, taken)]
    return Handed(*names, tuple(in_file(caller, home, edits)))


def _kept_parameter(module: Module, constructor: cst.FunctionDef, attribute: str) -> str | None:
    """Return the parameter that the constructor keeps as ``attribute``, if it does just that."""
    for assign in find(constructor, cst.Assign):
        for target, value in assigned_pairs(assign):
            if module.code(target) == attribute:
                name = module.code(value)
                return name if name in parameter_names(constructor) else None
    return None


def _constructions(home: Module, module: Module, owner: cst.ClassDef, run: Run) -> Iterator[tuple[Module, cst.Call]]:
    """Yield the calls that make an ``owner`` in ``run``."""
    graph = run.rehearsal.program.call_graph(run.entry)
    node = f"{module.source.path.absolute()}:{owner.name.value}.__init__"
    for site in {(call.path, call.row) for call in graph.callers(node)}:
        caller = module_at(home, site[0])
        for call in caller.calls:
            name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            if caller.start(call).row == site[1] and isinstance(name, cst.Name) and name.value == owner.name.value:
                yield caller, call


def at_hand_of_callers(home: Module, function: cst.FunctionDef, trained: Sequence[Build]) -> bool:
    """Tell whether all calls of ``function`` that lead to training have both at hand."""
    found = False
    for build in trained:
        place = _called_from(build, 1)
        caller = module_at(home, place.path) if place is not None else None
        call = call_at(caller, place, [function.name.value]) if caller is not None and place is not None else None
        if caller is None or call is None:
            return False
        names = names_around(build.run, build.event, 1)
        if not all(at_hand(caller, call, names, wanted) for wanted in (RANK_SIZE, RANK)):
            return False
        found = True
    return found


def argument_for(module: Module, call: cst.Call, name: str, parameters: Sequence[str]) -> cst.Arg | None:
    """Return what ``call`` passes for the parameter ``name`` of a function that takes ``parameters`` by position."""
    for position, argument in enumerate(call.args):
        if argument.star:
            raise Manual(
                f"`{module.code(argument)}` in row {module.start(call).row} of {module.source.path.name} may pass {name} "
                "already; pass it there"
            )
        given = argument.keyword.value if argument.keyword is not None else "".join(parameters[position : position + 1])
        if given == name:
            return argument
    return None


def _is_passed(module: Module, call: cst.Call, name: str, parameters: Sequence[str]) -> bool:
    """Tell whether ``call`` passes something for ``name`` that may be the rank: neither a number nor None."""
    argument = argument_for(module, call, name, parameters)
    return argument is not None and not is_plain(module, argument.value)


def is_plain(module: Module, value: cst.BaseExpression) -> bool:
    """Tell whether ``value`` is written out: a number or None."""
    return isinstance(value, cst.Integer) or module.code(value) == "None"


def _passed(module: Module, call: cst.Call, given: dict[str, str], parameters: Sequence[str]) -> list[Edit]:
    """Return the edits that make ``call`` pass ``given``."""
    edits: list[Edit] = []
    missing: list[str] = []
    for name, value in given.items():
        argument = argument_for(module, call, name, parameters)
        if argument is None:
            missing.append(f"{name}={value}")
        else:
            edits.append(module.replace(argument.value, value))
    return [*edits, *append_arguments(module, call, missing)] if missing else edits


def parameters_for(module: Module, function: cst.FunctionDef) -> tuple[str, str] | None:
    """Return the parameters of ``function`` that are called as both are and that it takes and drops."""
    names = parameter_names(function)
    size = next((name for name in names if _SIZE.match(name)), None)
    rank = next((name for name in names if _RANK.match(name)), None)
    if size is None or rank is None:
        return None
    read = {name.value for name in find(function.body, cst.Name)}
    return None if {size, rank} & read else (size, rank)


def parameter_names(function: cst.FunctionDef) -> list[str]:
    """Return the names of all parameters of ``function``, open ones apart."""
    params = function.params
    return [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]


def positional(module: Module, function: cst.FunctionDef) -> list[str]:
    """Return the parameters that a call gives by position."""
    names = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
    static = any(module.code(decorator.decorator) == "staticmethod" for decorator in function.decorators)
    is_method = isinstance(module.scope(function), cst.ClassDef) and not static
    return names[1:] if is_method else names


def _free(module: Module, function: cst.FunctionDef) -> tuple[str, str]:
    used = {name.value for name in find(function, cst.Name)}
    for names in _NEW_NAMES:
        if not used.intersection(names):
            return names
    raise Manual(f"`{function.name.value}` uses the names num_shards and shard_id for something else")


def names_of(module: Module, function: cst.FunctionDef) -> list[str]:
    """Return the names that calls of ``function`` show: its own, or that of the class it is the constructor of."""
    owner = module.enclosing(function, cst.ClassDef)
    if function.name.value == "__init__" and owner is not None:
        return [owner.name.value]
    return [function.name.value]


def _called_from(build: Build, depth: int) -> Place | None:
    calls = build.event.calls
    return calls[-depth] if len(calls) >= depth else None


def _by_caller(trained: Sequence[Build], depth: int, name: str) -> Iterator[tuple[Place, list[Build]]]:
    found: dict[Place, list[Build]] = {}
    for build in trained:
        place = _called_from(build, depth)
        if place is None:
            raise Manual(f"how `{name}` is called is out of sight; hand both down to it")
        found.setdefault(place, []).append(build)
    yield from found.items()
