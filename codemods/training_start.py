"""Where a run starts to train: the functions on the way there, and what is built before."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

import libcst as cst

from codemods.base import Manual
from codemods.ranks import module_at
from mslint.program import sharding
from mslint.program.calls import CallSite, Function
from mslint.program.datasets import dataset_class
from mslint.program.dependence import values_of
from mslint.program.distribution import Run
from mslint.program.parallel_runs import starts
from mslint.program.project import Program
from mslint.program.randomness import Purpose, Seed, Stream, randomness_of, seeded_by
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import Constant, Place, options
from mslint.program.shards import argument, is_sharded
from mslint.semantics.module import Module, find, walk

_ITERATORS = ("create_dict_iterator", "create_tuple_iterator", "DatasetHelper")
_TRAINING = ("train", "fit")
_CALLED_AS_OBJECT = ("construct", "__call__")
_MOST_LEVELS = 12
_SEVERAL = (
    "training is started from several functions; seed the data set anew by hand in each, by dataset.config.set_seed(SEED + "
    "get_rank()), once network and data set are built"
)
_WEIGHTLESS = re.compile(
    r"Loss|Logits|TrainOneStep|WithGradCell|WithEvalCell|Reducer|LR$|^(ASGD|Ada\w*|FTRL|Lamb|LARS|LazyAdam|Momentum"
    r"|Optimizer|ProximalAdagrad|RMSProp|Rprop|SGD|thor|Accuracy|Metric|Cell)"
)


@dataclass(frozen=True, eq=False)
class Level:
    """A function on the way to the training step, None at the top of a file, and the statement in it that leads there.

    Of a statement in loops it is the outermost loop. Where several statements lead there, ``leading``, it is in front of all.
    """

    module: Module
    function: cst.FunctionDef | None
    statement: cst.CSTNode
    leading: tuple[cst.CSTNode, ...]

    @property
    def row(self) -> int:
        """The first row of the statement."""
        return self.module.start(self.statement).row

    @property
    def repeats(self) -> bool:
        """Whether what is in the statement is done many times."""
        return isinstance(self.statement, (cst.For, cst.While))

    @property
    def last_row(self) -> int:
        """The last row of what leads there."""
        return max(self.module.end(one).row for one in (self.statement, *self.leading))

    @property
    def leads_again(self) -> bool:
        """Whether one of several statements may lead there after another did."""
        return any(not _exclude(self.module, one, other) for one, other in combinations(set(self.leading), 2))

    def is_beside(self, other: Level) -> bool:
        """Tell whether it is of the same function as ``other``."""
        return self.module is other.module and self.function is other.function

    def holds(self, place: Place) -> bool:
        """Tell whether ``place`` is in the function, functions inside it apart."""
        if place.path != self.module.source.path.absolute():
            return False
        return function_at(self.module, place.row) is self.function


def ways_to(home: Module, run: Run, trained: Iterable[Place]) -> tuple[list[Level], list[Level]]:
    """Return the levels that lead to the training steps at ``trained``: those in loops, and those outside of all loops.

    Each from the inside out. Where training starts at several places, the way begins in the function that has them all, at
    the first of them.
    """
    ways = [_levels_of(home, run, place) for place in trained]
    first, *others = ways
    shared: list[Level] = []
    for level in first:
        partners = [next((one for one in other if one.is_beside(level)), None) for other in others]
        statements = [level.statement, *(partner.statement for partner in partners if partner is not None)]
        if len(statements) == len(ways):
            leading = [one for other in (level, *partners) if other is not None for one in other.leading]
            common = _common(level.module, level.function, statements)
            shared.append(Level(level.module, level.function, common, tuple(leading)))
    if not shared:
        raise Manual(_SEVERAL)
    below = [level for way in ways for level in way if not any(level.is_beside(one) for one in shared)]
    # In a loop, a seed would start the same numbers again in each round.
    outside = max((index for index, level in enumerate(shared) if level.repeats), default=0)
    return [*below, *shared[:outside]], shared[outside:]


def _levels_of(home: Module, run: Run, trained: Place) -> list[Level]:
    """Return the levels from the function that holds the training step at ``trained`` up to the file that is started."""
    found: list[Level] = []
    sites = [(trained.path, trained.row)]
    while len(found) < _MOST_LEVELS:
        level = _level(home, sites)
        found.append(level)
        if level.function is None:
            return found
        sites = sorted(set(_calls_of(home, run, level)) or set(_calls_seen(run, level)))
        if not sites:
            raise Manual(
                f"what calls `{level.function.name.value}`, where training starts, is out of sight; seed the data set anew "
                "by hand, by dataset.config.set_seed(SEED + get_rank()), once network and data set are built"
            )
    raise Manual("the way to the training step is too long to be followed")


def _level(home: Module, sites: list[tuple[Path, int]]) -> Level:
    """Return the level of the function that holds all ``sites``, with the first of them."""
    modules = {module_at(home, path) for path, _ in sites}
    functions = {function_at(module_at(home, path), row) for path, row in sites}
    if len(modules) > 1 or len(functions) > 1:
        raise Manual(_SEVERAL)
    module, function = modules.pop(), functions.pop()
    statements = [statement_at(module, row) for _, row in sites]
    return Level(module, function, _common(module, function, statements), tuple(statements))


def _exclude(module: Module, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Tell whether two statements are on different sides of a branch."""
    sides = dict(_sides(module, one))
    return any(sides.get(branch, side) is not side for branch, side in _sides(module, other))


