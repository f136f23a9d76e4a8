"""``mslint check`` as a user sees it."""

import io
import json
import sys
from pathlib import Path

import pytest

import mslint.program.distribution
import mslint.program.project
import mslint.semantics.foreign

TWO = "import lib\n\n\nlib.x = 1\nold_call(1)\nhard_call(2)\n"


def test_full_report(cli, project: Path) -> None:
    (project / "a.py").write_text("# 训练\n\tif_ = 0\n".replace("\t", "") + "x = ('学习', old_call(1))\n" + "y = 2\n")
    assert cli("check").out == (
        "a.py:3:12: warning MS901 old-call: old_call is no more\n"
        "1 | # 训练\n"
        "2 | if_ = 0\n"
        "3 | x = ('学习', old_call(1))\n"
        "  |              ^^^^^^^^\n"
        "4 | y = 2\n"
        "  fix: safe (new-call): say new_call\n"
        "  note: a.py:3:12 it is here\n"
        "\n"
        "Found 1 finding (1 fixable with `mslint fix`).\n"
    )


def test_concise_report(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call(hard_call(odd_call()))\n")
    result = cli("check", "--output-format", "concise")
    assert result.out == (
        "a.py:1:1: MS901 old_call is no more [fix]\n"
        "a.py:1:10: MS901 hard_call is no more\n"
        "a.py:1:20: MS901 odd_call is no more [unsafe fix]\n"
        "Found 3 findings (1 fixable with `mslint fix`, 1 more with `mslint fix --unsafe-fixes`).\n"
    )
    assert result.code == 1


def test_json_report_is_the_contract(cli, project: Path) -> None:
    (project / "a.py").write_text("é = old_call()\n")
    [entry] = json.loads(cli("check", "--output-format", "json").out)
    here = {"row": 1, "column": 5}
    end = {"row": 1, "column": 13}
    assert entry == {
        "code": "MS901",
        "name": "old-call",
        "severity": "warning",
        "message": "old_call is no more",
        "filename": "a.py",
        "cell": None,
        "location": here,
        "end_location": end,
        "fix": {
            "codemod": "new-call",
            "applicability": "safe",
            "message": "say new_call",
            "edits": [{"content": "new_call", "location": here, "end_location": end}],
        },
        "related": [{"message": "it is here", "filename": "a.py", "location": here, "end_location": end}],
        "evidence": None,
        "url": None,
    }


def test_nothing_found(cli, project: Path) -> None:
    (project / "empty.py").touch()
    assert cli("check") == (0, "All checks passed.\n", "")
    assert cli("check", "--output-format", "json") == (0, "[]\n", "")


def test_a_folder_without_python_is_worth_a_warning(cli, project: Path) -> None:
    code, _, err = cli("check", project)
    assert (code, err) == (0, f"warning: no Python files found under {project}\n")


def test_a_missing_path_is_an_error_and_the_rest_is_checked(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()\n")
    code, out, err = cli("check", "a.py", "missing.py", "--output-format", "concise")
    assert code == 2
    assert out.startswith("a.py:1:1: MS901")
    assert err == "error: missing.py: no such file or folder; check the spelling of the path\n"


def test_a_syntax_error_is_a_finding_and_the_rest_is_checked(cli, project: Path) -> None:
    (project / "a.py").write_text("x = 1\nprint 'Python 2'\n")
    (project / "b.py").write_text("old_call()\n")
    code, out, _ = cli("check", "--output-format", "concise", "--select", "MS901")
    assert code == 2
    first, second, _ = out.splitlines()
    assert first.startswith("a.py:2:1: MS002 Python 3.")
    assert "Missing parentheses" in first
    assert "exclude" in first
    assert second.startswith("b.py:1:1: MS901")


@pytest.mark.parametrize("text", ["x = " + "-" * 5000 + "1\n", "x = " + "(" * 5000, "x = " + " + ".join("1" * 50000)])
def test_nesting_without_end_is_a_finding_too(cli, project: Path, text: str) -> None:
    (project / "a.py").write_text(text)
    code, out, err = cli("check", "--output-format", "concise")
    assert (code, err) == (2, "")
    assert "MS002" in out


def test_an_unreadable_file_is_an_error(cli, project: Path) -> None:
    (project / "a.py").write_bytes(b"x = '\xe9'\n")
    code, out, err = cli("check")
    assert (code, out) == (2, "")
    assert err.startswith("error: a.py:1:6: byte 0xe9 is not utf-8; save the file as UTF-8")
    assert err.count("\n") == 1


def test_a_rule_that_fails_is_named_and_the_rest_is_checked(
    cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_text("crash()\n")
    (project / "b.py").write_text("old_call()\n")
    code, out, err = cli("check", "--output-format", "concise")
    assert code == 2
    assert out.startswith("b.py:1:1")
    assert err.startswith("error: rule MS901 (old-call) failed on a.py: KeyError")
    assert err.count("\n") == 1
    monkeypatch.setenv("MSLINT_DEBUG", "1")
    assert "Traceback" in cli("check").err


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--select", "MS901"], True),
        (["--select", "MS9"], True),
        (["--select", "old-call"], True),
        (["--select", "ALL", "--ignore", "MS9"], False),
        (["--select", "MS101,quiet"], False),
        (["--select", "quiet", "--extend-select", "MS901"], True),
        (["--ignore", "old-call"], False),
        (["--select", "MS901", "--ignore", "MS9"], True),
        (["--per-file-ignores", "a.py:MS901"], False),
        (["--per-file-ignores", "b*:MS901"], True),
    ],
)
def test_rules_are_selected_by_code_beginning_or_name(cli, project: Path, options: list[str], found: bool) -> None:
    (project / "a.py").write_text("old_call()\n")
    assert cli("check", *options).code == int(found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--select", "MS9O1"], "unknown rule 'MS9O1' in --select; did you mean MS901?"),
        (["--ignore", "oldcall"], "unknown rule 'oldcall' in --ignore; did you mean old-call?"),
        (["--select", "pycodestyle"], "unknown rule 'pycodestyle' in --select"),
    ],
)
def test_unknown_rules_get_the_nearest_name(cli, options: list[str], words: str) -> None:
    assert cli("check", *options) == (2, "", f"error: {words} (`mslint rule` lists them)\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "--select", ""], "argument --select: '' names no rule; leave the option out, or write ALL"),
        (["fix", "--ignore", ","], "argument --ignore: ',' names no rule; leave the option out, or write ALL"),
        (["fix", "--no-such-option"], "unknown argument '--no-such-option'"),
        (["check", "--selct=MS1"], "unknown argument '--selct'; did you mean --select?"),
        (["check", "--fix"], "unknown argument '--fix'; did you mean `mslint fix`?"),
        (["check", "--output-format", "xml"], "argument --output-format: invalid choice: 'xml'"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(cli, arguments: list[str], words: str) -> None:
    code, out, err = cli(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: mslint {arguments[0]}: {words}")
    assert err.endswith(f"; try `mslint {arguments[0]} --help`\n")


@pytest.mark.parametrize("pattern", ["!", "a\\\\"])
def test_a_pattern_that_means_nothing_is_an_error(cli, project: Path, pattern: str) -> None:
    (project / "a.py").touch()
    said = "is no pattern; write one as in .gitignore"
    for settings in (f'exclude = ["{pattern}"]', f'per-file-ignores = {{"{pattern}" = ["MS9"]}}'):
        (project / "mslint.toml").write_text(settings)
        code, out, err = cli("check")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"error: mslint.toml: {settings.split()[0]}: ")
        assert said in err
    (project / "mslint.toml").unlink()
    assert said in cli("check", "--per-file-ignores", "!:MS9").err
    (project / ".gitignore").write_text("!\na.py\n")  # git passes over it
    assert cli("check", "--show-files").out == ""


def test_suppressed(cli, project: Path) -> None:
    (project / "a.py").write_text("old_call()  # noqa: MS901\nold_call()  # mslint: ignore[MS901] measured\n")
    assert cli("check").code == 0


def test_statistics(cli, project: Path) -> None:
    (project / "a.py").write_text(TWO)
    assert cli("check", "--statistics").out == "     2 MS901  old-call  (1 fixable with `mslint fix`)\n"
    assert json.loads(cli("check", "--statistics", "--output-format", "json").out) == [
        {"code": "MS901", "name": "old-call", "count": 2, "fixable": 1}
    ]


def test_exit_zero_does_not_hide_errors(cli, project: Path) -> None:
    (project / "a.py").write_text(TWO)
    assert cli("check", "--exit-zero").code == 0
    assert cli("check", "--exit-zero", "missing.py").code == 2


def test_output_file(cli, project: Path) -> None:
    (project / "a.py").write_text(TWO)
    assert cli("check", "--output-format", "json", "--output-file", "report.json") == (1, "", "")
    assert len(json.loads((project / "report.json").read_text())) == 2
    assert cli("check", "--output-file", "no/such/folder").code == 2


def test_show_files(cli, project: Path) -> None:
    (project / "b.py").touch()
    (project / "a.py").touch()
    assert cli("check", "--show-files") == (0, "a.py\nb.py\n", "")


def test_standard_input(cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"old_call()\n")))
    out = cli("check", "-", "--stdin-filename", "src/train.py", "--output-format", "concise").out
    assert out.startswith("src/train.py:1:1: MS901")
    assert cli("check", "-", "a.py").code == 2


