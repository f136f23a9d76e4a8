"""How the programs that a file belongs to train it: outputs of untrained networks in losses, networks frozen in vain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from mslint.program.following.follower import Exhausted
from mslint.program.following.values import Class, Function, Scope, Stretch, Value
from mslint.program.networks.branches import Branch, exclude_each_other
from mslint.program.networks.interpreter import Interpreter
from mslint.program.networks.parts import below
from mslint.program.networks.values import Feature, Hush, Thing, TrainingStep, Weights, WithLoss
from mslint.program.project import Program

_MOST_ENTRIES = 12
_MOST_STEPS = 200_000
_MOST_ALTERNATIVES = 3
_TRAINS = re.compile(
    r"TrainOneStep|value_and_grad|GradOperation|\bgrad\(|\bModel\(|build_train_network|ForwardValueAndGrad"
)
_FREEZES = re.compile(r"""\.requires_grad\s*=|["']requires_grad["']""")


@dataclass(frozen=True)
class LossInput:
    """A ``feature`` that reaches a loss.

    ``trained`` says that its network is among the weights although it is frozen, ``shared`` that the same code is used where
    it is trained: then ``place`` is the call in the loss itself, else the call that returns nothing but the feature.
    """

    feature: Feature
    place: Stretch
    trained: bool
    known: bool
    """Whether all is known that it rests on: what the step trains, and every loss that the call is part of."""
    alone: bool = False
    """Whether its own loss leaves the call closed."""
    shared: bool = False


@dataclass(frozen=True)
class VainFreeze:
    """A network that ``hush`` is meant to freeze and that the training step at ``step`` trains nevertheless.

    ``pretrained`` says that it got its weights from a checkpoint and was hushed by what the step runs when that was made.
    """

    hush: Hush
    pretrained: bool
    step: Stretch
    weights: Stretch
    """Where the weights of that step are listed: its optimizer."""
    every: bool
    """Whether they are listed with the frozen ones."""
    other: Stretch | None
    """Another training step that trains the network, as it should."""
    picked: bool
    """Whether the weights are listed under a test, which may leave the network out."""


@dataclass
class Training:
    """What following some code found.

    ``opened`` are the calls through which some loss has an open gradient path; ``visited`` the classes that were followed.
    """

    inputs: set[LossInput] = field(default_factory=set)
    opened: set[Stretch] = field(default_factory=set)
    visited: set[str] = field(default_factory=set)
    vain: set[VainFreeze] = field(default_factory=set)
    spared: set[Hush] = field(default_factory=set)
    """Where a hushed network is left out of the weights of a step that runs it: the freeze that was meant."""
    complete: bool = True
    """Whether all of it was followed to the end."""

    def add(self, other: Training) -> None:
        """Take over what ``other`` found."""
        self.inputs |= other.inputs
        self.opened |= other.opened
        self.visited |= other.visited
        self.vain |= other.vain
        self.spared |= other.spared
        self.complete = self.complete and other.complete

    def close(self) -> None:
        """Drop the inputs that must stay open for some other loss, or see them as shared with it."""
        closed = {item for item in self.inputs if item.place not in self.opened}
        for item in self.inputs - closed:
            outer = item.feature.outer
            if item.alone and item.feature.layers > 1 and outer is not None and outer != item.place:
                closed.add(replace(item, place=outer, shared=True))
        self.inputs = closed
        self.vain = {item for item in self.vain if item.hush not in self.spared}

    def features(self, path: Path) -> list[LossInput]:
        """Return the calls in ``path`` whose output could be stopped, whatever the loss."""
        by_place: dict[Stretch, LossInput] = {}
        for item in sorted(self.inputs, key=_weakest_last):
            if item.place.path == path:
                by_place[item.place] = replace(item, known=item.known and self.complete)
        return list(by_place.values())


def _weakest_last(item: LossInput) -> tuple[bool, bool, bool, str, Stretch]:
    # The last two decide nothing but that the message is the same in every run.
    return not item.shared, item.trained, not item.known, item.feature.network, item.feature.reason.place


def training_of(program: Program, path: Path) -> Training:
    """Return how ``path`` is trained by the scripts that lead to it, and by itself."""
    return program.remember((training_of, path), lambda: _training_of(program, path))


def _training_of(program: Program, path: Path) -> Training:
    result = Training()
    entries = (entry for entry in _entries(program, path) if _mentions(program, entry, _TRAINS))
    for entry in islice(entries, _MOST_ENTRIES):
        result.add(program.remember((Training, entry), partial(_run, program, entry)))
    result.complete = result.complete and next(entries, None) is None
    result.close()
    for found in _alone(program, path, result.visited):
        result.inputs |= {item for item in found.inputs if item.place not in result.opened}
    return result


def _entries(program: Program, path: Path) -> list[Path]:
    """Return the scripts that lead to ``path``, those nearest to it first."""
    found = [user for user in program.users(path) if program.is_script(user)]
    return sorted(found, key=lambda file: (len(set(file.parents) ^ set(path.parents)), file))


def _run(program: Program, entry: Path) -> Training:
    """Follow ``entry`` as a script, then each of its training steps."""
    interpreter = Interpreter(program, _MOST_STEPS)
    result = Training()
    try:
        interpreter.run_file(entry)
        interpreter.run_unstarted()
    except (Exhausted, RecursionError):
        result.complete = False
    result.complete = result.complete and interpreter.is_complete
    for steps in _by_target(interpreter.training_steps):
        result.add(_follow(interpreter, steps[0].target, _together(steps), steps[0].place, [s.branches for s in steps]))
    return result


def _by_target(steps: list[TrainingStep]) -> list[list[TrainingStep]]:
    groups: dict[tuple[int, ...], list[TrainingStep]] = {}
    for step in steps:
        groups.setdefault(_identity(step.target), []).append(step)
    return list(groups.values())


def _identity(target: Value) -> tuple[int, ...]:
    if isinstance(target, WithLoss):
        return (*_identity(target.network), *_identity(target.loss))
    if isinstance(target, Function):
        return id(target.node), id(target.bound)
    return (id(target),)


def _together(steps: list[TrainingStep]) -> Weights:
    """Return what all steps on one target train: a gradient path must stay open for each of them."""
    things = tuple(dict.fromkeys(thing for step in steps for thing in step.weights.things))
    known = all(step.weights.known for step in steps)
    every = any(step.weights.every for step in steps)
    held = frozenset().union(*(step.weights.held for step in steps))
    whole = frozenset().union(*(step.weights.whole for step in steps))
    return Weights(things, known, every, steps[0].weights.place, held, whole)


def _follow(
    interpreter: Interpreter,
    target: Value,
    weights: Weights | None,
    place: Stretch,
    ways: Sequence[frozenset[Branch]] = (frozenset(),),
) -> Training:
    """Follow the loss that ``target`` computes; ``ways`` say how undecided tests go where the steps on it are made."""
    interpreter.opened, interpreter.visited, interpreter.called_things = set(), set(), set()
    interpreter.steps_left = _MOST_STEPS
    interpreter.choice, interpreter.alternatives = 0, 1
    result = Training(opened=interpreter.opened, visited=interpreter.visited)
    hushed: set[Thing] = set()
    known = weights is not None and weights.known
    while interpreter.choice < min(interpreter.alternatives, _MOST_ALTERNATIVES):
        try:
            flow = interpreter.follow(target, weights)
        except (Exhausted, RecursionError):
            # What was seen so far may not be reported: a later path could open it.
            return Training(opened=interpreter.opened, visited=interpreter.visited, complete=False)
        # What is frozen in other runs than those that train is trained in these.
        elsewhere = {f for f in flow.features if all(exclude_each_other(f.reason.branches, way) for way in ways)}
        interpreter.opened |= {feature.place for feature in elsewhere}
        if flow.trained:
            result.inputs |= {
                LossInput(
                    feature,
                    feature.place,
                    trained=known and feature.weighted,
                    known=known,
                    alone=known and feature.place not in interpreter.opened,
                )
                for feature in flow.features - elsewhere
            }
        hushed |= flow.hushed
        interpreter.choice += 1
    result.complete = interpreter.alternatives <= _MOST_ALTERNATIVES
    if weights is not None and weights.known:
        _judge_hushed(interpreter, hushed, target, weights, place, result)
    return result


def _judge_hushed(
    interpreter: Interpreter, reached: set[Thing], target: Value, weights: Weights, step: Stretch, result: Training
) -> None:
    """Find out what became of the networks that the step runs and that were hushed; ``reached`` get gradients."""
    trained = {item for root in weights.things for item in below(root) if interpreter.trains(item)}
    for thing in interpreter.things:
        if not thing.hushed or id(thing) not in interpreter.called_things:
            continue
        own = set(below(thing))
        if not own & trained:
            result.spared.update(thing.hushed)
        elif thing in reached and trained - own:
            for hush in thing.hushed:
                made = hush.maker is not None and (hush.maker is target or id(hush.maker) in interpreter.called_things)
                other = _trained_by_another(interpreter, thing, target)
                pretrained = thing.loaded and made
                picked = not any(thing in set(below(root)) for root in weights.things if id(root) in weights.whole)
                result.vain.add(VainFreeze(hush, pretrained, step, weights.place, weights.every, other, picked))


def _trained_by_another(interpreter: Interpreter, thing: Thing, target: Value) -> Stretch | None:
    """Return where a step on something else than ``target`` trains ``thing``, if one does."""
    own = {id(item) for item in below(thing)}
    steps = (step for step in interpreter.training_steps if _identity(step.target) != _identity(target))
    return next((step.place for step in steps if own & step.weights.held), None)


def _alone(program: Program, path: Path, visited: set[str]) -> Iterator[Training]:
    """Follow the cells of ``path`` that no script leads to, from the outermost cells that build them."""
    # Without a script, only requires_grad can tell what is not trained.
    if not any(_freezes(program, user) for user in program.users(path)):
        return
    followed: set[str] = set()
    for name, facts in program.facts(path).classes.items():
        if "construct" not in facts.methods or f"{path}:{name}" in visited:
            continue
        for root in _outermost(program, f"{path}:{name}"):
            if root in followed or root in visited:
                continue
            followed.add(root)
            if _freezes(program, _path(root)):
                yield program.remember((_follow_class, root), partial(_follow_class, program, root))


def _outermost(program: Program, reference: str) -> list[str]:
    """Return the cells that build the class, or build what builds it; the class itself if none does."""
    seen, queue, found = {reference}, [reference], []
    while queue and len(seen) < 50:
        current = queue.pop()
        builders = [item for item in _builders(program, current) if item not in seen]
        if not builders and current not in found:
            found.append(current)
        seen.update(builders)
        queue.extend(builders)
    return found


def _builders(program: Program, reference: str) -> list[str]:
    return program.remember((_builders, reference), lambda: list(_find_builders(program, reference)))


def _find_builders(program: Program, reference: str) -> Iterator[str]:
    """Yield the classes that build the class ``reference``, wherever they keep it."""
    home = _path(reference)
    name = reference.rpartition(":")[2]
    for user in sorted({home, *program.importers(home)}):
        for other, callees in program.classes_calling(user, name):
            is_builder = any(program.dotted_in(user, callee) == reference for callee in callees)
            if is_builder and f"{user}:{other}" != reference:
                yield f"{user}:{other}"


def _follow_class(program: Program, reference: str) -> Training:
    path = _path(reference)
    tree = program.tree(path)
    name = reference.rpartition(":")[2]
    node = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name), None) if tree else None
    if node is None:
        return Training()
    interpreter = Interpreter(program, _MOST_STEPS)
    try:
        thing = interpreter.make_alone(Class(Scope(path, {}), node))
    except (Exhausted, RecursionError):
        return Training()
    found = _follow(interpreter, thing, None, Stretch.of(path, node))
    found.close()
    return found


def _freezes(program: Program, path: Path) -> bool:
    return program.remember((_freezes, path), lambda: _mentions(program, path, _FREEZES))


def _mentions(program: Program, path: Path, words: re.Pattern[str]) -> bool:
    """Tell whether ``words`` occur in ``path`` or in what it imports."""
    return any(program.says(file, words) for file in program.reachable(path))


def _path(reference: str) -> Path:
    return Path(reference.rpartition(":")[0])
