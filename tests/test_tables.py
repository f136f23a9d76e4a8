"""The tables of mslint/data say what the installed MindSpore says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT, require_mindspore

from mslint.semantics.api import canonical

DATA = ROOT / "mslint" / "data"
VMAP = DATA / "make_vmap_operators.py"


@pytest.mark.parametrize("script", sorted({*DATA.glob("make_*.py")} - {VMAP}), ids=lambda path: path.stem)
def test_a_table_is_what_its_script_makes_of_mindspore(script: Path) -> None:
    require_mindspore()
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(script)!r})['table']()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    stored = script.with_name(f"{script.stem.removeprefix('make_')}.json")
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(stored.read_text(encoding="utf-8"))


# A sample: all of them take a quarter of an hour.
@pytest.mark.parametrize("kind", ["vectorised", "looped"])
def test_vmap_does_with_an_operator_what_the_table_says(kind: str) -> None:
    require_mindspore()
    names = json.loads((DATA / "vmap_operators.json").read_text(encoding="utf-8"))[kind]
    sample = names[:: len(names) // 5][:5]
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(VMAP)!r})['verdicts']({sample!r}, False)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(sample, kind)


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
