"""Every rule's own examples: what must be reported, where, how its fix behaves, and what must not."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

from codemods.registry import all_codemods
from mslint.commands.proposals import examine
from mslint.commands.rewriting import rewrite_source
from mslint.config import NEWEST
from mslint.engine import check_source
from mslint.findings import Applicability, Finding
from mslint.program.project import Program
from mslint.rules.registry import AnyRule, all_rules, load
from mslint.source.edits import apply_edits
from mslint.source.text import Source, read


def cases(kind: str) -> list[object]:
    """Return every rule with each of its cases of one kind, as parameters of a test."""
    return [
        pytest.param(rule, dedent(text).lstrip("\n"), id=f"{rule.code}-{number}")
        for rule in all_rules()
        for number, text in enumerate(getattr(load(rule), kind))
    ]


def written(folder: Path, text: str) -> Source:
    """Put ``text`` in a file of a project of its own and read it back."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").touch()
    return read(path)


def marked_rows(rule: AnyRule, text: str) -> list[int]:
    return [row for row, line in enumerate(text.splitlines(), 1) if re.search(rf"# <- {rule.code}\b", line)]


def proposed(rule: AnyRule, source: Source) -> tuple[Finding, ...]:
    checked = examine(source, [rule], Program([source.path]), all_codemods(), NEWEST)
    assert not checked.failures
    return checked.findings


@pytest.mark.parametrize(("rule", "text"), cases("INVALID"))
def test_what_must_be_reported_is_reported_where_it_stands(rule: AnyRule, text: str, tmp_path: Path) -> None:
    found = proposed(rule, written(tmp_path, text))
    assert [finding.start.row for finding in found] == marked_rows(rule, text) != []


@pytest.mark.parametrize(("rule", "text"), cases("VALID"))
def test_what_is_right_is_left_alone(rule: AnyRule, text: str, tmp_path: Path) -> None:
    source = written(tmp_path, text)
    assert check_source(source, [rule], Program([source.path])).findings == ()


@pytest.mark.parametrize(("rule", "text"), cases("INVALID"))
def test_each_fix_alone_is_python_and_takes_its_finding_away(rule: AnyRule, text: str, tmp_path: Path) -> None:
    source = written(tmp_path, text)
    found = proposed(rule, source)
    for finding in found:
        if finding.fix is None or not finding.fix.edits:
            assert finding.fix is None or finding.fix.message
            continue
        after = apply_edits(text, finding.fix.edits)
        ast.parse(after)
        assert after != text
        # Others may go with it: data sets that are zipped are sharded together.
        assert len(proposed(rule, written(tmp_path, after))) < len(found)


@pytest.mark.parametrize(("rule", "text"), cases("INVALID"))
def test_all_fixes_together_settle_and_leave_no_finding_that_they_could_fix(
    rule: AnyRule, text: str, tmp_path: Path
) -> None:
    source = written(tmp_path, text)
    once = rewrite_source(source, Program([source.path]), all_codemods(), unsafe=True, rules=[rule])
    assert not once.failures
    left = {finding.fix.applicability for finding in once.left if finding.fix is not None}
    assert left <= {Applicability.MANUAL, Applicability.DISPLAY}
    again = written(tmp_path, once.text)
    assert rewrite_source(again, Program([again.path]), all_codemods(), unsafe=True, rules=[rule]).text == once.text
