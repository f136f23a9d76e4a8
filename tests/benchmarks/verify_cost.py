"""What ``mslint verify`` costs beside MindSpore itself: ``python tests/benchmarks/verify_cost.py SCRIPT --codemod NAME``,
and behind ``--`` the script's arguments.

MindSpore's own cost is that of running the script to its end without mslint: as it is and rewritten, in graph mode and in
PyNative mode, each in a process of its own that imports MindSpore, compiles the same graphs and makes the steps. The script
should train for one or two steps, as verify stops there. Both sides are measured by turns in one run, and of each the run
that took the fewest CPU seconds is told: those of the process and all of its children, wall time, the most memory that one
process held, and the CPU seconds as a multiple of MindSpore's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mslint.commands.verify import rewritten

# The mode is forced upon the script, as verify does it.
PLAIN = """
import runpy, sys
import mindspore as ms
mode, script, sys.argv = sys.argv[1], sys.argv[2], sys.argv[2:]
set_context = ms.set_context
def forced(**options):
    options = {key: value for key, value in options.items() if key not in ("mode", "device_target")}
    if options:
        set_context(**options)
set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_context = ms.context.set_context = forced
runpy.run_path(script, run_name="__main__")
"""
IMPORT = "import mindspore"


@dataclass(frozen=True)
class Cost:
    """What a process and its children took."""

    cpu: float
    wall: float
    peak_mb: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.wall + other.wall, max(self.peak_mb, other.peak_mb))


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("script", type=Path)
    parser.add_argument("--codemod", action="append", required=True)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each side (default: 3)")
    parser.add_argument("--timeout", default="600", help="of verify, for each run (default: 600 s)")
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end], argparse.Namespace(arguments=given[end + 1 :]))
    script = options.script.resolve()
    changed = rewritten(script, options.codemod, (2, 10), unsafe=True)
    if not changed:
        parser.error(f"{', '.join(options.codemod)} changes nothing in {script}")
    with tempfile.TemporaryDirectory(prefix="mslint-benchmark-") as place:
        subprocess.run(["cp", "-r", f"{script.parent}/.", place], check=True)
        sides = [script, Path(place, script.name)]
        for path, content in changed.items():
            Path(place, path.relative_to(script.parent)).write_bytes(content)
        print_table(*measure(sides, options))
    return 0


def measure(sides: Sequence[Path], options: argparse.Namespace) -> tuple[dict[str, Cost], Cost, Cost]:
    """Return the cost of each plain run, of importing MindSpore alone and of verify."""
    names = [word for name in options.codemod for word in ("--codemod", name)]
    verify = [
        *(sys.executable, "-m", "mslint", "verify", str(sides[0]), *names, "--unsafe-fixes"),
        *("--timeout", options.timeout, "--", *options.arguments),
    ]
    commands = {"verify": verify, "import": [sys.executable, "-c", IMPORT]}
    for mode in ("graph", "pynative"):
        for name, side in zip(("original", "rewritten"), sides, strict=True):
            commands[f"{name}, {mode}"] = [sys.executable, "-c", PLAIN, mode, str(side), *options.arguments]
    costs: dict[str, Cost] = {}
    for _ in range(options.repeat):
        for name, command in commands.items():
            cost = cost_of(command, sides[0].parent)
            costs[name] = min(cost, costs.get(name, cost), key=lambda one: one.cpu)
    return costs, costs.pop("import"), costs.pop("verify")


def cost_of(command: Sequence[str], folder: Path) -> Cost:
    """Run a command; raises RuntimeError if it fails."""
    start = time.perf_counter()
    environment = {**os.environ, "GLOG_v": "3", "MS_JIT": "0" if "pynative" in command else "1"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ((0, 1) if "verify" in command else (0,)):  # 1: different
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def print_table(plain: dict[str, Cost], importing: Cost, verify: Cost) -> None:
    """MindSpore's cost in all, and with its import counted only once: verify imports it once, too."""
    total = sum(plain.values(), start=Cost(0, 0, 0))
    once = Cost(total.cpu - (len(plain) - 1) * importing.cpu, total.wall - (len(plain) - 1) * importing.wall, 0)
    print(f"{'':40}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'times':>9}")
    for name, cost in {
        "import of MindSpore": importing,
        **plain,
        "MindSpore alone, four processes": total,
        "MindSpore alone, imported once": once,
    }.items():
        print(f"{name:40}{cost.cpu:9.2f}{cost.wall:9.2f}{cost.peak_mb or total.peak_mb:9.0f}")
    for name, base in (("verify, of four processes", total), ("verify, of MindSpore imported once", once)):
        print(f"{name:40}{verify.cpu:9.2f}{verify.wall:9.2f}{verify.peak_mb:9.0f}{verify.cpu / base.cpu:9.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
