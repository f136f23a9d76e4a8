"""Source files survive reading and writing byte for byte; what cannot be read says why and what to do."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mslint.findings import Position
from mslint.source.text import Unreadable, decode, lines_of, position_at, read

HERE = Path("/project/a.py")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(TEXT, st.booleans())
def test_utf8_with_and_without_mark_survives(text: str, bom: bool) -> None:
    # A text that begins with the mark itself, or that names another encoding, is another case.
    text = "x = 1\n\n" + text
    data = (codecs.BOM_UTF8 if bom else b"") + text.encode()
    source = decode(data, HERE, "a.py")
    assert (source.text, source.bom) == (text, bom)
    assert source.encode(source.text) == data


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "shift_jis", "cp1252"])
def test_a_coding_line_is_obeyed(encoding: str) -> None:
    letter = {"gbk": "中", "shift_jis": "日"}.get(encoding, "é")
    data = f"# -*- coding: {encoding} -*-\r\nname = '{letter}'\r\n".encode(encoding)
    source = decode(data, HERE, "a.py")
    assert letter in source.text
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"x = 1\ny = '\xe9'\n", Position(2, 6), "byte 0xe9 is not utf-8"),
        (b"a\n" * 9 + b"# caf\xe9\n", Position(10, 6), "byte 0xe9 is not utf-8"),
        (b"x = 1\n\0", Position(2, 1), "null byte"),
        (b"# coding: nonsense\n", Position(1, 1), "coding line names nonsense"),
        (b"# coding: rot13\n", Position(1, 1), "coding line names rot13"),
        ("x = 1\n".encode("utf-16"), Position(1, 4), "null byte"),
    ],
)
def test_what_is_no_text_is_refused_with_place_and_remedy(data: bytes, place: Position, words: str) -> None:
    with pytest.raises(Unreadable) as refused:
        decode(data, HERE, "a.py")
    assert refused.value.position == place
    assert words in str(refused.value)
    assert refused.value.remedy in str(refused.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="is a folder"):
        read(tmp_path)
    with pytest.raises(Unreadable, match="no such file"):
        read(tmp_path / "missing.py")


def test_new_text_that_the_encoding_lacks_is_refused() -> None:
    source = decode(b"# coding: ascii\n", HERE, "a.py")
    with pytest.raises(Unreadable, match="cannot be written in ascii"):
        source.encode("x = 'é'\n")


def test_names_are_shown_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path / "src" / "a.py").filename == os.path.join("src", "a.py")
    assert read(Path("src/a.py")).path == tmp_path / "src" / "a.py"


@given(TEXT)
def test_rows_are_what_python_takes_for_rows(text: str) -> None:
    rows = lines_of(text)
    assert "".join(rows) == text
    assert rows == [row.decode() for row in text.encode().splitlines(keepends=True)]
    for offset in range(len(text) + 1):
        place = position_at(text, offset)
        assert sum(map(len, rows[: place.row - 1])) + place.column - 1 == offset
