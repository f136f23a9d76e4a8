"""Comments that silence findings, and what becomes of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

UNUSED = "finds nothing that this comment could silence"


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: MS901", "# mslint: ignore[old-call] for old hands"])
def test_check_and_fix_leave_alone_what_is_silenced(cli, project: Path, comment: str) -> None:
    text = f"old_call()  {comment}\n"
    (project / "a.py").write_text(text)
    assert cli("check") == (0, "All checks passed.\n", "")
    assert cli("fix") == (0, "Nothing to fix.\n", "")
    assert (project / "a.py").read_text() == text


def test_an_unused_comment_is_a_finding(cli, project: Path) -> None:
    (project / "a.py").write_text("x = 1  # noqa: MS901\n")
    code, out, _ = cli("check", "--output-format", "concise")
    assert out == (f"a.py:1:8: MS001 MS901 {UNUSED} [fix]\nFound 1 finding (1 fixable with `mslint fix`).\n")
    assert code == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: MS901\n", "x = 1\n"),
        ("x = 1  # noqa: MS901", "x = 1"),
        ("x = 1\t# noqa: MS901  \r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("x = 1\n# noqa: MS901", "x = 1\n"),
        ("if x:\n\t# mslint: ignore[MS901] why\n\ty = 1\n", "if x:\n\ty = 1\n"),
        ("x = 1  # noqa: E501, MS901\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: MS901,E501 too long\n", "x = 1  # noqa: E501 too long\n"),
        ("x = 1  # noqa: ms901 E501 W1\n", "x = 1  # noqa: E501 W1\n"),
        ("x = 1  # noqa: E501,MS901,W1\n", "x = 1  # noqa: E501,W1\n"),
        ("x = 1  # type: ignore  # noqa: MS901\n", "x = 1  # type: ignore\n"),
        ("x = 1  # noqa: MS901 # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # a # noqa: MS901 # b\n", "x = 1  # a # b\n"),
        ("x = 1  # mslint: ignore[MS901] see #12\n", "x = 1\n"),
        ("old_call()  # mslint: ignore[MS101, MS901] why\n", "old_call()  # mslint: ignore[MS901] why\n"),
        ("# mslint: off[MS901]\nx = 1\n# mslint: on[MS901]\n", "x = 1\n"),
        ("# mslint: off[MS901]\nold_call()\n# mslint: on\n# mslint: on\n", None),
        ("# mslint: ignore-file\nx = 1\n", "x = 1\n"),
        ("# mslint: ignore-next-line\n\nx = 1\n", "\nx = 1\n"),
        ("训练 = 1  # 说明 # noqa: MS901\n", "训练 = 1  # 说明\n"),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa\n", "x = 1  # noqa\n"),
        ("x = 1  # noqa: MS999\n", "x = 1  # noqa: MS999\n"),
        ("x = '# noqa: MS901'\n", "x = '# noqa: MS901'\n"),
        ("x = 1  # noqa: MS901 MS001\n", "x = 1  # noqa: MS901 MS001\n"),
        ("# mslint: ignore-file[unused-suppression]\nx = 1  # noqa: MS901\n", None),
    ],
)
def test_fix_removes_what_is_unused_and_nothing_else(cli, project: Path, before: str, after: str | None) -> None:
    (project / "a.py").write_bytes(before.encode())
    after = before.replace("# mslint: on\n# mslint: on\n", "# mslint: on\n") if after is None else after
    assert cli("check").code == int(after != before)
    assert cli("fix").code == 0
    assert (project / "a.py").read_bytes() == after.encode()
    assert cli("check").code == 0


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("# mslint: ignore[MS91]", "no rule is called 'MS91'; did you mean MS901? (`mslint rule` lists them)"),
        ("# mslint: ignore[MS10]", "'MS10' is the beginning of MS101, MS102, MS103; name those that are meant"),
        ("# noqa: E501,MS90", "'MS90' is the beginning of MS901, MS902; name those that are meant"),
        ("# mslint: ignore[]", "the brackets name no rule; write `# mslint: ignore[MS101]`"),
        ("# mslint: ignore MS901", "the rules must stand in brackets, as in `# mslint: ignore[MS101]`"),
        (
            "# mslint: ignroe[MS901]",
            "'ignroe' means nothing here; write ignore, ignore-next-line, ignore-file, off or on",
        ),
        ("# mslint: off", "`off` has no effect behind code; give it a line of its own"),
    ],
)
def test_a_comment_with_a_mistake_is_told_and_left_to_its_author(cli, project: Path, comment: str, told: str) -> None:
    (project / "a.py").write_text(f"old_call()  {comment}\n")
    out = cli("check", "--output-format", "concise").out
    assert f"a.py:1:13: MS001 this comment silences nothing: {told}\n" in out
    code, out, _ = cli("fix")
    assert f"a.py:1:13: MS001 unused-suppression: by hand: {told}: correct the comment, or delete it\n" in out
    assert (project / "a.py").read_text() == f"new_call()  {comment}\n"
    assert code == 1


def test_an_end_without_a_beginning(cli, project: Path) -> None:
    (project / "a.py").write_text("# mslint: off\nold_call()\n# mslint: on[MS901]\n# mslint: on\n# mslint: on\n")
    first, second, _ = cli("check", "--output-format", "concise").out.splitlines()
    assert first == "a.py:3:1: MS001 nothing is off here for MS901 that this comment could end [fix]"
    assert second == "a.py:5:1: MS001 nothing is off here that this comment could end [fix]"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], True),
        (["--ignore", "MS001"], False),
        (["--ignore", "unused-suppression"], False),
        (["--ignore", "engine"], False),
        (["--select", "MS001"], False),
        (["--select", "MS001,MS901"], True),
        (["--select", "MS001,MS1"], False),
        (["--select", "error,warning"], False),
        (["--select", "MS9"], False),
        (["--per-file-ignores", "a.py:MS901"], False),
        (["--per-file-ignores", "a.py:MS001"], False),
    ],
)
def test_it_is_chosen_like_a_rule_and_judges_the_rules_that_were_asked(
    cli, project: Path, options: list[str], found: bool
) -> None:
    (project / "a.py").write_text("x = 1  # noqa: MS901\n")
    assert cli("check", *options).code == int(found)
    assert cli("fix", "--diff", *options).code == int(found)


def test_a_comment_for_all_rules_is_judged_once_all_were_asked(cli, project: Path) -> None:
    (project / "a.py").write_text("x = 1  # mslint: ignore\n")
    assert "no rule finds anything that this comment could silence" in cli("check").out
    assert cli("check", "--ignore", "MS901").code == 0


def test_a_finding_that_is_not_wanted_still_has_its_comment(cli, project: Path) -> None:
    (project / "a.py").write_text("maybe_call()  # noqa: MS901\n")
    assert cli("check").code == 0
    assert cli("check", "--ignore", "warning").code == 0
    assert cli("check", "--ignore", "error").code == 0


def test_a_rule_that_failed_has_not_been_asked(cli, project: Path) -> None:
    (project / "a.py").write_text("crash()\nx = 1  # noqa: MS901\n")
    assert "MS001" not in cli("check").out


def test_other_codemods_leave_the_comments_alone(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\nx = 1  # noqa: MS901\n")
    cli("fix", "--codemod", "new-call")
    assert (project / "a.py").read_text() == "new_call()\nx = 1  # noqa: MS901\n"
    cli("fix", "--codemod", "drop-suppression")
    assert (project / "a.py").read_text() == "new_call()\nx = 1\n"


def test_what_changes_comments_alone_needs_no_proof(cli, project: Path) -> None:
    pytest.importorskip("mindspore")
    (project / "a.py").write_text("if True:\n    # mslint: off\n    raise SystemExit  # noqa: MS901\n")
    assert cli("fix", "--verify").out == "Fixed 2 findings in 1 file.\n  2 unused-suppression (by drop-suppression)\n"


def test_it_is_listed_and_explained(cli) -> None:
    assert "MS001  info     unused-suppression: " in cli("rule").out
    assert "Why it matters" in cli("rule", "MS001").out
    assert "drop-suppression: " in cli("codemod").out


def test_a_comment_in_another_encoding(cli, project: Path) -> None:
    (project / "a.py").write_bytes("# coding: gbk\r\nx = '训'  # 练 # noqa: MS901\r\n".encode("gbk"))
    assert cli("fix").code == 0
    assert (project / "a.py").read_bytes() == "# coding: gbk\r\nx = '训'  # 练\r\n".encode("gbk")
