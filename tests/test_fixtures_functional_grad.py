"""The fixtures of functional-grad train; what mslint says of them, makes of them, and that this trains to the same losses.

The diffs in tests/diffs were read line by line before they were committed; read them again when they change.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from running import FIXTURES, LOSS_LINE, ROOT, applicabilities, mslint, require_mindspore, verified

FUNCTIONAL_GRAD = FIXTURES / "functional_grad"
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

# Written for a device that the test machine does not have. Run as it is it stops in set_context.
OTHER_DEVICE = "ascend_target.py"

# Runs such a script here: only the device named in set_context is another one. MindSpore reads the source of the
# functions it compiles through the module's name, hence the import in place of runpy.
ON_CPU = """
import importlib, sys
import mindspore
from mindspore import context

folder, module = sys.argv[1:]
sys.path.insert(0, folder)
sys.argv = [module + ".py"]
set_context = context.set_context

def set_context_on_cpu(**options):
    if "device_target" in options:
        options["device_target"] = "CPU"
    options.pop("device_id", None)
    if options:
        set_context(**options)

context.set_context = mindspore.set_context = set_context_on_cpu
importlib.import_module(module).main()
"""


def unsafe(name: str) -> list[str]:
    return ["--unsafe-fixes"] if FIXES[name] == "unsafe" else []


def test_every_fixture_is_expected_to_be_something() -> None:
    assert set(FIXES) == {path.name for path in FUNCTIONAL_GRAD.glob("*.py")}
    assert OTHER_DEVICE in REWRITTEN


@pytest.mark.parametrize("name", FIXES)
def test_script_is_described_and_knows_nothing_of_mslint(name: str) -> None:
    assert f"`{name}`" in (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert "mslint" not in (FUNCTIONAL_GRAD / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIXES)
def test_check_says_what_the_readme_of_the_fixtures_promises(name: str) -> None:
    assert applicabilities(FUNCTIONAL_GRAD / name, "MS101") == ([] if FIXES[name] is None else [FIXES[name]])


@pytest.mark.parametrize("name", FIXES)
def test_fix_shows_the_rewrite_that_was_read(name: str) -> None:
    done = mslint("fix", "--codemod", "functional-grad", *unsafe(name), "--diff", FUNCTIONAL_GRAD / name)
    expected = DIFFS / f"{Path(name).stem}.diff"
    assert done.out == (expected.read_text(encoding="utf-8") if expected.exists() else "")
    assert expected.exists() is (name in REWRITTEN)
    assert done.code == (1 if name in REWRITTEN else 0)


@pytest.mark.parametrize("name", FIXES)
def test_the_script_trains_and_the_rewritten_one_to_the_same_losses(name: str, tmp_path: Path) -> None:
    """A second fresh process prints the losses of the first: of the script as it is, or rewritten where that is safe."""
    require_mindspore()
    before = folder_state()
    script = tmp_path / "project" / name
    script.parent.mkdir()
    script.write_bytes((FUNCTIONAL_GRAD / name).read_bytes())

    first = losses_of(FUNCTIONAL_GRAD / name, tmp_path / "first")
    assert len(first) >= 3
    assert all(math.isfinite(loss) for loss in first)
    assert first[-1] < first[0], "the loss does not fall"

    mslint("fix", "--codemod", "functional-grad", *unsafe(name), script)
    assert (script.read_bytes() != (FUNCTIONAL_GRAD / name).read_bytes()) is (name in REWRITTEN)
    second = losses_of(script, tmp_path / "second")
    if FIXES[name] == "unsafe":
        # The first loss is of the first forward pass on both sides; then the statistics have moved differently.
        assert second[0] == first[0]
        assert second[-1] != first[-1]
    else:
        assert second == first
    assert folder_state() == before, "the script writes into the fixtures"


def losses_of(script: Path, cwd: Path) -> list[float]:
    """Run the script in a fresh process and read its losses."""
    cwd.mkdir()
    if script.name == OTHER_DEVICE:
        command = [sys.executable, "-B", "-c", ON_CPU, str(script.parent), script.stem]
    else:
        command = [sys.executable, "-B", str(script)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stderr[-3000:]}"
    assert list(cwd.iterdir()) == [], f"{script} leaves files in the working directory"
    steps = LOSS_LINE.findall(done.stdout)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1)), done.stdout
    return [float(loss) for _, loss in steps]


def folder_state() -> dict[str, tuple[int, int]]:
    """Name, size and time of everything below the fixtures, without the byte code of other processes."""
    files = (path for path in FUNCTIONAL_GRAD.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("name", REWRITTEN)
def test_verify_confirms_what_the_fix_promises(name: str) -> None:
    result, steps = verified(FUNCTIONAL_GRAD / name, "functional-grad", *unsafe(name))
    graph, counts = steps["graph"], steps["pynative"]["pynative"]
    assert graph["before"]["backward"] == graph["after"]["backward"] > 0
    assert counts["before"]["autograd_nodes"] > 0
    if FIXES[name] == "unsafe":
        assert result["verdict"] == "different"
        assert (counts["before"]["forward_runs"], counts["after"]["forward_runs"]) == (2, 1)
        return
    assert result["verdict"] == "equivalent", result["reason"]
    for step in steps.values():
        assert step["loss"]["max_abs_diff"] == step["gradients"]["max_abs_diff"] == 0
        assert step["gradients"]["names_equal"]
