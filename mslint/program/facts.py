"""What one file says, as plain data: enough to answer questions about it from other files without its tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Built:
    """``self.attribute = callee(...)`` in a class: what was called, with which constant keywords, in which row."""

    callee: str
    keywords: tuple[tuple[str, object], ...]
    row: int


@dataclass(frozen=True)
class ClassFacts:
    """A class: its bases and its methods' names as written, and the attributes that its methods assign."""

    name: str
    row: int
    bases: tuple[str, ...]
    methods: frozenset[str]
    assigned: frozenset[str]
    built: dict[str, Built]
    reads: frozenset[str]
    """Attributes read from ``self``."""
    updated: frozenset[str] = frozenset()
    """Attributes assigned in methods other than ``__init__``."""


@dataclass(frozen=True)
class Names:
    """What the names of a file are, which its statements alone say: most questions ask for no more, and it is had fast."""

    imports: dict[str, str] = field(default_factory=dict)
    """Local name to dotted target; a target that starts with dots is relative."""
    nested_imports: dict[str, str] = field(default_factory=dict)
    """The same for imports inside functions."""
    stars: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Module-level ``name = dotted.name``."""
    definitions: set[str] = field(default_factory=set)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By class: what it descends from, as written."""

    def all_imports(self) -> Iterator[str]:
        """Yield the dotted target of every import of the file, star imports included."""
        yield from self.imports.values()
        yield from self.nested_imports.values()
        yield from self.stars

    def meaning(self, name: str) -> tuple[object, ...]:
        """Return all that the file says of what its module-level ``name`` is."""
        said = self.imports.get(name), self.aliases.get(name), name in self.definitions
        return said if any(said) else tuple(self.stars)


@dataclass(frozen=True)
class FileFacts:
    """A file: module-level names, classes and the dotted names it uses, all as written."""

    imports: dict[str, str] = field(default_factory=dict)
    """Local name to dotted target; a target that starts with dots is relative."""
    nested_imports: dict[str, str] = field(default_factory=dict)
    """The same for imports inside functions."""
    stars: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    """Module-level ``name = dotted.name``."""
    definitions: frozenset[str] = frozenset()
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    """Every dotted name that is read; sorted."""
    modes: tuple[str, ...] = ()
    """What ``set_context`` is given as ``mode``, as written; ``?`` for anything but a dotted name or a number."""
    touched: frozenset[str] = frozenset()
    """Attributes that are set on objects other than ``self``, ``setattr`` with a literal name included."""
    named: frozenset[str] = frozenset()
    """Attributes that ``getattr`` and its kin name literally."""
    chosen_by_name: frozenset[str] = frozenset()
    """What ``getattr`` looks a computed name up in, as written."""
    ungraded: frozenset[str] = frozenset()
    """What ``set_grad(False)`` is called on, as written."""
    in_cells: tuple[str, ...] = ()
    """Dotted names that methods other than ``__init__`` read in classes with a ``construct``; sorted."""

    def all_imports(self) -> Iterator[str]:
        """Yield the dotted target of every import of the file, star imports included."""
        yield from self.imports.values()
        yield from self.nested_imports.values()
        yield from self.stars


_FIELDS = frozenset(item.name for item in fields(FileFacts))


class AskedFacts(FileFacts):
    """The facts of a file, each of which ``answer`` gives when it is asked for."""

    def __init__(self, answer: Callable[[str], object]) -> None:
        self.__dict__["answer"] = answer

    def __getattribute__(self, name: str) -> object:
        held = object.__getattribute__(self, "__dict__")
        return held["answer"](name) if name in _FIELDS else object.__getattribute__(self, name)


def dotted(node: ast.expr) -> str | None:
    """Return ``a.b.c`` for a chain of attributes on a name, else None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def read_names(tree: ast.Module) -> Names:
    """Return the names of a parsed file; of two that are the same, the one that stands deeper or later counts."""
    found = Names()
    top = set(_top_level(tree.body))
    queue: list[ast.AST] = [tree]
    for node in queue:  # outer statements first, as ast.walk goes; expressions hold no statements
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _read_import(node, found.imports if node in top else found.nested_imports, found.stars)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node in top:
            found.definitions.add(node.name)
            if isinstance(node, ast.ClassDef):
                found.bases[node.name] = _bases(node)
        elif isinstance(node, ast.Assign) and node in top:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    path = dotted(node.value)
                    if path:
                        found.aliases[target.id] = path
                    found.definitions.add(target.id)
        for name in _BLOCKS:
            queue += getattr(node, name, ())
    return found


def _bases(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(path for base in node.bases if (path := dotted(base)))


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields that hold statements, or what holds statements, in the order of every node that has several of them."""


