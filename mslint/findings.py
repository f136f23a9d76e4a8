"""The vocabulary that every other module speaks. Imports nothing of mslint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Severity(str, Enum):
    """What happens to the user who leaves a finding alone."""

    ERROR = "error"
    """Silently wrong training or certain failure."""
    WARNING = "warning"
    """Wasted work or fragile training."""
    INFO = "info"
    """Style, or something that could not be proved."""


class Applicability(str, Enum):
    """How far a fix may be trusted."""

    SAFE = "safe"
    """Loss and gradients stay the same in graph and PyNative mode, for every input."""
    UNSAFE = "unsafe"
    """Changes numbers on purpose, or rests on an assumption that the fix's message names."""
    DISPLAY = "display"
    """A hint to read; never applied."""
    MANUAL = "manual"
    """No edits: the fix's message says why and what to do by hand."""


class Verdict(str, Enum):
    """What `mslint verify` concludes about an original and a rewritten script."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNVERIFIED = "unverified"


class Position(NamedTuple):
    """A place in a text: row and column, both from 1; columns count characters."""

    row: int
    column: int


@dataclass(frozen=True)
class Edit:
    """Replace the text from ``start`` up to, not including, ``end`` by ``content``.

    ``filename`` is the absolute path of the file to edit, None for the one that the finding stands in; ``cell`` is the number
    of the notebook's cell that the places are in.
    """

    start: Position
    end: Position
    content: str
    filename: str | None = None
    cell: int | None = None


@dataclass(frozen=True)
class Fix:
    """A rewrite of one finding; all its edits are applied, or none."""

    codemod: str
    applicability: Applicability
    message: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Related:
    """A place that a conclusion rests on."""

    filename: str
    start: Position
    end: Position
    message: str
    cell: int | None = None

    @property
    def text_name(self) -> str:
        """The text that the place is in, as it is shown: the file, or a cell of it."""
        return _text_name(self.filename, self.cell)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong at one place.

    ``subject`` is what the rule's criterion found there, for the codemod to work on; it is neither reported nor compared.
    """

    code: str
    name: str
    severity: Severity
    message: str
    filename: str
    start: Position
    end: Position
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    evidence: Mapping[str, object] | None = None
    cell: int | None = None
    url: str | None = None
    subject: object = field(default=None, compare=False, repr=False)

    @property
    def text_name(self) -> str:
        """The text that the finding is in, as it is shown: the file, or a cell of it."""
        return _text_name(self.filename, self.cell)


def _text_name(filename: str, cell: int | None) -> str:
    return filename if cell is None else f"{filename}:cell {cell}"
