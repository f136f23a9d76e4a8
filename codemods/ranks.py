"""How a function writes the rank and the number of ranks: by what it has at hand, else by asking MindSpore."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from codemods.base import Manual
from codemods.imports import reach_from
from mslint.findings import Edit
from mslint.program.distribution import Run
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import RANK, RANK_SIZE, Constant, Parallel, Place, Value, options
from mslint.program.unsharded import Build
from mslint.semantics.module import Binding, Module, dotted, find
from mslint.source.text import read

COMMUNICATION = "mindspore.communication"
_FUNCTIONS = {RANK: ("get_rank",), RANK_SIZE: ("get_group_size", "get_world_size")}
_ALONE = {RANK: (None, 0), RANK_SIZE: (None, 1)}
"""What a program may take for the rank and the number of ranks where it runs on one device."""

Names = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Ranks:
    """The expressions for the number of ranks and the rank at one place, and the edits that the file needs for them."""

    size: str
    rank: str
    edits: tuple[Edit, ...] = ()


def ranks_at(module: Module, node: cst.CSTNode, names: Names) -> Ranks:
    """Return how to write both at ``node``; ``names`` are the variables that hold one of them there."""
    size = at_hand(module, node, names, RANK_SIZE)
    rank = at_hand(module, node, names, RANK)
    wanted = [*(["get_group_size"] if size is None else []), *(["get_rank"] if rank is None else [])]
    if not wanted:
        return Ranks(size or "", rank or "")
    asked, edits = _asked(module, node, wanted)
    return Ranks(size or asked["get_group_size"], rank or asked["get_rank"], edits)


def require_init_before(
    builds: Iterable[Build], module: Module, node: cst.CSTNode, ranks: Ranks, depth: int = 0
) -> None:
    """Refuse ``ranks``, written at ``node``, ``depth`` calls above ``builds``, if MindSpore does not know them there yet."""
    if not any(_is_asked(module, node, text) for text in (ranks.size, ranks.rank)):
        return
    for build in builds:
        init, event = build.run.init, build.event
        if init is None:
            continue
        way = event.calls[: len(event.calls) - depth + 1]
        if init.number > event.number or (depth and init.calls[: len(way)] == way):
            raise Manual(
                f"it is built before init() in row {init.place.row} of {init.place.path.name} is called, when "
                "get_group_size() is still 1 and get_rank() 0; call init() first, and shard it then"
            )


def _is_asked(module: Module, node: cst.CSTNode, text: str) -> bool:
    """Tell whether ``text`` asks MindSpore for it, or is a variable that does."""
    values = [_value(binding) for binding in module.lookup(text, node)] if text.isidentifier() else []
    return text.endswith("()") or any(
        value is not None and _gives(module, value, wanted) for value in values for wanted in _FUNCTIONS
    )


def rank_at(module: Module, node: cst.CSTNode, names: Names) -> tuple[str, tuple[Edit, ...]]:
    """Return how to write the rank at ``node``, and the edits that the file needs for that."""
    rank = at_hand(module, node, names, RANK)
    if rank is not None:
        return rank, ()
    asked, edits = _asked(module, node, ["get_rank"])
    return asked["get_rank"], edits


def _asked(module: Module, node: cst.CSTNode, functions: Sequence[str]) -> tuple[dict[str, str], tuple[Edit, ...]]:
    reached = reach_from(module, COMMUNICATION, functions, node, "communication")
    return {name: f"{expression}()" for name, expression in reached.expressions.items()}, reached.edits


def at_hand(module: Module, node: cst.CSTNode, names: Names, wanted: Parallel) -> str | None:
    """Return what is at hand for ``wanted`` at ``node`` in every run: a variable, an attribute of ``self``; else None."""
    for name, value in names:
        alone = all(option == wanted or _is_alone(option, wanted) for option in options(value))
        if wanted in options(value) and alone and is_bound(module, name, node) and not _is_text(module, name, node):
            return name
    return next(iter([*_attributes(module, node, wanted), *_globals(module, node, wanted)]), None)


def _is_text(module: Module, name: str, node: cst.CSTNode) -> bool:
    """Tell whether the variable ``name`` is what the environment holds, which is no number but text."""
    values = [_value(binding) for binding in module.lookup(name, node)]
    return any(value is not None and _reads_environment(module, value) for value in values)


def _reads_environment(module: Module, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.IfExp):
        return any(_reads_environment(module, side) for side in (value.body, value.orelse))
    if isinstance(value, cst.BooleanOperation):
        return any(_reads_environment(module, side) for side in (value.left, value.right))
    if isinstance(value, cst.Call):
        return module.resolve(value.func) in ("os.getenv", "os.environ.get")
    return isinstance(value, cst.Subscript) and module.resolve(value.value) == "os.environ"


def _is_alone(value: Value, wanted: Parallel) -> bool:
    return isinstance(value, Constant) and value.value in _ALONE[wanted]


def _attributes(module: Module, node: cst.CSTNode, wanted: Parallel) -> Iterator[str]:
    """Yield ``self.x`` where the constructor gives it ``wanted`` before anything can read it."""
    owner, method = module.enclosing(node, cst.ClassDef), module.enclosing(node, cst.FunctionDef)
    if owner is None or method is None or not method.params.params:
        return
    methods = {item.name.value: item for item in owner.body.body if isinstance(item, cst.FunctionDef)}
    constructor = methods.get("__init__")
    if constructor is None or method not in methods.values():
        return
    this = method.params.params[0].name.value
    # Whatever the constructor calls may read the attribute, and so may the code around ``node``.
    readers = [call for call in find(constructor, cst.Call) if (dotted(call.func) or "").partition(".")[0] == this]
    readers = [call for call in readers if (dotted(call.func) or "").partition(".")[2] in methods]
    first = min(
        [module.start(reader).row for reader in (*readers, *([node] if method is constructor else []))], default=0
    )
    for name, assigned in _assigned_attributes(owner, this).items():
        inside = [assign for assign, _ in assigned if module.enclosing(assign, cst.FunctionDef) is constructor]
        certain = any(module.parents[module.parents[assign]] is constructor.body for assign in inside)
        early = not first or all(module.start(assign).row < first for assign in inside)
        if certain and early and _all_give(module, [value for _, value in assigned], wanted):
            yield f"{this}.{name}"


def _assigned_attributes(owner: cst.ClassDef, this: str) -> dict[str, list[tuple[cst.Assign, cst.BaseExpression]]]:
    """Return what the class assigns to attributes of its objects, by attribute."""
    found: dict[str, list[tuple[cst.Assign, cst.BaseExpression]]] = {}
    for assign in find(owner, cst.Assign):
        for target, value in assigned_pairs(assign):
            if isinstance(target, cst.Attribute) and dotted(target) == f"{this}.{target.attr.value}":
                found.setdefault(target.attr.value, []).append((assign, value))
    return found


def _globals(module: Module, node: cst.CSTNode, wanted: Parallel) -> Iterator[str]:
    """Yield the variables of the file that hold ``wanted``, the last one first."""
    if module.scope(node) is module.tree:
        return
    for name, bindings in reversed(module.bindings[module.tree].items()):
        values = [_value(binding) for binding in bindings]
        known = [value for value in values if value is not None]
        if len(known) == len(values) and _all_give(module, known, wanted) and is_bound(module, name, node):
            yield name


def _value(binding: Binding) -> cst.BaseExpression | None:
    if isinstance(binding.node, cst.Assign):
        return next(
            (v for t, v in assigned_pairs(binding.node) if isinstance(t, cst.Name) and t.value == binding.name), None
        )
    return binding.value


def assigned_pairs(assign: cst.Assign) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield each single target of an assignment with its value; of a tuple taken apart, with the part if it is written."""
    for target in (item.target for item in assign.targets):
        if not isinstance(target, (cst.Tuple, cst.List)):
            yield target, assign.value
        elif isinstance(assign.value, (cst.Tuple, cst.List)) and len(assign.value.elements) == len(target.elements):
            for one, part in zip(target.elements, assign.value.elements, strict=True):
                yield one.value, part.value


def _all_give(module: Module, values: Iterable[cst.BaseExpression], wanted: Parallel) -> bool:
    """Tell whether ``values`` are ``wanted``, but for what stands for it on one device."""
    given = [_gives(module, value, wanted) for value in values]
    return any(given) and all(
        asked or _is_alone_written(value, wanted) for asked, value in zip(given, values, strict=False)
    )


def _gives(module: Module, value: cst.BaseExpression, wanted: Parallel) -> bool:
    if isinstance(value, cst.IfExp):
        sides = (value.body, value.orelse)
        return _all_give(module, sides, wanted)
    name = module.resolve(value.func) if isinstance(value, cst.Call) else None
    return name in {f"{COMMUNICATION}.{function}" for function in _FUNCTIONS[wanted]}


def _is_alone_written(value: cst.BaseExpression, wanted: Parallel) -> bool:
    if isinstance(value, cst.Name):
        return value.value == "None"
    return isinstance(value, cst.Integer) and value.evaluated_value in _ALONE[wanted]


def is_bound(module: Module, name: str, node: cst.CSTNode) -> bool:
    """Tell whether ``name`` has a value at ``node`` whichever branches were taken before."""
    bindings = module.lookup(name, node)
    if not bindings:
        return False
    if any(isinstance(binding.node, (cst.Param, cst.ImportFrom, cst.Import)) for binding in bindings):
        return True
    home = module.scope(bindings[0].node)
    inside = home is module.scope(node)
    above = {node, *module.ancestors(node)}
    for block in (item for item in above if isinstance(item, (cst.IndentedBlock, cst.Module))):
        if module.scope(block) is not home and block is not home:
            continue
        for statement in block.body:
            if statement in above and inside:
                break
            if _binds(statement, name):
                return True
    # Of an outer scope: bound somewhere in it, outside of branches, before this function can be called.
    return not inside and isinstance(home, cst.Module) and any(_binds(statement, name) for statement in home.body)


