"""The case study trains, mslint explains and repairs it, and its page tells what is measured now."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from capture import CASE, VERSIONS, Versions, fingerprint, measured, mslint
from page import page, picture
from ranks import told_apart, trained_on_two_ranks
from running import LOSS_LINE, require_mindspore

ANEW = "the page of the case study is stale: run `python tests/case_study/measure.py`"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    return Versions(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return json.loads((CASE / "figures.json").read_text(encoding="utf-8"))


def test_the_case_trains_and_writes_nothing(tmp_path: Path) -> None:
    require_mindspore()
    before = sorted(CASE.rglob("*.py"))
    command = [sys.executable, "-B", str(CASE / "train.py"), "--mode", "pynative", "--batch_size", "8", "--steps", "4"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = [float(loss) for _, loss in LOSS_LINE.findall(done.stdout)]
    assert len(losses) == 4
    assert all(math.isfinite(loss) for loss in losses)
    assert list(tmp_path.iterdir()) == []
    assert sorted(CASE.rglob("*.py")) == before


def test_the_case_knows_nothing_of_mslint() -> None:
    assert all("mslint" not in path.read_text(encoding="utf-8") for path in CASE.rglob("*.py"))


def test_check_explains_it() -> None:
    done = mslint("check", "--output-format", "json", ".", cwd=CASE)
    found = {(item["code"], item["filename"]): item["message"] for item in json.loads(done.stdout)}
    said = {
        ("MS101", "src/step.py"): "differentiates `self.network` by its weights although row 55 has just run it",
        ("MS102", "src/network.py"): "`self.feature_net` is frozen (train.py, row 38), yet its parameters are among",
        ("MS203", "src/loss.py"): "each round of this loop over `range(z.shape[0])` reads one row",
        ("MS201", "src/loss.py"): "",
        ("MS301", "src/dataset.py"): "every rank reads all of this data set and trains on it at src/step.py:57",
        ("MS302", "train.py"): "every rank seeds with the same `config.seed`",
    }
    assert set(said) <= set(found)
    assert [key for key, words in said.items() if words not in found[key]] == []


def test_two_runs_of_fix_leave_what_a_person_must_decide(versions: Versions) -> None:
    left = mslint("check", "--output-format", "json", ".", cwd=versions.make("all"))
    assert {(item["code"], item["fix"]["applicability"]) for item in json.loads(left.stdout)} <= {
        ("MS201", "manual"),
        ("MS201", "display"),
    }


def test_the_page_is_written_from_the_figures(figures: dict[str, Any]) -> None:
    assert (CASE / "README.md").read_text(encoding="utf-8") == page(figures), ANEW
    assert (CASE / "loss.svg").read_text(encoding="utf-8") == picture(figures["curves"]), ANEW


def test_the_figures_are_of_what_the_codemods_make_today(versions: Versions, figures: dict[str, Any]) -> None:
    assert {name: fingerprint(versions.make(name)) for name in VERSIONS} == figures["fingerprints"], ANEW


def test_the_counts_of_the_page_are_those_of_today(versions: Versions, figures: dict[str, Any], tmp_path: Path) -> None:
    """Of both ends of the table: what lies between them is held by the fingerprints."""
    require_mindspore()
    for mode in ("graph", "pynative"):
        now = measured(versions, ["before", "all"], mode, tmp_path / f"mslint-verify-{mode}")
        for name, column in now.items():
            then = {key: value for key, value in figures[mode][name].items() if key != "numbers"}
            assert {key: value for key, value in column.items() if key != "numbers"} == then, f"{mode}, {name}: {ANEW}"


@pytest.mark.parametrize("name", ["before", "all"])
def test_two_ranks(name: str, versions: Versions, figures: dict[str, Any], tmp_path: Path) -> None:
    require_mindspore()
    told = told_apart(trained_on_two_ranks(versions.make(name), tmp_path))
    assert told == figures["ranks"][name], ANEW
    right = {
        "steps": 4,
        "read": [16, 16],
        "read by both": 0,
        "read by none": 0,
        "augmented alike": "0 of 16",
    }
    wrong = {
        "steps": 8,
        "read": [32, 32],
        "read by both": 32,
        "read by none": 0,
        "augmented alike": "32 of 32",
    }
    equal = {"first weights equal": True, "weights equal after each step": True, "weights move": True}
    assert told == (wrong if name == "before" else right) | equal
