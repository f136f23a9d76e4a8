"""``mslint fix --verify`` writes what is proven, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from running import FIXTURES, require_mindspore

from mslint.cli import main
from mslint.findings import Verdict
from mslint.verify.verdicts import fingerprint, keep, recall

SAME, DIFFERENT = "closure_forward.py", "batchnorm_dropout_no_set_grad.py"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a cache of its own beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.chdir(folder)
    return folder


def test_only_what_is_proven_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_mindspore()
    for name in (SAME, DIFFERENT):
        shutil.copy(FIXTURES / "functional_grad" / name, project)
    (project / "library.py").write_text((FIXTURES / "functional_grad" / SAME).read_text().partition("\nif __name__")[0])
    (project / "unused.py").write_text("import library\n")
    assert main(["fix", "--verify", "--unsafe-fixes", "--codemod", "functional-grad"]) == 1
    out = capsys.readouterr().out
    assert (project / SAME).read_bytes() != (FIXTURES / "functional_grad" / SAME).read_bytes()
    assert (project / DIFFERENT).read_bytes() == (FIXTURES / "functional_grad" / DIFFERENT).read_bytes()
    assert "Fixed 1 finding in 1 file." in out
    assert "Not proven, left as before: 2 files\n" in out
    assert f"Proven by running 1 script:\n  {SAME}: loss, gradients" in out
    assert f"  {DIFFERENT}: different: " in out
    assert "  library.py: unverified: " in out


def test_a_verdict_holds_while_nothing_changes_that_it_rests_on(project: Path) -> None:
    script = project / "train.py"
    script.write_text("import model\n")
    (project / "model.py").write_text("x = 1\n")
    (project / "notes.md").write_text("old")
    after = {script: b"import model  # new\n"}
    key = fingerprint(script, after)
    assert recall(key) is None
    keep(key, Verdict.EQUIVALENT, "bit-equal")
    assert recall(fingerprint(script, after)) == (Verdict.EQUIVALENT, "bit-equal")
    (project / "notes.md").write_text("new")
    assert fingerprint(script, after) == key
    assert fingerprint(script, {script: b"import model\n"}) != key
    assert fingerprint(script, after, "--epochs=1") != key
    (project / "model.py").write_text("x = 2\n")
    changed = fingerprint(script, after)
    assert changed != key
    (project / "config.yaml").write_text("epochs: 2\n")
    assert fingerprint(script, after) != changed


def test_a_kept_verdict_that_cannot_be_read_is_found_again(project: Path) -> None:
    keep("key", Verdict.DIFFERENT, "loss")
    [file] = (project.parent / "cache").rglob("key.json")
    for content in ("", "{}", '{"verdict": "maybe", "reason": ""}', "[]"):
        file.write_text(content)
        assert recall("key") is None


def test_standard_input_cannot_be_verified(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--verify", "-"]) == 2
    assert "--verify needs files" in capsys.readouterr().err
