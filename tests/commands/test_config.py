"""``[tool.mslint]`` and mslint.toml."""

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from mslint.config import KEYS, VERIFY_KEYS, read_config
from mslint.console import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = json.loads((Path(__file__).parents[2] / "mslint" / "data" / "mslint.schema.json").read_text())


@pytest.fixture
def script(project: Path) -> Path:
    (project / "pkg").mkdir()
    script = project / "pkg" / "a.py"
    script.write_text("old_call()\n")
    return script


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ('select = ["MS1"]', False),
        ('select = ["MS1"]\nextend-select = ["old-call"]', True),
        ('ignore = ["MS901"]', False),
        ('exclude = ["pkg/"]', False),
        ('exclude = ["/a.py"]', True),
        ('per-file-ignores = {"pkg/*" = ["MS9"]}', False),
        ('per-file-ignores = {"other/*" = ["MS9"]}', True),
        ('target-version = "2.7"', True),
        ('ignore = ["warning"]', False),
        ('ignore = ["info", "error", "autodiff"]', True),
        ('select = ["info"]', False),
        ('extend-exclude = ["pkg/"]', False),
        ('paths = ["pkg"]', True),
        ('paths = ["."]\nextend-exclude = ["*.py"]', False),
    ],
)
def test_keys(cli, project: Path, script: Path, settings: str, found: bool) -> None:
    (project / "pyproject.toml").write_text("[tool.mslint]\n" + settings)
    assert cli("check").code == int(found)
    (project / "pyproject.toml").unlink()
    (project / "mslint.toml").write_text(settings)
    assert cli("check").code == int(found)


def test_it_is_found_upwards_and_a_pyproject_without_a_word_on_us_is_passed(cli, project: Path, script: Path) -> None:
    (project / "mslint.toml").write_text('ignore = ["ALL"]')
    (project / "pkg" / "pyproject.toml").write_text("[tool.black]\n")
    assert cli("check", script).code == 0


def test_a_file_named_is_checked_though_excluded(cli, project: Path, script: Path) -> None:
    (project / "mslint.toml").write_text('exclude = ["pkg"]')
    assert cli("check", script).code == 1


def test_the_command_line_goes_before(cli, project: Path, script: Path) -> None:
    (project / "mslint.toml").write_text('select = ["MS1"]\nignore = ["MS901"]')
    assert cli("check", "--select", "MS901").code == 1
    (project / "other.toml").write_text("")
    assert cli("check", "--config", "other.toml").code == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('selct = ["MS1"]', "mslint.toml: unknown key 'selct'; did you mean select?"),
        ('select = "MS1"', 'mslint.toml: select must be a list of strings such as ["MS101"]'),
        ("target-version = 2.10", 'mslint.toml: target-version must stand in quotes, as in target-version = "2.10"\n'),
        (
            'target-version = "two"',
            "mslint.toml: target-version: 'two' is no version of MindSpore such as 2.10; write it as ",
        ),
        ('ignore = ["MS910"]', "unknown rule 'MS910' in "),
        ("[verify]\nrank = 1", "mslint.toml: unknown key 'rank' in [verify]; did you mean ranks?"),
        ("colour = 1", "mslint.toml: unknown key 'colour'; there are paths, select, "),
        ('ignore = ["erorr"]', "unknown rule 'erorr' in mslint.toml; did you mean error? ("),
        ("[tool.mslint]", "mslint.toml: [tool.mslint] is for pyproject.toml; here its keys stand at the top\n"),
        ("verify = 1", "mslint.toml: verify must be a table: write [verify] above its keys\n"),
        ("a = 1\nselect 'MS1'", "mslint.toml:2:8: is no TOML ("),
        ("select = [", "mslint.toml: is no TOML ("),
    ],
)
def test_mistakes_are_one_line_that_names_file_and_key(cli, project: Path, settings: str, words: str) -> None:
    (project / "mslint.toml").write_text(settings)
    code, out, err = cli("check")
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_mistakes_in_a_pyproject_name_its_table(cli, project: Path) -> None:
    for settings, words in (
        ("[tool.mslint]\nselct = []", "unknown key 'selct' in [tool.mslint]; did you mean select?"),
        ("[tool.mslint.verify]\nrank = 1", "unknown key 'rank' in [tool.mslint.verify]; did you mean ranks?"),
    ):
        (project / "pyproject.toml").write_text(settings)
        assert cli("check").err == f"error: pyproject.toml: {words}\n"


