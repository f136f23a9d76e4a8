"""A rehearsal: a program read in the order in which it would run, without running it.

Statements are followed from an entry point through calls, other files, methods, handed-on functions and decorators; what
cannot be known is a symbol. Of a branch that the known values decide only the one side is followed, else both. The trace is
the list of calls of other libraries (``Event``) with what they were given, in order.

Given the *facts* of a distributed run (the tests around ``init()`` that led there), ``device_num > 1`` and its like are
decided, so that the trace is that of one rank among several.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mslint.program.facts import dotted
from mslint.program.project import Program
from mslint.program.rehearsal.foreign import Foreign
from mslint.program.rehearsal.values import (
    NONE,
    RANK_SIZE,
    Class,
    Constant,
    Either,
    Function,
    Key,
    Later,
    Made,
    Method,
    ModuleValue,
    Names,
    Object,
    Parallel,
    Partial,
    Pipeline,
    Place,
    Reference,
    Scope,
    Sequence,
    Symbol,
    Table,
    Value,
    derived,
    join,
    named,
    options,
    parts,
)

_MOST_STEPS = 60_000
_DEEPEST = 24
_OFTEN = 30
"""A function that was followed so often (a logger's, a registry's) is taken to go on as it did."""
_SMALL = 80
"""A program of so few files is run file by file as Python does."""
_TABLE_METHODS = frozenset({"get", "pop", "setdefault", "items", "values", "keys", "update", "copy"})
_MISSING = Constant("no value yet")


class OutOfBudget(Exception):
    """The program is too large to be followed to the end."""


@dataclass(frozen=True)
class Event:
    """One call of another library's function, in the order of the run.

    ``calls`` are the places of the calls that led there, outermost first.
    """

    number: int
    name: str
    place: Place
    end: tuple[int, int]
    function: str
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    open: bool
    """Whether ``*`` or ``**`` may pass more than is known."""
    calls: tuple[Place, ...]
    facts: tuple[tuple[Key, bool], ...]
    """The undecided tests that led there."""
    names: tuple[tuple[str, Value], ...] = ()
    """The variables of the function that hold a rank or the number of ranks."""

    def argument(self, position: int, name: str) -> Value | None:
        """Return what is passed for a parameter, by position or by name; None if nothing is."""
        for word, value in self.keywords:
            if word == name:
                return value
        return self.arguments[position] if 0 <= position < len(self.arguments) else None


@dataclass
class Frame:
    """A function being followed."""

    function: str
    scope: Scope
    owner: Class | None
    place: Place | None
    """Where it was called."""
    returned: list[Value] = field(default_factory=list)


class Rehearsal:
    """What happens when ``entry`` is started. ``facts`` are tests whose outcome is given."""

    def __init__(self, program: Program, entry: Path, facts: Mapping[Key, bool]) -> None:
        self.program = program
        self.entry = entry
        self.events: list[Event] = []
        self.trained: dict[int, Place] = {}
        """Where each data set (number of the event that built it) feeds a training step."""
        self.evaluated: dict[int, Place] = {}
        """Where each data set is evaluated on."""
        self.sampled: dict[int, Place] = {}
        """Where each data set got a sampler after it was built."""
        self.executed: set[tuple[Path, int]] = set()
        """The statements that were reached, by file and row."""
        self.rank_readers: set[Key] = set()
        """Functions and classes in whose code a rank or the number of ranks is used."""
        self.complete = True
        self._facts: dict[Key, bool] = {}
        self._assume_all(facts)
        self._given = dict(self._facts)
        self._equal: dict[Key, Value] = {
            key[1]: RANK_SIZE
            for key in facts
            if isinstance(key, tuple) and len(key) == 3 and self._is_rank_size(key[1])
        }
        """Values that are known to be the rank or the number of ranks without being computed from it."""
        self._modules: dict[Path, ModuleValue] = {}
        self._stored: Names = {}
        self._journals: list[dict[tuple[int, object], tuple[dict[object, Value], Value]]] = []
        self._frames: list[Frame] = []
        self._active: list[Key] = []
        self._steps = 0
        self._followed: dict[tuple[Path, int], list[Value]] = {}
        self._lazy = len(program.reachable(entry)) > _SMALL
        self._waiting: set[Path] = set()
        self._definitions: dict[Path, bool] = {}
        self._generator_functions: dict[tuple[Path, int], bool] = {}
        self._foreign = Foreign(self)
        self.parallel_context = self._foreign.parallel_context
        try:
            self.module(entry)
        except (OutOfBudget, RecursionError):
            self.complete = False

    # ------------------------------------------------------------------ what is known

    def _assume_all(self, facts: Mapping[Key, bool]) -> None:
        for key, holds in facts.items():
            self._assume(key, holds)

    def _assume(self, key: Key, holds: bool) -> None:
        self._facts[key] = holds
        if isinstance(key, tuple) and key and key[0] == "and" and holds:
            for part in key[1]:
                self._assume(*part)
        if isinstance(key, tuple) and key and key[0] == "or" and not holds:
            for part, positive in key[1]:
                self._assume(part, not positive)

    def _is_rank_size(self, key: Key) -> bool:
        """Tell whether the facts make ``key`` a number above one."""
        return any(
            self._facts.get((sign, key, ("constant", "int", number))) is holds
            for sign, number, holds in (
                (">", "1", True), (">=", "2", True), ("==", "1", False), ("<=", "1", False), ("<", "2", False),
            )
        )  # fmt: skip

    def equate(self, value: Value, meaning: Parallel) -> None:
        """Take ``value``, where it is not known, for ``meaning`` from here on."""
        for option in options(value):
            if isinstance(option, Symbol):
                self._equal[option.key] = meaning

    def truth(self, value: Value) -> bool | None:
        """Tell whether ``value`` counts as true; None if that is not known."""
        if isinstance(value, Constant):
            return bool(value.value)
        if isinstance(value, Either):
            known = self._facts.get(value.key)
            if known is not None:
                return known
            answers = {self.truth(option) for option in value.options}
            return answers.pop() if len(answers) == 1 else None
        if isinstance(value, Parallel):
            return True if value is RANK_SIZE else None
        if isinstance(value, Sequence):
            return True if value.items else None
        if isinstance(value, Table):
            return True if value.names else None
        known = self._facts.get(value.key)
        if known is not None:
            return known
        if isinstance(value, Symbol):
            return True if self._is_rank_size(value.key) else self._compound(value.key)
        return None if isinstance(value, (Method, Made)) else True

    def _compound(self, key: Key) -> bool | None:
        """Decide a test that consists of others."""
        if not isinstance(key, tuple) or not key or key[0] not in ("and", "or"):
            return self._compared(key)
        answers = []
        for part, positive in key[1]:
            known = self._facts.get(part)
            if known is None:
                known = self._compound(part)
            answers.append(None if known is None else known is positive)
        if key[0] == "and":
            return False if False in answers else True if all(answers) else None
        return True if True in answers else None if None in answers else False

    def _compared(self, key: Key) -> bool | None:
        """Decide ``x == a`` where the facts say ``x == b`` or ``x in (...)``."""
        if not (isinstance(key, tuple) and len(key) == 3 and key[0] in ("==", "in")):
            return None
        _, left, right = key
        for (sign, *rest), holds in [(k, v) for k, v in self._facts.items() if isinstance(k, tuple) and len(k) == 3]:
            if not holds or rest[0] != left:
                continue
            allowed = {rest[1]} if sign == "==" else set(rest[1][1]) if sign == "in" and _is_choice(rest[1]) else None
            if not allowed or not all(isinstance(a, tuple) and a[0] == "constant" for a in allowed):
                continue
            wanted = {right} if key[0] == "==" else set(right[1]) if _is_choice(right) else None
            if wanted is None or not all(isinstance(w, tuple) and w[0] == "constant" for w in wanted):
                continue
            if not allowed & wanted:
                return False
            if allowed <= wanted:
                return True
        return None

    # ------------------------------------------------------------------ files and names

    def module(self, path: Path) -> ModuleValue:
        """Return the file ``path``, run if it was not yet."""
        found = self._modules.get(path)
        if found is None:
            found = ModuleValue(Scope(path, {}))
            self._modules[path] = found
            name = "__main__" if path == self.entry else path.stem
            found.scope.names["__name__"] = Constant(name)
            found.scope.names["__file__"] = Constant(str(path))
            tree = self.program.tree(path)
            if tree is not None:
                # What importing a file does is done once, whichever branch imports it first.
                journals, self._journals = self._journals, []
                self._frames.append(Frame("", found.scope, None, None))
                self._block(tree.body)
                self._frames.pop()
                self._journals = journals
        return found

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        path = self._frame.scope.path
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self._name(alias.asname, self._imported(path, alias.name))
                else:
                    self._name(alias.name.partition(".")[0], self._imported(path, alias.name.partition(".")[0]))
                    self._imported(path, alias.name)
            return
        base = "." * node.level + (node.module or "")
        home = self.program.module(path, base)
        for alias in node.names:
            if alias.name == "*":
                if home:
                    names = self.module(home).scope.names
                    for name, exported in list(names.items()):
                        if isinstance(name, str) and not name.startswith("_"):
                            self._name(name, exported)
                continue
            if home and home != path and self._can_wait(home):
                self._name(alias.asname or alias.name, Later(home, alias.name))
                continue
            value = self._exported(home, alias.name) if home and home != path else None
            target = base + alias.name if base.endswith(".") else f"{base}.{alias.name}"
            self._name(alias.asname or alias.name, value or self._imported(path, target))

    def _exported(self, home: Path, name: str) -> Value | None:
        """Return what ``name`` of the file ``home`` is; a name that waits is looked up now."""
        names = self.module(home).scope.names
        found = names.get(name)
        if isinstance(found, Later):
            found = self._arrived(found)
            names[name] = found
        return found

    def _arrived(self, later: Later) -> Value:
        return self._exported(later.path, later.name) or self._imported(
            later.path, f".{later.name}" if later.path.name == "__init__.py" else f"{later.path.stem}.{later.name}"
        )

    def _can_wait(self, path: Path) -> bool:
        """Tell whether ``path`` need not run before something of it is used: a large program imports much that never is.

        What the file imports runs now where that does more than define things.
        """
        if not self._lazy or path in self._modules or not self._only_defines(path):
            return False
        seen = {path}
        queue = [path]
        for waiting in queue:
            for imported in sorted(self.program.imported(waiting)):
                if imported in seen or imported in self._waiting:
                    continue
                seen.add(imported)
                if self._only_defines(imported):
                    queue.append(imported)
                else:
                    self.module(imported)
        self._waiting |= seen
        return True

    def _only_defines(self, path: Path) -> bool:
        known = self._definitions.get(path)
        if known is None:
            tree = self.program.tree(path)
            known = tree is not None and all(map(_defines, tree.body))
            self._definitions[path] = known
        return known

    def _imported(self, path: Path, target: str) -> Value:
        own = self.program.module(path, target)
        if own and target.partition(".")[0] != "mindspore":
            return self.module(own)
        return Reference(self.program.canonical(path, target))

    @property
    def _frame(self) -> Frame:
        return self._frames[-1]

    def write(self, table: dict[object, Value], name: object, value: Value) -> None:
        if self._journals:
            self._journals[-1].setdefault((id(table), name), (table, table.get(name, _MISSING)))
        table[name] = value

    def _name(self, name: str, value: Value) -> None:
        self.write(self._frame.scope.names, name, value)

    def _look_up(self, name: str) -> Value:
        scope: Scope | None = self._frame.scope
        while scope is not None:
            found = scope.names.get(name)
            if isinstance(found, Later):
                found = self._arrived(found)
                scope.names[name] = found
            if found is not None:
                return found
            scope = scope.outer
        for base in reversed(self.program.facts(self._frame.scope.path).stars):
            if base.partition(".")[0] == "mindspore":
                return Reference(self.program.canonical(self._frame.scope.path, f"{base}.{name}"))
        return Reference(name)

    # ------------------------------------------------------------------ statements

    def _block(self, body: Items[ast.stmt]) -> bool:
        """Follow statements; tell whether the run goes on after them."""
        known = self._facts
        self._facts = dict(known)
        try:
            return all(self._statement(statement) for statement in body)
        finally:
            self._facts = known

    def _statement(self, node: ast.stmt) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise OutOfBudget
        self.executed.add((self._frame.scope.path, node.lineno))
        handler = _STATEMENTS.get(type(node))
        return handler(self, node) if handler else True

    def _do_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        self._import(node)
        return True

    def _do_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        function: Value = Function(self._frame.scope, node.name, node, defaults=self._defaults(node.args))
        for decorator in reversed(node.decorator_list):
            function = self._decorated(decorator, function)
        self._name(node.name, function)
        return True

    def _decorated(self, decorator: ast.expr, function: Value) -> Value:
        wrapper = self.value(decorator)
        if isinstance(wrapper, (Function, Partial)) or (isinstance(wrapper, Class) and not _is_property(decorator)):
            return self.call(wrapper, [function], {}, decorator)
        return function

    def _defaults(self, arguments: ast.arguments) -> dict[str, Value]:
        given = [*arguments.posonlyargs, *arguments.args]
        found = {
            argument.arg: self.value(default)
            for argument, default in zip(reversed(given), reversed(arguments.defaults), strict=False)
        }
        for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                found[argument.arg] = self.value(value)
        return found

    def _do_class(self, node: ast.ClassDef) -> bool:
        bases = tuple(self.value(base) for base in node.bases)
        names: Names = {}
        outer = self._frame.scope
        kind = Class(outer, node.name, node, bases, names)
        self._frames.append(Frame(node.name, Scope(outer.path, names, outer), kind, None))
        self._block([item for item in node.body if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))])
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # A method sees the names around the class, not those in it.
                method = Function(outer, item.name, item, kind, defaults=self._defaults(item.args))
                names[item.name] = method
        self._frames.pop()
        self._name(node.name, kind)
        return True

    def _do_return(self, node: ast.Return) -> bool:
        self._frame.returned.append(self.value(node.value) if node.value else NONE)
        return False

    def _do_stop(self, node: ast.stmt) -> bool:
        return False

    def _do_expression(self, node: ast.Expr) -> bool:
        value = self.value(node.value)
        return not (isinstance(value, Symbol) and value.key == ("end of the run",))

    def _do_assign(self, node: ast.Assign) -> bool:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value)
        return True

    def _do_annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self._assign(node.target, self.value(node.value))
        return True

    def _do_augmented(self, node: ast.AugAssign) -> bool:
        before = self.value(node.target)
        added = self.value(node.value)
        self._assign(node.target, self._operated(node.op, before, added))
        return True

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            scope = self._frame.scope
            if target.id in scope.global_names:
                self.write(self._modules[scope.path].scope.names, target.id, value)
            else:
                self._name(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript):
            holder = self.value(target.value)
            index = self.value(target.slice)
            if isinstance(holder, Table):
                if isinstance(index, Constant):
                    self.write(holder.names, index.value, value)
                else:
                    holder.open = True
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, self._unpacked(value, target.elts), strict=True):
                self._assign(part, item)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, value)

    def _unpacked(self, value: Value, targets: list[ast.expr]) -> list[Value]:
        starred = any(isinstance(target, ast.Starred) for target in targets)
        columns: list[list[Value]] = [[] for _ in targets]
        for option in options(value):
            fits = isinstance(option, Sequence) and len(option.items) == len(targets) and not starred
            for number, column in enumerate(columns):
                column.append(option.items[number] if fits else self.element(option, number))  # type: ignore[attr-defined]
        return [join(column) for column in columns]

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
                found = self.call(method, [derived(("index", value.key))] if name == "__getitem__" else [], {}, None)
                if found is value:
                    continue
                return self.element(found) if name == "__iter__" else found
        return derived(("item", value.key), value)

    def set_attribute(self, holder: Value, name: str, value: Value) -> None:
        for option in options(holder):
            if isinstance(option, (Object, Class)):
                self.write(option.names, name, value)
            elif isinstance(option, ModuleValue):
                self.write(option.scope.names, name, value)
            elif isinstance(option, Table):
                self.write(option.names, name, value)
            elif not isinstance(option, (Constant, Parallel)):
                self.write(self._stored, ("attribute", option.key, name), value)

    def _do_if(self, node: ast.If) -> bool:
        test = self.value(node.test)
        return self._branch(test, lambda: self._block(node.body), lambda: self._block(node.orelse))

    def _branch(self, test: Value, then: Callable[[], bool], otherwise: Callable[[], bool]) -> bool:
        known = self.truth(test)
        if known is not None:
            return then() if known else otherwise()
        key, positive = _positive(test.key)
        goes_on = []
        outcomes = []
        for side, run in ((True, then), (False, otherwise)):
            facts = self._facts
            self._facts = dict(facts)
            self._assume(key, side is positive)
            self._journals.append({})
            goes_on.append(run())
            journal = self._journals.pop()
            self._facts = facts
            after = {place: table.get(place[1], _MISSING) for place, (table, _) in journal.items()}
            for place, (table, before) in journal.items():
                if before is _MISSING:
                    table.pop(place[1], None)
                else:
                    table[place[1]] = before
            outcomes.append((journal, after))
        (first, first_after), (second, second_after) = outcomes
        for place, (table, before) in {**first, **second}.items():
            results = [
                after.get(place, before)
                for after, alive in ((first_after, goes_on[0]), (second_after, goes_on[1]))
                if alive
            ]
            results = [result for result in results if result is not _MISSING]
            if results:
                self.write(table, place[1], join(results))
        if goes_on == [False, True]:
            self._assume(key, not positive)
        elif goes_on == [True, False]:
            self._assume(key, positive)
        return any(goes_on)

    def _do_for(self, node: ast.For | ast.AsyncFor) -> bool:
        self._assign(node.target, self.element(self.value(node.iter)))
        self._optional(lambda: self._block(node.body))
        return self._block(node.orelse)

    def _do_while(self, node: ast.While) -> bool:
        test = self.value(node.test)
        if self.truth(test) is False:
            return self._block(node.orelse)
        self._optional(lambda: self._block(node.body))
        return True

    def _optional(self, run: Callable[[], bool]) -> None:
        """Follow what may run any number of times."""
        self._journals.append({})
        run()
        journal = self._journals.pop()
        for (_, name), (table, before) in journal.items():
            after = table[name]
            if before is _MISSING:
                table.pop(name)
            else:
                table[name] = before
            self.write(table, name, after if before is _MISSING else join([after, before]))

    def _do_with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                if isinstance(value, Object):
                    enter = self.member(value, "__enter__")
                    value = self.call(enter, [], {}, node) if enter is not None else value
                self._assign(item.optional_vars, value)
        return self._block(node.body)

    def _do_try(self, node: ast.Try) -> bool:
        goes_on = self._block(node.body)
        if goes_on:
            goes_on = self._block(node.orelse)
        elif node.handlers:
            outcomes = [self._block(handler.body) for handler in node.handlers]
            goes_on = any(outcomes)
        return self._block(node.finalbody) and goes_on

    def _do_global(self, node: ast.Global) -> bool:
        scope = self._frame.scope
        scope.global_names = scope.global_names | set(node.names)
        return True

    def _do_assert(self, node: ast.Assert) -> bool:
        test = self.value(node.test)
        known = self.truth(test)
        if known is None:
            key, positive = _positive(test.key)
            self._assume(key, positive)
        return known is not False

    # ------------------------------------------------------------------ expressions

    def value(self, node: ast.expr) -> Value:
        """Return what ``node`` is here and now."""
        handler = _EXPRESSIONS.get(type(node))
        found = handler(self, node) if handler else self._unknown(node)
        if isinstance(found, Symbol):
            found = self._equal.get(found.key, found)
        if isinstance(found, Parallel) or (isinstance(found, Symbol) and found.parallel):
            self._note_reader()
        return found

    def _note_reader(self) -> None:
        for frame in self._frames:
            if frame.owner is not None:
                self.rank_readers.add(frame.owner.key)
        for key in self._active:
            self.rank_readers.add(key)

    def place(self, node: ast.AST | None) -> Place:
        """Return where ``node`` stands."""
        return Place(self._frame.scope.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    def _unknown(self, node: ast.expr) -> Value:
        inner = [self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return derived(("expression", self.place(node)), *inner)

    def _constant(self, node: ast.Constant) -> Value:
        return Constant(node.value)

    def _read_name(self, node: ast.Name) -> Value:
        return self._look_up(node.id)

    def _read_attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr)

    def attribute(self, holder: Value, name: str) -> Value:
        """Return ``holder.name``."""
        if isinstance(holder, Either):
            return join(self.attribute(option, name) for option in holder.options)
        stored = self._stored.get(("attribute", holder.key, name))
        if stored is not None:
            return stored
        if isinstance(holder, ModuleValue):
            found = self._exported(holder.scope.path, name)
            if found is not None:
                return found
            below = self.program.module(holder.scope.path, f".{name}")
            return self.module(below) if below else Symbol(("attribute", holder.key, name))
        if isinstance(holder, Reference):
            return self._foreign.attribute(holder, name, self._frame.scope.path)
        if isinstance(holder, Object):
            member = self.member(holder, name)
            if member is not None:
                return member
            is_foreign = any(base.startswith("mindspore.") for base in holder.kind.foreign())
            return Method(holder, name) if is_foreign else Symbol(("attribute", holder.key, name))
        if isinstance(holder, Class):
            for kind in holder.lineage():
                if name in kind.names:
                    return kind.names[name]
            return Method(holder, name)
        if isinstance(holder, Table) and name in holder.names:
            held = holder.names[name]
            return Symbol(("attribute", holder.key, name)) if holder.settings and isinstance(held, Constant) else held
        if isinstance(holder, Symbol) or (isinstance(holder, Table) and holder.settings and name not in _TABLE_METHODS):
            return (
                derived(("attribute", holder.key, name), holder)
                if isinstance(holder, Symbol)
                else Symbol(("attribute", holder.key, name))
            )
        return Method(holder, name)

    def member(self, holder: Object, name: str) -> Value | None:
        if name in holder.names:
            return holder.names[name]
        for kind in holder.kind.lineage():
            found = kind.names.get(name)
            if found is not None:
                return self._bound(found, holder)
        return None

    def _bound(self, found: Value, holder: Object) -> Value:
        if not isinstance(found, Function) or found.owner is None:
            return found
        decorators = [] if isinstance(found.node, ast.Lambda) else found.node.decorator_list
        kinds = {dotted(decorator) for decorator in decorators}
        if "staticmethod" in kinds:
            return found
        method = Function(found.scope, found.name, found.node, found.owner, holder, found.defaults)
        return self.call(method, [], {}, None) if "property" in kinds else method

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        answers: list[Value] = []
        for comparison, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            answers.append(self._compared_values(comparison, left, right))
            left = right
        return answers[0] if len(answers) == 1 else self._combined("and", answers)

    def _compared_values(self, comparison: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(left, Either) or isinstance(right, Either):
            found = [self._compared_values(comparison, a, b) for a in options(left) for b in options(right)]
            answers = {answer.value if isinstance(answer, Constant) else None for answer in found}
            if len(answers) == 1 and None not in answers:
                return found[0]
            return derived((_SIGNS[type(comparison)], left.key, right.key), left, right)
        sign = _SIGNS[type(comparison)]
        if isinstance(right, Parallel) and not isinstance(left, Parallel) and sign in _MIRRORED:
            return self._compared_values(_MIRRORED[sign](), right, left)
        if isinstance(left, Symbol) and self._is_rank_size(left.key):
            left = RANK_SIZE
        known = _decided(sign, left, right)
        if known is not None:
            return Constant(known)
        # One test under one name, whichever way it is put.
        opposite = {"!=": "==", "is not": "is", "not in": "in"}.get(sign)
        if opposite:
            return self._negated(self._compared_values(_OPERATORS[opposite](), left, right))
        key_right = right.key
        if isinstance(right, Sequence):
            key_right = ("choice", tuple(sorted((item.key for item in right.items), key=repr)))
        return derived((sign, left.key, key_right), left, right)

    def _negated(self, value: Value) -> Value:
        known = self.truth(value)
        if known is not None:
            return Constant(not known)
        key, positive = _positive(value.key)
        return derived(("not", key) if positive else key, value)

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return self._negated(value)
        if isinstance(value, Constant) and isinstance(value.value, (int, float)) and isinstance(node.op, ast.USub):
            return Constant(-value.value)
        return derived(("unary", type(node.op).__name__, value.key), value)

    def _boolean(self, node: ast.BoolOp) -> Value:
        stops = isinstance(node.op, ast.Or)
        left: list[Value] = []
        for part in node.values:
            value = self.value(part)
            known = self.truth(value)
            if known is stops:
                left.append(value)
                break
            if known is None or part is node.values[-1]:
                left.append(value)
        if len(left) == 1:
            return left[0]
        return self._combined("or" if stops else "and", left)

    def _combined(self, sign: str, values: list[Value]) -> Value:
        return derived((sign, tuple(_positive(value.key) for value in values)), *values)

    def _conditional(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        results: list[Value] = []

        def side(expression: ast.expr) -> Callable[[], bool]:
            def run() -> bool:
                results.append(self.value(expression))
                return True

            return run

        self._branch(test, side(node.body), side(node.orelse))
        return join(results)

    def _operation(self, node: ast.BinOp) -> Value:
        return self._operated(node.op, self.value(node.left), self.value(node.right))

    def _operated(self, sign: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, Pipeline) and isinstance(sign, ast.Add):
            return Pipeline(left.data | parts(right)[0])
        if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(sign, ast.Add):
            return Sequence([*left.items, *right.items])
        if isinstance(left, Constant) and isinstance(right, Constant):
            known = _computed(sign, left.value, right.value)
            if known is not None:
                return known
        return derived(("operation", type(sign).__name__, left.key, right.key), left, right)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                held = self.value(element.value)
                items.extend(held.items if isinstance(held, Sequence) else [self.element(held)])
            else:
                items.append(self.value(element))
        return Sequence(items)

    def _dict(self, node: ast.Dict) -> Value:
        table = Table()
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            name = self.value(key) if key is not None else None
            if isinstance(name, Constant):
                table.names[name.value] = value
            elif name is None and isinstance(value, Table):
                table.names.update(value.names)
                table.open = table.open or value.open
            else:
                table.open = True
        return table

    def _subscript(self, node: ast.Subscript) -> Value:
        holder = self.value(node.value)
        index = self.value(node.slice)
        return join(self._item(option, index) for option in options(holder))

    def _item(self, holder: Value, index: Value) -> Value:
        if isinstance(holder, Sequence) and holder.items:
            if (
                isinstance(index, Constant)
                and isinstance(index.value, int)
                and -len(holder.items) <= index.value < len(holder.items)
            ):
                return holder.items[index.value]
            return join(holder.items)
        if isinstance(holder, Table) and holder.names:
            if isinstance(index, Constant) and index.value in holder.names:
                return holder.names[index.value]
            return join(holder.names.values())
        if isinstance(holder, Reference):
            return self._foreign.item(holder, index)
        if isinstance(holder, Object):
            method = self.member(holder, "__getitem__")
            if method is not None:
                return self.call(method, [index], {}, None)
        if isinstance(index, Constant) and isinstance(index.value, str) and isinstance(holder, Symbol):
            # cfg["x"] and cfg.x are one thing in the configuration classes in use.
            return self.attribute(holder, index.value)
        return derived(("item", holder.key, index.key), holder)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        self._generators(node.generators)
        return Sequence([self.value(node.elt)])

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        self._generators(node.generators)
        return Table({"?": self.value(node.value)}, open=True)

    def _generators(self, generators: list[ast.comprehension]) -> None:
        for generator in generators:
            self._assign(generator.target, self.element(self.value(generator.iter)))
            for test in generator.ifs:
                self.value(test)

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(self._frame.scope, "lambda", node, defaults=self._defaults(node.args))

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else NONE
        self._frame.returned.append(self.element(value) if isinstance(node, ast.YieldFrom) else value)
        return Symbol(("sent", self.place(node)))

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self._assign(node.target, value)
        return value

    def _inner(self, node: ast.Await | ast.Starred | ast.FormattedValue) -> Value:
        return self.value(node.value)

    # ------------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and _is_super(node.func.value):
            return self._call_super(node)
        function = self.value(node.func)
        arguments, keywords, is_open = self._arguments(node)
        return self.call(function, arguments, keywords, node, is_open)

    def _arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
        arguments: list[Value] = []
        keywords: dict[str, Value] = {}
        is_open = False
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                held = self.value(argument.value)
                if isinstance(held, Sequence):
                    arguments.extend(held.items)
                else:
                    is_open = True
            else:
                arguments.append(self.value(argument))
        for word in node.keywords:
            value = self.value(word.value)
            if word.arg is not None:
                keywords[word.arg] = value
            elif isinstance(value, Table):
                keywords.update((name, item) for name, item in value.names.items() if isinstance(name, str))
                is_open = is_open or value.open
            else:
                is_open = True
        return arguments, keywords, is_open

    def _call_super(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Attribute)
        arguments, keywords, is_open = self._arguments(node)
        this = self._frame.scope.names.get(next(iter(self._frame.scope.names), ""))
        owner = self._frame.owner
        if isinstance(this, Object) and owner is not None:
            above = [kind for kind in owner.lineage() if kind is not owner]
            for kind in above:
                found = kind.names.get(node.func.attr)
                if isinstance(found, Function):
                    return self.call(self._bound(found, this), arguments, keywords, node, is_open)
            return self._foreign.base_call(this, node.func.attr, arguments, keywords, node)
        return derived(("super", self.place(node)), *arguments, *keywords.values())

    def call(
        self,
        function: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST | None,
        is_open: bool = False,
    ) -> Value:
        """Return what calling ``function`` gives."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise OutOfBudget
        if isinstance(function, Either):
            return join([self.call(option, arguments, keywords, node, is_open) for option in function.options])
        if isinstance(function, Function):
            return self._call_function(function, arguments, keywords, node, is_open)
        if isinstance(function, Class):
            return self._make(function, arguments, keywords, node, is_open)
        if isinstance(function, Partial):
            given = {**dict(function.keywords), **keywords}
            return self.call(function.function, [*function.arguments, *arguments], given, node, is_open)
        if isinstance(function, Object):
            return self._call_object(function, arguments, keywords, node, is_open)
        return self._foreign.call(function, arguments, keywords, node, is_open)

    def event(
        self, name: str, arguments: Items[Value], keywords: Mapping[str, Value], node: ast.AST | None, is_open: bool
    ) -> Event:
        """Note a call of another library."""
        end = (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)
        calls = tuple(frame.place for frame in self._frames if frame.place is not None)
        facts = tuple((key, holds) for key, holds in self._facts.items() if self._given.get(key) is not holds)
        found = Event(
            len(self.events),
            name,
            self.place(node),
            end,
            self._frame.function,
            tuple(arguments),
            tuple(keywords.items()),
            is_open,
            calls,
            facts,
            tuple(self._rank_names()),
        )
        self.events.append(found)
        return found

    def _rank_names(self) -> Iterator[tuple[str, Value]]:
        for name, value in self._frame.scope.names.items():
            if isinstance(name, str) and any(isinstance(option, Parallel) for option in options(value)):
                yield name, value

    def _make(
        self, kind: Class, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None, is_open: bool
    ) -> Value:
        made = Object(kind, self.place(node))
        for name in ("__new__", "__init__"):
            maker = next((one.names[name] for one in kind.lineage() if name in one.names), None)
            if isinstance(maker, Function) and name == "__init__":
                self.call(self._bound(maker, made), arguments, keywords, node, is_open)
                return made
        self._foreign.base_call(made, "__init__", arguments, keywords, node)
        return made

    def _call_object(
        self, called: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST | None, is_open: bool
    ) -> Value:
        known = self._foreign.called(called, arguments, keywords, node)
        if known is not None:
            return known
        for name in ("__call__", "construct"):
            method = self.member(called, name)
            if method is not None:
                return self.call(method, arguments, keywords, node, is_open)
        return derived(("called", called.key, self.place(node)), *arguments, *keywords.values())

    def _call_function(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST | None,
        is_open: bool,
    ) -> Value:
        if function.bound is not None:
            arguments = [function.bound, *arguments]
        key = function.key
        if self._active.count(key) > 1 or len(self._active) >= _DEEPEST:
            return derived(("again", key, self.place(node)), *arguments, *keywords.values())
        followed = self._followed.setdefault((function.scope.path, function.node.lineno), [])
        if len(followed) >= _OFTEN:
            same = len({result.key for result in followed}) == 1
            return followed[0] if same else derived(("again", key, self.place(node)), *arguments, *keywords.values())
        result = self._follow(function, key, arguments, keywords, node, is_open)
        followed.append(result)
        return result

    def _follow(
        self,
        function: Function,
        key: Key,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST | None,
        is_open: bool,
    ) -> Value:
        names = self._parameters(function, arguments, keywords, node, is_open)
        place = self.place(node) if node is not None else None
        self._frames.append(
            Frame(_qualified(function), Scope(function.scope.path, names, function.scope), function.owner, place)
        )
        self._active.append(key)
        facts = self._facts
        self._facts = dict(facts)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body)
            goes_on = self._block(function.node.body)
            returned = self._frame.returned
            if self._is_generator(function):
                return Sequence([join(returned)] if returned else [])
            if goes_on:
                return join([*returned, NONE]) if returned else NONE
            return join(returned) if returned else Symbol(("end of the run",))
        finally:
            self._facts = facts
            self._active.pop()
            self._frames.pop()

    def _is_generator(self, function: Function) -> bool:
        if isinstance(function.node, ast.Lambda):
            return False
        key = (function.scope.path, function.node.lineno)
        if key not in self._generator_functions:
            self._generator_functions[key] = _yields(function.node)
        return self._generator_functions[key]

    def _parameters(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST | None,
        is_open: bool,
    ) -> Names:
        signature = function.node.args
        given = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        names: Names = dict(zip(given, arguments, strict=False))
        rest = dict(keywords)
        for name in (*given, *(argument.arg for argument in signature.kwonlyargs)):
            if name in rest:
                names[name] = rest.pop(name)
            elif name not in names:
                default = function.defaults.get(name)
                unknown = Symbol(("parameter", function.key, name, self.place(node)))
                names[name] = unknown if is_open or default is None else default
        if signature.vararg:
            names[signature.vararg.arg] = Sequence(list(arguments[len(given) :]))
        if signature.kwarg:
            names[signature.kwarg.arg] = Table(named(rest), open=is_open)
        return names


