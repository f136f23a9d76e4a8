"""Rewriting a text by one codemod, as the tests of loss codemods do."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from codemods.registry import named
from mslint.commands.rewriting import Rewritten, rewrite_source
from mslint.findings import Applicability
from mslint.program.project import Program
from mslint.source.text import read

HEAD = "import mindspore as ms\nfrom mindspore import nn, ops\n\n\n"


def rewrite(
    folder: Path, codemod: str, text: str, *, unsafe: bool = True, others: dict[str, str] | None = None
) -> Rewritten:
    """Rewrite ``text``, a file of a project that also holds ``others``."""
    (folder / "pyproject.toml").touch()
    for name, content in (others or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "loss.py"
    path.write_bytes(text.encode())
    return rewrite_source(read(path), Program([path]), named([codemod]), unsafe)


def file(body: str) -> str:
    """Return a file with ``body`` below the imports."""
    return HEAD + dedent(body).lstrip("\n")


def reasons(done: Rewritten, applicability: Applicability = Applicability.MANUAL) -> list[str]:
    """Return what the fixes that were not made say."""
    return [f.fix.message for f in done.left if f.fix is not None and f.fix.applicability is applicability]
