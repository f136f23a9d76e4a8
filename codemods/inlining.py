"""Expressions written where they are used instead of where they were computed, with the same value there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import libcst as cst

from codemods.base import Manual
from codemods.statements import in_lines, indentation, inner_comments, line_limit
from mslint.findings import Edit, Position
from mslint.semantics.cells import is_self, method_of, self_name
from mslint.semantics.formula import Expression, read
from mslint.semantics.gradients import statement_of
from mslint.semantics.module import Binding, Module, find, walk
from mslint.semantics.reaching import from_rounds_before, reaching

_LINEAR = ("mean", "sum", "reshape", "view", "squeeze", "astype", "float", "flatten", "transpose")
"""Methods of tensors that make no difference between a minus before and after them."""


class Strength(IntEnum):
    """How tightly an expression holds together; what is weaker than its surroundings needs brackets."""

    SUM = 0
    PRODUCT = 1
    SIGNED = 2
    ATOM = 3


@dataclass(frozen=True)
class Written:
    """The text of an expression in three parts, so that a long one can be broken at the commas between its arguments."""

    head: str
    arguments: tuple[str, ...] = ()
    tail: str = ""
    strength: Strength = Strength.ATOM

    @property
    def code(self) -> str:
        """The text in one line."""
        return f"{self.head}{', '.join(self.arguments)}{self.tail}"

    def in_brackets(self) -> Written:
        """Return the expression in brackets."""
        return Written(f"({self.head}", self.arguments, f"{self.tail})")

    def at_least(self, strength: Strength) -> Written:
        """Return the expression, in brackets if it is weaker than ``strength``."""
        return self if self.strength >= strength else self.in_brackets()

    def negated(self) -> Written:
        """Return minus the expression."""
        if self.strength is Strength.SIGNED and self.head.startswith("-"):
            return Written(self.head[1:], self.arguments, self.tail)
        inner = self.at_least(Strength.PRODUCT)
        return Written(f"-{inner.head}", inner.arguments, inner.tail, min(inner.strength, Strength.SIGNED))


def strength_of(node: cst.CSTNode) -> Strength:
    """Return how tightly ``node`` holds together as it is written."""
    if getattr(node, "lpar", ()) or isinstance(
        node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.List, cst.SimpleString)
    ):
        return Strength.ATOM
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return Strength.SIGNED
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        return Strength.PRODUCT
    return Strength.SUM


def spliced(module: Module, node: cst.CSTNode, replacements: Mapping[cst.CSTNode, str]) -> str:
    """Return the text of ``node`` in one line, with ``replacements`` in the place of parts of it."""
    if inner_comments(module, node):
        raise Manual(f"the expression in row {module.start(node).row} has comments inside; move them out first")
    start, pieces = module.start(node), list[str]()
    for part in sorted(replacements, key=module.start):
        pieces += [module.text(start, module.start(part)), replacements[part]]
        start = module.end(part)
    text = "".join([*pieces, module.text(start, module.end(node))])
    brackets = "(" * len(getattr(node, "lpar", ())), ")" * len(getattr(node, "rpar", ()))
    return _joined(f"{brackets[0]}{text}{brackets[1]}")


def _joined(text: str) -> str:
    if '"""' in text or "'''" in text:
        raise Manual("the expression holds a string of several lines; take it out first")
    joined = ""
    for line in text.split("\n"):
        piece = line.strip().rstrip("\\").rstrip()
        tight = not joined or joined.endswith(("(", "[", "{")) or piece.startswith((")", "]", "}"))
        joined = joined.rstrip(",") if piece.startswith(")") else joined
        joined += piece if tight else f" {piece}"
    return joined


def sole_binding(module: Module, name: cst.Name, remedy: str) -> Binding:
    """Return the only assignment that may have given the local variable ``name`` its value; else it is left to a person."""
    found = [*from_rounds_before(module, name), *reaching(module, name)]
    if len(found) == 1 and module.scope(found[0].node) is not module.scope(name):
        raise Manual(f"`{name.value}` belongs to the code around this function; {remedy}")
    if len(found) != 1:
        rows = ", ".join(str(module.start(binding.node).row) for binding in reversed(found))
        raise Manual(f"`{name.value}` may have several values (rows {rows}); {remedy}" if rows else remedy)
    _check_whole(module, name, found[0])
    return found[0]


