"""The child's report: rewritten after every event, so that a crash later keeps what was had."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mslint.verify.job import REPORT


def number_of_steps(out: Path) -> int:
    """How many training steps another child has reported."""
    return len(json.loads((out / REPORT).read_text(encoding="utf-8"))["steps"])


class Report:
    """A JSON object on disk.

    ``stand_ins`` names what was replaced or dropped so that the script runs here, ``lacks`` what an option would replace.
    """

    def __init__(self, out: Path) -> None:
        self._path = out / REPORT
        self.data: dict[str, Any] = {"stand_ins": [], "lacks": [], "steps": [], "end": None}

    def stand_in(self, what: str) -> None:
        if what not in self.data["stand_ins"]:
            self.data["stand_ins"].append(what)

    def save(self) -> None:
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self.data, default=str), encoding="utf-8")
        os.replace(unfinished, self._path)
