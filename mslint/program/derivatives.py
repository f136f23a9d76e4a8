"""Where a program differentiates with respect to inputs: there the gradient must pass what the training could stop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mslint.program.facts import dotted
from mslint.program.following.values import Stretch
from mslint.program.project import Program

_BY_POSITION = ("mindspore.grad", "mindspore.value_and_grad")
_BY_INPUTS_ALONE = (
    "jacfwd",
    "jacrev",
    "vjp",
    "jvp",
    "hvp",
    "vhp",
    "Jvp",
    "Vjp",
    "ForwardValueAndGrad",
    "derivative",
    "jet",
)
_DERIVATIVES = re.compile(rf"mindspore\.(.*\.)?(grad|value_and_grad|GradOperation|{'|'.join(_BY_INPUTS_ALONE)})$")


def input_derivative(program: Program, path: Path) -> Stretch | None:
    """Return the first place in the files that run together with ``path`` that may differentiate by inputs."""
    return program.remember((input_derivative, path), lambda: next(_found(program, path), None))


def _found(program: Program, path: Path) -> Iterator[Stretch]:
    for file in sorted(program.neighbourhood(path)):
        used = map(partial(program.dotted_in, file), program.may_mean(file, _DERIVATIVES))
        tree = program.tree(file) if any(_DERIVATIVES.match(name or "") for name in used) else None
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and _by_inputs(program, file, node):
                yield Stretch.of(file, node)


def _by_inputs(program: Program, path: Path, call: ast.Call) -> bool:
    written = dotted(call.func)
    name = program.dotted_in(path, written) if written else None
    if not name or not name.startswith("mindspore."):
        return False
    last = name.rpartition(".")[2]
    words = {word.arg: word.value for word in call.keywords}
    if name in _BY_POSITION or name in ("mindspore.ops.grad", "mindspore.ops.value_and_grad"):
        position = words.get("grad_position") or (call.args[1] if len(call.args) > 1 else None)
        return not (isinstance(position, ast.Constant) and position.value is None)
    if last == "GradOperation":
        get_all = words.get("get_all") or (call.args[0] if call.args else None)
        by_list = words.get("get_by_list") or (call.args[1] if len(call.args) > 1 else None)
        return _is_true(get_all) or not _is_true(by_list)
    return last in _BY_INPUTS_ALONE


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