def _check_whole(module: Module, name: cst.Name, binding: Binding) -> None:
    """Refuse if parts of what ``binding`` gives to ``name`` may have been written in place before it is read there."""
    scope = module.scope(name)
    order = {item: index for index, item in enumerate(walk(scope))}
    around = set(module.ancestors(name)) - set(module.ancestors(binding.node))
    loops = [item for item in around if isinstance(item, (cst.For, cst.While)) and item in order]
    for write in writes_in_place(module, scope, name.value):
        between = order.get(binding.node, -1) < order[write] < order[name]
        if between or any(loop in set(module.ancestors(write)) for loop in loops):
            row = module.start(write).row
            raise Manual(f"`{name.value}` is written in place in row {row}; give what is written a name of its own")


def writes_in_place(module: Module, scope: cst.CSTNode, name: str) -> Iterator[cst.CSTNode]:
    """Yield the statements ``name[...] = value`` and the calls ``name.add_(value)`` in ``scope``, a loop perhaps."""
    for item in walk(scope):
        if isinstance(item, cst.Assign):
            targets = [part for target in item.targets for part in _parts(target.target)]
        elif isinstance(item, cst.AugAssign):
            targets = [item.target]
        elif isinstance(item, cst.Call) and isinstance(item.func, cst.Attribute):
            word = item.func.attr.value
            if word.endswith("_") and not word.endswith("__") and _root(module, item.func.value) == name:
                yield item
            continue
        else:
            continue
        if any(isinstance(target, cst.Subscript) and _root(module, target) == name for target in targets):
            yield item


def check_unchanged(module: Module, node: cst.CSTNode, place: cst.CSTNode, ignored: Iterable[str] = ()) -> None:
    """Refuse to read ``node`` at ``place``, further down in its function, if its value may be another one there."""
    if module.scope(node) is not module.scope(place):
        raise Manual(f"what is computed in row {module.start(node).row} is not within reach where it is needed")
    order = {item: index for index, item in enumerate(walk(module.scope(place)))}
    above, around = set(module.ancestors(node)), set(module.ancestors(place))
    loops = [item for item in around - above if isinstance(item, (cst.For, cst.While)) and item in order]
    for name in sorted(set(_variables(module, node)) - set(ignored)):
        for store in _stores(module, module.scope(place), name):
            after = store in above or order[node] < order[store]
            between = after and order[store] < order[place] and store not in around
            if between or any(loop in set(module.ancestors(store)) for loop in loops):
                row = module.start(store).row
                raise Manual(
                    f"`{name}` changes in row {row}, between where it is used and where it would be; rename one"
                )


def check_unsharded(module: Module, node: cst.CSTNode) -> None:
    """Refuse where the class shards its operators by hand: a strategy holds for one operator and its number of inputs."""
    owner = module.enclosing(node, cst.ClassDef)
    calls = find(owner, cst.Call) if owner is not None else ()
    if any(isinstance(call.func, cst.Attribute) and call.func.attr.value == "shard" for call in calls):
        raise Manual("the operators here are sharded by hand, which a new one must be too; write it by hand")


def _variables(module: Module, node: cst.CSTNode) -> Iterator[str]:
    for name in find(node, cst.Name):
        parent = module.parents[name]
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            if isinstance(parent.value, cst.Name):
                yield f"{parent.value.value}.{name.value}"
        elif not (isinstance(parent, cst.Arg) and parent.keyword is name):
            yield name.value


