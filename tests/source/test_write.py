"""Files are replaced as a whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from mslint.source.text import Unreadable
from mslint.source.write import write, write_all


def test_content_is_replaced_and_mode_bits_stay(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("old")
    script.chmod(0o751)
    write(script, b"new")
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert os.listdir(tmp_path) == ["train.py"]


def test_a_link_goes_on_pointing_to_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "train.py"
    target.write_text("old")
    link = tmp_path / "link.py"
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_read_only_file_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("old")
    script.chmod(0o444)
    with pytest.raises(Unreadable, match="read-only"):
        write(script, b"new")
    assert script.read_text() == "old"
    assert os.listdir(tmp_path) == ["train.py"]


def test_nothing_is_left_when_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unreadable, match="No space left"):
        write(script, b"new")
    assert script.read_text() == "old"
    assert os.listdir(tmp_path) == ["train.py"]


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    first, second = tmp_path / "a.py", tmp_path / "closed" / "b.py"
    first.write_text("old a")
    second.write_text("old b")
    second.chmod(0o444)
    with pytest.raises(Unreadable, match=r"b\.py: is read-only"):
        write_all({first: b"new a", second: b"new b"})
    assert (first.read_text(), second.read_text()) == ("old a", "old b")
    second.chmod(0o644)
    write_all({first: b"new a", second: b"new b"})
    assert (first.read_text(), second.read_text()) == ("new a", "new b")
    assert sorted(os.listdir(tmp_path)) == ["a.py", "closed"]


def test_what_was_written_is_taken_back_when_a_later_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("old a")
    second.write_text("old b")
    replace = os.replace

    def failing(source: str, target: Path) -> None:
        if Path(target).name == "b.py":
            raise OSError(5, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(Unreadable, match=r"b\.py: cannot be written \(Input/output error\)"):
        write_all({first: b"new a", second: b"new b"})
    assert (first.read_text(), second.read_text()) == ("old a", "old b")
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]
