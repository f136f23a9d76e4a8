"""Runs both sides of a verification in each mode and puts the answer together."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mslint.findings import Verdict
from mslint.verify.compare import compare_step, random_operators
from mslint.verify.conditions import Conditions
from mslint.verify.imports import project_files
from mslint.verify.job import Job, Timing, mirror_folder
from mslint.verify.mirror import SCRATCH, build, project_root
from mslint.verify.process import Run, launch, run
from mslint.verify.ranks import Rank, tell_ranks_apart
from mslint.verify.result import ModeResult, Rewrite, StepResult, StepTime, Verification

MODES = ("graph", "pynative")
_SIDES = ("original", "rewritten")
_FEWEST_TIMES = 3
_USUAL = Conditions()


class VerifierUnavailable(Exception):
    """MindSpore or a NumPy that it can work with is missing; the message says what to install."""


def require_mindspore() -> None:
    """Raise VerifierUnavailable unless a child could import MindSpore. Imports nothing itself."""
    if importlib.util.find_spec("mindspore") is None:
        raise VerifierUnavailable('verify needs MindSpore: pip install "mslint[verify]"')
    try:
        numpy = version("numpy")
    except PackageNotFoundError:
        raise VerifierUnavailable('verify needs NumPy: pip install "mslint[verify]"') from None
    if int(numpy.split(".")[0]) >= 2:
        # The wheel's compiled part is built for NumPy 1; with 2 the first tensor operation raises SystemError.
        raise VerifierUnavailable(f'MindSpore does not work with NumPy {numpy}: pip install "numpy<2"')


def verify(
    script: Path,
    replacements: Mapping[Path, bytes],
    *,
    arguments: Sequence[str] = (),
    entry: str | None = None,
    modes: Sequence[str] = MODES,
    timeout: float = 120,
    memory_gb: float = 8,
    conditions: Conditions = _USUAL,
    working_directory: Path | None = None,
    views: bool = False,
    time_rounds: int = 0,
    against: Path | None = None,
) -> Verification:
    """Run a script as it is and with some files replaced up to the first training steps, and compare these.

    ``replacements`` maps files of the user to their new content; with ``against`` another script stands in for that,
    which runs in its own project, beside its own modules; ``arguments`` are the script's own; with
    ``entry`` it is imported and that function called, instead of being run as the main program; ``timeout`` (seconds)
    and ``memory_gb`` hold for each run, of which there are two a mode, four where dropout has to be switched
    off; ``conditions`` say what the script finds there, and whether steps are run (else graph mode alone is looked at).
    With ``views`` the result holds the nodes of compiled graphs. With ``time_rounds`` each step is made that often once
    more, in two further runs a mode, for the time that it takes. The user's files are not written.

    Raises VerifierUnavailable if MindSpore is missing, and OSError if the script cannot be read.
    """
    require_mindspore()
    if not conditions.runs_steps:
        # PyNative mode compiles nothing: without running there is nothing to see.
        modes = ("graph",)
    script = script.resolve(strict=True)
    directory = (working_directory or Path.cwd()).resolve()
    replaced = {path.resolve(): content for path, content in replacements.items()}
    original = _Side(project_root(script, directory, replaced), script, directory, {})
    rewritten = replace(original, replacements=replaced) if against is None else _beside(original, against)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder:
        sides = _Sides(
            {"original": original, "rewritten": rewritten},
            tuple(arguments),
            entry,
            timeout,
            memory_gb,
            conditions,
            Path(folder).resolve(),
            views,
        )
        # Both modes at once: a child mostly waits for imports and compiles on one core.
        # Several ranks wait for each other, so that every core counts.
        with ThreadPoolExecutor(max_workers=1 if conditions.launch else len(modes)) as pool:
            try:
                results = tuple(pool.map(sides.verify, modes))
                if time_rounds:
                    # One mode after the other, with nothing else of ours running.
                    results = tuple(sides.timed(result, time_rounds) for result in results)
            finally:
                # An interrupt from the keyboard reaches this thread alone: the others end their children.
                sides.stop.set()
    verdict, reason = _overall(results)
    return Verification(
        script=str(script),
        verdict=verdict,
        reason=reason,
        modes=results,
        rewrites=_rewrites(original, rewritten),
    )


@dataclass(frozen=True)
class _Side:
    """A script in its project."""

    root: Path
    script: Path
    directory: Path
    """The working directory."""
    replacements: Mapping[Path, bytes]
    """What stands for files of the project."""


def _beside(original: _Side, script: Path) -> _Side:
    """The other side if it is another script: its working directory lies as that of the original lies."""
    script = script.resolve(strict=True)
    directory = original.directory
    if not script.is_relative_to(directory):
        directory = Path(os.path.normpath(script.parent / os.path.relpath(directory, original.script.parent)))
        if not directory.is_dir():
            directory = script.parent
    return _Side(project_root(script, directory, {}), script, directory, {})


def _rewrites(original: _Side, rewritten: _Side) -> tuple[Rewrite, ...]:
    """What the sides do not have in common: replaced files, or the modules that two scripts import."""
    if original.script == rewritten.script:
        return tuple(
            Rewrite(str(path), _text(path.read_bytes() if path.exists() else b""), _text(content))
            for path, content in rewritten.replacements.items()
        )
    sides = [_modules(side) for side in (original, rewritten)]
    texts = {
        place: tuple(_text(side[place].read_bytes()) if place in side else "" for side in sides)
        for place in {**sides[0], **sides[1]}
    }
    return tuple(
        Rewrite(str((sides[0] if place in sides[0] else sides[1])[place]), before, after)
        for place, (before, after) in texts.items()
        if before != after
    )


def _modules(side: _Side) -> dict[str, Path]:
    """The script and what it imports of its project, by their place beside it."""
    others = {os.path.relpath(path, side.script.parent): path for path in project_files(side.script)[1:]}
    return {"": side.script, **others}


@dataclass(frozen=True)
class _Sides:
    """The two sides of one verification, and how to run them."""

    sides: Mapping[str, _Side]
    arguments: tuple[str, ...]
    entry: str | None
    timeout: float
    memory_gb: float
    conditions: Conditions
    scratch: Path
    views: bool
    runs: dict[str, tuple[Run, Run]] = field(default_factory=dict)
    """The runs on which the answer for a mode rests."""
    stop: threading.Event = field(default_factory=threading.Event)

    def verify(self, mode: str) -> ModeResult:
        ranks = self._compare(mode, dropout=True)
        if any(
            step.verdict is Verdict.DIFFERENT and "Dropout" in " ".join(random_operators(step))
            for rank in ranks
            for step in rank.steps
        ):
            # Masks depend on how often and in what order dropout layers were built and run, not on what is computed.
            ranks = [
                rank.explained(lambda reason: f"{reason}, with dropout switched off on both sides: its masks differ")
                for rank in self._compare(mode, dropout=False)
            ]
        first = ranks[0]
        if first.rewritten is not None and len(ranks) == 1:
            self.runs[mode] = first.original, first.rewritten
        if not self.conditions.runs_steps:
            ranks = [rank.explained(lambda _: self._why_structure_only()) for rank in ranks]
        ranks = [replace(rank, steps=tuple(map(_random_warning, rank.steps))) for rank in ranks]
        verdict, reason = _over_ranks([_conclude(rank.original, rank.rewritten, rank.steps) for rank in ranks])
        runs = [run for rank in ranks for run in (rank.original, rank.rewritten) if run is not None]
        failed = next((run for run in runs if run.failure), first.rewritten or first.original)
        return ModeResult(
            mode=mode,
            verdict=verdict,
            reason=reason,
            steps=tuple(step for rank in ranks for step in rank.steps),
            stand_ins=tuple(dict.fromkeys(what for run in runs for what in run.report.get("stand_ins", ()))),
            output=failed.output if verdict is Verdict.UNVERIFIED or failed.failure else "",
            mindspore=first.original.report.get("mindspore"),
            native_mode=first.original.report.get("native_mode"),
        )

    def _why_structure_only(self) -> str:
        if self.conditions.ranks > 1:
            return (
                f"structure only: compiled for rank 0 of {self.conditions.ranks}, not run, as the other ranks "
                "are not there (--launch starts them)"
            )
        return "structure only: steps were compiled, not run"

    def _compare(self, mode: str, *, dropout: bool) -> list[Rank]:
        originals = self._runs(mode, "original", dropout=dropout)
        if not all(run.steps for run in originals):
            return [Rank(run, None, ()) for run in originals]
        rewritten = self._runs(mode, "rewritten", dropout=dropout, replay=self._out(mode, "original", dropout=dropout))
        ranks = []
        for original, other in zip(originals, rewritten, strict=True):
            common = min(len(original.steps), len(other.steps))
            steps = tuple(compare_step(mode, index, original, other, views=self.views) for index in range(common))
            ranks.append(Rank(original, other, steps))
        return tell_ranks_apart(ranks) if len(ranks) > 1 else ranks

    def timed(self, result: ModeResult, rounds: int) -> ModeResult:
        """Add to each step how long it takes on both sides, which make their steps by turns.

        Nothing is added where steps are not run, or by several ranks, which wait for each other.
        """
        if not (result.steps and result.mode in self.runs and self.conditions.runs_steps):
            return result
        turns = {side: self.scratch / f"{result.mode}-{side}.turn" for side in _SIDES}
        for pipe in turns.values():
            os.mkfifo(pipe)
        with ExitStack() as opened:
            # Opened for reading, too: so they exist before and after the children, and opening them waits for nobody.
            pipes = {side: os.open(pipe, os.O_RDWR) for side, pipe in turns.items()}
            for descriptor in pipes.values():
                opened.callback(os.close, descriptor)
            os.write(pipes["original"], b".")

            def measure(side: str, other: str, run: Run) -> list[list[float]]:
                steps = [(step["name"], step["location"]) for step in run.steps[: len(result.steps)]]
                timing = Timing(steps, rounds, str(turns[side]), str(turns[other]))
                try:
                    measured: list[list[float]] = self._run(result.mode, side, timing=timing).report.get("times", [])
                    return measured
                finally:
                    os.write(pipes[other], b"x")

            with ThreadPoolExecutor(max_workers=len(_SIDES)) as pool:
                before, after = pool.map(measure, _SIDES, reversed(_SIDES), self.runs[result.mode])
        return replace(
            result,
            steps=tuple(
                _with_time(step, *(times[index] if times else [] for times in (before, after)))
                for index, step in enumerate(result.steps)
            ),
        )

    def _run(self, mode: str, side: str, *, timing: Timing) -> Run:
        return run(self._job(mode, side, timing=timing), self.timeout, self.stop)

    def _runs(self, mode: str, side: str, *, dropout: bool, replay: Path | None = None) -> list[Run]:
        """One run for each rank."""
        job = self._job(mode, side, dropout=dropout, replay=replay)
        if self.conditions.launch:
            return launch(job, self.timeout, self.stop)
        return [run(job, self.timeout, self.stop)]

    def _place(self, mode: str, side: str, *, dropout: bool = True, timed: bool = False) -> Path:
        return self.scratch / f"{mode}-{side}{'' if dropout else '-without-dropout'}{'-timed' if timed else ''}"

    def _out(self, mode: str, side: str, *, dropout: bool) -> Path:
        return self._place(mode, side, dropout=dropout) / "out"

    def _job(
        self, mode: str, side: str, *, dropout: bool = True, replay: Path | None = None, timing: Timing | None = None
    ) -> Job:
        place = self._place(mode, side, dropout=dropout, timed=timing is not None)
        project = self.sides[side]
        mirror = build(project.root, project.script, project.directory, project.replacements, mirror_folder(place))
        return Job(
            script=str(mirror.script),
            arguments=list(self.arguments),
            entry=self.entry,
            directory=str(mirror.directory),
            mode=mode,
            root=str(mirror.root),
            out=str(place / "out"),
            replay=str(replay) if replay else None,
            dropout=dropout,
            sources=self.views and mode == "graph" and timing is None,
            timing=timing,
            conditions=self.conditions,
            scratch=str(place),
            protected=[str(folder) for one in self.sides.values() for folder in (one.root, one.directory)],
            memory_gb=self.memory_gb,
        )


def _conclude(original: Run, rewritten: Run | None, steps: Sequence[StepResult]) -> tuple[Verdict, str]:
    """The verdict of one mode."""
    if rewritten is None:
        return Verdict.UNVERIFIED, f"the original script {_no_step(original)}"
    if rewritten.broke and not original.failure:
        had = f"{len(rewritten.steps)} of the original's {len(original.steps)} training steps were begun"
        return Verdict.DIFFERENT, f"the rewritten script {rewritten.failure}, the original does not fail; {had}"
    if len(original.steps) != len(rewritten.steps):
        which = f"the original has {len(original.steps)} training steps, the rewritten script {len(rewritten.steps)}"
        if rewritten.failure and not original.failure:
            return Verdict.UNVERIFIED, f"the rewritten script {rewritten.failure}; {which}"
        return Verdict.UNVERIFIED, which
    for verdict in (Verdict.DIFFERENT, Verdict.UNVERIFIED):
        reasons = [_told(step, steps) for step in steps if step.verdict is verdict]
        if reasons:
            # A step without numbers has its cause in how the run ended.
            ends = [f"the script {side.failure}" for side in (original, rewritten) if side.failure][:1]
            return verdict, "; ".join([*reasons, *(ends if verdict is Verdict.UNVERIFIED else [])])
    reasons = [_told(step, steps) for step in steps]
    if original.failure or rewritten.failure:
        reasons.append(f"the script {original.failure or rewritten.failure} later")
    return Verdict.EQUIVALENT, "; ".join(reasons)


def _over_ranks(conclusions: Sequence[tuple[Verdict, str]]) -> tuple[Verdict, str]:
    """The verdict of one mode from those of its ranks."""
    if len(conclusions) == 1:
        return conclusions[0]
    for verdict in (Verdict.DIFFERENT, Verdict.UNVERIFIED, Verdict.EQUIVALENT):
        told = [(rank, reason) for rank, (found, reason) in enumerate(conclusions) if found is verdict]
        if told and len(told) == len(conclusions) and len({reason for _, reason in told}) == 1:
            return verdict, f"on all {len(told)} ranks {told[0][1]}"
        if told:
            return verdict, "; ".join(f"rank {rank}: {reason}" for rank, reason in told)
    return Verdict.UNVERIFIED, "no rank was started"


def _random_warning(step: StepResult) -> StepResult:
    drawing = [operator for operator in random_operators(step) if "Dropout" not in operator]
    if step.verdict is not Verdict.DIFFERENT or not drawing:
        return step
    return replace(step, reason=f"{step.reason}; its random numbers ({', '.join(drawing)}) may be all that differs")


def _with_time(step: StepResult, before: list[float], after: list[float]) -> StepResult:
    if min(len(before), len(after)) < _FEWEST_TIMES:
        remark = "its time could not be taken: the script does not make it often enough within the time limit"
        return replace(step, remarks=(*step.remarks, remark))
    return replace(step, time=StepTime(tuple(before), tuple(after)))


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


def _no_step(run: Run) -> str:
    how = f"{run.failure} before its first training step" if run.failure else "ended without a training step"
    return "; ".join([how, *run.report.get("lacks", ())])


def _told(step: StepResult, steps: Sequence[StepResult]) -> str:
    return step.reason if len(steps) == 1 else f"{step.name}: {step.reason}"


def _overall(results: Sequence[ModeResult]) -> tuple[Verdict, str]:
    """Different in one mode is different; a mode that could not be verified leaves the verdict to the other."""
    for verdict in (Verdict.DIFFERENT, Verdict.EQUIVALENT, Verdict.UNVERIFIED):
        having = [result for result in results if result.verdict is verdict]
        if not having:
            continue
        if len({result.reason for result in having}) == 1 and len(having) == len(results):
            return verdict, having[0].reason
        told = [f"{result.mode}: {result.reason}" for result in having]
        told += [
            f"{result.mode} mode not verified: {result.reason}"
            for result in results
            if result.verdict is Verdict.UNVERIFIED and verdict is not Verdict.UNVERIFIED
        ]
        told += [
            f"{result.mode}: equivalent"
            for result in results
            if result.verdict is Verdict.EQUIVALENT and verdict is Verdict.DIFFERENT
        ]
        return verdict, "; ".join(told)
    return Verdict.UNVERIFIED, "no mode asked for"
