"""Comments by which a line asks to be left alone."""

from __future__ import annotations

import contextlib
import io
import re
import tokenize
from collections.abc import Iterable
from functools import cached_property

from mslint.findings import Finding

_CODE = r"[A-Z]+[0-9]+"
_NOQA = re.compile(rf"#\s*noqa(?P<listed>:\s*(?P<codes>{_CODE}(?:[\s,]+{_CODE})*))?(?![\w:])", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*mslint:\s*ignore\[(?P<names>[^\]]*)\]")


class Suppressions:
    """What the comments of one file silence: ``# noqa``, ``# noqa: MS101`` and ``# mslint: ignore[MS101] reason``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def silence(self, finding: Finding) -> bool:
        """Tell whether a comment on the line where ``finding`` begins silences it."""
        return any(_silences(comment, finding) for comment in self._comments.get(finding.start.row, ()))

    @cached_property
    def _comments(self) -> dict[int, list[str]]:
        """The comments that might matter, by row."""
        # Tokenizing costs more than all else that is done to a file without findings; few files need it.
        if "noqa" not in self._text.lower() and "mslint" not in self._text:
            return {}
        found: dict[int, list[str]] = {}
        # What the parser takes and the tokenizer does not is rare and ends here: the rest is reported, not hidden.
        with contextlib.suppress(tokenize.TokenError, SyntaxError):
            for token in tokenize.generate_tokens(io.StringIO(self._text, newline="").readline):
                if token.type == tokenize.COMMENT:
                    found.setdefault(token.start[0], []).append(token.string)
        return found


def unsuppressed(findings: Iterable[Finding], text: str) -> list[Finding]:
    """Return the findings that no comment in ``text`` silences."""
    suppressions = Suppressions(text)
    return [finding for finding in findings if not suppressions.silence(finding)]


def _silences(comment: str, finding: Finding) -> bool:
    if noqa := _NOQA.search(comment):
        return noqa["codes"] is None or finding.code in re.split(r"[\s,]+", noqa["codes"].upper())
    if ignore := _IGNORE.search(comment):
        return not {finding.code, finding.name}.isdisjoint(re.split(r"[\s,]+", ignore["names"].strip()))
    return False
