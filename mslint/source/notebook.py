"""Jupyter notebooks as Python sources: their code cells one after the other, and put back where they came from.

Of a notebook's JSON only the source of changed cells is written anew; everything else stays byte for byte.
"""

from __future__ import annotations

import ast
import codecs
import io
import json
import keyword
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from mslint.findings import Applicability, Edit, Finding, Fix, Position, Related
from mslint.source.text import NOTEBOOK_SUFFIX, Source, Unreadable, lines_of, position_at, stand_in

_REPAIR = "open and save it in Jupyter, or exclude it"
_PYTHON_CELLS = frozenset({"%%capture", "%%debug", "%%ipytest", "%%prun", "%%time", "%%timeit"})
"""The cell magics below which there is Python that runs in the notebook's own process."""
_MAGIC = re.compile(r"(?P<target>\s*[^=!#'\"]+=\s*)[%!]|\s*[%!?,;/]|[^#'\"]*\?\s*$")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_FILE = r"[^\s(),:`]+\.(?:ipynb\.py|ipynb|py)"
_PLACE = re.compile(
    rf"(?P<file>{_FILE})(?P<between>:|, row )(?P<there>\d+)"
    rf"|\b(?P<word>rows?|line) (?P<here>\d+)(?: and (?P<second>\d+))?(?P<of> of (?P<other>{_FILE}))?"
)
"""How messages name rows, here and in other files."""


@dataclass(frozen=True)
class Cell:
    """A code cell: the ``number``-th of all cells, from 1, with its text and where that stands in the notebook's JSON.

    ``plain`` is the text without magics, ``magics`` says by placeholder what they were.
    """

    number: int
    text: str
    plain: str
    magics: Mapping[str, str]
    start: int
    end: int


