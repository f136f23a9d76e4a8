"""Pieces of one tensor that get the same arithmetic, one by one, and are put together again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from mslint.semantics.criteria import ACTIVATIONS, FEWEST_ACTIVATED, FEWEST_IN_STENCIL, GLUING_OPERATORS
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module, dotted
from mslint.semantics.tensors import Kind, Values, values_of

_ARITHMETIC = frozenset(
    """
    add sub subtract mul multiply div divide realdiv truedivide pow square sqrt rsqrt exp expm1 log log1p abs absolute neg
    negative sigmoid tanh relu gelu silu softplus maximum minimum clipbyvalue clip clamp clampmin clampmax reciprocal sin
    cos floor ceil round sign erf leakyrelu hardsigmoid hsigmoid elu less greater lessequal greaterequal logicaland
    logicalor logicalnot equal notequal where select
    """.split()  # noqa: SIM905
)
_SHAPING = frozenset(
    ["expanddims", "unsqueeze", "squeeze", "cast", "reshape", "view", "astype", "stopgradient", "float"]
)
_MOST_PIECES = 64


@dataclass(frozen=True)
class Piece:
    """A slice of ``tensor`` by constants along one axis, from ``low`` up to ``high`` (None: to the end)."""

    node: cst.Subscript
    tensor: Hashable
    axis: Hashable
    low: int
    high: int | None
    single: bool
    """Whether an index, which drops the axis, picks it."""

    def is_followed_by(self, other: Piece) -> bool:
        """Tell whether ``other`` starts where this piece ends and is, as far as one can see, of the same size."""
        if self.low < 0 or self.high != other.low:
            return False
        return other.high is None or other.high - other.low == self.high - self.low


@dataclass(frozen=True)
class Fragments:
    """Several pieces of one tensor that get one formula; ``glue`` puts them together again (None: nothing does)."""

    tensor: str
    first: cst.CSTNode
    """The first of the pieces."""
    pieces: tuple[Piece, ...]
    formulas: tuple[cst.CSTNode, ...]
    """Expressions that are the same but for the pieces that they read."""
    glue: cst.CSTNode | None


@dataclass(frozen=True)
class FragmentGroup:
    """The fragments of one or several tensors whose first pieces stand in one statement: one finding."""

    fragments: tuple[Fragments, ...]


@dataclass(frozen=True)
class _Form:
    """An expression without the places of its pieces: ``number`` is equal for equal forms."""

    number: int
    pieces: tuple[Piece, ...] = ()
    operations: int = 0
    opaque: bool = False


class _Forms:
    """The forms of the expressions of one function, variables replaced by what they stand for."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.module = values.module
        self._numbers: dict[Hashable, int] = {}
        self._forms: dict[cst.CSTNode, _Form] = {}
        self._pending: set[cst.CSTNode] = set()

    def form(self, node: cst.CSTNode) -> _Form:
        """Return the form of ``node``."""
        found = self._forms.get(node)
        if found is None:
            if node in self._pending or len(self._pending) > 100:
                return self._opaque(node)
            self._pending.add(node)
            found = self._forms[node] = self._make(node)
            self._pending.discard(node)
        return found

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _opaque(self, node: cst.CSTNode) -> _Form:
        return _Form(self._number(("node", id(node))), opaque=True)

    def _joined(self, operation: str, parts: list[_Form], node: cst.CSTNode, *, counts: bool = True) -> _Form:
        pieces = tuple(piece for part in parts for piece in part.pieces)
        if any(part.opaque and part.pieces for part in parts) or len(pieces) > _MOST_PIECES:
            return self._opaque(node)
        number = self._number((operation, *(part.number for part in parts)))
        done = sum(part.operations for part in parts) + (1 if counts and pieces else 0)
        return _Form(number, pieces, done)

    def _make(self, node: cst.CSTNode) -> _Form:
        if isinstance(node, (cst.Integer, cst.Float)):
            return _Form(self._number(("number", node.value)))
        if isinstance(node, cst.Name):
            return self._name(node)
        if isinstance(node, cst.Attribute) and dotted(node):
            return _Form(self._number(("path", dotted(node))))
        if isinstance(node, cst.Subscript):
            piece = self.piece(node)
            if piece is None:
                return self._opaque(node)
            return _Form(self._number(("piece", piece.tensor, piece.axis, piece.single)), (piece,))
        if isinstance(node, cst.BinaryOperation):
            parts = [self.form(node.left), self.form(node.right)]
            return self._joined(type(node.operator).__name__, parts, node)
        if isinstance(node, cst.UnaryOperation):
            return self._joined(type(node.operator).__name__, [self.form(node.expression)], node)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            target = node.comparisons[0]
            return self._joined(
                type(target.operator).__name__, [self.form(node.left), self.form(target.comparator)], node
            )
        if isinstance(node, cst.Call):
            return self._call(node)
        return self._opaque(node)

    def _name(self, node: cst.Name) -> _Form:
        bindings = self.values.reaching(node)
        if len(bindings) == 1 and isinstance(bindings[0].node, cst.Assign) and bindings[0].value is not None:
            form = self.form(bindings[0].value)
            if form.pieces and not form.opaque:
                return form
        key = tuple(sorted(id(binding.node) for binding in bindings))
        return _Form(self._number(("name", node.value, key)))

    def _call(self, node: cst.Call) -> _Form:
        name = self.operation(node)
        if name is None:
            return self._opaque(node)
        parts = [self.form(argument.value) for argument in node.args]
        if isinstance(node.func, cst.Attribute) and self.values.operator(node) is None:
            parts.insert(0, self.form(node.func.value))
        keywords = ",".join(argument.keyword.value for argument in node.args if argument.keyword)
        if name in _SHAPING:
            return self._joined(f"{name}({keywords})", parts, node, counts=False)
        return self._joined(f"{name}({keywords})", parts, node) if name in _ARITHMETIC else self._opaque(node)

    def operation(self, node: cst.Call) -> str | None:
        """Return the operator or tensor method that ``node`` calls, in small letters without underscores."""
        name = self.values.operator(node)
        if name is None and isinstance(node.func, cst.Attribute) and self.module.resolve(node.func) is None:
            on_self = isinstance(node.func.value, cst.Name) and node.func.value.value == "self"
            return None if on_self else _plain(node.func.attr.value)
        if name is None or not name.startswith(
            ("mindspore.ops.", "mindspore.nn.", "mindspore.numpy.", "mindspore.mint.")
        ):
            return None
        return _plain(name.rpartition(".")[2])

    def piece(self, node: cst.Subscript) -> Piece | None:
        """Return what ``node`` cuts out, if constants say so and all axes but one stay whole."""
        chosen: list[tuple[int, cst.BaseSlice]] = []
        ellipsis = False
        for index, part in enumerate(node.slice):
            if isinstance(part.slice, cst.Index) and isinstance(part.slice.value, cst.Ellipsis):
                ellipsis = True
            elif not _is_whole(part.slice) and not _is_new_axis(part.slice):
                chosen.append((index, part.slice))
        if len(chosen) != 1:
            return None
        index, cut = chosen[0]
        bounds = _bounds(cut)
        if bounds is None or (len(node.slice) == 1 and not isinstance(cut, cst.Slice)):
            # x[0] may be an element of a list.
            return None
        new = tuple(i for i, part in enumerate(node.slice) if _is_new_axis(part.slice))
        axis = (index - len(node.slice) if ellipsis else index, ellipsis, new)
        return Piece(node, self._tensor(node.value), axis, *bounds, single=isinstance(cut, cst.Index))

    def _tensor(self, node: cst.BaseExpression) -> Hashable:
        if isinstance(node, cst.Name):
            return (node.value, tuple(sorted(id(binding.node) for binding in self.values.reaching(node))))
        return dotted(node) or self.module.tree.code_for_node(node)


