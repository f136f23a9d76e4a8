"""Source files as text, exact to the byte: encoding, byte order mark and line ends survive reading and writing."""

from __future__ import annotations

import codecs
import io
import re
import stat
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.findings import Position
from mslint.language import translated

if TYPE_CHECKING:
    from mslint.source.notebook import Notebook

NOTEBOOK_SUFFIX = ".ipynb"

_SAVE_AS_UTF8 = "save the file as UTF-8, or name its encoding in the first line (`# -*- coding: gbk -*-`)"
_LINE_END = r"\r\n|\r|\n"
_LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"


class Unreadable(Exception):
    """A file that cannot be taken as Python source, with what its owner can do about it."""

    def __init__(self, filename: str, position: Position | None, message: str, remedy: str) -> None:
        super().__init__(filename, position, message, remedy)
        self.filename = filename
        self.position = position
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        place = f":{self.position.row}:{self.position.column}" if self.position else ""
        return f"{self.filename}{place}: {self.message}; {self.remedy}"


@dataclass(frozen=True)
class Source:
    """A Python file as it stands on disk (or came through standard input).

    ``text`` has no byte order mark and keeps its line ends as they are. ``path`` is absolute, ``filename`` the name
    to show. Of a ``notebook`` the text is that of its code cells, and the path ends with ``.ipynb.py``: what knows Python
    files alone needs to know nothing else.
    """

    path: Path
    filename: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    from_stdin: bool = False
    notebook: Notebook | None = None

    @property
    def file(self) -> Path:
        """The file that the text comes from."""
        return self.path.with_suffix("") if self.notebook else self.path

    def encode(self, text: str) -> bytes:
        """Return the bytes that hold ``text`` in this file's encoding."""
        if self.notebook:
            return (codecs.BOM_UTF8 if self.bom else b"") + self.notebook.with_text(text).encode()
        try:
            body = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise Unreadable(
                self.filename,
                position_at(text, error.start),
                f"{text[error.start]!r} cannot be written in {self.encoding}",
                "save the file as UTF-8 and drop its coding line",
            ) from None
        return codecs.BOM_UTF8 + body if self.bom else body


def stand_in(path: Path) -> Path:
    """Return the name that the program, which knows Python files alone, has for the notebook at ``path``."""
    return path.with_name(f"{path.name}.py")


def read(path: Path) -> Source:
    """Read the Python file or notebook at ``path``, or the notebook that a program calls so (see Source)."""
    if path.name.endswith(f"{NOTEBOOK_SUFFIX}.py") and not path.exists():
        path = path.with_suffix("")
    filename = shown(path)
    try:
        require_regular(path)
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    return decode(data, path.absolute(), filename)


def require_regular(path: Path) -> None:
    """Raise Unreadable for what is no file: whoever opens a named pipe may wait for ever. Raises OSError, too."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise Unreadable(shown(path), None, "is no regular file", "name a file, or pass it as standard input (-)")


def unreadable(path: Path, error: OSError) -> Unreadable:
    """Say what ``error`` means for the owner of ``path``."""
    filename = shown(path)
    if isinstance(error, FileNotFoundError):
        return Unreadable(
            filename, None, translated("no such file or folder"), translated("check the spelling of the path")
        )
    if isinstance(error, IsADirectoryError):
        return Unreadable(filename, None, translated("is a folder"), translated("name a file in it"))
    if isinstance(error, PermissionError):
        return Unreadable(
            filename, None, translated("may not be read"), translated("change its permissions, or exclude it")
        )
    return Unreadable(filename, None, f"cannot be read ({error.strerror})", "check the path")


def decode(data: bytes, path: Path, filename: str) -> Source:
    """Take ``data`` as Python source, by its byte order mark and coding line (PEP 263), or as a notebook of it."""
    if path.suffix == NOTEBOOK_SUFFIX:
        from mslint.source.notebook import decode_notebook

        return decode_notebook(data, path, filename)
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if b"\0" in body:
        raise Unreadable(
            filename, _position_in_bytes(body, body.index(b"\0")), "holds a null byte", "save it as UTF-8 text"
        )
    try:
        encoding = "utf-8" if bom else tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(
            filename, _position_in_bytes(body, error.start), _undecodable(error), translated(_SAVE_AS_UTF8)
        ) from None
    except (SyntaxError, LookupError):
        raise Unreadable(filename, *_wrong_encoding(body)) from None
    if text.encode(encoding) != body:
        raise Unreadable(filename, None, f"{encoding} does not keep its bytes when written again", "save it as UTF-8")
    return Source(path, filename, text, encoding, bom)


def shown(path: Path) -> str:
    """Return the name to show for ``path``: relative to the working directory where it lies below it."""
    absolute = Path(path).absolute()
    try:
        return str(absolute.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def may_suppress(text: str) -> bool:
    """Tell whether a comment in ``text`` may ask to be spared a finding; most texts need not be tokenized to tell."""
    return "noqa" in text.lower() or "mslint" in text


def lines_of(text: str) -> list[str]:
    """Split ``text`` into rows as Python does (``\\n``, ``\\r\\n`` and ``\\r`` only), line ends kept."""
    return re.findall(_LINE, text)


def line_starts(text: str) -> list[int]:
    """Return where each row of ``text`` begins, the empty one behind a last line end included."""
    return [0, *(match.end() for match in re.finditer(_LINE_END, text))]


def position_at(text: str, offset: int) -> Position:
    """Return the row and column of ``offset`` in ``text``."""
    starts = line_starts(text)
    row = bisect_right(starts, offset)
    return Position(row, offset - starts[row - 1] + 1)


def _position_in_bytes(body: bytes, offset: int) -> Position:
    """Return the place of a byte in text that need not be decodable: what stands before it counts as UTF-8."""
    before = body[:offset].decode("utf-8", "replace")
    return position_at(before, len(before))


def _wrong_encoding(body: bytes) -> tuple[Position, str, str]:
    """Explain why ``tokenize.detect_encoding`` would have none of ``body``: it does not tell its reasons apart."""
    for row, line in enumerate(body.splitlines()[:2], 1):
        if declared := re.match(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", line):
            name = declared[1].decode("ascii", "replace")
            return Position(row, 1), f"the coding line names {name}, which does not fit", "correct the coding line"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _position_in_bytes(body, error.start), _undecodable(error), translated(_SAVE_AS_UTF8)
    return Position(1, 1), "the encoding cannot be told", _SAVE_AS_UTF8


def _undecodable(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x} is not {error.encoding}"
