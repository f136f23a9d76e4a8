"""What a file must hold for MS101 to find anything in it."""

from __future__ import annotations

import ast

from mslint.semantics.outline import Outline, outline, plain

_OPERATOR = "GradOperation"
_TRAIN_STEPS = frozenset(map(plain, ("TrainOneStepCell", "TrainOneStepWithLossScaleCell")))


def takes_gradient(tree: ast.Module) -> bool:
    """Tell whether ``tree`` may build a ``GradOperation`` by the weights, or inherit one."""
    file = outline(tree)
    return (
        _names_operator(file)
        or any(_builds_handed_on(file, call) for call in file.of(ast.Call))
        or any(file.may_be(base, _TRAIN_STEPS) for holder in file.of(ast.ClassDef) for base in holder.bases)
    )


def _names_operator(file: Outline) -> bool:
    return (
        any(node.attr == _OPERATOR for node in file.of(ast.Attribute))
        or any(node.id == _OPERATOR for node in file.of(ast.Name))
        or any(node.name == _OPERATOR for node in file.of(ast.alias))
    )


def _builds_handed_on(file: Outline, call: ast.Call) -> bool:
    """Tell whether ``call`` may build one that another file of the project hands on by another name, for the weights."""
    if not file.is_from_project(call.func):
        return False
    for_weights = [given for given in call.args[1:2] if isinstance(given, ast.Constant) and given.value is True]
    is_starred = any(isinstance(given, ast.Starred) for given in call.args)
    return bool(for_weights) or is_starred or any(word.arg in (None, "get_by_list") for word in call.keywords)
