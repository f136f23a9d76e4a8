"""Which codemod rewrites a finding, where several serve one rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest

from codemods.base import Codemod
from codemods.registry import AnyCodemod
from mslint.commands.proposals import examine
from mslint.config import NEWEST, Version
from mslint.findings import Applicability, Finding, Fix, Severity
from mslint.program.project import Program
from mslint.rules.base import Rule
from mslint.semantics.module import Module, find
from mslint.source.text import read


class Literal(Rule):
    """Finds literals of two kinds."""

    code = "MS999"
    name = "literal"
    severity = Severity.INFO
    summary = "a literal"
    triggers = (b"=",)

    def check(self, module: Module) -> Iterator[Finding]:
        for node in [*find(module.tree, cst.Integer), *find(module.tree, cst.SimpleString)]:
            place = module.start(node), module.end(node)
            yield Finding(self.code, self.name, self.severity, "", module.source.filename, *place, subject=node)


class Numbers(Codemod):
    """Rewrites numbers."""

    name = "numbers"
    rules = ("MS999",)

    def applies(self, finding: Finding) -> bool:
        return isinstance(finding.subject, cst.Integer)

    def propose(self, module: Module, finding: Finding, target_version: Version) -> Fix:
        return Fix(self.name, Applicability.MANUAL, "")


class Everything(Numbers):
    """Rewrites all there is."""

    name = "everything"

    def applies(self, finding: Finding) -> bool:
        return Codemod.applies(self, finding)


@pytest.mark.parametrize(
    ("codemods", "chosen"),
    [
        ([Numbers], ["numbers", None]),
        ([Numbers, Everything], ["numbers", "everything"]),
        ([Everything], ["everything"] * 2),
    ],
)
def test_the_first_codemod_that_applies_to_a_finding_proposes_its_fix(
    codemods: list[AnyCodemod], chosen: list[str | None], tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 'two'\n")
    checked = examine(read(path), [Literal], Program([path]), codemods, NEWEST)
    assert not checked.failures
    assert [finding.fix and finding.fix.codemod for finding in checked.findings] == chosen
