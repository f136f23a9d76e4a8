"""``mslint fix``: rewrite a training program, or show how it would be rewritten."""

from __future__ import annotations

import difflib
import io
import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from codemods.registry import AnyCodemod, named
from mslint.baseline import Baselines
from mslint.commands.rewriting import Rewritten, joined, rewrite_sources
from mslint.commands.work import STDIN, Work, add_paths, add_selection, prepare
from mslint.config import NEWEST, Version
from mslint.console import UsageError, error, has_colour, remedy
from mslint.engine import SYNTAX_ERROR
from mslint.findings import Applicability, Finding
from mslint.language import counted, translated
from mslint.report.style import Style
from mslint.rules.registry import all_rules
from mslint.source.files import python_files
from mslint.source.notebook import Notebook, in_cells
from mslint.source.text import Source, Unreadable, read, shown
from mslint.source.write import write_all

OPERANDS = "[PATH ...]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint fix``."""
    add_paths(parser)
    parser.add_argument(
        "--codemod", metavar="NAME", action="append", default=[], help="apply this one only; repeatable (default: all)"
    )
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply those that may change numbers too")
    parser.add_argument("--diff", action="store_true", help="change nothing, print what would change; then exit with 1")
    parser.add_argument(
        "--verify", action="store_true", help="run the scripts, and make only what is proven to compute the same"
    )
    add_selection(parser)


def run(options: Namespace) -> int:
    """Rewrite; 1 if findings are left (with ``--diff``: if something would change), 2 if something failed."""
    codemods = _chosen(options.codemod)
    work = prepare(options)
    baselines = Baselines(work.baseline_for)
    if options.verify and STDIN in work.paths:
        raise UsageError(translated("--verify needs files: what comes through standard input cannot be run"))
    if STDIN in work.paths and not work.takes_stdin and not options.diff:
        sys.stdout.buffer.write(sys.stdin.buffer.read())
    sources = list(work.sources())
    readable = [source for source in sources if source is not None]
    done = rewrite_sources(readable, work.program, codemods, options.unsafe_fixes, work.version_for, work.rules_for)
    deliver = _show if options.diff else _save
    results: list[Rewritten] = []
    groups = list(_groups(done))
    refused, proven = _proven(groups, work) if options.verify else ({}, {})
    for group in groups:
        problems = [problem for result in group for problem in (*result.failures, *_syntax_errors(result))]
        if not problems:
            problems = list(deliver(group))
        elif not options.diff and group[0].source.from_stdin:
            sys.stdout.buffer.write(group[0].source.encode(group[0].source.text))
        for problem in dict.fromkeys(problems):
            error(problem)
        for result in () if problems else group:
            results.append(replace(result, left=tuple(_unsilenced(result, work.notebooks, baselines))))
    # The summary gives way where standard output is a patch, or a source that came through standard input.
    piped = options.diff or STDIN in work.paths
    lines = [*_done(results, options.diff), *_told_of(refused, proven), *_left(results)]
    if not lines and len(results) == len(sources):
        lines = [translated("Nothing to fix.")]
    print("".join(f"{line}\n" for line in lines), end="", file=sys.stderr if piped else sys.stdout)
    if len(results) < len(sources):
        return 2
    return int(any(result.changed if options.diff else result.left for result in results) or bool(refused))


def _unsilenced(result: Rewritten, notebooks: Mapping[Path, Notebook], baselines: Baselines) -> list[Finding]:
    """Return the findings left in ``result`` that no baseline holds, by cell if it is one of the ``notebooks``."""
    if result.source.notebook is None:
        return baselines.fresh(result.left, {result.source.filename: result.text}, exempt=())
    current = result.source.notebook.rewritten(result.text)
    left = [in_cells(finding, {**notebooks, result.source.file: current}) for finding in result.left]
    return baselines.fresh(left, current.texts(), exempt=())


def _proven(groups: Sequence[Sequence[Rewritten]], work: Work) -> tuple[dict[str, str], dict[Path, str]]:
    """Take back the rewrites that running the scripts does not prove.

    Return the reasons by name of the file, and by script what it has proven.
    """
    from mslint.commands.proof import prove

    candidates = [
        group for group in groups if any(r.changed_code for r in group) and not any(r.failures for r in group)
    ]
    proof = prove(candidates, work.program, lambda script: work.configurations.of(script).verify)
    refused: dict[str, str] = {}
    for number, reason in proof.doubts.items():
        for result in candidates[number]:
            if result.changed:
                refused[result.source.filename] = reason
            result.give_up()
    return refused, proof.runs


def _chosen(names: Sequence[str]) -> tuple[AnyCodemod, ...]:
    with remedy(translated("`mslint codemod` lists them")):
        return named(list(names))


def _syntax_errors(result: Rewritten) -> Iterator[str]:
    for finding in result.left:
        if finding.code == SYNTAX_ERROR[0]:
            notebook = result.source.notebook
            told = in_cells(finding, {result.source.file: notebook}) if notebook else finding
            yield f"{_place(told)}: {told.message}"


def _groups(results: Sequence[Rewritten]) -> Iterator[list[Rewritten]]:
    """Yield the results that are to be written together, or not at all."""
    files = {result.source.path: result for result in results}
    seen: set[Path] = set()
    for path, result in files.items():
        if path not in seen:
            group = joined(result, files)
            seen.update(one.source.path for one in group)
            yield group


