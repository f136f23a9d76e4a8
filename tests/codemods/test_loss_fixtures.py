"""What the loss codemods make of their fixtures, and that verify confirms it in both modes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_fixtures_train import ROOT, require_mindspore

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

# Operator calls of a PyNative step, forward and backward nodes of the graph: before and after, MindSpore 2.10.0, CPU.
FEWER_BACKWARD_NODES = {"merge-slices/box_head.py", "merge-slices/columns.py", "stable-loss/binary_pair.py"}


def mslint(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mslint", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_every_fixture_is_expected_to_be_something() -> None:
    folders = [ROOT / "fixtures" / codemod for codemod in CODEMODS]
    assert set(FIXES) == {f"{folder.name}/{path.name}" for folder in folders for path in folder.glob("*.py")}


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    code = CODEMODS[name.partition("/")[0]]
    done = mslint("check", "--select", code, "--output-format", "json", f"fixtures/{name}")
    assert Counter(found["fix"]["applicability"] for found in json.loads(done.stdout)) == FIXES[name]


@pytest.mark.parametrize("name", REWRITTEN)
def test_verify_confirms_what_the_fix_promises(name: str) -> None:
    require_mindspore()
    codemod = name.partition("/")[0]
    unsafe = ["--unsafe-fixes"] if "unsafe" in FIXES[name] else []
    done = mslint("verify", "--codemod", codemod, *unsafe, "--output-format", "json", f"fixtures/{name}")
    result = json.loads(done.stdout)
    assert (result["verdict"], done.returncode) == ("equivalent", 0), result["reason"]
    assert {step["mode"] for step in result["steps"]} == {"graph", "pynative"}
    for step in result["steps"]:
        assert step["gradients"]["names_equal"]
        if name in BIT_EQUAL:
            assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
    graph = next(step for step in result["steps"] if step["mode"] == "graph")
    if name in FEWER_BACKWARD_NODES:
        assert graph["after"]["backward"] < graph["before"]["backward"]


def test_an_epsilon_that_capped_the_loss_makes_a_difference() -> None:
    require_mindspore()
    arguments = ["verify", "--codemod", "stable-loss", "--unsafe-fixes", "--output-format", "json"]
    done = mslint(*arguments, "fixtures/epsilon-add/bad.py")
    result = json.loads(done.stdout)
    assert (result["verdict"], done.returncode) == ("different", 1)
    for step in result["steps"]:
        assert step["loss"]["before"] == pytest.approx(11.5, abs=0.1)
        assert step["loss"]["after"] == pytest.approx(21.4, abs=0.1)
