"""A verification as plain text, at most 100 columns wide, the verdict last."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from mslint.report.verify_rows import (
    MODE_NAMES,
    graph_rows,
    pynative_rows,
    told_comparison,
    told_loss,
    told_time,
    told_tolerance,
)
from mslint.verify import Counts, ModeResult, StepResult, Verification
from mslint.verify.mindir import KINDS

_WIDTH = 100
_COLUMN = 30


def render(verification: Verification) -> str:
    """The report, with a final newline."""
    lines = list(_head(verification))
    for mode in verification.modes:
        lines += ["", *_mode(mode)]
    if verification.stand_ins:
        lines += ["", "Stood in for or dropped"]
        for stand_in in verification.stand_ins:
            lines += _wrapped(stand_in, "  - ")
    verdict = verification.verdict.value
    lines += ["", *_wrapped(f"{verdict}: {verification.reason}" if verification.reason else verdict)]
    return "\n".join(lines) + "\n"


def _head(verification: Verification) -> Iterator[str]:
    rewrite = f"rewritten by {', '.join(verification.codemods)}" if verification.codemods else "and another version"
    version = f" (MindSpore {verification.mindspore})" if verification.mindspore else ""
    yield from _wrapped(f"{_short(verification.script)}, {rewrite}{version}")
    for path in verification.changed:
        yield from _wrapped(f"rewritten: {_short(path)}", "  ")


def _mode(mode: ModeResult) -> Iterator[str]:
    native = " (the script's own)" if mode.native_mode == mode.mode else ""
    yield f"{MODE_NAMES.get(mode.mode, mode.mode)}{native}"
    for step in mode.steps:
        yield from _step(step)
    if mode.verdict.value == "unverified" or not mode.steps:
        yield from _wrapped(f"{mode.verdict.value}: {mode.reason}", "  ")
    if mode.output.strip():
        yield "  the end of what it printed:"
        for line in mode.output.splitlines():
            yield f"  | {line}"[:_WIDTH]


def _step(step: StepResult) -> Iterator[str]:
    place = f" at {step.location}" if step.location else ""
    yield from _wrapped(f"step {step.name}{place}", "  ")
    if step.before and step.after:
        yield from _table(graph_rows(step.before, step.after))
        yield from _operators(step.before, step.after)
    elif step.mode == "graph":
        yield "    no graph to count"
    if step.pynative_before and step.pynative_after:
        yield from _table(pynative_rows(step.pynative_before, step.pynative_after))
        changes = _changes(step.pynative_before.by_operator, step.pynative_after.by_operator)
        if changes and step.pynative_before.operator_calls is not None:
            yield from _wrapped(f"operator calls: {changes}", "    ")
    yield from _numbers(step)
    for remark in step.remarks:
        yield from _wrapped(f"note: {remark}", "    ")


def _table(rows: Iterator[tuple[str, int, int]]) -> Iterator[str]:
    yield f"    {'':{_COLUMN}}{'before':>14}{'after':>14}"
    for name, before, after in rows:
        change = f"  {after - before:+,}" if after != before else ""
        yield f"    {name:{_COLUMN}}{before:>14,}{after:>14,}{change}"


def _operators(before: Counts, after: Counts) -> Iterator[str]:
    for kind in KINDS:
        changes = _changes(before.operators.get(kind, {}), after.operators.get(kind, {}))
        if changes:
            yield from _wrapped(f"{kind} operators: {changes}", "    ")


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    return ", ".join(
        f"{name} {before.get(name, 0)} -> {after.get(name, 0)}"
        for name in sorted({*before, *after})
        if before.get(name, 0) != after.get(name, 0)
    )


def _numbers(step: StepResult) -> Iterator[str]:
    compared: list[tuple[str, str]] = [("loss", told_loss(step.loss))]
    compared.append(("gradients", told_comparison(step.gradients)))
    if step.parameters is not None:
        compared.append(("parameters after", told_comparison(step.parameters)))
    if step.tolerance is not None and step.rounded:
        compared.append(("tolerance", told_tolerance(step.tolerance)))
    if step.time is not None:
        compared.append(("step time", told_time(step.time)))
    for name, what in compared:
        yield from _wrapped(f"{name:{_COLUMN}}{what}", "    ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split(" ")),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent) + "  ",
        break_on_hyphens=False,
    )


def _short(path: str) -> str:
    """Relative to the working directory where the file lies below it."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path
