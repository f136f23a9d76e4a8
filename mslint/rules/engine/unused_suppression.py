"""MS001: a comment that silences nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from mslint.console import nearest
from mslint.findings import Applicability, Finding, Fix, Severity
from mslint.rules.base import Rule
from mslint.source.suppression import Suppressions, Unused

if TYPE_CHECKING:
    from mslint.semantics.module import Module

REMEDY = "drop-suppression"


class UnusedSuppression(Rule):
    """A comment that silences rules which find nothing there.

    What it does
        Reports ``# noqa: MS101``, ``# mslint: ignore[MS101]`` and its kin where the rules they name find nothing, those
        that name no rule, and those that cannot be understood. Codes of other tools and a bare ``# noqa`` are left alone,
        and so are rules that were not asked: with ``--select MS1`` no word is lost on ``# noqa: MS201``.

    Why it matters
        The comment outlives the reason for it, and hides the next finding in its place, which nobody has looked at.

    Evidence
        None: no node and no number of the training depends on a comment.

    Example
        ``x = 1  # noqa: MS101``

    Use instead
        No comment.

    Fix safety
        Safe: only comments change, and reasons and the codes of other tools stay. What names no rule, or cannot be
        understood, is left to you: something else may have been meant.

    References
        ruff's RUF100 does the same for ``noqa``.
    """

    code = "MS001"
    name = "unused-suppression"
    severity = Severity.INFO
    summary = "a comment silences a rule that finds nothing there"
    codemod = REMEDY
    triggers = (b"noqa", b"NOQA", b"mslint")

    INVALID = (
        "x = 1  # mslint: ignore[no-such-rule] it was renamed  # <- MS001\n",
        "x = 1  # mslint: ignore[MS1]  # <- MS001\n",
        "x = 1  # noqa: MS00  # <- MS001\n",
        "x = 1  # mslint: ignore MS101  # <- MS001\n",
        "x = 1  # mslint: ignroe[MS101]  # <- MS001\n",
        "def f():  # mslint: off[MS101]  # <- MS001\n    pass\n",
        "x = 1  # mslint: ignore[]  # <- MS001\n",
    )
    VALID = (
        "x = 1  # noqa\n",
        "x = 1  # noqa: E501, because: MS\n",
        "x = 1  # noqa: MS101 as that rule is not asked here, nothing is known\n",
        "x = '# mslint: ignroe[MS101]'\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        """Yield nothing: what a comment silences is known once the other rules have been asked (see ``judge``)."""
        return iter(())

    def judge(
        self, filename: str, suppressions: Suppressions, asked: Collection[str], known: Collection[str]
    ) -> Iterator[Finding]:
        """Yield the findings in a file, all of whose other findings ``suppressions`` has seen.

        ``asked`` are the codes and names of the rules that were asked, ``known`` those of all rules.
        """
        own = {self.code, self.name}
        for unused in suppressions.unused(set(asked) - own, known, everything=set(known) - own <= set(asked)):
            message, fix = _told(unused, known)
            yield Finding(self.code, self.name, self.severity, message, filename, unused.start, unused.end, fix)


def _told(unused: Unused, known: Collection[str]) -> tuple[str, Fix]:
    if unused.edit is None:
        wrong = unused.wrong
        if unused.unknown is not None:
            wrong = _no_rule(unused.unknown, known)
        return f"this comment silences nothing: {wrong}", Fix(
            REMEDY, Applicability.MANUAL, f"{wrong}: correct the comment, or delete it"
        )
    names = " and ".join(filter(None, (", ".join(unused.names[:-1]), *unused.names[-1:])))
    found = f"{names} find{'s' if len(unused.names) == 1 else ''} nothing" if names else "no rule finds anything"
    target = f"{names} from the comment" if unused.some_are_used else "the comment"
    fix = Fix(REMEDY, Applicability.SAFE, f"remove {target}", (unused.edit,))
    if unused.is_end:
        return f"nothing is off here{f' for {names}' if names else ''} that this comment could end", fix
    return f"{found} that this comment could silence", fix


def _no_rule(name: str, known: Collection[str]) -> str:
    codes = sorted(code for code in known if code.startswith(name) and code[-1:].isdigit())
    if codes:
        return f"{name!r} is the beginning of {', '.join(codes)}; name those that are meant"
    return f"no rule is called {name!r}{nearest(name, known)} (`mslint rule` lists them)"
