"""What a rule is. One rule is one file, one class, one code, one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from mslint.findings import Finding, Position, Related, Severity

if TYPE_CHECKING:
    from mslint.semantics.module import Module


class Rule:
    """A criterion for one bad pattern.

    The class docstring is the rule's documentation and has the headings What it does, Why it matters, Evidence, Example,
    Use instead, Fix safety and References. ``INVALID`` and ``VALID`` hold sources that are, and are not, reported:
    ``mslint rule`` prints the docstring, one parametrised test runs the sources.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    summary: ClassVar[str]
    """One line for tables."""
    codemod: ClassVar[str | tuple[str, ...] | None] = None
    """Name of the codemod that rewrites what the rule finds, or their names where each rewrites one kind of it."""
    triggers: ClassVar[tuple[bytes, ...]]
    """A file that holds none of these byte strings cannot be reported."""
    context: ClassVar[tuple[bytes, ...]] = ()
    """Nor can one that holds none of these, if there are any."""
    screen: ClassVar[str] = ""
    """Nor can one for whose syntax tree this function, given as ``module:function``, returns False, if there is one.

    It takes an ``ast.Module``, which costs a tenth of the tree that the rule is given, and is imported without libcst.
    """
    VALID: ClassVar[tuple[str, ...]] = ()
    INVALID: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def codemods(cls) -> tuple[str, ...]:
        """Return the names of the codemods that rewrite what the rule finds."""
        return (cls.codemod,) if isinstance(cls.codemod, str) else cls.codemod or ()

    def check(self, module: Module) -> Iterator[Finding]:
        """Yield the findings in ``module``."""
        raise NotImplementedError

    def finding(
        self,
        module: Module,
        start: Position,
        end: Position,
        message: str,
        *,
        subject: object = None,
        related: tuple[Related, ...] = (),
        severity: Severity | None = None,
    ) -> Finding:
        """Return what the rule says of the text from ``start`` to ``end``.

        ``subject`` is what its codemod rewrites, if it has one; ``severity`` is the rule's own unless another is given.
        """
        severity = self.severity if severity is None else severity
        filename = module.source.filename
        return Finding(self.code, self.name, severity, message, filename, start, end, related=related, subject=subject)
