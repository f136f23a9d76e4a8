"""The files and notebooks that are open in an editor, as they are being typed, and what is found in them."""

from __future__ import annotations

import json
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
from mslint.source.notebook import Notebook, decode_notebook, in_cells
from mslint.source.text import Source, shown


@dataclass(frozen=True)
class Examined:
    """The findings in one text, or part of them if there is a ``problem`` with the configuration or with us."""

    findings: Sequence[Finding] = ()
    problem: str | None = None


class OpenFiles:
    """What an editor has open. What is known of the files on disk is kept until ``refresh``.

    A notebook goes by the name that the program has for it (see ``stand_in``); places in it are by cell.
    """

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self._notebooks: dict[Path, Source] = {}
        self._examined: dict[Path, Examined] = {}
        self._known: Program | None = None

    def put(self, path: Path, text: str) -> None:
        """Take ``text`` for what ``path`` holds now."""
        if self._known is not None:
            self._known = self._known.with_texts({path: text}) if path in self._texts else None
        self._texts[path] = text
        self._examined.pop(path, None)

    def put_notebook(self, file: Path, cells: Sequence[str | None]) -> None:
        """Take ``cells`` for what the notebook ``file`` holds now, None for a cell that holds no Python."""
        kinds = [{"cell_type": "raw" if text is None else "code", "source": text or ""} for text in cells]
        source = decode_notebook(json.dumps({"nbformat": 4, "cells": kinds}).encode(), file, shown(file))
        self._notebooks[source.path] = source
        self.put(source.path, source.text)

    def close(self, path: Path) -> None:
        """Go back to what is on disk."""
        self._texts.pop(path, None)
        self._notebooks.pop(path, None)
        self.refresh()

    def refresh(self) -> None:
        """Forget what files on disk and configurations said."""
        self._known = None
        self._examined.clear()

    @property
    def paths(self) -> list[Path]:
        """The open files."""
        return list(self._texts)

    def text(self, path: Path, cell: int | None = None) -> str | None:
        """Return what ``path``, or a cell of it, holds, open or not; None if it cannot be read."""
        if cell is not None:
            return self._cells(self._notebooks[path].notebook).get(cell)
        return self._texts[path] if path in self._texts else self._program.text(path)

    def examined(self, path: Path) -> Examined:
        """Return what is found in the open file ``path``."""
        if path not in self._examined:
            self._examined[path] = self._examine(path)
        return self._examined[path]

    def fixed(self, path: Path) -> dict[int | None, str]:
        """Return the text of the open file ``path`` with all its safe fixes made; of a notebook, those of changed cells."""
        source = self._source(path)
        work = Work((source.file,), Configurations(), Wishes())
        rules, version = work.rules_for(source.file), work.version_for(source.file)
        text = rewrite_source(source, self._program, all_codemods(), False, version, rules).text
        if source.notebook is None:
            return {None: text}
        old, new = self._cells(source.notebook), self._cells(source.notebook.rewritten(text))
        return {number: text for number, text in new.items() if text != old[number]}

    def _examine(self, path: Path) -> Examined:
        source = self._source(path)
        try:
            work = Work((source.file,), Configurations(), Wishes())
            if work.keeps_out(source.file):
                return Examined()
            rules, version = work.rules_for(source.file), work.version_for(source.file)
            checked = examine(source, rules, self._program, all_codemods(), version)
            notebooks = {one.file: one.notebook for one in self._notebooks.values() if one.notebook}
            found = [in_cells(finding, notebooks) for finding in checked.findings]
            texts = source.notebook.texts() if source.notebook else {source.filename: source.text}
            findings = Baselines(work.baseline_for).fresh(found, texts, exempt={SYNTAX_ERROR[0]})
        except UsageError as problem:
            return Examined(problem=str(problem))
        except Exception as exception:
            return Examined(problem=internal_error("mslint", source.filename, exception))
        return Examined(findings, "; ".join(checked.failures) or None)

    @staticmethod
    def _cells(notebook: Notebook | None) -> dict[int | None, str]:
        return {cell.number: cell.text for cell in notebook.cells} if notebook else {}

    def _source(self, path: Path) -> Source:
        return self._notebooks.get(path) or Source(path, shown(path), self._texts[path])

    @property
    def _program(self) -> Program:
        if self._known is None:
            self._known = Program(list(self._texts), self._texts)
        return self._known