def fragments(module: Module, function: cst.FunctionDef) -> Iterator[Fragments]:
    """Yield, for each tensor that ``function`` works on piece by piece, the first pieces with one formula."""
    stock = inventories(module)[function]
    if sum(_cuts_by_constants(node) for node in stock.subscripts) < 2:
        return
    forms = _Forms(values_of(module, function))
    found: dict[Hashable, Fragments] = {}
    # What is put side by side again comes first: that can be merged, what is added up is only pointed at.
    for node in (*stock.calls, *stock.computations):
        for group in _groups(forms, _glued(forms, node), sizes_known=isinstance(node, cst.Call)):
            _note(forms, found, group, node)
    for fragment in _activated(forms, stock.subscripts):
        found.setdefault(fragment.pieces[0].tensor, fragment)
    for fragment in _stencils(forms, stock.computations):
        found.setdefault(fragment.pieces[0].tensor, fragment)
    yield from found.values()


def _glued(forms: _Forms, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the expressions that ``node`` puts together."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Multiply)):
        return _operands(node, type(node.operator))
    if isinstance(node, cst.Call) and node.args:
        name = (forms.values.operator(node) or "").rpartition(".")[2]
        if name in GLUING_OPERATORS and isinstance(node.args[0].value, (cst.Tuple, cst.List)):
            return [element.value for element in node.args[0].value.elements]
        if _plain(name) in ("add", "mul", "multiply") and len(node.args) == 2:
            return [argument.value for argument in node.args]
    return []


def _operands(node: cst.BaseExpression, operator: type[cst.BaseBinaryOp]) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operator):
        return [*_operands(node.left, operator), node.right]
    return [node]


