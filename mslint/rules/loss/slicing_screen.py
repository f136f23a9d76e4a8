"""What the syntax tree of a file must hold for MS203 to report something in it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from itertools import permutations

from mslint.semantics.criteria import (
    ACTIVATIONS,
    ADDING_OPERATORS,
    CHOOSING_OPERATORS,
    FEWEST_ACTIVATED,
    FEWEST_IN_STENCIL,
    FEWEST_ROUNDS,
    GLUING_OPERATORS,
    HOST_METHODS,
    HOST_PACKAGES,
    REDUCING_OPERATORS,
    SCATTERING_OPERATORS,
)
from mslint.semantics.spelling import Function, Spelling, spelling
from mslint.semantics.syntax import (
    arguments,
    children,
    dotted,
    indices,
    is_constant,
    is_name,
    last_name,
    root_name,
    targets,
    walk,
)

_COLLECTING = ADDING_OPERATORS | CHOOSING_OPERATORS | GLUING_OPERATORS | SCATTERING_OPERATORS
_GATHERING = GLUING_OPERATORS | REDUCING_OPERATORS
_LISTING = (ast.Tuple, ast.List, ast.ListComp)


def has_fragments(tree: ast.Module) -> bool:
    """Tell whether a function of ``tree`` may compute rows or pieces of a tensor one by one."""
    file = spelling(tree)
    return any(
        file.is_trained(function)
        and (_may_cut_pieces(file, function) or _may_loop(file, function) or _may_comprehend(file, function))
        for function in file.functions
    )


def _may_loop(file: Spelling, function: Function) -> bool:
    """Tell whether a loop of ``function`` may run over rows, or concatenate to what there is."""
    for loop in function.loops:
        body = _Body(file, loop.body)
        if body.grows():
            return True
        header = _header(file, function, loop.target, loop.iter)
        if header is None or not body.is_the_same_for_all(header) or body.hands_on():
            continue
        if not body.collects(header) and body.lists().isdisjoint(_glued(file, function)):
            continue
        if _may_read_rows(file, function, body, header):
            return True
    return False


def _may_comprehend(file: Spelling, function: Function) -> bool:
    """Tell whether ``function`` may make one tensor of what a comprehension computes row by row."""
    for call in function.calls:
        for value in map(_unwrapped, arguments(call)):
            if not isinstance(value, (ast.ListComp, ast.GeneratorExp)) or not file.may_be(call.func, _GATHERING):
                continue
            over = value.generators[0]
            header = _header(file, function, over.target, over.iter)
            if header is None or len(value.generators) > 1 or over.ifs:
                continue
            body = _Body(file, [value.elt])
            if body.is_the_same_for_all(header) and _may_read_rows(file, function, body, header):
                return True
    return False


def _glued(file: Spelling, function: Function) -> set[str]:
    """Return the variables, and attributes, that ``function`` may make one tensor of."""
    return {
        last_name(_unwrapped(value))
        for part in (function.outermost, *function.outermost.nested)
        for call in part.calls
        if file.may_be(call.func, _GATHERING)
        for value in arguments(call)
    }


@dataclass(frozen=True)
class _Header:
    """The variables of a loop that count, and those that hold rows."""

    counters: frozenset[str]
    elements: frozenset[str]


def _header(file: Spelling, function: Function, target: ast.expr, over: ast.expr) -> _Header | None:
    """Return the variables of a loop; None if it cannot run over the rows of a tensor."""
    several = isinstance(target, (ast.Tuple, ast.List))
    variables = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [item.id for item in variables if isinstance(item, ast.Name)]
    name = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else ""
    given = arguments(over) if isinstance(over, ast.Call) else []
    if len(names) < len(variables):
        return None
    if name == "range":
        bound = given[min(1, len(given) - 1)] if given else None
        counts = not several and bound is not None and _may_count_rows(file, function, bound)
        return _Header(frozenset(names), frozenset()) if counts else None
    if name == "enumerate" and len(names) == 2:
        counters, elements, looped = names[:1], names[1:], given[:1]
    elif several:
        counters, elements, looped = [], names, given if name == "zip" and len(given) == len(names) else []
    else:
        counters, elements, looped = [], names, [over]
    if not looped or not all(file.may_be_tensor(function, item) for item in looped):
        return None
    return _Header(frozenset(counters), frozenset(elements))


def _may_count_rows(file: Spelling, function: Function, bound: ast.expr) -> bool:
    """Tell whether ``bound`` may be the length of a tensor's axis."""
    if isinstance(bound, ast.Constant):
        return not isinstance(bound.value, int) or bound.value >= FEWEST_ROUNDS
    if isinstance(bound, ast.Attribute):
        return bound.attr != "ndim"
    if isinstance(bound, ast.Name):
        values = function.values.get(bound.id, ())
        if not values or bound.id in function.sources or bound.id in function.parameters:
            return True
        return any(isinstance(value, ast.Name) or _may_count_rows(file, function, value) for value in values)
    if isinstance(bound, ast.Call) and isinstance(bound.func, ast.Name) and bound.func.id == "len" and bound.args:
        return file.may_be_tensor(function, bound.args[0])
    return True


