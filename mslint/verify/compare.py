"""Compares the numbers and the structure of two runs and concludes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import networkx as nx

from mslint.findings import Verdict
from mslint.verify import graphview, mindir
from mslint.verify.arrays import load_arrays, same_bits
from mslint.verify.job import DESCRIPTOR, result_file
from mslint.verify.process import Run
from mslint.verify.result import Comparison, Loss, PynativeCounts, StepResult

# Reformulated losses differ by float rounding: measured 2.2e-5 of a tensor's largest value (shared facts, section D).
RELATIVE_TOLERANCE = 1e-4
ABSOLUTE_TOLERANCE = 1e-6
# Half precision rounds more coarsely than that: one step of rounding is up to half a unit in the last place of a result,
# and a reformulation is a few steps on either side.
UNITS_IN_LAST_PLACE = 4
LAST_PLACES = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The unit in the last place of one."""
_RANDOM = re.compile("Dropout|Random|Normal$|Normal[A-Z]|Uniform|Bernoulli|Multinomial|Rand")
_STATISTICS = ("moving_mean", "moving_variance", "running_mean", "running_var")


def compare_step(mode: str, index: int, original: Run, rewritten: Run, *, views: bool = False) -> StepResult:
    """Judge one step of both runs; its verdict rests on nothing but numbers that both gave.

    With ``views`` the result holds the graphs, too.
    """
    before, after = original.steps[index], rewritten.steps[index]
    result_before = result_file(original.out, index)
    numbers_before = load_arrays(result_before)
    numbers_after = load_arrays(result_file(rewritten.out, index), result_before, numbers_before)
    graphs = _graphs(original, index), _graphs(rewritten, index)
    # What the rewrite is to compute as exactly as the original does.
    tolerance = relative_tolerance({*before["half_precision"], *mindir.half_precision(graphs[0])})
    remarks = [*before["remarks"], *after["remarks"]]
    loss = _loss(numbers_before, numbers_after, tolerance)
    outputs = _group("output:", numbers_before, numbers_after, tolerance)
    gradients = _group("gradient:", numbers_before, numbers_after, tolerance)
    if gradients and before["gradients_from"] != after["gradients_from"]:
        remarks.append(
            f"gradients not compared: the original's are those of the {before['gradients_from']}, "
            f"the rewritten script's those of the {after['gradients_from']}"
        )
        gradients = None
    parameters = _group("parameter:", numbers_before, numbers_after, tolerance)
    updated = bool(before["optimizers"] and after["optimizers"])
    verdict, reason = _conclude(loss, outputs, gradients, parameters, updated)
    seen = graphview.match(*map(graphview.view, graphs)) if views and all(graphs) else (None, None)
    return StepResult(
        mode=mode,
        name=before["name"],
        location=before["location"],
        verdict=verdict,
        reason=reason,
        before=mindir.count(graphs[0]) if graphs[0] else None,
        after=mindir.count(graphs[1]) if graphs[1] else None,
        pynative_before=_pynative_counts(before) if mode == "pynative" else None,
        pynative_after=_pynative_counts(after) if mode == "pynative" else None,
        loss=loss,
        outputs=outputs,
        gradients=gradients,
        gradients_from=before["gradients_from"] if gradients else None,
        parameters=parameters,
        tolerance=tolerance,
        remarks=tuple(dict.fromkeys(remarks)),
        graph_before=seen[0],
        graph_after=seen[1],
    )


def random_operators(step: StepResult) -> list[str]:
    """The operators of the step that draw random numbers."""
    operators: set[str] = set()
    for counts in (step.before, step.after, step.pynative_before, step.pynative_after):
        operators |= set(counts.by_operator if counts else ())
    return sorted(filter(_RANDOM.search, operators))


def relative_tolerance(half_precision: Collection[str]) -> float:
    """By how much of its largest value a tensor may differ, if these types of half precision take part in the step."""
    return max((RELATIVE_TOLERANCE, *(UNITS_IN_LAST_PLACE * LAST_PLACES[name] for name in half_precision)))


def compare_arrays(
    before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float = RELATIVE_TOLERANCE
) -> Comparison:
    """Compare tensors of the same name. NaN and infinities are equal to themselves at the same place."""
    import numpy as np

    worst, differing = None, []
    max_absolute = max_relative = 0.0
    bit_equal = True
    for name in before:
        if name not in after:
            continue
        one, other = (np.asarray(arrays[name]) for arrays in (before, after))
        if one.shape != other.shape:
            absolute = relative = float("inf")
        else:
            absolute, largest = _difference(one, other)
            relative = absolute / largest if largest else (float("inf") if absolute else 0.0)
            if absolute <= ABSOLUTE_TOLERANCE + tolerance * largest:
                bit_equal &= absolute == 0 and one.dtype == other.dtype
                max_absolute = max(max_absolute, absolute)
                if relative > max_relative:
                    max_relative, worst = relative, name
                continue
        bit_equal = False
        differing.append(name)
        max_absolute = max(max_absolute, absolute)
        if relative > max_relative or worst is None:
            max_relative, worst = relative, name
    only_before = tuple(name for name in before if name not in after)
    only_after = tuple(name for name in after if name not in before)
    same_names = not only_before and not only_after
    return Comparison(
        only_before=only_before,
        only_after=only_after,
        max_abs_diff=max_absolute,
        max_rel_diff=max_relative,
        worst=worst,
        equal=same_names and not differing,
        bit_equal=same_names and bit_equal,
        differing=tuple(differing),
    )


