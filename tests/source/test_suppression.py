"""Comments silence the findings of their own line, and only those they name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mslint.findings import Finding, Position, Severity
from mslint.source.edits import apply_edits
from mslint.source.statements import same_code
from mslint.source.suppression import Suppressions


def finding(row: int = 1) -> Finding:
    return Finding("MS101", "whole-network-grad", Severity.WARNING, "", "a.py", Position(row, 1), Position(row, 2))


def unsuppressed(findings: list[Finding], text: str) -> list[Finding]:
    suppressions = Suppressions(text)
    return [one for one in findings if not suppressions.silence(one)]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "#NOQA",
        "# noqa: MS101",
        "# noqa:E501,MS101",
        "# noqa: E501 MS101 as measured",
        "# type: ignore # noqa: MS101",
        "# mslint: ignore[MS101] attack",
        "# mslint: ignore[MS102, MS101]",
        "# mslint: ignore[whole-network-grad]",
        "# mslint: ignore [MS101]",
        "#mslint:ignore",
        "# mslint: ignore as measured",
        "# 训练 # mslint: ignore[MS101]",
    ],
)
def test_a_comment_silences(comment: str) -> None:
    assert unsuppressed([finding()], f"x = 1  {comment}\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa: E501",
        "x = 1  # noqa: MS102",
        "x = 1  # noqa: because",
        "x = 1  # noqarter",
        "x = 1  # mslint: ignore[MS102]",
        "x = 1  # mslint: ignore[]",
        "x = 1  # mslint: ignore MS101",
        "x = 1  # mslint: ignore [MS101",
        "x = 1  # mslint: ignored",
        "x = 1  # mslint: off",
        "x = 1  # mslint: ignore-file[MS101]",
        "x = 1  # mslint: ignore-next-line",
        "x = '# noqa'",
        "x = 1\n# noqa",
        '"""\n# noqa\n"""',
    ],
)
def test_other_comments_and_strings_do_not(line: str) -> None:
    assert unsuppressed([finding()], line + "\n") == [finding()]


def test_rows_are_counted_over_any_line_end() -> None:
    assert unsuppressed([finding(1), finding(3)], "a = 1\r\nb = 2\r\nc = 3  # noqa\r\n") == [finding(1)]


def silenced(text: str, *names: str) -> list[int]:
    """Return the rows in which a finding of MS101 would be silenced."""
    suppressions = Suppressions(text)
    return [row for row in range(1, len(text.splitlines()) + 1) if suppressions.silence(finding(row))]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("f(\n  a,\n  b)  # noqa: MS101\n", [1, 2, 3]),
        ("f(  # noqa: MS101\n  a,\n  b)\n", [1, 2, 3]),
        ("f(\n  a,  # noqa: MS101\n  b)\n", [2]),
        ("x = '''\n# noqa: MS101\n'''  # noqa: MS101\ny = 2\n", [1, 2, 3]),
        ("@one\n@two(\n  3)\ndef f(\n  a):  # noqa: MS101\n  pass\n", [1, 2, 3, 4, 5]),
        ("@one  # noqa: MS101\n@two\ndef f(a):\n  pass\n", [1, 2, 3]),
        ("@one\n@two(  # noqa: MS101\n  3)\ndef f(a):\n  pass\n", [2, 3]),
        ("@one\ndef f(  # noqa: MS101\n  a):\n  pass\n", [2, 3]),
        ("if x:  # noqa: MS101\n  f()\n", [1]),
        ("x = 1 + \\\n  2  # noqa: MS101\n", [1, 2]),
        ("# mslint: ignore-next-line[MS101] why\n\n# more\nf(\n  a)\ng()\n", [4, 5]),
        ("f(\n  # mslint: ignore-next-line[MS101]\n  a)\n", [3]),
        ("# mslint: ignore-next-line[MS101]\n@one\ndef f(\n  a):\n  pass\n", [2, 3, 4]),
        ("a\n# mslint: off[MS101]\nb\n# mslint: on[MS101]\nc\n", [2, 3, 4]),
        ("a\n# mslint: off[MS101, MS102]\nb\n# mslint: on[MS102]\nc\n# mslint: on\nd\n", [2, 3, 4, 5, 6]),
        ("# mslint: off[MS102]\nb\n", []),
        ("# mslint: off\nb\n# mslint: on[MS101]\nc\n", [1, 2, 3, 4]),
        ("if x:\n\t# mslint: off[MS101]\n\tb\n\n\tif y:\n\t\tc\nd\n", [2, 3, 4, 5, 6]),
        ("f(\n  # mslint: off[MS101]\n  a)\nb\n", [2, 3]),
        ("a\r\n# mslint: off[MS101]\r\nb", [2, 3]),
        ("a\n# mslint: ignore-file[whole-network-grad]\nb\n", [1, 2, 3]),
        ("a\nb = '# mslint: ignore-file'\n", []),
    ],
)
def test_the_rows_that_a_comment_holds_for(text: str, rows: list[int]) -> None:
    assert silenced(text) == rows


COMMENTS = st.lists(
    st.sampled_from(
        [
            "# noqa", "# noqa: MS101", "# noqa:E501,MS101 W1", "#noqa: ms102, MS101", "# type: ignore", "# 训练 #12", "##",
            "# mslint: ignore", "# mslint: ignore[MS101] see #3", "# mslint: ignore[MS102,MS101 , half]", "#",
            "# mslint: on", "# mslint: on[MS101]", "# mslint: off", "# mslint: off[MS101]", "# mslint: ignore-file",
            "# mslint: ignore-next-line[MS102]", "# mslint: what", "# mslint: ignore MS101",
        ]
    ),
    max_size=3,
).map("  ".join)  # fmt: skip
CODE = st.sampled_from(
    ["x = 1", "f(1,", "  2)", "", "'''a", "b'''", "if x:", "    y = 2", "\tz = 3", "@d", "def g(): pass"]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "  \n"])


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(CODE, COMMENTS, ENDS), max_size=8), st.booleans(), st.sets(st.integers(1, 8)))
def test_what_is_removed_is_comment_and_removing_comes_to_an_end(
    lines: list[tuple[str, str, str]], cut: bool, rows: set[int]
) -> None:
    text = "".join(f"{code}{'  ' if code else ''}{comment}{end}" for code, comment, end in lines)
    text = text.rstrip("\r\n") if cut else text
    words = {"MS101", "MS102", "whole-network-grad", "half"}
    for _ in range(100):
        suppressions = Suppressions(text)
        for row in rows:
            suppressions.silence(finding(row))
        unused = list(suppressions.unused(words, words, everything=True))
        after = apply_edits(text, [one.edit for one in unused if one.edit][:1])  # they may overlap
        if after == text:
            return
        assert same_code(text, after) or not same_code(text, text)
        assert text.count("# type: ignore") == after.count("# type: ignore")
        assert text.count("E501") == after.count("E501")
        text = after
    raise AssertionError("it does not settle")
