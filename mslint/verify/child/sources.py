"""Adds to the nodes of a graph the lines of the script that they come from; the compiler tells these in its dumps only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_NODE = re.compile(r"\s*# Fullname with scope: \((.*)\)$")
_LINE = re.compile(r"\s*# In file (.*?):(\d+)(?:~\d+)?, \d+")
_folder: Path | None = None
_root = ""


def install(folder: Path, root: str) -> None:
    """Have the compiler dump the last stage of every graph, from the first one that it compiles.

    ``root`` is the folder of the user's code: lines of libraries are left out, the line that calls them stands for them.
    """
    global _folder, _root
    _folder, _root = folder, root + os.sep
    os.environ["MS_DEV_SAVE_GRAPHS"] = "1"
    os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = str(folder)
    os.environ["MS_DEV_DUMP_IR_PASSES"] = "validate"


def with_sources(serialised: bytes) -> bytes:
    """The graph compiled last, as a ``ModelProto``, with ``file:line`` in each node's ``doc_string``."""
    if _folder is None:
        return serialised
    dumps = sorted(_folder.rglob("*_validate_*.ir"), key=lambda path: int(path.stem.rsplit("_", 1)[-1]))
    if not dumps:
        return serialised
    from mindspore.train import mind_ir_pb2

    with open(dumps[-1], encoding="utf-8", errors="replace") as dump:
        lines = dict(_lines(dump))
    for path in dumps:
        path.unlink()
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(serialised)
    for function in (model.graph, *model.functions):
        for node in function.node:
            node.doc_string = lines.get(node.domain, "")
    return bytes(model.SerializeToString())


def _lines(dump: Iterator[str]) -> Iterator[tuple[str, str]]:
    """The full names of nodes, each with every line of the user on the way to it: the last one is the innermost."""
    name = None
    for text in dump:
        if named := _NODE.match(text):
            name = named[1]
        elif name is not None and (place := _LINE.match(text)) and place[1].startswith(_root):
            yield name, f"{place[1][len(_root) :]}:{place[2]}"