def _sides(module: Module, statement: cst.CSTNode) -> Iterator[tuple[cst.If, cst.CSTNode]]:
    """Yield the branches around ``statement``, with the side that it is on."""
    for inner, outer in pairwise((statement, *module.ancestors(statement))):
        if isinstance(outer, cst.If):
            yield outer, inner


def _common(module: Module, function: cst.FunctionDef | None, statements: list[cst.CSTNode]) -> cst.CSTNode:
    """Return the statement of ``function`` that is in front of all ``statements``, outside of loops and branches."""
    chains = [list(reversed(list(_statements_around(module, function, one)))) for one in statements]
    shared: list[cst.CSTNode] = []
    for group in zip(*chains, strict=False):
        if len(set(group)) == 1:
            shared.append(group[0])
        elif len({module.parents[one] for one in group}) == 1:
            shared.append(min(group, key=module.start))
            break
        else:
            break
    return next((one for one in shared if isinstance(one, (cst.For, cst.While))), shared[-1])


def _statements_around(
    module: Module, function: cst.FunctionDef | None, statement: cst.CSTNode
) -> Iterator[cst.CSTNode]:
    yield statement
    for item in module.ancestors(statement):
        if item is function:
            return
        # The other side of an `if` hangs on it; that it is a statement of its own is a matter of spelling.
        is_elif = isinstance(item, cst.If) and isinstance(module.parents[item], cst.If)
        if isinstance(item, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) and not is_elif:
            yield item


def statement_at(module: Module, row: int) -> cst.CSTNode:
    """Return the innermost statement that covers ``row``."""
    outermost = module.outermost(row)
    rows = module.remember((statement_at, outermost), lambda: list(_statements(module, outermost)))
    return next((node for first, last, node in reversed(rows) if first <= row <= last), module.tree)


def _statements(module: Module, outermost: cst.CSTNode) -> Iterator[tuple[int, int, cst.CSTNode]]:
    """Yield the first and last rows of all statements in ``outermost``, outer ones first, and the statements."""
    for node in walk(outermost):
        if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            yield module.start(node).row, module.end(node).row, node


def function_at(module: Module, row: int) -> cst.FunctionDef | None:
    """Return the function whose body holds ``row``."""
    statement = statement_at(module, row)
    return module.enclosing(statement, cst.FunctionDef)


