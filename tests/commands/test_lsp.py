"""A session of an editor with the language server, over its standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

import mslint.commands.lsp
from mslint.report.markdown import markdown

STEP = """\
import mindspore as ms
from mindspore import nn, ops

net = nn.Dense(2, 2).set_grad()
optimizer = nn.Adam(net.trainable_params())


def step(x):
    loss = net(x).sum()
    grads = ops.GradOperation(get_by_list=True)(net, optimizer.parameters)(x)
    optimizer(grads)
    return loss
"""
PLUGIN_TEXT = "x = '学习\U0001f600', old_call(1)\nodd_call()\n"


class Editor:
    """A client that keeps what the server says of each file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("editor", "1")
        self.said: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda said: self.said.put_nowait(said))
        self._versions: dict[str, int] = {}

    async def start(self, site: Path) -> None:
        start = f"import sys; sys.path.insert(0, {str(site)!r}); from mslint.cli import main; sys.exit(main(['lsp']))"
        await self.client.start_io(sys.executable, "-c", start)
        await self.client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=self.folder.as_uri())
        )
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def open(self, name: str, text: str) -> list[types.Diagnostic]:
        self._versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics(name)

    async def type(self, name: str, text: str) -> list[types.Diagnostic]:
        self._versions[name] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return await self.diagnostics(name)

    async def diagnostics(self, name: str) -> list[types.Diagnostic]:
        while True:
            said = await asyncio.wait_for(self.said.get(), 60)
            if said.uri == self.uri(name):
                return list(said.diagnostics)

    async def actions(self, name: str, row: int, only: list[str] | None = None) -> list[types.CodeAction]:
        place = types.Position(row, 0)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(name)),
            types.Range(place, types.Position(row, 80)),
            types.CodeActionContext([], only=only),
        )
        return list(await self.client.text_document_code_action_async(params) or ())

    async def hover(self, name: str, row: int, column: int) -> types.Hover | None:
        document = types.TextDocumentIdentifier(self.uri(name))
        return await self.client.text_document_hover_async(types.HoverParams(document, types.Position(row, column)))


def session(site: Path, folder: Path, steps: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        editor = Editor(folder)
        await editor.start(site)
        try:
            await steps(editor)
        finally:
            await editor.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_findings_while_typing(site: Path, project: Path) -> None:
    async def steps(editor: Editor) -> None:
        first, second = await editor.open("a.py", PLUGIN_TEXT)
        # The editor counts UTF-16: the picture is two units, the Chinese characters one each.
        assert first.range == types.Range(types.Position(0, 12), types.Position(0, 20))
        assert (first.code, first.severity, first.source) == ("MS901", types.DiagnosticSeverity.Warning, "mslint")
        assert first.related_information[0].location.uri == editor.uri("a.py")
        assert second.range.start == types.Position(1, 0)
        assert await editor.type("a.py", "new_call()\n") == []
        [broken] = await editor.type("a.py", "def f(:\n")
        assert (broken.code, broken.severity) == ("MS002", types.DiagnosticSeverity.Error)
        [again] = await editor.type("a.py", "old_call()  # \n")
        assert again.code == "MS901"
        document = types.TextDocumentIdentifier(editor.uri("a.py"))
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        assert await editor.diagnostics("a.py") == []

    session(site, project, steps)


def test_quick_fixes_are_named_safe_and_unsafe(site: Path, project: Path) -> None:
    async def steps(editor: Editor) -> None:
        await editor.open("a.py", PLUGIN_TEXT)
        safe, everything = await editor.actions("a.py", 0)
        assert (safe.title, safe.is_preferred) == ("MS901: say new_call (new-call, safe)", True)
        [edit] = safe.edit.changes[editor.uri("a.py")]
        assert (edit.new_text, edit.range) == ("new_call", safe.diagnostics[0].range)
        assert (everything.kind, everything.edit) == ("source.fixAll.mslint", None)
        resolved = await editor.client.code_action_resolve_async(everything)
        [edit] = resolved.edit.changes[editor.uri("a.py")]
        assert edit.new_text == PLUGIN_TEXT.replace("old_call", "new_call")
        assert edit.range == types.Range(types.Position(0, 0), types.Position(2, 0))
        unsafe, _ = await editor.actions("a.py", 1)
        assert (unsafe.title, unsafe.is_preferred) == (
            "MS901: new_call rounds otherwise (new-call, unsafe)",
            False,
        )
        [on_save] = await editor.actions("a.py", 0, only=["source.fixAll"])
        assert list(on_save.edit.changes[editor.uri("a.py")]) == [edit]
        assert await editor.actions("a.py", 0, only=["refactor"]) == []

    session(site, project, steps)


def test_cells_of_a_notebook_are_files_of_their_own_to_the_editor(site: Path, project: Path) -> None:
    texts = ["# Title", "%matplotlib inline\nfrom lib import old_call", "x = '学习', old_call(1)\nodd_call()\n"]
    cells = [f"vscode-notebook-cell:{project}/n.ipynb#{number}" for number in range(len(texts))]
    kinds = [types.NotebookCellKind.Markup, types.NotebookCellKind.Code, types.NotebookCellKind.Code]

    async def steps(editor: Editor) -> None:
        client = editor.client
        notebook = types.NotebookDocument(
            editor.uri("n.ipynb"),
            "jupyter-notebook",
            1,
            [types.NotebookCell(*both) for both in zip(kinds, cells, strict=True)],
        )
        documents = [
            types.TextDocumentItem(uri, "python" if kind == 2 else "markdown", 1, text)
            for uri, kind, text in zip(cells, kinds, texts, strict=True)
        ]
        client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, documents))
        told = [await editor.said.get() for _ in cells]
        assert [said.uri for said in told] == cells
        assert [[item.range.start for item in said.diagnostics] for said in told] == [
            [],
            [],
            [types.Position(0, 10), types.Position(1, 0)],
        ]
        editor.uri = lambda name: cells[2]  # type: ignore[method-assign]
        assert "MS901" in (await editor.hover("", 0, 12)).contents.value
        assert await editor.hover("", 0, 2) is None
        safe, everything = await editor.actions("", 0)
        [edit] = safe.edit.changes[cells[2]]
        assert (edit.new_text, edit.range.start) == ("new_call", types.Position(0, 10))
        resolved = await client.code_action_resolve_async(everything)
        assert {uri: [edit.new_text for edit in edits] for uri, edits in resolved.edit.changes.items()} == {
            cells[1]: ["%matplotlib inline"],  # the import has lost its last reference
            cells[2]: [texts[2].replace("old_call", "new_call")],
        }
        change = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(2, cells[2]), [types.TextDocumentContentChangeWholeDocument("x = 1")]
        )
        changed = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[change]))
        identity = types.VersionedNotebookDocumentIdentifier(2, notebook.uri)
        client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identity, changed))
        assert [list((await editor.said.get()).diagnostics) for _ in cells] == [[], [], []]

    session(site, project, steps)


