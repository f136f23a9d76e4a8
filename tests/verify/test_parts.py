"""The parts that need no MindSpore to be held to account."""

from __future__ import annotations

import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from mslint.verify.arrays import load_arrays, save_arrays
from mslint.verify.compare import RELATIVE_TOLERANCE, compare_arrays, relative_tolerance
from mslint.verify.entry import may_define
from mslint.verify.imports import project_files
from mslint.verify.mindir import peak_bytes, saved_bytes
from mslint.verify.mirror import SCRATCH, build, project_root

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("before", "after", "equal", "bit_equal"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, True),
        ([1.0, 2.0], [1.0, 2.0001], True, False),
        ([1.0, 2.0], [1.0, 2.001], False, False),
        # What is small beside the largest value of its tensor is measured by that value.
        ([1000.0, 0.01], [1000.0, 0.05], True, False),
        ([0.0, 0.0], [0.0, 1e-7], True, False),
        ([NAN, 1.0], [NAN, 1.0], True, True),
        ([NAN, 1.0], [1.0, NAN], False, False),
        ([INFINITE, 1.0], [INFINITE, 1.0], True, True),
        ([INFINITE, 1.0], [-INFINITE, 1.0], False, False),
        ([INFINITE, 1.0], [INFINITE, 1.1], False, False),
        ([1.0], [1.0, 1.0], False, False),
    ],
)
def test_equality(before: list[float], after: list[float], equal: bool, bit_equal: bool) -> None:
    found = compare_arrays({"w": np.array(before, np.float32)}, {"w": np.array(after, np.float32)})
    assert (found.equal, found.bit_equal) == (equal, bit_equal)
    assert found.worst == (None if bit_equal else "w")


def test_another_type_is_not_bit_equal() -> None:
    found = compare_arrays({"w": np.ones(2, np.float32)}, {"w": np.ones(2, np.float16)})
    assert found.equal
    assert not found.bit_equal


@pytest.mark.parametrize(("name", "places"), [("float16", 10), ("bfloat16", 7)])
def test_half_precision_may_differ_by_four_units_in_its_last_place(name: str, places: int) -> None:
    """Its numbers are ``places`` binary places long, behind a leading one: IEEE 754, and the upper half of a float32."""
    tolerance = relative_tolerance([name])
    assert relative_tolerance([]) == RELATIVE_TOLERANCE < tolerance
    before = np.array([1.0, 0.01], np.float32)
    for units, equal in ((1, True), (4, True), (5, False)):
        after = before + np.array([units * 2.0**-places, 0], np.float32)
        assert compare_arrays({"w": before}, {"w": after}, tolerance).equal is equal


def test_names_on_one_side_only_are_a_difference() -> None:
    found = compare_arrays({"a": np.ones(1), "b": np.ones(1)}, {"b": np.ones(1), "c": np.ones(1)})
    assert (found.only_before, found.only_after) == (("a",), ("c",))
    assert not found.equal
    assert not found.bit_equal


def test_arrays_return_as_they_were(tmp_path: Path) -> None:
    arrays = {
        "a/b|c": np.arange(6, dtype=np.int32).reshape(2, 3),
        "zeros": np.zeros((3, 4), np.float16),
        "nan": np.full(3, NAN),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 2)),
    }
    first, second = tmp_path / "first.arrays", tmp_path / "second.arrays"
    save_arrays(first, arrays)
    others = {**arrays, "zeros": np.zeros((3, 4)), "scalar": np.array(-0.0), "more": np.arange(3)}
    save_arrays(second, others, like=first)
    for path, saved in ((first, arrays), (second, others)):
        loaded = load_arrays(path)
        assert list(loaded) == list(saved)
        for name, array in saved.items():
            np.testing.assert_array_equal(loaded[name], array)
            assert loaded[name].dtype == array.dtype
    assert load_arrays(tmp_path / "none.arrays") == {}


def test_large_arrays_that_another_file_holds_are_not_written_again(tmp_path: Path) -> None:
    weights = np.arange(100_000, dtype=np.float32)
    save_arrays(tmp_path / "before", {"w": weights, "zero": np.zeros(100_000, np.float32)})
    save_arrays(tmp_path / "after", {"w": weights}, like=tmp_path / "before")
    assert (tmp_path / "before").stat().st_size < weights.nbytes + 1000
    assert (tmp_path / "after").stat().st_size < 1000


