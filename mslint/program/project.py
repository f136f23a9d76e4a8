"""The files of a training program seen together: who imports whom, what a name of one file means in another."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mslint.program.bodies import Bodies
from mslint.program.facts import ClassFacts, FileFacts, Names, read_facts, read_names
from mslint.program.following.syntax import only_defines
from mslint.program.grounds import Fact, Grounds
from mslint.program.listing import Listing, list_files
from mslint.program.trees import Trees
from mslint.semantics.api import canonical, star_names
from mslint.source.text import Unreadable, read

if TYPE_CHECKING:
    from mslint.program.calls import CallGraph, Function

Answer = TypeVar("Answer")
Question = TypeVar("Question")

_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_DEEPEST = 6
"""So many files are asked for what a name means that one takes from another."""
_MOST_MEMBERS = 5000
_MOST_LISTED = 50_000
_MOST_READ = 4_000_000
"""So many characters of text are kept at hand: what is asked of a file is asked several times in a row."""


class Program:
    """The program that a set of files belongs to.

    ``files`` are the files being checked; the rest of their project is read when a question needs it. Reading is lazy and
    never fails: a file that cannot be read or parsed has no facts. ``texts`` holds the files whose text is not the one on
    disk: rewritten already, or still open in an editor.

    What an answer rests on is noted, for it to be kept from one run to the next (see ``noting``).
    """

    def __init__(self, files: Sequence[Path], texts: Mapping[Path, str] | None = None) -> None:
        self.files = [Path(os.path.abspath(file)) for file in files]
        self._new_texts = dict(texts or {})
        self._trees = Trees()
        self._facts: dict[Path, FileFacts] = {}
        self._names: dict[Path, Names] = {}
        self._modules: dict[tuple[Path, str], tuple[Path | None, bool]] = {}
        self._meant: dict[tuple[Path, str], tuple[str | None, Grounds]] = {}
        self._lineages: dict[str, tuple[tuple[str, ...], Grounds]] = {}
        self._roots: dict[Path, Path] = {}
        self._texts: dict[Path, bytes] = {}
        self._read: dict[Path, str] = {}
        self._size_read = 0
        self._imports: dict[Path, tuple[str, ...]] = {}
        self._all_imports_known = False
        self._written: dict[Path, frozenset[str]] = {}
        self._bodies: dict[Path, Bodies] = {}
        self._known: dict[Fact, tuple[object, bool]] = {}
        self._remembered: dict[object, tuple[object, Grounds]] = {}
        self._grounds = Grounds()
        self._digests: dict[Path, str | None] = {}
        self.steady = True
        """Whether no file was seen to change while it was being read."""

    def remember(self, key: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to the question ``key`` about this program, computed once.

        Whoever is given it rests on what it rests on: an answer that goes on asking, and keeps what it is told, must keep
        that by way of this method, too.
        """
        answer: Answer = self.answer(self._remembered, key, compute)  # type: ignore[assignment]
        return answer

    def answer(
        self, known: dict[Question, tuple[Answer, Grounds]], key: Question, compute: Callable[[], Answer]
    ) -> Answer:
        """Return the answer to the question ``key``, from ``known`` if it is there, else computed and kept there."""
        if key in known:
            self._grounds.others.add(known[key][1])
        else:
            known[key] = self.noting(compute)
        return known[key][0]

    def noting(self, compute: Callable[[], Answer]) -> tuple[Answer, Grounds]:
        """Return an answer and what it rests on."""
        outer, self._grounds = self._grounds, Grounds()
        try:
            return compute(), self._grounds
        finally:
            outer.others.add(self._grounds)
            self._grounds = outer

    def _fact(self, kind: str, subject: object, compute: Callable[[], Answer]) -> Answer:
        """Return the answer to a question that can be asked again in each run: what it rests on does not matter then."""
        fact = (kind, str(subject))
        self._grounds.facts.add(fact)
        known = self._known.get(fact)
        if known is None:
            outer, self._grounds = self._grounds, Grounds()
            try:
                answer = compute()
            finally:
                inner, self._grounds = self._grounds, outer
            known = self._known[fact] = (answer, inner.certain)
        self._grounds.closed &= known[1]
        return known[0]  # type: ignore[return-value]

    def value(self, fact: Fact) -> object:
        """Return the answer to ``fact``, without the rows in it, for it to be compared with that of another program."""
        kind, _, words = fact[0].partition(" ")
        return _without_rows(_QUICK[kind](self, Path(fact[1]), words))

    def _code_of(self, path: Path) -> str:
        tree = self._tree_of(path)
        return "" if tree is None else ast.dump(tree)

    def digest(self, path: Path) -> str | None:
        """Return what the content of ``path`` is known by, None if it cannot be read."""
        if path not in self._digests:
            new = self._new_texts.get(path)
            self.note_content(path, _bytes(path) if new is None else new.encode("utf-8", "surrogatepass"))
        return self._digests[path]

    def note_content(self, path: Path, data: bytes | None) -> None:
        """Hold on to what was read, or find that it is no longer what was read before."""
        digest = None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()
        if self._digests.setdefault(path, digest) != digest:
            self.steady = False

    def with_texts(self, texts: Mapping[Path, str]) -> Program:
        """Return this program with new text in some of its files; what is known of the other files is kept."""
        program = Program(self.files, {**self._new_texts, **texts})
        program._roots, program._modules = self._roots, self._modules
        program._facts = _without(self._facts, texts)
        program._names = _without(self._names, texts)
        program._trees = self._trees.without(texts)
        program._texts = _without(self._texts, texts)
        program._written = _without(self._written, texts)
        program._imports = _without(self._imports, texts)
        if program._texts:
            program._texts.update((path, text.encode()) for path, text in texts.items())
        changed = {str(path) for path in texts}
        kept = {"imported"}
        if all(program.imported(path) == self.imported(path) for path in texts):
            kept, changed = {"imported", "importers", "reachable", "users", "neighbourhood"}, set()
        known = {fact: answer for fact, answer in self._known.items() if fact[0] in kept and fact[1] not in changed}
        program._known = {**known, **program._known}
        return program

    def text(self, path: Path) -> str | None:
        """Return the text of ``path``, or None if it cannot be read."""
        self._rest_on("content", path)
        return self._text_of(path)

    def _text_of(self, path: Path) -> str | None:
        if path in self._new_texts:
            return self._new_texts[path]
        if path not in self._read:
            try:
                source = read(path)
            except Unreadable:
                return None
            self.note_content(path, source.encode(source.text))
            self._size_read += len(source.text)
            if self._size_read > _MOST_READ:
                self._read.clear()
                self._size_read = len(source.text)
            self._read[path] = source.text
        return self._read[path]

    def tree(self, path: Path) -> ast.Module | None:
        """Return the syntax tree of ``path``, or None if it cannot be read or parsed.

        What is concluded from it must stay right if comments come and its rows move, or name the file (see ``Grounds``).
        """
        self._rest_on("code", path)
        return self._tree_of(path)

    def _tree_of(self, path: Path) -> ast.Module | None:
        return self._trees.tree(path, self._text_of)

    def level(self, path: Path) -> ast.Module | None:
        """Return the syntax tree of ``path`` to one who says by ``enters`` which functions he looks into."""
        self._rest_on("level", path)
        return self._tree_of(path)

    def enters(self, path: Path, node: ast.AST) -> None:
        """Let the answer that is being worked out rest on the function that ``node`` of ``path`` is, or stands in."""
        if path not in self._bodies:
            tree = self._tree_of(path)
            self._bodies[path] = Bodies(tree or ast.Module([], []))
        name = self._bodies[path].name_at(getattr(node, "lineno", 0))
        if name is not None:
            self._rest_on(f"body {name}", path)

    def parses(self, path: Path, text: str) -> bool:
        """Tell whether ``text`` is what the program has for ``path`` and Python can parse it."""
        return self.tree(path) is not None and self.text(path) == text

    def facts(self, path: Path) -> FileFacts:
        """Return what ``path`` says; nothing if it cannot be read."""
        self._rest_on("facts", path)
        return self._facts_of(path)

    def _facts_of(self, path: Path) -> FileFacts:
        found = self._facts.get(path)
        if found is None:
            tree = self._tree_of(path)
            found = FileFacts() if tree is None else read_facts(tree)
            self._facts[path] = found
        return found

    def _names_of(self, path: Path) -> Names:
        found = self._names.get(path)
        if found is None:
            tree = self._tree_of(path)
            found = self._names[path] = Names() if tree is None else read_names(tree)
        return found

    def _rest_on(self, kind: str, path: Path) -> None:
        self._grounds.facts.add((kind, str(path)))

    def says(self, path: Path, words: re.Pattern[str]) -> bool:
        """Tell whether ``words``, a pattern without flags, occur in ``path``."""
        return self._fact(f"says {words.pattern}", path, lambda: bool(words.search(self._text_of(path) or "")))

    def only_defines(self, path: Path) -> bool:
        """Tell whether ``path``, when it is imported, does no more than give names to things."""

        def read() -> bool:
            tree = self._tree_of(path)
            return tree is not None and all(map(only_defines, tree.body))

        return self._fact("only_defines", path, read)

    def uses_any(self, path: Path, names: Sequence[str]) -> bool:
        """Tell whether ``path`` reads anything whose last name is one of ``names``."""

        def read() -> bool:
            text = self._text_of(path) or ""  # most files need not be read any further
            said = any(name in text for name in names)
            return said and any(use.rpartition(".")[2] in names for use in self._facts_of(path).uses)

        return self._fact(f"uses {' '.join(names)}", path, read)

    def is_guarded(self, path: Path) -> bool:
        """Tell whether ``path`` asks for its ``__name__``: some of it runs only where it is started itself."""

        def read() -> bool:
            return "__name__" in (self._text_of(path) or "") and "__name__" in self._facts_of(path).uses

        return self._fact("guarded", path, read)

    def functions(self, path: Path) -> tuple[Function, ...]:
        """Return the functions of ``path`` with the calls in them; none if it cannot be read."""
        from mslint.program.calls import read_functions  # brings networkx along

        return self._fact("functions", path, lambda: read_functions(path, self._tree_of(path)))

    def imports(self, path: Path) -> tuple[str, ...]:
        """Return the dotted target of every import of ``path``, star imports included, in order of the alphabet."""
        return self._fact("imports", path, lambda: self._imports_of(path))

    def _imports_of(self, path: Path) -> tuple[str, ...]:
        if path not in self._imports:
            self._imports[path] = tuple(sorted(set(self._names_of(path).all_imports())))
        return self._imports[path]

    def know_imports(self, imports: Mapping[Path, tuple[str, ...]]) -> None:
        """Take over what files import, as an earlier run found it in the same content, so that they need not be parsed."""
        self._imports = {**imports, **self._imports}
        self._all_imports_known = self._imports.keys() >= set(self.members)

    def root(self, path: Path) -> Path:
        """Return the top folder of the project that ``path`` lies in.

        The nearest folder above that has a project's marks (a repository, a pyproject.toml ...), else the folder that holds
        the file's outermost package; further up if that lies in the project of a file being checked.
        """
        found = self._roots.get(path.parent)
        if found is None:
            found = next((top for top in self._tops if top in path.parents), None) or _marked_root(path.parent)
            self._roots[path.parent] = found
        return found

    @cached_property
    def _tops(self) -> list[Path]:
        """The roots of the checked files, outermost first."""
        return sorted({_marked_root(file.parent) for file in self.files}, key=lambda root: len(root.parts))

    @cached_property
    def listing(self) -> Listing:
        """The Python files of the projects that the checked files belong to, as they are found once for all questions."""
        return list_files(map(str, self._tops), _MOST_LISTED)

    @cached_property
    def members(self) -> tuple[Path, ...]:
        """The files that are asked for who imports what: those of the listing, or of too many the checked ones."""
        listed = self.listing.files if len(self.listing.files) <= _MOST_MEMBERS else ()
        return tuple(sorted({*self.files, *map(Path, listed)}))

    @cached_property
    def layout(self) -> str:
        """A digest of which files there are, and where their projects begin: what an import means rests on it."""
        listing = self.listing
        # What is hidden has no name that could be imported.
        closed = [folder for folder in listing.closed if not os.path.basename(folder).startswith(".")]
        parts = (map(str, self._tops), listing.files, closed, map(str, self.members))
        text = "\n\n".join("\n".join(sorted(part)) for part in parts)
        return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()

    def module(self, path: Path, target: str) -> Path | None:
        """Return the file of the project that the module ``target``, imported in ``path``, is read from.

        ``target`` is dotted; leading dots are relative to the package of ``path``. Scripts are run from their own folder or
        from a folder above, so each folder from the file's own up to the project's root is tried as a start.
        """
        key = (path.parent, target)
        found = self._modules.get(key)
        if found is None:
            found = self._modules[key] = self._find_module(path, target)
        if found[1]:
            self._grounds.closed = False
        return found[0]

    def _find_module(self, path: Path, target: str) -> tuple[Path | None, bool]:
        """Return the module's file, and whether it was looked for where nobody lists the files."""
        beyond = False
        of_python = self._of_python(target)
        for start in self._starts(path, target):
            if of_python and self._exists(os.path.join(start, "__init__.py"))[0]:
                # In a package, `import random` is Python's own, whatever stands beside it.
                continue
            place = os.path.join(start, *target.lstrip(".").split("."))
            package = os.path.join(place, "__init__.py")
            # What has no name of its own is a package: `from . import name`.
            for candidate in (f"{place}.py", package) if target.strip(".") else (package,):
                there, unlisted = self._exists(candidate)
                beyond |= unlisted
                if there:
                    return Path(candidate), beyond
        return None, beyond

    def _starts(self, path: Path, target: str) -> Iterator[str]:
        """Yield the folders that ``target``, imported in ``path``, may be found from."""
        level = len(target) - len(target.lstrip("."))
        parents = [str(folder) for folder in path.parents]
        if level:
            yield from parents[level - 1 : level]
            return
        root = str(self.root(path))
        if root in parents:
            yield from parents[: parents.index(root) + 1]

    def folders(self, path: Path, target: str) -> list[str]:
        """Return the folders that the import of ``target`` in ``path`` may mean where no file answers to it."""
        parts = target.lstrip(".").split(".")
        places = (os.path.join(start, *parts) for start in self._starts(path, target))
        return [place for place in places if place in self.listing.folders]

    def _of_python(self, target: str) -> bool:
        return target.partition(".")[0] in sys.stdlib_module_names

    def _exists(self, name: str) -> tuple[bool, bool]:
        """Tell whether the file ``name`` exists, and whether the listing could not say so."""
        if name in self.listing.files:
            return True, False
        if self.listing.knows(name):
            return False, False
        return _is_file(name), True

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
        base, name = _split(target)
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

    def _bases(self, path: Path, name: str) -> tuple[str, ...]:
        """Return the bases of the class ``name`` of ``path``, as written; none if there is no such class."""
        self._rest_on(f"bases {name}", path)
        return self._names_of(path).bases.get(name, ())

    def _mentioning(self, word: str) -> list[Path]:
        """Return the members whose text holds ``word``: only these are worth parsing for a question about it."""
        return self._fact("mentioning", word, lambda: self._find_mentioning(word))

    def _find_mentioning(self, word: str) -> list[Path]:
        if not self._texts:
            for path in self.members:
                data = _bytes(path)
                self.note_content(path, data)
                self._texts[path] = data or b""
            self._texts.update((path, text.encode()) for path, text in self._new_texts.items())
        wanted = os.fsencode(word)  # a file name need not be UTF-8
        return [path for path, text in self._texts.items() if wanted in text]

    def _importing(self, path: Path, name: str) -> list[Path]:
        """Return the members with an import that may mean ``path``, called ``name`` there: only these are worth parsing."""
        home = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
        return [
            item
            for item in self._mentioning(name)
            if any(_may_mean(target, item, home) for target in self._targets(item))
        ]

    def _targets(self, path: Path) -> frozenset[str]:
        """Return the modules that rows of ``path`` import from, as written; also such as stand in a longer text."""
        found = self._written.get(path)
        if found is None:
            rows = (row.groups() for row in _IMPORT.finditer(self._texts[path]))
            named = (
                one or part.split()[0] for one, many in rows for part in (many or b"-").split(b",") if part.strip()
            )
            found = frozenset(target.decode() for target in named)
            self._written[path] = found
        return found

    def subclasses(self, reference: str) -> list[str]:
        """Return the project's classes that descend from the class ``reference``."""
        found: list[str] = []
        queue = [reference]
        while queue:
            parent = queue.pop()
            for path in self._mentioning(parent.rpartition(":")[2]):
                for name, facts in self.facts(path).classes.items():
                    child = f"{path}:{name}"
                    if child not in found and any(self.dotted_in(path, base) == parent for base in facts.bases):
                        found.append(child)
                        queue.append(child)
        return found

    def imported(self, path: Path) -> frozenset[Path]:
        """Return the project files that ``path`` imports directly."""
        return self._fact("imported", path, lambda: frozenset(self.found_by(path, self._imports_of(path))))

    def found_by(self, path: Path, targets: Iterable[str]) -> Iterator[Path]:
        """Yield the project files that imports of ``targets`` in ``path`` read."""
        for target in targets:
            if target.partition(".")[0] == "mindspore":
                continue
            for candidate in (target, _split(target)[0]):
                found = self.module(path, candidate) if candidate else None
                if found and found != path:
                    yield found

    def importers(self, path: Path) -> frozenset[Path]:
        """Return the project files that import ``path`` directly."""
        return self._fact("importers", path, lambda: self._find_importers(path))

    def _find_importers(self, path: Path) -> frozenset[Path]:
        if self._all_imports_known:
            return self._importers_of_all.get(path, frozenset())
        name = path.parent.name if path.name == "__init__.py" else path.stem
        # Inside its own package an __init__.py is imported as `from . import ...`, without its name.
        near = [item for item in self.members if item.parent == path.parent] if path.name == "__init__.py" else []
        return frozenset(item for item in (*self._importing(path, name), *near) if path in self.imported(item))

    @cached_property
    def _importers_of_all(self) -> dict[Path, frozenset[Path]]:
        found: dict[Path, set[Path]] = {}
        for item in self.members:
            for path in self.imported(item):
                found.setdefault(path, set()).add(item)
        return {path: frozenset(items) for path, items in found.items()}

    def reachable(self, path: Path) -> frozenset[Path]:
        """Return the project files that ``path`` imports, directly or not, with itself."""
        return self._fact("reachable", path, lambda: _closure(path, self.imported))

    def users(self, path: Path) -> frozenset[Path]:
        """Return the project files that import ``path``, directly or not, with itself."""
        return self._fact("users", path, lambda: _closure(path, self.importers))

    def call_graph(self, path: Path) -> CallGraph:
        """Return who calls whom among the files that can run together with ``path``."""
        from mslint.program.calls import CallGraph  # brings networkx along

        files = tuple(sorted(self.neighbourhood(path)))
        return self.remember((Program.call_graph, files), lambda: CallGraph(self, files))

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
                own = any(self.module(path, candidate) for candidate in (target, _split(target)[0]))
            if not own and parts[0] not in sys.stdlib_module_names:
                yield parts[0] or target


