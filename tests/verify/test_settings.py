"""``[tool.mslint.verify]``: what holds where the command line does not say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .scripts import GRAD_OPERATION, VALUE_AND_GRAD, step_cell
from .test_command import mslint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    original = step_cell(GRAD_OPERATION, setup="import sys\nassert sys.argv[1:] == ['--rate', '0.1'], sys.argv\n")
    (tmp_path / "train.py").write_text(original)
    (tmp_path / "other.py").write_text(original.replace(GRAD_OPERATION, VALUE_AND_GRAD))
    return tmp_path


def test_the_arguments_are_those_of_the_configuration_unless_some_are_given(folder: Path) -> None:
    (folder / "mslint.toml").write_text('[verify]\nargs = ["--rate", "0.1"]\n')
    command = ("train.py", "--against", "other.py", "--mode", "pynative", "--output-format", "json")
    run = mslint(*command, cwd=folder)
    assert json.loads(run.stdout)["verdict"] == "equivalent", run.stdout + run.stderr
    run = mslint(*command, "--", "--rate", "0.2", cwd=folder)
    assert json.loads(run.stdout)["verdict"] == "unverified"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('entry = "nope"', "mslint.toml: verify.entry nope: train.py has no function of that name; name one"),
        ("ranks = 0", "mslint.toml: verify.ranks must be a whole number above 0"),
        ("timeout = -1", "mslint.toml: verify.timeout must be a number above 0"),
    ],
)
def test_settings_are_read(folder: Path, settings: str, said: str) -> None:
    (folder / "mslint.toml").write_text(f"[verify]\n{settings}\n")
    run = mslint("train.py", "--against", "other.py", cwd=folder)
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr
