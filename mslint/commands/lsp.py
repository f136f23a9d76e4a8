"""``mslint lsp``: the language server, for editors."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from mslint.console import UsageError
from mslint.language import translated

OPERANDS = ""


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint lsp``."""
    parser.description = f"{parser.description} It speaks the language server protocol on standard input and output."
    parser.add_argument("--stdio", action="store_true", help="accepted; there is no other way to talk to it")


def run(options: Namespace) -> int:
    """Serve until the editor says goodbye."""
    if find_spec("pygls") is None:
        raise UsageError(translated("the language server needs pygls 2; `pip install 'mslint[lsp]'` installs it"))
    from mslint.commands.language_server import serve

    serve()
    return 0