@dataclass(frozen=True)
class Notebook:
    """The code cells of a notebook, joined to one text; a row with ``mark`` stands above each."""

    filename: str
    document: str = field(repr=False)
    mark: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The Python that all cells make up."""
        return "".join(f"{self._head(cell)}\n{cell.plain}\n" for cell in self.cells)

    def texts(self) -> dict[str, str]:
        """Return the cells as they were written, by the name that findings in them have for their place."""
        return {f"{self.filename}:cell {cell.number}": cell.text for cell in self.cells}

    def with_text(self, text: str) -> str:
        """Return the notebook's JSON with ``text``, which was made of ours, in its cells."""
        parts = self._split(text)
        pieces, done = [], 0
        ascii_only = self.document.isascii() and "\\u" in self.document
        for cell, part in zip(self.cells, parts, strict=True):
            if part != cell.plain:
                new = self._with_magics(cell, part)
                pieces += [
                    self.document[done : cell.start],
                    _written(new, self.document[cell.start : cell.end], ascii_only),
                ]
                done = cell.end
        return "".join([*pieces, self.document[done:]])

    def rewritten(self, text: str) -> Notebook:
        """Return the notebook with ``text``, which was made of ours, in its cells."""
        source = decode_notebook(self.with_text(text).encode(), Path(self.filename), self.filename)
        assert source.notebook is not None
        return source.notebook

    def within_cells(self, fix: Fix) -> Fix:
        """Return ``fix``; left to a person if one of its edits reaches from one cell into another."""
        if all(edit.filename or self._extent(edit) for edit in fix.edits):
            return fix
        message = f"{fix.message}; that would reach over several cells: put what belongs together into one"
        return replace(fix, applicability=Applicability.MANUAL, message=message, edits=())

    def locate(self, place: Position) -> tuple[int, Position]:
        """Return the number of the cell that ``place`` of the joined text is in, and the place in it."""
        index = max(bisect_right(self._heads, place.row) - 1, 0)
        row = place.row - self._heads[index]
        return self.cells[index].number, Position(row, place.column) if row > 0 else Position(1, 1)

    def edit(self, edit: Edit) -> Edit:
        """Return ``edit`` of the joined text as one of a cell."""
        extent = self._extent(edit)
        if extent is None:
            return edit
        number, start, end = extent
        return replace(
            edit, filename=edit.filename and edit.filename.removesuffix(".py"), cell=number, start=start, end=end
        )

    def _extent(self, edit: Edit) -> tuple[int, Position, Position] | None:
        """Return the cell and the places in it that ``edit`` reaches from and to; None if it leaves the cell."""
        (first, start), (last, end) = self._border(edit.start), self._border(edit.end)
        return (self.cells[first].number, start, end) if first == last and start.row > 0 else None

    def _border(self, place: Position) -> tuple[int, Position]:
        """Return the index of the cell that ``place`` is in, or at the end of: there the head of the next one begins."""
        behind = place.column == 1 and place.row in self._heads[1:]
        index = max(bisect_right(self._heads, place.row) - 1 - behind, 0)
        return index, Position(place.row - self._heads[index] or int(place.row == place.column == 1), place.column)

    @cached_property
    def _heads(self) -> list[int]:
        """The rows of the joined text that stand above the cells."""
        rows = [1]
        for cell in self.cells:
            rows.append(rows[-1] + len(lines_of(f"{cell.plain}\n")) + 1)
        return rows[:-1]

    def _head(self, cell: Cell) -> str:
        return f"# {self.mark} cell {cell.number}"

    def _split(self, text: str) -> list[str]:
        # What was put above everything belongs to the first cell.
        above, *rest = re.split(rf"^# {self.mark} cell (\d+)\n", text, flags=re.MULTILINE)
        if rest[::2] != [str(cell.number) for cell in self.cells]:
            raise self._lost("the cells' borders")
        parts = [part.removesuffix("\n") for part in rest[1::2]]
        return [above + part if not index else part for index, part in enumerate(parts)]

    def _with_magics(self, cell: Cell, text: str) -> str:
        rows = lines_of(text)
        met = []
        for number, row in enumerate(rows):
            if self.mark in row:
                placeholder = row.strip()
                met.append(placeholder)
                original = cell.magics.get(placeholder, "")
                indent = row[: len(row) - len(row.lstrip())]
                rows[number] = f"{indent}{original}{row[len(row.rstrip()) :]}"
        if met != list(cell.magics) or _is_cell_magic(cell.text) != _is_cell_magic("".join(rows)):
            raise self._lost("a magic")
        return "".join(rows)

    def _lost(self, what: str) -> Unreadable:
        return Unreadable(self.filename, None, f"the rewrite does not keep {what}", "leave it out, or rewrite by hand")


def decode_notebook(data: bytes, path: Path, filename: str) -> Source:
    """Take ``data`` as a notebook whose code cells make up one source."""
    bom = data.startswith(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text)
    except UnicodeDecodeError as error:
        raise _broken(filename, f"byte 0x{error.object[error.start]:02x} is not UTF-8") from None
    except json.JSONDecodeError as error:
        place = position_at(text, error.pos)
        raise _broken(filename, f"no JSON at {place.row}:{place.column} ({error.msg})") from None
    except RecursionError:
        raise _broken(filename, "nested too deeply") from None
    _require_version(document, filename)
    cells = tuple(_cells(document, text, filename))
    mark = _mark("".join(cell.text for cell in cells))
    notebook = Notebook(filename, text, mark, tuple(_made_harmless(cells, mark)))
    try:
        notebook.text.encode()
    except UnicodeEncodeError:
        raise _broken(filename, "half a character (a lone surrogate) in a cell") from None
    if "\0" in notebook.text:
        raise _broken(filename, "a null character in a cell")
    return Source(stand_in(path), filename, notebook.text, bom=bom, notebook=notebook)


def _broken(filename: str, what: str) -> Unreadable:
    return Unreadable(filename, None, f"is no notebook: {what}", _REPAIR)


def _require_version(document: object, filename: str) -> None:
    version = document.get("nbformat") if isinstance(document, dict) else None
    if isinstance(version, int) and version != 4:
        raise Unreadable(filename, None, f"is a notebook of format {version}, not 4", _REPAIR)
    if version != 4:
        raise _broken(filename, "it has no `nbformat`")