def test_of_two_files_in_a_folder_mslint_toml_counts_alone(cli, project: Path, script: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.mslint]\nignore = ["ALL"]')
    (project / "mslint.toml").write_text("")
    assert cli("check").code == 1
    assert cli("config").out.startswith("# mslint.toml\n# passed over: [tool.mslint] in pyproject.toml\n")
    (project / "pyproject.toml").write_text("[tool.black]\n")
    assert "passed over" not in cli("config").out


def test_a_config_file_must_be_there_and_say_something(cli, project: Path) -> None:
    assert cli("check", "--config", "none.toml").code == 2
    (project / "pyproject.toml").write_text("")
    assert "has no [tool.mslint]" in cli("check", "--config", "pyproject.toml").err


def test_the_nearest_configuration_of_each_file_counts_alone(cli, project: Path, script: Path) -> None:
    (project / "b.py").write_text("old_call()\n")
    (project / "mslint.toml").write_text('ignore = ["MS901"]')
    (project / "pkg" / "pyproject.toml").write_text("[tool.mslint]\n")
    assert cli("check", "--output-format", "concise").out.startswith("pkg/a.py:1:1: MS901")
    assert cli("fix").out == "Fixed 1 finding in 1 file.\n  1 old-call (by new-call)\n"
    assert (project / "b.py").read_text() == "old_call()\n"


def test_a_nested_configuration_excludes_below_itself(cli, project: Path, script: Path) -> None:
    (project / "mslint.toml").write_text('exclude = ["b.py"]')
    (project / "pkg" / "mslint.toml").write_text('exclude = ["a.py"]')
    (project / "b.py").touch()
    (project / "pkg" / "b.py").touch()
    assert cli("check", "--show-files").out == "pkg/b.py\n"
    assert cli("check", "--show-files", "b.py", "pkg/a.py", "pkg/b.py", "--force-exclude").out == "pkg/b.py\n"
    assert cli("check", "b.py", "--force-exclude") == (0, "All checks passed.\n", "")


def test_exclude_replaces_the_folders_that_are_skipped_and_extend_exclude_does_not(cli, project: Path) -> None:
    for folder in ("build", "data"):
        (project / folder).mkdir()
        (project / folder / "a.py").touch()
    (project / "mslint.toml").write_text('extend-exclude = ["data"]')
    assert cli("check", "--show-files").out == ""
    (project / "mslint.toml").write_text('exclude = ["data"]')
    assert cli("check", "--show-files").out == "build/a.py\n"


def test_a_severity_means_the_findings_of_that_severity(cli, project: Path) -> None:
    (project / "a.py").write_text("maybe_call()\nold_call()\n")
    assert cli("check", "--ignore", "info", "--output-format", "concise").out.startswith("a.py:2:1: MS901")
    assert cli("check", "--select", "info", "--output-format", "concise").out.startswith("a.py:1:1: MS901")
    assert cli("fix", "--ignore", "info").code == 0
    assert (project / "a.py").read_text() == "maybe_call()\nnew_call()\n"


def test_paths_are_relative_to_the_configuration(cli, project: Path, script: Path, monkeypatch) -> None:
    (project / "mslint.toml").write_text('paths = ["pkg"]')
    (project / "other").mkdir()
    monkeypatch.chdir(project / "other")
    assert f"{script}:1:1: MS901" in cli("check", "--output-format", "concise").out
    (project / "mslint.toml").write_text('paths = ["pgk"]')
    assert cli("check").err.endswith("mslint.toml: paths: pgk: no such file or folder; correct it\n")


