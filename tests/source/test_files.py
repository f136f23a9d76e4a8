"""The Python files that a user means by the paths on the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mslint.source.files import python_files

Tree = Callable[..., list[str]]


@pytest.fixture
def found(tmp_path: Path) -> Tree:
    """Make the named files under a folder and return what is found there."""

    def make(*names: str, roots: tuple[str, ...] = (".",)) -> list[str]:
        for name in names:
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        files = python_files([tmp_path / root for root in roots])
        return [file.relative_to(tmp_path).as_posix() for file in files]

    return make


def test_folders_are_walked_and_sorted(found: Tree) -> None:
    assert found("b.py", "a/z.py", "a/c.txt", "a/b/d.py") == ["a/b/d.py", "a/z.py", "b.py"]


@pytest.mark.parametrize("folder", [".hidden", "__pycache__", "node_modules", "build", "lib/site-packages"])
def test_folders_of_other_peoples_code_are_skipped(found: Tree, folder: str) -> None:
    assert found("a.py", f"{folder}/b.py") == ["a.py"]


def test_virtual_environments_are_skipped(found: Tree) -> None:
    assert found("a.py", "env/pyvenv.cfg", "env/b.py") == ["a.py"]


def test_a_named_file_or_folder_is_always_taken(found: Tree) -> None:
    assert found("build/a.py", "script", roots=("build", "script")) == ["build/a.py", "script"]


def test_a_file_named_twice_or_linked_counts_once(found: Tree, tmp_path: Path) -> None:
    (tmp_path / "alias.py").symlink_to(tmp_path / "real.py")
    assert found("real.py", roots=(".", ".", "real.py")) == ["real.py"]


def test_links_to_folders_end_no_walk_and_lead_nowhere(found: Tree, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere")
    assert found("a/b.py") == ["a/b.py"]


def test_gitignore_files_are_respected(found: Tree, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("/old/\n*_gen.py\n!keep_gen.py\n")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".gitignore").write_text("x.py\n!y_gen.py\n")
    names = ("old/a.py", "new/old/a.py", "a_gen.py", "keep_gen.py", "new/x.py", "new/y_gen.py", "new/sub/x.py", "x.py")
    assert found(*names) == ["keep_gen.py", "new/old/a.py", "new/y_gen.py", "x.py"]


def test_gitignore_files_above_hold_within_their_repository_only(found: Tree, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("a.py\n")
    assert found("project/a.py", roots=("project",)) == ["project/a.py"]
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("b.py\n")
    assert found("project/b.py", "project/c.py", roots=("project",)) == ["project/c.py"]


def test_an_ignored_folder_that_is_named_is_walked(found: Tree, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("data/\n")
    assert found("data/a.py", roots=("data",)) == ["data/a.py"]
