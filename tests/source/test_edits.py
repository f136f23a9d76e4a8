"""Edits land where they say, all together or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mslint.findings import Edit, Position
from mslint.source.edits import Overlapping, apply_edits, overlap
from mslint.source.text import position_at


def edit(row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
    return Edit(Position(row, column), Position(end_row, end_column), content)


@given(st.data())
def test_edits_equal_slicing_by_offset(data: st.DataObject) -> None:
    # \x0b, \x0c, \x85 and \u2028 end lines for str.splitlines, not for Python.
    text = data.draw(st.text("ab\t\r\n\x0b\x0c\x85\u2028é\U0001f600"))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    contents = data.draw(st.lists(st.text("xy\n", max_size=3), min_size=len(cuts) // 2, max_size=len(cuts) // 2))
    spans = list(zip(cuts[::2], cuts[1::2], contents, strict=False))
    # A place between \r and \n has no row and column of its own.
    spans = [s for s in spans if not any(text[at - 1 : at + 1] == "\r\n" for at in s[:2])]
    edits = [Edit(position_at(text, start), position_at(text, end), content) for start, end, content in spans]
    expected = text
    for start, end, content in reversed(spans):
        expected = expected[:start] + content + expected[end:]
    assert apply_edits(text, data.draw(st.permutations(edits))) == expected


def test_carriage_returns_outside_the_edit_stay() -> None:
    assert apply_edits("a\r\nb\rc\n", [edit(2, 1, 2, 2, "B"), edit(3, 1, 3, 2, "C")]) == "a\r\nB\rC\n"


def test_equal_edits_count_once() -> None:
    same = edit(1, 1, 1, 1, "import x\n")
    assert apply_edits("y\n", [same, same]) == "import x\ny\n"


def test_an_insertion_stands_before_what_replaces_the_text_there() -> None:
    assert apply_edits("ab", [edit(1, 1, 1, 2, "A"), edit(1, 1, 1, 1, ">")]) == ">Ab"
    assert apply_edits("ab", [edit(1, 1, 1, 2, "A"), edit(1, 2, 1, 2, "<")]) == "A<b"


@pytest.mark.parametrize(
    "other", [edit(1, 2, 1, 4, "x"), edit(1, 2, 1, 2, "x"), edit(1, 1, 1, 3, "different"), edit(1, 1, 1, 9, "")]
)
def test_edits_that_share_text_are_refused(other: Edit) -> None:
    one = edit(1, 1, 1, 3, "y")
    assert overlap([one], [other])
    with pytest.raises(Overlapping):
        apply_edits("abcdefghi", [one, other])


def test_two_different_insertions_at_one_place_are_refused() -> None:
    assert overlap([edit(1, 1, 1, 1, "a")], [edit(1, 1, 1, 1, "b")])
    assert not overlap([edit(1, 1, 1, 1, "a")], [edit(1, 1, 1, 1, "a")])


@pytest.mark.parametrize("outside", [edit(3, 1, 3, 1, ""), edit(1, 9, 1, 9, ""), edit(0, 1, 1, 1, "")])
def test_places_outside_the_text_are_refused(outside: Edit) -> None:
    with pytest.raises(ValueError, match="outside the text"):
        apply_edits("ab\nc", [outside])
