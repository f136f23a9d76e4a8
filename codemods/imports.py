"""The import editor: reach an API in the file's own style, drop what lost its last reference."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from codemods.statements import in_lines, indentation, insert_after
from mslint.findings import Edit, Position
from mslint.program.project import Program
from mslint.semantics.module import Binding, Module, dotted

_LONGEST_IMPORT = 120
# The old home of the operators' functions; ``mindspore.ops.operations`` has the primitives only.
_FUNCTIONAL = "mindspore.ops.functional"


@dataclass(frozen=True)
class Reached:
    """How a file writes an API, and the edits of its imports that make it so."""

    expression: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Reaches:
    """How a file writes several APIs of one package, and the edits of its imports that make it so."""

    expressions: dict[str, str]
    edits: tuple[Edit, ...] = ()


def reach(module: Module, api: str, node: cst.CSTNode) -> Reached:
    """Return how ``api``, a public name such as ``mindspore.grad``, is written at ``node``.

    A name that already stands for it is used; then ``ms.grad`` if the file imports the package, ``ops.grad`` if it imports
    ``mindspore.ops`` (which offers the same functions), then a ``from mindspore import`` statement is extended, and only a
    file with none of these gets a new import line.
    """
    name = api.rpartition(".")[2]
    known = _top_level_imports(module)
    for wanted, suffix in ((api, ""), ("mindspore", f".{name}"), ("mindspore.ops", f".{name}")):
        for local, binding in known.items():
            if binding.target == wanted and _means(module, local, binding, node):
                return Reached(local + suffix)
    if not _taken(module, name):
        statement = next((s for s in _from_imports(module) if s.module and _is_mindspore(s)), None)
        if statement is not None and not isinstance(statement.names, cst.ImportStar):
            last = statement.names[-1]
            place = module.end(last.asname.name if last.asname else last.name)
            return Reached(name, (Edit(place, place, f", {name}"),))
    alias = "ms" if not _taken(module, "ms") else "mindspore"
    line = "import mindspore as ms" if alias == "ms" else "import mindspore"
    return Reached(f"{alias}.{name}", (_new_line(module, line),))


def reach_from(
    module: Module, package: str, names: Sequence[str], node: cst.CSTNode, alias: str, whole: bool = False
) -> Reaches:
    """Return how ``names`` of a package of MindSpore, such as ``mindspore.communication``, are written at ``node``.

    A name that already stands for one is used, then the package if the file imports it; else the statement that imports
    from the package is extended, and a file with none gets a new one. Where one of the names means something else in the
    file, and for a package that is usually imported ``whole``, that is ``import package as alias``.
    """
    written = {name: _written(module, f"{package}.{name}", node) for name in names}
    missing = [name for name, expression in written.items() if expression is None]
    known = {name: expression for name, expression in written.items() if expression is not None}
    if not missing:
        return Reaches(known)
    if not whole and not any(_means_otherwise(module, name, f"{package}.{name}") for name in missing):
        return Reaches({**known, **{name: name for name in missing}}, (_import_from(module, package, missing),))
    while _taken(module, alias):
        alias = f"mindspore_{alias}"
    line = f"import {package} as {alias}"
    return Reaches(
        {**known, **{name: f"{alias}.{name}" for name in missing}}, (_line_among_kin(module, package, line),)
    )


def reach_operator(module: Module, name: str, node: cst.CSTNode) -> Reached:
    """Return how the function ``name`` of ``mindspore.ops`` is written at ``node``.

    The name itself if the file imports it, else the package as the file calls it (``ops``, ``P``, ``F``, ``ms.ops``); a file
    that has none of these gets the import of ``ops``.
    """
    known = _top_level_imports(module)
    for package, suffix in ((f"mindspore.ops.{name}", ""), ("mindspore.ops", f".{name}"), (_FUNCTIONAL, f".{name}")):
        for local, binding in known.items():
            if binding.target == package and _means(module, local, binding, node):
                return Reached(local + suffix)
    found = reach_from(module, "mindspore", ["ops"], node, "ops")
    return Reached(f"{found.expressions['ops']}.{name}", found.edits)


def _written(module: Module, api: str, node: cst.CSTNode) -> str | None:
    path = module.source.path.absolute()
    package, _, name = api.rpartition(".")
    for local, binding in _top_level_imports(module).items():
        assert binding.target is not None
        meant = module.program.canonical(path, binding.target)
        if (meant == api or _is_package(meant, package)) and _means(module, local, binding, node):
            return local if meant == api else f"{local}.{name}"
    return None


def _is_package(name: str, package: str) -> bool:
    """Tell whether ``name`` is the package, or its module that has all of it."""
    return name in (package, f"{package}.management")


def _means_otherwise(module: Module, name: str, api: str) -> bool:
    path = module.source.path.absolute()
    return any(
        binding.target is None or module.program.canonical(path, binding.target) != api
        for names in module.bindings.values()
        for binding in names.get(name, ())
    )


def _import_from(module: Module, package: str, names: Sequence[str]) -> Edit:
    """Return the edit that imports ``names``, in alphabetical order if those that are there are."""
    for statement in _from_imports(module):
        base = dotted(statement.module) if statement.module is not None and not statement.relative else None
        if base is None or isinstance(statement.names, cst.ImportStar):
            continue
        if not _is_package(base, package):
            continue
        first, last = statement.names[0], statement.names[-1]
        there = [alias.evaluated_name for alias in statement.names]
        row = module.lines[module.end(last).row - 1]
        if len(row) + len(", ".join(["", *names])) > _LONGEST_IMPORT:
            break
        if there == sorted(there) and max(names) < there[0]:
            place = module.start(first)
            return Edit(place, place, "".join(f"{name}, " for name in names))
        place = module.end(last.asname.name if last.asname else last.name)
        return Edit(place, place, "".join(f", {name}" for name in names))
    return _line_among_kin(module, package, f"from {package} import {', '.join(names)}")


def _line_among_kin(module: Module, package: str, text: str) -> Edit:
    """Put an import line behind the imports of MindSpore's packages that come before it in the alphabet."""
    lines = [line for line in module.tree.body if isinstance(line, cst.SimpleStatementLine)]
    kin = [line for line in lines if _imported_package(line).partition(".")[0] == "mindspore"]
    if text.startswith("import "):
        kin = [line for line in kin if isinstance(line.body[0], cst.Import)] or kin
    before = [line for line in kin if _imported_package(line) < package] or kin
    return insert_after(module, before[-1], in_lines(module, [text])) if before else _new_line(module, text)


