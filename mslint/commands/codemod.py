"""``mslint codemod``: list the codemods, or explain one."""

from __future__ import annotations

import inspect
from argparse import ArgumentParser, Namespace

from codemods.base import Codemod
from codemods.registry import all_codemods, load, named
from mslint.console import remedy

OPERANDS = "[NAME]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint codemod``."""
    parser.add_argument("codemod", metavar="NAME", nargs="?", help="the codemod to explain (default: list all)")


def run(options: Namespace) -> int:
    """Print one codemod, or a table of all."""
    if options.codemod is None:
        for codemod in map(load, all_codemods()):
            print(f"{codemod.name}: {codemod.summary} [{', '.join(codemod.rules)}]")
        return 0
    with remedy("`mslint codemod` lists them"):
        (wanted,) = named([options.codemod])
    print(_explained(load(wanted)))
    return 0


def _explained(codemod: type[Codemod]) -> str:
    rules = ", ".join(codemod.rules)
    head = f"{codemod.name}\nrewrites: {rules}\napplicability: {inspect.cleandoc(codemod.applicability)}"
    return f"{head}\n\n{inspect.getdoc(codemod) or codemod.summary}"
