"""The files of a program, each by itself: its text, its tree, what stands in it."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.program.answers import Answers
from mslint.program.bodies import Bodies, in_order, laid_out
from mslint.program.facts import AskedFacts, FileFacts, Names, read_facts, read_names
from mslint.program.following.syntax import only_defines
from mslint.program.trees import Trees
from mslint.source.text import Unreadable, read

if TYPE_CHECKING:
    from mslint.program.calls import Function

_OF_NAMES = ("imports", "nested_imports", "stars", "aliases", "definitions")
"""The facts that are had without the rest."""
_MOST_READ = 4_000_000
"""So many characters of text are kept at hand: what is asked of a file is asked several times in a row."""


class Texts(Answers):
    """Reads files when a question needs them, and never fails: one that cannot be read or parsed says nothing.

    ``texts`` holds the files whose text is not the one on disk: rewritten already, or still open in an editor.
    """

    def __init__(self, texts: Mapping[Path, str] | None = None) -> None:
        super().__init__()
        self._new_texts = dict(texts or {})
        self._trees = Trees()
        self._facts: dict[Path, FileFacts] = {}
        self._names: dict[Path, Names] = {}
        self._read: dict[Path, str] = {}
        self._size_read = 0
        self._imports: dict[Path, tuple[str, ...]] = {}
        self._bodies: dict[Path, Bodies] = {}
        self._digests: dict[Path, str | None] = {}
        self.steady = True
        """Whether no file was seen to change while it was being read."""

    def digest(self, path: Path) -> str | None:
        """Return what the content of ``path`` is known by, None if it cannot be read."""
        if path not in self._digests:
            new = self._new_texts.get(path)
            self.note_content(path, bytes_of(path) if new is None else new.encode("utf-8", "surrogatepass"))
        return self._digests[path]

    def note_content(self, path: Path, data: bytes | None) -> None:
        """Hold on to what was read, or find that it is no longer what was read before."""
        digest = None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()
        if self._digests.setdefault(path, digest) != digest:
            self.steady = False

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
        """Return the syntax tree of ``path`` to one who says by ``enters`` which functions he looks into.

        By ``binds`` he says which names of the file he asks for that it does not use itself (see ``Bodies.level``).
        """
        self._rest_on("level", path)
        return self._tree_of(path)

    def enters(self, path: Path, node: ast.AST) -> None:
        """Let the answer that is being worked out rest on the function that ``node`` of ``path`` is, or stands in."""
        name = self._bodies_of(path).name_at(getattr(node, "lineno", 0))
        if name is not None:
            self._rest_on(f"body {name}", path)

    def is_generator(self, path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
        """Tell one who enters the function ``node`` of ``path`` whether it is a generator."""
        return self._bodies_of(path).is_generator(node)

    def binds(self, path: Path, name: str) -> None:
        """Let the answer that is being worked out rest on what makes ``name`` a name at module level of ``path``."""
        self._rest_on(f"name {name}", path)

    def _bodies_of(self, path: Path) -> Bodies:
        if path not in self._bodies:
            self._bodies[path] = Bodies(self._tree_of(path) or ast.Module([], []), self._text_of(path) or "")
        return self._bodies[path]

    def facts(self, path: Path) -> FileFacts:
        """Return what ``path`` says; nothing if it cannot be read. An answer rests on those of its fields that it reads."""
        return AskedFacts(lambda name: self._fact_of(path, name))

    def _fact_of(self, path: Path, name: str) -> object:
        self._rest_on(f"facts {name}", path)
        return getattr(self._names_of(path) if name in _OF_NAMES else self._facts_of(path), name)

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

    def _code_of(self, path: Path) -> str:
        tree = self._tree_of(path)
        return "" if tree is None else laid_out(tree)

    def looks_into(self, path: Path) -> None:
        """Let the answer that is being worked out rest on all that is written in ``path`` but comments."""
        self._rest_on("written", path)

    def _written_of(self, path: Path) -> object:
        import tokenize  # is asked of files alone that have changed

        from mslint.source.statements import code_tokens

        try:
            tokens = code_tokens(self._text_of(path) or "")
        except (tokenize.TokenError, SyntaxError):  # which the parser may take all the same
            return self._text_of(path)
        places = [(token.string, token.start[1]) for token in tokens]
        return places, in_order(token.start[0] for token in tokens)

    def _places_of(self, path: Path) -> str:
        """Return what the code of ``path`` is, and where each part of it stands."""
        text, tree = self._text_of(path) or "", self._tree_of(path)
        if not text.isascii():  # columns are counted in bytes there, and in characters for people
            return text
        return "" if tree is None else ast.dump(tree, include_attributes=True)

    def _rest_on(self, kind: str, path: Path) -> None:
        self._note((kind, str(path)))

    def says(self, path: Path, words: re.Pattern[str]) -> bool:
        """Tell whether ``words``, a pattern without flags, occur in ``path``."""
        return self._fact(f"says {words.pattern}", path, lambda: bool(words.search(self._text_of(path) or "")))

    def only_defines(self, path: Path) -> bool:
        """Tell whether ``path``, when it is imported, does no more than give names to things."""

        def read() -> bool:
            tree = self._tree_of(path)
            return tree is not None and all(map(only_defines, tree.body))

        return self._fact("only_defines", path, read)

    def uses(self, path: Path, written: re.Pattern[str]) -> tuple[str, ...]:
        """Return the dotted names that ``path`` reads in which ``written``, a pattern without flags, occurs; sorted."""

        def read() -> tuple[str, ...]:
            return tuple(filter(written.search, self._facts_of(path).uses))

        return self._fact(f"used {written.pattern}", path, read)

    def uses_any(self, path: Path, names: Sequence[str]) -> bool:
        """Tell whether ``path`` reads anything whose last name is one of ``names``."""

        def read() -> bool:
            text = self._text_of(path) or ""  # most files need not be read any further
            said = any(name in text for name in names)
            return said and any(use.rpartition(".")[2] in names for use in self._facts_of(path).uses)

        return self._fact(f"uses {' '.join(names)}", path, read)

    def classes_calling(self, path: Path, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the classes of ``path`` that call what has the last name ``name``, with that as it is written there."""

        def read() -> tuple[tuple[str, tuple[str, ...]], ...]:
            classes = self._bodies_of(path).called_by_classes if name in (self._text_of(path) or "") else []
            found = ((caller, [one for one in called if one.rpartition(".")[2] == name]) for caller, called in classes)
            return tuple((caller, tuple(sorted(callees))) for caller, callees in found if callees)

        return self._fact(f"calling {name}", path, read)

    def is_guarded(self, path: Path) -> bool:
        """Tell whether ``path`` asks for its ``__name__``: some of it runs only where it is started itself."""

        def read() -> bool:
            return "__name__" in (self._text_of(path) or "") and "__name__" in self._facts_of(path).uses

        return self._fact("guarded", path, read)

    def functions(self, path: Path) -> tuple[Function, ...]:
        """Return the functions of ``path`` with the calls in them; none if it cannot be read."""
        from mslint.program.calls import read_functions

        return self._fact("functions", path, lambda: read_functions(path, self._tree_of(path)))

    def imports(self, path: Path) -> tuple[str, ...]:
        """Return the dotted target of every import of ``path``, star imports included, in order of the alphabet."""
        return self._fact("imports", path, lambda: self._imports_of(path))

    def _imports_of(self, path: Path) -> tuple[str, ...]:
        if path not in self._imports:
            self._imports[path] = tuple(sorted(set(self._names_of(path).all_imports())))
        return self._imports[path]

    def _bases(self, path: Path, name: str) -> tuple[str, ...]:
        """Return the bases of the class ``name`` of ``path``, as written; none if there is no such class."""
        self._rest_on(f"bases {name}", path)
        return self._names_of(path).bases.get(name, ())


def bytes_of(path: Path) -> bytes | None:
    """Return what is in the file, None if it cannot be read."""
    try:
        return path.read_bytes() if is_file(path) else None
    except OSError:
        return None


is_file = os.path.isfile
"""Asked before anything is opened: a named pipe would be waited for."""
