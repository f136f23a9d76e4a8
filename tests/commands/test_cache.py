"""``mslint check`` with what it knows from earlier runs: faster, and never otherwise."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from programs import HUSHED, HUSHED_STEP

import mslint.commands.examination as examination
import mslint.program.trees as trees
from mslint.cache.encoding import decoded, encoded
from mslint.cache.store import Store
from mslint.findings import Applicability, Edit, Finding, Fix, Position, Related, Severity

if TYPE_CHECKING:
    from conftest import Run

    from mslint.engine import Screened
    from mslint.rules.registry import AnyRule
    from mslint.source.text import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NET = "from mindspore import nn\n\n\nclass Net(nn.Cell):\n    def construct(self, x):\n        return x\n"


@pytest.fixture(autouse=True)
def marked(project: Path) -> None:
    """Let the project end at its own folder, whatever else lies beside it."""
    (project / "pyproject.toml").touch()


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files in which rules had to look for something."""
    names: list[str] = []
    screened = examination.screened

    def noted(source: Source, rules: Sequence[AnyRule], silent: Collection[str]) -> Screened:
        known = screened(source, rules, silent)
        if known.idle is None or not silent:
            names.append(source.path.name)
        return known

    monkeypatch.setattr(examination, "screened", noted)
    return names


def kept(project: Path) -> Path:
    (file,) = (project / ".mslint_cache").glob("*.sqlite")
    return file


def settled(cli: Run, *arguments: str) -> str:
    """Check with and without the cache, which must come to the same; return the findings."""
    with_cache = cli("check", "--output-format", "json", *arguments)
    without = cli("check", "--output-format", "json", "--no-cache", *arguments)
    assert with_cache == without
    return with_cache.out


def cells(*codes: str) -> str:
    """Return a notebook with these cells of code."""
    made = [
        {"cell_type": "code", "id": str(number), "metadata": {}, "outputs": [], "execution_count": None, "source": code}
        for number, code in enumerate(codes)
    ]
    return json.dumps({"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": made})


def test_a_notebook_is_not_examined_again_unless_its_cells_are_others(
    cli: Run, project: Path, examined: list[str]
) -> None:
    notebook = project / "train.ipynb"
    notebook.write_text(cells("old_call()\n", "old_call()\n"))
    (project / "net.py").write_text(NET)
    first = settled(cli)
    examined.clear()
    assert cli("check", "--output-format", "json").out == first
    assert examined == []
    assert [finding["cell"] for finding in json.loads(first)] == [1, 2]
    notebook.write_text(cells("old_call()\n\nold_call()\n"))
    assert [finding["cell"] for finding in json.loads(settled(cli))] == [1, 1]


def test_a_second_run_examines_and_parses_nothing(
    cli: Run, project: Path, examined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "clean.py").write_text("import torch\n")
    (project / "old.py").write_text("old_call()\n")
    (project / "broken.py").write_text("def\n")
    shutil.copy(FIXTURES / "rank-blind-seed" / "bad.py", project / "train.py")
    first = cli("check", "--output-format", "json")
    assert sorted(examined) == ["broken.py", "clean.py", "old.py", "train.py"]
    assert {finding["code"] for finding in json.loads(first.out)} >= {"MS002", "MS302", "MS901"}
    examined.clear()

    def refused(text: str) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(trees, "parsed", refused)
    assert cli("check", "--output-format", "json") == first
    assert examined == []
    assert (project / ".mslint_cache" / ".gitignore").read_text().endswith("*\n")


def test_without_a_cache_nothing_is_kept(cli: Run, project: Path, examined: list[str]) -> None:
    (project / "old.py").write_text("old_call()\n")
    cli("check", "--no-cache")
    cli("check", "--no-cache")
    assert examined == ["old.py", "old.py"]
    assert not (project / ".mslint_cache").exists()


