"""``mslint codemod``: list the codemods, or explain one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from codemods.base import Codemod
from codemods.registry import all_codemods, load, named
from mslint import language
from mslint.console import remedy
from mslint.language import translated
from mslint.report.markdown import plain

OPERANDS = "[NAME]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint codemod``."""
    parser.add_argument("codemod", metavar="NAME", nargs="?", help="the codemod to explain (default: list all)")


def run(options: Namespace) -> int:
    """Print one codemod, or a table of all."""
    if options.codemod is None:
        for codemod in map(load, all_codemods()):
            print(f"{codemod.name}: {_summary(codemod)} [{', '.join(codemod.rules)}]")
        return 0
    with remedy(translated("`mslint codemod` lists them")):
        (wanted,) = named([options.codemod])
    print(_explained(load(wanted)))
    return 0


def _explained(codemod: type[Codemod]) -> str:
    rules = ", ".join(codemod.rules)
    head = f"{codemod.name}\nrewrites: {rules}\napplicability: {plain(codemod.applicability)}"
    chinese = language.chinese("codemods", codemod.name)
    return f"{head}\n\n{chinese + chr(10) * 2 if chinese else ''}{plain(codemod.__doc__ or codemod.summary)}"


def _summary(codemod: type[Codemod]) -> str:
    return language.summary("codemods", codemod.name, codemod.summary)
