"""What is said of a rule's effect is what was measured (tests/test_tables.py measures it anew)."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from mslint.cli import main
from mslint.rules.registry import all_rules, load

TABLE = json.loads((Path(__file__).parents[2] / "mslint" / "data" / "evidence.json").read_text(encoding="utf-8"))[
    "rules"
]


@pytest.mark.parametrize("code", TABLE)
def test_the_documentation_of_a_rule_gives_the_measured_figures(code: str) -> None:
    rule = next(load(rule) for rule in all_rules() if rule.code == code)
    told = inspect.cleandoc(rule.__doc__ or "").partition("\nEvidence\n")[2].partition("\nExample\n")[0]
    numbers = {number.replace(",", "") for number in re.findall(r"\d[\d,]*", told)}
    measured = TABLE[code]
    wanted = [
        measured["graph"]["backward"],
        measured["pynative"]["operator_calls"],
        measured["pynative"]["autograd_nodes"],
    ]
    changed = [pair for pair in wanted if pair[0] != pair[1]]
    assert changed, "a rule that changes nothing needs no evidence of this kind"
    assert any({str(before), str(after)} <= numbers for before, after in changed)
    assert set(re.findall(r"fixtures/\S+\.py", measured["command"])) <= set(re.findall(r"fixtures/\S+\.py", told))


def test_rule_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    main(["rule", "MS203"])
    out = capsys.readouterr().out
    before, after = TABLE["MS203"]["graph"]["backward"]
    assert f"backward {before} -> {after}" in out.partition("\nMeasured\n")[2]


def test_a_finding_carries_it(capsys: pytest.CaptureFixture[str]) -> None:
    script = Path(__file__).parents[2] / "fixtures" / "functional_grad" / "closure_forward.py"
    main(["check", "--select", "MS101", "--output-format", "json", str(script)])
    [finding] = json.loads(capsys.readouterr().out)
    assert finding["evidence"] == TABLE["MS101"]
