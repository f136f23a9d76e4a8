"""What mslint says of the fixtures, what it makes of them, and that this trains to the same losses.

The diffs in tests/diffs were read line by line before they were committed; read them again when they change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_fixtures_train import FUNCTIONAL_GRAD, LOSS_LINE, OTHER_DEVICE, ROOT, command, require_mindspore

DIFFS = ROOT / "tests" / "diffs" / "functional_grad"

# By fixtures/README.md: how the finding's fix may be trusted, or None where there must be no finding.
FIXES = {
    "already_functional.py": None,
    "ascend_target.py": "safe",
    "batchnorm_dropout.py": "safe",
    "batchnorm_dropout_no_set_grad.py": "unsafe",
    "closure_forward.py": "safe",
    "construct_only.py": "safe",
    "gan_one_operator.py": "safe",
    "gradient_in_variable.py": "safe",
    "inherited_gradient.py": "safe",
    "input_derivative.py": None,
    "loss_scale_overflow.py": "manual",
    "loss_scale_reducer.py": "safe",
    "scale_parameter.py": "safe",
    "tuple_sens.py": "safe",
    "two_optimizers.py": "manual",
    "weights_half.py": "safe",
}
REWRITTEN = sorted(name for name, fix in FIXES.items() if fix in ("safe", "unsafe"))


def mslint(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mslint", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300
    )


def unsafe(name: str) -> list[str]:
    return ["--unsafe-fixes"] if FIXES[name] == "unsafe" else []


def test_every_fixture_is_expected_to_be_something() -> None:
    assert set(FIXES) == {path.name for path in FUNCTIONAL_GRAD.glob("*.py")}


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    done = mslint("check", "--select", "MS101", "--output-format", "json", FUNCTIONAL_GRAD / name)
    found = json.loads(done.stdout)
    assert [(item["code"], item["fix"]["applicability"]) for item in found] == (
        [] if FIXES[name] is None else [("MS101", FIXES[name])]
    )
    assert done.returncode == (1 if found else 0)


@pytest.mark.parametrize("name", FIXES)
def test_fix_shows_the_rewrite_that_was_read(name: str) -> None:
    done = mslint("fix", "--codemod", "functional-grad", *unsafe(name), "--diff", FUNCTIONAL_GRAD / name)
    expected = DIFFS / f"{Path(name).stem}.diff"
    assert done.stdout == (expected.read_text(encoding="utf-8") if expected.exists() else "")
    assert expected.exists() is (name in REWRITTEN)
    assert done.returncode == (1 if name in REWRITTEN else 0)


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_rewritten_fixture_trains_to_the_same_losses(name: str, tmp_path: Path) -> None:
    require_mindspore()
    folder = tmp_path / "project"
    folder.mkdir()
    script = folder / name
    script.write_bytes((FUNCTIONAL_GRAD / name).read_bytes())
    before = losses(command(name), tmp_path)
    assert mslint("fix", "--codemod", "functional-grad", *unsafe(name), script).returncode in (0, 1)
    assert script.read_bytes() != (FUNCTIONAL_GRAD / name).read_bytes()
    after = losses([part.replace(str(FUNCTIONAL_GRAD), str(folder)) for part in command(name)], tmp_path)
    if FIXES[name] == "safe":
        assert after == before
    else:
        # The first loss is of the first forward pass on both sides; then the statistics have moved differently.
        assert after[0] == before[0]
        assert after[-1] != before[-1]


def losses(run: list[str], cwd: Path) -> list[str]:
    """Run a script in a fresh process and return its losses as printed, at least three."""
    done = subprocess.run(run, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [loss for _, loss in LOSS_LINE.findall(done.stdout)]
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("name", REWRITTEN)
def test_verify_confirms_what_the_fix_promises(name: str) -> None:
    require_mindspore()
    arguments = ["verify", "--codemod", "functional-grad", *unsafe(name), "--output-format", "json"]
    done = mslint(*arguments, FUNCTIONAL_GRAD / name)
    result = json.loads(done.stdout)
    modes = {step["mode"]: step for step in result["steps"]}
    assert set(modes) == {"graph", "pynative"}
    graph, pynative = modes["graph"], modes["pynative"]
    assert graph["before"]["backward"] == graph["after"]["backward"] > 0
    counts = pynative["pynative"]
    assert counts["before"]["autograd_nodes"] > 0
    if FIXES[name] == "unsafe":
        assert (result["verdict"], done.returncode) == ("different", 1)
        assert (counts["before"]["forward_runs"], counts["after"]["forward_runs"]) == (2, 1)
        return
    assert (result["verdict"], done.returncode) == ("equivalent", 0), result["reason"]
    for step in result["steps"]:
        assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
        assert step["gradients"]["names_equal"]


def test_a_script_for_another_device_is_among_them() -> None:
    assert set(REWRITTEN) >= OTHER_DEVICE