def read_facts(tree: ast.Module) -> FileFacts:
    """Return the facts of a parsed file."""
    names = read_names(tree)
    classes: dict[str, ClassFacts] = {}
    top = set(_top_level(tree.body))
    uses: set[str] = set()
    modes: list[str] = []
    touched: set[str] = set()
    named: set[str] = set()
    chosen: set[str] = set()
    ungraded: set[str] = set()
    in_cells: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            in_cells.update(_used_in_cell(node))
            if node in top:
                classes[node.name] = _read_class(node)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            path = dotted(node)
            if path:
                uses.add(path)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not _is_self(node.value):
                touched.add(node.attr)
        elif isinstance(node, ast.Call):
            modes.extend(_mode(node))
            callee = dotted(node.func) or ""
            if callee in ("getattr", "setattr", "hasattr", "delattr") and len(node.args) > 1:
                name = node.args[1]
                if isinstance(name, ast.Constant):
                    (touched if callee == "setattr" else named).add(str(name.value))
                else:
                    chosen.add(dotted(node.args[0]) or "?")
            elif callee.endswith(".set_grad") and [ast.unparse(a) for a in node.args] == ["False"]:
                ungraded.add(callee.removesuffix(".set_grad"))
    return FileFacts(
        imports=names.imports,
        nested_imports=names.nested_imports,
        stars=tuple(names.stars),
        aliases=names.aliases,
        definitions=frozenset(names.definitions),
        classes=classes,
        uses=_shared(uses),
        modes=tuple(modes),
        touched=frozenset(touched),
        named=frozenset(named),
        chosen_by_name=frozenset(chosen),
        ungraded=frozenset(ungraded),
        in_cells=_shared(in_cells),
    )


def _shared(names: set[str]) -> tuple[str, ...]:
    """Return ``names`` sorted, each the same object in all files: most files read the same APIs."""
    return tuple(sorted(map(sys.intern, names)))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _used_in_cell(node: ast.ClassDef) -> Iterator[str]:
    methods = [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if any(method.name == "construct" for method in methods):
        for method in methods:
            if method.name != "__init__":
                yield from (path for item in ast.walk(method) if isinstance(item, ast.expr) and (path := dotted(item)))


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from _top_level(handler.body)


def _read_import(node: ast.Import | ast.ImportFrom, into: dict[str, str], stars: list[str]) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                into[alias.asname] = alias.name
            else:
                into[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
                # `import a.b` binds only `a`, but loads `a.b`: the import graph must know.
                into.setdefault(alias.name, alias.name)
        return
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            stars.append(base)
        else:
            into[alias.asname or alias.name] = base + alias.name if base.endswith(".") else f"{base}.{alias.name}"


def _read_class(node: ast.ClassDef) -> ClassFacts:
    built: dict[str, Built] = {}
    assigned: set[str] = set()
    reads: set[str] = set()
    for item in ast.walk(node):
        if not (isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == "self"):
            if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
                for target in item.targets:
                    attribute = dotted(target)
                    callee = dotted(item.value.func)
                    if callee and attribute and attribute.startswith("self.") and attribute.count(".") == 1:
                        keywords = tuple(
                            (word.arg, word.value.value)
                            for word in item.value.keywords
                            if word.arg and isinstance(word.value, ast.Constant)
                        )
                        built[attribute[5:]] = Built(callee, keywords, item.lineno)
            continue
        (reads if isinstance(item.ctx, ast.Load) else assigned).add(item.attr)
    methods = frozenset(x.name for x in node.body if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef)))
    updated = {
        item.attr
        for method in node.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name != "__init__"
        for item in ast.walk(method)
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and _is_self(item.value)
    }
    return ClassFacts(
        node.name, node.lineno, _bases(node), methods, frozenset(assigned), built, frozenset(reads), frozenset(updated)
    )


def _mode(node: ast.Call) -> Iterator[str]:
    if (dotted(node.func) or "").rpartition(".")[2] != "set_context":
        return
    for word in node.keywords:
        if word.arg == "mode":
            if isinstance(word.value, ast.Constant):
                yield str(word.value.value)
            else:
                yield dotted(word.value) or "?"
        elif word.arg is None:
            yield "?"
