"""Positions are those of libcst's own provider, for every node, though only parts of a file are written out for them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from mslint.program.project import Program
from mslint.semantics.module import Module, walk
from mslint.source.text import decode

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "fixtures").rglob("*.py"), *(ROOT / "codemods").glob("*.py"), ROOT / "mslint" / "config.py"])

ODD = {
    "rows": """

# first
x = 1; y = 2; z = 3  # end
class A: a = 1; b = 2

class B(A):
    '''text
    more'''
    c = 1; d = (
 2)
""",
    "decorators": """@one
# between
@two(
    3)

def f(x): return x

@f
class C:
    @staticmethod

    def g(): pass
""",
    "nested": """class A:

  class B:
    # deep
    @property
    async def c(self):
      class D:
          x = 1
  y = 2
""",
    "tabs": "class A:\n\tdef f(self):\n\t\treturn [\n 1]\n\n\t# last\n",
    "continued": """x = 1 + \\
    2
if x: \\
    y = 1
class A(object,
        metaclass=type):
    z = 3

    def f(self): return \\
        1
""",
    "compound": """try:
    a
except E as e:
    b
else:
    c
finally:
    d
if a:
    b
elif c:
    d
else:
    e
""",
    "blocks": """@one
async def f(x):
  # why
  async with a as b, \\
      c:
        async for d in (
   e):

            # inside
            while g: h = 1; i = 2
            try:
                j
                k = [
  1]
            except K:
                if l:
                    m
                elif n:
                    o
                else:
                    p
            finally:
                match q:
                    case 1:
                        r
        # after
  return (
 s)
""",
    "comments": """#!/usr/bin/python
# -*- coding: utf-8 -*-

# more

name = 'ä' + b  # ü
class Ä:
    # é
    ö = 'ü', x
""",
    "empty": "",
    "only a comment": "# nothing\n",
}


def check(text: str, path: Path) -> None:
    source = decode(text.encode(), path, str(path))
    module = Module(source, Program([path], {path: text}))
    expected = MetadataWrapper(module.tree, unsafe_skip_copy=True).resolve(PositionProvider)
    inside_out = list(walk(module.tree))[::-1]  # what a larger part tells would be known of the smaller ones
    assert set(inside_out) <= set(expected)
    for node in dict.fromkeys([*inside_out, *expected]):
        place = expected[node]
        start, end = module.start(node), module.end(node)
        wanted = (place.start.line, place.start.column + 1, place.end.line, place.end.column + 1)
        assert (start.row, start.column, end.row, end.column) == wanted, cst.Module([]).code_for_node(node)
    for statement in module.tree.body:
        for row in range(module.start(statement).row, module.end(statement).row + 1):
            assert module.outermost(row) is statement


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("name", ODD)
def test_odd_layouts(name: str, newline: str) -> None:
    check(ODD[name].replace("\n", newline), ROOT / "odd.py")


@pytest.mark.parametrize("part", range(4))
def test_real_files(part: int) -> None:
    for path in FILES[part::12]:
        check(path.read_text(encoding="utf-8"), path)