def _split(target: str) -> tuple[str, str]:
    """Split a dotted import target into the module it is taken from and its last name; leading dots stay in front."""
    head, dot, name = target.rpartition(".")
    return (head if head.strip(".") else head + dot), name


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


def _marked_root(folder: Path) -> Path:
    package = folder
    while (package / "__init__.py").is_file() and package.parent != package:
        package = package.parent
    above = (package, *package.parents)
    return next((place for place in above if any((place / mark).exists() for mark in _MARKERS)), package)


def _without(known: Mapping[Path, Answer], paths: Container[Path]) -> dict[Path, Answer]:
    return {path: item for path, item in known.items() if path not in paths}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if _is_file(path) else None
    except OSError:
        return None


_is_file = os.path.isfile
"""Asked before anything is opened: a named pipe would be waited for."""


def _closure(start: Path, step: Callable[[Path], frozenset[Path]]) -> frozenset[Path]:
    seen = {start}
    queue = [start]
    while queue:
        for item in step(queue.pop()):
            if item not in seen:
                seen.add(item)
                queue.append(item)
    return frozenset(seen)


_QUICK: dict[str, Callable[[Program, Path, str], object]] = {
    "bases": lambda program, path, name: program._bases(path, name),
    "body": lambda program, path, name: Bodies(program._tree_of(path) or ast.Module([], [])).code(name),
    "code": lambda program, path, _: program._code_of(path),
    "content": lambda program, path, _: program.digest(path),
    "facts": lambda program, path, _: program._facts_of(path),
    "functions": lambda program, path, _: [
        (one, [name for name, _ in one.mentions]) for one in program.functions(path)
    ],
    "guarded": lambda program, path, _: program.is_guarded(path),
    "imported": lambda program, path, _: program.imported(path),
    "importers": lambda program, path, _: program.importers(path),
    "imports": lambda program, path, _: program.imports(path),
    "level": lambda program, path, _: Bodies(program._tree_of(path) or ast.Module([], [])).level(),
    "mentioning": lambda program, word, _: program._mentioning(str(word)),
    "name": lambda program, path, name: program._names_of(path).meaning(name),
    "neighbourhood": lambda program, path, _: program.neighbourhood(path),
    "only_defines": lambda program, path, _: program.only_defines(path),
    "reachable": lambda program, path, _: program.reachable(path),
    "says": lambda program, path, pattern: program.says(path, re.compile(pattern)),
    "users": lambda program, path, _: program.users(path),
    "uses": lambda program, path, names: program.uses_any(path, names.split(" ")),
}
"""How each kind of fact is asked for."""


def _without_rows(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_rows(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_rows(item) for item in value]
    if is_dataclass(value):
        return [
            _without_rows(getattr(value, item.name)) for item in fields(value) if item.name not in ("row", "mentions")
        ]
    return value
