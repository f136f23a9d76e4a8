"""``mslint fix`` as a user sees it."""

import io
import sys
from pathlib import Path

import pytest

from mslint.commands.fix import rewrite_files

MIXED = "from lib import old_call\nold_call(1)\nodd_call(2)\nhard_call(3)\n"


def test_safe_fixes_are_written_and_the_rest_is_explained(cli, project: Path) -> None:
    script = project / "a.py"
    script.write_text(MIXED)
    code, out, err = cli("fix")
    assert script.read_text() == "new_call(1)\nodd_call(2)\nhard_call(3)\n"
    assert out == (
        "Fixed 1 finding in 1 file.\n"
        "  1 old-call (by new-call)\n"
        "Left 2 findings as they are:\n"
        "  a.py:2:1: MS901 old-call: unsafe, needs --unsafe-fixes: new_call rounds otherwise\n"
        "  a.py:3:1: MS901 old-call: by hand: split it first\n"
    )
    assert (code, err) == (1, "")


def test_unsafe_fixes_on_demand(cli, project: Path) -> None:
    (project / "a.py").write_text("odd_call(old_call(2))\n")
    assert cli("fix", "--unsafe-fixes").code == 0
    assert (project / "a.py").read_text() == "new_call(new_call(2))\n"
    assert cli("fix").out == "Nothing to fix.\n"


def test_nothing_outside_the_edit_changes(cli, project: Path) -> None:
    before = "# -*- coding: gbk -*-\r\n\tx = '训练'  \r\n\x0c\r\nold_call()\r\ny = 2 #no end".replace("\t", "")
    (project / "a.py").write_bytes(before.encode("gbk"))
    cli("fix")
    assert (project / "a.py").read_bytes() == before.replace("old_call", "new_call").encode("gbk")


def test_diff_is_a_patch(cli, project: Path) -> None:
    (project / "src").mkdir()
    script = project / "src" / "a.py"
    script.write_bytes(b"x = 1\r\nold_call(1)")
    code, out, err = cli("fix", "--diff")
    assert out == (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x = 1\r\n"
        "-old_call(1)\n\\ No newline at end of file\n+new_call(1)\n\\ No newline at end of file\n"
    )
    assert code == 1
    assert err == "Would fix 1 finding in 1 file.\n  1 old-call (by new-call)\n"
    assert script.read_bytes() == b"x = 1\r\nold_call(1)"
    assert cli("fix") == (0, "Fixed 1 finding in 1 file.\n  1 old-call (by new-call)\n", "")
    assert cli("fix", "--diff") == (0, "", "Nothing to fix.\n")


def test_standard_input_goes_to_standard_output(cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfold_call()\r\n")))
    assert cli("fix", "-").out == "\ufeffnew_call()\r\n"


@pytest.mark.parametrize("text", ["broken()\n", "flip()\n", "crash()\nold_call()\n", "old_call(\n"])
def test_a_file_that_cannot_be_rewritten_well_is_left_as_it_was(cli, project: Path, text: str) -> None:
    (project / "a.py").write_text(text)
    (project / "b.py").write_text("old_call()\n")
    code, out, err = cli("fix")
    assert (project / "a.py").read_text() == text
    assert (project / "b.py").read_text() == "new_call()\n"
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Fixed 1 finding in 1 file." in out


def test_a_read_only_file_is_an_error(cli, project: Path) -> None:
    script = project / "a.py"
    script.write_text("old_call()\n")
    script.chmod(0o444)
    code, out, err = cli("fix")
    assert (code, out) == (2, "Nothing to fix.\n")
    assert err == "error: a.py: is read-only; make it writable (`chmod u+w`), or exclude it\n"


def test_an_unknown_codemod_gets_the_nearest_name(cli) -> None:
    assert cli("fix", "--codemod", "functonal-grad") == (
        2,
        "",
        "error: unknown codemod 'functonal-grad'; did you mean functional-grad?\n",
    )


def test_codemods_and_rules_can_be_chosen(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\n")
    assert cli("fix", "--codemod", "functional-grad").out == "Nothing to fix.\n"
    assert cli("fix", "--ignore", "MS901").out == "Nothing to fix.\n"
    assert cli("fix", "--codemod", "new-call", "--codemod", "functional-grad").code == 0


def test_suppressed_findings_are_not_rewritten(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()  # noqa: MS901\n")
    assert cli("fix") == (0, "Nothing to fix.\n", "")


def test_what_check_calls_fixable_fix_fixes(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call(old_call(), old_call())\nx = old_call\n")
    assert "(3 fixable with `mslint fix`)" in cli("check").out
    assert cli("fix").code == 0
    assert cli("check").code == 0


def test_rewrite_files_returns_the_changed_ones(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\n")
    (project / "b.py").write_text("hard_call()\n")
    (project / "bad.py").write_bytes(b"\xff")
    assert rewrite_files([Path()], ["new-call"]) == {project / "a.py": b"new_call()\n"}
    (project / "a.py").write_text("crash()\n")
    with pytest.raises(RuntimeError, match=r"rule MS901 .* failed on a\.py"):
        rewrite_files([project / "a.py"])