def test_hover_shows_the_documentation_of_the_rule(site: Path, project: Path) -> None:
    async def steps(editor: Editor) -> None:
        [finding] = await editor.open("train.py", STEP)
        assert finding.code == "MS101"
        hover = await editor.hover("train.py", finding.range.start.line, finding.range.start.character)
        assert hover.contents.value.startswith("### MS101 whole-network-grad\n\n")
        assert "**Use instead**\n\n```python\n" in hover.contents.value
        assert await editor.hover("train.py", 0, 0) is None

    session(site, project, steps)


DATA = """\
import mindspore.dataset as ds


def make():
    return ds.MnistDataset("data", shuffle=True).batch(32)
"""
TRAIN = """\
import mindspore as ms
from data import make
from mindspore import nn
from mindspore.communication import init
from mindspore.train import Model

net = nn.Dense(2, 2)
Model(net, nn.MSELoss(), nn.Adam(net.trainable_params())).train(1, make())
"""


PARALLEL = '\n\ninit()\nms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)\n'


def test_other_open_files_count_as_they_are_typed(site: Path, project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    (project / "data.py").write_text(DATA)

    async def steps(editor: Editor) -> None:
        assert await editor.open("data.py", DATA) == []
        await editor.open("train.py", TRAIN)
        await editor.type("train.py", TRAIN.replace("\n\n", PARALLEL))
        document = types.TextDocumentIdentifier(editor.uri("train.py"))
        editor.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
        assert [finding.code for finding in await editor.diagnostics("data.py")] == ["MS301"]

    session(site, project, steps)


def test_configuration_suppression_and_mistakes(site: Path, project: Path) -> None:
    async def steps(editor: Editor) -> None:
        assert await editor.open("a.py", "old_call()  # noqa: MS901\n") == []
        (project / "mslint.toml").write_text('ignore = ["MS901"]\nextend-exclude = ["out.py"]\n')
        assert await editor.type("a.py", "old_call()\n") == []
        assert await editor.open("out.py", "old_call(\n") == []
        (project / "mslint.toml").write_text('ignored = ["MS901"]\n')
        [told] = await editor.type("a.py", "old_call()\n\n")
        assert "unknown key 'ignored'; did you mean ignore?" in told.message
        (project / "mslint.toml").unlink()
        # A rule that fails costs its own findings, not the session.
        [told] = await editor.type("a.py", "crash()\n")
        assert "the plugin's bug" in told.message
        assert len(await editor.type("a.py", "old_call()\n")) == 1
        assert len(await editor.type("a.py", "x = '\0'\n")) == 1
        assert len(await editor.type("a.py", "old_call()\n")) == 1

    session(site, project, steps)


def test_notebooks_and_texts_without_a_file_are_left_alone(site: Path, project: Path) -> None:
    async def steps(editor: Editor) -> None:
        for uri in (editor.uri("a.ipynb"), "untitled:Untitled-1"):
            item = types.TextDocumentItem(uri, "python", 1, "old_call()")
            editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        assert await editor.actions("a.ipynb", 0) == []
        assert len(await editor.open("a.py", "old_call()\n")) == 1

    session(site, project, steps)


def test_without_pygls_one_line_says_how_to_get_it(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mslint.commands.lsp, "find_spec", lambda name: None)
    assert cli("lsp") == (2, "", "error: the language server needs pygls 2; `pip install 'mslint[lsp]'` installs it\n")


def test_documentation_as_markdown() -> None:
    text = "One ``line``.\n\nExample\n    A:\n\n    .. code-block:: python\n\n        if x:\n            y\n\n    B.\n"
    assert markdown(text) == ("One `line`.\n\n**Example**\n\nA:\n\n```python\n\nif x:\n    y\n\n```\n\nB.\n")
