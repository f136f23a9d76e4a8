"""Which rewrites a verification proves: what ``mslint fix --verify`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.commands.rewriting import Rewritten
from mslint.console import UsageError
from mslint.findings import Verdict
from mslint.source.notebook import SUFFIX
from mslint.source.text import Unreadable, shown

if TYPE_CHECKING:
    from mslint.program.project import Program

_NOTEBOOK = "unverified: notebooks are not run; `jupyter nbconvert --to script` makes a script of one"
Group = Sequence[Rewritten]
"""Results that are written together, or not at all."""


def unproven(groups: Sequence[Group], program: Program) -> dict[int, str]:
    """Return, by number of the group, why its rewrite is not proven to be equivalent; the others are.

    A group is proven if every script of the program that runs one of its files gives the same numbers before and after, with
    all groups made together or, where they do not, with this one alone.

    Raises UsageError where MindSpore is missing.
    """
    from mslint.verify import VerifierUnavailable, require_mindspore

    try:
        require_mindspore()
    except VerifierUnavailable as problem:
        raise UsageError(str(problem)) from None
    scripts = {number: _scripts(group, program) for number, group in enumerate(groups)}
    reasons = {number: _NOTEBOOK for number, group in enumerate(groups) if _rewrites_notebook(group)}
    for script in sorted(set(chain.from_iterable(scripts.values()))):
        concerned = [number for number, found in scripts.items() if script in found]
        reason = _doubt(script, [groups[number] for number in concerned])
        if reason is None:
            continue
        for number in concerned:
            alone = reason if len(concerned) == 1 else _doubt(script, [groups[number]])
            if alone is not None:
                reasons.setdefault(number, alone)
    for number, found in scripts.items():
        if not found:
            reasons.setdefault(
                number, "unverified: no script of the program runs it; name one, or try `mslint verify --entry`"
            )
    return reasons


def _scripts(group: Group, program: Program) -> set[Path]:
    """Return the scripts that run a changed file of ``group``."""
    changed = [result.source.path for result in group if result.changed]
    users = {user for path in changed for user in program.users(path) if program.is_script(user)}
    return {user for user in users if not user.name.endswith(f"{SUFFIX}.py")}


def _rewrites_notebook(group: Group) -> bool:
    return any(result.changed and result.source.notebook for result in group)


def _doubt(script: Path, groups: Iterable[Group]) -> str | None:
    """Return why ``script`` with the rewrites of ``groups`` is not proven to compute the same, None if it is."""
    from mslint.verify import verify
    from mslint.verify.verdicts import fingerprint, keep, recall

    changed = [result for result in chain.from_iterable(groups) if result.changed]
    try:
        replacements = {result.source.path.resolve(): result.source.encode(result.text) for result in changed}
        key = fingerprint(script, replacements)
        verdict, reason = recall(key) or (None, "")
        if verdict is None:
            verification = verify(script, replacements)
            verdict, reason = verification.verdict, verification.reason
            if verdict is not Verdict.UNVERIFIED:
                keep(key, verdict, reason)
    except (Unreadable, OSError) as problem:
        return f"unverified: {problem}"
    return None if verdict is Verdict.EQUIVALENT else f"{verdict.value}: {reason} ({shown(script)})"
