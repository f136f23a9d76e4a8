"""Colours, where there is a terminal to show them."""

from __future__ import annotations

from typing import NamedTuple

from mslint.findings import Finding, Severity

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


class Style(NamedTuple):
    """Ways to set off a piece of text."""

    colour: bool

    def bold(self, text: str) -> str:
        """Names and places."""
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        """What frames the text that matters."""
        return self._paint("34", text)

    def severity(self, finding: Finding, text: str) -> str:
        """Text in the colour of how bad ``finding`` is."""
        return self._paint(f"1;{_COLOURS[finding.severity]}", text)

    def removed(self, text: str) -> str:
        """A line that goes."""
        return self._paint("31", text)

    def added(self, text: str) -> str:
        """A line that comes."""
        return self._paint("32", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text
