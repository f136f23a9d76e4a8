"""Classes of a file as MindSpore sees them: lineage, methods, and what their attributes hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from mslint.semantics.module import Module, find


@dataclass(frozen=True)
class Assigned:
    """``self.attribute = value`` in a method; ``value`` is None where the attribute gets a part of something."""

    attribute: str
    method: cst.FunctionDef
    statement: cst.BaseSmallStatement
    value: cst.BaseExpression | None


class CellClass:
    """One class definition of ``module``."""

    def __init__(self, module: Module, node: cst.ClassDef) -> None:
        self.module = module
        self.node = node
        self.name = node.name.value
        self.reference = f"{module.source.path.absolute()}:{self.name}"

    @cached_property
    def methods(self) -> dict[str, cst.FunctionDef]:
        """Methods by name; of two with one name the later counts, as in Python."""
        return {item.name.value: item for item in self.node.body.body if isinstance(item, cst.FunctionDef)}

    @cached_property
    def lineage(self) -> list[str]:
        """Bases, nearest first, followed through the project; MindSpore's under their public names."""
        order: list[str] = []
        for argument in self.node.bases:
            base = self.module.resolve(argument.value)
            if base:
                order.extend(item for item in self.module.program.lineage(base) if item not in order)
        return order

    @cached_property
    def assigned(self) -> dict[str, list[Assigned]]:
        """Everything assigned to an attribute of ``self``, by attribute, in source order."""
        table: dict[str, list[Assigned]] = {}
        for method in self.methods.values():
            this = self_name(method)
            for node in find(method.body, cst.Assign):
                for target in node.targets:
                    for name, whole in _targets(target.target, this):
                        table.setdefault(name, []).append(Assigned(name, method, node, node.value if whole else None))
            for annotated in find(method.body, cst.AnnAssign):
                for name, _ in _targets(annotated.target, this):
                    table.setdefault(name, []).append(Assigned(name, method, annotated, annotated.value))
            for augmented in find(method.body, cst.AugAssign):
                for name, _ in _targets(augmented.target, this):
                    table.setdefault(name, []).append(Assigned(name, method, augmented, None))
        return table

    def value(self, attribute: str) -> cst.BaseExpression | None:
        """Return what ``self.attribute`` holds if the class assigns it exactly once, else None."""
        found = self.assigned.get(attribute, [])
        return found[0].value if len(found) == 1 else None

    def reads(self, attribute: str) -> Iterator[cst.Attribute]:
        """Yield the places where the class's methods read ``self.attribute``."""
        for method in self.methods.values():
            this = self_name(method)
            for node in find(method, cst.Attribute):
                if is_self(node, this) and node.attr.value == attribute and not self._is_target(node):
                    yield node

    def _is_target(self, node: cst.Attribute) -> bool:
        holder: cst.CSTNode = node
        parent = self.module.parents[holder]
        while isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
            holder, parent = parent, self.module.parents[parent]
        if isinstance(parent, cst.AssignTarget):
            return True
        return isinstance(parent, (cst.AnnAssign, cst.AugAssign)) and parent.target is holder


def self_name(method: cst.FunctionDef) -> str:
    """Return the name of the instance argument of ``method``; empty if there is none."""
    parameters = method.params.posonly_params or method.params.params
    return parameters[0].name.value if parameters else ""


def is_self(node: cst.CSTNode, this: str) -> bool:
    """Tell whether ``node`` is an attribute directly on the instance argument named ``this``."""
    return isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == this


def _targets(target: cst.BaseExpression, this: str) -> Iterator[tuple[str, bool]]:
    if isinstance(target, cst.Attribute) and is_self(target, this):
        yield target.attr.value, True
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            for name, _ in _targets(element.value, this):
                yield name, False


def cell_classes(module: Module) -> dict[str, CellClass]:
    """Return the top-level classes of ``module`` by name."""
    return module.remember(
        cell_classes,
        lambda: {n.name.value: CellClass(module, n) for n in module.classes if module.parents[n] is module.tree},
    )


def all_classes(module: Module) -> dict[cst.ClassDef, CellClass]:
    """Return every class of ``module``, those inside functions, conditions and other classes too, by its node."""
    top = {cell.node: cell for cell in cell_classes(module).values()}
    return module.remember(all_classes, lambda: {n: top.get(n) or CellClass(module, n) for n in module.classes})


def class_of(module: Module, node: cst.CSTNode) -> cst.ClassDef | None:
    """Return the class whose method holds ``node``, also from inside a function nested in that method."""
    return module.enclosing(node, cst.ClassDef)


def method_of(module: Module, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the method (a function directly in a class body) that holds ``node``."""
    for item in (node, *module.ancestors(node)):
        if isinstance(item, cst.FunctionDef) and isinstance(module.parents[item], cst.IndentedBlock):
            if isinstance(module.parents[module.parents[item]], cst.ClassDef):
                return item
    return None
