"""Write evidence.json: what ``mslint verify`` measures on the fixtures of the rules that change the graph.

Only counts are kept, which every machine with this MindSpore gives alike; times are not.

usage: python mslint/data/make_evidence.py  (needs MindSpore and a checkout)
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "MS101": "--codemod functional-grad --unsafe-fixes fixtures/functional_grad/batchnorm_dropout_no_set_grad.py",
    "MS102": "fixtures/unstopped-frozen-feature/bad.py --against fixtures/unstopped-frozen-feature/fixed.py",
    "MS103": "fixtures/freeze-that-does-not/bad.py --against fixtures/freeze-that-does-not/fixed.py",
    "MS201": "fixtures/epsilon-add/bad.py --against fixtures/epsilon-add/fixed.py",
    "MS203": "fixtures/fragmented-slicing/bad.py --against fixtures/fragmented-slicing/fixed.py",
    "MS204": "fixtures/boolean-mask/bad.py --against fixtures/boolean-mask/fixed.py",
}
"""By rule: the arguments of ``mslint verify`` that show what its rewrite changes."""

_COUNTS = ("forward", "backward", "saved_bytes", "autograd_nodes", "forward_runs", "operator_calls")


def table() -> dict[str, object]:
    """Measure all of them with the installed MindSpore."""
    rules: dict[str, object] = {}
    version = ""
    for code, arguments in COMMANDS.items():
        measured = _verified(arguments)
        version = str(measured["mindspore"])
        rules[code] = {
            "mindspore": version,
            "command": f"mslint verify {arguments}",
            "verdict": measured["verdict"],
            **dict(_counts(measured["steps"])),
        }
    return {"mindspore": version, "rules": rules}


def _verified(arguments: str) -> dict[str, object]:
    command = [sys.executable, "-m", "mslint", "verify", "--output-format", "json", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def _counts(steps: object) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """Yield each mode with its counts as pairs: before, after."""
    assert isinstance(steps, list)
    for step in steps:
        sides: Mapping[str, Mapping[str, int]] = step["pynative"] if step["mode"] == "pynative" else step
        before, after = sides["before"], sides["after"]
        yield step["mode"], {name: [before[name], after[name]] for name in _COUNTS if name in before}


if __name__ == "__main__":
    text = json.dumps(table(), indent=1)
    Path(__file__).with_name("evidence.json").write_text(f"{text}\n", encoding="utf-8")