def _imported_package(line: cst.SimpleStatementLine) -> str:
    """Return the package that a line with one import takes names from; nothing if it is none."""
    statement = line.body[0]
    if isinstance(statement, cst.ImportFrom):
        return (dotted(statement.module) or "") if statement.module and not statement.relative else ""
    return (dotted(statement.names[0].name) or "") if isinstance(statement, cst.Import) else ""


def _top_level_imports(module: Module) -> dict[str, Binding]:
    """Return the imports that hold in all of the file, by the names that they give, the last one first."""
    found = {}
    for name, bindings in reversed(module.bindings[module.tree].items()):
        targets = {binding.target for binding in bindings}
        if len(targets) == 1 and None not in targets and _unconditional(module, bindings[0].node):
            found[name] = bindings[0]
    return found


def _unconditional(module: Module, node: cst.CSTNode) -> bool:
    line = module.parents[node]
    return isinstance(line, cst.SimpleStatementLine) and module.parents[line] is module.tree


def _means(module: Module, name: str, binding: Binding, node: cst.CSTNode) -> bool:
    """Tell whether ``name``, read at ``node``, still is what ``binding`` makes it."""
    return all(found.target == binding.target for found in module.lookup(name, node))


def _taken(module: Module, name: str) -> bool:
    return any(name in names for names in module.bindings.values())


