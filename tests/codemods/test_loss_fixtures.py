"""What the loss codemods make of their fixtures, and that verify confirms it in both modes."""

from __future__ import annotations

from collections import Counter

import pytest
from running import FIXTURES, applicabilities, verified

CODEMODS = {"stable-loss": "MS201", "masked-fill": "MS204", "merge-slices": "MS203"}

# By fixtures/README.md: how many fixes of each kind there are.
FIXES = {
    "stable-loss/softmax_cell.py": {"unsafe": 1},
    "stable-loss/binary_pair.py": {"unsafe": 3},
    "stable-loss/contrastive.py": {"unsafe": 2},
    "stable-loss/moved_logits.py": {"safe": 3},
    "stable-loss/needed_epsilons.py": {"manual": 1},
    "masked-fill/detection_weights.py": {"safe": 3},
    "masked-fill/attention_mask.py": {"unsafe": 1},
    "masked-fill/ignored_pixels.py": {"unsafe": 2},
    "masked-fill/shared_tensors.py": {"manual": 3},
    "merge-slices/box_head.py": {"safe": 2},
    "merge-slices/pyramid.py": {"safe": 2},
    "merge-slices/columns.py": {"safe": 2},
    "merge-slices/apart.py": {"manual": 3},
}
REWRITTEN = [name for name, fixes in FIXES.items() if "manual" not in fixes]
# Whole numbers written anew keep their bits; a stable form of a loss does not.
BIT_EQUAL = [name for name in REWRITTEN if not name.startswith("stable-loss")]

# Where the graph's backward part is smaller afterwards: MindSpore 2.10.0, CPU.
FEWER_BACKWARD_NODES = {"merge-slices/box_head.py", "merge-slices/columns.py", "stable-loss/binary_pair.py"}


def test_every_fixture_is_expected_to_be_something() -> None:
    folders = [FIXTURES / codemod for codemod in CODEMODS]
    assert set(FIXES) == {f"{folder.name}/{path.name}" for folder in folders for path in folder.glob("*.py")}


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    assert Counter(applicabilities(FIXTURES / name, CODEMODS[name.partition("/")[0]])) == FIXES[name]


@pytest.mark.parametrize("name", REWRITTEN)
def test_verify_confirms_what_the_fix_promises(name: str) -> None:
    unsafe = ["--unsafe-fixes"] if "unsafe" in FIXES[name] else []
    result, steps = verified(FIXTURES / name, name.partition("/")[0], *unsafe)
    assert result["verdict"] == "equivalent", result["reason"]
    for step in steps.values():
        assert step["gradients"]["names_equal"]
        if name in BIT_EQUAL:
            assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
    graph = steps["graph"]
    if name in FEWER_BACKWARD_NODES:
        assert graph["after"]["backward"] < graph["before"]["backward"]


def test_an_epsilon_that_capped_the_loss_makes_a_difference() -> None:
    result, steps = verified(FIXTURES / "epsilon-add" / "bad.py", "stable-loss", "--unsafe-fixes")
    assert result["verdict"] == "different"
    for step in steps.values():
        assert step["loss"]["before"] == pytest.approx(11.5, abs=0.1)
        assert step["loss"]["after"] == pytest.approx(21.4, abs=0.1)
