"""Running mslint and the training scripts in fixtures, as many tests do."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mslint.cli import main

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
LOSS_LINE = re.compile(r"^step (\d+) loss (\S+)$", re.MULTILINE)


class Ran(NamedTuple):
    """How a run of mslint ended, and what it said."""

    code: int
    out: str
    err: str


def mslint(*arguments: str | Path, cwd: Path = ROOT) -> Ran:
    """Run ``mslint`` in this process, which has imported libcst already; a process of its own takes a second for that."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before = Path.cwd()
    os.chdir(cwd)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main([str(argument) for argument in arguments])
    finally:
        os.chdir(before)
    out.seek(0)
    err.seek(0)
    return Ran(code, out.read(), err.read())


def applicabilities(path: Path, codes: str) -> list[str]:
    """Return how far the fix of each finding of the rules ``codes`` may be trusted."""
    found = json.loads(mslint("check", "--select", codes, "--output-format", "json", path).out)
    return [item["fix"]["applicability"] for item in found]


def verified(path: Path, codemod: str, *options: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what ``mslint verify`` says in both modes of a script rewritten by ``codemod``, and its one step by mode."""
    require_mindspore()
    ran = mslint("verify", "--mode", "both", "--codemod", codemod, *options, "--output-format", "json", path)
    result = json.loads(ran.out)
    assert ran.code == {"equivalent": 0, "different": 1, "unverified": 2}[result["verdict"]]
    steps = {step["mode"]: step for step in result["steps"]}
    assert set(steps) == {"graph", "pynative"}, result["reason"]
    return result, steps


def require_mindspore() -> None:
    """Skip where MindSpore is not installed, except in CI: there its absence is an error."""
    if importlib.util.find_spec("mindspore") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("MindSpore is not installed, and CI must run these tests")
        pytest.skip("MindSpore is not installed")
