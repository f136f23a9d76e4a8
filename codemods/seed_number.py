"""What a program seeds with: how that is written at another place, and without the rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from codemods.base import Manual
from codemods.passed_down import argument_for, names_of, parameter_names, positional
from codemods.ranks import call_at, in_file, is_at, is_bound, module_at
from codemods.training_start import Level, calls_in, qualified
from mslint.findings import Edit
from mslint.program.dependence import Source, values_of
from mslint.program.distribution import Run
from mslint.program.parallel_runs import running
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import Place
from mslint.semantics.module import Binding, Module, dotted, find, walk

_CONSTANTS = {"None", "True", "False"}
_READS = (cst.Name, cst.Attribute)
_SEEDS = ("set_seed", "seed", "manual_seed")


@dataclass(frozen=True)
class SeedNumber:
    """How a seed is written at some place; nothing where it is the rank alone.

    ``test`` is what the program asks of the seed before it sets it, as that is written there; nothing if it asks nothing.
    """

    text: str
    test: str = ""


@dataclass(frozen=True)
class RankFree:
    """A seed with the rank taken out of it.

    ``value`` is what is left, in the function that ``calls`` lead to; None if nothing is.
    """

    depends: bool
    module: Module
    value: cst.BaseExpression | None
    calls: tuple[Place, ...]
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class _Written:
    """An expression in the function that ``calls`` lead to."""

    module: Module
    value: cst.BaseExpression
    calls: tuple[Place, ...]

    @property
    def function(self) -> cst.FunctionDef | None:
        return self.module.enclosing(self.value, cst.FunctionDef)


def _seed_of(home: Module, event: Event) -> _Written:
    module = module_at(home, event.place.path)
    call = call_at(module, event.place, [event.name.rpartition(".")[2], *_SEEDS]) or _by_row(module, event.place)
    if call is None or not call.args or call.args[0].star:
        raise Manual("what it seeds with is out of sight; give it one seed for all ranks")
    return _Written(module, call.args[0].value, event.calls)


def _by_row(module: Module, place: Place) -> cst.Call | None:
    calls = [call for call in module.calls if module.start(call).row == place.row]
    return calls[0] if len(calls) == 1 else None


def seed_number(
    home: Module, run: Run, event: Event, path: list[Level], level: Level, by_rank: bool
) -> SeedNumber | None:
    """Return how the seed of ``event``, without the rank, is written in front of ``level``; None if it cannot be."""
    if by_rank:
        free = rank_free(home, run, event)
        if free.value is None:
            return SeedNumber("")
        written = _Written(free.module, free.value, free.calls)
    else:
        written = _seed_of(home, event)
    text = _carried(home, written, path, level)
    if text is None:
        return None
    simple = (cst.Name, cst.Attribute, cst.Integer, cst.Call, cst.Subscript, cst.BinaryOperation)
    test = _test(home, event, path, level)
    return SeedNumber(text if isinstance(written.value, simple) else f"({text})", test)


def _test(home: Module, event: Event, path: list[Level], level: Level) -> str:
    """Return the test of the seed itself under which the program comes by ``event``, as it reads in front of ``level``.

    A seed that is None by default, and then not set, can have no rank added to it.
    """
    for depth, place in enumerate((*event.calls, event.place)):
        module = module_at(home, place.path)
        call = next((call for call in module.calls if is_at(module, call, place)), None)
        for argument in call.args if call is not None else ():
            for branch, number in _branches_on(module, argument):
                carried = _carried(home, _Written(module, number, event.calls[:depth]), path, level)
                known = {root.value for root in _roots(number)} | _CONSTANTS
                others = {root.value for root in _roots(branch.test)} - known
                is_body = any(item is branch.body for item in module.ancestors(argument))
                if carried is None or others or not is_body:
                    raise Manual(
                        f"the seed is not set in any case: `{module.code(branch.test)}` in row {module.start(branch).row} of "
                        f"{module.source.path.name} decides; seed the data set anew by hand, where it is set"
                    )
                return _with_expression(module, branch.test, module.code(number), carried)
    return ""


def _branches_on(module: Module, argument: cst.Arg) -> Iterator[tuple[cst.If, cst.BaseExpression]]:
    """Yield the branches around ``argument`` in its function that ask for what it passes, and what that is."""
    for branch in module.ancestors(argument):
        if isinstance(branch, cst.FunctionDef):
            return
        if isinstance(branch, cst.If):
            asked = {module.code(node) for node in walk(branch.test) if isinstance(node, _READS)}
            for node in walk(argument.value):
                if isinstance(node, _READS) and module.code(node) in asked:
                    yield branch, node


def _with_expression(module: Module, inside: cst.BaseExpression, old: str, new: str) -> str:
    """Return ``inside`` as it is written, with ``new`` for the expression ``old``."""
    found: cst.CSTNode = inside
    for node in walk(inside):
        if isinstance(node, _READS) and module.code(node) == old:
            found = found.deep_replace(node, cst.parse_expression(new))
    return module.tree.code_for_node(found)


def _carried(home: Module, written: _Written, path: list[Level], level: Level) -> str | None:
    """Return how ``written`` reads in front of ``level``, through the arguments that carry it there."""
    module, value, function = written.module, written.value, written.function
    text = module.code(value)
    roots = _roots(value)
    if all(_same(module, root, level) or _is_kept(module, value, root, level) for root in roots):
        return text
    above = next((one for one in path if one.module is module and one.function is function), None)
    if above is not None and above is not path[0]:
        return _handed_down(text, roots, path, above)
    if function is None or len(roots) != 1 or not written.calls:
        return None
    # A parameter of the helper that seeds: what its caller passes.
    root = roots[0]
    if root.value not in parameter_names(function):
        return None
    given = _given(home, module, function, root.value, written.calls)
    if given is None:
        return None
    outer = _carried(home, given, path, level)
    return outer if outer is None or value is root else _with_root(text, root.value, outer)


def _given(
    home: Module, module: Module, function: cst.FunctionDef, parameter: str, calls: tuple[Place, ...]
) -> _Written | None:
    """Return what the last of ``calls`` passes for ``parameter``: what it writes, or the default."""
    caller = module_at(home, calls[-1].path)
    call = call_at(caller, calls[-1], names_of(module, function))
    if call is None:
        return None
    argument = argument_for(caller, call, parameter, positional(module, function))
    if argument is not None:
        return _Written(caller, argument.value, calls[:-1])
    params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    default = next((param.default for param in params if param.name.value == parameter), None)
    return _Written(module, default, calls) if isinstance(default, cst.Integer) else None


def _roots(value: cst.BaseExpression) -> list[cst.Name]:
    """Return the variables that ``value`` reads, once each."""
    found: dict[str, cst.Name] = {}
    skipped: set[cst.CSTNode] = set()
    for node in walk(value):
        if isinstance(node, cst.Attribute):
            skipped.add(node.attr)
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            skipped.add(node.keyword)
        elif isinstance(node, cst.Name) and node not in skipped:
            found.setdefault(node.value, node)
    return list(found.values())


def _same(module: Module, root: cst.Name, level: Level) -> bool:
    """Tell whether the variable means in front of ``level`` what it means at ``root``, and has its value there."""
    here = level.module.lookup(root.value, level.statement)
    there = module.lookup(root.value, root)
    if not here and not there:
        return True
    if module is level.module and here == there:
        local = module.scope(root) is not module.tree and there and module.scope(there[0].node) is not module.tree
        return (not local or len(there) == 1) and is_bound(module, root.value, level.statement)
    names = {_meaning(one, bindings) for one, bindings in ((level.module, here), (module, there))}
    return len(names) == 1 and None not in names


def _is_kept(module: Module, value: cst.BaseExpression, root: cst.Name, level: Level) -> bool:
    """Tell whether ``root`` is ``self`` in both places, and what is read of it in ``value`` is not changed in between."""
    function, owner = module.enclosing(root, cst.FunctionDef), module.enclosing(root, cst.ClassDef)
    if (
        owner is None
        or module is not level.module
        or level.module.enclosing(level.statement, cst.ClassDef) is not owner
    ):
        return False
    firsts = [method.params.params[:1] for method in (function, level.function) if method is not None]
    if len(firsts) != 2 or not all(first and first[0].name.value == root.value for first in firsts):
        return False
    attributes = {dotted(node) for node in walk(value) if isinstance(node, cst.Attribute)}
    return not any(
        dotted(target.target) in attributes and module.enclosing(assign, cst.FunctionDef) is not function
        for assign in find(owner, cst.Assign)
        for target in assign.targets
    )


def _meaning(module: Module, bindings: list[Binding]) -> str | None:
    """Return the canonical name of what one import, or one assignment at the top of a file, binds."""
    path = module.source.path.absolute()
    if len(bindings) != 1:
        return None
    if bindings[0].target is not None:
        return module.program.canonical(path, bindings[0].target)
    return f"{path}:{bindings[0].name}" if module.scope(bindings[0].node) is module.tree else None


def _handed_down(text: str, roots: list[cst.Name], path: list[Level], above: Level) -> str | None:
    """Return how ``text``, of the function of ``above``, reads in that of the first of ``path``, to which it is passed."""
    names = {root.value: root.value for root in roots}
    start = path.index(above)
    for outer, inner in reversed(list(zip(path[1 : start + 1], path[:start], strict=True))):
        function = inner.function
        assert function is not None
        call = next(calls_in(outer, names_of(inner.module, function)), None)
        if call is None:
            return None
        taken = positional(inner.module, function)
        for root, name in names.items():
            parameter = next(
                (
                    parameter
                    for parameter in parameter_names(function)
                    if (argument := argument_for(outer.module, call, parameter, taken)) is not None
                    and outer.module.code(argument.value) == name
                ),
                None,
            )
            if parameter is None:
                return None
            names[root] = parameter
    for root, name in names.items():
        text = _with_root(text, root, name)
    return text


def _with_root(text: str, root: str, new: str) -> str:
    """Return ``text``, an expression, with ``new`` in the place of the variable ``root``."""
    if root == new:
        return text
    tree = ast.parse(text, mode="eval")
    places = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == root]
    rows = text.split("\n")
    for node in sorted(places, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        row = rows[node.lineno - 1].encode()
        rows[node.lineno - 1] = (row[: node.col_offset] + new.encode() + row[node.end_col_offset :]).decode()
    return "\n".join(rows)


def rank_free(home: Module, run: Run, event: Event) -> RankFree:
    """Return the seed of ``event`` without the rank, and the edits that take it out."""
    return _rank_free(home, run, _seed_of(home, event))


def _rank_free(home: Module, run: Run, written: _Written) -> RankFree:
    module, value = written.module, written.value
    if not _depends(run, module, value):
        return RankFree(False, module, value, written.calls)
    function = written.function
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Add, cst.Subtract)):
        sides = [value.left] if isinstance(value.operator, cst.Subtract) else [value.left, value.right]
        for side in sides:
            other = value.right if side is value.left else value.left
            if _depends(run, module, other) and not _depends(run, module, side):
                edit = module.replace(value, module.code(side))
                return RankFree(True, module, side, written.calls, tuple(in_file(module, home, [edit])))
    if isinstance(value, cst.Name) and function is not None:
        if value.value in parameter_names(function) and written.calls:
            given = _given(home, module, function, value.value, written.calls)
            if given is not None:
                return _rank_free(home, run, given)
        bindings = module.lookup(value.value, value)
        if len(bindings) == 1 and bindings[0].value is not None and module.scope(bindings[0].node) is function:
            inner = _rank_free(home, run, _Written(module, bindings[0].value, written.calls))
            if inner.value is not None and inner.module is module:
                edit = module.replace(value, module.code(inner.value))
                return RankFree(True, module, inner.value, written.calls, tuple(in_file(module, home, [edit])))
    if _is_rank(run, module, value):
        return RankFree(True, module, None, written.calls, tuple(in_file(module, home, [module.replace(value, "0")])))
    raise Manual(
        f"how the rank goes into `{module.code(value)}` is too involved to be taken out; seed alike on all ranks until "
        "network and data set are built, then by dataset.config.set_seed(SEED + rank)"
    )


def _depends(run: Run, module: Module, value: cst.BaseExpression) -> bool:
    graph = run.rehearsal.program.call_graph(run.entry)
    function = qualified(module, module.enclosing(value, cst.FunctionDef))
    reached = graph.remember((rank_free, run.entry), lambda: frozenset(running(graph, f"{run.entry}:")))
    path = module.source.path.absolute()
    found = values_of(graph).dependence(path, function, module.code(value), reached)
    return Source.RANK in found or Source.NAMED_RANK in found


def _is_rank(run: Run, module: Module, value: cst.BaseExpression) -> bool:
    """Tell whether ``value`` is the rank alone."""
    if isinstance(value, cst.Call):
        return (module.resolve(value.func) or "").endswith(".get_rank")
    return isinstance(value, (cst.Name, cst.Attribute)) and _depends(run, module, value)
