"""``[tool.mslint]`` and mslint.toml."""

from pathlib import Path

import pytest


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
        ('selct = ["MS1"]', "mslint.toml: unknown key 'selct' in [tool.mslint]; did you mean select?"),
        ('select = "MS1"', 'mslint.toml: select must be a list of strings such as ["MS101"]'),
        ("target-version = 2.10", 'mslint.toml: target-version must stand in quotes, as in target-version = "2.10"\n'),
        (
            'target-version = "two"',
            "mslint.toml: target-version: 'two' is no version of MindSpore such as 2.10; write it as ",
        ),
        ('ignore = ["MS910"]', "unknown rule 'MS910' in "),
        ("select = [", "mslint.toml: cannot be read: "),
    ],
)
def test_mistakes_are_one_line_that_names_file_and_key(cli, project: Path, settings: str, words: str) -> None:
    (project / "mslint.toml").write_text(settings)
    code, out, err = cli("check")
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_config_file_must_be_there_and_say_something(cli, project: Path) -> None:
    assert cli("check", "--config", "none.toml").code == 2
    (project / "pyproject.toml").write_text("")
    assert "has no [tool.mslint]" in cli("check", "--config", "pyproject.toml").err
