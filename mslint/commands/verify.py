"""``mslint verify``: run a script as it is and rewritten up to its first training steps, and compare them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.findings import Verdict

if TYPE_CHECKING:
    from mslint.verify import Verification

_EXIT_CODES = {Verdict.EQUIVALENT: 0, Verdict.DIFFERENT: 1, Verdict.UNVERIFIED: 2}
_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `run` reads."""
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="the training script")
    rewrite = parser.add_mutually_exclusive_group(required=True)
    rewrite.add_argument("--codemod", action="append", metavar="NAME", help="apply this codemod; repeatable")
    rewrite.add_argument("--against", type=Path, metavar="OTHER.py", help="compare with this version of the script")
    parser.add_argument("--unsafe-fixes", action="store_true", help="let the codemod apply unsafe fixes too")
    parser.add_argument("--entry", metavar="FUNC", help="import the script and call this function of it")
    parser.add_argument("--ranks", type=int, default=1, metavar="N", help="simulated ranks; only 1 so far")
    parser.add_argument("--mode", choices=("graph", "pynative", "both"), default="both")
    parser.add_argument("--timeout", type=float, default=120, metavar="S", help="seconds for each run")
    parser.add_argument("--memory", type=float, default=8, metavar="GB", help="address space of each run")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")
    parser.add_argument("--output-file", type=Path, metavar="FILE")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGS", help="arguments of the script")


def run(options: argparse.Namespace) -> int:
    """Verify, report, and return the exit code: 0 equivalent, 1 different, 2 unverified or unusable input."""
    from mslint.verify import MODES, Verification, VerifierUnavailable, require_mindspore, verify

    script = Path(options.script)
    codemods = list(options.codemod or ())
    if options.ranks not in (None, 1):
        return _refuse(f"--ranks {options.ranks}: only one rank can be verified")
    if not script.is_file():
        return _refuse(f"{script}: no such file")
    try:
        require_mindspore()
        if options.against is not None:
            replacements = {script.resolve(): Path(options.against).read_bytes()}
        else:
            replacements = rewritten(script, codemods, options.target_version, options.unsafe_fixes)
        if replacements:
            verification = verify(
                script,
                replacements,
                arguments=options.arguments,
                entry=options.entry,
                modes=MODES if options.mode == "both" else (options.mode,),
                timeout=options.timeout,
                memory_gb=options.memory,
            )
        else:
            reason = f"{', '.join(codemods)} changes nothing here, there is nothing to verify"
            verification = Verification(str(script.resolve()), Verdict.EQUIVALENT, reason)
        report = _render(replace(verification, codemods=tuple(codemods)), options.output_format)
        if options.output_file is not None:
            Path(options.output_file).write_text(report, encoding="utf-8")
        else:
            sys.stdout.write(report)
    except (VerifierUnavailable, OSError) as error:
        return _refuse(str(error))
    return _EXIT_CODES[verification.verdict]


def rewritten(
    script: Path, codemods: Sequence[str], target_version: tuple[int, int], unsafe: bool
) -> dict[Path, bytes]:
    """What the codemods make of the script and of the project's files that it imports: the changed ones only."""
    from mslint.commands.fix import rewrite_files
    from mslint.verify.imports import project_files

    return rewrite_files(project_files(script), codemods=codemods, unsafe=unsafe, target_version=target_version)


def _render(verification: Verification, output_format: str) -> str:
    from mslint.report import verify_json, verify_text

    return verify_json.render(verification) if output_format == "json" else verify_text.render(verification)


def _refuse(message: str) -> int:
    print(f"mslint verify: {message}", file=sys.stderr)
    return _USAGE
