"""The codemods run by libcst's own tool."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from mslint.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures" / "functional_grad"


def libcst_tool(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [
        sys.executable,
        "-m",
        "libcst.tool",
        "codemod",
        "--no-format",
        "-x",
        f"mslint.commands.libcst_tool.{command}",
    ]
    return subprocess.run([*call, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


def test_it_makes_the_same_of_a_file_as_fix_does(tmp_path: Path) -> None:
    for name in ("theirs.py", "ours.py"):
        shutil.copy(FIXTURES / "batchnorm_dropout_no_set_grad.py", tmp_path / name)
    before = (tmp_path / "ours.py").read_bytes()
    done = libcst_tool(tmp_path, "FunctionalGrad", "theirs.py")
    assert done.returncode == 0
    assert (tmp_path / "theirs.py").read_bytes() == before
    assert "MS101 whole-network-grad: run the network once" in done.stderr
    libcst_tool(tmp_path, "FunctionalGrad", "--unsafe-fixes", "theirs.py")
    main(["fix", "--codemod", "functional-grad", "--unsafe-fixes", str(tmp_path / "ours.py")])
    assert (tmp_path / "theirs.py").read_bytes() == (tmp_path / "ours.py").read_bytes() != before


def test_an_unknown_codemod_lists_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    done = libcst_tool(tmp_path, "Grad", "a.py")
    assert done.returncode != 0
    assert "no codemod is called Grad; there are " in done.stderr
    assert "FunctionalGrad" in done.stderr
