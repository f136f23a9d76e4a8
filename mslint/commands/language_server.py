"""The language server: findings while typing, their fixes as code actions, and the rules' documentation on hover."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from mslint import __version__, language
from mslint.commands.open_files import OpenFiles
from mslint.console import error, internal_error
from mslint.findings import Applicability, Edit, Finding, Position, Related, Severity
from mslint.report.markdown import markdown
from mslint.rules.engine.unused_suppression import UnusedSuppression
from mslint.rules.registry import AnyRule, all_rules, load
from mslint.source.text import NOTEBOOK_SUFFIX, lines_of, stand_in

FIX_ALL = "source.fixAll.mslint"
_PAUSE = 0.3
"""Seconds without typing after which a text is looked at."""
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_WATCHED = ("**/*.py", "**/pyproject.toml", "**/mslint.toml", "**/mslint-baseline.toml")


def serve() -> None:
    """Answer the editor at the other end of standard input and output until it leaves."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a plugin prints is no message to the editor
    # All cells of a notebook, for they are counted: those that hold text, too.
    notebooks = types.NotebookDocumentSyncOptions(
        [types.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
    )
    server = LanguageServer("mslint", __version__, notebook_document_sync=notebooks)
    session = _Session(server)
    actions = types.CodeActionOptions([types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True)
    for feature, answer, options in (
        (types.INITIALIZED, session.initialized, None),
        (types.TEXT_DOCUMENT_DID_OPEN, session.opened, None),
        (types.TEXT_DOCUMENT_DID_CHANGE, session.changed, None),
        (types.TEXT_DOCUMENT_DID_SAVE, session.saved, None),
        (types.TEXT_DOCUMENT_DID_CLOSE, session.closed, None),
        (types.NOTEBOOK_DOCUMENT_DID_OPEN, session.notebook_opened, None),
        (types.NOTEBOOK_DOCUMENT_DID_CHANGE, session.notebook_changed, None),
        (types.NOTEBOOK_DOCUMENT_DID_SAVE, session.saved, None),
        (types.NOTEBOOK_DOCUMENT_DID_CLOSE, session.notebook_closed, None),
        (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, session.files_changed, None),
        (types.TEXT_DOCUMENT_CODE_ACTION, session.actions, actions),
        (types.CODE_ACTION_RESOLVE, session.resolved, None),
        (types.TEXT_DOCUMENT_HOVER, session.hover, None),
    ):
        server.feature(feature, options)(partial(answer))  # pygls marks what it calls, which a method does not allow
    server.start_io(stdin, stdout)


class _Session:
    """What goes on between the editor and us, as long as it is open."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._open = OpenFiles()
        self._uris: dict[Path, str] = {}

    def initialized(self, params: types.InitializedParams) -> None:
        """Ask to be told of changes on disk."""
        workspace = self._server.client_capabilities.workspace
        watching = workspace and workspace.did_change_watched_files
        if watching and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration(id=method, method=method, register_options=options)
            self._server.client_register_capability(types.RegistrationParams([registration]))

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Look at a text for the first time."""
        path = _path(params.text_document.uri)
        # The JSON of a notebook is no Python.
        if path is not None and not params.text_document.uri.endswith(NOTEBOOK_SUFFIX):
            self._open_as(path, params.text_document.uri)

    async def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Look at a text again once the typing pauses."""
        path = self._known(params.text_document.uri)
        if path is None:
            return
        self._take(path)
        await asyncio.sleep(_PAUSE)
        document = self._server.workspace.text_documents.get(params.text_document.uri)
        if path in self._uris and document is not None and document.version == params.text_document.version:
            self._publish(path)

    def saved(self, params: types.DidSaveTextDocumentParams | types.DidSaveNotebookDocumentParams) -> None:
        """Look again at all texts: one may rest on another."""
        self._start_again()

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Look at a notebook for the first time."""
        path = _path(params.notebook_document.uri)
        if path is not None:
            self._open_as(path, params.notebook_document.uri)

    async def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Look at a notebook again once the typing pauses."""
        path = self._known(params.notebook_document.uri)
        if path is None:
            return
        cells = params.change.cells
        for gone in (cells and cells.structure and cells.structure.did_close) or ():
            self._say(gone.uri, [])
        self._take(path)
        await asyncio.sleep(_PAUSE)
        notebook = self._notebook(path)
        if notebook is not None and notebook.version == params.notebook_document.version:
            self._publish(path)

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Forget a notebook and what was said of its cells."""
        path = self._known(params.notebook_document.uri)
        if path is not None:
            self._open.close(path)
            del self._uris[path]
            for cell in params.cell_text_documents:
                self._say(cell.uri, [])

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Look again at all texts."""
        self._start_again()

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a text and what was said of it."""
        path = self._known(params.text_document.uri)
        if path is not None:
            self._open.close(path)
            self._say(self._uris.pop(path), [])

    def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Return the fixes of what is found in a range, and the one that makes all that are safe."""
        path = self._known(params.text_document.uri)
        if path is None:
            return []
        wanted = params.context.only
        found: list[types.CodeAction] = []
        if _is_wanted(types.CodeActionKind.QuickFix, wanted):
            found += self._quick_fixes(path, params.text_document.uri, params.range)
        if _is_wanted(FIX_ALL, wanted) and any(map(_is_safe, self._open.examined(path).findings)):
            action = types.CodeAction("mslint: make all safe fixes", kind=FIX_ALL, data=params.text_document.uri)
            # Who asks for this kind alone is about to make it, and may not ask for its edits.
            found.append(self.resolved(action) if wanted else action)
        return found

    def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """Return ``action`` with its edits."""
        path = self._known(str(action.data))
        if action.kind == FIX_ALL and path is not None:
            try:
                fixed = self._open.fixed(path)
            except Exception as exception:
                error(internal_error("mslint", str(path), exception))
                return action
            whole = [
                Edit(Position(1, 1), _end(self._open.text(path, cell) or ""), text, cell=cell)
                for cell, text in fixed.items()
            ]
            action.edit = self._workspace_edit(path, whole)
        return action

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Return the documentation of the rules that found something at a place."""
        path = self._known(params.text_document.uri)
        if path is None:
            return None
        here = types.Range(params.position, params.position)
        found = list(self._found(path, params.text_document.uri, here))
        rules = {rule.code: rule for rule in all_rules()}
        texts = [_documentation(rules[code]) for code in dict.fromkeys(f.code for f in found) if code in rules]
        if not texts:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(texts))
        return types.Hover(content, self._range(path, found[0]))

    def _known(self, uri: str) -> Path | None:
        """Return the open file that ``uri`` names, as itself, as a notebook, or as a cell of one."""
        notebook = self._server.workspace.get_notebook_document(cell_uri=uri)
        path = _path(notebook.uri if notebook else uri)
        return path if path in self._uris else None

    def _notebook(self, path: Path) -> types.NotebookDocument | None:
        return self._server.workspace.get_notebook_document(notebook_uri=self._uris.get(path))

    def _take(self, path: Path) -> None:
        notebook = self._notebook(path)
        if notebook is None:
            self._open.put(path, self._server.workspace.get_text_document(self._uris[path]).source)
            return
        texts = []
        for cell in notebook.cells:
            document = self._server.workspace.get_text_document(cell.document)
            is_python = cell.kind == types.NotebookCellKind.Code and document.language_id == "python"
            texts.append(document.source if is_python else None)
        self._open.put_notebook(path.with_suffix(""), texts)

    def _open_as(self, path: Path, uri: str) -> None:
        self._uris[path] = uri
        self._take(path)
        self._publish(path)

    def _start_again(self) -> None:
        self._open.refresh()
        for path in self._open.paths:
            self._publish(path)

    def _publish(self, path: Path) -> None:
        examined = self._open.examined(path)
        notebook = self._notebook(path)
        uris = [cell.document for cell in notebook.cells] if notebook else [self._uris[path]]
        said: dict[str, list[types.Diagnostic]] = {uri: [] for uri in uris}
        for finding in examined.findings:
            said[self._uri(path, finding)].append(self._diagnostic(path, finding))
        if examined.problem is not None and uris:
            start = types.Position(0, 0)
            said[uris[0]].append(types.Diagnostic(types.Range(start, start), examined.problem, source="mslint"))
        for uri, diagnostics in said.items():
            self._say(uri, diagnostics, self._server.workspace.get_text_document(uri).version)

    def _say(self, uri: str, diagnostics: list[types.Diagnostic], of_version: int | None = None) -> None:
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, of_version))

    def _diagnostic(self, path: Path, finding: Finding) -> types.Diagnostic:
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(self._uri(home, item), self._range(home, item)), item.message
            )
            for item in finding.related
            for home in [_home(Path(item.filename).absolute())]
        ]
        chinese = language.chinese("rules", finding.code)
        return types.Diagnostic(
            self._range(path, finding),
            f"{chinese}。{finding.message}" if chinese else finding.message,
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            source="mslint",
            tags=[types.DiagnosticTag.Unnecessary] if finding.code == UnusedSuppression.code else None,
            related_information=related or None,
        )

    def _found(self, path: Path, uri: str, wanted: types.Range) -> Iterator[Finding]:
        """Yield what is found in a range of the text that ``uri`` names, which is ``path`` or a cell of it."""
        by_cell = self._notebook(path) is not None
        for finding in self._open.examined(path).findings:
            if (not by_cell or self._uri(path, finding) == uri) and _meet(self._range(path, finding), wanted):
                yield finding

    def _quick_fixes(self, path: Path, uri: str, wanted: types.Range) -> Iterator[types.CodeAction]:
        for finding in self._found(path, uri, wanted):
            fix = finding.fix
            if fix is None or not fix.edits or fix.applicability not in (Applicability.SAFE, Applicability.UNSAFE):
                continue
            yield types.CodeAction(
                f"{finding.code}: {fix.message} ({fix.codemod}, {fix.applicability.value})",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[self._diagnostic(path, finding)],
                is_preferred=fix.applicability is Applicability.SAFE,
                edit=self._workspace_edit(path, fix.edits),
            )

    def _workspace_edit(self, path: Path, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        changes: dict[str, list[types.TextEdit]] = {}
        for edit in edits:
            home = _home(Path(edit.filename)) if edit.filename else path
            changes.setdefault(self._uri(home, edit), []).append(types.TextEdit(self._range(home, edit), edit.content))
        return types.WorkspaceEdit(changes)

    def _uri(self, path: Path, item: Finding | Related | Edit) -> str:
        """Return the URI of the text that ``item`` is in: ``path``, or a cell of it."""
        notebook = self._notebook(path)
        if notebook is not None and item.cell is not None:
            return notebook.cells[item.cell - 1].document
        return self._uris.get(path) or from_fs_path(str(path)) or ""

    def _range(self, path: Path, item: Finding | Related | Edit) -> types.Range:
        """Return the extent of ``item`` in the units that the editor counts in."""
        rows = lines_of(self._open.text(path, item.cell) or "")
        return types.Range(self._position(rows, item.start), self._position(rows, item.end))

    def _position(self, rows: Sequence[str], place: Position) -> types.Position:
        before = rows[place.row - 1][: place.column - 1] if place.row <= len(rows) else ""
        return types.Position(place.row - 1, self._server.workspace.position_codec.client_num_units(before))


def _path(uri: str) -> Path | None:
    """Return the file that ``uri`` names, a notebook by the name that the program has for it; None for what is no file."""
    name = to_fs_path(uri) if urlsplit(uri).scheme == "file" else None
    return _home(Path(name)) if name else None


def _home(path: Path) -> Path:
    return stand_in(path) if path.suffix == NOTEBOOK_SUFFIX else path


def _documentation(rule: AnyRule) -> str:
    loaded = load(rule)
    chinese = "".join(
        f"{text}\n\n" for kind in ("rules", "explanations") if (text := language.chinese(kind, rule.code))
    )
    return f"### {rule.code} {rule.name}\n\n{chinese}{markdown(loaded.__doc__ or loaded.summary)}"


def _is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Tell whether an action of ``kind`` was asked for: a kind stands for all below it."""
    return not only or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only)


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def _meet(some: types.Range, other: types.Range) -> bool:
    return some.start <= other.end and other.start <= some.end


def _end(text: str) -> Position:
    rows = lines_of(text)
    if not rows or rows[-1].endswith(("\n", "\r")):
        return Position(len(rows) + 1, 1)
    return Position(len(rows), len(rows[-1]) + 1)
