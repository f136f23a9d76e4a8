"""The tables of mslint/data say what the installed MindSpore says."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from test_fixtures_train import ROOT, require_mindspore

from mslint.semantics.api import canonical

DATA = ROOT / "mslint" / "data"


@pytest.mark.parametrize("script", sorted(DATA.glob("make_*.py")), ids=lambda path: path.stem)
def test_a_table_is_what_its_script_makes_of_mindspore(script: Path) -> None:
    require_mindspore()
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(script)!r})['table']()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    stored = script.with_name(f"{script.stem.removeprefix('make_')}.json")
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(stored.read_text(encoding="utf-8"))


def test_the_scripts_run_only_when_asked_to() -> None:
    for script in DATA.glob("make_*.py"):
        assert "table" in runpy.run_path(str(script))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        # Each pair is one object on MindSpore 2.10.0 (`is`), or, for the last three, was one in older releases.
        ("mindspore.ops.composite.GradOperation", "mindspore.ops.GradOperation"),
        ("mindspore.ops.grad", "mindspore.grad"),
        ("mindspore.train.model.Model", "mindspore.Model"),
        ("mindspore.train.Model", "mindspore.Model"),
        ("mindspore.context.set_context", "mindspore.set_context"),
        ("mindspore.communication.management.get_rank", "mindspore.communication.get_rank"),
        ("mindspore.common.seed.set_seed", "mindspore.set_seed"),
        ("mindspore.dataset.engine.GeneratorDataset", "mindspore.dataset.GeneratorDataset"),
        ("mindspore.nn.layer.activation.Softmax", "mindspore.nn.Softmax"),
        ("mindspore.mint.exp", "mindspore.ops.exp"),
        ("mindspore.ops.operations.NPUAllocFloatStatus", "mindspore.ops.NPUAllocFloatStatus"),
        ("mindspore.train.amp.build_train_network", "mindspore.amp.build_train_network"),
        ("mindspore.common.initializer.Gone", "mindspore.common.initializer.Gone"),
    ],
)
def test_every_spelling_of_an_api_has_one_name(written: str, meant: str) -> None:
    assert canonical(written) == meant