def _may_read_rows(file: Spelling, function: Function, body: _Body, header: _Header) -> bool:
    """Tell whether each round may read a row of a tensor."""
    found = bool(header.elements)
    for subscript in body.subscripts:
        parts = indices(subscript)
        if not any(_picks(part, header.counters) for part in parts):
            continue
        base = subscript.value
        given = isinstance(base, ast.Name) and file.is_passed(function, base.id)
        if given or len(parts) > 1 or isinstance(parts[0], ast.Slice) or file.may_be_tensor(function, base):
            found = True
        elif isinstance(base, ast.Attribute) and subscript not in body.stored:
            # Layers, for one: what is picked there is no tensor, unless it is a list of numbers.
            values = file.values.get(base.attr, ())
            if not any(isinstance(value, (ast.List, ast.Tuple)) for value in values):
                return False
    return found


def _picks(part: ast.expr, counters: frozenset[str]) -> bool:
    """Tell whether an index is one of ``counters``, or a slice may be of the one element there."""
    if isinstance(part, ast.Slice):
        upper = part.upper
        return part.lower is not None and _picks(part.lower, counters) and isinstance(upper, ast.BinOp)
    return isinstance(part, ast.Name) and part.id in counters


class _Body:
    """The body of a loop: what it collects, and what it may hand from round to round."""

    def __init__(self, file: Spelling, block: Sequence[ast.stmt | ast.expr]) -> None:
        self._file = file
        self.subscripts: list[ast.Subscript] = []
        self.stored: set[ast.AST] = set()
        """Those of them that something is stored in."""
        self.set_by_each: set[str] = set()
        """Variables that each round sets, and not to collect something."""
        self._calls: list[ast.Call] = []
        self._leaves = False
        self._stores = False
        self._listed: set[str] = set()
        """Lists that get longer."""
        self._added: set[str] = set()
        """Variables that something is added to, or what comes to the same."""
        self._grown: set[str] = set()
        self._passed_on: set[str] = set()
        """Variables that each round computes from what they were before."""
        self._collectors: set[str] = set()
        self._collecting: set[ast.AST] = set()
        """Assignments that add something to what there is."""
        self._reads: Counter[str] = Counter()
        """How often a variable is read other than to collect something in it."""
        self._sets: Counter[str] = Counter()
        self._defines = False
        for statement in block:
            known = {name for name, times in self._sets.items() if times}
            for node in walk(statement):
                self._note(node)
            if isinstance(statement, ast.Assign) and statement not in self._collecting:
                variables = [part for target in statement.targets for part in targets(target)]
                names = {variable.id for variable in variables if isinstance(variable, ast.Name)}
                self.set_by_each |= names
                self._passed_on |= {name for name in names - known if _reads(statement.value, name)}

    def is_the_same_for_all(self, header: _Header) -> bool:
        """Tell whether each round may do the same, on the device."""
        own = header.counters | header.elements | self.set_by_each
        return not self._leaves and not any(self._is_on_host(call, own) for call in self._calls)

    def _is_on_host(self, call: ast.Call, own: Set[str]) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in HOST_METHODS:
            return True
        if isinstance(call.func, ast.Subscript) or is_name(call.func, "getattr"):
            return True
        return self._file.package(call.func) in HOST_PACKAGES and any(_reads(call, name) for name in own)

    def hands_on(self) -> bool:
        """Tell whether a round is certain to read what an earlier one left."""
        return bool(self._passed_on - self._collectors) or any(map(self._is_read_besides, self._collectors))

    def _is_read_besides(self, collector: str) -> bool:
        return not self._defines and not self._sets[collector] and self._reads[collector] > 0

    def grows(self) -> bool:
        """Tell whether a round may concatenate to what there is, and use it for nothing else."""
        return any(not self._is_read_besides(name) for name in self._grown - self.set_by_each)

    def lists(self) -> set[str]:
        """Return the last names of the lists that it may make longer."""
        return {name.rpartition(".")[2] for name in self._listed - self.set_by_each}

    def collects(self, header: _Header) -> bool:
        """Tell whether it may add up, select or store what it computes."""
        return bool(self._added - self.set_by_each) or (self._stores and bool(header.counters))

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            (self._reads if isinstance(node.ctx, ast.Load) else self._sets)[node.id] += 1
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            if isinstance(node, ast.Subscript):
                self.subscripts.append(node)
            if isinstance(node.ctx, ast.Store):
                self.stored.add(node)
                self._reads[root_name(node)] -= 1
            if node in self.stored:
                self.stored.add(node.value)
        elif isinstance(node, ast.Call):
            self._calls.append(node)
        elif isinstance(node, ast.Expr):
            self._note_listing(node.value)
        elif isinstance(node, ast.Assign):
            self._note_assigned(node)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Subscript):
                self._note_store(node.target)
            else:
                self._collect(node.target, node.value)
        elif isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Break)):
            self._leaves = True
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._defines = True

    def _note_store(self, target: ast.Subscript) -> None:
        self._stores = True
        base: ast.expr = target
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            self._collectors.add(base.id)

    def _note_listing(self, call: ast.expr) -> None:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(arguments(call)) == 1:
            if call.func.attr in ("append", "extend") and dotted(call.func.value):
                self._listed.add(dotted(call.func.value))
                self._reads[root_name(call.func)] -= 1
                if isinstance(call.func.value, ast.Name):
                    self._collectors.add(call.func.value.id)

    def _note_assigned(self, node: ast.Assign) -> None:
        for target in node.targets:
            name = dotted(target)
            part = self._part_added(node.value, name) if name else None
            if isinstance(target, ast.Subscript):
                self._note_store(target)
            elif part is not None:
                self._collecting.add(node)
                self._reads[name] -= 1
                self._collect(target, part)
                if isinstance(part, ast.Call) and part is node.value and self._file.may_be(part.func, GLUING_OPERATORS):
                    self._grown.add(name)

    def _part_added(self, value: ast.expr, name: str) -> ast.expr | None:
        """Return what ``name = value`` adds to ``name``, or the whole value; None if it does nothing like it."""
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub, ast.Mult)):
            for one, other in ((value.left, value.right), (value.right, value.left)):
                if dotted(one) == name:
                    return other
                if isinstance(one, ast.BinOp) and self._part_added(one, name) is not None:
                    return value
        elif isinstance(value, ast.Call):
            operands = arguments(value)
            if operands and isinstance(operands[0], (ast.Tuple, ast.List)):
                operands = operands[0].elts + operands[1:]
            collects = any(dotted(operand) == name for operand in operands)
            if collects and self._file.is_operator(value.func) and self._file.may_be(value.func, _COLLECTING):
                return value
        return None

    def _collect(self, target: ast.expr, part: ast.expr) -> None:
        if isinstance(part, _LISTING):
            self._listed.add(dotted(target))
        elif not isinstance(part, ast.Constant):
            self._added.add(dotted(target))
        if isinstance(target, ast.Name):
            self._collectors.add(target.id)
            self._sets[target.id] -= 1


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Load) for item in walk(node))