def _binds(statement: cst.CSTNode, name: str) -> bool:
    """Tell whether ``statement`` is certain to give ``name`` a value, if it ends."""
    if isinstance(statement, cst.SimpleStatementLine):
        return any(_assigns(part, name) for part in statement.body)
    if isinstance(statement, (cst.IndentedBlock, cst.SimpleStatementSuite)):
        return any(
            _assigns(part, name) if isinstance(part, cst.BaseSmallStatement) else _binds(part, name)
            for part in statement.body
        ) or _leaves(statement)
    if isinstance(statement, cst.If):
        return statement.orelse is not None and _binds(statement.body, name) and _binds(statement.orelse, name)
    if isinstance(statement, (cst.Else, cst.With)):
        return _binds(statement.body, name)
    if isinstance(statement, cst.Try):
        handlers = all(_binds(handler.body, name) for handler in statement.handlers)
        return _binds(statement.body, name) and handlers
    return False


def _leaves(block: cst.BaseSuite) -> bool:
    last = block.body[-1] if block.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Raise, cst.Return))


def _assigns(part: cst.CSTNode, name: str) -> bool:
    if isinstance(part, cst.Assign):
        targets = [target.target for target in part.targets]
    elif isinstance(part, cst.AnnAssign) and part.value is not None:
        targets = [part.target]
    else:
        return False
    for target in targets:
        parts = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        if any(isinstance(one, cst.Name) and one.value == name for one in parts):
            return True
    return False


def names_around(run: Run, event: Event, depth: int) -> Names:
    """Return the variables that hold a rank or number of ranks in the function ``depth`` calls above ``event``.

    What another call of that function saw is asked; whether a name has its value yet is for ``is_bound`` to say.
    """
    if depth == 0:
        return event.names
    calls = event.calls[: len(event.calls) - depth]
    path = event.calls[-depth].path
    near = [other for other in run.events if other.calls == calls and other.place.path == path]
    later = [other for other in near if other.number > event.number]
    found = later[:1] or near[-1:]
    return found[0].names if found else ()


def names_in(run: Run, module: Module, function: str) -> Names:
    """Return the variables of ``function`` that are seen to hold a rank or number of ranks in some call of it."""
    path = module.source.path.absolute()
    found: dict[str, Value] = {}
    for event in run.events:
        if event.place.path == path and event.function == function:
            found.update(event.names)
    return tuple(found.items())


def module_at(module: Module, path: Path) -> Module:
    """Return the file ``path`` of the program of ``module``, parsed as it stands in this pass."""
    if path == module.source.path.absolute():
        return module

    def parsed() -> Module:
        source = read(path)
        text = module.program.text(path)
        return Module(source if text is None else replace(source, text=text), module.program)

    return module.remember((module_at, path), parsed)


def in_file(module: Module, home: Module, edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield ``edits`` of ``module`` as edits of a fix of a finding in ``home``."""
    for edit in edits:
        own = module is home or edit.filename is not None
        yield edit if own else replace(edit, filename=str(module.source.path.absolute()))


def call_at(module: Module, place: Place, names: Iterable[str]) -> cst.Call | None:
    """Return the call that starts at ``place`` and calls something named as one of ``names``."""
    wanted = set(names)
    for call in module.calls:
        name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        if isinstance(name, cst.Name) and name.value in wanted and is_at(module, call, place):
            return call
    return None


def covers(module: Module, node: cst.CSTNode, place: Place) -> bool:
    """Tell whether ``place``, which counts columns in bytes, lies within ``node``."""
    if place.path != module.source.path.absolute():
        return False
    column = len(module.lines[place.row - 1].encode()[: place.column].decode(errors="ignore")) + 1
    start, end = module.start(node), module.end(node)
    return (start.row, start.column) <= (place.row, column) < (end.row, end.column)


def is_at(module: Module, node: cst.CSTNode, place: Place) -> bool:
    """Tell whether ``node`` starts at ``place``, which counts columns in bytes."""
    start = module.start(node)
    if start.row != place.row:
        return False
    return len(module.lines[start.row - 1][: start.column - 1].encode()) == place.column
