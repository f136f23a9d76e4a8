"""The fixture scripts are real training programs: each runs, trains and prints the same losses twice.

What mslint says about a fixture is only worth something if the script is one that somebody could have run, and its
losses before and after a rewrite can only be compared if they repeat from one process to the next.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
FUNCTIONAL_GRAD = FIXTURES / "functional_grad"
SCRIPTS = sorted(path.name for path in FUNCTIONAL_GRAD.glob("*.py"))

LOSS_LINE = re.compile(r"^step (\d+) loss (\S+)$", re.MULTILINE)
SECONDS_PER_RUN = 60

# Scripts written for a device that the test machine does not have. Run as they are they stop in set_context.
OTHER_DEVICE = {"ascend_target.py"}

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


def require_mindspore() -> None:
    """Skip where MindSpore is not installed, except in CI: there its absence is an error."""
    if importlib.util.find_spec("mindspore") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("MindSpore is not installed, and CI must run these tests")
        pytest.skip("MindSpore is not installed")


def command(script: str) -> list[str]:
    if script in OTHER_DEVICE:
        return [sys.executable, "-B", "-c", ON_CPU, str(FUNCTIONAL_GRAD), Path(script).stem]
    return [sys.executable, "-B", str(FUNCTIONAL_GRAD / script)]


def losses_of(script: str, cwd: Path) -> list[float]:
    """Run the script in a fresh process and read its losses."""
    cwd.mkdir()
    done = subprocess.run(command(script), cwd=cwd, capture_output=True, text=True, timeout=SECONDS_PER_RUN)
    assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stderr[-3000:]}"
    assert list(cwd.iterdir()) == [], f"{script} leaves files in the working directory"
    steps = LOSS_LINE.findall(done.stdout)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1)), done.stdout
    return [float(loss) for _, loss in steps]


def folder_state() -> dict[str, tuple[int, int]]:
    """Name, size and time of everything below the fixtures, without the byte code of other processes."""
    files = (path for path in FIXTURES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_trains_and_repeats(script: str, tmp_path: Path) -> None:
    require_mindspore()
    before = folder_state()

    first = losses_of(script, tmp_path / "first")
    second = losses_of(script, tmp_path / "second")

    assert len(first) >= 3
    assert all(math.isfinite(loss) for loss in first)
    assert first == second, "two fresh processes disagree"
    assert first[-1] < first[0], "the loss does not fall"
    assert folder_state() == before, "the script writes into the fixtures"


def test_there_are_scripts() -> None:
    assert set(SCRIPTS) >= OTHER_DEVICE
    assert len(SCRIPTS) >= 14


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_is_described_and_knows_nothing_of_mslint(script: str) -> None:
    assert f"`{script}`" in (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert "mslint" not in (FUNCTIONAL_GRAD / script).read_text(encoding="utf-8")
