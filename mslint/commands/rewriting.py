"""Sources rewritten by codemods, pass after pass, until they have nothing more to propose."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.registry import AnyCodemod
from mslint.commands.garbage import rare_collections
from mslint.commands.proposals import examine
from mslint.config import NEWEST, Version
from mslint.console import Progress, internal_error
from mslint.engine import SYNTAX_ERROR, Checked
from mslint.findings import Applicability, Edit, Finding
from mslint.rules.engine.unused_suppression import UnusedSuppression
from mslint.rules.registry import AnyRule, all_rules
from mslint.source.edits import apply_edits, overlap
from mslint.source.statements import same_code
from mslint.source.text import Source, may_suppress, shown

if TYPE_CHECKING:
    from mslint.program.project import Program
    from mslint.semantics.module import Module

MOST_PASSES = 10


@dataclass
class Rewritten:
    """What became of one source.

    ``left`` are the findings that remain, at their places in ``text``; each one's fix says why. Where there are
    ``failures`` (internal errors) ``text`` is the old text and nothing was applied. ``partners`` are the files that a fix
    changed together with this one: all of them are to be written, or none.
    """

    source: Source
    text: str
    applied: list[Finding] = field(default_factory=list)
    left: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()
    partners: set[Path] = field(default_factory=set)

    @property
    def changed(self) -> bool:
        """Whether the text differs from the source's."""
        return self.text != self.source.text

    @property
    def changed_code(self) -> bool:
        """Whether more than comments and layout changed."""
        return self.changed and not same_code(self.text, self.source.text)

    @property
    def current(self) -> Source:
        """The source with its new text."""
        return replace(self.source, text=self.text)

    def give_up(self, *failures: str) -> None:
        """Go back to the old text."""
        self.text, self.applied, self.left, self.failures = self.source.text, [], (), (*self.failures, *failures)


def rewrite_source(
    source: Source,
    program: Program,
    codemods: Sequence[AnyCodemod],
    unsafe: bool = False,
    target_version: Version = NEWEST,
    rules: Iterable[AnyRule] | None = None,
) -> Rewritten:
    """Return ``source`` alone rewritten by ``codemods`` (see ``rewrite_sources``)."""
    allowed = tuple(all_rules() if rules is None else rules)
    return rewrite_sources([source], program, codemods, unsafe, lambda path: target_version, lambda path: allowed)[0]


def rewrite_sources(
    sources: Sequence[Source],
    program: Program,
    codemods: Sequence[AnyCodemod],
    unsafe: bool,
    version_for: Callable[[Path], Version],
    rules_for: Callable[[Path], Sequence[AnyRule]],
) -> list[Rewritten]:
    """Return ``sources`` rewritten by ``codemods``: by their safe fixes, with ``unsafe`` by the others too.

    ``version_for`` gives the MindSpore that a file is written for, ``rules_for`` the rules whose findings may be rewritten in
    it. A fix that edits several files is made only if all of them are among ``sources``.
    """
    accepted = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    rewriting = _Rewriting(sources, program, codemods, accepted, version_for, rules_for)
    rewriting.run()
    return list(rewriting.files.values())


