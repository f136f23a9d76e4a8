"""``mslint baseline``: the findings of today are put up with, those of tomorrow are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CLASS = "class Old:\n    def f(self):\n        return old_call(1)\n"


@pytest.fixture
def legacy(cli, project: Path) -> Path:
    """A file with two findings, both in the baseline that the configuration names."""
    (project / "mslint.toml").write_text('baseline = "known.toml"\n')
    (project / "a.py").write_text(CLASS + "hard_call(2)\n")
    assert cli("baseline", "write").code == 0
    return project / "a.py"


def entries(project: Path) -> list[str]:
    return [line for line in (project / "known.toml").read_text().splitlines() if line.startswith("  {")]


def test_what_is_in_the_baseline_is_left_out_and_counted(cli, project: Path, legacy: Path) -> None:
    assert cli("check") == (0, "All checks passed.\n2 findings in the baseline.\n", "")
    legacy.write_text(CLASS + "hard_call(2)\nodd_call(3)\n")
    code, out, _ = cli("check", "--output-format", "concise")
    assert (code, out.splitlines()[0]) == (1, "a.py:5:1: MS901 odd_call is no more [unsafe fix]")
    assert out.splitlines()[-1] == "2 more findings in the baseline."
    assert cli("check", "--output-format", "json").out.count('"code"') == 1
    assert cli("check", "--statistics").out.startswith("     1 MS901")


def test_the_file_is_sorted_toml_with_one_entry_a_line(cli, project: Path, legacy: Path) -> None:
    assert entries(project) == [
        '  {path = "a.py", rule = "MS901", symbol = "", text = "hard_call(2)"},',
        '  {path = "a.py", rule = "MS901", symbol = "Old.f", text = "return old_call(1)"},',
    ]
    before = (project / "known.toml").read_bytes()
    assert cli("baseline", "write") == (0, "known.toml: 2 findings\n", "")
    assert (project / "known.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLASS, "# new\n\nimport os\n\n\n" + CLASS),
        (CLASS, CLASS.replace("    ", "\t").replace("\n", "\r\n")),
        (CLASS, CLASS.replace("old_call(1)", "old_call( 1 )  # a comment")),
        (CLASS, CLASS.replace("old_call(1)", "old_call(\n            1,  # one\n        )")),
        (CLASS, CLASS.replace("return old_call(1)", "return \\\n            old_call(1)").rstrip()),
        ("@old_call(1)\n@two\ndef f():\n  pass\n", "\n@old_call(1)\n\n@two\ndef f(): pass\n"),
        ("x = '训练' + old_call()\n", "# coding: gbk\nx = '训练' + old_call()\n"),
        (f"x = [old_call(), {'1, ' * 200}]\n", f"x = [\n    old_call(),\n    {'1, ' * 200}\n]\n"),
    ],
)  # fmt: skip
def test_findings_that_move_or_are_laid_out_anew_stay_known(cli, project: Path, before: str, after: str) -> None:
    (project / "a.py").write_text(before)
    cli("baseline", "write", "--baseline", "b.toml")
    (project / "a.py").write_bytes(after.encode("gbk" if "gbk" in after else "utf-8"))
    assert cli("check", "--baseline", "b.toml", "--ignore", "MS001") == (
        0, "All checks passed.\n1 finding in the baseline.\n", "",
    )  # fmt: skip


@pytest.mark.parametrize(
    "after", [CLASS.replace("(1)", "(2)"), CLASS.replace("Old", "New"), CLASS.replace("old_call", "odd_call")]
)
def test_other_findings_are_new(cli, project: Path, legacy: Path, after: str) -> None:
    legacy.write_text(after + "hard_call(2)\n")
    code, out, _ = cli("check", "--output-format", "concise")
    assert code == 1
    assert out.startswith("a.py:3:16: MS901")
    assert out.endswith("1 finding of the baseline gone: `mslint baseline prune` drops them.\n")


def test_equal_findings_are_counted(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\nold_call()\n")
    cli("baseline", "write", "--baseline", "known.toml")
    assert entries(project) == ['  {path = "a.py", rule = "MS901", symbol = "", text = "old_call()", count = 2},']
    (project / "a.py").write_text("old_call()\n" * 3)
    code, out, _ = cli("check", "--baseline", "known.toml", "--output-format", "concise")
    assert (code, out.count("MS901")) == (1, 1)


def test_prune_drops_what_is_gone_and_adds_nothing(cli, project: Path, legacy: Path) -> None:
    (project / "b.py").write_text("old_call()\n")
    cli("baseline", "write", "b.py")
    assert len(entries(project)) == 3
    legacy.write_text("hard_call(2)\nodd_call(3)\n")
    (project / "b.py").unlink()
    assert "2 findings of the baseline gone" not in cli("check").out
    assert cli("baseline", "prune") == (0, "known.toml: 1 finding, 2 dropped\n", "")
    assert [line.split('text = "')[1] for line in entries(project)] == ['hard_call(2)"},']


def test_only_what_was_asked_for_is_written_or_dropped(cli, project: Path, legacy: Path) -> None:
    (project / "b.py").write_text("x = 1\n")
    for action in ("write", "prune"):
        assert cli("baseline", action, "b.py").out == "known.toml: 2 findings\n"
        assert cli("baseline", action, "--select", "MS1").out == "known.toml: 2 findings\n"
        assert cli("baseline", action, "--select", "error").out == "known.toml: 2 findings\n"
    legacy.write_text("def f(:\n")
    code, out, _ = cli("baseline", "write")
    assert (code, out) == (2, "known.toml: 2 findings\n")
    code, out, _ = cli("check")
    assert code == 2
    assert "MS002" in out


def test_without_a_word_in_the_configuration_it_is_told_how_to_use_it(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\n")
    assert cli("baseline", "write") == (
        0,
        "mslint-baseline.toml: 1 finding\n"
        'Add `baseline = "mslint-baseline.toml"` below [tool.mslint] in pyproject.toml, '
        "or check with `--baseline mslint-baseline.toml`.\n",
        "",
    )
    assert cli("check").code == 1
    assert cli("check", "--baseline", "mslint-baseline.toml").code == 0


def test_each_configuration_has_its_baseline_and_paths_are_relative_to_it(cli, project: Path, monkeypatch) -> None:
    for name in ("one", "two", "none"):
        (project / name / "src").mkdir(parents=True)
        (project / name / "src" / "训练.py").write_text("old_call()\n")
        settings = "" if name == "none" else 'baseline = "src/known.toml"\n'
        (project / name / "mslint.toml").write_text(settings)
    code, out, err = cli("baseline", "write")
    assert (code, out) == (0, "one/src/known.toml: 1 finding\ntwo/src/known.toml: 1 finding\n")
    assert err == "warning: 1 finding left out: the configuration of their files names no baseline\n"
    assert 'path = "训练.py"' in (project / "one" / "src" / "known.toml").read_text()
    assert cli("check", "--output-format", "concise").out.startswith("none/src/训练.py:1:1: ")
    monkeypatch.chdir(project / "one")
    assert cli("check").code == 0


def test_fix_lists_only_what_is_new(cli, project: Path, legacy: Path) -> None:
    legacy.write_text("hard_call(2)\nold_call(9)\n")
    assert cli("fix") == (0, "Fixed 1 finding in 1 file.\n  1 old-call (by new-call)\n", "")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("version = 1\nfindings = [\n<<<<<<< HEAD\n", "known.toml:3:1: is no TOML ("),
        ("findings = []\n", "known.toml: is no baseline: it has no `version = 1` and list of findings"),
        (
            "version = 1\nfindings = [1]\n",
            "known.toml: is no baseline: finding 1 lacks one of path, rule, symbol, text",
        ),
        (
            'version = 1\nfindings = [{path = "", rule = "", symbol = "", text = "", count = 0}]\n',
            "known.toml: is no baseline: the count of finding 1 is no number above 0",
        ),
    ],
)
def test_a_broken_baseline_is_one_error(cli, project: Path, legacy: Path, content: str, told: str) -> None:
    (project / "known.toml").write_text(content)
    for command in (["check"], ["fix"], ["baseline", "prune"], ["baseline", "write"]):
        code, out, err = cli(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert told in err


def test_what_is_missing_is_told(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\n")
    said = "error: none.toml: no such file; `mslint baseline write` makes the baseline\n"
    assert cli("check", "--baseline", "none.toml") == (2, "", said)
    assert cli("baseline", "prune", "--baseline", "none.toml") == (2, "", said)
    assert "No such file" in cli("baseline", "write", "--baseline", "no/such/known.toml").err
    assert "the following arguments are required: action; try" in cli("baseline").err
    assert cli("baseline", "write", "-").code == 2


def test_a_merge_of_two_branches_is_a_baseline(cli, project: Path, legacy: Path) -> None:
    text = (project / "known.toml").read_text()
    line = entries(project)[0]
    (project / "known.toml").write_text(text.replace(line, f"{line}\n{line}"))
    assert cli("check").code == 0
    assert cli("baseline", "write").out == "known.toml: 2 findings\n"


def test_a_file_name_that_is_no_utf8(cli, tmp_path: Path) -> None:
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    (tmp_path / name).write_text("x = 1  # noqa: MS101\n")
    for arguments in (["baseline", "write"], ["check", "--baseline", "mslint-baseline.toml"]):
        command = [sys.executable, "-m", "mslint", *arguments]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
