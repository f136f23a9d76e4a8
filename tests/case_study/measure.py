"""Measures the case study before and after mslint's fixes and writes its page: fixtures/case_study/README.md.

usage: python tests/case_study/measure.py [--page] [--times]

With --page the page is written from the figures that are there; with --times only times and losses are measured anew.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from capture import CASE, VERSIONS, Versions, captured, compare_step, counts, fingerprint, measured
from page import page, picture
from ranks import SAMPLES, told_apart, trained_on_two_ranks
from times import LOSS_WORKER, timed

FIGURES = CASE / "figures.json"
ROUNDS = {"graph": 32, "pynative": 7}
CURVE_STEPS = 100
CURVES = ("before", "all")


def count(versions: Versions, scratch: Path) -> dict[str, Any]:
    """Return what is the same whenever it is measured."""
    figures: dict[str, Any] = {
        "mindspore": version("mindspore"),
        "fingerprints": {name: fingerprint(versions.make(name)) for name in VERSIONS},
    }
    for mode in ROUNDS:
        figures[mode] = measured(versions, list(VERSIONS), mode, scratch / mode)
        print(json.dumps(figures[mode], indent=1), flush=True)
    figures["communication"] = {}
    for name in CURVES:
        run = captured(versions.make(name), "graph", scratch / f"ranks-{name}", ranks=2)
        figures["communication"][name] = counts(compare_step("graph", 0, run, run), "graph")["communication"]
    figures["ranks"] = {"samples": SAMPLES}
    for name in CURVES:
        figures["ranks"][name] = told_apart(trained_on_two_ranks(versions.make(name), scratch / f"msrun-{name}"))
    print(figures["communication"], figures["ranks"], flush=True)
    return figures


def take_times(versions: Versions, scratch: Path) -> dict[str, Any]:
    """Return times and losses."""
    distinct: dict[str, Path] = {}
    twins: dict[str, str] = {}
    for name in VERSIONS:
        twin = versions.same_as(name, list(distinct))
        if twin is None:
            distinct[name] = versions.make(name)
        twins[name] = twin or name
    figures: dict[str, Any] = {"times": {}, "rounds": ROUNDS, "processors": os.cpu_count()}
    for mode, rounds in ROUNDS.items():
        curves, steps = (CURVES, CURVE_STEPS) if mode == "graph" else ((), 0)
        times, losses = timed(distinct, mode, rounds, scratch, curves, steps)
        figures["times"][mode] = {name: times[twins[name]] for name in VERSIONS}
        if losses:
            figures["curves"] = losses
        print(json.dumps(figures["times"][mode], indent=1), flush=True)
    # The loss alone is the same in all versions that have its file in common.
    ends = {name: versions.make(name) for name in CURVES}
    figures["loss"] = {
        mode: timed(ends, mode, rounds, scratch, worker=LOSS_WORKER)[0] for mode, rounds in ROUNDS.items()
    }
    print(json.dumps(figures["loss"], indent=1), flush=True)
    figures["load"] = round(os.getloadavg()[1], 1)
    return figures


def main(options: list[str]) -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if "--page" not in options:
        with tempfile.TemporaryDirectory(prefix="mslint-verify-", ignore_cleanup_errors=True) as folder:
            scratch = Path(folder).resolve()
            versions = Versions(scratch / "versions")
            if "--times" not in options:
                figures |= count(versions, scratch)
                save(figures)
            figures |= take_times(versions, scratch)
            save(figures)
    (CASE / "README.md").write_text(page(figures), encoding="utf-8")
    (CASE / "loss.svg").write_text(picture(figures["curves"]), encoding="utf-8")


def save(figures: dict[str, Any]) -> None:
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
