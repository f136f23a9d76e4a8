"""``rank-seed``: random numbers that differ between ranks, weights and shards that do not."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.base import Codemod, Manual
from codemods.imports import joined, reach_from
from codemods.ranks import in_file, names_in, rank_at
from codemods.seed_number import SeedNumber, rank_free, seed_number
from codemods.statements import comments_above, in_lines, indentation
from codemods.training_start import (
    Level,
    before_iterators,
    outside_branches,
    precedes,
    qualified,
    require_network,
    require_no_later_shards,
    require_no_order,
    require_once,
    shuffled_shards,
    ways_to,
)
from mslint.findings import Applicability, Edit, Finding, Fix, Position
from mslint.program.datasets import dataset_class
from mslint.program.distribution import Run, distribution
from mslint.program.parallel_runs import parallel_runs
from mslint.program.randomness import Seed, Stream, seeded_by
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import Place
from mslint.program.shards import is_sharded
from mslint.semantics.module import Module

_DATASET = "mindspore.dataset"
_REMARK = "# Weights and shards agree between ranks; what is drawn from here on differs."


class RankSeed(Codemod):
    """Seed what is drawn for samples by the rank, after network and data set were built from equal seeds.

    What it does
        Leaves the seed at the top equal on all ranks, or makes it equal where it depends on the rank, and puts
        ``dataset.config.set_seed(SEED + rank)`` before the statement that starts training: outside of all loops, after the
        network and the sharded data set are built, before anything iterates. It seeds numpy, random and the transforms
        of the data set; MindSpore fixed the order of the shards when the source was built. The seed is written as the
        program has it there, the rank by a variable that holds it or by ``get_rank()``.

    When it is safe
        Never: other random numbers are the purpose.

    When it is unsafe
        Always. Augmentation and noise differ between ranks afterwards, and from those of before on each rank. Where the
        seed depended on the rank, initial weights and the order of the samples become equal on all ranks. ``nn.Dropout``
        fixes its seed when it is built: its masks stay equal between ranks.

    When it is left to you
        The data set is not sharded (run ``shard-dataset`` first); where it is built, or where training starts, is out of
        sight; a shuffled, sharded data set is built after training has started, so that its order would depend on the rank;
        training is started from several places; it is built and trained on in one statement; the order in which the ranks
        share the samples is drawn from numpy or random while it trains.
    """

    name = "rank-seed"
    summary = "equal seeds until network and shards are built, then dataset.config.set_seed(SEED + rank)"
    applicability = (
        "unsafe: other random numbers are drawn; manual where the place between building and training is not seen"
    )
    rules = ("MS302", "MS303")

    def applies(self, finding: Finding) -> bool:
        return isinstance(finding.subject, Seed)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        seed = finding.subject
        assert isinstance(seed, Seed)
        by_rank = finding.code == "MS303"
        edits, places = _reseeded(module, seed, by_rank)
        return Fix(self.name, Applicability.UNSAFE, _message(places, by_rank), edits)


def _message(places: list[str], by_rank: bool) -> str:
    first = "make this seed equal on all ranks" if by_rank else "keep this seed, by which weights and shards agree"
    return (
        f"{first}, and seed numpy, random and the data set by the rank before {' and '.join(places)}, where network and data "
        "set are built; other numbers are drawn then, and nn.Dropout still draws the same masks on all ranks"
    )


def _reseeded(home: Module, seed: Seed, by_rank: bool) -> tuple[tuple[Edit, ...], list[str]]:
    """Return the edits for all programs that ``seed`` serves, and the places in front of which they seed anew."""
    runs = _runs(home, by_rank)
    edits: list[Edit] = []
    places: list[str] = []
    for run in runs:
        event = next((event for event in run.events if _is(event, seed)), None)
        if event is None:
            continue
        reseeding = _Reseeding(home, run, event, by_rank)
        # Runs that differ in what they hold start at the same place, too: it is seeded anew once.
        edits += reseeding.edits(anew=reseeding.place not in places)
        places.append(reseeding.place)
    if not edits:
        raise Manual(
            "how the program gets from this seed to its training is out of sight; seed the data set anew by hand, by "
            "dataset.config.set_seed(SEED + get_rank()), once network and data set are built"
        )
    return tuple(dict.fromkeys(edits)), list(dict.fromkeys(places))


def _runs(home: Module, by_rank: bool) -> list[Run]:
    path = home.source.path.absolute()
    if by_rank:
        return distribution(home.program).runs(path)
    return [parallel.run for parallel in parallel_runs(home.program, path)]


def _is(event: Event, seed: Seed) -> bool:
    return event.place.path == seed.call.path and event.place.row == seed.call.row and bool(seeded_by(event.name))


class _Reseeding:
    """The seeds of one run: equal ones at first, one by the rank before it trains."""

    def __init__(self, home: Module, run: Run, seed: Event, by_rank: bool) -> None:
        self.home = home
        self.run = run
        self.seed = seed
        self.by_rank = by_rank
        if by_rank and seed.number > self._first_source():
            raise Manual(
                "the data set that is trained on is built before, and rightly so; what is shuffled and sharded after this "
                "seed is another one: build it before, or with shuffle=False"
            )
        self.path, self.level, self.number = self._start()

    @property
    def place(self) -> str:
        """The place in front of which it is seeded anew, for people."""
        own = self.level.module is self.home
        return f"line {self.level.row}" if own else f"{self.level.module.source.filename}:{self.level.row}"

    def _start(self) -> tuple[list[Level], Level, SeedNumber]:
        """Return the way to the training from where the new seed belongs, the place there, and the seed as written there.

        That is as near to the training as can be: in the function that trains, or in one that calls it.
        """
        places = dict.fromkeys(self.run.rehearsal.trained[event.number] for event in self._trained())
        inner, path = ways_to(self.home, self.run, places)
        refusal: Manual | None = None
        for index in range(len(path)):
            for level in outside_branches(path[index]):
                try:
                    return self._start_at([level, *path[index + 1 :]], [*inner, *path[:index]])
                except Manual as reason:
                    refusal = reason if level is path[0] else refusal
        assert refusal is not None
        raise refusal

    def _start_at(self, path: list[Level], inner: list[Level]) -> tuple[list[Level], Level, SeedNumber]:
        first = path[0]
        built = (*self._trained(), *shuffled_shards(self.run))
        for event in built:
            if not precedes(self.run, path, event):
                raise Manual(
                    f"a data set is built in row {event.place.row} of {event.place.path.name}, not before the training in "
                    f"row {first.row} of {first.module.source.path.name} starts; build it in a statement before, so that "
                    "the data set can be seeded by the rank in between"
                )
        require_no_order(self.run, path)
        level = before_iterators(self.home, self.run, path, inner, built)
        require_network(self.run, path, level)
        require_once(self.run, path, built)
        require_no_later_shards(self.run, level)
        return path, level, self._number(path, level)

    def _trained(self) -> list[Event]:
        """Return the data sets that are trained on, each of them in shards."""
        trained = [self.run.events[number] for number in sorted(self.run.rehearsal.trained)]
        if not trained:
            raise Manual(
                "which data set is trained on is out of sight; seed it anew by hand, by dataset.config.set_seed(SEED + "
                "get_rank()), once network and sharded data set are built"
            )
        for event in trained:
            kind = dataset_class(event.name.rpartition(".")[2])
            if kind is None or not is_sharded(self.run, event, kind):
                raise Manual(
                    f"the data set built in row {event.place.row} of {event.place.path.name} is not sharded: by other seeds "
                    "each rank would read all of it in another order; shard it first (codemod shard-dataset)"
                )
        return trained

    def edits(self, anew: bool) -> Iterator[Edit]:
        """Yield the edits, those that seed anew among them if asked for."""
        for event in self._seeds_by_rank() if self.by_rank else ():
            yield from rank_free(self.home, self.run, event).edits
        if anew:
            yield from self._seed_anew()

    def _seeds_by_rank(self) -> Iterator[Event]:
        """Yield the seeds that depend on the rank, once each, before the training."""
        seen: set[Place] = set()
        for event in self.run.events:
            if seeded_by(event.name) and event.place not in seen and event.number < self._first_source():
                seen.add(event.place)
                if event is self.seed or rank_free(self.home, self.run, event).depends:
                    yield event

    def _first_source(self) -> int:
        return min(self.run.rehearsal.trained, default=len(self.run.events))

    def _number(self, path: list[Level], level: Level) -> SeedNumber:
        """Return how the seed is written where it is set anew: that of MindSpore before those of numpy and random."""
        before = [event for event in self.run.events if seeded_by(event.name) and event.number < self._first_source()]
        whole = [event for event in before if Stream.FRAMEWORK in seeded_by(event.name)]
        event = self.seed if self.by_rank else (whole or before or [self.seed])[0]
        found = seed_number(self.home, self.run, event, path, level, self.by_rank)
        if found is None:
            raise Manual(
                f"the seed is out of reach in row {level.row} of {level.module.source.path.name}, before which the "
                "data set is to be seeded by the rank; hand it down to there"
            )
        return found

    def _seed_anew(self) -> Iterator[Edit]:
        level, module = self.level, self.level.module
        names = names_in(self.run, module, qualified(module, level.function))
        rank, needed = rank_at(module, level.statement, names)
        reached = reach_from(module, _DATASET, ["config"], level.statement, "ds", whole=True)
        seed = rank if self.number.text in ("", "0") else f"{self.number.text} + {rank}"
        indent = indentation(module, level.statement)
        row = level.row - len(comments_above(module, level.statement))
        lines = [f"{indent}{_REMARK}", f"{indent}{reached.expressions['config']}.set_seed({seed})"]
        if self.number.test:
            lines[1:] = [f"{indent}if {self.number.test}:", f"{module.tree.default_indent}{lines[1]}"]
        if row > 1 and not module.lines[row - 2].strip():
            # A paragraph of its own before the one that trains.
            lines.append("")
        edits = [*joined([*needed, *reached.edits]), Edit(Position(row, 1), Position(row, 1), in_lines(module, lines))]
        yield from in_file(module, self.home, edits)
