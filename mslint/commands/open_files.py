"""The files that are open in an editor, as they are being typed, and what is found in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.registry import all_codemods
from mslint.baseline import Baselines
from mslint.commands.proposals import examine
from mslint.commands.rewriting import rewrite_source
from mslint.commands.work import Wishes, Work
from mslint.config import Configurations
from mslint.console import UsageError, internal_error
from mslint.engine import SYNTAX_ERROR
from mslint.findings import Finding
from mslint.program.project import Program
from mslint.source.text import Source, shown


@dataclass(frozen=True)
class Examined:
    """The findings in one text, or part of them if there is a ``problem`` with the configuration or with us."""

    findings: Sequence[Finding] = ()
    problem: str | None = None


class OpenFiles:
    """What an editor has open. What is known of the files on disk is kept until ``refresh``."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self._examined: dict[Path, Examined] = {}
        self._known: Program | None = None

    def put(self, path: Path, text: str) -> None:
        """Take ``text`` for what ``path`` holds now."""
        if self._known is not None:
            self._known = self._known.with_texts({path: text}) if path in self._texts else None
        self._texts[path] = text
        self._examined.pop(path, None)

    def close(self, path: Path) -> None:
        """Go back to what is on disk."""
        self._texts.pop(path, None)
        self.refresh()

    def refresh(self) -> None:
        """Forget what files on disk and configurations said."""
        self._known = None
        self._examined.clear()

    @property
    def paths(self) -> list[Path]:
        """The open files."""
        return list(self._texts)

    def text(self, path: Path) -> str | None:
        """Return what ``path`` holds, open or not; None if it cannot be read."""
        return self._texts[path] if path in self._texts else self._program.text(path)

    def examined(self, path: Path) -> Examined:
        """Return what is found in the open file ``path``."""
        if path not in self._examined:
            self._examined[path] = self._examine(path)
        return self._examined[path]

    def fixed(self, path: Path) -> str:
        """Return the text of the open file ``path`` with all its safe fixes made."""
        work = Work((path,), Configurations(), Wishes())
        rules, version = work.rules_for(path), work.version_for(path)
        return rewrite_source(self._source(path), self._program, all_codemods(), False, version, rules).text

    def _examine(self, path: Path) -> Examined:
        source = self._source(path)
        try:
            work = Work((path,), Configurations(), Wishes())
            if work.keeps_out(path):
                return Examined()
            checked = examine(source, work.rules_for(path), self._program, all_codemods(), work.version_for(path))
            baselines = Baselines(work.baseline_for)
            findings = baselines.fresh(checked.findings, {source.filename: source.text}, exempt={SYNTAX_ERROR[0]})
        except UsageError as problem:
            return Examined(problem=str(problem))
        except Exception as exception:
            return Examined(problem=internal_error("mslint", source.filename, exception))
        return Examined(findings, "; ".join(checked.failures) or None)

    def _source(self, path: Path) -> Source:
        return Source(path, shown(path), self._texts[path])

    @property
    def _program(self) -> Program:
        if self._known is None:
            self._known = Program(list(self._texts), self._texts)
        return self._known
