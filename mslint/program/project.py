"""The files of a training program seen together: who imports whom, what a name of one file means in another."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.answers import Answer
from mslint.program.bodies import in_order
from mslint.program.closure import closure
from mslint.program.facts import ClassFacts
from mslint.program.grounds import Fact, Grounds, Notes
from mslint.program.modules import Modules, split
from mslint.program.texts import bytes_of
from mslint.program.trees import Trees
from mslint.semantics.api import canonical, star_names

if TYPE_CHECKING:
    from mslint.program.calls import CallGraph, Function

_WORD = re.compile(rb"[\w\x80-\xff]+")
_BLANK = rb"(?:[ \t\f]|\\\r?\n)"
_IMPORT = re.compile(
    rb"""[\n\r;:\xbf] %(blank)s*
    (?: from \b ( (?:[\w.\x80-\xff]|%(blank)s)*? ) \b import \b
        (?: %(blank)s* \( (?:[^)#]|\#[^\r\n]*)* | (?:[^\r\n\\;#]|\\\r?\n)* )
    | import \b ( (?:[\w.,\x80-\xff]|%(blank)s)+ ) )"""
    % {b"blank": _BLANK},
    re.VERBOSE,
)
"""What imports, also such as stands in a longer text, with the line end, colon or mark in front of it: the module and the
names taken from it, or the modules."""
_AS = re.compile(rb"%(blank)s as %(blank)s" % {b"blank": _BLANK}, re.VERBOSE)
_DEEPEST = 6
"""So many files are asked for what a name means that one takes from another."""
_MOST_FUNCTIONS = 100_000
"""Call graphs of so many functions are kept."""


class Program(Modules):
    """The program that a set of files belongs to.

    ``files`` are the files being checked; the rest of their project is read when a question needs it. ``texts`` holds the
    files whose text is not the one on disk: rewritten already, or still open in an editor.

    What an answer rests on is noted, for it to be kept from one run to the next (see ``noting``).
    """

    def __init__(self, files: Sequence[Path], texts: Mapping[Path, str] | None = None) -> None:
        super().__init__(files, texts)
        self._meant: dict[tuple[Path, str], tuple[str | None, Grounds]] = {}
        self._lineages: dict[str, tuple[tuple[str, ...], Grounds]] = {}
        self._import_rows: dict[Path, tuple[tuple[str, ...], tuple[bytes, ...]]] = {}

    def together(self, paths: Iterable[Path]) -> Iterator[list[Path]]:
        """Yield ``paths``, those in one list that imports connect.

        What was worked out for others is let go: it is worked out anew where it is asked for again, and is the same then.
        """
        left = dict.fromkeys(paths)
        while left:
            company = closure(next(iter(left)), lambda path: self.imported(path) | self.importers(path))
            yield [path for path in left if path in company]
            left = {path: None for path in left if path not in company}
            self._trees = Trees()
            for known in (
                self._bodies, self._facts, self._known, self._lineages, self._meant, self._modules, self._names,
                self._recent, self._remembered, self._same,
            ):  # fmt: skip
                known.clear()
            self._notes = Notes()  # nobody asks what all these questions together rest on

    def value(self, fact: Fact) -> object:
        """Return the answer to ``fact``, without the rows in it, for it to be compared with that of another program."""
        kind, _, words = fact[0].partition(" ")
        return _without_rows(_QUICK[kind](self, Path(fact[1]), words))

    def with_texts(self, texts: Mapping[Path, str]) -> Program:
        """Return this program with new text in some of its files; what is known of the other files is kept."""
        program = Program(self.files, {**self._new_texts, **texts})
        program._roots, program._modules = self._roots, self._modules
        program._facts = _without(self._facts, texts)
        program._names = _without(self._names, texts)
        program._trees = self._trees.without(texts)
        program._import_rows = _without(self._import_rows, texts)
        program._imports = _without(self._imports, texts)
        changed = {str(path) for path in texts}
        kept = {"imported"}
        if all(program.imported(path) == self.imported(path) for path in texts):
            kept, changed = {"imported", "importers", "reachable", "users", "neighbourhood"}, set()
        known = {fact: answer for fact, answer in self._known.items() if fact[0] in kept and fact[1] not in changed}
        program._known = {**known, **program._known}
        return program

    def know_imports(self, imports: Mapping[Path, tuple[str, ...]]) -> None:
        """Take over what files import, as an earlier run found it in the same content, so that they need not be parsed."""
        self._imports = {**imports, **self._imports}

    def all_imports(self) -> list[tuple[str, ...]]:
        """Return what each of the members imports, as written; of a large project, the trees would be too many to keep."""
        found = []
        for path in self.members:
            found.append(self.imports(path))
            self._trees.let_go(path)
        return found

    def canonical(self, path: Path, target: str, depth: int = _DEEPEST) -> str:
        """Return what the imported ``target`` is, as seen from ``path``.

        A MindSpore API comes back under its public name, a module of the project as ``/path/of/file.py``, a name defined in
        it as ``/path/of/file.py:Name``, a name that it passes on as whatever it is there; anything else unchanged.
        """
        if target == "mindspore" or target.startswith("mindspore."):
            return canonical(target)
        own = self.module(path, target)
        if own:
            return str(own)
        base, name = split(target)
        home = self.module(path, base) if base and depth else None
        return (self.name_in(home, name, depth - 1) if home else None) or target

    def attribute(self, path: Path, base: str, name: str, depth: int = _DEEPEST) -> str:
        """Return what ``.name`` of ``base`` is, where ``base`` is an answer of this class."""
        if base.endswith(".py"):
            return self.name_in(Path(base), name, depth) or f"{base}:{name}"
        return f"{base}.{name}" if ".py:" in base else self.canonical(path, f"{base}.{name}", depth)

    def name_in(self, path: Path, name: str, depth: int = _DEEPEST) -> str | None:
        """Return what the module-level ``name`` of ``path`` is (see ``canonical``), or None if it has no such name."""
        self._rest_on(f"name {name}", path)
        names = self._names_of(path)
        if depth == 0:
            return None
        if name in names.imports:
            return self.canonical(path, names.imports[name], depth - 1)
        if name in names.aliases:
            return self.dotted_in(path, names.aliases[name], depth - 1)
        if name in names.definitions:
            return f"{path}:{name}"
        return next(
            (found for base in reversed(names.stars) if (found := self.from_star(path, base, name, depth - 1))), None
        )

    def dotted_in(self, path: Path, written: str, depth: int = _DEEPEST) -> str | None:
        """Return what ``a.b.c``, written at module level of ``path``, is."""
        if depth < _DEEPEST:
            return self._find_meaning(path, written, depth)
        return self.answer(self._meant, (path, written), lambda: self._find_meaning(path, written, depth))

    def may_mean(self, path: Path, api: re.Pattern[str]) -> tuple[str, ...]:
        """Return the names read in ``path`` that may mean something of MindSpore which ``api`` matches; sorted.

        ``api`` is a pattern without flags. What a name means that other files of the project pass on is not asked here.
        """

        def read() -> tuple[str, ...]:
            return tuple(use for use in self._facts_of(path).uses if self._may_mean(path, use, api))

        return self._fact(f"meant {api.pattern}", path, read)

    def _may_mean(self, path: Path, use: str, api: re.Pattern[str]) -> bool:
        names = self._names_of(path)
        head, *rest = use.split(".")
        target = names.imports.get(head)
        if target is None:
            return head in names.aliases or (head not in names.definitions and bool(names.stars))
        if target.partition(".")[0] != "mindspore":
            return True
        return api.match(reduce(lambda base, part: canonical(f"{base}.{part}"), rest, canonical(target))) is not None

    def _find_meaning(self, path: Path, written: str, depth: int) -> str | None:
        head, *rest = written.split(".")
        base = self.name_in(path, head, depth)
        if base is None:
            return None
        for part in rest:
            base = self.attribute(path, base, part, depth)
        return base

    def from_star(self, path: Path, base: str, name: str, depth: int = _DEEPEST) -> str | None:
        """Return what ``from base import *`` in ``path`` makes of ``name``, or None where that cannot be told."""
        if base == "mindspore" or base.startswith("mindspore."):
            return canonical(f"{base}.{name}") if name in star_names(base) else None
        home = self.module(path, base)
        return self.name_in(home, name, depth) if home and not name.startswith("_") else None

    def class_facts(self, reference: str) -> tuple[Path, ClassFacts] | None:
        """Return the file and facts of a class given as ``/path/of/file.py:Name``."""
        path, _, name = reference.rpartition(":")
        found = self.facts(Path(path)).classes.get(name) if path.endswith(".py") else None
        return (Path(path), found) if found else None

    def lineage(self, reference: str) -> tuple[str, ...]:
        """Return a class and its bases, nearest first, followed through the project; the last ones may be MindSpore's."""
        return self.answer(self._lineages, reference, lambda: tuple(self._find_lineage(reference)))

    def _find_lineage(self, reference: str) -> list[str]:
        order: list[str] = []
        queue = [reference]
        while queue:
            current = queue.pop(0)
            if current in order:
                continue
            order.append(current)
            home, _, name = current.rpartition(":")
            path = Path(home)
            for written in self._bases(path, name) if home.endswith(".py") else ():
                if (base := self.dotted_in(path, written)) is not None:
                    queue.append(base)
        return order

    def _importing(self, path: Path, name: str) -> list[Path]:
        """Return the members with an import that may mean ``path``, called ``name`` there: only these are worth parsing."""
        home = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
        return [
            item
            for item in self._by_imported_word.get(os.fsencode(name), ())
            if any(_may_mean(target, item, home) for target in self._import_rows_of(item)[0])
        ]

    @cached_property
    def _by_imported_word(self) -> dict[bytes, list[Path]]:
        """The members by each word in a row that imports."""
        found: dict[bytes, list[Path]] = {}
        for path in self.members:
            for word in self._import_rows_of(path)[1]:
                found.setdefault(word, []).append(path)
        return found

    @cached_property
    def _importing_folders(self) -> list[Path]:
        """The members that import from a folder around them without its name, as `from .. import` does."""
        return [path for path in self.members if any(not target.strip(".") for target in self._import_rows_of(path)[0])]

    def _import_rows_of(self, path: Path) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
        if path not in self._import_rows:
            new = self._new_texts.get(path)
            data = bytes_of(path) if new is None else new.encode()
            if new is None:
                self.note_content(path, data)
            self._import_rows[path] = _import_rows(data or b"")
        return self._import_rows[path]

    def subclasses(self, reference: str) -> list[str]:
        """Return the project's classes that descend from the class ``reference``."""
        users = sorted(self.users(Path(reference.rpartition(":")[0])))
        found: list[str] = []
        queue = [reference]
        while queue:
            parent = queue.pop()
            mention = re.compile(rf"\b{parent.rpartition(':')[2]}\b")
            for path in users:
                for name, facts in self.facts(path).classes.items() if self.says(path, mention) else ():
                    child = f"{path}:{name}"
                    if child not in found and any(self.dotted_in(path, base) == parent for base in facts.bases):
                        found.append(child)
                        queue.append(child)
        return found

    def imported(self, path: Path) -> frozenset[Path]:
        """Return the project files that ``path`` imports directly."""
        return self._fact("imported", path, lambda: frozenset(self.found_by(path, self._imports_of(path))))

    def importers(self, path: Path) -> frozenset[Path]:
        """Return the project files that import ``path`` directly."""
        return self._fact("importers", path, lambda: self._find_importers(path))

    def _find_importers(self, path: Path) -> frozenset[Path]:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        found = self._importing(path, name)
        if path.name == "__init__.py":
            found += [item for item in self._importing_folders if path.parent in item.parents]
        return frozenset(item for item in found if path in self.imported(item))

    def reachable(self, path: Path) -> frozenset[Path]:
        """Return the project files that ``path`` imports, directly or not, with itself."""
        return self._fact("reachable", path, lambda: closure(path, self.imported))

    def users(self, path: Path) -> frozenset[Path]:
        """Return the project files that import ``path``, directly or not, with itself."""
        return self._fact("users", path, lambda: closure(path, self.importers))

    def call_graph(self, path: Path) -> CallGraph:
        """Return who calls whom among the files that can run together with ``path``."""
        from mslint.program.calls import CallGraph

        files = tuple(sorted(self.neighbourhood(path)))
        return self.recall(
            Program.call_graph,
            files,
            lambda: CallGraph(self, files),
            _MOST_FUNCTIONS,
            lambda graph: len(graph.functions),
        )

    def mode(self, path: Path) -> str:
        """Return the mode that the code of ``path`` runs in: ``graph``, ``pynative`` or ``unknown``.

        It is read off the ``set_context(mode=...)`` calls of everything that the scripts load which use ``path``. MindSpore
        2 starts in PyNative mode, so a script that never sets one is ``pynative``; scripts that differ make it ``unknown``.
        """
        users = self.users(path)
        scripts = [user for user in users if self.is_script(user)] or sorted(users)
        modes = {self._mode_of_script(script) for script in scripts}
        return modes.pop() if len(modes) == 1 else "unknown"

    def _mode_of_script(self, script: Path) -> str:
        written = {mode.rpartition(".")[2] for file in self.reachable(script) for mode in self.facts(file).modes}
        if written <= {"PYNATIVE_MODE", "1"}:
            return "pynative"
        return "graph" if written <= {"GRAPH_MODE", "0"} else "unknown"

    def is_script(self, path: Path) -> bool:
        """Tell whether a person starts ``path``: nothing imports it, or it has a ``__main__`` guard."""
        return not self.importers(path) or self.is_guarded(path)

    def neighbourhood(self, path: Path) -> frozenset[Path]:
        """Return every project file that can run together with ``path``: all its users and all that those import."""
        return self._fact(
            "neighbourhood", path, lambda: frozenset().union(*(self.reachable(user) for user in self.users(path)))
        )

    def foreign_imports(self, path: Path) -> Iterator[str]:
        """Yield the top-level packages that ``path`` imports from outside the project, Python's own library apart."""
        for target in self.facts(path).all_imports():
            parts = target.split(".")
            own = any(self.module(path, ".".join(parts[: index + 1])) for index in range(len(parts)))
            if not parts[0]:
                own = any(self.module(path, candidate) for candidate in (target, split(target)[0]))
            if not own and parts[0] not in sys.stdlib_module_names:
                yield parts[0] or target


def _import_rows(text: bytes) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """Return the modules that ``text`` imports from, as written, and all words where it imports."""
    if not text.isascii():  # Python reads names in characters of other widths as the usual ones
        known = unicodedata.normalize("NFKC", text.decode(errors="surrogateescape"))
        text = known.encode(errors="surrogateescape")
    targets: set[bytes] = set()
    words: set[bytes] = set()
    for found in _IMPORT.finditer(b"\n" + text):
        words.update(_WORD.findall(found[0]))
        modules = [found[1]] if found[1] is not None else [_AS.split(part)[0] for part in found[2].split(b",")]
        targets.update(re.sub(_BLANK, b"", module) for module in modules)
    return tuple(map(os.fsdecode, targets)), tuple(words)


def _may_mean(target: str, user: Path, home: tuple[str, ...]) -> bool:
    """Tell whether the import of ``target`` in ``user`` may read the file ``home``, or take it from its folder."""
    name = target.lstrip(".")
    parts = tuple(name.split(".")) if name else ()
    level = len(target) - len(name)
    for wanted, ending in ((home, parts), (home[:-1], parts), (home, parts[:-1])):
        start = wanted[: len(wanted) - len(ending)]
        if wanted[len(start) :] != ending:
            continue
        folder = user.parts[: len(user.parts) - level] if level else user.parts[: len(start)]
        if folder == start:
            return True
    return False


def _without(known: Mapping[Path, Answer], paths: Container[Path]) -> dict[Path, Answer]:
    return {path: item for path, item in known.items() if path not in paths}


_QUICK: dict[str, Callable[[Program, Path, str], object]] = {
    "bases": lambda program, path, name: program._bases(path, name),
    "body": lambda program, path, name: program._bodies_of(path).code(name),
    "calling": lambda program, path, name: program.classes_calling(path, name),
    "code": lambda program, path, _: program._code_of(path),
    "content": lambda program, path, _: program.digest(path),
    "facts": lambda program, path, name: program._fact_of(path, name),
    "functions": lambda program, path, _: _laid_out([one for one in program.functions(path) if not one.is_inert]),
    "guarded": lambda program, path, _: program.is_guarded(path),
    "imported": lambda program, path, _: program.imported(path),
    "importers": lambda program, path, _: program.importers(path),
    "imports": lambda program, path, _: program.imports(path),
    "level": lambda program, path, _: program._bodies_of(path).level(),
    "meant": lambda program, path, pattern: program.may_mean(path, re.compile(pattern)),
    "name": lambda program, path, name: (
        program._names_of(path).meaning(name),
        program._bodies_of(path).unused(name),
    ),
    "neighbourhood": lambda program, path, _: program.neighbourhood(path),
    "only_defines": lambda program, path, _: program.only_defines(path),
    "places": lambda program, path, _: program._places_of(path),
    "reachable": lambda program, path, _: program.reachable(path),
    "says": lambda program, path, pattern: program.says(path, re.compile(pattern)),
    "used": lambda program, path, pattern: program.uses(path, re.compile(pattern)),
    "users": lambda program, path, _: program.users(path),
    "uses": lambda program, path, names: program.uses_any(path, names.split(" ")),
    "written": lambda program, path, _: program._written_of(path),
}
"""How each kind of fact is asked for."""


def _laid_out(functions: Sequence[Function]) -> object:
    """Return ``functions`` with what in them shares rows, whichever rows these are."""
    mentions = [[name for name, _ in one.mentions] for one in functions]
    calls = [(one.row, *(call.row for call in one.calls), *(row for _, row in one.mentions)) for one in functions]
    return functions, mentions, in_order(row for rows in calls for row in rows)


def _without_rows(value: object) -> object:
    if isinstance(value, dict):  # what comes first is told first
        return [(key, _without_rows(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [_without_rows(item) for item in value]
    if is_dataclass(value):
        return [
            _without_rows(getattr(value, item.name)) for item in fields(value) if item.name not in ("row", "mentions")
        ]
    return value