def qualified(module: Module, function: cst.FunctionDef | None) -> str:
    """Return the name of ``function`` in the call graph; nothing for the top of a file."""
    if function is None:
        return ""
    outer = [
        item.name.value for item in module.ancestors(function) if isinstance(item, (cst.FunctionDef, cst.ClassDef))
    ]
    return ".".join([*reversed(outer), function.name.value])


def _calls_of(home: Module, run: Run, level: Level) -> Iterator[tuple[Path, int]]:
    """Yield where the run calls the function of ``level``."""
    assert level.function is not None
    module, function = level.module, level.function
    graph = run.rehearsal.program.call_graph(run.entry)
    node = f"{module.source.path.absolute()}:{qualified(module, function)}"
    name = function.name.value
    sites = [call for call in graph.callers(node) if call.callee != "import"]
    if name in _CALLED_AS_OBJECT:
        sites = [use for call in sites for use in _uses(graph.functions.values(), call)]
    elif isinstance(module.scope(function), cst.ClassDef) and name != "__init__":
        for other in graph.functions.values():
            sites += [call for call in other.calls if call.callee.endswith(f".{name}")]
    yield from ((call.path, call.row) for call in sites if _is_reached(run, call.path, call.row))


def _calls_seen(run: Run, level: Level) -> Iterator[tuple[Path, int]]:
    """Yield where the function of ``level`` was called, as the calls show that the run makes in it: ``Trainer().fit()``."""
    for event in run.events:
        for caller, place in pairwise((*event.calls, event.place)):
            if level.holds(place):
                yield caller.path, caller.row


def _is_reached(run: Run, path: Path, row: int) -> bool:
    """Tell whether the run comes by the innermost statement that holds ``row``."""
    program = run.rehearsal.program
    rows = program.remember((_statement_rows, path), lambda: _statement_rows(program, path))
    holding = [first for first, last in rows if first <= row <= last]
    return bool(holding) and run.reaches(path, max(holding))


def _statement_rows(program: Program, path: Path) -> list[tuple[int, int]]:
    """Return the first and last rows of all statements of a file."""
    tree = program.tree(path)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree is not None else []
    return [(node.lineno, node.end_lineno or node.lineno) for node in statements]


def _uses(functions: Iterable[Function], made: CallSite) -> Iterator[CallSite]:
    """Yield the calls of what ``made`` builds, by the name it is assigned to."""
    for name in made.assigned:
        for function in functions:
            if function.path == made.path:
                yield from (call for call in function.calls if call.callee == name)


def require_no_later_shards(run: Run, level: Level) -> None:
    """Refuse a place behind which the program may build another shuffled, sharded data set: MS303 would be right there."""
    graph = run.rehearsal.program.call_graph(run.entry)
    path = level.module.source.path.absolute()
    call = CallSite(path, qualified(level.module, level.function), level.row - 1, "set_seed", (), (), ())
    seed = Seed(call, "mindspore.dataset.config.set_seed", frozenset({Stream.DATA}))
    for reached in (reached for reached in starts(graph).values() if seed.node in reached):
        for source in sharding.shuffled_shards(graph):
            if (
                f"{source.path}:{source.function}" in reached
                and sharding.is_shuffled(graph, source, reached)
                and sharding.seeded_before(graph, seed, source, reached)
            ):
                raise Manual(
                    f"`{source.callee}` in row {source.row} of {source.path.name} may shuffle and shard a data set after the "
                    f"training in row {level.row} of {path.name} has started, and must be seeded alike on all ranks; build "
                    "it before, or with shuffle=False"
                )


def outside_branches(level: Level) -> Iterator[Level]:
    """Yield ``level`` with the branches around its statement in the place of it, the outermost first, and then itself.

    A branch counts if it has another side: that may train, too.
    """
    found = [level]
    for item in level.module.ancestors(level.statement):
        if item is level.function or isinstance(item, (cst.With, cst.Try, cst.For, cst.While)):
            break
        inner = level.module.parents[item] if isinstance(item, cst.If) else None
        is_elif = isinstance(inner, cst.If) and inner.orelse is item
        if isinstance(item, cst.If) and not is_elif and item.orelse is not None:
            found.append(Level(level.module, level.function, item, level.leading))
    yield from reversed(found)


