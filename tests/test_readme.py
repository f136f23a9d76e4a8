"""What the README shows is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from make_readme import README, SESSION, answer, with_tables
from running import require_mindspore

from mslint.cli import VERBS
from mslint.source.toml import read_toml

TEXT = README.read_text(encoding="utf-8")


def blocks(language: str, after: str = "") -> list[str]:
    """The code of ``language`` behind the heading ``after``."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT[TEXT.index(after) :], re.DOTALL)


def test_the_session_shown_is_the_session_that_runs() -> None:
    require_mindspore()
    sessions = SESSION.findall(TEXT)
    assert {command.split()[0] for command, _ in sessions} == {"check", "verify"}
    for command, shown in sessions:
        assert answer(command) == shown, "python tests/make_readme.py writes it anew"


def test_the_tables_are_those_of_the_rules_and_codemods() -> None:
    assert with_tables(TEXT) == TEXT, "python tests/make_readme.py writes them anew"


def test_the_plugin_shown_works(tmp_path: Path) -> None:
    [module] = blocks("python", "## Plugins")
    [project] = blocks("toml", "## Plugins")
    (tmp_path / "pyproject.toml").write_text(project)
    entries = read_toml(tmp_path / "pyproject.toml")["project"]["entry-points"]
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (tmp_path / "acme_mslint.py").write_text(module)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in entries.items())
    )
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text("import acme\nfrom acme import OldLoss as Loss\n\nloss = Loss()\n")
    (work / "other.py").write_text("from acme import OldLoss\n\nloss = OldLoss()\n")

    def mslint(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "mslint", *arguments],
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    found = mslint("check", "--output-format", "concise")
    assert "\ntrain.py:4:8: ACME1 say acme.Loss [unsafe fix]\n" in found
    assert "`mslint rule ACME1` prints this text" in mslint("rule", "ACME1")
    mslint("fix", "--unsafe-fixes")
    assert (work / "train.py").read_text().endswith("loss = acme.Loss()\n")
    assert (work / "other.py").read_text() == "from acme import Loss, OldLoss\n\nloss = Loss()\n"


@pytest.mark.parametrize("recipe", blocks("yaml"))
def test_recipes_are_yaml(recipe: str) -> None:
    assert yaml.safe_load(recipe)


def test_settings_are_json() -> None:
    assert all(json.loads(settings) for settings in blocks("json"))


@pytest.mark.parametrize("line", sorted({line for block in blocks("sh") for line in block.splitlines()}))
def test_commands_name_what_there_is(line: str) -> None:
    for verb in re.findall(r"\bmslint ([a-z]+)\b", line.partition("#")[0]):
        assert verb in VERBS
