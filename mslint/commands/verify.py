"""``mslint verify``: run a script as it is and rewritten up to its first training steps, and compare them."""

from __future__ import annotations

import math
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mslint.config import Config, Configurations, Version, parse_version
from mslint.console import UsageError
from mslint.engine import syntax_error
from mslint.findings import Verdict
from mslint.language import translated
from mslint.source.text import NOTEBOOK_SUFFIX, Source, Unreadable, read, shown

if TYPE_CHECKING:
    from mslint.verify import Verification

_TIMEOUT = 120
_MEMORY = 8
_TIME_ROUNDS = 20
_EXIT_CODES = {Verdict.EQUIVALENT: 0, Verdict.DIFFERENT: 1, Verdict.UNVERIFIED: 2}

OPERANDS = "SCRIPT [-- ARGUMENTS]"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options that `run` reads."""
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="the training script; its arguments follow --")
    rewrite = parser.add_mutually_exclusive_group(required=True)
    rewrite.add_argument(
        "--codemod",
        metavar="NAME",
        action="append",
        default=[],
        help="apply this one to the script and to the files of the project that it imports; repeatable",
    )
    rewrite.add_argument(
        "--against",
        metavar="OTHER.py",
        type=Path,
        help="compare with this version of the script, which in another folder uses the modules there",
    )
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply those that may change numbers too")
    parser.add_argument("--target-version", metavar="X.Y", type=_version, help="MindSpore to write for (default: 2.10)")
    parser.add_argument("--entry", metavar="FUNC", help="import the script and call this function of it")
    parser.add_argument("--mode", choices=("graph", "pynative", "both"), default="both")
    parser.add_argument(
        "--ranks",
        metavar="N",
        type=_ranks,
        help="compile as rank 0 of so many, which are not there: counts, no numbers",
    )
    parser.add_argument("--launch", action="store_true", help="run all ranks, by MindSpore's msrun")
    parser.add_argument(
        "--fake-data", action="store_true", help="random rows stand in for data sets whose files are missing"
    )
    parser.add_argument(
        "--input",
        metavar="NAME=TYPE[SHAPE]",
        type=_input,
        action="append",
        default=[],
        dest="inputs",
        help="random batches stand in for missing data of unknown columns; once for each column, in their order: "
        "image=float32[4,3,32,32] 'label=int32[4]<10'",
    )
    parser.add_argument(
        "--numbers", action=BooleanOptionalAction, default=True, help="run the steps, to compare what they compute"
    )
    parser.add_argument("--timeout", metavar="S", type=_positive, help=f"seconds for each run (default: {_TIMEOUT})")
    parser.add_argument(
        "--memory", metavar="GB", type=_positive, default=_MEMORY, help=f"for each run (default: {_MEMORY})"
    )
    parser.add_argument("--time", action="store_true", help="measure how long steps take, with further runs")
    parser.add_argument("--output-format", choices=("text", "json", "html"), default="text")
    parser.add_argument("--output-file", metavar="FILE", type=Path, help="write the report there")
    _leave_to_the_script(parser)


def run(options: Namespace) -> int:
    """Verify and report; 0 if equivalent, 1 if different, 2 if unverified.

    Raises UsageError if there is nothing that could be run.
    """
    from mslint.verify import VerifierUnavailable, require_mindspore

    config = Configurations().of(options.script)
    entry_from = "--entry" if options.entry else f"{config.file and shown(config.file)}: verify.entry"
    _fill_in(options, config)
    _require_sense(options)
    try:
        require_mindspore()
        _require_entry(_parsed(options.script), options.entry, entry_from)
        verification = _verification(options, config.target_version)
    except OSError as problem:
        raise UsageError(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem)) from None
    except (Unreadable, VerifierUnavailable) as problem:
        raise UsageError(str(problem)) from None
    _deliver(_render(verification, options), options.output_file)
    return _EXIT_CODES[verification.verdict]


def _fill_in(options: Namespace, config: Config) -> None:
    """Let the configuration say what the command line leaves open."""
    settings = config.verify
    for name, value, usual in (
        ("entry", settings.entry, None),
        ("ranks", settings.ranks, 1),
        ("timeout", settings.timeout, _TIMEOUT),
        ("arguments", list(settings.args), []),
    ):
        if getattr(options, name) is None:
            setattr(options, name, usual if value is None else value)
    options.fake_data = options.fake_data or settings.fake_data
    options.inputs = options.inputs or list(settings.inputs)
    options.fake_data = options.fake_data or settings.fake_data
    try:
        options.inputs = options.inputs or list(map(_input, settings.inputs))
    except ArgumentTypeError as problem:
        raise UsageError(f"{config.file and shown(config.file)}: verify.inputs: {problem}") from None


def _require_sense(options: Namespace) -> None:
    for path in (options.script, options.against):
        if path is not None and path.suffix == NOTEBOOK_SUFFIX:
            raise UsageError(
                translated(
                    "{path}: notebooks are not run; `jupyter nbconvert --to script {path}` makes a script of it",
                    path=path,
                )
            )
    if options.launch and options.ranks == 1:
        raise UsageError("--launch: launching takes --ranks N of 2 or more")
    if options.launch and not options.numbers:
        raise UsageError("--launch: launched ranks are there for their numbers, leave out --no-numbers")
    if options.time and (options.ranks != 1 or not options.numbers):
        raise UsageError("--time: only steps that are run on one rank can be timed")
    if options.mode == "pynative" and not (options.numbers and (options.ranks == 1 or options.launch)):
        raise UsageError("--mode pynative: nothing is compiled there, so nothing can be told without running it")


def _parsed(script: Path) -> Source:
    """Return the script, which can be parsed; of one that cannot be, no run tells anything."""
    source = read(script)
    if error := syntax_error(source):
        raise UsageError(f"{error.filename}:{error.start.row}:{error.start.column}: {error.message}")
    return source


def _require_entry(source: Source, entry: str | None, origin: str) -> None:
    from mslint.verify.entry import may_define

    # Known before anything runs: a script that trains when it is imported never comes to the call.
    if entry is not None and not may_define(source.text, entry):
        raise UsageError(f"{origin} {entry}: {source.filename} has no function of that name; name one of its own")


def _verification(options: Namespace, target_version: Version) -> Verification:
    from mslint.verify import MODES, Conditions, Verification, verify

    script: Path = options.script
    other: Path | None = options.against
    if other is not None:
        _parsed(other)
        # A version of the script beside it; or one that has, elsewhere, modules of its own beside it.
        apart = other.resolve(strict=True).parent != script.resolve(strict=True).parent
        replacements = {} if apart else {script.resolve(): other.read_bytes()}
    else:
        target = options.target_version or target_version
        replacements = rewritten(script, options.codemod, target, options.unsafe_fixes)
    if other is None and not replacements:
        reason = f"{', '.join(options.codemod)} changes nothing here, there is nothing to verify"
        if not options.unsafe_fixes:
            reason += " (--unsafe-fixes may change more; `mslint fix --diff` says what is left, and why)"
        return Verification(str(script.resolve()), Verdict.EQUIVALENT, reason, codemods=tuple(options.codemod))
    verification = verify(
        script,
        replacements,
        arguments=options.arguments,
        entry=options.entry,
        modes=MODES if options.mode == "both" else (options.mode,),
        timeout=options.timeout,
        memory_gb=options.memory,
        conditions=Conditions(
            fake_data=options.fake_data,
            inputs=tuple(options.inputs),
            ranks=options.ranks,
            launch=options.launch,
            numbers=options.numbers,
        ),
        views=options.output_format == "html",
        time_rounds=_TIME_ROUNDS if options.time else 0,
        against=other if other is not None and not replacements else None,
    )
    return replace(verification, codemods=tuple(options.codemod))


def _deliver(report: str, file: Path | None) -> None:
    if file is None:
        sys.stdout.write(report)
        return
    try:
        file.write_text(report, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"{file}: cannot be written ({problem.strerror})") from None


def rewritten(script: Path, codemods: Sequence[str], target_version: Version, unsafe: bool) -> dict[Path, bytes]:
    """What the codemods make of the script and of the project's files that it imports: the changed ones only."""
    from mslint.commands.fix import rewrite_files
    from mslint.verify.imports import project_files

    return rewrite_files(project_files(script), codemods=codemods, unsafe=unsafe, target_version=target_version)


