"""Syntax trees of files: each file is parsed once for all that ask, and forgotten when too many others were asked for."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Callable, Container
from pathlib import Path

from mslint.source.parsing import parsed

_MOST_TEXT = 10_000_000
"""Trees are kept for so many characters of source, more than the largest programs have: they take 43 times as many bytes."""


class Trees:
    """The trees of the files that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, tuple[ast.Module | None, int]] = OrderedDict()
        self._size = 0

    def tree(self, path: Path, read: Callable[[Path], str | None]) -> ast.Module | None:
        """Return the tree of ``path``, whose text ``read`` gives; None if that is nothing, or cannot be parsed."""
        if path in self._kept:
            self._kept.move_to_end(path)
        else:
            text = read(path)
            self._kept[path] = (None if text is None else parsed(text), len(text or ""))
            self._size += len(text or "")
            while self._size > _MOST_TEXT and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1][1]
        return self._kept[path][0]

    def let_go(self, path: Path) -> None:
        """Forget the tree of ``path``."""
        if path in self._kept:
            self._size -= self._kept.pop(path)[1]

    def without(self, paths: Container[Path]) -> Trees:
        """Return these trees, those of ``paths`` apart."""
        trees = Trees()
        trees._kept = OrderedDict((path, known) for path, known in self._kept.items() if path not in paths)
        trees._size = sum(size for _, size in trees._kept.values())
        return trees