def _cells(document: dict[str, object], text: str, filename: str) -> Iterator[Cell]:
    """Yield the Python cells; none of a notebook in another language."""
    cells = document.get("cells")
    if not isinstance(cells, list):
        raise _broken(filename, "it has no list of `cells`")
    if not _is_python(document):
        return
    spans = _elements(text, _members(text, _WHITE_SPACE.match(text).end())["cells"][0])  # type: ignore[union-attr]
    for number, (cell, span) in enumerate(zip(cells, spans, strict=True), 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise _broken(filename, f"the source of cell {number} is no text")
        magic = source.split(maxsplit=1)[0] if _is_cell_magic(source) else None
        if magic is None or magic in _PYTHON_CELLS:
            yield Cell(number, source, source, {}, *_members(text, span[0])["source"])


def _is_cell_magic(text: str) -> bool:
    return text.lstrip().startswith("%%")


def _is_python(document: dict[str, object]) -> bool:
    metadata = document.get("metadata")
    for key, entry in (("language_info", "name"), ("kernelspec", "language")):
        table = metadata.get(key) if isinstance(metadata, dict) else None
        language = table.get(entry) if isinstance(table, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


def _mark(text: str) -> str:
    """Return a string that does not stand in ``text``."""
    return next(mark for length in count(2) if (mark := "~" * length) not in text)


def _made_harmless(cells: Iterable[Cell], mark: str) -> Iterator[Cell]:
    """Yield the cells with a call of an unknown function in place of each magic: what it names may be used by it."""
    numbers = count(1)
    for cell in cells:
        if _parses(cell.text):
            yield cell
            continue
        magics: dict[str, str] = {}
        rows: list[str] = []
        goes_on = False
        for row in lines_of(cell.text):
            code = row.rstrip()
            if not rows and _is_cell_magic(row):
                placeholder = f"# {mark} magic {next(numbers)}"  # a comment: nothing may be put above it
            elif goes_on:
                placeholder = f"# {mark} magic {next(numbers)}"
            elif (start := _MAGIC.match(row)) and not _is_open("".join(rows)):
                target = start["target"] or ""
                placeholder = f"{target.lstrip()}{_call(row[len(target) :])}  # {mark} magic {next(numbers)}"
            else:
                rows.append(row)
                continue
            goes_on = code.endswith("\\")
            magics[placeholder] = code.lstrip()
            indent = row[: len(row) - len(row.lstrip())] if code else ""
            rows.append(f"{indent}{placeholder}{row[len(code) :]}")
        yield replace(cell, plain="".join(rows), magics=magics)


def _call(magic: str) -> str:
    names = dict.fromkeys(name for name in _NAME.findall(magic) if not keyword.iskeyword(name))
    return f"get_ipython({', '.join(names)})"


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_open(text: str) -> bool:
    """Tell whether what follows ``text`` belongs to its last statement."""
    try:
        list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError:
        return True
    except SyntaxError:
        return False
    return text.endswith("\\\n")


def _written(text: str, old: str, ascii_only: bool) -> str:
    """Return ``text`` as JSON, laid out as ``old`` is; the lines that were there before are spelled as before."""
    if not old.startswith("["):
        return json.dumps(text, ensure_ascii=ascii_only)
    literals = [old[start:end] for start, end in _elements(old, 0)]
    known = {json.loads(literal): literal for literal in literals}
    opening = _space(old, 1)
    closing = old[len(old[:-1].rstrip()) : -1]
    separator = "," + (opening if "\n" in opening or len(literals) < 2 else _space(old, _comma(old) + 1))
    lines = io.StringIO(text, newline="\n").readlines()
    spelled = (known.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines)
    return f"[{opening}{separator.join(spelled)}{closing}]"


def _comma(old: str) -> int:
    """Return where the comma behind the first element is."""
    (_, end), *_ = _elements(old, 0)
    return end + len(_space(old, end))


def _space(text: str, at: int) -> str:
    match = _WHITE_SPACE.match(text, at)
    return match[0] if match else ""


_VALUE = json.JSONDecoder().raw_decode


def _members(text: str, at: int) -> dict[str, tuple[int, int]]:
    """Return where the values of the JSON object at ``at`` start and end, by key."""
    found: dict[str, tuple[int, int]] = {}
    while text[at] != "}":
        at += 1 + len(_space(text, at + 1))
        if text[at] == "}":
            break
        key, at = _VALUE(text, at)
        at += len(_space(text, at)) + 1
        at += len(_space(text, at))
        found[key] = at, _VALUE(text, at)[1]
        at = found[key][1]
        at += len(_space(text, at))
    return found


def _elements(text: str, at: int) -> list[tuple[int, int]]:
    """Return where the elements of the JSON array at ``at`` start and end."""
    found: list[tuple[int, int]] = []
    while text[at] != "]":
        at += 1 + len(_space(text, at + 1))
        if text[at] == "]":
            break
        found.append((at, _VALUE(text, at)[1]))
        at = found[-1][1]
        at += len(_space(text, at))
    return found


def in_cells(finding: Finding, notebooks: Mapping[Path, Notebook]) -> Finding:
    """Return ``finding`` with all its places by cell; ``notebooks`` are those that it may name, by file."""
    own = _named(finding.filename, notebooks)
    if not notebooks:
        return finding
    edits = finding.fix.edits if finding.fix else ()
    homes = [(edit, _named(edit.filename, notebooks) if edit.filename else own) for edit in edits]
    fix = finding.fix and replace(
        finding.fix,
        message=_retold(finding.fix.message, own, notebooks),
        edits=tuple(home.edit(edit) if home else edit for edit, home in homes),
    )
    told = replace(
        finding,
        message=_retold(finding.message, own, notebooks),
        fix=fix,
        related=tuple(_related(related, own, notebooks) for related in finding.related),
    )
    if own is None:
        return told
    cell, start = own.locate(finding.start)
    last, end = own.locate(finding.end)
    return replace(told, cell=cell, start=start, end=end if last == cell else start)


def _related(related: Related, own: Notebook | None, notebooks: Mapping[Path, Notebook]) -> Related:
    told = replace(related, message=_retold(related.message, own, notebooks))
    home = _named(related.filename, notebooks)
    if home is None:
        return told
    cell, start = home.locate(related.start)
    last, end = home.locate(related.end)
    return replace(told, filename=home.filename, cell=cell, start=start, end=end if last == cell else start)


def _retold(message: str, own: Notebook | None, notebooks: Mapping[Path, Notebook]) -> str:
    """Return ``message`` with the rows that it names as rows of cells."""

    def by_cell(match: re.Match[str]) -> str:
        home = _named(match["file"] or match["other"], notebooks) if match["file"] or match["of"] else own
        if home is None or not home.cells:
            return match[0]
        if match["file"]:
            cell, place = home.locate(Position(int(match["there"]), 1))
            ways = {":": f":cell {cell}:{place.row}", ", row ": f", row {place.row} of cell {cell}"}
            return match["file"].removesuffix(".py") + ways[match["between"]]
        numbers = [int(number) for number in (match["here"], match["second"]) if number]
        places = [home.locate(Position(number, 1)) for number in numbers]
        word = match["word"].removesuffix("s")
        told = " and ".join(f"{word} {place.row} of cell {cell}" for cell, place in places)
        return told + (match["of"] or "").removesuffix(".py")

    return _PLACE.sub(by_cell, message).replace(f"{NOTEBOOK_SUFFIX}.py", NOTEBOOK_SUFFIX)


def _named(name: str, notebooks: Mapping[Path, Notebook]) -> Notebook | None:
    """Return the notebook that messages call ``name``, by its own name or the one that the program has for it."""
    name = name.removesuffix(".py")
    if not name.endswith(NOTEBOOK_SUFFIX):
        return None
    found = (notebook for path, notebook in notebooks.items() if name in (notebook.filename, str(path), path.name))
    return next(found, None)