def precedes(run: Run, levels: list[Level], event: Event) -> bool:
    """Tell whether ``event`` is over when the statement of the first of ``levels`` is reached."""
    places = (*event.calls, event.place)
    first = levels[0]
    for level in levels:
        inside = [place for place in places if level.holds(place)]
        if inside and inside[0].row == level.row and level is not first:
            # Of one statement that builds and trains, `Trainer(...).fit()`: what the run does in which order tells.
            after = [other.number for other in run.events if _is_behind(first, other)]
            return bool(after) and event.number < min(after)
        if inside:
            return inside[0].row < level.row
    return False


def _is_behind(level: Level, event: Event) -> bool:
    return any(level.holds(place) and place.row >= level.row for place in (*event.calls, event.place))


def shuffled_shards(run: Run) -> Iterator[Event]:
    """Yield the times that the run builds a data set in parts for the ranks, unless these are not shuffled."""
    for event in run.events:
        kind = dataset_class(event.name.rpartition(".")[2])
        if kind is not None and event.name.startswith("mindspore.dataset.") and is_sharded(run, event, kind):
            if not all(option == Constant(False) for option in options(argument(event, kind, "shuffle"))):
                yield event


def before_iterators(
    home: Module, run: Run, levels: list[Level], inner: list[Level], built: Collection[Event]
) -> Level:
    """Return the first of ``levels``, its statement moved up to where an iterator is made before it.

    What an iterator draws is decided by the seed at the time it is made (that of DatasetHelper, too: measured on MindSpore
    2.10.0). Those of the functions ``inner``, on the way from there to the training step, are made later; those made before
    the data sets that are ``built`` go through others.
    """
    level = levels[0]
    first = level
    graph = run.rehearsal.program.call_graph(run.entry)
    later = {(one.module, one.function) for one in inner}
    for function in graph.functions.values():
        for call in function.calls:
            if call.callee.rpartition(".")[2] not in _ITERATORS or not _is_reached(run, call.path, call.row):
                continue
            module = module_at(home, call.path)
            statement = statement_at(module, call.row)
            if isinstance(statement, cst.For):
                continue
            owner = function_at(module, call.row)
            if module is level.module and owner is level.function:
                made = replace(level, statement=_common(module, owner, [statement, level.statement]))
                before = [precedes(run, [made, *levels[1:]], event) for event in built]
                if any(before) and made.row < first.row:
                    _require_all(before, call)
                    first = made
            elif (module, owner) not in later and not _in_comprehension(module, statement):
                raise Manual(
                    f"an iterator is made in row {call.row} of {call.path.name}, and what it draws is decided by the seed "
                    "there; make it where training starts"
                )
    return first


def _require_all(before: Collection[bool], call: CallSite) -> None:
    if not all(before):
        raise Manual(
            f"an iterator is made in row {call.row} of {call.path.name}, when not all data sets that are trained on are "
            "built yet; build them first, so that what is drawn can be seeded by the rank in between"
        )


def _in_comprehension(module: Module, statement: cst.CSTNode) -> bool:
    return any("_iterator" in module.code(part.iter) for part in find(statement, cst.CompFor))


def require_network(run: Run, levels: list[Level], start: Level) -> None:
    """Refuse to seed in front of ``start`` if weights are made behind it: they would come from the seed by the rank.

    That is from there to the last statement that leads to the training of the first of ``levels``, and before what is
    trained afterwards.
    """
    last_row = max([levels[0].last_row, *_rows_that_train(start, levels[0].last_row)])
    for call in find(start.function.body if start.function is not None else start.module.tree, cst.Call):
        row = start.module.start(call).row
        if not start.row <= row <= last_row or start.module.enclosing(call, cst.FunctionDef) is not start.function:
            continue
        name = start.module.resolve(call.func) or ""
        if _has_weights(name) or (".py:" in name and _draws_weights(run, name)):
            raise Manual(
                f"`{start.module.code(call.func)}` makes weights in row {row} of {start.module.source.path.name}, and from "
                f"row {start.row} on the data set is iterated over or trained on; build the network in a statement before, "
                "so that the data set can be seeded by the rank in between"
            )


