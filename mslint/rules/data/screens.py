"""What Python's own parser shows of a file that the rules about data may report: no libcst is needed to look for it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from mslint.program.datasets import foremost_position, shardable
from mslint.program.facts import dotted
from mslint.program.following.syntax import imported_names
from mslint.semantics.outline import outline, plain

_SHARDED = frozenset(map(plain, (*shardable(), "DistributedSampler")))


def names_dataset(tree: ast.Module) -> bool:
    """Tell whether ``tree`` refers to anything called a data set: only a class or function of its own is not enough."""
    return any("Dataset" in name for node in ast.walk(tree) for name in _named(node))


def shares_sampled(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may build a data set from a sampler as well as ``num_shards``."""
    return any(passes(call, "num_shards") and passes(call, "sampler") for call in building(tree))


def building(tree: ast.Module) -> list[ast.Call]:
    """Return the calls in ``tree`` that may build a data set that can be sharded, or a ``DistributedSampler``."""
    file = outline(tree)
    return [call for call in file.of(ast.Call) if file.may_be(call.func, _SHARDED)]


def passes(call: ast.Call, name: str, position: int | None = None) -> bool:
    """Tell whether ``call`` passes ``name``, or may by ``position``: if that is None, where a data set takes it earliest."""
    is_passed = any(word.arg == name for word in call.keywords)
    return is_passed or len(call.args) > (foremost_position(name) if position is None else position)


def seeds(tree: ast.Module) -> bool:
    """Tell whether ``tree`` calls anything that is called ``seed``, or whose name ends so."""
    return any(True for _ in seeding(tree))


def seeds_by_name(tree: ast.Module) -> bool:
    """Tell whether ``tree`` seeds with a number that is not written out."""
    return any(
        isinstance(item, ast.Name) for call in seeding(tree) for given in _given(call) for item in ast.walk(given)
    )


def seeding(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls in ``tree`` of what is called ``seed``, or whose name ends so."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return (call for call in calls if (dotted(call.func) or "").endswith("seed"))


def ambiguous_names(tree: ast.Module) -> set[str]:
    """Return the names that ``tree`` binds to more than one thing, wherever: by ``try``, or anew in a function."""
    meanings: dict[str, set[object]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, target in imported_names(node):
                meanings[name].add(target)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            meanings[node.name].add(node)
        elif isinstance(node, ast.arg):
            meanings[node.arg].add(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            meanings[node.id].add(node)
    return {name for name, found in meanings.items() if len(found) > 1}


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _named(node: ast.AST) -> tuple[str, ...]:
    """Return the names by which ``node`` itself refers to something."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return tuple(alias.name for alias in node.names) if isinstance(node, (ast.Import, ast.ImportFrom)) else ()
