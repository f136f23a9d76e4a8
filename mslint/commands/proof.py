"""Which rewrites a verification proves: what ``mslint fix --verify`` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.commands.rewriting import Rewritten
from mslint.config import VerifySettings
from mslint.console import UsageError
from mslint.findings import Verdict
from mslint.source.text import NOTEBOOK_SUFFIX, Unreadable, shown

if TYPE_CHECKING:
    from mslint.program.project import Program
    from mslint.verify import Conditions

_NOTEBOOK = "unverified: notebooks are not run; `jupyter nbconvert --to script` makes a script of one"
Group = Sequence[Rewritten]
"""Results that are written together, or not at all."""


@dataclass
class Proof:
    """What running the scripts proves.

    ``doubts`` holds, by number of the group, why its rewrite is not proven to be equivalent; the others are. ``runs`` holds,
    by script that was run with a rewrite that is proven, what was equal.
    """

    doubts: dict[int, str]
    runs: dict[Path, str]


def prove(groups: Sequence[Group], program: Program, settings: Callable[[Path], VerifySettings]) -> Proof:
    """Run the scripts of ``program`` as ``settings`` say that use what ``groups`` rewrite.

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
    doubts = {number: _NOTEBOOK for number, group in enumerate(groups) if _rewrites_notebook(group)}
    equal: dict[int, dict[Path, str]] = {number: {} for number in scripts}
    for script in sorted(set(chain.from_iterable(scripts.values()))):
        concerned = [number for number, found in scripts.items() if script in found]
        together = _judged(script, [groups[number] for number in concerned], settings(script))
        for number in concerned:
            suffices = together[0] or len(concerned) == 1
            proven, reason = together if suffices else _judged(script, [groups[number]], settings(script))
            if proven:
                equal[number][script] = reason
            else:
                doubts.setdefault(number, reason)
    for number, found in scripts.items():
        if not found:
            doubts.setdefault(
                number, "unverified: no script of the program runs it; name one, or try `mslint verify --entry`"
            )
    runs = {script: why for number, runs in equal.items() if number not in doubts for script, why in runs.items()}
    return Proof(doubts, runs)


def _scripts(group: Group, program: Program) -> set[Path]:
    """Return the scripts that run a changed file of ``group``."""
    changed = [result.source.path for result in group if result.changed]
    users = {user for path in changed for user in program.users(path) if program.is_script(user)}
    return {user for user in users if not user.name.endswith(f"{NOTEBOOK_SUFFIX}.py")}


def _rewrites_notebook(group: Group) -> bool:
    return any(result.changed and result.source.notebook for result in group)


def _judged(script: Path, groups: Iterable[Group], settings: VerifySettings) -> tuple[bool, str]:
    """Tell whether ``script`` with the rewrites of ``groups`` is proven to compute the same, and what is equal or why not."""
    from mslint.verify import verify
    from mslint.verify.verdicts import fingerprint, keep, recall

    changed = [result for result in chain.from_iterable(groups) if result.changed]
    try:
        replacements = {result.source.path.resolve(): result.source.encode(result.text) for result in changed}
        key = fingerprint(script, replacements, settings)
        verdict, reason = recall(key) or (None, "")
        if verdict is None:
            conditions = _conditions(settings)
            run = partial(
                verify, script, replacements, arguments=settings.args, entry=settings.entry, conditions=conditions
            )
            verification = run() if settings.timeout is None else run(timeout=settings.timeout)
            verdict, reason = verification.verdict, verification.reason
            if verdict is not Verdict.UNVERIFIED:
                keep(key, verdict, reason)
    except (Unreadable, OSError) as problem:
        return False, f"unverified: {problem}"
    return (True, reason) if verdict is Verdict.EQUIVALENT else (False, f"{verdict.value}: {reason} ({shown(script)})")


def _conditions(settings: VerifySettings) -> Conditions:
    from mslint.verify import Conditions

    try:
        return Conditions(fake_data=settings.fake_data, inputs=settings.inputs)
    except ValueError as problem:
        raise UsageError(f"verify.inputs: {problem}") from None
