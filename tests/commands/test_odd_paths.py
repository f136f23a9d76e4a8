"""Paths that cannot be looked at cost one line each, and the files beside them nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def good(project: Path) -> Path:
    (project / "good.py").write_text("old_call()\n")
    return project / "good.py"


def test_links_that_lead_to_each_other(cli, good: Path) -> None:
    (good.parent / "a.py").symlink_to("b.py")
    (good.parent / "b.py").symlink_to("a.py")
    loop = "cannot be read (Too many levels of symbolic links); check the path"
    complaints = f"error: a.py: {loop}\nerror: b.py: {loop}\n"
    code, out, err = cli("check", "--output-format", "concise", ".")
    assert (code, err) == (2, complaints)
    assert "good.py:1:1: MS901" in out
    assert cli("check", "a.py", good).err == f"error: a.py: {loop}\n"
    code, out, err = cli("fix", "--diff", ".")
    assert (code, err.startswith(complaints)) == (2, True)
    assert "+new_call()" in out
    assert cli("check", "--show-files") == (2, "good.py\n", complaints)


def test_named_pipes_are_skipped_in_folders_and_refused_by_name(cli, good: Path) -> None:
    os.mkfifo(good.parent / "x.py")
    assert cli("fix", "--diff", ".").code == 1
    assert cli("check", ".").err == ""
    code, out, err = cli("check", "--output-format", "concise", "x.py", good)
    assert (code, "good.py:1:1" in out) == (2, True)
    assert err == "error: x.py: is no regular file; name a file, or pass it as standard input (-)\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_folders_that_may_not_be_entered(good: Path, tmp_path: Path) -> None:
    for mode, name in ((0o000, "closed"), (0o444, "listed")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").touch()
        (tmp_path / name).chmod(mode)
    good.write_text("x = 1\n")
    said = "may not be read; change its permissions, or exclude it"
    # A first run loads the modules: nobody may not be allowed to where Python is installed.
    program = (
        f"import os, sys\nfrom mslint.cli import main\nmain(['check', 'good.py'])\nos.setuid({NOBODY})\nexit(main())"
    )
    for above in [tmp_path, *tmp_path.parents][:-2]:
        above.chmod(above.stat().st_mode | 0o055)
    for paths in (["."], ["closed", "listed", "good.py"], ["closed/a.py", "listed/a.py", "good.py"]):
        result = subprocess.run(
            [sys.executable, "-c", program, "check", *paths],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        closed = "closed/a.py" if paths[0] == "closed/a.py" else "closed"
        assert result.stderr == f"error: {closed}: {said}\nerror: listed/a.py: {said}\n"
        assert result.returncode == 2