def test_links_and_parent_folders_do_not_lead_astray(cli, project: Path, script: Path, monkeypatch) -> None:
    (project / "link").symlink_to("pkg")
    (project / "mslint.toml").write_text('per-file-ignores = {"pkg/*" = ["MS901"]}')
    monkeypatch.chdir(project / "link")
    assert cli("check", "../link/a.py").code == 0
    assert cli("check", "a.py", "--per-file-ignores", "b.py:MS1").code == 0


def test_what_holds_is_printed_as_toml_that_means_the_same(cli, project: Path, script: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.mslint]\nignore = ["data"]\nper-file-ignores = {"训练/\\"*" = ["MS9"], "a.py" = ["MS1"]}\n'
        'baseline = "known.toml"\nverify = {args = ["--n", "1"], fake-data = true, timeout = 2.5}\n'
    )
    code, out, err = cli("config", script)
    assert (code, err) == (0, "")
    assert out.startswith("# pyproject.toml\n# checked: ")
    assert "MS101" not in out.splitlines()[1]
    assert "MS901" in out.splitlines()[1]
    (project / "pyproject.toml").unlink()
    (project / "mslint.toml").write_text(out)
    again = cli("config", script).out
    assert again.splitlines()[1:] == out.splitlines()[1:]
    printed = json.loads(cli("config", script, "--output-format", "json").out)
    assert printed["file"] == str(project / "mslint.toml")
    assert printed["settings"]["verify"] == {
        "entry": None,
        "args": ["--n", "1"],
        "fake-data": True,
        "inputs": [],
        "ranks": None,
        "timeout": 2.5,
    }


def test_without_a_configuration_the_defaults_are_printed(cli, project: Path) -> None:
    assert cli("config").out.startswith("# no [tool.mslint] and no mslint.toml from here upwards\n")
    assert json.loads(cli("config", "--output-format", "json").out)["file"] is None
    assert cli("config", "none.py").err == "error: none.py: no such file or folder; check the spelling of the path\n"


def test_the_schema_knows_the_keys_that_the_code_knows() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]) == set(KEYS)
    assert set(SCHEMA["properties"]["verify"]["properties"]) == set(VERIFY_KEYS)


@pytest.mark.parametrize(
    ("settings", "valid"),
    [
        ('select = ["MS1"]', True),
        ("select = [1]", False),
        ('select = "MS1"', False),
        ('per-file-ignores = {"a" = ["MS1"]}', True),
        ('per-file-ignores = {"a" = "MS1"}', False),
        ('per-file-ignores = ["MS1"]', False),
        ('target-version = "2.10.1"', True),
        ('target-version = "2"', False),
        ("target-version = 2.10", False),
        ('baseline = "b.toml"', True),
        ('baseline = ""', False),
        ("baseline = true", False),
        ('paths = ["src"]', True),
        ("paths = {}", False),
        ('verify = {entry = "main", args = ["1"], ranks = 2, timeout = 1.5}', True),
        ('verify = {fake-data = true, inputs = ["image=float32[4,3]"]}', True),
        ("verify = {fake-data = 1}", False),
        ('verify = {inputs = "x"}', False),
        ("verify = {ranks = 0}", False),
        ("verify = {ranks = true}", False),
        ("verify = {ranks = 1.5}", False),
        ("verify = {timeout = 0}", False),
        ("verify = {timeout = inf}", False),
        ("verify = {memory = 1}", False),
        ("verify = 1", False),
        ("selct = []", False),
    ],
)
def test_schema_and_code_agree(tmp_path: Path, settings: str, valid: bool) -> None:
    assert jsonschema.Draft7Validator(SCHEMA).is_valid(tomllib.loads(settings)) is valid
    (tmp_path / "mslint.toml").write_text(settings)
    if valid:
        read_config(tmp_path / "mslint.toml")
    else:
        with pytest.raises(UsageError, match=r"mslint\.toml: "):
            read_config(tmp_path / "mslint.toml")
