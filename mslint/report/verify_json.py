"""A verification as one JSON object: the contract of ``mslint verify --output-format json``."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from mslint.verify import Comparison, Counts, ModeResult, StepResult, StepTime, Verification
from mslint.verify.compare import ABSOLUTE_TOLERANCE


def render(verification: Verification) -> str:
    """One JSON object with a final newline. Numbers that JSON lacks (infinite, not a number) become strings."""
    modes = [mode.mode for mode in verification.modes]
    document = {
        "mindspore": verification.mindspore,
        "script": verification.script,
        "codemods": list(verification.codemods),
        "changed": list(verification.changed),
        "mode": modes[0] if len(modes) == 1 else "both",
        "verdict": verification.verdict.value,
        "reason": verification.reason,
        "modes": [_mode(mode) for mode in verification.modes],
        "steps": [_step(step) for step in verification.steps],
        "stand_ins": list(verification.stand_ins),
    }
    return json.dumps(_representable(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _mode(mode: ModeResult) -> dict[str, Any]:
    return {
        "mode": mode.mode,
        "verdict": mode.verdict.value,
        "reason": mode.reason,
        "native_mode": mode.native_mode,
        "output": mode.output,
    }


def _step(step: StepResult) -> dict[str, Any]:
    loss = step.loss
    pynative = step.pynative_before is not None and step.pynative_after is not None
    return {
        "mode": step.mode,
        "name": step.name,
        "location": step.location,
        "verdict": step.verdict.value,
        "reason": step.reason,
        "before": _counts(step.before),
        "after": _counts(step.after),
        "pynative": {"before": asdict(step.pynative_before), "after": asdict(step.pynative_after)}  # type: ignore[arg-type]
        if pynative
        else None,
        "loss": loss
        and {
            "before": loss.before,
            "after": loss.after,
            "max_abs_diff": loss.comparison.max_abs_diff,
            "bit_equal": loss.comparison.bit_equal,
            "equal": loss.comparison.equal,
        },
        "outputs": _comparison(step.outputs),
        "gradients": step.gradients and {**(_comparison(step.gradients) or {}), "from": step.gradients_from},
        "parameters": _comparison(step.parameters),
        "tolerance": step.tolerance and {"relative": step.tolerance, "absolute": ABSOLUTE_TOLERANCE},
        "time_ms": _time(step.time),
        "remarks": list(step.remarks),
    }


def _counts(counts: Counts | None) -> dict[str, Any] | None:
    return {**asdict(counts), "by_operator": counts.by_operator} if counts else None


def _time(time: StepTime | None) -> dict[str, Any] | None:
    """Medians as measured on this machine, and between which values the middle half of the times lies."""
    if time is None:
        return None
    (before, after), (spread_before, spread_after) = time.medians, time.quartiles
    return {
        "before": before,
        "after": after,
        "ratio": time.ratio,
        "quartiles": {"before": list(spread_before), "after": list(spread_after)},
        "steps": {"before": len(time.before), "after": len(time.after)},
    }


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    return {"names_equal": comparison.names_equal, **asdict(comparison)} if comparison else None


def _representable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _representable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_representable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
