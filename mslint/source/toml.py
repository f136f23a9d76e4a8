"""TOML files, read with errors that name the place, and their strings, written."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mslint.console import UsageError
from mslint.source.text import shown

_PLACE = r" \(at line (\d+), column (\d+)\)$"


def read_toml(file: Path) -> Mapping[str, object]:
    """Return what stands in ``file``. Raises UsageError, with the place, if it cannot be read as TOML."""
    try:
        return _document(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{shown(file)}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{shown(file)}: byte 0x{error.object[error.start]:02x} is not UTF-8; save it as UTF-8"
        ) from None
    except ValueError as error:  # tomllib's, which is not imported without need
        place = re.search(_PLACE, str(error))
        where, what = (f":{place[1]}:{place[2]}", str(error)[: place.start()]) if place else ("", str(error))
        raise UsageError(f"{shown(file)}{where}: is no TOML ({what}); correct it") from None
    except RecursionError:
        raise UsageError(f"{shown(file)}: is nested too deeply; write it more plainly") from None


@lru_cache(maxsize=8)
def _document(text: str) -> Mapping[str, object]:
    """Return what ``text`` says. The same configuration is read for the language, for the settings ..."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def quoted(text: str) -> str:
    """Return ``text`` as TOML writes it: as JSON does, but for the one control character that JSON leaves alone."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
