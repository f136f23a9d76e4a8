"""The command line as a user has it, with a rule and a codemod that another distribution brings along."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import codemods.registry
import mslint.rules.registry
from mslint.cli import main

PLUGIN = '''
"""A plugin: calls of old_call() become calls of new_call()."""

import libcst as cst

from codemods.base import Codemod
from mslint.findings import Applicability, Edit, Finding, Fix, Position, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics.module import find

BECOMES = {
    "old_call": ("new_call", Applicability.SAFE, "say new_call"),
    "odd_call": ("new_call", Applicability.UNSAFE, "new_call rounds otherwise"),
    "hard_call": ("", Applicability.MANUAL, "split it first"),
    "maybe_call": ("new_call", Applicability.SAFE, "say new_call"),
    "far_call": ("new_call", Applicability.SAFE, "declare it in far.py"),
    "broken": ("new(", Applicability.SAFE, "a bug of the plugin"),
    "flip": ("flop", Applicability.SAFE, "a bug of the plugin"),
    "flop": ("flip", Applicability.SAFE, "a bug of the plugin"),
}


class OldCall(Rule):
    """Calls of functions that are no more.

    Use instead: ``new_call``.
    """

    code = "MS901"
    name = "old-call"
    severity = Severity.WARNING
    summary = "a call of a function that is no more"
    codemod = "new-call"
    triggers = (b"_call", b"broken", b"flip", b"flop", b"crash")

    def check(self, module):
        for call in find(module.tree, cst.Call):
            name = getattr(call.func, "value", None)
            start, end = module.start(call.func), module.end(call.func)
            if name == "crash":
                raise KeyError("the plugin's bug")
            if name in BECOMES:
                related = (Related(module.source.filename, start, end, "it is here"),)
                filename = module.source.filename
                message = f"{name} is no more"
                severity = Severity.INFO if name == "maybe_call" else self.severity
                yield Finding(
                    self.code, self.name, severity, message, filename, start, end, related=related, subject=call
                )


class Quiet(Rule):
    """Never fires."""

    code = "MS902"
    name = "quiet"
    severity = Severity.INFO
    summary = "nothing"
    triggers = ()


class NewCall(Codemod):
    """Renames."""

    name = "new-call"
    summary = "old_call becomes new_call"
    applicability = "Safe, but for odd_call."
    rules = ("MS901",)

    def propose(self, module, finding, target_version):
        new, applicability, message = BECOMES[finding.subject.func.value]
        edits = (module.replace(finding.subject.func, new),) if new else ()
        if finding.subject.func.value == "far_call":
            edits += (Edit(Position(1, 1), Position(1, 1), "new = 1\\n", str(module.source.path.with_name("far.py"))),)
        return Fix(self.name, applicability, message, edits)

    def tidy(self, module, after):
        return after if "old_call(" in after else after.replace("from lib import old_call\\n", "")
'''
ENTRY_POINTS = """
[mslint.rules]
old-call = demo_plugin:OldCall
quiet = demo_plugin:Quiet

[mslint.codemods]
new-call = demo_plugin:NewCall
"""


class Result(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


def install(folder: Path, name: str, entry_points: str, source: str) -> None:
    """Lay a distribution with one module out in ``folder``."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on ``sys.path`` that holds the plugin."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, "demo_plugin", ENTRY_POINTS, PLUGIN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    _forget()
    yield folder
    sys.modules.pop("demo_plugin", None)
    _forget()


def _forget() -> None:
    mslint.rules.registry.all_rules.cache_clear()
    codemods.registry.all_codemods.cache_clear()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(site: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``mslint`` in the project."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse's own
            code = int(exit_.code or 0)
        return Result(code, *capsys.readouterr())

    return run
