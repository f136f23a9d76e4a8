"""The documentation of rules and codemods, reStructuredText with headings and indented blocks, as it is read elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from itertools import pairwise

_FENCE = re.compile(r"\.\. code-block:: *(\w*)")
_DIRECTIVE = re.compile(rf"^ *{_FENCE.pattern}\n\n?", re.MULTILINE)


def markdown(documentation: str) -> str:
    """Return ``documentation``, a docstring, with headings, paragraphs and code as Markdown writes them."""
    return "\n".join(_lines(cleandoc(documentation).splitlines())).strip() + "\n"


def plain(documentation: str) -> str:
    """Return ``documentation``, a docstring, as a terminal shows it: code is what is indented, names have one backtick."""
    return _DIRECTIVE.sub("", cleandoc(documentation)).replace("``", "`")


def _lines(rows: list[str]) -> Iterator[str]:
    code: int | None = None
    for row, following in pairwise([*rows, "", ""]):
        indent = len(row) - len(row.lstrip())
        if code is not None and row.strip() and indent <= code:
            yield "```"
            yield ""
            code = None
        if fence := _FENCE.fullmatch(row.strip()):
            code = indent
            yield f"```{fence[1]}"
        elif code is not None:
            yield row[code + 4 :]
        elif row and not indent and following.startswith(" "):
            yield f"**{row}**"
            yield ""
        else:
            yield row.strip().replace("``", "`")
    if code is not None:
        yield "```"
