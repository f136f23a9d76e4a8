"""What `mslint verify` says of the rewritten fixtures of freeze-parameters, and that the frozen network stays where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from running import FIXTURES, applicabilities, mslint, require_mindspore, verified

FOLDER = FIXTURES / "freeze-parameters"
# By fixtures/README.md: the frozen network, and the backward nodes of graph mode before and after.
FROZEN = {
    "set_grad_on_encoder.py": ("encoder.", (28, 13)),
    "pretrained_in_inference_mode.py": ("features.", (23, 11)),
    "after_the_optimizer.py": ("teacher.", (13, 5)),
}
OTHERS = {"trained_by_turns.py": ["manual"], "left_out_of_the_weights.py": []}


def test_every_fixture_is_expected_to_be_something() -> None:
    assert {*FROZEN, *OTHERS} == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", FROZEN)
def test_the_gradients_of_the_frozen_network_alone_are_gone(name: str) -> None:
    network, backward = FROZEN[name]
    result, steps = verified(FOLDER / name, "freeze-parameters", "--unsafe-fixes")
    assert result["verdict"] == "different"
    for step in steps.values():
        gradients = step["gradients"]
        assert step["loss"]["max_abs_diff"] == gradients["max_abs_diff"] == 0
        assert gradients["only_after"] == []
        assert all(weight.startswith(network) for weight in gradients["only_before"])
        assert len(gradients["only_before"]) == 4
    graph, pynative = steps["graph"], steps["pynative"]["pynative"]
    assert (graph["before"]["backward"], graph["after"]["backward"]) == backward
    assert pynative["after"]["autograd_nodes"] < pynative["before"]["autograd_nodes"]


def test_the_encoder_stays_where_it_is(tmp_path: Path) -> None:
    require_mindspore()
    script = tmp_path / "train.py"
    script.write_bytes((FOLDER / "set_grad_on_encoder.py").read_bytes())
    assert moved(script) > 0.05
    mslint("fix", "--codemod", "freeze-parameters", "--unsafe-fixes", script)
    assert moved(script) == 0


def moved(script: Path) -> float:
    done = subprocess.run([sys.executable, "-B", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return float(done.stdout.strip().rpartition("moved by ")[2])


@pytest.mark.parametrize(("name", "expected"), [*((name, ["unsafe"]) for name in FROZEN), *OTHERS.items()])
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str, expected: list[str]) -> None:
    assert applicabilities(FOLDER / name, "MS103") == expected
