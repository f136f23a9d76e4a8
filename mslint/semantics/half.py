"""Which values are float16: by a cast, by ``to_float``, or because the program runs the network under amp O2 or O3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from mslint.semantics.cells import CellClass, is_self, method_of, self_name
from mslint.semantics.flow import owner_of
from mslint.semantics.foreign import calls_named, class_at, module_at
from mslint.semantics.formula import Expression, Formula, classes_of, read, values
from mslint.semantics.module import Module, find
from mslint.semantics.reaching import reaching

HALF, SINGLE = "mindspore.float16", "mindspore.float32"
_SHORT = {"mindspore.half": HALF, "mindspore.float_": SINGLE}
_CASTS = ("cast", "astype", "to", "type", "Cast")
_AMP = {"auto_mixed_precision": (1, "amp_level"), "build_train_network": (3, "level"), "Model": (6, "amp_level")}
_DEPTH = 8
_MOST_FILES = 12


@dataclass(frozen=True)
class HalfBy:
    """What makes a value float16: the expression, and in words."""

    by: Expression
    reason: str


def half(expression: Expression, depth: int = _DEPTH) -> HalfBy | None:
    """Return what makes ``expression`` float16; None if it is of another type or that cannot be told."""
    found = _type(expression, depth)
    return found if isinstance(found, HalfBy) else None


def _type(expression: Expression, depth: int) -> HalfBy | str | None:
    """Return what makes ``expression`` float16, the name of another type that it is cast to, or None."""
    if depth == 0:
        return None
    for value in values(expression, calls=0, through=False):
        formula = read(value)
        known = _cast(formula)
        if known is None and formula.operation:
            kinds = [_type(operand, depth - 1) for operand in _tensors(formula)]
            # Of float16 and float32 MindSpore makes float32.
            known = SINGLE if SINGLE in kinds else next((kind for kind in kinds if kind is not None), None)
        elif known is None:
            known = _of_cell(value)
        if known is not None:
            return known
    return None


def _tensors(formula: Formula) -> tuple[Expression, ...]:
    if formula.operation in ("add", "subtract", "multiply", "divide", "clip"):
        return formula.operands
    return formula.operands[1:3] if formula.operation == "select" else formula.operands[:1]


def _cast(formula: Formula) -> HalfBy | str | None:
    node, module = formula.expression.node, formula.expression.module
    if formula.operation != "same" or not isinstance(node, cst.Call):
        return None
    function = node.func
    if isinstance(function, cst.Attribute) and function.attr.value in ("half", "float") and not node.args:
        name: str | None = HALF if function.attr.value == "half" else SINGLE
    else:
        given = formula.setting("dtype")
        kind = (
            Expression(module, given)
            if given is not None
            else formula.operands[1]
            if len(formula.operands) > 1
            else None
        )
        name = float_type(kind) if kind is not None else None
    if name == HALF:
        return HalfBy(formula.expression, f"row {formula.expression.row} makes it float16")
    return name


def float_type(expression: Expression) -> str | None:
    """Return the MindSpore type that ``expression`` names, through variables and attributes."""
    for value in values(expression, calls=1, through=False):
        if isinstance(value.node, (cst.Name, cst.Attribute)):
            name = value.module.resolve(value.node)
            name = _SHORT.get(name, name) if name is not None else None
            if name is not None and name.startswith("mindspore.") and "float" in name:
                return name
        elif isinstance(value.node, cst.SimpleString) and value.node.evaluated_value in ("float16", "float32"):
            return f"mindspore.{value.node.evaluated_value}"
    return None


def _of_cell(value: Expression) -> HalfBy | None:
    """Return what makes an input of ``construct``, or what a layer of the cell gives, float16."""
    module, node = value.module, value.node
    method = method_of(module, node)
    owner = owner_of(module, node)
    if owner is None or method is None or method.name.value != "construct":
        return None
    is_input = isinstance(node, cst.Name) and any(isinstance(bound.node, cst.Param) for bound in reaching(module, node))
    is_layer = isinstance(node, cst.Call) and is_self(node.func, self_name(method))
    return half_cell(owner) if is_input or is_layer else None


def half_cell(cell: CellClass) -> HalfBy | None:
    """Return what makes the program run ``cell`` in float16."""
    return cell.module.remember((half_cell, cell.name), lambda: next(_half_cell(cell), None))


def _half_cell(cell: CellClass) -> Iterator[HalfBy]:
    module = cell.module
    for call in calls_named(module, "to_float"):
        function = call.func
        if isinstance(function, cst.Attribute) and owner_of(module, call) is cell and call.args:
            method = method_of(module, call)
            on_itself = method is not None and getattr(function.value, "value", "") == self_name(method)
            if on_itself and float_type(Expression(module, call.args[0].value)) == HALF:
                place = Expression(module, call)
                yield HalfBy(place, f"row {place.row} runs the whole cell in float16")
    for network, by, reason in _half_networks(module):
        if any(cell is part for part in _parts(network)):
            yield HalfBy(by, reason)


def _half_networks(module: Module) -> list[tuple[CellClass, Expression, str]]:
    """Return the networks that the program runs in float16 as a whole."""
    return module.remember(_half_networks, lambda: list(_find_half_networks(module)))


def _find_half_networks(module: Module) -> Iterator[tuple[CellClass, Expression, str]]:
    for home in _files(module):
        for call in calls_named(home, "to_float"):
            if (
                isinstance(call.func, cst.Attribute)
                and call.args
                and float_type(Expression(home, call.args[0].value)) == HALF
            ):
                place = Expression(home, call)
                for cell in classes_of(Expression(home, call.func.value)):
                    yield cell, place, f"{place.file}:{place.row} runs {cell.name} in float16"
        for name, (index, keyword) in _AMP.items():
            for call in calls_named(home, name):
                level = _level(home, call, index, keyword)
                if level is None or not call.args or not (home.resolve(call.func) or "").startswith("mindspore."):
                    continue
                network = next(
                    (item.value for item in call.args if item.keyword and item.keyword.value == "network"), None
                )
                place = Expression(home, call)
                for cell in classes_of(Expression(home, network or call.args[0].value)):
                    yield cell, place, f"{place.file}:{place.row} runs {cell.name} in float16 (amp {level})"


def _level(module: Module, call: cst.Call, index: int, keyword: str) -> str | None:
    """Return the amp level of ``call`` if it makes the network float16."""
    for position, argument in enumerate(call.args):
        named = argument.keyword.value == keyword if argument.keyword else position == index
        if named:
            for value in values(Expression(module, argument.value), calls=0):
                if isinstance(value.node, cst.SimpleString) and value.node.evaluated_value in ("O2", "O3"):
                    return str(value.node.evaluated_value)
    return None


def _files(module: Module) -> list[Module]:
    """Return the files that run together with ``module`` and set a precision."""
    program, here = module.program, module.source.path.absolute()
    found: list[Path] = [here]
    for path in sorted(program.neighbourhood(here) - {here}):
        if program.uses_any(path, ("to_float", *_AMP)):
            found.append(path)
    loaded = (module_at(module, path) for path in found[:_MOST_FILES])
    return [item for item in loaded if item is not None]


def _parts(network: CellClass) -> list[CellClass]:
    """Return ``network`` and the cells that it and they build, at any depth."""
    found = [network]
    for cell in found:
        for method in cell.methods.values():
            for call in find(method, cst.Call):
                reference = cell.module.resolve(call.func)
                part = class_at(cell.module, reference) if reference and ".py:" in reference else None
                if part is not None and all(part is not known for known in found):
                    found.append(part)
    return found