def _defines(statement: ast.stmt) -> bool:
    """Tell whether ``statement``, at module level, only gives names to things."""
    if isinstance(statement, ast.If):
        return all(map(_defines, (*statement.body, *statement.orelse)))
    if isinstance(statement, ast.Try):
        handled = [item for handler in statement.handlers for item in handler.body]
        return all(map(_defines, (*statement.body, *statement.orelse, *statement.finalbody, *handled)))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, _DEFINITIONS)


_DEFINITIONS = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Pass,
    ast.Raise, ast.Assert,
)  # fmt: skip


def _is_property(decorator: ast.expr) -> bool:
    return dotted(decorator) in ("property", "staticmethod", "classmethod")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_choice(key: Key) -> bool:
    return isinstance(key, tuple) and bool(key) and key[0] == "choice"


def _positive(key: Key) -> tuple[Key, bool]:
    """Take ``not`` off a test: the test in it, and whether it stands for itself."""
    if isinstance(key, tuple) and key and key[0] == "not":
        return key[1], False
    return key, True


def _qualified(function: Function) -> str:
    return f"{function.owner.name}.{function.name}" if function.owner else function.name


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    stack: list[ast.AST] = list(node.body)
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(item))
    return False


def _computed(sign: ast.operator, left: object, right: object) -> Value | None:
    if isinstance(left, str) and isinstance(right, str) and isinstance(sign, ast.Add):
        return Constant(left + right)
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        return None
    if isinstance(sign, ast.Add):
        return Constant(left + right)
    if isinstance(sign, ast.Sub):
        return Constant(left - right)
    if isinstance(sign, ast.Mult):
        return Constant(left * right)
    if isinstance(sign, ast.FloorDiv) and right:
        return Constant(left // right)
    return None


def _decided(sign: str, left: Value, right: Value) -> bool | None:
    """Decide a comparison of values that are known well enough."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _compared_constants(sign, left.value, right.value)
    if sign in ("is", "is not", "==", "!=") and isinstance(right, Constant) and right.value is None:
        if not isinstance(left, (Symbol, Method, Made)) or (sign.startswith("is") and isinstance(left, Made)):
            return sign in ("is not", "!=")
    if sign in ("in", "not in") and isinstance(right, Sequence) and isinstance(left, Constant):
        if any(isinstance(item, Constant) and item.value == left.value for item in right.items):
            return sign == "in"
        return sign == "not in" if all(isinstance(item, Constant) for item in right.items) else None
    if left is RANK_SIZE and isinstance(right, Constant) and isinstance(right.value, int):
        # All that is known of the number of ranks is that there are at least two.
        if right.value <= 1:
            return {">": True, ">=": True, "!=": True, "==": False, "<": False, "<=": False}.get(sign)
        return {">=": True, "<": False}.get(sign) if right.value == 2 else None
    if isinstance(left, Parallel) and isinstance(right, Constant) and isinstance(right.value, int):
        if right.value < 0:
            return {">": True, ">=": True, "!=": True, "==": False, "<": False, "<=": False}.get(sign)
        if right.value == 0:
            return {">=": True, "<": False}.get(sign)
    return None


def _compared_constants(sign: str, left: object, right: object) -> bool | None:
    compare = _COMPARISONS.get(sign.removeprefix("not ").replace("is not", "!=").replace("is", "=="))
    if compare is None:
        return None
    try:
        holds = bool(compare(left, right))
    except TypeError:
        return None
    return holds is not sign.startswith("not ")


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_OPERATORS: dict[str, type[ast.cmpop]] = {sign: kind for kind, sign in _SIGNS.items()}
_COMPARISONS: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: left in right,
}
_MIRRORED: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Gt, "<=": ast.GtE, ">": ast.Lt, ">=": ast.LtE,
}  # fmt: skip
_STATEMENTS: dict[type[ast.stmt], Callable[..., bool]] = {
    ast.Import: Rehearsal._do_import,
    ast.ImportFrom: Rehearsal._do_import,
    ast.FunctionDef: Rehearsal._do_function,
    ast.AsyncFunctionDef: Rehearsal._do_function,
    ast.ClassDef: Rehearsal._do_class,
    ast.Return: Rehearsal._do_return,
    ast.Raise: Rehearsal._do_stop,
    ast.Break: Rehearsal._do_stop,
    ast.Continue: Rehearsal._do_stop,
    ast.Expr: Rehearsal._do_expression,
    ast.Assign: Rehearsal._do_assign,
    ast.AnnAssign: Rehearsal._do_annotated,
    ast.AugAssign: Rehearsal._do_augmented,
    ast.If: Rehearsal._do_if,
    ast.For: Rehearsal._do_for,
    ast.AsyncFor: Rehearsal._do_for,
    ast.While: Rehearsal._do_while,
    ast.With: Rehearsal._do_with,
    ast.AsyncWith: Rehearsal._do_with,
    ast.Try: Rehearsal._do_try,
    ast.Global: Rehearsal._do_global,
    ast.Assert: Rehearsal._do_assert,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: Rehearsal._constant,
    ast.Name: Rehearsal._read_name,
    ast.Attribute: Rehearsal._read_attribute,
    ast.Compare: Rehearsal._compare,
    ast.UnaryOp: Rehearsal._unary,
    ast.BoolOp: Rehearsal._boolean,
    ast.IfExp: Rehearsal._conditional,
    ast.BinOp: Rehearsal._operation,
    ast.List: Rehearsal._list,
    ast.Tuple: Rehearsal._list,
    ast.Set: Rehearsal._list,
    ast.Dict: Rehearsal._dict,
    ast.Subscript: Rehearsal._subscript,
    ast.ListComp: Rehearsal._comprehension,
    ast.SetComp: Rehearsal._comprehension,
    ast.GeneratorExp: Rehearsal._comprehension,
    ast.DictComp: Rehearsal._dict_comprehension,
    ast.Lambda: Rehearsal._lambda,
    ast.Yield: Rehearsal._yield,
    ast.YieldFrom: Rehearsal._yield,
    ast.NamedExpr: Rehearsal._named,
    ast.Await: Rehearsal._inner,
    ast.Starred: Rehearsal._inner,
    ast.FormattedValue: Rehearsal._inner,
    ast.Call: Rehearsal._call,
}