def _difference(one: Any, other: Any) -> tuple[float, float]:
    """The largest absolute difference, and the largest finite magnitude of both."""
    import numpy as np

    if same_bits(one, other):
        return 0.0, 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    unlike = (one != other) & ~(np.isnan(one) & np.isnan(other))
    finite = [np.abs(array[np.isfinite(array)]) for array in (one, other)]
    largest = max((float(array.max()) for array in finite if array.size), default=0.0)
    if not unlike.any():
        return 0.0, largest
    with np.errstate(invalid="ignore"):
        differences = np.abs(one - other)[unlike]
    return (float(differences.max()) if np.isfinite(differences).all() else float("inf")), largest


def _group(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float) -> Comparison | None:
    chosen = [
        {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
        for arrays in (before, after)
    ]
    return compare_arrays(chosen[0], chosen[1], tolerance) if all(chosen) else None


def _loss(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float) -> Loss | None:
    if "loss" not in before or "loss" not in after:
        return None
    comparison = compare_arrays({"loss": before["loss"]}, {"loss": after["loss"]}, tolerance)
    return Loss(float(before["loss"].mean()), float(after["loss"].mean()), comparison)


def _conclude(
    loss: Loss | None,
    outputs: Comparison | None,
    gradients: Comparison | None,
    parameters: Comparison | None,
    updated: bool,
) -> tuple[Verdict, str]:
    if gradients is None and parameters is None:
        return Verdict.UNVERIFIED, "structure only: the step gave no numbers"
    evaluated = {
        "loss": loss.comparison if loss else None,
        "other outputs": outputs,
        "gradients": gradients,
        "parameters after the step": parameters,
    }
    unequal = {what: found for what, found in evaluated.items() if found is not None and not found.equal}
    if unequal:
        problems = [_problem(what, found) for what, found in unequal.items()]
        same = [what for what in ("loss", "gradients") if evaluated[what] is not None and what not in unequal]
        return Verdict.DIFFERENT, "; ".join(problems + ([f"{_list(same)} equal"] if same else []))
    if gradients is None and not updated:
        return Verdict.UNVERIFIED, "no gradient was seen, and no optimizer ran that would show one"
    had = [what for what, found in evaluated.items() if found is not None and what != "other outputs"]
    missing = [what for what in ("loss", "gradients") if what not in had]
    bit_equal = all(found.bit_equal for found in evaluated.values() if found is not None)
    reason = f"{_list(had)} {'bit-equal' if bit_equal else 'equal within tolerance'}"
    if missing:
        reason += f"; {_list(missing)} not seen"
    return Verdict.EQUIVALENT, reason


def _problem(what: str, found: Comparison) -> str:
    if found.only_before or found.only_after:
        sides = [
            f"{side} only: {_list(names, 3)}"
            for side, names in (("original", found.only_before), ("rewritten", found.only_after))
            if names
        ]
        return f"{what} of different names ({'; '.join(sides)})"
    if what == "loss":
        return f"loss differs by {found.max_abs_diff:.3g}"
    if all(name.endswith(_STATISTICS) for name in found.differing):
        what = "running statistics of BatchNorm, moved by every forward pass,"
    return (
        f"{what} differ: {_list(found.differing, 3)} "
        f"(up to {found.max_abs_diff:.3g}, {found.max_rel_diff:.2g} of the tensor's largest value)"
    )


def _list(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _graphs(run: Run, index: int) -> list[nx.DiGraph]:
    descriptor = (run.out / DESCRIPTOR).read_bytes()
    step = run.steps[index]
    return [
        mindir.graph_of(
            mindir.read_model((run.out / graph["file"]).read_bytes(), descriptor),
            step["optimizers"],
            update_only=graph["role"] == "optimizer",
        )
        for graph in step["graphs"]
    ]


def _pynative_counts(step: Mapping[str, Any]) -> PynativeCounts:
    calls = step["operator_calls"]
    return PynativeCounts(
        autograd_nodes=sum(step["autograd_nodes"].values()),
        forward_runs=step["forward_runs"],
        operator_calls=None if calls is None else sum(calls.values()),
        by_operator=calls if calls is not None else step["autograd_nodes"],
    )
