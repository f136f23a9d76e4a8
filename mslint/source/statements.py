"""Where the statements and comments of a text stand, as Python's own tokenizer sees them."""

from __future__ import annotations

import contextlib
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING})


@dataclass(frozen=True)
class Comment:
    """A comment in ``row``, from ``column`` (from 1) on. ``alone`` if nothing else stands in its row."""

    row: int
    column: int
    text: str
    alone: bool


@dataclass(frozen=True)
class Statement:
    """The rows, first and last, of a simple statement or of the head of a compound one; ``column`` is its indentation.

    ``first`` of a decorated function or class is the row of its first decorator, ``own`` the one that it begins in.
    """

    first: int
    own: int
    last: int
    column: int


@dataclass
class Layout:
    """The statements and comments of a text, in order. Where the tokenizer gives up they end."""

    statements: list[Statement] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """The rows, each once, in which something other than a comment begins."""


def layout_of(text: str) -> Layout:
    """Return the layout of ``text``."""
    layout = Layout()
    decorated: int | None = None
    head: tokenize.TokenInfo | None = None
    taken = 0
    for token in _tokens(text):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            layout.comments.append(Comment(row, column + 1, token.string, alone=taken != row))
        elif token.type == tokenize.NEWLINE and head is not None:
            own, indent = head.start
            first = own if decorated is None or head.string == "@" else decorated
            layout.statements.append(Statement(first, own, row, indent + 1))
            decorated = (decorated or own) if head.string == "@" else None
            head = None
        elif token.type not in _LAYOUT:
            head = head or token
            taken = token.end[0]
            if layout.starts[-1:] != [row]:
                layout.starts.append(row)
    return layout


def same_code(text: str, other: str) -> bool:
    """Tell whether the two texts differ in comments and layout alone."""
    try:
        return _code(text) == _code(other)
    except (tokenize.TokenError, SyntaxError):
        return False


def code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of ``text``, comments and rows without code apart.

    Raises tokenize.TokenError or SyntaxError where there is no telling.
    """
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return [token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL)]


def _code(text: str) -> list[tuple[int, str]]:
    breaks = (tokenize.NEWLINE, tokenize.INDENT)  # however they are written
    return [(token.type, "" if token.type in breaks else token.string) for token in code_tokens(text)]


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    # What the parser takes and the tokenizer does not is rare.
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        yield from tokenize.generate_tokens(io.StringIO(text, newline="").readline)