class _Rewriting:
    def __init__(
        self,
        sources: Sequence[Source],
        program: Program,
        codemods: Sequence[AnyCodemod],
        accepted: set[Applicability],
        version_for: Callable[[Path], Version],
        rules_for: Callable[[Path], Sequence[AnyRule]],
    ) -> None:
        self.files = {source.path: Rewritten(source, source.text) for source in sources}
        self._program = program
        self._codemods = codemods
        self._codes = {code for codemod in codemods for code in codemod.rules}
        self._accepted = accepted
        self._version_for = version_for
        self._rules_for = rules_for
        self._passes = dict.fromkeys(self.files, 0)
        self._waiting = deque(self.files)
        self._clock = 0
        self._looked_at: dict[Path, int] = {}
        self._changed_at: dict[Path, int] = {}

    def run(self) -> None:
        """Rewrite until nothing changes any more."""
        with Progress(len(self.files)) as progress, rare_collections():
            while self._waiting:
                path = self._waiting.popleft()
                progress.step(self.files[path].source.filename)
                if not self.files[path].failures:
                    while self._pass(self.files[path]):
                        pass
                if not self._waiting:
                    self._waiting.extend(self._to_look_at_again())

    def _to_look_at_again(self) -> list[Path]:
        """Return the files that can run together with one that has changed since they were looked at."""
        latest: dict[Path, int] = {}
        for changed, when in self._changed_at.items():
            for path in self._program.neighbourhood(changed):
                latest[path] = max(latest.get(path, 0), when)
        open_files = (path for path, file in self.files.items() if not file.failures)
        return [path for path in open_files if latest.get(path, 0) > self._looked_at.get(path, 0)]

    def _pass(self, file: Rewritten) -> bool:
        """Make the fixes that ``file`` needs and that go together; tell whether there were any."""
        path = file.source.path
        self._looked_at[path] = self._clock
        checked = examine(
            file.current, self._rules(file), self._program, self._codemods, self._version_for(file.source.file)
        )
        wanted = self._codes | {SYNTAX_ERROR[0]}
        file.left = tuple(self._within_reach(finding) for finding in checked.findings if finding.code in wanted)
        if not checked.complete:
            self._give_up(file, self._why(file, checked))
            return False
        chosen = self._together(path, file.left)
        if not chosen:
            return False
        if self._passes[path] == MOST_PASSES:
            unsettled = RuntimeError(f"still not settled after {MOST_PASSES} passes; the file is left as it was")
            self._give_up(file, (_blame(chosen, file.source, unsettled),))
            return False
        try:
            texts = self._applied(path, checked.module, chosen)
        except Exception as exception:
            self._give_up(file, (_blame(chosen, file.source, exception),))
            return False
        self._passes[path] += 1
        file.applied += chosen
        self._take_over(path, texts)
        return True

    def _rules(self, file: Rewritten) -> list[AnyRule]:
        """Return the rules to ask: those whose findings can be rewritten, all if there are comments to be judged by them."""
        rules = self._rules_for(file.source.file)
        if UnusedSuppression.code in self._codes and may_suppress(file.text):
            return list(rules)
        return [rule for rule in rules if rule.code in self._codes]

    def _within_reach(self, finding: Finding) -> Finding:
        """Return ``finding``, left to the user if its fix edits files that are not being rewritten."""
        fix = finding.fix
        beyond = sorted({edit.filename for edit in fix.edits if edit.filename} - self._names) if fix else []
        if fix is None or not beyond:
            return finding
        message = f"{fix.message}; that edits {', '.join(shown(Path(name)) for name in beyond)} too: name all the files"
        return replace(finding, fix=replace(fix, applicability=Applicability.MANUAL, message=message, edits=()))

    @property
    def _names(self) -> set[str]:
        return {str(path) for path, file in self.files.items() if not file.failures}

    def _together(self, own: Path, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings whose fixes can be made in one pass; the others wait for the next."""
        chosen: list[Finding] = []
        taken: dict[Path, list[Edit]] = {}
        for finding in findings:
            fix = finding.fix
            if fix is None or fix.applicability not in self._accepted or not fix.edits:
                continue
            wanted = _by_file(fix.edits, own)
            if not any(overlap(edits, taken.get(path, ())) for path, edits in wanted.items()):
                chosen.append(finding)
                for path, edits in wanted.items():
                    taken.setdefault(path, []).extend(edits)
        return chosen

    def _applied(self, own: Path, module: Module | None, findings: Sequence[Finding]) -> dict[Path, str]:
        """Return the new texts, by file, once the fixes of ``findings`` are made and what they left unused is gone."""
        fixes = [finding.fix for finding in findings if finding.fix]
        wanted = _by_file((edit for fix in fixes for edit in fix.edits), own)
        texts = {path: apply_edits(self.files[path].text, edits) for path, edits in wanted.items()}
        used = {fix.codemod for fix in fixes}
        for codemod in self._codemods:
            if module is not None and codemod.name in used and own in texts:
                texts[own] = codemod().tidy(module, texts[own])
        return texts

    def _take_over(self, path: Path, texts: dict[Path, str]) -> None:
        self._clock += 1
        for changed, text in texts.items():
            self._changed_at[changed] = self._clock
            self.files[changed].text = text
            if changed != path:
                self.files[path].partners.add(changed)
                self.files[changed].partners.add(path)
                self._waiting.append(changed)
        self._program = self._program.with_texts(texts)

    def _why(self, file: Rewritten, checked: Checked) -> tuple[str, ...]:
        """Return what went wrong: a rule or codemod failed, or a rewrite is no Python; nothing if the file never was."""
        if checked.failures or not file.changed:
            return checked.failures
        broken = RuntimeError(f"the result is no Python ({checked.findings[0].message}); the file is left as it was")
        return (internal_error("a codemod", file.source.filename, broken),)

    def _give_up(self, file: Rewritten, failures: tuple[str, ...]) -> None:
        """Take ``file`` back, and all that was changed together with it."""
        together = joined(file, self.files)
        if failures:
            for one in together:
                one.give_up(*failures)
        self._program = self._program.with_texts({one.source.path: one.text for one in together})


def joined(file: Rewritten, files: dict[Path, Rewritten]) -> list[Rewritten]:
    """Return the files that fixes changed together with ``file``, directly or not, with itself, which comes first."""
    found = [file]
    for one in found:
        found += [files[path] for path in sorted(one.partners) if files[path] not in found]
    return found


def _by_file(edits: Iterable[Edit], own: Path) -> dict[Path, list[Edit]]:
    """Return ``edits`` by the file they are made in, ``own`` where they name none."""
    found: dict[Path, list[Edit]] = {}
    for edit in edits:
        found.setdefault(Path(edit.filename) if edit.filename else own, []).append(edit)
    return found


def _blame(findings: Sequence[Finding], source: Source, exception: Exception) -> str:
    names = sorted({finding.fix.codemod for finding in findings if finding.fix})
    return internal_error(f"codemod {', '.join(names)}", source.filename, exception)