def _unwrapped(node: ast.expr) -> ast.expr:
    """Return what ``node`` only makes a list or tuple of."""
    while True:
        if isinstance(node, ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in ("tuple", "list") and node.args:
            node = node.args[0]
        else:
            return node


@dataclass(frozen=True)
class _Piece:
    """What a subscript cuts out of something along one axis, from ``low`` up to ``high``."""

    node: ast.Subscript
    base: str
    axis: Hashable
    low: int
    high: int | None

    def is_followed_by(self, other: _Piece) -> bool:
        """Tell whether ``other`` starts where this piece ends and may be of the same size."""
        if (self.base, self.axis) != (other.base, other.axis) or self.low < 0 or self.high != other.low:
            return False
        return other.high is None or other.high - other.low == self.high - self.low


def _may_cut_pieces(file: Spelling, function: Function) -> bool:
    """Tell whether ``function`` may compute pieces of one tensor one by one."""
    if sum(_is_window(subscript) for subscript in function.subscripts) >= FEWEST_IN_STENCIL:
        return True
    pieces = {node: piece for node in function.subscripts if (piece := _piece(node)) is not None}
    activated: dict[str, set[int]] = defaultdict(set)
    for call in function.calls:
        given = arguments(call)
        piece = pieces.get(given[0]) if len(given) == 1 and isinstance(given[0], ast.Subscript) else None
        if piece is not None and file.may_be_plainly(call.func, ACTIVATIONS):
            activated[piece.base].add(piece.low)
    if any(len(lows) >= FEWEST_ACTIVATED for lows in activated.values()):
        return True
    pairs = [(one, other) for one, other in permutations(pieces.values(), 2) if one.is_followed_by(other)]
    uses = _Uses(function) if pairs else None
    return uses is not None and any(not uses.of(one.node).isdisjoint(uses.of(other.node)) for one, other in pairs)


def _piece(node: ast.Subscript) -> _Piece | None:
    parts = indices(node)
    chosen = [index for index, part in enumerate(parts) if not _is_whole(part)]
    if len(chosen) != 1:
        return None
    [index] = chosen
    bounds = _bounds(parts[index])
    single = not isinstance(parts[index], ast.Slice)
    if bounds is None or (len(parts) == 1 and single):
        return None
    ellipsis = any(is_constant(part, ...) for part in parts)
    new = tuple(i for i, part in enumerate(parts) if is_constant(part, None))
    axis = (index - len(parts) if ellipsis else index, ellipsis, new, single)
    return _Piece(node, ast.dump(node.value), axis, *bounds)


def _is_window(node: ast.Subscript) -> bool:
    parts = [part for part in indices(node) if isinstance(part, ast.Slice) and not _is_whole(part)]
    return len(parts) > 1 and sum(_bounds(part) is not None for part in parts) > 1


def _is_whole(part: ast.expr) -> bool:
    if isinstance(part, ast.Slice):
        return part.lower is None and part.upper is None
    return is_constant(part, None) or is_constant(part, ...)


def _bounds(cut: ast.expr) -> tuple[int, int | None] | None:
    """Return from where up to where ``cut`` goes; None if that is not constant."""
    if not isinstance(cut, ast.Slice):
        index = _constant(cut)
        return None if index is None else (index, index + 1)
    if cut.step is not None and _constant(cut.step) != 1:
        return None
    low = 0 if cut.lower is None else _constant(cut.lower)
    high = None if cut.upper is None else _constant(cut.upper)
    return None if low is None or (cut.upper is not None and high is None) else (low, high)


def _constant(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return None if value is None else -value
    return None


class _Uses:
    """What the values of a function are used for."""

    def __init__(self, function: Function) -> None:
        self._parents: dict[ast.AST, ast.AST] = {}
        self._reads: dict[str, list[ast.Name]] = defaultdict(list)
        for node in walk(function.node):
            for child in children(node):
                self._parents[child] = node
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                    self._reads[child.id].append(child)

    def of(self, node: ast.expr) -> set[Hashable]:
        """Return the operations that ``node``, or a variable that it is assigned to, is an operand of."""
        found: set[Hashable] = set()
        seen: set[str] = set()
        queue = [node]
        while queue:
            item = queue.pop()
            parent = self._parents[item]
            if isinstance(parent, ast.Assign):
                names = {target.id for target in parent.targets if isinstance(target, ast.Name)} - seen
                seen |= names
                queue += [read for name in names for read in self._reads[name]]
            elif isinstance(parent, ast.BinOp):
                found.add((type(parent.op), parent.left is item))
            elif isinstance(parent, ast.UnaryOp):
                found.add((type(parent.op),))
            elif isinstance(parent, ast.Compare):
                found.add((type(parent.ops[0]),))
            elif isinstance(parent, (ast.Call, ast.keyword, ast.Starred, ast.Attribute)):
                found.add((ast.Call,))
        return found
