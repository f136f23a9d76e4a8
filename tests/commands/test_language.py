"""The command line in Simplified Chinese, by one catalogue that lacks nothing."""

import ast
import json
import re
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import pytest

import codemods.registry
import mslint.rules.registry
from mslint import cli as command_line
from mslint.language import catalogue, of_locale
from mslint.source import text

PACKAGE = Path(command_line.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def said_of_options() -> set[str]:
    """What the help texts say of options and of groups of them."""
    found = {"English or Chinese (default: the locale's)", "print the version"}
    for verb in command_line.VERBS:
        parser = ArgumentParser()
        import_module(f"mslint.commands.{verb}").add_arguments(parser)
        found |= {action.help for action in parser._actions if action.help}
        found |= {said for group in parser._action_groups for said in (group.title, group.description) if said}
    return found


def sentences() -> set[str]:
    """All that goes through the catalogue: what ``translated`` is called with, and the constants it is given."""
    found = {*command_line.VERBS.values(), command_line._EXIT_CODES, text._SAVE_AS_UTF8, *said_of_options()}
    for file in [*PACKAGE.rglob("*.py"), *PACKAGE.parent.glob("codemods/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "translated":
                if isinstance(node.args[0], ast.Constant):
                    found.add(node.args[0].value)
    return found


def test_the_catalogue_has_every_sentence_and_no_other() -> None:
    assert set(catalogue()["sentences"]) == sentences()


def test_help_texts_in_chinese(cli) -> None:
    for verb in command_line.VERBS:
        said = cli(verb, "--help", "--lang", "zh").out
        assert "选项:\n  -h, --help" in said
        assert "显示此帮助信息并退出" in said


def test_the_catalogue_has_every_rule_and_codemod_of_ours() -> None:
    rules = {rule.code for rule in mslint.rules.registry.BUILT_IN}
    assert set(catalogue()["rules"]) == set(catalogue()["explanations"]) == rules
    assert set(catalogue()["codemods"]) == {codemod.name for codemod in codemods.registry.BUILT_IN}


def test_translations_are_chinese_and_have_the_fields_of_the_english() -> None:
    for kind, entries in catalogue().items():
        for english, chinese in entries.items():
            assert CHINESE.search(chinese), (kind, english)
            if kind == "sentences":
                fields = [sorted(re.findall(r"\{\w*", words)) for words in (english, chinese)]
                assert fields[0] == fields[1], english


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_SG.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_the_locale_decides(variables: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert of_locale() == language


def test_reports_in_chinese(cli, project: Path) -> None:
    (project / "a.py").write_text("import mindspore.dataset as ds\n\nold_call()\nx = 1  # mslint: ignore[MS101]\n")
    found = cli("check", "--lang", "zh")
    assert "a.py:4:8: info MS001 unused-suppression: 抑制注释没有抑制任何问题。" in found.out
    assert found.out.endswith("发现 2 个问题（其中 2 个可用 `mslint fix` 修复）。\n")
    # What programs read stays as it is; a plugin's rule has no Chinese.
    [comment, call] = json.loads(cli("check", "--lang", "zh", "--output-format", "json").out)
    assert not CHINESE.search(json.dumps([comment, call], ensure_ascii=False))
    [run] = json.loads(cli("check", "--lang", "zh", "--output-format", "sarif").out)["runs"]
    described = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert described == {"MS001": "抑制注释没有抑制任何问题", "MS901": "a call of a function that is no more"}
    assert cli("fix", "--lang", "zh").out.startswith(
        "已在 1 个文件中修复 2 个问题。\n  1 个 old-call（由 new-call 改写）\n"
    )


def test_the_configuration_decides_unless_the_command_line_does(cli, project: Path) -> None:
    (project / "mslint.toml").write_text('lang = "zh"\n')
    assert cli("check").err == f"警告：在 {Path()} 下没有找到 Python 文件\n"
    assert cli("check", "--lang=en").err.startswith("warning: no Python files found")
    (project / "mslint.toml").write_text('lang = "fr"\n')
    assert cli("check").err == 'error: mslint.toml: lang must be "en" or "zh"\n'


def test_errors_and_explanations_in_chinese(cli, project: Path) -> None:
    assert cli("check", "--lang", "zh", "gone.py").err == "错误：gone.py: 文件或目录不存在; 请检查路径是否正确\n"
    assert cli("rule", "--lang", "zh", "MS10l").err.startswith("错误：规则 'MS10l' 不存在；是否想写 MS10")
    listed = cli("rule", "--lang", "zh").out
    assert "MS101  warning  whole-network-grad: 用 GradOperation 对网络的权重求导" in listed
    assert "反向图便会一直延伸" in cli("rule", "--lang", "zh", "MS102").out
    assert "rank-seed: 网络和数据分片建好之前" in cli("codemod", "--lang", "zh").out
    assert cli("chekc", "--lang", "zh").err.startswith("错误：未知命令 'chekc'；是否想写 check？")
    assert cli("--lang", "zh", "check", "gone.py").err.startswith("错误：gone.py: 文件或目录不存在")
    assert cli("--lang=zh", "rule", "MS10l").err.startswith("错误：规则 'MS10l' 不存在")
