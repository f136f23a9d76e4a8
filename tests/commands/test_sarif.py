"""SARIF: what code hosts need to show a finding where it stands, with its reasons and its fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mslint.cli import main

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "functional_grad" / "two_optimizers.py"
SAFE = FIXTURE.with_name("closure_forward.py")


def sarif(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    main(["check", "--select", "MS101", "--output-format", "sarif", *arguments])
    run: dict[str, object] = json.loads(capsys.readouterr().out)["runs"][0]
    return run


def test_a_result_has_its_place_its_level_and_the_places_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    run = sarif(capsys, str(FIXTURE))
    (result,) = run["results"]  # type: ignore[misc]
    lines = FIXTURE.read_text(encoding="utf-8").splitlines()
    region = result["locations"][0]["physicalLocation"]["region"]
    line = lines[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1].endswith("GradOperation(get_by_list=True)")
    assert (result["ruleId"], result["level"]) == ("MS101", "warning")
    applied = [item["physicalLocation"]["region"]["startLine"] for item in result["relatedLocations"]]
    assert [("self.grad_op(" in lines[row - 1]) for row in applied] == [True, True]


def test_a_rule_brings_its_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    (rule,) = sarif(capsys, str(FIXTURE))["tool"]["driver"]["rules"]  # type: ignore[index]
    assert (rule["id"], rule["name"]) == ("MS101", "whole-network-grad")
    assert "Why it matters" in rule["help"]["text"]
    assert "**Why it matters**" in rule["help"]["markdown"]
    assert rule["fullDescription"]["text"] == "A GradOperation differentiates a network by its weights."


def test_a_fix_says_what_is_replaced_by_what(capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = sarif(capsys, str(SAFE))["results"]  # type: ignore[misc]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert any("value_and_grad" in item["insertedContent"]["text"] for item in change["replacements"])


def test_no_findings_are_an_empty_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert sarif(capsys, str(FIXTURE.with_name("already_functional.py")))["results"] == []
