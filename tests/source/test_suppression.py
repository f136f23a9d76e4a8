"""Comments silence the findings of their own line, and only those they name."""

import pytest

from mslint.findings import Finding, Position, Severity
from mslint.source.suppression import unsuppressed


def finding(row: int = 1) -> Finding:
    return Finding("MS101", "whole-network-grad", Severity.WARNING, "", "a.py", Position(row, 1), Position(row, 2))


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
        "x = '# noqa'",
        "x = 1\n# noqa",
        '"""\n# noqa\n"""',
    ],
)
def test_other_comments_and_strings_do_not(line: str) -> None:
    assert unsuppressed([finding()], line + "\n") == [finding()]


def test_rows_are_counted_over_any_line_end() -> None:
    assert unsuppressed([finding(1), finding(3)], "a = 1\r\nb = 2\r\nc = 3  # noqa\r\n") == [finding(1)]