def test_it_lies_where_it_is_told_to(
    cli: Run, project: Path, examined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "old.py").write_text("old_call()\n")
    cli("check", "--cache-dir", "there")
    cli("check", "--cache-dir", "there")
    monkeypatch.setenv("MSLINT_CACHE_DIR", str(project / "there"))
    cli("check")
    assert examined == ["old.py"]
    assert not (project / ".mslint_cache").exists()


def test_it_lies_beside_the_configuration(cli: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "mslint.toml").touch()
    (project / "src").mkdir()
    (project / "src" / "old.py").write_text("old_call()\n")
    monkeypatch.chdir(project / "src")
    cli("check")
    assert kept(project).is_file()


def test_it_lies_among_the_users_caches_where_the_project_is_read_only(
    cli: Run,
    project: Path,
    examined: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caches = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    monkeypatch.setattr(os, "access", lambda path, mode: not Path(path).is_relative_to(project))
    (project / "old.py").write_text("old_call()\n")
    cli("check")
    cli("check")
    assert examined == ["old.py"]
    assert list(caches.rglob("*.sqlite"))


def test_other_rules_versions_and_working_directories_are_other_results(
    cli: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "old.py").write_text("old_call()\n")
    for arguments in ([], ["--ignore", "MS9"], ["--ignore", "warning"], ["--target-version", "2.3"], []):
        settled(cli, *arguments)
    (project / "mslint.toml").write_text('[per-file-ignores]\n"old.py" = ["MS9"]\n')
    assert settled(cli) == "[]\n"
    (project / "below").mkdir()
    other = project / "below" / "mslint.toml"
    other.touch()
    monkeypatch.chdir(project / "below")
    assert '"filename": "/' in settled(cli, str(project / "old.py"), "--config", str(other))


def test_a_failure_is_told_each_time(cli: Run, project: Path) -> None:
    (project / "old.py").write_text("crash()\nold_call()\n")
    assert [cli("check").code for _ in range(2)] == [2, 2]
    assert "the plugin's bug" in cli("check").err


def test_a_changed_plugin_is_asked_again(cli: Run, project: Path, site: Path, examined: list[str]) -> None:
    (project / "old.py").write_text("old_call()\n")
    cli("check")
    with (site / "demo_plugin.py").open("a") as stream:
        stream.write("# changed\n")
    cli("check")
    assert examined == ["old.py", "old.py"]


def test_a_change_is_felt_where_it_matters_alone(cli: Run, project: Path, examined: list[str]) -> None:
    (project / "plain.py").write_text("import torch\n")
    base = f"from mindspore import ops\n{NET}"
    freeze = "\n\ndef freeze(parameter):\n    parameter.requires_grad = False\n"
    (project / "base.py").write_text(base)
    (project / "net.py").write_text(
        "from base import Net, ops\n\n\nclass Own(Net):\n    def construct(self, x):\n        return ops.log(x + 1e-7)\n"
    )
    (project / "alone.py").write_text(NET)
    cli("check")
    for text, wanted in (
        (f"# a comment\n\n{base}", []),
        (f"{base}\n\nclass More(Net):\n    pass\n", []),
        (base.replace("return x", "return -x"), []),
        (base.replace("from mindspore import ops", "import torch as ops"), ["net.py"]),
        (base + freeze, ["base.py", "net.py"]),  # from here on it matters what the networks compute
        (base.replace("return x", "return -x") + freeze, ["base.py"]),
    ):
        examined.clear()
        (project / "base.py").write_text(text)
        cli("check")
        assert examined == wanted


def test_a_comment_is_felt_where_it_may_matter_alone(cli: Run, project: Path, examined: list[str]) -> None:
    (project / "net.py").write_text(NET)
    shutil.copy(FIXTURES / "rank-blind-seed" / "bad.py", project / "train.py")
    settled(cli)
    for name, comment, wanted in (
        ("net.py", "# a comment\n", []),
        ("train.py", "# a comment\n", ["train.py"]),  # its findings have moved
        ("net.py", "# mslint: ignore-file[MS102]\n", []),  # a rule that is known to be silent: nothing is spared
        ("net.py", "# old_call()\n", ["net.py"]),  # wakes the rule of a plugin, which may read comments
    ):
        examined.clear()
        _insert(project / name, 0, comment)
        cli("check")
        assert examined == wanted
        assert ("MS001" in settled(cli)) is (comment != "# a comment\n")


def test_a_name_is_felt_where_it_is_used_alone(cli: Run, project: Path, examined: list[str]) -> None:
    script = (FIXTURES / "rank-blind-seed" / "bad.py").read_text()
    (project / "train.py").write_text(script.replace("SEED = 1\n", "from passing import *\n\nSEED = 1\n", 1))
    (project / "passing.py").write_text("from tools import *\n")
    (project / "tools.py").write_text("import os\n\n\ndef used():\n    return os.sep\n\n\nprint(used())\n")
    found = settled(cli)
    assert "MS302" in found
    for text in ("\n\ndef spare(width, height=1):\n    return width + height\n", "\n\nSPARE = 1\n", "\n\nSPARE = 2\n"):
        examined.clear()
        _append(project / "tools.py", text)
        cli("check")
        assert examined == ["tools.py"]
        assert settled(cli) == found
    _append(project / "tools.py", "\n\ndef init():\n    return None\n")
    assert "MS302" not in settled(cli)


def test_what_a_name_is_given_to_is_felt_where_it_is_used(cli: Run, project: Path) -> None:
    script = (FIXTURES / "rank-blind-seed" / "bad.py").read_text()
    (project / "train.py").write_text(
        script.replace("SEED = 1\n", "import tools\n\nSEED = 1\n").replace(
            "        init()\n", "        if tools.DISTRIBUTED:\n            init()\n"
        )
    )
    for text, found in (("DISTRIBUTED = True\n", True), ("DISTRIBUTED = False\n", False), ("DISTRIBUTED = 1\n", True)):
        (project / "tools.py").write_text(text)
        assert ("MS302" in settled(cli)) is found


def test_the_order_of_what_gives_a_name_is_felt(cli: Run, project: Path) -> None:
    script = (FIXTURES / "rank-blind-seed" / "bad.py").read_text()
    (project / "train.py").write_text(
        script.replace("SEED = 1\n", "import tools\n\nSEED = 1\n").replace(
            "        init()\n", "        if tools.DISTRIBUTED:\n            init()\n"
        )
    )
    (project / "usual.py").write_text("DISTRIBUTED = False\n")
    own, others = "DISTRIBUTED = True\n", "from usual import *\n"
    for text, found in ((others + own, True), (own + others, False), (others + own, True)):
        (project / "tools.py").write_text(text)
        assert ("MS302" in settled(cli)) is found


def test_what_stands_in_one_row_is_felt(cli: Run, project: Path) -> None:
    script = (FIXTURES / "rank-blind-seed" / "bad.py").read_text()
    (project / "train.py").write_text(
        script.replace("SEED = 1\n", "from pipeline import build\n\nSEED = 1\n")
        .replace("np.random.randn()", "1")
        .replace("    optimizer = ", "    rows = build(rows)\n    optimizer = ")
    )
    pipeline = (
        "import numpy as np\n\n\ndef build(rows):\n    rows = rows.map(lambda row: row)\n    print(np.random.randn())\n"
    )
    for text in (pipeline, pipeline.replace("\n    print", "; print"), pipeline):
        (project / "pipeline.py").write_text(f"{text}    return rows\n")
        assert ("pipeline.py" in settled(cli)) is ("; " in text)


@pytest.mark.parametrize(
    "importing",
    [
        "import os; import library; library.main()\n",
        "if True: import library\nlibrary.main()\n",
        "import\\\n library\nlibrary.main()\n",
        "import os, \\\n library as used\nused.main()\n",
        "from os import sep; from library import main\nmain()\n",
        "from library import(main)\nmain()\n",
        "\ufeffimport library\nlibrary.main()\n",
        "\fimport library\nlibrary.main()\n",
    ],
)
def test_an_import_is_felt_wherever_it_stands(cli: Run, project: Path, importing: str) -> None:
    library = (FIXTURES / "rank-blind-seed" / "bad.py").read_text().partition("\n\nif __name__")[0]
    (project / "library.py").write_text(library)
    for text, found in (("import os\n", False), (importing, True), (f"{importing}# the end\n", True)):
        (project / "train.py").write_text(text)
        assert ("MS302" in settled(cli)) is found


TEACHER = """from mindspore import nn
from nets import Net, frozen


class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.teacher = frozen()
        self.student = Net()
        self.mse = nn.MSELoss()

    def construct(self, x):
        return self.mse(self.student(x), self.teacher(x))


loss = Loss()
step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
step(1)
"""
NETS = """from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x):
        return self.dense(x)


def frozen():
    net = Net()
    for item in net.get_parameters():
        name = '\\xe9'; item.requires_grad = False
    return net
"""


def test_rows_of_other_files_are_told_as_they_are(cli: Run, project: Path, examined: list[str]) -> None:
    (project / "nets.py").write_text(NETS)
    (project / "train.py").write_text(TEACHER)
    assert "nets.py, row 16" in settled(cli, "--select", "MS102")
    _insert(project / "nets.py", 3, "\n\n")
    assert "nets.py, row 18" in settled(cli, "--select", "MS102")


PICKED = """from mindspore import nn
from wanted import wanted


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Dense(4, 4)
        self.student = nn.Dense(4, 4)
        for item in self.teacher.get_parameters():
            item.requires_grad = False
        self.mse = nn.MSELoss()

    def construct(self, x):
        return self.mse(self.student(x), self.teacher(x))


net = Net()
step = nn.TrainOneStepCell(net, nn.SGD(list(filter(wanted, net.get_parameters()))))
step(1)
"""
WANTED = "def wanted(item):\n    return item.requires_grad\n"
LOG = f"from mindspore import ops\n{NET}".replace("return x", "return x / (x + 1e-3)")
DEVICE = """import mindspore as ms
import mindspore.dataset as ds

data = ds.MnistDataset("d", num_shards=8, shard_id=ms.get_context("device_id"))
"""
BOXES = """from mindspore import nn, ops


class BoxLoss(nn.Cell):
    def construct(self, boxes, targets):
        left = ops.abs(boxes["x"][:, 0:1] - targets[0][:, 0:1])
        top = ops.abs(boxes["x"][:, 1:2] - targets[0][:, 1:2])
        right = ops.abs(boxes["x"][:, 2:3] - targets[0][:, 2:3])
        bottom = ops.abs(boxes["x"][:, 3:4] - targets[0][:, 3:4])
        return ops.concat((left, top, right, bottom), 1).mean()
"""


@pytest.mark.parametrize(
    ("files", "name", "part", "other"),
    [
        ({"train.py": BOXES}, "train.py", 'boxes["x"][:, 1', "boxes['x'][:, 1"),
        ({"train.py": BOXES}, "train.py", 'boxes["x"][:, 1', 'boxes[ "x" ][:, 1'),
        ({"train.py": LOG}, "train.py", "    def", "    \\\n  def"),
        ({"train.py": DEVICE}, "train.py", '"device_id"', '"device" "_id"'),
        (
            {"train.py": DEVICE},
            "train.py",
            "import mindspore as",
            "import \N{FULLWIDTH LATIN SMALL LETTER M}indspore as",
        ),
        ({"train.py": HUSHED_STEP, "nets.py": HUSHED}, "train.py", "nets", "\N{FULLWIDTH LATIN SMALL LETTER N}ets"),
        (
            {"tr\N{NO-BREAK SPACE}ain.py": HUSHED_STEP, "nets.py": HUSHED},
            "tr\N{NO-BREAK SPACE}ain.py",
            "loss =",
            "\n\nloss =",
        ),
        ({"train.py": TEACHER, "nets.py": NETS}, "nets.py", "'\\xe9'", "'\N{LATIN SMALL LETTER E WITH ACUTE}'''"),
        ({"train.py": PICKED, "wanted.py": WANTED}, "wanted.py", "item.requires_grad", "item.name"),
    ],
)
def test_a_change_is_felt_that_only_some_of_us_see(
    cli: Run, project: Path, files: dict[str, str], name: str, part: str, other: str
) -> None:
    """Layout that the parser of the rules tells apart, columns that a message tells, a test that a filter is given."""
    for file, text in files.items():
        (project / file).write_text(text, encoding="utf-8")
    assert part in files[name]
    for text in (files[name], files[name].replace(part, other), files[name]):
        (project / name).write_text(text, encoding="utf-8")
        settled(cli)


def test_a_file_is_felt_that_is_one_of_too_many(cli: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mslint.program.modules._MOST_MEMBERS", 1)
    (project / "part").mkdir()
    (project / "part" / "train.py").write_text(TEACHER)
    for text, found in ((NETS, True), (NETS.replace("= False", "= True"), False)):
        (project / "nets.py").write_text(text)
        assert ("MS102" in settled(cli, "part")) is found


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_a_project_the_findings_are_those_of_a_fresh_run(
    cli: Run, project: Path, seed: int
) -> None:
    """Files come, go, move and change at random; each run must see it as if it were the first."""
    chance = random.Random(seed)
    for name in ("rank-seed", "shard-dataset", "unstopped-frozen-feature", "freeze-that-does-not"):
        for file in chance.sample(sorted((FIXTURES / name).glob("*.py")), 1):
            shutil.copy(file, project / f"{name.replace('-', '_')}_{file.name}")
    texts = [file.read_text() for file in sorted(project.glob("*.py"))]
    (project / "package").mkdir()
    (project / "package" / "__init__.py").write_text("from .nets import *\n")
    (project / "package" / "nets.py").write_text(NET)
    (project / "build").mkdir()
    steps: list[Callable[[list[Path]], object]] = [
        lambda files: chance.choice(files).unlink(),
        lambda files: chance.choice(files).rename(project / "package" / f"moved_{chance.randrange(9)}.py"),
        lambda files: chance.choice(files).write_text(chance.choice(texts)),
        lambda files: (project / f"new_{chance.randrange(9)}.py").write_text(chance.choice(texts)),
        lambda files: (project / "build" / "__init__.py").write_text(NET),
        lambda files: _append(chance.choice(files), f"from {chance.choice(files).stem} import *\n"),
        lambda files: _append(chance.choice(files), "import build, package.nets\n"),
        lambda files: _append(chance.choice(files), "\n\nclass Net(Net):\n    pass\n"),
        lambda files: _append(chance.choice(files), "\nimport mindspore as ms\nms.set_seed(1)\n"),
        lambda files: (project / "package" / "__init__.py").write_text(chance.choice(files).read_text()),
        lambda files: _append(chance.choice(files), "# the end\n"),
        lambda files: _insert(chance.choice(files), 0, "\n# the beginning\n"),
        lambda files: _insert(chance.choice(files), _body_row(chance, chance.choice(files)), "        print()\n"),
    ]
    for _ in range(8):
        chance.choice(steps)([file for file in sorted(project.rglob("*.py")) if "build" not in file.parts])
        settled(cli)


def _insert(file: Path, row: int, text: str) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:row], text, *lines[row:]]))


