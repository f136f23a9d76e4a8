"""What the text and the HTML report of a verification both say."""

from __future__ import annotations

from collections.abc import Iterator

from mslint.verify import Comparison, Counts, Loss, PynativeCounts, StepTime
from mslint.verify.compare import ABSOLUTE_TOLERANCE, LAST_PLACES, UNITS_IN_LAST_PLACE
from mslint.verify.mindir import KINDS

MODE_NAMES = {"graph": "Graph mode", "pynative": "PyNative mode"}


def graph_rows(before: Counts, after: Counts) -> Iterator[tuple[str, int, int]]:
    """What is counted of compiled graphs: its name, before and after."""
    for kind in KINDS:
        yield f"{kind} nodes", getattr(before, kind), getattr(after, kind)
    yield "sub-graphs", before.subgraphs, after.subgraphs
    yield "bytes kept for the backward", before.saved_bytes, after.saved_bytes
    yield "bytes at the peak (estimate)", before.peak_bytes, after.peak_bytes


def pynative_rows(before: PynativeCounts, after: PynativeCounts) -> Iterator[tuple[str, int, int]]:
    """What is counted of a step in PyNative mode: its name, before and after."""
    yield "autograd nodes", before.autograd_nodes, after.autograd_nodes
    yield "forward runs per step", before.forward_runs, after.forward_runs
    if before.operator_calls is not None and after.operator_calls is not None:
        yield "operator calls per step", before.operator_calls, after.operator_calls


def told_time(time: StepTime) -> str:
    """The time of a step as it was measured, which is no promise."""
    before, after = time.medians
    noise = ", no difference beyond the noise" if time.within_noise else ""
    return (
        f"{of_time(before)} -> {of_time(after)} ({time.ratio:.2f} times{noise}): "
        f"median of {min(len(time.before), len(time.after))} steps each, by turns, on this machine"
    )


def of_time(milliseconds: float) -> str:
    """Milliseconds with three digits."""
    return f"{milliseconds:.3g} ms" if milliseconds < 1000 else f"{milliseconds:,.0f} ms"


def of_bytes(number: int) -> str:
    """Bytes with three digits and a unit."""
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def told_loss(loss: Loss | None) -> str:
    """How the losses compare."""
    if loss is None:
        return "not seen"
    if loss.comparison.bit_equal:
        return f"bit-equal ({loss.before:.6g})"
    return f"{equality(loss.comparison)}: {loss.before:.8g} -> {loss.after:.8g}"


def told_comparison(comparison: Comparison | None) -> str:
    """How sets of tensors compare."""
    if comparison is None:
        return "not seen on both sides"
    if comparison.bit_equal:
        return "bit-equal"
    if not comparison.names_equal:
        names = [*comparison.only_before, *comparison.only_after]
        return f"DIFFERENT: {len(names)} on one side only, such as {names[0]}"
    return (
        f"{equality(comparison)}: up to {comparison.max_abs_diff:.3g} "
        f"({comparison.max_rel_diff:.2g} of the largest value), worst in {comparison.worst}"
    )


def told_tolerance(tolerance: float) -> str:
    """What counts as equal."""
    half = [name for name, unit in LAST_PLACES.items() if tolerance == UNITS_IN_LAST_PLACE * unit]
    why = f": {UNITS_IN_LAST_PLACE} units in the last place of {half[0]}" if half else ""
    return f"{tolerance:.2g} of the largest value of a tensor{why}, plus {ABSOLUTE_TOLERANCE:g}"


def equality(comparison: Comparison) -> str:
    """In a word."""
    if comparison.bit_equal:
        return "bit-equal"
    return "equal within tolerance" if comparison.equal else "DIFFERENT"
