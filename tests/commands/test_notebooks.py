"""Notebooks are checked and rewritten like files, cell by cell, and keep everything else."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mslint.findings import Applicability, Edit, Finding, Fix, Position, Related, Severity
from mslint.source.notebook import decode_notebook, in_cells
from mslint.source.text import Unreadable


def notebook(*cells: str | list[str], indent: int | None = 1, ascii_only: bool = False, **metadata: object) -> str:
    """A notebook with a heading, then code cells with outputs."""
    heading = {"cell_type": "markdown", "id": "head", "metadata": {}, "source": ["# 训练\n", "old_call()"]}
    code = [
        {
            "cell_type": "code",
            "execution_count": number,
            "id": f"cell-{number}",
            "metadata": {"collapsed": False, "a": 1},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["old_call 学习\n"]}],
            "source": source.splitlines(keepends=True) if isinstance(source, str) else source,
        }
        for number, source in enumerate(cells, 1)
    ]
    document = {"metadata": metadata, "cells": [heading, *code], "nbformat_minor": 5, "nbformat": 4}
    return json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n"


THREE = notebook(
    "%matplotlib inline\nimport lib",
    "!pip install lib \\\n  --quiet\nfiles = !ls\nfor name in files:\n    %time old_call(name)\n    old_call(name)\nlib?",
    "%%bash\nold_call()",
    "%%time\nx = old_call(1)  # 一\nhard_call(2)",
)


def test_findings_by_cell(cli, project: Path) -> None:
    (project / "train.ipynb").write_text(THREE, encoding="utf-8")
    assert cli("check", "--output-format", "concise").out == (
        "train.ipynb:cell 3:6:5: MS901 old_call is no more [fix]\n"
        "train.ipynb:cell 5:2:5: MS901 old_call is no more [fix]\n"
        "train.ipynb:cell 5:3:1: MS901 hard_call is no more\n"
        "Found 3 findings (2 fixable with `mslint fix`).\n"
    )
    full = cli("check", "train.ipynb").out
    assert (
        "train.ipynb:cell 5:2:5: warning MS901 old-call: old_call is no more\n1 | %%time\n2 | x = old_call(1)" in full
    )
    assert "  note: train.ipynb:cell 5:2:5 it is here\n" in full
    entries = json.loads(cli("check", "--output-format", "json").out)
    assert [(entry["cell"], entry["location"]) for entry in entries] == [
        (3, {"row": 6, "column": 5}),
        (5, {"row": 2, "column": 5}),
        (5, {"row": 3, "column": 1}),
    ]
    [edit] = entries[1]["fix"]["edits"]
    assert (edit["cell"], edit["location"], edit["content"]) == (5, {"row": 2, "column": 5}, "new_call")
    assert entries[1]["related"][0]["cell"] == 5


def test_formats_that_know_no_cells_name_the_file_and_the_cell(cli, project: Path) -> None:
    (project / "train.ipynb").write_text(THREE, encoding="utf-8")
    github = cli("check", "--output-format", "github").out
    assert "file=train.ipynb,line=1,endLine=1,col=1,endColumn=1::train.ipynb:cell 3:6:5: MS901" in github
    [run] = json.loads(cli("check", "--output-format", "sarif").out)["runs"]
    result = run["results"][0]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.ipynb"},
        "region": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
    }
    assert result["message"]["text"] == "cell 3:6:5: old_call is no more"
    assert "fixes" not in result
    issues = json.loads(cli("check", "--output-format", "gitlab").out)
    assert issues[0]["description"] == "MS901 cell 3:6:5: old_call is no more"
    assert len({issue["fingerprint"] for issue in issues}) == 3


@pytest.mark.parametrize("indent", [1, 2, None])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_a_fix_touches_nothing_but_its_row(cli, project: Path, indent: int | None, ascii_only: bool, bom: str) -> None:
    text = bom + notebook(
        "%matplotlib inline\nimport lib",
        "%time old_call()\nx = old_call('一\"')\n",
        indent=indent,
        ascii_only=ascii_only,
        kernelspec={"name": "p", "display_name": "P", "language": "python"},
    )
    file = project / "train.ipynb"
    file.write_text(text, encoding="utf-8")
    result = cli("fix")
    assert (result.code, result.err) == (0, "")
    assert file.read_text(encoding="utf-8") == text.replace("x = old_call", "x = new_call")
    nbformat.validate(nbformat.reads(file.read_text(encoding="utf-8-sig"), as_version=4))


def test_source_as_one_string_and_rows_that_go(cli, project: Path) -> None:
    file = project / "train.ipynb"
    text = notebook("from lib import old_call\ny = 1", "from lib import x\nold_call()")
    joined = json.loads(text)
    joined["cells"][2]["source"] = "".join(joined["cells"][2]["source"])
    file.write_text(json.dumps(joined), encoding="utf-8")
    assert cli("fix").code == 0
    cells = nbformat.read(file, as_version=4).cells
    assert [cell.source for cell in cells[1:]] == ["y = 1", "from lib import x\nnew_call()"]
    assert '"source": "from lib' in file.read_text()


def test_suppression_comments_hold_and_unused_ones_go(cli, project: Path) -> None:
    file = project / "train.ipynb"
    text = notebook("old_call()  # noqa: MS901\ny = 1  # mslint: ignore[MS901]", "# mslint: ignore[MS901]", "z = 1")
    file.write_text(text, encoding="utf-8")
    found = cli("check", "--output-format", "concise").out
    assert "train.ipynb:cell 2:2:8: MS001 " in found
    assert "train.ipynb:cell 3:1:1: MS001 " in found
    assert cli("fix").code == 0
    cells = nbformat.read(file, as_version=4).cells
    assert [cell.source for cell in cells[1:]] == ["old_call()  # noqa: MS901\ny = 1", "", "z = 1"]


def test_diff_is_a_patch_of_the_file(cli, project: Path) -> None:
    (project / "train.ipynb").write_text(notebook("old_call()"), encoding="utf-8")
    code, out, _ = cli("fix", "--diff")
    assert code == 1
    assert '-    "old_call()"\n+    "new_call()"\n' in out


def test_standard_input(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bytes:
        buffer = io.BytesIO(notebook("old_call()").encode())

    monkeypatch.setattr(sys, "stdin", Bytes)
    result = cli("check", "-", "--stdin-filename", "typed.ipynb", "--output-format", "concise")
    assert result.out.startswith("typed.ipynb:cell 2:1:1: MS901")


def test_a_baseline_knows_cells(cli, project: Path) -> None:
    file = project / "train.ipynb"
    file.write_text(notebook("x = 1", "old_call()"), encoding="utf-8")
    cli("baseline", "write")
    file.write_text(notebook("old_call()", "x = 1", "hard_call()"), encoding="utf-8")
    result = cli("check", "--baseline", "mslint-baseline.toml", "--output-format", "concise")
    assert result.out.startswith("train.ipynb:cell 4:1:1: MS901 hard_call is no more\nFound 1 finding.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "bad.ipynb: is no notebook: no JSON at 1:1 (Expecting value)"),
        (b"{\n  \x80}", "bad.ipynb: is no notebook: byte 0x80 is not UTF-8"),
        (b"[]", "bad.ipynb: is no notebook: it has no `nbformat`"),
        (b'{"nbformat": 3, "worksheets": []}', "bad.ipynb: is a notebook of format 3, not 4"),
        (b'{"nbformat": 4}', "bad.ipynb: is no notebook: it has no list of `cells`"),
        (b"[" * 100000, "bad.ipynb: is no notebook: nested too deeply"),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}',
            "bad.ipynb: is no notebook: the source of cell 1 is no text",
        ),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = \\u0000"}]}',
            "bad.ipynb: is no notebook: a null character in a cell",
        ),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
            "bad.ipynb: is no notebook: half a character (a lone surrogate) in a cell",
        ),
    ],
)
def test_what_is_no_notebook_is_told_in_one_line(cli, project: Path, content: bytes, said: str) -> None:
    (project / "bad.ipynb").write_bytes(content)
    (project / "good.py").write_text("old_call()\n")
    for verb in ("check", "fix"):
        result = cli(verb)
        assert result.code == 2
        assert result.err == f"error: {said}; open and save it in Jupyter, or exclude it\n"


def test_other_languages_and_empty_notebooks_are_passed_over(cli, project: Path) -> None:
    (project / "r.ipynb").write_text(notebook("x <- old_call()", kernelspec={"language": "R"}), encoding="utf-8")
    (project / "none.ipynb").write_text(notebook(), encoding="utf-8")
    assert cli("check").out == "All checks passed.\n"
    assert cli("fix").code == 0


def test_a_syntax_error_names_the_cell(cli, project: Path) -> None:
    (project / "a.ipynb").write_text(notebook("x = 1", "y = (\n"), encoding="utf-8")
    assert cli("check", "--output-format", "concise").out.startswith("a.ipynb:cell 3:1:5: MS002 ")
    result = cli("fix")
    assert result.code == 2
    assert result.err.startswith("error: a.ipynb:cell 3:1:5: ")


def test_rules_see_the_classes_of_a_notebook(cli, project: Path) -> None:
    cells = (
        "import mindspore as ms\nfrom mindspore import nn, ops",
        "class Net(nn.Cell):\n    def construct(self, x):\n        return x * 2",
        "%%time\nnet = Net()\nopt = nn.Adam(net.trainable_params())\n"
        "def step(x):\n    loss = net(x).mean()\n"
        "    grads = ops.GradOperation(get_by_list=True)(net, opt.parameters)(x)\n    opt(grads)\n    return loss",
    )
    (project / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")
    (project / "train.py").write_text("\n".join(cells).replace("%%time\n", ""))
    found = {
        name: [(entry["code"], entry["fix"] and entry["fix"]["applicability"]) for entry in json.loads(result.out)]
        for name in ("train.ipynb", "train.py")
        for result in [cli("check", "--output-format", "json", name)]
    }
    assert found["train.py"]
    assert found["train.ipynb"] == found["train.py"]


def test_verify_does_not_run_notebooks(cli, project: Path) -> None:
    (project / "a.ipynb").write_text(notebook("x = 1"), encoding="utf-8")
    result = cli("verify", "--codemod", "new-call", "a.ipynb")
    assert result.code == 2
    assert result.err.startswith("error: a.ipynb: notebooks are not run; `jupyter nbconvert --to script a.ipynb`")


def joined(*cells: str) -> str:
    return decode_notebook(notebook(*cells).encode(), Path("/p/a.ipynb"), "a.ipynb").text


def test_magics_keep_their_rows_and_what_they_name() -> None:
    text = joined("x = [\n  5\n  % 3]\n%time f(y)\nif x:\n    !ls {y}\nz = %sql select\na?\nb = x !=y")
    assert text.splitlines()[1:] == [
        "x = [",
        "  5",
        "  % 3]",
        "get_ipython(time, f, y)  # ~~ magic 1",
        "if x:",
        "    get_ipython(ls, y)  # ~~ magic 2",
        "z = get_ipython(sql, select)  # ~~ magic 3",
        "get_ipython(a)  # ~~ magic 4",
        "b = x !=y",
    ]


def test_an_edit_from_one_cell_into_another_is_refused() -> None:
    source = decode_notebook(notebook("x = 1", "y = 2").encode(), Path("/p/a.ipynb"), "a.ipynb")
    with pytest.raises(Unreadable, match="does not keep the cells' borders"):
        source.encode(source.text.replace("# ~~ cell 3\n", ""))
    assert source.encode("z = 0\n" + source.text).decode() == notebook("z = 0\nx = 1", "y = 2")


def test_a_fix_that_crosses_cells_is_left_to_a_person() -> None:
    book = decode_notebook(notebook("x = 1", "y = 2").encode(), Path("/p/a.ipynb"), "a.ipynb").notebook
    assert book is not None
    apart = Edit(Position(1, 1), Position(1, 1), ""), Edit(Position(4, 1), Position(4, 2), "z")
    kept = Fix("demo", Applicability.SAFE, "do it", apart)
    assert book.within_cells(kept) == kept
    across = replace(kept, edits=(Edit(Position(2, 1), Position(4, 2), "z"),))
    refused = book.within_cells(across)
    assert (refused.applicability, refused.edits) == (Applicability.MANUAL, ())
    assert refused.message == "do it; that would reach over several cells: put what belongs together into one"


def test_messages_name_rows_of_cells() -> None:
    book = decode_notebook(notebook("x = 1\ny = 2", "z = 3").encode(), Path("/p/a.ipynb"), "a.ipynb").notebook
    assert book is not None
    said = {
        "made in row 3": "made in row 2 of cell 2",
        "rows 2 and 5 differ": "row 1 of cell 2 and row 1 of cell 3 differ",
        "frozen at line 5 (row 5)": "frozen at line 1 of cell 3 (row 1 of cell 3)",
        "in row 5 of a.ipynb.py": "in row 1 of cell 3 of a.ipynb",
        "at a.ipynb:5, in lib.py:5": "at a.ipynb:cell 3:1, in lib.py:5",
        "lib.py, row 5; row 5 of lib.py": "lib.py, row 5; row 5 of lib.py",
        "a.ipynb.py, row 5": "a.ipynb, row 1 of cell 3",
    }
    start = Position(5, 1)
    for message, expected in said.items():
        finding = Finding("MS901", "old-call", Severity.INFO, message, "a.ipynb", start, start)
        told = in_cells(finding, {Path("/p/a.ipynb"): book})
        assert (told.message, told.cell, told.start) == (expected, 3, Position(1, 1))
    elsewhere = Related("a.ipynb.py", start, start, "here")
    finding = Finding("MS901", "old-call", Severity.INFO, "no", "lib.py", start, start, related=(elsewhere,))
    told = in_cells(finding, {Path("/p/a.ipynb"): book})
    assert (told.start, told.cell) == (start, None)
    assert told.related == (Related("a.ipynb", Position(1, 1), Position(1, 1), "here", cell=3),)


def test_a_notebook_runs_the_modules_that_it_imports(cli, project: Path) -> None:
    loader = (
        "import mindspore.dataset as ds\n\n\ndef make():\n    return ds.MnistDataset('data', shuffle=True).batch(32)\n"
    )
    (project / "loader.py").write_text(loader)
    cells = (
        "%matplotlib inline\nimport mindspore as ms\nfrom loader import make\nfrom mindspore import nn\n"
        "from mindspore.communication import init",
        "init()\nms.set_auto_parallel_context(parallel_mode='data_parallel', gradients_mean=True)\nnet = nn.Dense(2, 2)",
        "ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params())).train(1, make())",
    )
    (project / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")
    [entry] = json.loads(cli("check", "--output-format", "json").out)
    assert (entry["code"], entry["filename"], entry["cell"]) == ("MS301", "loader.py", None)
    assert "at train.ipynb:cell 4:1, in the run that init() at train.ipynb:cell 3:1 makes" in entry["message"]
    assert ("train.ipynb", 4) in {(related["filename"], related["cell"]) for related in entry["related"]}
    assert cli("fix", "--unsafe-fixes").out.startswith("Fixed 1 finding in 1 file.\n")
    assert (project / "train.ipynb").read_text(encoding="utf-8") == notebook(*cells)


LINE = st.sampled_from(
    ["x = 1", "%time f(x)", "!ls \\", "if x:", "    y = '''", "'''", "y?", "%%time", "(", ")", "\\", "", "é"]
)


@given(st.lists(st.lists(LINE, max_size=6), max_size=4), st.sampled_from([None, 1, 4]), st.booleans())
def test_whatever_cells_hold_comes_back_byte_for_byte(cells: list[list[str]], indent: int | None, plain: bool) -> None:
    data = notebook(*("\n".join(cell) for cell in cells), indent=indent, ascii_only=plain).encode()
    source = decode_notebook(data, Path("/p/a.ipynb"), "a.ipynb")
    assert source.encode(source.text) == data
    assert source.notebook is not None
    for cell in source.notebook.cells:
        assert source.notebook._with_magics(cell, cell.plain) == cell.text
        assert len(cell.plain.splitlines()) == len(cell.text.splitlines())
