"""What an answer about a program rests on: it holds as long as that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Grounds:
    """The files that were looked at for an answer.

    Of ``names`` only their module-level names were, ``files`` were read. With ``companions`` anything may have been looked at
    that imports connect with the file in question; ``beyond`` means that there is no telling: it was looked for where nobody
    lists the files.
    """

    names: set[Path] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)
    companions: bool = False
    beyond: bool = False

    def add(self, other: Grounds) -> None:
        """Rest on what ``other`` rests on, too."""
        self.names |= other.names
        self.files |= other.files
        self.companions |= other.companions
        self.beyond |= other.beyond