def _body_row(chance: random.Random, file: Path) -> int:
    """Return a row in a method, or any row if there is none: files that cannot be parsed must do no harm either."""
    rows = [row for row, line in enumerate(file.read_text().splitlines()) if line.startswith("        ")]
    return chance.choice(rows or [0])


def _append(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 5000])
def test_a_truncated_file_is_made_anew(cli: Run, project: Path, examined: list[str], size: int) -> None:
    (project / "old.py").write_text("old_call()\n")
    first = cli("check")
    os.truncate(kept(project), size)
    for _ in range(3):
        assert cli("check") == first
    assert examined.count("old.py") <= 3  # one of the runs may only have found out


@pytest.mark.parametrize("content", [b"not a data base", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_foreign_file_is_made_anew(cli: Run, project: Path, examined: list[str], content: bytes) -> None:
    (project / "old.py").write_text("old_call()\n")
    first = cli("check")
    kept(project).write_bytes(content)
    for _ in range(3):
        assert cli("check") == first
    assert examined.count("old.py") <= 3


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE kept",
        "ALTER TABLE kept DROP COLUMN digest",
        "UPDATE kept SET value = replace(value, 'old_call', 'new_call')",
        "UPDATE kept SET value = '[]'",
        "UPDATE kept SET value = 3",
        "UPDATE kept SET value = x'00ff'",
        "DELETE FROM kept WHERE kind = 'sketch'",
    ],
)
def test_damaged_rows_are_not_believed(cli: Run, project: Path, damage: str) -> None:
    (project / "old.py").write_text("old_call()\n")
    first = cli("check")
    with sqlite3.connect(kept(project)) as connection:
        connection.execute(damage)
    connection.close()
    for _ in range(3):
        assert cli("check") == first


