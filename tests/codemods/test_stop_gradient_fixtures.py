"""What `mslint verify` says of the rewritten fixtures of stop-gradient: counted and computed by MindSpore, in both modes."""

from __future__ import annotations

import pytest
from running import FIXTURES, applicabilities, verified

FOLDER = FIXTURES / "stop-gradient"
# By fixtures/README.md: nodes that PyNative mode records for the backward pass, before and after.
EQUIVALENT = {
    "teacher_tuple.py": (76, 65),
    "perceptual_loss.py": (59, 48),
    "frozen_text_encoder.py": (25, 16),
}
DIFFERENT = "frozen_among_weights.py"
CLEAN = "gradient_must_pass.py"


def test_every_fixture_is_expected_to_be_something() -> None:
    assert {*EQUIVALENT, DIFFERENT, CLEAN} == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_is_safe_is_equivalent_and_saves_autograd_nodes(name: str) -> None:
    result, steps = verified(FOLDER / name, "stop-gradient")
    assert result["verdict"] == "equivalent", result["reason"]
    for step in steps.values():
        assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
        assert step["gradients"]["names_equal"]
    assert steps["graph"]["before"]["backward"] == steps["graph"]["after"]["backward"] > 0
    counts = steps["pynative"]["pynative"]
    assert (counts["before"]["autograd_nodes"], counts["after"]["autograd_nodes"]) == EQUIVALENT[name]


def test_a_frozen_network_among_the_weights_is_trained_in_graph_mode_until_it_is_stopped() -> None:
    result, steps = verified(FOLDER / DIFFERENT, "stop-gradient", "--unsafe-fixes")
    assert result["verdict"] == "different"
    graph, pynative = steps["graph"], steps["pynative"]
    assert graph["gradients"]["worst"].startswith("teacher.")
    assert (graph["before"]["backward"], graph["after"]["backward"]) == (13, 6)
    # PyNative mode gives frozen parameters zeros, in the list of weights or not.
    assert pynative["gradients"]["max_abs_diff"] == 0


@pytest.mark.parametrize(
    ("name", "applicability"), [*((name, "safe") for name in EQUIVALENT), (DIFFERENT, "unsafe"), (CLEAN, None)]
)
def test_check_promises_what_verify_finds(name: str, applicability: str | None) -> None:
    assert applicabilities(FOLDER / name, "MS102") == ([] if applicability is None else [applicability])
