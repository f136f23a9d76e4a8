"""Proves by running and compiling that a rewritten training script computes what the original computes."""

from __future__ import annotations

from mslint.verify.conditions import Conditions, parse_input
from mslint.verify.result import (
    Comparison,
    Counts,
    GraphNode,
    GraphView,
    Loss,
    ModeResult,
    PynativeCounts,
    Rewrite,
    StepResult,
    StepTime,
    Verification,
)
from mslint.verify.verification import MODES, VerifierUnavailable, require_mindspore, verify

__all__ = [
    "MODES",
    "Comparison",
    "Conditions",
    "Counts",
    "GraphNode",
    "GraphView",
    "Loss",
    "ModeResult",
    "PynativeCounts",
    "Rewrite",
    "StepResult",
    "StepTime",
    "Verification",
    "VerifierUnavailable",
    "parse_input",
    "require_mindspore",
    "verify",
]