def _save(results: Sequence[Rewritten]) -> Iterator[str]:
    """Write the new texts where the old ones came from, all or none; yield what went wrong.

    What came through standard input goes to standard output in any case: whoever filters a text through us wants it back.
    """
    try:
        contents = {
            result.source.file: result.source.encode(result.text)
            for result in results
            if result.changed or result.source.from_stdin
        }
        if results and results[0].source.from_stdin:
            sys.stdout.buffer.writelines(contents.values())
        else:
            write_all(contents)
    except Unreadable as problem:
        yield str(problem)


def _show(results: Sequence[Rewritten]) -> Iterator[str]:
    """Print the changes as a patch that ``git apply`` takes: in the bytes of the files, whatever their encoding."""
    try:
        encoded = [(result.source, result.source.encode(result.text)) for result in results if result.changed]
    except Unreadable as problem:
        yield str(problem)
        return
    for source, data in encoded:
        _show_patch(source, data)


def _show_patch(source: Source, data: bytes) -> None:
    paint = Style(has_colour(sys.stdout))
    name = os.fsencode(source.filename.lstrip("/"))
    before, after = _patch_lines(source.encode(source.text)), _patch_lines(data)
    sys.stdout.flush()
    for line in difflib.diff_bytes(difflib.unified_diff, before, after, _quoted(b"a/" + name), _quoted(b"b/" + name)):
        sys.stdout.buffer.write(_painted(line, paint))
    sys.stdout.buffer.flush()


def _quoted(name: bytes) -> bytes:
    """Return ``name`` as git writes it where it would not end with its line: in quotes, octal for what is special."""
    special = set(range(32)) | {127} | set(b'"\\')
    if special.isdisjoint(name):
        return name
    return b'"' + b"".join(b"\\%03o" % byte if byte in special else bytes([byte]) for byte in name) + b'"'


def _painted(line: bytes, paint: Style) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    text, end = (text[:-1], "\n") if text.endswith("\n") else (text, "\n\\ No newline at end of file\n")
    if text.startswith(("---", "+++")):
        text = paint.bold(text)
    elif text.startswith("-"):
        text = paint.removed(text)
    elif text.startswith("+"):
        text = paint.added(text)
    return (text + end).encode("utf-8", "surrogateescape")


def _patch_lines(data: bytes) -> list[bytes]:
    """Split ``data`` as patches do: at line feeds alone."""
    return io.BytesIO(data).readlines()


def _done(results: Sequence[Rewritten], dry: bool) -> Iterator[str]:
    applied = [finding for result in results for finding in result.applied]
    if applied:
        findings = counted(len(applied), "finding")
        files = counted(sum(result.changed for result in results), "file")
        would = translated("Would fix {findings} in {files}.", findings=findings, files=files)
        yield would if dry else translated("Fixed {findings} in {files}.", findings=findings, files=files)
    for (name, codemod), number in sorted(_tally(applied).items()):
        yield translated("  {number} {name} (by {codemod})", number=number, name=name, codemod=codemod)


def _told_of(refused: Mapping[str, str], proven: Mapping[Path, str]) -> Iterator[str]:
    if proven:
        yield translated("Proven by running {scripts}:", scripts=counted(len(proven), "script"))
        yield from (f"  {shown(script)}: {reason}" for script, reason in proven.items())
    if refused:
        yield translated("Not proven, left as before: {files}", files=counted(len(refused), "file"))
        yield from (f"  {name}: {reason}" for name, reason in refused.items())


def _left(results: Sequence[Rewritten]) -> Iterator[str]:
    left = [finding for result in results for finding in result.left]
    if left:
        yield translated("Left as before: {findings}", findings=counted(len(left), "finding"))
        yield from (f"  {_place(finding)}: {finding.code} {_reason(finding)}" for finding in left)


def _tally(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    return Counter((finding.name, finding.fix.codemod) for finding in findings if finding.fix)


def _reason(finding: Finding) -> str:
    """Say why ``finding`` was not rewritten."""
    if finding.fix is None:
        return f"{finding.name}: {translated('no codemod rewrites it')}"
    is_unsafe = finding.fix.applicability is Applicability.UNSAFE
    how = translated("unsafe, needs --unsafe-fixes") if is_unsafe else translated("by hand")
    return f"{finding.name}: {how}: {finding.fix.message}"


def _place(finding: Finding) -> str:
    return f"{finding.text_name}:{finding.start.row}:{finding.start.column}"


def rewrite_files(
    paths: Iterable[Path],
    codemods: Sequence[str] = (),
    unsafe: bool = False,
    target_version: Version = NEWEST,
) -> dict[Path, bytes]:
    """Return what ``mslint fix`` would write: the new content of each file under ``paths`` that would change.

    Raises Unreadable or UsageError for a file that cannot be read or parsed, RuntimeError for an internal error.
    """
    from mslint.program.project import Program

    chosen = _chosen(codemods)
    files = python_files(paths)
    rules = all_rules()
    results = rewrite_sources(
        [read(path) for path in files], Program(files), chosen, unsafe, lambda path: target_version, lambda path: rules
    )
    for result in results:
        for problem in _syntax_errors(result):
            raise UsageError(problem)
        if result.failures:
            raise RuntimeError("\n".join(result.failures))
    return {result.source.file: result.source.encode(result.text) for result in results if result.changed}
