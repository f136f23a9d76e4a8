"""``mslint config``: what holds for a file or folder, and where that is written."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

from mslint.commands.work import Wishes, Work
from mslint.config import FILES, KEYS, VERIFY_KEYS, Config, Configurations, read_config
from mslint.console import UsageError
from mslint.language import translated
from mslint.source.files import SKIPPED
from mslint.source.text import shown
from mslint.source.toml import quoted, read_toml

OPERANDS = "[PATH]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint config``."""
    parser.add_argument("path", metavar="PATH", nargs="?", type=Path, default=Path(), help="(default: .)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="pyproject.toml or mslint.toml to use")
    parser.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="text is TOML (default: text)"
    )


def run(options: Namespace) -> int:
    """Print the settings for one path."""
    if not os.path.lexists(options.path):
        raise UsageError(
            f"{options.path}: {translated('no such file or folder')}; {translated('check the spelling of the path')}"
        )
    configurations = Configurations(read_config(options.config) if options.config else None)
    is_folder = os.path.isdir(options.path)
    config = configurations.within(options.path) if is_folder else configurations.of(options.path)
    work = Work((options.path,), configurations, Wishes())
    rules = work.rules_by(config) if is_folder else work.rules_for(options.path)
    codes = [rule.code for rule in rules]
    settings = _settings(config)
    if options.output_format == "json":
        file = str(config.file) if config.file else None
        document = {"file": file, "folder": str(config.folder), "settings": settings, "rules": codes}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_toml(config, settings, codes)))
    return 0


def _settings(config: Config) -> dict[str, object]:
    """Return the value of every key as it may be written in a configuration; None for what is not set."""
    found = {key: getattr(config, key.replace("-", "_")) for key in KEYS}
    usual: dict[str, object] = {
        "select": ["ALL"] if config.select is None else list(config.select),
        "exclude": sorted(f"{name}/" for name in SKIPPED) if config.exclude is None else list(config.exclude),
        "target-version": ".".join(map(str, config.target_version)),
        "per-file-ignores": {pattern: list(codes) for pattern, codes in config.per_file_ignores.items()},
        "verify": {key: getattr(config.verify, key.replace("-", "_")) for key in VERIFY_KEYS},
    }
    return {**found, **usual}


def _toml(config: Config, settings: Mapping[str, object], codes: list[str]) -> Iterator[str]:
    yield f"# {shown(config.file)}" if config.file else "# no [tool.mslint] and no mslint.toml from here upwards"
    if config.file and (beside := _passed_over(config.file)):
        yield f"# passed over: [tool.mslint] in {shown(beside)}"
    yield f"# checked: {', '.join(codes) or 'nothing'}"
    tables = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
    for key, value in settings.items():
        if key not in tables:
            yield _line(key, value)
    for key, table in tables.items():
        yield ""
        yield f"[{key}]"
        yield from (_line(name, value) for name, value in table.items())


def _passed_over(file: Path) -> Path | None:
    """Return the pyproject.toml beside ``file`` that says something, too."""
    beside = file.with_name(FILES[-1])
    if file.name != FILES[0] or not beside.is_file():
        return None
    tools = read_toml(beside).get("tool")
    return beside if isinstance(tools, Mapping) and "mslint" in tools else None


def _line(key: str, value: object) -> str:
    name = key if key.replace("-", "").isalnum() and key.isascii() else quoted(key)
    return f"# {name} is not set" if value is None else f"{name} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else str(value)
