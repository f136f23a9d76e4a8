"""What mslint says of the fixtures of vectorize-rows, and that its rewrites compute the same with smaller graphs."""

from __future__ import annotations

import pytest
from running import FIXTURES, applicabilities, verified

FOLDER = FIXTURES / "vectorize-rows"
FIXES = {
    "attention_pool.py": ["safe", "safe"],
    "contrastive.py": ["safe"],
    "energy.py": ["safe", "unsafe"],
    "left_to_you.py": ["manual"] * 5,
    "recurrence.py": [],
    "time_steps.py": ["unsafe"],
}
# Forward and backward nodes of the graph, autograd nodes and operator calls in PyNative mode: before and after.
COUNTS = {
    "attention_pool.py": ((133, 55), (245, 78), (227, 49), (488, 96)),
    "contrastive.py": ((133, 37), (244, 48), (176, 20), (436, 41)),
    "energy.py": ((169, 56), (223, 79), (206, 23), (433, 38)),
    "time_steps.py": ((91, 19), (64, 14), (130, 25), (179, 32)),
}


def test_every_fixture_is_expected_to_be_something() -> None:
    assert {*FIXES, "timing.py"} == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    assert applicabilities(FOLDER / name, "MS203") == FIXES[name]


@pytest.mark.parametrize("name", COUNTS)
def test_verify_confirms_the_same_numbers_with_smaller_graphs(name: str) -> None:
    unsafe = ["--unsafe-fixes"] if "unsafe" in FIXES[name] else []
    result, steps = verified(FOLDER / name, "vectorize-rows", *unsafe)
    assert result["verdict"] == "equivalent", result["reason"]
    graph, pynative = steps["graph"], steps["pynative"]["pynative"]
    found = [(graph["before"][kind], graph["after"][kind]) for kind in ("forward", "backward")]
    found += [(pynative["before"][kind], pynative["after"][kind]) for kind in ("autograd_nodes", "operator_calls")]
    assert tuple(found) == COUNTS[name]