def test_standard_input_is_left_out_like_a_file_of_its_name(cli, project: Path, monkeypatch) -> None:
    (project / "mslint.toml").write_text('exclude = ["data"]')
    for text in (b"old_call()\n", b"old_call(\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert cli("check", "-", "--stdin-filename", "data/a.py", "--force-exclude") == (0, "All checks passed.\n", "")


def test_control_characters_stay_off_the_terminal(cli, project: Path) -> None:
    (project / "a.py").write_text("x = '\x1b[2J'; old_call()\n")
    assert "\x1b" not in cli("check").out


def test_colour_on_demand(cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text("old_call()\n")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in cli("check").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;33m" in cli("check").out


def test_what_is_let_go_is_found_again(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures"
    folders = [fixtures / name for name in ("freeze-parameters", "rank-seed", "shard-dataset", "stop-gradient")]
    arguments = ("check", "--no-cache", "--jobs", "1", "--output-format", "json", *folders)
    kept = cli(*arguments).out
    monkeypatch.setattr(mslint.program.project, "_MOST_FUNCTIONS", 1)
    monkeypatch.setattr(mslint.program.distribution, "_MOST_KEPT", 1)
    monkeypatch.setattr(mslint.semantics.foreign, "_MOST_TEXT", 1)
    assert cli(*arguments).out == kept
    assert len(json.loads(kept)) > 10