def test_flipped_bits_change_nothing(cli: Run, project: Path) -> None:
    (project / "old.py").write_text("old_call()\n")
    (project / "net.py").write_text(NET)
    first = cli("check")
    chance = random.Random(0)
    for _ in range(30):
        data = bytearray(kept(project).read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        kept(project).write_bytes(data)
        assert cli("check") == first


def test_a_locked_file_is_left_alone(cli: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mslint.cache.store._PATIENCE", 0.05)
    (project / "old.py").write_text("old_call()\n")
    first = cli("check")
    connection = sqlite3.connect(kept(project), isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    assert cli("check") == first
    connection.execute("ROLLBACK")
    connection.close()
    assert kept(project).is_file()


def run(project: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mslint", "check", "--output-format", "json", *arguments]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


def test_killed_at_any_time_and_two_at_once_do_no_harm(project: Path) -> None:
    for index in range(5):
        shutil.copy(FIXTURES / "rank-blind-seed" / "bad.py", project / f"train_{index}.py")
    right = run(project, "--no-cache").communicate()
    for pause in (0.2, 0.5, 0.8, 1.1, 1.4):
        process = run(project)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    both = [run(project), run(project)]
    assert [process.communicate() for process in both] == [right, right]
    assert run(project).communicate() == right


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
def test_a_full_disk_is_no_reason_to_say_anything(project: Path) -> None:
    import resource

    (project / "train.py").write_text((FIXTURES / "rank-blind-seed" / "bad.py").read_text())
    right = run(project, "--no-cache").communicate()

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for _ in range(2):
        assert run(project, preexec_fn=full).communicate() == right
    assert run(project).communicate() == right


def test_findings_come_back_as_they_are() -> None:
    place = Position(1, 2)
    edit = Edit(place, Position(3, 4), "ü\udc80", "/a.py")
    fix = Fix("mod", Applicability.UNSAFE, "why", (edit, edit))
    related = (Related("b.py", place, place, "there"),)
    finding = Finding(
        "MS1", "n", Severity.INFO, "m", "a.py", place, place, fix, related, {"a": {"b": [1, None]}}, 3, "u"
    )
    text = encoded([finding, Finding("MS2", "n", Severity.ERROR, "m", "a.py", place, place)])
    assert text is not None
    assert decoded(text)[0] == finding
    odd = Finding("MS1", "n", Severity.INFO, "m", "a.py", place, place, evidence={"a": (1, 2)})
    assert encoded([odd]) is None


def test_a_store_without_a_file_forgets(tmp_path: Path) -> None:
    store = Store(None)
    store.put("kind", b"key", "value")
    assert store.get("kind", b"key") == "value"
    store.save()
    assert store.get("kind", b"key") is None
