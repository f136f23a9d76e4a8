"""What a codemod is. One codemod is one file, one class, one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mslint.findings import Finding, Fix

if TYPE_CHECKING:
    from mslint.semantics.module import Module


class Manual(Exception):
    """The rewrite is left to a person; the text says why and what to do."""


class Codemod:
    """A rewrite of what one or several rules find.

    The class docstring is its documentation: ``mslint codemod NAME`` prints it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for tables."""
    applicability: ClassVar[str]
    """When the rewrite is safe, when unsafe, when it is left to a person, and why."""
    rules: ClassVar[tuple[str, ...]]
    """Codes of the rules whose findings it rewrites."""

    def applies(self, finding: Finding) -> bool:
        """Tell whether ``finding``, of one of ``rules``, is of the kind that this codemod rewrites.

        Several codemods may share a rule of several kinds of findings: the type of ``finding.subject`` tells them apart.
        """
        return True

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        """Return the rewrite of ``finding`` for MindSpore ``target_version``.

        The fix holds every edit it needs, those of imports included, so that it can be applied alone. Where there is no
        rewrite, Manual says why and what to do: whoever asks makes a fix of it that is ``manual`` and holds no edits.
        """
        raise NotImplementedError

    def tidy(self, module: Module, after: str) -> str:
        """Return ``after``, the text once fixes of this codemod were applied to ``module``, without what they left unused.

        Several fixes of one file are proposed apart, so only here is it known that, say, an import lost its last reference.
        """
        return after
