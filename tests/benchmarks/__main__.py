"""What mslint costs on a folder, beside other tools on the same files: ``python tests/benchmarks FOLDER``.

Each line is the best of some runs of a process of its own: CPU seconds of it and its children, wall time, the most memory
that one process held, and the CPU seconds as a multiple of those that ``ast.parse`` needs for the same files. The folder is
copied first; nothing is written into it.

Of ruff, flake8 and TorchFix those are measured that are on PATH, beside this Python, or named by an option: TorchFix and
mslint want different versions of libcst, so that it needs an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PARSE = """
import ast, os, sys, warnings
warnings.simplefilter("ignore")
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as stream:
                try:
                    ast.parse(stream.read())
                except (SyntaxError, ValueError):
                    pass
"""
CENTRAL = """
import sys
from pathlib import Path
from mslint.program.project import Program
files = sorted(Path(sys.argv[1]).rglob("*.py"))
program = Program(files)
print(max(files, key=lambda file: len(program.importers(file))))
"""
"""A process of its own: what this one holds in memory counts for its children, too."""
TOOLS: dict[str, tuple[str, ...]] = {
    "ruff": ("check", "--isolated", "--no-cache", "-q", "--exit-zero"),
    "flake8": ("--isolated", "--exit-zero", "-j1"),
    "torchfix": ("--select", "ALL", "--jobs", "1"),
}
"""What other tools are called with: for one process, as far as they can be told."""
REFERENCE = "ast.parse of all files"
MSLINT = (sys.executable, "-m", "mslint")


@dataclass
class Row:
    """One measured command."""

    name: str
    cpu: float
    wall: float
    peak_mb: float
    ratio: float = 0.0
    """CPU seconds in units of those of ``ast.parse`` over all files."""


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python tests/benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="what to check")
    parser.add_argument("--repeat", type=int, default=3, help="runs of what takes less than five seconds (default: 3)")
    parser.add_argument("--only", default="", help="only lines whose names hold this")
    for tool in TOOLS:
        parser.add_argument(f"--{tool}", type=Path, metavar="FILE", help=f"the executable of {tool}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mslint-benchmark-") as place:
        folder = Path(place, "project")
        shutil.copytree(options.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", ".mslint_cache"))
        (folder / ".git").mkdir()  # so that the project ends here
        tools = {tool: found for tool in TOOLS if (found := executable(tool, getattr(options, tool)))}
        rows = list(Benchmark(folder, Path(place, "cache"), options.repeat, tools).rows(options.only))
    size = sum(1 for _ in options.folder.rglob("*.py"))
    lines = sum(path.read_bytes().count(b"\n") for path in options.folder.rglob("*.py"))
    print(f"{options.folder}: {size} files, {lines} lines, load {os.getloadavg()[0]:.1f}\n\n{table(rows)}")
    if absent := sorted(TOOLS.keys() - tools.keys()):
        print(f"\nnot measured, since not installed: {', '.join(absent)}")
    if options.json:
        document = {
            "folder": str(options.folder),
            "files": size,
            "lines": lines,
            "absent": absent,
            "rows": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def executable(tool: str, named: Path | None) -> str | None:
    """Return the file that runs ``tool``, None if it is not installed."""
    if named is not None:
        return str(named.absolute())
    return shutil.which(tool, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    parse = next((row.cpu for row in rows if row.name == REFERENCE), None)
    lines = [f"{'':34}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'x ast':>9}"]
    for row in rows:
        row.ratio = round(row.cpu / parse, 2) if parse else 0.0
        lines.append(f"{row.name:34}{row.cpu:9.2f}{row.wall:9.2f}{row.peak_mb:9.0f}{row.ratio:9.2f}")
    return "\n".join(lines)


class Benchmark:
    """The commands to be measured in ``folder``."""

    def __init__(self, folder: Path, cache: Path, repeat: int, tools: Mapping[str, str]) -> None:
        self._folder = folder
        self._cache = cache
        self._repeat = repeat
        self._tools = tools

    def rows(self, only: str) -> list[Row]:
        """Measure the lines whose names hold ``only``; the reference is always measured."""
        folder, cache = str(self._folder), ("--cache-dir", str(self._cache))
        check = (*MSLINT, "check", "--exit-zero", "--output-format", "json")
        warm, fresh = (*check, *cache), (*check, "--no-cache")
        clean, dirty, central = self._chosen()
        found = [
            self._best("python -c pass", (sys.executable, "-c", "pass")),
            self._best(REFERENCE, (sys.executable, "-c", PARSE, folder)),
        ]
        lines: list[tuple[str, tuple[str, ...], Callable[[], object]]] = [
            ("mslint --version", (*MSLINT, "--version"), _nothing),
            ("mslint, clean file", (*check, *cache, clean), self._forget),
            ("mslint, file with findings", (*check, *cache, dirty), self._forget),
            ("mslint, no cache, one process", (*fresh, "--jobs", "1", folder), _nothing),
            ("mslint, cold", (*warm, folder), self._forget),
            ("mslint, warm", (*warm, folder), self._fill),
            ("mslint, file with findings, warm", (*check, *cache, dirty), self._fill),
            ("mslint, a comment in a leaf file", (*warm, folder), lambda: self._change(dirty, "# changed")),
            ("mslint, a leaf file changed", (*warm, folder), lambda: self._change(dirty, "USED = 1")),
            ("mslint, the most used file changed", (*warm, folder), lambda: self._change(central, "USED = 1")),
        ]
        lines += [(name, (file, *TOOLS[name], folder), _nothing) for name, file in self._tools.items()]
        for name, command, prepare in lines:
            if only in name:
                found.append(self._best(name, command, prepare))
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return found

    def _best(self, name: str, command: Sequence[str], prepare: Callable[[], object] = lambda: None) -> Row:
        rows: list[Row] = []
        while len(rows) < self._repeat and sum(row.cpu for row in rows) < 5:
            prepare()
            rows.append(self._measured(name, command))
        return Row(name, min(row.cpu for row in rows), min(row.wall for row in rows), max(row.peak_mb for row in rows))

    def _measured(self, name: str, command: Sequence[str]) -> Row:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 2) and command[0] not in self._tools.values():  # 2: a file could not be parsed
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        scale = 1024 if sys.platform == "linux" else 1024 * 1024
        return Row(name, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / scale)

    def _forget(self) -> None:
        shutil.rmtree(self._cache, ignore_errors=True)

    def _fill(self) -> None:
        """Let there be what an earlier run has found."""
        if not self._cache.exists():
            command = (*MSLINT, "check", "--exit-zero", "--cache-dir", str(self._cache), str(self._folder))
            subprocess.run(command, cwd=self._folder, capture_output=True, check=False)

    def _change(self, file: str, line: str) -> None:
        self._fill()
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n")

    def _chosen(self) -> tuple[str, str, str]:
        """Return a clean file without MindSpore, one with findings, and the one that most files use."""
        command = (*MSLINT, "check", "--exit-zero", "--output-format", "json", "--no-cache", str(self._folder))
        output = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False).stdout
        with_findings = sorted({str(self._folder / finding["filename"]) for finding in json.loads(output)})
        clean = self._folder / "benchmark_clean.py"
        clean.write_text("import numpy as np\n\n\ndef f(x):\n    return np.exp(x)\n" * 20, encoding="utf-8")
        central = subprocess.run(
            [sys.executable, "-c", CENTRAL, str(self._folder)], capture_output=True, text=True
        ).stdout
        return str(clean), (with_findings or [str(clean)])[0], central.strip()


def _nothing() -> None:
    """Prepare nothing."""


if __name__ == "__main__":
    raise SystemExit(main())
