"""``mslint fix`` as a user sees it."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mslint.commands.fix import rewrite_files
from mslint.console import UsageError
from mslint.source.text import Unreadable

STEP = """\
from mindspore import nn, ops


class Step(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        self.optimizer(grads)
        return loss
"""
MIXED = "from lib import old_call\nold_call(1)\nodd_call(2)\nhard_call(3)\n"


def test_safe_fixes_are_written_and_the_rest_is_explained(cli, project: Path) -> None:
    script = project / "a.py"
    script.write_text(MIXED)
    code, out, err = cli("fix")
    assert script.read_text() == "new_call(1)\nodd_call(2)\nhard_call(3)\n"
    assert out == (
        "Fixed 1 finding in 1 file.\n"
        "  1 old-call (by new-call)\n"
        "Left as before: 2 findings\n"
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


def test_standard_input_that_cannot_be_read_is_one_error(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = cli("fix", "-")
    assert (code, err.count("error: ")) == (2, 1)
    assert err.startswith("error: -: standard input is closed; name a file instead\n")
    assert cli("check", "-").code == 2


def test_standard_input_goes_to_standard_output(cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfold_call()\r\n")))
    assert cli("fix", "-").out == "\ufeffnew_call()\r\n"


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("x = 1\n", [], 0),
        ("old_call(\n", [], 2),
        ("broken()\n", [], 2),
        ("hard_call()\n", [], 1),
        ("old_call()\n", ["--force-exclude", "--stdin-filename", "data/a.py"], 0),
    ],
)
def test_standard_input_comes_back_where_nothing_is_rewritten(
    cli, project: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: list[str], code: int
) -> None:
    (project / "mslint.toml").write_text('exclude = ["data"]')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli("fix", "-", *options)[:2] == (code, text)


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
    assert (code, out) == (2, "")
    assert err == "error: a.py: is read-only; make it writable (`chmod u+w`), or exclude it\n"


def test_a_fix_of_several_files_is_made_in_all_of_them(cli, project: Path) -> None:
    (project / "a.py").write_text("far_call()\n")
    (project / "far.py").write_text("old_call()\n")
    assert "+new = 1\n" in cli("fix", "--diff").out
    edits = json.loads(cli("check", "a.py", "--output-format", "json").out)[0]["fix"]["edits"]
    assert [edit.get("filename") for edit in edits] == [None, "far.py"]
    sarif = json.loads(cli("check", "a.py", "--output-format", "sarif").out)
    changes = sarif["runs"][0]["results"][0]["fixes"][0]["artifactChanges"]
    assert [change["artifactLocation"]["uri"] for change in changes] == ["a.py", "far.py"]
    assert cli("fix").out == "Fixed 2 findings in 2 files.\n  2 old-call (by new-call)\n"
    assert (project / "a.py").read_text() == "new_call()\n"
    assert (project / "far.py").read_text() == "new = 1\nnew_call()\n"


def test_a_fix_of_several_files_is_left_where_one_was_not_named(cli, project: Path) -> None:
    (project / "a.py").write_text("far_call()\n")
    (project / "far.py").write_text("")
    code, out, _ = cli("fix", "a.py")
    assert "declare it in far.py; that edits far.py too: name all the files" in out
    assert code == 1
    assert (project / "a.py").read_text() == "far_call()\n"


@pytest.mark.parametrize("trouble", ["read-only", "broken()", "crash()"])
def test_a_fix_of_several_files_is_made_in_none_if_one_fails(cli, project: Path, trouble: str) -> None:
    (project / "a.py").write_text("far_call()\n")
    (project / "far.py").write_text(f"{trouble}\n" if "(" in trouble else "")
    if trouble == "read-only":
        (project / "far.py").chmod(0o444)
    (project / "other.py").write_text("old_call()\n")
    code, out, err = cli("fix")
    assert (code, err.count("\n")) == (2, 1)
    assert (project / "a.py").read_text() == "far_call()\n"
    assert "new = 1" not in (project / "far.py").read_text()
    assert out == "Fixed 1 finding in 1 file.\n  1 old-call (by new-call)\n"


def test_an_unknown_codemod_gets_the_nearest_name(cli) -> None:
    assert cli("fix", "--codemod", "functonal-grad") == (
        2,
        "",
        "error: unknown codemod 'functonal-grad'; did you mean functional-grad? (`mslint codemod` lists them)\n",
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
    assert rewrite_files([Path()], ["new-call"]) == {project / "a.py": b"new_call()\n"}
    (project / "a.py").write_text("crash()\n")
    with pytest.raises(RuntimeError, match=r"rule MS901 .* failed on a\.py"):
        rewrite_files([project / "a.py"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "a.py:1:1: byte 0xff is not utf-8; save the file as UTF-8"),
        (b"def f(:\n", r"a.py:1:7: Python .* cannot parse this: invalid syntax; correct it"),
    ],
)
def test_rewrite_files_passes_over_nothing(cli, project: Path, data: bytes, words: str) -> None:
    (project / "a.py").write_bytes(data)
    with pytest.raises((Unreadable, UsageError), match=words):
        rewrite_files([project / "a.py"])


@pytest.mark.parametrize(
    "data",
    [
        "# -*- coding: latin-1 -*-\nx = 'é'\nold_call('é')\ny = 'à'\n".encode("latin-1"),
        b"\xef\xbb\xbfold_call()\nx = 1\n",
    ],
    ids=["latin-1", "byte order mark"],
)
def test_a_patch_is_in_the_bytes_of_its_file(project: Path, site: Path, data: bytes) -> None:
    (project / "a.py").write_bytes(data)
    command = [sys.executable, "-m", "mslint", "fix", "--diff", "a.py"]
    environment = os.environ | {"PYTHONPATH": str(site)}
    patch = subprocess.run(command, capture_output=True, timeout=60, env=environment).stdout
    subprocess.run(["git", "apply", "-"], input=patch, check=True, timeout=60)
    assert (project / "a.py").read_bytes() == data.replace(b"old_call", b"new_call")


@pytest.mark.parametrize("name", ["new\nline.py", 'quote"d.py', "back\\slash.py", "a b.py", "名.py", "tab\t.py"])
def test_a_patch_names_its_file_as_git_does(cli, project: Path, name: str) -> None:
    (project / name).write_text("old_call()\n")
    patch = cli("fix", "--diff").out
    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True, timeout=60)
    assert (project / name).read_text() == "new_call()\n"


def test_a_form_feed_that_only_python_takes_is_pointed_at(cli, project: Path) -> None:
    fine = "import os\n\x0c\nclass A:\n    old_call()\n"
    (project / "fine.py").write_text(fine)
    odd = "def f():\n    if x:\n\x0c        old_call()\n    return 1\n"
    (project / "odd.py").write_text(odd)
    code, out, err = cli("fix")
    assert (project / "fine.py").read_text() == fine.replace("old_call", "new_call")
    assert (project / "odd.py").read_text() == odd
    assert code == 2
    said = "a form feed in front of code, which cannot be parsed here; delete it, or give it a line of its own"
    assert err == f"error: odd.py:3:1: {said}\n"
    code, out, err = cli("check", "--output-format", "concise", "odd.py")
    assert (code, err) == (2, "")
    assert f"odd.py:3:1: MS002 {said}" in out


def test_a_file_that_is_nested_too_deeply_is_left_as_it_was(cli, project: Path) -> None:
    text = "import mindspore as ms\n" + STEP + "x = " + "[" * 150 + "]" * 150 + "\n"
    (project / "a.py").write_text(text)
    said = "nested too deeply to be rewritten or judged; split its longest expression or chain of elif"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own, which other tests' libraries raise
    try:
        assert cli("fix")[::2] == (2, f"error: a.py: {said}\n")
    finally:
        sys.setrecursionlimit(limit)
    assert (project / "a.py").read_text() == text


def test_a_name_that_is_not_utf_8(cli, project: Path) -> None:
    file = os.path.join(os.fsencode(project), b"l\xe9.py")
    with open(file, "w") as stream:
        stream.write("old_call()\n")
    assert cli("fix").code == 0
    with open(file, "r+") as stream:
        assert stream.read() == "new_call()\n"
        stream.write(STEP)
    said = "l\\udce9.py: the name of a file in its project is not UTF-8 (l\\udce9); rename that file"
    code, _, err = cli("fix")
    # Who imports a file is looked up by its name.
    assert (code, err.encode(errors="backslashreplace").decode()) in [(0, ""), (2, f"error: {said}\n")]


TRAIN = """\
import mindspore as ms
from mindspore import nn
from mindspore.communication import init

from z_data import build

if __name__ == "__main__":
    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.set_seed(1)
    data = build()
    network = nn.Dense(4, 1)
    model = ms.Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.1))
    model.train(2, data)
"""
DATA = """\
import mindspore.dataset as ds
import numpy as np


class Numbers:
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return np.random.normal(index, 0.1, 4).astype(np.float32), np.ones(1, np.float32)


def build():
    return ds.GeneratorDataset(Numbers(), ["x", "y"], shuffle=True).batch(4)
"""


def test_a_file_is_looked_at_again_when_what_it_imports_was_rewritten(cli, project: Path) -> None:
    # Seeds may differ by rank only once the data is sharded, which happens in the file that is looked at last.
    (project / "pyproject.toml").touch()
    (project / "a_train.py").write_text(TRAIN)
    (project / "z_data.py").write_text(DATA)
    cli("fix", "--unsafe-fixes")
    assert "num_shards=get_group_size()" in (project / "z_data.py").read_text()
    assert "ds.config.set_seed(1 + get_rank())" in (project / "a_train.py").read_text()
    assert cli("fix", "--unsafe-fixes").out == "Nothing to fix.\n"