def _groups(forms: _Forms, parts: list[cst.BaseExpression], *, sizes_known: bool) -> Iterator[list[cst.BaseExpression]]:
    """Yield those of ``parts`` that are one formula over pieces that share nothing.

    Sums and products only go between pieces of one size; what is concatenated may differ (one column for the object, the
    rest for its class): there the sizes must show.
    """
    if len(parts) < 2:
        return
    alike: dict[int, list[cst.BaseExpression]] = defaultdict(list)
    for part in parts:
        form = forms.form(part)
        if sizes_known and any(piece.high is None for piece in form.pieces):
            continue
        if form.pieces and form.operations and not form.opaque:
            alike[form.number].append(part)
    for group in alike.values():
        of_group = [forms.form(part) for part in group]
        if len(group) > 1 and _span_one_slice(of_group) and (sizes_known or not _cross(of_group)):
            yield group


def _span_one_slice(group: list[_Form]) -> bool:
    """Tell whether corresponding pieces of the equal forms of ``group`` stand side by side in their tensors."""
    for pieces in zip(*(form.pieces for form in group), strict=True):
        row = sorted(pieces, key=lambda piece: piece.low)
        if not all(one.is_followed_by(other) for one, other in pairwise(row)):
            return False
    return True


def _cross(group: list[_Form]) -> bool:
    """Tell whether the pieces of one operand go up where those of another go down, as in ``a0 * b1 + a1 * b0``.

    To compute that at once, one of the tensors must be turned around first, and the result is summed over its pieces.
    """
    rows = list(zip(*(form.pieces for form in group), strict=True))
    upward = {all(one.low < other.low for one, other in pairwise(row)) for row in rows}
    return len(upward) > 1


def _note(forms: _Forms, found: dict[Hashable, Fragments], group: list[cst.BaseExpression], glue: cst.CSTNode) -> None:
    by_tensor: dict[Hashable, list[Piece]] = defaultdict(list)
    for part in group:
        for piece in forms.form(part).pieces:
            by_tensor[piece.tensor].append(piece)
    for tensor, pieces in by_tensor.items():
        if tensor not in found and forms.values.kind(pieces[0].node.value) not in (Kind.ARRAY, Kind.LIST):
            name = forms.module.code(pieces[0].node.value)
            found[tensor] = Fragments(name, _first(forms, pieces), tuple(pieces), tuple(group), glue)


def _first(forms: _Forms, pieces: list[Piece]) -> cst.CSTNode:
    return min((piece.node for piece in pieces), key=forms.module.start)


