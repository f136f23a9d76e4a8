"""Every style of training in fixtures/verify_styles is captured in both modes, with its numbers."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mslint.verify.arrays import load_arrays
from mslint.verify.job import Job, result_file
from mslint.verify.mirror import build, project_root
from mslint.verify.process import run

STYLES = Path(__file__).parents[2] / "fixtures" / "verify_styles"
# Style: its arguments and the number of steps that are told apart.
SCRIPTS: dict[str, tuple[list[str], int]] = {
    "step_cell.py": ([], 1),
    "step_cell_model_train.py": ([], 1),
    "step_cell_sink.py": ([], 1),
    "one_step_cell.py": ([], 1),
    "loss_scale_cell.py": ([], 1),
    "loss_scale_subclass.py": ([], 1),
    "grad_operation.py": ([], 1),
    "grad_function.py": ([], 1),
    "value_and_grad_attribute.py": ([], 1),
    "value_and_grad_imported.py": ([], 1),
    "vjp.py": ([], 1),
    "jit_step.py": ([], 1),
    "pynative_loop.py": ([], 1),
    "gan.py": ([], 2),
    "accumulation.py": ([], 1),
    "mixed_precision.py": ([], 1),
    "amp_level.py": ([], 1),
    "arguments.py": (["--rate", "0.1", "2"], 1),
    "config_beside/train.py": ([], 1),
    "package/train.py": ([], 1),
}


def test_every_script_is_among_them() -> None:
    programs = {path.relative_to(STYLES).as_posix() for path in STYLES.rglob("*.py") if "flowers" not in path.parts}
    assert programs == set(SCRIPTS)


@pytest.mark.parametrize("mode", ["graph", "pynative"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_captured(name: str, mode: str, tmp_path: Path) -> None:
    """One run is enough: what two runs are compared for is tested elsewhere."""
    arguments, steps = SCRIPTS[name]
    script = STYLES / name
    root = project_root(script, script.parent, {})
    mirror = build(root, script, script.parent, {}, tmp_path / "tree")
    job = Job(
        script=str(mirror.script),
        arguments=arguments,
        directory=str(mirror.directory),
        mode=mode,
        root=str(mirror.root),
        out=str(tmp_path / "out"),
        scratch=str(tmp_path),
        protected=[str(root)],
    )
    captured = run(job, 120, threading.Event())
    assert captured.failure is None, captured.output
    assert len(captured.steps) == steps
    for index, step in enumerate(captured.steps):
        assert step["optimizers"]
        assert step["graphs"] if mode == "graph" else step["autograd_nodes"]
        numbers = load_arrays(result_file(captured.out, index))
        assert "loss" in numbers
        assert any(number.startswith("gradient:") for number in numbers)
        assert any(number.startswith("parameter:") for number in numbers)