def _leave_to_the_script(parser: ArgumentParser) -> None:
    """Let ``arguments`` be what follows ``--``, None without one.

    argparse cannot: a positional that may be empty is taken as empty as soon as an option follows the script.
    """
    parse = parser.parse_args

    def parse_args(given: Sequence[str], namespace: Namespace | None = None) -> Any:
        own = list(given)
        end = own.index("--") if "--" in own else len(own)
        options = parse(own[:end], namespace)
        options.arguments = own[end + 1 :] if "--" in own else None
        return options

    vars(parser)["parse_args"] = parse_args


def _render(verification: Verification, options: Namespace) -> str:
    if options.output_format == "html":
        from mslint.report import verify_html

        return verify_html.render(verification, _command(options))
    from mslint.report import verify_json, verify_text

    return verify_json.render(verification) if options.output_format == "json" else verify_text.render(verification)


def _command(options: Namespace) -> str:
    """What makes this verification again, from the same folder."""
    words = ["mslint", "verify", str(options.script)]
    for name in options.codemod:
        words += ["--codemod", name]
    for option, value, usual in (
        ("--against", options.against, None),
        ("--target-version", options.target_version and ".".join(map(str, options.target_version)), None),
        ("--entry", options.entry, None),
        ("--mode", options.mode, "both"),
        ("--timeout", options.timeout, _TIMEOUT),
        ("--memory", options.memory, _MEMORY),
        ("--ranks", options.ranks, 1),
    ):
        if value != usual:
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    words += ["--unsafe-fixes"] if options.unsafe_fixes else []
    for text in options.inputs:
        words += ["--input", text]
    for option, given in (
        ("--launch", options.launch),
        ("--fake-data", options.fake_data),
        ("--no-numbers", not options.numbers),
        ("--time", options.time),
    ):
        words += [option] if given else []
    return shlex.join([*words, *(["--", *options.arguments] if options.arguments else [])])


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def _ranks(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _input(text: str) -> str:
    from mslint.verify import parse_input

    try:
        parse_input(text)
    except ValueError as problem:
        raise ArgumentTypeError(str(problem)) from None
    return text


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except ValueError as problem:
        raise ArgumentTypeError(str(problem)) from None
