"""Attributes, methods and items of the values in a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mslint.program.following.syntax import decorators
from mslint.program.following.values import Call, Parent
from mslint.program.rehearsal.values import (
    Class,
    Constant,
    Either,
    Function,
    Method,
    ModuleValue,
    Names,
    Object,
    Parallel,
    Reference,
    Sequence,
    Symbol,
    Table,
    Value,
    by_rank,
    derived,
    join,
    options,
    parts,
)

if TYPE_CHECKING:
    from mslint.program.rehearsal.follow import Rehearsal


@dataclass(eq=False)
class Inherited(Value):
    """A method that ``this`` has from a base in another library."""

    this: Object
    name: str


_TABLE_METHODS = frozenset({"get", "pop", "setdefault", "items", "values", "keys", "update", "copy"})


class Objects:
    """What the values of ``rehearsal`` hold."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._stored: Names = {}
        """Attributes that were set on values that are not known."""

    # ------------------------------------------------------------------ attributes

    def attribute(self, holder: Value, name: str) -> Value:
        """Return ``holder.name``."""
        if isinstance(holder, Either):
            return join(self.attribute(option, name) for option in holder.options)
        stored = self._stored.get(("attribute", holder.key, name)) if self._stored else None
        if stored is not None:
            return stored
        if isinstance(holder, ModuleValue):
            return self._of_module(holder, name)
        if isinstance(holder, Reference):
            return self._rehearsal.library.attribute(holder, name, self._rehearsal.scope.path)
        if isinstance(holder, Object):
            member = self.member(holder, name)
            if member is not None:
                return member
            is_foreign = any(base.startswith("mindspore.") for base in holder.kind.foreign())
            return Method(holder, name) if is_foreign else Symbol(("attribute", holder.key, name))
        if isinstance(holder, Parent) and isinstance(holder.this, Object) and isinstance(holder.owner, Class):
            return self._of_parent(holder.this, holder.owner, name)
        if isinstance(holder, Class):
            return self._of_class(holder, name)
        if isinstance(holder, Table):
            return self._of_table(holder, name)
        if isinstance(holder, Symbol):
            return derived(("attribute", holder.key, name), holder)
        return Method(holder, name)

    def _of_module(self, holder: ModuleValue, name: str) -> Value:
        modules = self._rehearsal.modules
        found = modules.exported(holder.scope.path, name)
        if found is not None:
            return found
        below = self._rehearsal.program.module(holder.scope.path, f".{name}")
        return modules.module(below) if below else Symbol(("attribute", holder.key, name))

    def _of_class(self, holder: Class, name: str) -> Value:
        found = next((kind.names[name] for kind in holder.lineage() if name in kind.names), None)
        if isinstance(found, Function) and "classmethod" in decorators(found.node):
            return Function(found.scope, found.node, found.owner, holder, found.defaults)
        return found or Method(holder, name)

    def _of_parent(self, this: Object, owner: Class, name: str) -> Value:
        for kind in owner.lineage():
            found = kind.names.get(name) if kind is not owner else None
            if isinstance(found, Function):
                return self.bound(found, this)
        return Inherited(this, name)

    def _of_table(self, holder: Table, name: str) -> Value:
        held = holder.names.get(name)
        unknown = Symbol(("attribute", holder.key, name))
        if held is not None:
            return unknown if holder.settings and isinstance(held, Constant) else held
        return unknown if holder.settings and name not in _TABLE_METHODS else Method(holder, name)

    def set_attribute(self, holder: Value, name: str, value: Value) -> None:
        """Let ``holder.name`` be ``value`` from here on."""
        write = self._rehearsal.journal.write
        for option in options(holder):
            if isinstance(option, (Object, Class, Table)):
                write(option.names, name, value)
            elif isinstance(option, ModuleValue):
                write(option.scope.names, name, value)
            elif not isinstance(option, (Constant, Parallel)):
                write(self._stored, ("attribute", option.key, name), value)

    def member(self, holder: Object, name: str) -> Value | None:
        """Return the attribute or bound method ``name`` of an object; None if the program gives it none."""
        if name in holder.names:
            return holder.names[name]
        for kind in holder.kind.lineage():
            found = kind.names.get(name)
            if found is not None:
                return self.bound(found, holder)
        return None

    def bound(self, found: Value, holder: Object) -> Value:
        """Return what ``found`` in the class of ``holder`` is as an attribute of that object."""
        if not isinstance(found, Function) or found.owner is None:
            return found
        kinds = decorators(found.node)
        if "staticmethod" in kinds:
            return found
        method = Function(found.scope, found.node, found.owner, holder, found.defaults)
        return self._rehearsal.called(method, Call([], {})) if "property" in kinds else method

    # ------------------------------------------------------------------ items

    def set_item(self, holder: Table, index: Value, value: Value) -> None:
        """Let ``holder[index]`` be ``value`` from here on."""
        if isinstance(index, Constant):
            self._rehearsal.journal.write(holder.names, index.value, value)
        else:
            holder.open = True

    def element(self, value: Value, number: int | None = None) -> Value:
        """Return one of what ``value`` holds."""
        if isinstance(value, Either):
            return join(self.element(option, number) for option in value.options)
        if isinstance(value, Sequence) and value.items:
            return join(value.items)
        if isinstance(value, Table) and value.names and not value.open:
            return join(Constant(name) for name in value.names)
        if isinstance(value, Object):
            return self._iterated(value)
        return derived(("item", value.key, number), value)

    def _iterated(self, value: Object) -> Value:
        for name in ("__iter__", "__next__", "__getitem__"):
            method = self.member(value, name)
            if method is not None:
                index: list[Value] = [derived(("index", value.key))] if name == "__getitem__" else []
                found = self._rehearsal.called(method, Call(index, {}))
                if found is value:
                    continue
                return self.element(found) if name == "__iter__" else found
        return derived(("item", value.key), value)

    def item(self, holder: Value, index: Value) -> Value:
        """Return ``holder[index]``; what is taken by a rank is another one on each."""
        found = self._item(holder, index)
        return join([found, by_rank(("part", holder.key, index.key))]) if parts(index)[1] else found

    def _item(self, holder: Value, index: Value) -> Value:
        if isinstance(holder, Sequence) and holder.items:
            number = index.value if isinstance(index, Constant) else None
            if isinstance(number, int) and -len(holder.items) <= number < len(holder.items):
                return holder.items[number]
            return join(holder.items)
        if isinstance(holder, Table) and holder.names:
            if isinstance(index, Constant) and index.value in holder.names:
                return holder.names[index.value]
            return join(holder.names.values())
        if isinstance(holder, Reference):
            return self._rehearsal.library.item(holder, index)
        if isinstance(holder, Object):
            method = self.member(holder, "__getitem__")
            if method is not None:
                return self._rehearsal.called(method, Call([index], {}))
        if isinstance(index, Constant) and isinstance(index.value, str) and isinstance(holder, Symbol):
            # cfg["x"] and cfg.x are one thing in the configuration classes in use.
            return self.attribute(holder, index.value)
        return derived(("item", holder.key, index.key), holder)