def _rows_that_train(start: Level, after: int) -> Iterator[int]:
    """Yield the rows below ``after`` of the function in which a model is trained again."""
    for call in calls_in(replace(start, statement=start.function or start.module.tree), _TRAINING):
        row = start.module.start(call).row
        if row > after and start.module.enclosing(call, cst.FunctionDef) is start.function:
            yield row


def require_once(run: Run, levels: list[Level], built: Collection[Event]) -> None:
    """Refuse a function that is called again, later, and builds network or data set before it seeds by the rank.

    Unless it starts from a seed of its own each time.
    """
    for index, outer in enumerate(levels[1:], 1):
        below = levels[index - 1]
        if not outer.leads_again or below.function is None or any(_seeds_before(run, one) for one in levels[:index]):
            continue
        again = next(iter(_weights_before(run, below)), None) or next(
            (event.name.rpartition(".")[2] for event in built if any(map(below.holds, (*event.calls, event.place)))),
            None,
        )
        if again is not None:
            raise Manual(
                f"`{below.function.name.value}` is called again below row {outer.row} of {outer.module.source.path.name}, "
                f"and builds `{again}` anew, which must come from a seed that is equal on all ranks; set that seed where it "
                "begins"
            )


def _seeds_before(run: Run, level: Level) -> bool:
    places = [place for event in run.events if seeded_by(event.name) for place in (*event.calls, event.place)]
    return any(level.holds(place) and place.row < level.row for place in places)


def _weights_before(run: Run, level: Level) -> Iterator[str]:
    for call in find(level.function.body if level.function is not None else level.module.tree, cst.Call):
        name = level.module.resolve(call.func) or ""
        if level.module.start(call).row < level.row and (
            _has_weights(name) or (".py:" in name and _draws_weights(run, name))
        ):
            yield level.module.code(call.func)


def _has_weights(name: str) -> bool:
    """Tell whether ``name`` is a layer or a parameter; losses, optimizers and training steps draw nothing."""
    last = name.rpartition(".")[2]
    is_layer = name.startswith("mindspore.nn.") and last[:1].isupper() and not _WEIGHTLESS.search(last)
    return is_layer or name == "mindspore.Parameter"


def _draws_weights(run: Run, name: str) -> bool:
    """Tell whether calling ``name``, a function or class of the program, makes weights."""
    graph = run.rehearsal.program.call_graph(run.entry)
    values = values_of(graph)
    starts = [node for node in (name, f"{name}.__init__") if node in graph.functions]
    return any(
        _has_weights(values.resolve(call.path, call.callee))
        for start in starts
        for node in graph.reached(start)
        for call in graph.functions[node].calls
    )


def require_no_order(run: Run, levels: list[Level]) -> None:
    """Refuse training that draws the order of its samples as it goes: the ranks share these by one order."""
    graph = run.rehearsal.program.call_graph(run.entry)
    randomness = randomness_of(graph)
    for draw in randomness.draws:
        if draw.purpose is not Purpose.ORDER or draw in randomness.seeded_nearby:
            continue
        later = any(level.holds(Place(draw.path, draw.row, 0)) and draw.row >= level.row for level in levels)
        if (draw.node in randomness.item_functions or later) and _is_reached(run, draw.path, draw.row):
            raise Manual(
                f"`{draw.text}` in row {draw.row} of {draw.path.name} draws an order while it trains; if the ranks share the "
                "samples by it, give it a generator of its own, seeded alike, and then seed the data set by the rank"
            )


def calls_in(level: Level, names: Collection[str]) -> Iterator[cst.Call]:
    """Yield the calls in the statement of ``level`` of something named as one of ``names``."""
    for call in find(level.statement, cst.Call):
        name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        if isinstance(name, cst.Name) and name.value in names:
            yield call
