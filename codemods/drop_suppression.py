"""Comments that silence nothing, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.base import Codemod
from mslint.findings import Finding, Fix

if TYPE_CHECKING:
    from mslint.semantics.module import Module


class DropSuppression(Codemod):
    """Remove comments such as ``# noqa: MS101`` where the rule that they silence finds nothing.

    Of several names in one comment only those go that are of no use, with the last one the comment goes too, and with it its
    row if nothing else stands there. Other parts of the comment stay, and so do the codes of other tools.
    """

    name = "drop-suppression"
    summary = "comments that silence nothing go"
    applicability = "Safe: only comments change. What names no rule, or cannot be understood, is left to a person."
    rules = ("MS001",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        """Return the fix that came with the finding: no other part of the file has a say in it."""
        assert finding.fix is not None
        return finding.fix
