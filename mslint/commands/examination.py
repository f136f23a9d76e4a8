"""All files of a run examined: what check reports and the baseline holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codemods.registry import AnyCodemod, all_codemods
from mslint.commands.garbage import collect_new, rare_collections
from mslint.commands.proposals import examine
from mslint.commands.work import Work
from mslint.config import Version
from mslint.console import Progress, error
from mslint.engine import Checked, Screened, live_rules, screened
from mslint.findings import Finding
from mslint.rules.registry import AnyRule, Narrowed
from mslint.source.text import Source

if TYPE_CHECKING:
    from mslint.cache.inscriptions import Scribe
    from mslint.cache.results import Results, Settings
    from mslint.cache.store import Store

_FEW = 20
"""So many files in which no rule may fire are sooner checked than looked up."""
_WORTH_A_PROCESS = 100_000
"""Characters of source in which rules may fire that take about two seconds."""


@dataclass
class Examination:
    """The findings in all files, and the texts they are in by name.

    ``complete`` unless something could not be checked to the end. ``asked`` holds, for each file that could, the codes of
    the rules all of whose findings are known.
    """

    findings: list[Finding] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    asked: dict[Path, frozenset[str]] = field(default_factory=dict)


@dataclass
class _Task:
    """One file to examine; for ``silent`` rules the name is known of what it rests on that they find nothing."""

    source: Source
    rules: Sequence[AnyRule]
    target_version: Version
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """All that its findings depend on beside the program."""
        rules = [(rule.code, sorted(rule.severities) if isinstance(rule, Narrowed) else None) for rule in self.rules]
        cells = self.source.notebook.document if self.source.notebook else None
        return (rules, self.target_version, self.source.filename, str(Path.cwd()), cells)

    @cached_property
    def effort(self) -> int:
        """How much work it may be, in characters."""
        return len(self.source.text) if live_rules(self.rules, self.source.text, self.silent) else 0

    def let_go_of_text(self) -> None:
        """Forget the text: of a file without findings, nothing more is told."""
        self.source = replace(self.source, text="")


class _Outcome(NamedTuple):
    """What was found in one file; ``rests`` names what that rests on beside the file itself, None if on nothing else.

    ``silent`` names what it rests on, the file with it, that some rules found nothing. ``keepable`` if all that it rests on
    is known; not what is known from an earlier run.
    """

    findings: tuple[Finding, ...]
    failures: tuple[str, ...] = ()
    keepable: bool = False
    rests: str | None = None
    silent: Mapping[str, str] = {}


class _Part(NamedTuple):
    """What came of some of the files, what all that rests on, and whether no file was seen to change meanwhile."""

    outcomes: list[_Outcome]
    written: dict[str, str]
    steady: bool


def examine_all(work: Work, open_store: Callable[[], Store | None] = lambda: None, jobs: int | None = 1) -> Examination:
    """Examine the files of ``work``; what fails is told at once.

    What the store holds of earlier runs is not worked out again. ``jobs`` processes share the work, None: as many as it is
    worth.
    """
    done = Examination()
    tasks: list[_Task] = []
    for source in work.sources():
        if source is None:
            done.complete = False
        else:
            tasks.append(_Task(source, work.rules_for(source.file), work.version_for(source.file)))
    results: Results | None = None
    if len(tasks) > _FEW or any(task.effort for task in tasks):
        results = _results(work, open_store())
    outcomes = _recalled(tasks, results) if results else {}
    with Progress(len(tasks)) as progress, rare_collections():
        for index, outcome in _examined(tasks, outcomes, work, results, jobs):
            progress.step(tasks[index].source.filename)
            outcomes[index] = outcome
            if not outcome.findings:
                tasks[index].let_go_of_text()
    for index, task in enumerate(tasks):
        _take(task, outcomes[index], work, done)
    if results:
        _keep(tasks, outcomes, results)
    return done


def _results(work: Work, store: Store | None) -> Results | None:
    if store is None:
        return None
    from mslint.cache.results import Results

    return Results(store, work.program)


def _recalled(tasks: list[_Task], results: Results) -> dict[int, _Outcome]:
    found: dict[int, _Outcome] = {}
    for index, task in enumerate(tasks):
        if not task.source.from_stdin:
            known, silent = results.recall(task.source.path, _content(task.source), task.settings)
            if known is not None:
                found[index] = _Outcome(known)
            elif silent:
                tasks[index] = replace(task, silent=silent)
    return found


def _keep(tasks: Sequence[_Task], outcomes: dict[int, _Outcome], results: Results) -> None:
    for index, task in enumerate(tasks):
        outcome, source = outcomes[index], task.source
        if outcome.keepable and not outcome.failures and not source.from_stdin:
            results.keep(source.path, task.settings, outcome.findings, outcome.rests, outcome.silent)
    results.save()


def _content(source: Source) -> bytes:
    """Return what the program has for the file: of a notebook the code in it, else its bytes."""
    return source.text.encode("utf-8", "surrogatepass") if source.notebook else source.encode(source.text)


def _examined(
    tasks: Sequence[_Task], known: dict[int, _Outcome], work: Work, results: Results | None, jobs: int | None
) -> Iterator[tuple[int, _Outcome]]:
    """Yield the outcomes of ``tasks``, those ``known`` apart, as they come."""
    open_tasks = [index for index in range(len(tasks)) if index not in known]
    efforts = {index: tasks[index].effort for index in open_tasks}
    processes = _processes(sum(efforts.values()), jobs)
    if processes == 1:
        examined = _Examined(work, results is not None)
        for number, outcome in examined.outcomes([tasks[index] for index in open_tasks]):
            yield open_tasks[number], outcome
        if results:
            results.learn(examined.written)
        return
    import mslint.semantics.module  # noqa: F401 - once, and not once in every process
    from mslint.cache.results import Results
    from mslint.cache.store import Store
    from mslint.commands.processes import each

    parts = _parts(tasks, efforts, results or Results(Store(None), work.program), processes)
    work_on = partial(_examine_part, work=work, keeps=results is not None)
    for number, part in each(work_on, [[tasks[index] for index in part] for part in parts], processes):
        yield from zip(parts[number], part.outcomes, strict=True)
        work.program.steady &= part.steady
        if results:
            results.learn(part.written)


def _processes(effort: int, jobs: int | None) -> int:
    if jobs is not None:
        return jobs
    return max(1, min(_processors(), effort // _WORTH_A_PROCESS))


def _processors() -> int:
    """Return how many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parts(tasks: Sequence[_Task], efforts: dict[int, int], results: Results, processes: int) -> list[list[int]]:
    """Divide the tasks into parts for one process each, the largest first.

    Files that imports connect share what is worked out for them, but one large program must not keep a single process busy.
    """
    index_of = {tasks[index].source.path: index for index in efforts}
    most = max(sum(efforts.values()) // processes, _WORTH_A_PROCESS)
    parts: list[list[int]] = []
    for company in results.companies(index_of):
        size = most
        for path in company:
            index = index_of[path]
            if size >= most:
                parts.append([])
                size = 0
            parts[-1].append(index)
            size += efforts[index]
    return sorted(parts, key=lambda part: -sum(efforts[index] for index in part))


def _examine_part(part: Sequence[_Task], work: Work, keeps: bool) -> _Part:
    examined = _Examined(work, keeps)
    outcomes = dict(examined.outcomes(part))
    return _Part([outcomes[number] for number in range(len(part))], examined.written, work.program.steady)


class _Examined:
    """Files examined one by one; ``keeps`` if what is found is to be kept, with what it rests on."""

    def __init__(self, work: Work, keeps: bool) -> None:
        self._work = work
        self._keeps = keeps

    def outcomes(self, tasks: Sequence[_Task]) -> Iterator[tuple[int, _Outcome]]:
        """Yield what is found in each of ``tasks``, with its number, files that run together one after the other."""
        codemods = all_codemods()  # a plugin that does not load is told, whatever the files
        waking: dict[Path, tuple[int, Screened]] = {}
        for number, task in enumerate(tasks):
            known = screened(task.source, task.rules, task.silent)
            if known.idle is not None:  # nothing of it rests on the program, which would have to be read
                rests = self._scribe.together(task.silent.values()) if task.silent else None
                yield number, _Outcome(known.idle.findings, (), self._keeps, rests, task.silent)
            else:
                waking[task.source.path] = (number, known)
        for company in self._work.program.together(waking) if waking else ():
            collect_new()
            for path in company:
                number, known = waking[path]
                yield number, self._outcome(tasks[number], known, codemods)

    def _outcome(self, task: _Task, known: Screened, codemods: Sequence[AnyCodemod]) -> _Outcome:
        program = self._work.program
        checked, grounds = program.noting(
            lambda: examine(task.source, task.rules, program, codemods, task.target_version, known)
        )
        findings = tuple(replace(finding, subject=None) for finding in checked.findings)
        if checked.module is not None:
            checked.module.forget()
        if not self._keeps or not grounds.certain:
            return _Outcome(findings, checked.failures)
        rests = self._scribe.name(grounds, task.source.path, findings, task.silent.values())
        silent = {code: self._scribe.whole(ground) for code, ground in checked.silent.items()}
        return _Outcome(findings, checked.failures, True, rests, {**task.silent, **silent})

    @property
    def written(self) -> dict[str, str]:
        """What all that was found rests on, written down, by name."""
        return self._scribe.written

    @cached_property
    def _scribe(self) -> Scribe:
        from mslint.cache.inscriptions import Scribe

        return Scribe(self._work.program)


def _take(task: _Task, outcome: _Outcome, work: Work, done: Examination) -> None:
    source = task.source
    for failure in outcome.failures:
        error(failure)
    if Checked(source, outcome.findings, failures=outcome.failures).complete:
        codes = (rule.code for rule in task.rules if not isinstance(rule, Narrowed))
        done.asked[source.file] = frozenset(codes)
    else:
        done.complete = False
    if outcome.findings:
        from mslint.source.notebook import in_cells

        done.findings += (in_cells(finding, work.notebooks) for finding in outcome.findings)
        done.texts |= source.notebook.texts() if source.notebook else {source.filename: source.text}
