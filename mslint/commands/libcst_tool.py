"""Every codemod as a command of libcst's own tool.

``python -m libcst.tool codemod --no-format -x mslint.commands.libcst_tool.FunctionalGrad train.py`` does to one file after
the other what ``mslint fix --codemod functional-grad`` does; fixes that edit several files are left out, since the tool hands
files over one by one. The class of a codemod is called like the codemod, in capitals: ``functional-grad`` is FunctionalGrad.
"""

from __future__ import annotations

from argparse import ArgumentParser
from functools import cache
from pathlib import Path
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext

from codemods.registry import AnyCodemod, all_codemods
from mslint.commands.rewriting import rewrite_source
from mslint.findings import Finding
from mslint.program.project import Program
from mslint.source.text import Source


class Command(CodemodCommand):
    """One codemod, run on one file at a time."""

    codemod: ClassVar[AnyCodemod]

    @staticmethod
    def add_args(arg_parser: ArgumentParser) -> None:
        """Add our option to those of the tool."""
        arg_parser.add_argument(
            "--unsafe-fixes", action="store_true", help="make the rewrites too that may change numbers"
        )

    def __init__(self, context: CodemodContext, unsafe_fixes: bool = False) -> None:
        super().__init__(context)
        self.unsafe_fixes = unsafe_fixes

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """Return ``tree`` rewritten; what is left to the user becomes a warning of the tool.

        Raises RuntimeError where a rule or codemod fails; the tool then leaves the file as it was.
        """
        path = Path(self.context.filename or "stdin.py").absolute()
        program = Program([path], {path: tree.code})
        result = rewrite_source(Source(path, path.name, tree.code), program, [self.codemod], self.unsafe_fixes)
        if result.failures:
            raise RuntimeError("\n".join(result.failures))
        for finding in result.left:
            self.warn(_left(finding))
        return cst.parse_module(result.text, config=tree.config_for_parsing) if result.changed else tree


def _left(finding: Finding) -> str:
    reason = finding.fix.message if finding.fix else "no codemod rewrites it"
    return f"{finding.start.row}:{finding.start.column} {finding.code} {finding.name}: {reason}"


@cache
def _commands() -> dict[str, type[Command]]:
    found = {}
    for codemod in all_codemods():
        name = "".join(part.capitalize() for part in codemod.name.split("-"))
        description = f"mslint's {codemod.name}; `mslint codemod {codemod.name}` explains it"
        body = {"DESCRIPTION": description, "codemod": codemod, "__module__": __name__}
        found[name] = type(name, (Command,), body)
    return found


def __getattr__(name: str) -> type[Command]:
    try:
        return _commands()[name]
    except KeyError:
        raise AttributeError(f"no codemod is called {name}; there are {', '.join(_commands())}") from None
