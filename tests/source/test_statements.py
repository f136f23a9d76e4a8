"""What counts as the same code."""

import pytest

from mslint.source.statements import same_code


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("x = 1  # a\n", "x = 1\n", True),
        ("if x:\n    y\n", "if x:\n\n\ty  # b\r\n", True),
        ("f(1,\n  2)\n", "f(1, 2)", True),
        ("x = 1\n", "x = 2\n", False),
        ("x = '# a'\n", "x = '# b'\n", False),
        ("if x:\n    y\nz\n", "if x:\n    y\n    z\n", False),
        ("x = (", "x = (", False),
    ],
)
def test_comments_and_layout_do_not_matter(text: str, other: str, same: bool) -> None:
    assert same_code(text, other) is same