def _stores(module: Module, scope: cst.CSTNode, name: str) -> Iterator[cst.CSTNode]:
    """Yield the statements of ``scope`` that give the variable or attribute ``name`` another value, whole or in part."""
    for item in walk(scope):
        targets: list[cst.BaseExpression]
        if isinstance(item, cst.Assign):
            targets = [target.target for target in item.targets]
        elif isinstance(item, (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
            targets = [item.target]
        else:
            continue
        if any(_root(module, part) == name for target in targets for part in _parts(target)):
            yield item


def _parts(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _parts(element.value)
    else:
        yield target


def _root(module: Module, target: cst.BaseExpression) -> str:
    while isinstance(target, cst.Subscript):
        target = target.value
    method = method_of(module, target)
    if isinstance(target, cst.Attribute) and method is not None and is_self(target, self_name(method)):
        return f"{self_name(method)}.{target.attr.value}"
    return target.value if isinstance(target, cst.Name) else ""


def other_reads(module: Module, binding: Binding, known: cst.CSTNode) -> list[cst.Name]:
    """Return the places, ``known`` apart, that read the value which ``binding`` gives to its variable."""
    scope = module.scope(binding.node)
    return [
        name
        for name in find(scope, cst.Name)
        if name.value == binding.name
        and name is not known
        and not _is_no_read(module, name)
        and any(found.node is binding.node for found in reaching(module, name))
    ]


def _is_no_read(module: Module, name: cst.Name) -> bool:
    parent = module.parents[name]
    if isinstance(parent, cst.Element):
        holder = module.parents[module.parents[parent]]
        return isinstance(holder, cst.AssignTarget)
    return (
        isinstance(parent, (cst.AssignTarget, cst.Param))
        or (isinstance(parent, cst.Attribute) and parent.attr is name)
        or (isinstance(parent, cst.Arg) and parent.keyword is name)
        or (isinstance(parent, (cst.AnnAssign, cst.For, cst.CompFor)) and parent.target is name)
    )


def is_simple(node: cst.CSTNode) -> bool:
    """Tell whether ``node`` may be computed twice without a thought: a name, an attribute, a number."""
    if isinstance(node, cst.Attribute):
        return is_simple(node.value)
    return isinstance(node, (cst.Name, cst.BaseNumber))


def named_above(module: Module, node: cst.BaseExpression, name: str) -> tuple[str, list[Edit]]:
    """Return a new variable that holds ``node``, called ``name`` if that is free, and the edits that make it.

    The assignment goes above the statement that computes ``node``, which reads the variable from then on.
    """
    name = free_name(module, node, name)
    line = f"{name} = {spliced(module, node, {})}"
    return name, [lines_above(module, node, [line]), Edit(module.start(node), module.end(node), name)]


def free_name(module: Module, node: cst.CSTNode, name: str) -> str:
    """Return ``name``, with underlines behind it if it means something where ``node`` stands."""
    used = {item.value for item in find(module.scope(node), cst.Name)} | set(module.bindings[module.tree])
    while name in used:
        name += "_"
    return name


def lines_above(module: Module, node: cst.CSTNode, lines: list[str]) -> Edit:
    """Return the edit that puts ``lines`` above the statement that ``node`` is part of."""
    statement = statement_of(module, node)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Manual(f"give what is computed in row {module.start(node).row} a line of its own first")
    indent, start = indentation(module, statement), module.start(statement)
    text = in_lines(module, [indent + line for line in lines])
    return Edit(start, start, text[len(indent) :] + indent)


def put(module: Module, node: cst.BaseExpression, written: Written, name: str) -> list[Edit]:
    """Return the edits that put ``written`` in the place of ``node``, with the brackets that it needs there and no others.

    A minus before ``node`` and one at the start of ``written`` make plus. Comments inside ``node`` go above its statement.
    What makes the line too long goes into a variable called ``name``.
    """
    outer = _carrying_sign(module, node)
    if written.strength is Strength.SIGNED:
        minus = _other_minus(module, outer)
        if minus is not None:
            return [minus, *put(module, node, written.negated(), f"negative_{name}")]
    above = inner_comments(module, node)
    start, end = _with_brackets(module, node)
    demanded = _demanded(module.parents[node], node)
    if outer is not node and written.strength is Strength.SIGNED:
        demanded = _demanded(module.parents[outer], outer)
    bare, written = written, written.at_least(demanded)
    before = module.lines[start.row - 1][: start.column - 1]
    after = module.lines[end.row - 1][end.column - 1 :]
    content = written.code
    is_shorter_apart = len(name) < len(content) and not isinstance(
        module.parents[node], (cst.Assign, cst.AnnAssign, cst.Return)
    )
    longest = max(line_limit(module), len(module.lines[start.row - 1]))
    if len(before + content + after) > longest and is_shorter_apart:
        name = free_name(module, node, name)
        above += [f"{name} = {bare.code}"]
        content = name
    edits = [lines_above(module, node, above)] if above else []
    return [*edits, Edit(start, end, content)]


def _carrying_sign(module: Module, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the call of methods on ``node`` that hand a sign on: minus the mean is the mean of minus."""
    member = module.parents[node]
    call = module.parents[member]
    if not isinstance(member, cst.Attribute) or member.attr.value not in _LINEAR or not isinstance(call, cst.Call):
        return node
    return _carrying_sign(module, call) if not _brackets(node) else node


def _other_minus(module: Module, node: cst.BaseExpression) -> Edit | None:
    """Return the edit of a sign outside of ``node`` that makes up for a minus before ``node`` going."""
    parent = module.parents[node]
    if isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Minus):
        return _without_minus(module, parent)
    if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, (cst.AddAssign, cst.SubtractAssign)):
        old = "+" if isinstance(parent.operator, cst.AddAssign) else "-"
        return _other_sign(module, module.end(parent.target), module.start(parent.value), old)
    if not isinstance(parent, cst.BinaryOperation):
        return None
    if parent.right is node and isinstance(parent.operator, (cst.Add, cst.Subtract)):
        old = "+" if isinstance(parent.operator, cst.Add) else "-"
        return _other_sign(module, module.end(parent.left), module.start(parent.right), old)
    if not isinstance(parent.operator, cst.Multiply) or _logarithms(module, parent) > 1:
        return None
    first: cst.BaseExpression = parent
    while isinstance(first, (cst.BinaryOperation)) and (first is parent or not _brackets(first)):
        first = first.left
    if isinstance(first, cst.UnaryOperation) and isinstance(first.operator, cst.Minus) and not _brackets(first):
        return _without_minus(module, first)
    # No minus in the product: one before it, or the sign of the sum that it is a term of.
    return _other_minus(module, parent)


def _logarithms(module: Module, node: cst.CSTNode) -> int:
    """Count the logarithms in ``node``: of several that are rewritten, one alone could use up the only minus."""
    return sum(read(Expression(module, call)).operation == "log" for call in find(node, cst.Call))


def _without_minus(module: Module, operation: cst.UnaryOperation) -> Edit:
    start = module.start(operation)
    text = module.text(start, module.start(operation.expression))
    blanks = len(text) - len(text[1:].lstrip()) - 1 if "\n" not in text else 0
    return Edit(start, Position(start.row, start.column + 1 + blanks), "")


def _other_sign(module: Module, start: Position, end: Position, old: str) -> Edit:
    """Return the edit that makes the sign ``old`` between two places, plus or minus, the other one."""
    between = module.text(start, end)
    rows = between[: between.index(old)].split("\n")
    place = Position(start.row + len(rows) - 1, (start.column if len(rows) == 1 else 1) + len(rows[-1]))
    return Edit(place, Position(place.row, place.column + 1), "-" if old == "+" else "+")


def _brackets(node: cst.CSTNode) -> bool:
    return bool(getattr(node, "lpar", ()))


def _with_brackets(module: Module, node: cst.CSTNode) -> tuple[Position, Position]:
    """Return where ``node`` starts and ends, its own brackets included where they stand directly at it."""
    start, end = module.start(node), module.end(node)
    for _ in getattr(node, "lpar", ()):
        line, closing = module.lines[start.row - 1], module.lines[end.row - 1]
        if line[start.column - 2 : start.column - 1] != "(" or closing[end.column - 1 : end.column] != ")":
            break
        start, end = Position(start.row, start.column - 1), Position(end.row, end.column + 1)
    return start, end


def _demanded(parent: cst.CSTNode, node: cst.CSTNode) -> Strength:
    """Return how tightly what stands in the place of ``node`` must hold together."""
    if isinstance(parent, (cst.Attribute, cst.Call)) or (isinstance(parent, cst.Subscript) and parent.value is node):
        return Strength.ATOM
    if isinstance(parent, cst.UnaryOperation):
        return Strength.PRODUCT
    if isinstance(parent, cst.BinaryOperation):
        operator, is_right = parent.operator, parent.right is node
        if isinstance(operator, cst.Add) or (isinstance(operator, cst.Subtract) and not is_right):
            return Strength.SUM
        if isinstance(operator, cst.Subtract) or (isinstance(operator, cst.Multiply) and not is_right):
            return Strength.PRODUCT
        if isinstance(operator, (cst.Multiply, cst.Divide)):
            return Strength.PRODUCT if not is_right else Strength.SIGNED
        return Strength.ATOM
    return Strength.SUM
