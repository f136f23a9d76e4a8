"""The command line: which verb, and how the process ends."""

from __future__ import annotations

import io
import sys
from argparse import ArgumentParser, HelpFormatter, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from mslint import __version__, language
from mslint.console import UsageError, abandon, error, internal_error, nearest
from mslint.language import LANGUAGES, translated
from mslint.shadowing import drop_working_directory

VERBS = {
    "check": "report what hurts a MindSpore training program",
    "fix": "rewrite what can be rewritten without changing the training",
    "verify": "prove by compilation that a rewrite computes the same loss and gradients",
    "rule": "list the rules, or explain one",
    "codemod": "list the codemods, or explain one",
    "baseline": "put up with the findings of today: write them to a file, or prune it",
    "config": "print the settings that hold for a file, and where they are written",
    "lsp": "report and fix while you type: the language server, for editors",
}
"""Each verb is the module of that name in mslint.commands, imported only when it is asked for."""

_SOME_WIDTH = 80
"""For what argparse formats for itself, with each option that it is told of: no need to ask for the terminal's."""
_EXIT_CODES = "exit codes: 0 nothing to report, 1 findings, 2 usage, configuration, unreadable input or internal error"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mslint`` and return its exit code."""
    drop_working_directory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a report is no reason to fail on a terminal's encoding
    given = list(sys.argv[1:] if arguments is None else arguments)
    language.use(_asked(given) or language.of_locale())
    if sys.stdout is None:  # so Python starts with a closed descriptor
        error("the report cannot be written: standard output is closed")
        return 2
    try:
        try:
            code = _run(given)
        except SystemExit as ended:  # argparse's way, once it has printed a help text
            code = int(ended.code or 0)
        sys.stdout.flush()
        return code
    except UsageError as problem:
        error(str(problem))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        abandon(sys.stdout)  # whoever read our output has seen enough
        return 141
    except OSError as problem:
        # Files that cannot be opened have a name; what fails without one is writing to what is open: the report.
        if problem.filename is None and problem.strerror:
            error(f"the report cannot be written: {problem.strerror}")
            abandon(sys.stdout)
        else:
            error(internal_error("mslint", " ".join(given), problem))
        return 2
    except Exception as exception:
        error(internal_error("mslint", " ".join(given), exception))
        return 2


class _Parser(ArgumentParser):
    """Says what is wrong in one line, as all else here does; argparse would put the whole usage in front."""

    def format_help(self) -> str:
        """Return the help text, as wide as the terminal: ``_formatter`` does not ask for its width."""
        self.formatter_class = partial(self.formatter_class, width=_width())  # type: ignore[call-arg]
        return super().format_help()

    def parse_args(self, args: Sequence[str], namespace: None = None) -> Namespace:  # type: ignore[override]
        """Return the options in ``args``; what is none is named together with the option that may have been meant."""
        options, unknown = self.parse_known_args(args)
        if unknown:
            word = unknown[0].partition("=")[0]
            near = nearest(word, self._option_string_actions)
            if word.startswith("--") and word[2:] in VERBS:  # --fix is an option of other linters
                near = translated("; did you mean {word}?", word=f"`mslint {word[2:]}`")
            self.error(translated("unknown argument {word!r}{near}", word=word, near=near))
        return options

    def translate(self) -> None:
        """Have what is said of the options in the language in use."""
        for action in self._actions:
            action.help = action.help and translated(action.help)
        for group in self._action_groups:
            group.title = group.title and translated(group.title)
            group.description = group.description and translated(group.description)

    def error(self, message: str) -> NoReturn:
        raise UsageError(translated("{program}: {message}; try `{program} --help`", program=self.prog, message=message))


def _run(arguments: list[str]) -> int:
    verb, rest = _verb(arguments)
    if verb in VERBS:
        command = import_module(f"mslint.commands.{verb}")
        parser = _Parser(
            f"mslint {verb}",
            usage=f"mslint {verb} [OPTIONS] {command.OPERANDS}",
            description=f"mslint {verb}: {translated(VERBS[verb])}",
            epilog=translated(_EXIT_CODES),
            formatter_class=partial(HelpFormatter, max_help_position=32, width=_SOME_WIDTH),
            allow_abbrev=False,
        )
        command.add_arguments(parser)
        parser.add_argument("--lang", choices=LANGUAGES, help="English or Chinese (default: the locale's)")
        parser.translate()
        options = parser.parse_args(rest)
        language.use(options.lang or _configured(options) or language.of_locale())
        code: int = command.run(options)
        return code
    if not verb.startswith("-"):
        raise UsageError(
            translated(
                "unknown command {verb!r}{near} (mslint --help lists them)", verb=verb, near=nearest(verb, VERBS)
            )
        )
    return _top(arguments)


def _verb(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the verb and its arguments; ``--lang`` may stand before the verb, too."""
    for length in (1, 2):
        before, rest = arguments[:length], arguments[length:]
        if rest and rest[0] in VERBS and _asked(before):
            return rest[0], [*before, *rest[1:]]
    return (arguments[0], arguments[1:]) if arguments else ("--help", [])


def _asked(arguments: Sequence[str]) -> str | None:
    """Return the language that ``arguments`` name, before they are parsed: help and errors come in it, too."""
    for option, value in zip(arguments, [*arguments, ""][1:], strict=True):
        asked = value if option == "--lang" else option.removeprefix("--lang=")
        if asked in LANGUAGES and option.startswith("--lang"):
            return asked
    return None


def _configured(options: Namespace) -> str | None:
    from mslint.config import Configurations, read_config

    file: Path | None = getattr(options, "config", None)
    try:
        return (read_config(file) if file else Configurations().within(Path.cwd())).lang
    except UsageError:  # told by whoever needs the configuration
        return None


def _top(arguments: list[str]) -> int:
    """Answer a command line without a verb."""
    parser = _Parser(
        "mslint",
        usage="mslint [--help] [--version] COMMAND ...",
        description="\n".join([translated("commands (mslint COMMAND --help explains one):"), *map(_listed, VERBS)]),
        epilog=_filled(translated(_EXIT_CODES)),
        formatter_class=partial(RawDescriptionHelpFormatter, width=_SOME_WIDTH),
    )
    parser.add_argument("--lang", choices=LANGUAGES, help="English or Chinese (default: the locale's)")
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.translate()
    if parser.parse_args(arguments).version:
        print(f"mslint {__version__}")
        return 0
    parser.print_help()
    return 2


def _listed(verb: str) -> str:
    return _filled(f"{verb:8}  {translated(VERBS[verb])}", initial_indent="  ", subsequent_indent=" " * 12)


def _filled(text: str, initial_indent: str = "", subsequent_indent: str = "") -> str:
    import textwrap

    return textwrap.fill(text, _width(), initial_indent=initial_indent, subsequent_indent=subsequent_indent)


def _width() -> int:
    """Return how wide argparse makes a help text."""
    import shutil

    return shutil.get_terminal_size().columns - 2
