"""Programs of several files, rewritten by a codemod, for the tests of codemods that look at whole programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from codemods.registry import named
from mslint.commands.rewriting import rewrite_sources
from mslint.config import NEWEST
from mslint.findings import Applicability, Fix
from mslint.program.project import Program
from mslint.rules.registry import all_rules
from mslint.source.text import read


@dataclass(frozen=True)
class Outcome:
    """The texts after the rewrite, by file name, and the fixes that were applied and refused."""

    texts: dict[str, str]
    applied: list[Fix]
    refused: list[Fix]


def rewritten(folder: Path, codemod: str, files: dict[str, str]) -> Outcome:
    """Write ``files`` as a project, rewrite them with unsafe fixes, and check that a second time changes nothing."""
    (folder / "pyproject.toml").touch()
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        paths.append(path)
    first = _rewrite(paths, codemod)
    for path in paths:
        path.write_bytes(first.texts[str(path.relative_to(folder))].encode())
    again = _rewrite(paths, codemod)
    assert again.texts == first.texts, "it does not settle"
    assert not again.applied
    return first


def _rewrite(paths: list[Path], codemod: str) -> Outcome:
    rules = tuple(all_rules())
    done = rewrite_sources(
        [read(path) for path in paths], Program(paths), named([codemod]), True, lambda path: NEWEST, lambda path: rules
    )
    assert not [failure for one in done for failure in one.failures]
    folder = next(parent for parent in paths[0].parents if (parent / "pyproject.toml").exists())
    texts = {str(one.source.path.relative_to(folder)): one.text for one in done}
    applied = [finding.fix for one in done for finding in one.applied if finding.fix]
    left = [finding.fix for one in done for finding in one.left if finding.fix]
    assert all(fix.applicability is Applicability.UNSAFE for fix in applied)
    return Outcome(texts, applied, [fix for fix in left if fix.applicability is Applicability.MANUAL])


def program(text: str) -> str:
    """Return an indented text as a file."""
    return dedent(text).lstrip("\n")
