"""What README.md takes from the program: the tables of rules and codemods, and the sessions. Run it to write them anew.

python tests/make_readme.py
"""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import codemods.registry
import mslint.rules.registry

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SESSION = re.compile(r"(?<=```console\n)\$ mslint ([^\n]*)\n(.*?)(?=```)", re.DOTALL)


def tables() -> dict[str, str]:
    """The tables by name."""
    rules = (mslint.rules.registry.load(rule) for rule in mslint.rules.registry.BUILT_IN)
    rewriters = (codemods.registry.load(codemod) for codemod in codemods.registry.BUILT_IN)
    return {
        "rules": _table(
            ("code", "name", "severity", "what is wrong", "codemod"),
            (
                (rule.code, rule.name, rule.severity.value, rule.summary, ", ".join(rule.codemods()) or "none")
                for rule in rules
            ),
        ),
        "codemods": _table(
            ("name", "rewrites", "what it does", "applicability"),
            (
                (one.name, ", ".join(one.rules), one.summary, " ".join(inspect.cleandoc(one.applicability).split()))
                for one in rewriters
            ),
        ),
    }


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def with_tables(text: str) -> str:
    """README with the tables as they are now."""
    for name, table in tables().items():
        between = re.compile(
            rf"(?<=<!-- {name}: made by tests/make_readme.py -->\n).*?(?=<!-- end of {name} -->)", re.S
        )
        assert between.search(text), name
        text = between.sub(lambda _, table=table: table, text)
    return text


def answer(command: str) -> str:
    """What ``mslint COMMAND`` prints in the repository."""
    done = subprocess.run(
        [sys.executable, "-m", "mslint", *shlex.split(command)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    return done.stdout.rstrip() + "\n"


def main() -> None:
    """Write them anew."""
    answers = {command: answer(command) for command, _ in SESSION.findall(README.read_text(encoding="utf-8"))}
    text = with_tables(README.read_text(encoding="utf-8"))
    text = SESSION.sub(lambda session: f"$ mslint {session[1]}\n{answers[session[1]]}", text)
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