def test_files_that_a_script_imports(tmp_path: Path) -> None:
    for name, text in {
        "train.py": "import numpy\nimport nets.resnet\nfrom tools import helper, missing\nfrom broken import x\n",
        "nets/__init__.py": "",
        "nets/resnet.py": "from . import blocks\nfrom .blocks import Block\nfrom ..train import no\n",
        "nets/blocks.py": "",
        "nets/unused.py": "",
        "tools.py": "import train\n",
        "broken.py": "def (:\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {str(path.relative_to(tmp_path)) for path in project_files(tmp_path / "train.py")}
    assert found == {"train.py", "nets/__init__.py", "nets/resnet.py", "nets/blocks.py", "tools.py", "broken.py"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def main():\n    pass\n", True),
        ("if True:\n    from tools import run as main\n", True),
        ("main = print\n", True),
        ("def make():\n    global main\n    main = print\nmake()\n", True),
        ("from tools import *\n", True),
        ("def make():\n    def main():\n        pass\n", False),
        ("class Trainer:\n    def main(self):\n        pass\n", False),
        ("main()\n", False),
    ],
)
def test_whether_a_script_has_the_entry(text: str, found: bool) -> None:
    assert may_define(text, "main") is found


def test_the_project_is_the_smallest_folder_that_holds_all(tmp_path: Path) -> None:
    root = tmp_path / "project"
    script = root / "scripts" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert project_root(script, Path("/"), {}) == script.parent
    assert project_root(script, root, {}) == root
    assert project_root(script, Path("/"), {root / "nets" / "net.py": b""}) == root
    (root / "pyproject.toml").write_text("")
    assert project_root(script, Path("/"), {}) == root
    assert project_root(script, script.parent, {}) == root
    (root / "scripts" / "__init__.py").write_text("")
    assert project_root(script, Path("/"), {}) == root


def test_the_mirror_copies_what_is_small_and_leaves_out_what_is_hidden(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for folder in (".git", "venv", "data", "many", "__pycache__", "scripts"):
        (root / folder).mkdir(parents=True)
    (root / "venv" / "pyvenv.cfg").write_text("")
    (root / "data" / "small").write_bytes(b"x")
    (root / "data" / "large").write_bytes(b"x" * 1_000_001)
    for number in range(2_001):
        (root / "many" / str(number)).touch()
    (root / "link").symlink_to(root / "data")
    script = root / "scripts" / "train.py"
    script.write_text("old")
    mirror = build(root, script, root / "data", {script: b"new"}, tmp_path / "mirror")
    assert mirror.directory == mirror.root / "data"
    assert mirror.script.read_text() == "new"
    assert script.read_text() == "old"
    assert sorted(path.name for path in mirror.root.iterdir()) == ["data", "link", "many", "scripts"]
    assert not (mirror.root / "data" / "small").is_symlink()
    assert (mirror.root / "data" / "large").is_symlink()
    assert (mirror.root / "many").is_symlink()
    assert not (mirror.root / "data").is_symlink()


def test_the_mirror_does_not_copy_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary directory may lie in the project: ``TMPDIR=$PWD/tmp``."""
    script, temporary = tmp_path / "train.py", tmp_path / "tmp"
    script.touch()
    scratch = temporary / f"{SCRATCH}1" / "tree"
    (temporary / "given").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    mirror = build(tmp_path, script, tmp_path, {}, scratch)
    assert sorted(path.name for path in mirror.root.iterdir()) == ["tmp", "train.py"]
    assert [path.name for path in (mirror.root / "tmp").iterdir()] == ["given"]


def test_memory_of_a_graph_by_hand() -> None:
    """a (8) -> b (4, 2) -> c (16), and the backward of b reads a and b's second element.

    Alive at once at most: while the backward runs a, b's second element, c and the result, which is what is given back.
    """
    graph = nx.DiGraph(outputs=["grad"])

    def add(
        name: str, kind: str, sizes: tuple[int, ...], inputs: tuple[str, ...], op: str = "Add", index: int = 0
    ) -> None:
        graph.add_node(
            name, op=op, kind=kind, bytes=sizes, inputs=inputs, function="main", index=index, order=len(graph)
        )

    add("one", "forward", (), (), op="Constant", index=1)
    add("zero", "forward", (), (), op="Constant", index=0)
    add("a", "forward", (8,), ())
    add("b", "forward", (4, 2), ("a",))
    add("first", "forward", (4,), ("b", "zero"), op="TupleGetItem")
    add("second", "forward", (2,), ("b", "one"), op="TupleGetItem")
    add("c", "forward", (16,), ("first",))
    add("grad", "backward", (8,), ("second", "a", "c"))
    assert saved_bytes(graph) == 8 + 2 + 16
    assert peak_bytes(graph) == 8 + 2 + 16 + 8


def test_a_script_in_a_home_directory_does_not_copy_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "photos").mkdir()
    script = tmp_path / "train.py"
    script.write_text("")
    root = project_root(script, Path("/"), {})
    mirror = build(root, script, tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-mirror")
    assert not mirror.script.is_symlink()
    assert (mirror.root / "photos").is_symlink()