def _from_imports(module: Module) -> list[cst.ImportFrom]:
    lines = [line for line in module.tree.body if isinstance(line, cst.SimpleStatementLine)]
    return [item for line in lines for item in line.body if isinstance(item, cst.ImportFrom)]


def _is_mindspore(statement: cst.ImportFrom) -> bool:
    return isinstance(statement.module, cst.Name) and statement.module.value == "mindspore" and not statement.relative


def _new_line(module: Module, text: str) -> Edit:
    """Put an import line before the first import of MindSpore, where its kin stand."""
    lines = [line for line in module.tree.body if isinstance(line, cst.SimpleStatementLine)]
    imports = [line for line in lines if isinstance(line.body[0], (cst.Import, cst.ImportFrom))]
    anchor = next((line for line in imports if "mindspore" in module.code(line)), (imports or lines)[0])
    place = module.start(anchor)
    return Edit(place, place, in_lines(module, [text]) + indentation(module, anchor))


def joined(edits: Iterable[Edit]) -> list[Edit]:
    """Return ``edits`` with those made one that insert at the same place."""
    found: dict[tuple[Position, Position], Edit] = {}
    for edit in edits:
        before = found.get((edit.start, edit.end))
        content = edit.content if before is None else before.content + edit.content
        found[edit.start, edit.end] = replace(edit, content=content)
    return list(found.values())


def drop_unreferenced(program: Program, path: Path, before: str, after: str) -> str:
    """Return ``after`` without the imports whose last reference went between ``before`` and ``after``.

    A name stays if anything still reads it, if ``__all__`` or another file of the project takes it from this one, or if its
    import stands anywhere but directly at module level.
    """
    lost = _read_names(before) - _read_names(after) - set(_taken_elsewhere(program, path))
    if not lost:
        return after
    return cst.parse_module(after).visit(_Drop(lost)).code


def _read_names(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            # A name in ``__all__`` or in a quoted annotation is a reference too.
            names.add(node.value)
    return names


def _taken_elsewhere(program: Program, path: Path) -> Iterator[str]:
    for user in program.users(path) - {path}:
        facts = program.facts(user)
        if any(program.module(user, base) == path for base in facts.stars):
            yield from program.facts(path).imports
        for target in facts.all_imports():
            base, _, name = target.rpartition(".")
            if base and program.module(user, base) == path:
                yield name


class _Drop(cst.CSTTransformer):
    """Removes names from the imports that stand directly at module level."""

    def __init__(self, lost: set[str]) -> None:
        super().__init__()
        self.lost = lost

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:  # noqa: N802
        body: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
        leading: list[cst.EmptyLine] = []
        for line in updated_node.body:
            kept = self._keep(line)
            if kept is None:
                # What stands above a removed line (comments, blank lines) belongs to the file: hand it on.
                leading.extend(line.leading_lines)
                continue
            if leading:
                kept = kept.with_changes(leading_lines=[*leading, *kept.leading_lines])
                leading = []
            body.append(kept)
        return updated_node.with_changes(body=body, footer=[*leading, *updated_node.footer])

    def _keep(
        self, line: cst.SimpleStatementLine | cst.BaseCompoundStatement
    ) -> cst.SimpleStatementLine | cst.BaseCompoundStatement | None:
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return line
        statement = line.body[0]
        if not isinstance(statement, (cst.Import, cst.ImportFrom)) or isinstance(statement.names, cst.ImportStar):
            return line
        names = [alias for alias in statement.names if self._local(alias, statement) not in self.lost]
        if len(names) == len(statement.names):
            return line
        if not names:
            return None
        names[-1] = names[-1].with_changes(comma=statement.names[-1].comma)
        return line.with_changes(body=[statement.with_changes(names=names)])

    def _local(self, alias: cst.ImportAlias, statement: cst.Import | cst.ImportFrom) -> str:
        if alias.asname:
            assert isinstance(alias.asname.name, cst.Name)
            return alias.asname.name.value
        # `import a.b` binds `a`, but is there for its effect on `a` as well: never dropped.
        return alias.name.value if isinstance(alias.name, cst.Name) else ""