def _activated(forms: _Forms, own: list[cst.Subscript]) -> Iterator[Fragments]:
    """Yield tensors all of whose pieces, and at least three, get the same activation."""
    by_tensor: dict[Hashable, list[tuple[Piece, cst.Call | None]]] = defaultdict(list)
    for node in own:
        piece = forms.piece(node)
        if piece is not None:
            argument = forms.module.parents[node]
            call = forms.module.parents[argument] if isinstance(argument, cst.Arg) else None
            activated = isinstance(call, cst.Call) and len(call.args) == 1 and forms.operation(call) in ACTIVATIONS
            by_tensor[piece.tensor].append((piece, call if activated and isinstance(call, cst.Call) else None))
    for cuts in by_tensor.values():
        calls = [call for _, call in cuts if call is not None]
        pieces = [piece for piece, _ in cuts]
        names = {forms.operation(call) for call in calls}
        if (
            len(calls) == len(cuts) >= FEWEST_ACTIVATED
            and len(names) == 1
            and len({p.low for p in pieces}) == len(pieces)
        ):
            name = forms.module.code(pieces[0].node.value)
            yield Fragments(name, _first(forms, pieces), tuple(pieces), tuple(calls), None)


def _stencils(forms: _Forms, computations: list[cst.BinaryOperation]) -> Iterator[Fragments]:
    """Yield tensors of which many shifted windows are added up with constant factors."""
    for node in computations:
        if not isinstance(node.operator, (cst.Add, cst.Subtract)):
            continue
        parent = forms.module.parents[node]
        if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, (cst.Add, cst.Subtract)):
            continue
        windows: dict[Hashable, list[cst.Subscript]] = defaultdict(list)
        for term in _terms(node):
            window = _window(forms, term)
            if window is not None:
                windows[forms._tensor(window.value)].append(window)
        for tensor, cuts in windows.items():
            if len({forms.module.code(cut) for cut in cuts}) >= FEWEST_IN_STENCIL:
                pieces = tuple(Piece(cut, tensor, None, 0, None, single=False) for cut in cuts)
                first = min(cuts, key=forms.module.start)
                yield Fragments(forms.module.code(cuts[0].value), first, pieces, (node,), node)


def _terms(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return _terms(node.left) + _terms(node.right)
    return [node]


def _window(forms: _Forms, term: cst.BaseExpression) -> cst.Subscript | None:
    """Return the shifted window that ``term`` is, a constant factor aside."""
    if isinstance(term, cst.UnaryOperation):
        return _window(forms, term.expression)
    if isinstance(term, cst.BinaryOperation) and isinstance(term.operator, (cst.Multiply, cst.Divide)):
        for number, other in ((term.left, term.right), (term.right, term.left)):
            if isinstance(number, (cst.Integer, cst.Float)):
                return _window(forms, other)
        return None
    if isinstance(term, cst.Name):
        bindings = forms.values.reaching(term)
        if len(bindings) == 1 and bindings[0].value is not None:
            return _window(forms, bindings[0].value)
    if isinstance(term, cst.Subscript):
        cuts = [part.slice for part in term.slice if not _is_whole(part.slice)]
        shifted = [cut for cut in cuts if isinstance(cut, cst.Slice) and _bounds(cut) is not None]
        if len(shifted) >= 2:
            return term
    return None


def _bounds(cut: cst.BaseSlice) -> tuple[int, int | None] | None:
    """Return from where up to where ``cut`` goes; None if that is not constant."""
    if isinstance(cut, cst.Index):
        index = _constant(cut.value)
        return (index, index + 1) if index is not None else None
    if not isinstance(cut, cst.Slice) or (cut.step is not None and _constant(cut.step) != 1):
        return None
    low = 0 if cut.lower is None else _constant(cut.lower)
    high = None if cut.upper is None else _constant(cut.upper)
    return None if low is None or (cut.upper is not None and high is None) else (low, high)


def _constant(node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.Integer):
        return int(node.value, 0)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = _constant(node.expression)
        return None if value is None else -value
    return None


def _cuts_by_constants(node: cst.Subscript) -> bool:
    return any(not _is_whole(part.slice) and _bounds(part.slice) is not None for part in node.slice)


def _is_whole(cut: cst.BaseSlice) -> bool:
    return isinstance(cut, cst.Slice) and cut.lower is None and cut.upper is None


def _is_new_axis(cut: cst.BaseSlice) -> bool:
    return isinstance(cut, cst.Index) and isinstance(cut.value, cst.Name) and cut.value.value == "None"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
