"""What mslint says of the programs in fixtures/shard-dataset and fixtures/rank-seed, and that they compute what they did.

On one device shards are all there is and the rank is 0, so that the rewrites change no number of a step. What they change on
two ranks is in test_two_ranks.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from running import FIXTURES, applicabilities, verified

CODES = {"shard-dataset": "MS301", "rank-seed": "MS302,MS303"}

# By fixtures/README.md: how the fixes may be trusted, one for each finding.
FIXES = {
    "shard-dataset/one_file.py": ["unsafe"],
    "shard-dataset/dropped_rank.py": ["unsafe"],
    "shard-dataset/two_files": ["unsafe"],
    "shard-dataset/pairs.py": ["unsafe", "unsafe"],
    "shard-dataset/stream.py": ["manual"],
    "shard-dataset/own_parts.py": [],
    "rank-seed/augment_function.py": ["unsafe", "unsafe"],
    "rank-seed/trainer_class.py": ["unsafe", "unsafe"],
    "rank-seed/two_files": ["unsafe", "unsafe"],
    "rank-seed/seeded_by_rank.py": ["unsafe"],
    "rank-seed/sampled_by_numpy.py": ["manual"],
    "rank-seed/already.py": [],
}
REWRITTEN = [name for name, fixes in FIXES.items() if "unsafe" in fixes]


def test_every_fixture_is_expected_to_be_something() -> None:
    there = {path for codemod in CODES for path in (FIXTURES / codemod).iterdir() if path.name != "__pycache__"}
    assert {FIXTURES / name for name in FIXES} == there
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}" in readme for name in FIXES)


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    assert applicabilities(FIXTURES / name, CODES[Path(name).parts[0]]) == FIXES[name]


@pytest.mark.parametrize("name", REWRITTEN)
def test_on_one_device_a_step_stays_what_it_was(name: str) -> None:
    script = FIXTURES / name / "train.py" if (FIXTURES / name).is_dir() else FIXTURES / name
    result, steps = verified(script, Path(name).parts[0], "--unsafe-fixes")
    assert result["verdict"] == "equivalent", result["reason"]
    graph, pynative = steps["graph"], steps["pynative"]["pynative"]
    assert graph["before"]["backward"] == graph["after"]["backward"] > 0
    assert pynative["before"]["autograd_nodes"] == pynative["after"]["autograd_nodes"] > 0
    for step in steps.values():
        assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
        assert step["gradients"]["names_equal"]
