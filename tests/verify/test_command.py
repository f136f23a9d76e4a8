"""The command: what it takes, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .scripts import GRAD_OPERATION, VALUE_AND_GRAD, step_cell


def mslint(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mslint", "verify", *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    original = step_cell(GRAD_OPERATION, setup="import sys\nassert sys.argv[1:] == ['--rate', '0.1'], sys.argv\n")
    (folder / "train.py").write_text(original)
    (folder / "other.py").write_text(original.replace(GRAD_OPERATION, VALUE_AND_GRAD))
    (folder / "silent.py").write_text("print('no training here')\n")
    (folder / "syntax.py").write_text("def f(:\n")
    (folder / "bytes.py").write_bytes(b"x = \xff\n")
    (folder / "deep.py").write_text("x = " + "-" * 100_000 + "1\n")
    for name in ("syntax", "bytes", "deep"):
        (folder / f"imports_{name}.py").write_text(f"import {name}\n")
    os.mkfifo(folder / "pipe.py")
    (folder / "loop.py").symlink_to("loop.py")
    return folder


def test_the_other_version_and_the_scripts_arguments(folder: Path) -> None:
    run = mslint(
        "train.py", "--against", "other.py", "--mode", "pynative", "--output-format", "json", "--", "--rate", "0.1",
        cwd=folder,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["verdict"], document["mode"], document["codemods"]) == ("equivalent", "pynative", [])


def test_a_codemod(folder: Path) -> None:
    run = mslint("train.py", "--codemod", "functional-grad", "--mode", "graph", "--", "--rate", "0.1", cwd=folder)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("train.py, rewritten by functional-grad (MindSpore ")
    assert lines[-1].startswith("equivalent: loss, gradients, parameters after the step")


def test_nothing_to_verify_is_said_at_once(folder: Path) -> None:
    run = mslint("silent.py", "--codemod", "functional-grad", cwd=folder)
    assert run.returncode == 0
    assert "functional-grad changes nothing here" in run.stdout


def test_unverified_ends_with_2_and_the_report_goes_where_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    run = mslint("silent.py", "--against", "other.py", "--mode", "pynative", "--output-file", report, cwd=folder)
    assert run.returncode == 2
    assert run.stdout == ""
    assert report.read_text().splitlines()[-1] == "unverified: the original script ended without a training step"
    assert "| no training here" in report.read_text()


def test_the_html_report_says_how_to_make_it_again(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    run = mslint(
        "silent.py", "--against", "other.py", "--mode", "graph", "--timeout", "90.5", "--output-format", "html",
        "--output-file", report, "--", "--rate", "a b", cwd=folder,
    )  # fmt: skip
    assert run.returncode == 2
    text = report.read_text()
    assert text.startswith("<!doctype html>")
    assert "mslint verify silent.py --against other.py --mode graph --timeout 90.5 -- --rate &#x27;a b&#x27;" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py", "--against", "other.py"], "missing.py: no such file or folder; check the spelling"),
        (["train.py", "--against", "missing.py"], "missing.py: no such file or folder; check the spelling"),
        (["train.py", "--codemod", "functional-grid"], "did you mean functional-grad?"),
        (["train.py"], "one of the arguments --codemod --against is required"),
        (["train.py", "--against", "other.py", "--ranks", "2", "--time"], "only steps that are run on one rank can be"),
        (["train.py", "--against", "other.py", "--launch"], "launching takes --ranks N of 2 or more"),
        (["train.py", "--against", "other.py", "--timeout", "-5"], "--timeout: '-5' is no number above 0"),
        (["train.py", "--against", "other.py", "--timeout", "0"], "--timeout: '0' is no number above 0"),
        (["train.py", "--against", "other.py", "--timeout", "inf"], "--timeout: 'inf' is no number above 0"),
        (["train.py", "--against", "other.py", "--memory", "0"], "--memory: '0' is no number above 0"),
        (["train.py", "--against", "other.py", "--memory", "much"], "--memory: 'much' is no number above 0"),
        (["train.py", "--against", "other.py", "--entry", "nope"], "--entry nope: train.py has no function of that"),
        (["silent.py", "--codemod", "functional-grad", "--entry", "nope"], "--entry nope: silent.py has no function"),
        (["syntax.py", "--codemod", "functional-grad"], "syntax.py:1:7: Python "),
        (["bytes.py", "--codemod", "functional-grad"], "bytes.py:1:5: byte 0xff is not utf-8; save the file as UTF-8"),
        (["imports_syntax.py", "--codemod", "functional-grad"], "syntax.py:1:7: Python "),
        (["imports_bytes.py", "--codemod", "functional-grad"], "bytes.py:1:5: byte 0xff is not utf-8; save the file"),
        (["imports_deep.py", "--codemod", "functional-grad"], "deep.py:1:1: this file is nested too deeply"),
        (["train.py", "--against", "syntax.py"], "syntax.py:1:7: Python "),
        (["syntax.py", "--against", "train.py"], "syntax.py:1:7: Python "),
        (["pipe.py", "--codemod", "functional-grad"], "pipe.py: is no regular file; name a file"),
        (["train.py", "--against", "pipe.py"], "pipe.py: is no regular file; name a file"),
        (["loop.py", "--codemod", "functional-grad"], "loop.py: cannot be read (Too many levels of symbolic links)"),
    ],
)
def test_usage(arguments: list[str], said: str, folder: Path) -> None:
    run = mslint(*arguments, cwd=folder)
    assert run.returncode == 2
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    assert run.stdout == ""


def test_without_mindspore_it_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    # A finder in front of all others that denies MindSpore.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'mindspore' else find(name, package)\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "mslint", "verify", "train.py", "--against", "other.py"],
        cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr == 'error: verify needs MindSpore: pip install "mslint[verify]"\n'
