"""``mslint`` as a process: what it imports, whose modules, how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODULES = """
import sys
from mslint.cli import main
code = main(sys.argv[1:])
print(code, *sorted({"libcst", "networkx", "mindspore", "pathspec"} & set(sys.modules)))
"""


def python(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "arguments", [["--version"], ["check", "plain.py"], ["check", "."], ["fix", "plain.py"], ["check", "--show-files"]]
)
def test_nothing_heavy_is_imported_without_need(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "plain.py").write_text("import torch\n")
    result = python("-c", MODULES, *arguments, cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == "0", result.stderr


def imported(*arguments: str, cwd: Path) -> set[str]:
    """Return what a run of ``mslint`` with ``arguments`` imports, beside what Python starts with."""
    code = "known = {*sys.modules}; from mslint.cli import main; main(sys.argv[1:]); print(*{*sys.modules} - known)"
    return set(python("-c", f"import sys; {code}", *arguments, cwd=cwd).stdout.splitlines()[-1].split())


@pytest.mark.parametrize("table", ["", "[tool.mslint]\nignore = ['MS2']\n"])
def test_a_file_in_which_no_rule_can_fire_costs_few_imports(tmp_path: Path, table: str) -> None:
    """What these modules cost to import is more than what the file costs to check."""
    (tmp_path / "plain.py").write_text("import torch\n")
    (tmp_path / "pyproject.toml").write_text(table)
    loaded = imported("check", "plain.py", cwd=tmp_path)
    libraries = {"libcst", "networkx", "mindspore", "pathspec", "numpy", "rich", "pygls"}
    of_python = {
        "asyncio", "difflib", "email.message", "hashlib", "importlib.metadata", "json", "multiprocessing", "random", "shutil",
        "sqlite3", "tempfile", "textwrap", "traceback",
    }  # fmt: skip
    parts = {"mslint.cache", "mslint.program", "mslint.semantics", "mslint.verify"}
    ours = {"mslint.source.identity", "mslint.source.notebook", "mslint.source.suppression", "mslint.source.write"}
    assert loaded & (libraries | of_python | parts | ours) == set()
    assert len([name for name in loaded if name.startswith(("mslint", "codemods"))]) < 35


def test_the_version_costs_hardly_any_imports(tmp_path: Path) -> None:
    loaded = imported("--version", cwd=tmp_path)
    ours = {name for name in loaded if name.startswith(("mslint", "codemods"))}
    assert ours == {"mslint", *(f"mslint.{name}" for name in ("cli", "console", "language", "shadowing"))}
    assert loaded & {"ast", "dataclasses", "email", "importlib.metadata", "json"} == set()


def test_the_working_directory_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "codemods").mkdir()
    for name in ("codemods/__init__.py", "libcst.py", "argparse.py", "networkx.py", "pathspec.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the working directory')\n")
    info = tmp_path / "stray.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: stray\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mslint.rules]\nstray = libcst:Stray\n")
    (tmp_path / "train.py").write_text("from mindspore.ops import GradOperation\n")
    for environment in ({}, {"PYTHONPATH": "."}, {"PYTHONPATH": str(tmp_path)}):
        result = python("-m", "mslint", "check", "train.py", cwd=tmp_path, **environment)
        if environment:  # Python itself imports what it starts with before we can object
            (tmp_path / "argparse.py").unlink(missing_ok=True)
        assert (result.returncode, result.stdout, result.stderr) == (0, "All checks passed.\n", ""), environment


def test_a_plugin_that_does_not_load_is_named_and_left_out(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "bad-1.dist-info").mkdir(parents=True)
    (site / "bad-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    (site / "bad-1.dist-info" / "entry_points.txt").write_text(
        "[mslint.rules]\nbad = not_there:Rule\nodd = os:getcwd\n[mslint.codemods]\nbare = codemods.base:Codemod\n"
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").touch()
    result = python("-m", "mslint", "check", cwd=tmp_path / "work", PYTHONPATH=str(site))
    assert result.returncode == 0
    assert result.stdout == "All checks passed.\n"
    assert sorted(line.split(": ")[1] for line in result.stderr.splitlines()) == [
        "plugin bad (not_there:Rule) does not load",
        "plugin bare (codemods.base:Codemod) lacks name, summary, applicability, rules",
        "plugin odd (os:getcwd) is no Rule",
    ]


def test_a_failure_that_nobody_foresaw_is_one_line(tmp_path: Path) -> None:
    info = tmp_path / "site" / "odd-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mslint.rules]\nodd = odd:Odd\n")
    (tmp_path / "site" / "odd.py").write_text(
        "from mslint.rules.base import Rule\n\n\n"
        "class Odd(Rule):\n    code, name, severity, summary, triggers = 'X1', 'x', None, '', ('no bytes',)\n"
    )
    (tmp_path / "a.py").touch()
    result = python("-m", "mslint", "check", "a.py", cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: mslint failed on check a.py: AttributeError")
    assert result.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_causes_no_noise(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"a_rather_long_name_for_a_file_{number}.py").touch()
    command = f"{sys.executable} -m mslint check --show-files | head -1"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.stdout == "a_rather_long_name_for_a_file_0.py\n"
    assert result.stderr == ""


@pytest.mark.parametrize("verb", ["check a.py", "fix --diff a.py", "rule", "codemod"])
def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path, verb: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    full = "No space left on device"
    command = f"{sys.executable} -m mslint {verb}"
    for redirection, why in ((">/dev/full", full), (">&-", "standard output is closed")):
        if verb == "fix --diff a.py" and why == full:
            continue  # an empty patch is written without trouble
        result = subprocess.run(f"{command} {redirection}", shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (2, f"error: the report cannot be written: {why}\n")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_where_no_error_can_be_written_the_exit_code_tells(tmp_path: Path, redirection: str) -> None:
    command = f"{sys.executable} -m mslint check none.py {redirection}"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert "error" not in result.stdout


def test_standard_input_that_is_closed(tmp_path: Path) -> None:
    command = f"{sys.executable} -m mslint check - <&-"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (2, "error: -: standard input is closed; name a file instead\n")


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mslint", "check", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)  # it waits for its standard input by now
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.parametrize("verb", ["check", "fix", "verify", "rule", "codemod", "baseline", "config"])
def test_help_fits_one_screen(tmp_path: Path, verb: str) -> None:
    result = python("-m", "mslint", verb, "--help", cwd=tmp_path, COLUMNS="80")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) <= 40


def test_without_a_command_the_commands_are_listed(tmp_path: Path) -> None:
    result = python("-m", "mslint", cwd=tmp_path, COLUMNS="80")
    assert result.returncode == 2
    assert "verify" in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 80
    assert python("-m", "mslint", "chekc", cwd=tmp_path).stderr.startswith(
        "error: unknown command 'chekc'; did you mean check?"
    )


def test_findings_are_the_same_whatever_the_order_of_sets(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(
        "from mindspore import nn\n\n\nclass Loss(nn.Cell):\n"
        "    def __init__(self, student, teacher):\n        super().__init__()\n"
        "        self.student, self.teacher, self.distance = student, teacher, nn.MSELoss()\n\n"
        "    def construct(self, x):\n        return self.distance(self.student(x), self.teacher(x))\n"
    )
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.py").write_text(
            "from mindspore import nn\n\nfrom loss import Loss\n\nstudent = nn.Dense(4, 4)\n"
            "loss = Loss(student, nn.Dense(4, 4))\nstep = nn.TrainOneStepCell(loss, nn.SGD(student.trainable_params()))\n"
        )
    said = {
        python("-m", "mslint", "check", "--no-cache", ".", cwd=tmp_path, PYTHONHASHSEED=seed).stdout for seed in "1234"
    }
    assert len(said) == 1
    assert "MS102" in said.pop()
