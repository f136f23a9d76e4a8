"""``merge-slices``: one computation instead of the same one on pieces, one concatenation instead of one a round."""

from __future__ import annotations

from itertools import pairwise, takewhile

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.inert_statements import variables_bound
from codemods.inlining import (
    Strength,
    Written,
    check_unchanged,
    check_unsharded,
    free_name,
    lines_above,
    other_reads,
    put,
    sole_binding,
    spliced,
    strength_of,
    writes_in_place,
)
from codemods.leftovers import drop_leftovers, is_plain
from codemods.statements import call, in_lines, indentation, inner_comments, insert_after, newline, one_line
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.semantics.cells import is_self, method_of, self_name
from mslint.semantics.extents import called
from mslint.semantics.formula import Expression, numbers, operator_of, read
from mslint.semantics.gradients import statement_of
from mslint.semantics.module import Binding, Module, find, walk
from mslint.semantics.pieces import FragmentGroup, Fragments, Piece
from mslint.semantics.reaching import reaching
from mslint.semantics.rows import GrowingConcat
from mslint.semantics.sensitivity import is_name
from mslint.semantics.tensors import Kind, values_at

_ASKING = ("isinstance", "hasattr", "len")
_JOINING = ("concat", "cat", "concatenate")
_STACKING = ("stack", "pack")
_BY_HAND = "compute it on one slice that spans them"


class MergeSlices(Codemod):
    """Compute once what is computed piece by piece, and concatenate once what is concatenated round by round.

    What it does
        ``ops.concat((f(x[:, 0:2]), f(x[:, 2:4])), 1)`` becomes ``f(x[:, 0:4])``, where ``f`` is the same arithmetic, element
        by element, of slices that stand side by side and of numbers; ``ops.stack((f(x[:, 0]), f(x[:, 1])), 1)`` becomes
        ``f(x[:, 0:2])``. Variables are seen through and go with their last reader.

        A loop that runs ``out = ops.concat((out, part), 1)`` collects the parts in a list and concatenates them once after
        the loop.

    When it is safe
        The same numbers are computed from the same numbers, bit for bit, values and gradients, in graph and PyNative
        mode. Merged slices leave fewer nodes in the backward graph; on CPU that makes no difference in time. Only where
        several parts that a loop adds are made from one tensor, graph mode may add up its gradient in another order, which
        shows in the last bit.

    When it is unsafe
        Slices of several tensors along an axis that is counted from the front: they must have the same number of axes, which
        the message says. Counted from the end (``x[..., 0:2]``) it is safe.

    When it is left to you
        Pieces that are added up or multiplied, which a sum over an axis says in another order; other tensors in the formula,
        whose shape would have to fit the whole; pieces that other code reads as well; an axis that cannot be compared.
    """

    name = "merge-slices"
    summary = "the same arithmetic on slices of one tensor is done once; a Concat that grows in a loop is done after it"
    applicability = (
        "safe; unsafe between tensors of unknown rank; manual where pieces are not simply put together again"
    )
    rules = ("MS203",)

    def applies(self, finding: Finding) -> bool:
        return isinstance(finding.subject, (FragmentGroup, GrowingConcat))

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        subject = finding.subject
        if isinstance(subject, GrowingConcat):
            message = "one concatenation after the loop: each round copied all that earlier rounds had put there"
            return Fix(self.name, Applicability.SAFE, message, _Growing(module, subject).edits())
        assert isinstance(subject, FragmentGroup)
        return _merged(module, subject.fragments)

    def tidy(self, module: Module, after: str) -> str:
        return drop_leftovers(module, after)


def _merged(module: Module, fragments: tuple[Fragments, ...]) -> Fix:
    first = fragments[0]
    glue = first.glue
    if glue is None or len(first.formulas) < 2:
        raise Manual(
            "the pieces are not put together again; compute the formula on the whole tensor and cut the result, if nothing "
            "else reads the pieces"
        )
    if not isinstance(glue, cst.Call) or called(module, glue) not in (*_JOINING, *_STACKING):
        raise Manual(
            "the results are added up or multiplied: on one slice a sum or product over its axis says that, in an order of "
            "its own; write it by hand"
        )
    return _Merge(module, glue, [item for item in fragments if item.glue is glue]).fix()


class _Merge:
    """Formulas over pieces that ``glue`` puts side by side, made one."""

    def __init__(self, module: Module, glue: cst.Call, fragments: list[Fragments]) -> None:
        self.module = module
        self.glue = glue
        self.formulas = fragments[0].formulas
        self.pieces = {piece.node: piece for item in fragments for piece in item.pieces}
        self._followed: list[tuple[cst.Name, Binding]] = []
        check_unsharded(module, glue)

    def fix(self) -> Fix:
        """Return the rewrite with what it takes for granted."""
        edits = self._edits()
        message = "the same formula once, on one slice that spans the pieces: the same bits with fewer nodes"
        names = list(dict.fromkeys(self.module.code(node.value) for node in self.pieces))
        axes = [piece.axis for piece in self.pieces.values()]
        if len(names) == 1 or all(isinstance(axis, tuple) and axis[1] for axis in axes):
            return Fix(MergeSlices.name, Applicability.SAFE, message, edits)
        listed = " and ".join(f"`{name}`" for name in names)
        message += f"; it takes for granted that {listed} have the same number of axes"
        return Fix(MergeSlices.name, Applicability.UNSAFE, message, edits)

    def _edits(self) -> tuple[Edit, ...]:
        module = self.module
        whole = self._elements()
        elements = [item for item in whole if item in self.formulas]
        first = whole.index(elements[0]) if elements else 0
        if not elements or whole[first : first + len(elements)] != elements:
            raise Manual(f"other things are put between them in row {module.start(self.glue).row}; {_BY_HAND}")
        columns = [self._pieces_of(formula) for formula in elements]
        self._check_columns(columns)
        rows = list(zip(*columns, strict=True))
        spans = {row[0].node: self._spanning(list(row)) for row in rows}
        for formula in elements[1:]:
            self._written(formula, {})
        merged = self._written(elements[0], spans)
        self._check_read_only_here(elements)
        if len(elements) == len(whole):
            return tuple(put(module, self.glue, merged, "merged"))
        return self._in_place_of_some(elements, merged)

    def _in_place_of_some(self, elements: list[cst.BaseExpression], merged: Written) -> tuple[Edit, ...]:
        """Return the edits that put ``merged`` in the place of ``elements``, beside the others that are put together."""
        module = self.module
        text, edits = merged.code, []
        names = [item.value for item in elements if isinstance(item, cst.Name)]
        if len(names) == len(elements):
            text = free_name(module, self.glue, _together(names))
            edits.append(lines_above(module, self.glue, [f"{text} = {merged.code}"]))
        return (*edits, Edit(module.start(elements[0]), module.end(elements[-1]), text))

    def _elements(self) -> list[cst.BaseExpression]:
        holder = self.glue.args[0].value
        if not isinstance(holder, (cst.Tuple, cst.List)) or inner_comments(self.module, self.glue):
            raise Manual(f"what is put together in row {self.module.start(self.glue).row} is no plain list; {_BY_HAND}")
        return [element.value for element in holder.elements]

    def _pieces_of(self, formula: cst.CSTNode) -> list[Piece]:
        """Return the pieces that ``formula`` reads, in order, variables seen through."""
        found: list[Piece] = []
        for node in walk(formula):
            if isinstance(node, cst.Subscript) and node in self.pieces:
                found.append(self.pieces[node])
            elif isinstance(node, cst.Name):
                value = self._value(node)
                found += self._pieces_of(value) if value is not None else []
        return found

    def _value(self, name: cst.Name) -> cst.BaseExpression | None:
        """Return what a variable that holds pieces stands for."""
        bound = reaching(self.module, name)
        value = bound[0].value if len(bound) == 1 else None
        return value if value is not None and self._pieces_of(value) else None

    def _check_columns(self, columns: list[list[Piece]]) -> None:
        stacks = called(self.module, self.glue) in _STACKING
        if not columns[0] or len({len(row) for row in columns}) != 1:
            raise Manual(f"the pieces of the formulas do not correspond; {_BY_HAND}")
        for row in zip(*columns, strict=True):
            if not all(one.is_followed_by(other) for one, other in pairwise(row)):
                raise Manual(f"the pieces are not put together in the order in which they stand; {_BY_HAND}")
            if any(piece.single is not stacks for piece in row):
                raise Manual(f"an axis that an index drops is not the one that the pieces are put along; {_BY_HAND}")
            self._check_axis(row[0])
        if any(len({(piece.high or 0) - piece.low for piece in formula}) > 1 for formula in columns):
            raise Manual(f"pieces of several sizes meet in one formula; {_BY_HAND}")

    def _check_axis(self, piece: Piece) -> None:
        """Refuse unless the pieces are put together along the axis along which they were cut."""
        along = self._axis()
        assert isinstance(piece.axis, tuple)
        cut, from_end, new = piece.axis
        if new:
            raise Manual(f"the pieces get a new axis; {_BY_HAND}")
        if along != cut:
            where = f"axis {cut}" if not from_end else f"axis {cut} from the end"
            raise Manual(
                f"the pieces are cut along {where} and put together along axis {along}, which is the same for some number "
                f"of axes only; {_BY_HAND}"
            )

    def _axis(self) -> int:
        formula = read(Expression(self.module, self.glue))
        given = formula.setting("axis", "dim")
        positional = [argument.value for argument in self.glue.args[1:] if argument.keyword is None]
        built = [argument.value for argument in formula.built if argument.keyword is None]
        node = given or next(iter([*positional, *built]), None)
        if node is None:
            return 0
        found = numbers(Expression(self.module, node))
        if len(set(found)) != 1:
            raise Manual(f"the axis along which the pieces are put together is not written as a number; {_BY_HAND}")
        return int(found[0])

    def _spanning(self, row: list[Piece]) -> str:
        """Return the slice from the start of the first to the end of the last piece."""
        first, last = row[0], row[-1]
        module = self.module
        parts = [one_line(module, part) for part in first.node.slice]
        assert isinstance(first.axis, tuple)
        index = first.axis[0] if not first.axis[1] else first.axis[0] + len(parts)
        parts[index] = f"{first.low if first.low or _writes_zero(first) else ''}:{last.high}"
        return f"{module.code(first.node.value)}[{', '.join(parts)}]"

    def _written(self, node: cst.BaseExpression, spans: dict[cst.Subscript, str]) -> Written:
        """Return the text of a formula with its pieces replaced, and what variables hold in their place."""
        module = self.module
        if isinstance(node, cst.Subscript) and node in self.pieces:
            return Written(spans.get(node, ""))
        if isinstance(node, cst.Name):
            value = self._value(node)
            if value is not None:
                binding = sole_binding(module, node, f"`{node.value}` has several values; {_BY_HAND}")
                self._followed.append((node, binding))
                check_unchanged(module, value, self.glue)
                return self._written(value, spans)
            self._check_number(node)
            return Written(node.value)
        replacements: dict[cst.CSTNode, str] = {}
        for part in self._operands(node):
            if self._holds_pieces(part):
                inner = self._written(part, spans)
                needs = Strength.SUM if isinstance(module.parents[part], (cst.Arg, cst.Index)) else Strength.ATOM
                code = inner.at_least(min(needs, strength_of(part))).code
                # Brackets of its own stay where they are.
                replacements[part] = code[1:-1] if part.lpar and not isinstance(part, cst.Name) else code
            else:
                self._check_number(part)
        return Written(spliced(module, node, replacements), strength=strength_of(node))

    def _operands(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(node, cst.BinaryOperation):
            return [node.left, node.right]
        if isinstance(node, cst.UnaryOperation):
            return [node.expression]
        if isinstance(node, cst.Call):
            given = [argument.value for argument in node.args]
            is_method = operator_of(self.module, node)[0] is None and isinstance(node.func, cst.Attribute)
            operation = read(Expression(self.module, node)).operation
            if operation == "same" and called(self.module, node) not in ("astype", "cast", "float", "half"):
                raise Manual(f"the pieces are given another shape in row {self.module.start(node).row}; {_BY_HAND}")
            if operation == "same":
                return [node.func.value] if is_method and isinstance(node.func, cst.Attribute) else given[:1]
            return [node.func.value, *given] if is_method and isinstance(node.func, cst.Attribute) else given
        raise Manual(f"`{one_line(self.module, node)}` is no arithmetic of single elements; {_BY_HAND}")

    def _holds_pieces(self, node: cst.BaseExpression) -> bool:
        return bool(self._pieces_of(node))

    def _check_number(self, node: cst.BaseExpression) -> None:
        """Refuse a part of the formula that may be a tensor, whose shape would have to fit the whole."""
        module = self.module
        if values_at(module, node).kind(node) is Kind.NUMBER or numbers(Expression(module, node)):
            return
        raise Manual(
            f"`{one_line(module, node)}` in the formula may be a tensor, which would have to fit the whole; {_BY_HAND}"
        )

    def _check_read_only_here(self, elements: list[cst.BaseExpression]) -> None:
        gone = {item for part in (self.glue, *(b.value for _, b in self._followed if b.value)) for item in _all(part)}
        for name, binding in self._followed:
            for reader in other_reads(self.module, binding, name):
                if reader not in gone:
                    row = self.module.start(reader).row
                    raise Manual(
                        f"`{name.value}` is read in row {row} too; compute the whole there as well, and cut it"
                    )


def _together(names: list[str]) -> str:
    """Return one name for what had several: ``box_x`` and ``box_y`` make ``box_x_y``."""
    words = [name.split("_") for name in names]
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))))
    return "_".join([*words[0][:shared], *(word for name in words for word in name[shared:])])


def _all(node: cst.CSTNode) -> list[cst.Name]:
    return list(find(node, cst.Name))


def _writes_zero(piece: Piece) -> bool:
    """Tell whether the piece starts with a written 0, or is picked by an index."""
    cuts = [
        part.slice for part in piece.node.slice if isinstance(part.slice, cst.Slice) and part.slice.upper is not None
    ]
    return piece.single or any(cut.lower is not None for cut in cuts)


class _Growing:
    """A variable that a loop concatenates to in each round."""

    def __init__(self, module: Module, growing: GrowingConcat) -> None:
        self.module = module
        self.loop = growing.loop
        self.name = growing.gathered.name
        statement = growing.gathered.node
        if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Call):
            raise Manual("the concatenation is part of a larger expression; collect the parts in a list")
        if len(statement.targets) > 1:
            raise Manual("what grows has several names; give each a statement of its own")
        if not isinstance(statement.targets[0].target, cst.Name):
            raise Manual(f"`{self.name}` is no local variable, and others may read it; collect the parts in a list")
        self.statement = statement
        self.glue = statement.value
        check_unsharded(module, self.glue)
        if called(module, self.glue) not in _JOINING:
            raise Manual("what grows is no plain concatenation; collect the parts in a list")
        if self.loop.orelse is not None or any(find(self.loop, cst.Return)):
            raise Manual("the loop may be left early; collect the parts in a list and concatenate where it is left")
        if isinstance(module.parents[self.loop], cst.Module) or statement_of(module, statement) is None:
            raise Manual("the loop stands at module level; collect the parts in a list")
        if any(isinstance(item, cst.Try) for item in module.ancestors(self.loop)):
            raise Manual("the loop may be left by an exception; collect the parts in a list inside of the try")
        self._check_alone()
        self._check_same_each_round()
        self._check_number_of_parts()

    def _check_alone(self) -> None:
        """Refuse where another statement or a loop around this one lets the variable grow, or writes what was added."""
        module = self.module
        adding = [call for call in find(self.loop, cst.Call) if self._adds(call)]
        if len(adding) > 1:
            rows = ", ".join(str(module.start(call).row) for call in adding)
            raise Manual(f"`{self.name}` grows in several places (rows {rows}); collect the parts in a list")
        start = next((name for name in find(self.glue, cst.Name) if name.value == self.name), None)
        bound = reaching(module, start) if start is not None else []
        outer = [item for item in module.ancestors(self.loop) if isinstance(item, (cst.For, cst.While))]
        if not all(loop in set(module.ancestors(binding.node)) for loop in outer for binding in bound):
            raise Manual(f"a loop around this one lets `{self.name}` grow on; collect the parts of both in one list")
        for name in find(self.glue, cst.Name):
            for write in writes_in_place(module, self.loop.body, name.value):
                raise Manual(
                    f"`{name.value}` is written in place in row {module.start(write).row}, which a list would see too; give "
                    "what is written a name of its own"
                )

    def _check_same_each_round(self) -> None:
        """Refuse where the parts, or how they are put together, are something else once the loop is through."""
        module = self.module
        holder = self.glue.args[0].value
        parts = set(find(holder, cst.Name))
        changed = {*variables_bound(module, self.loop)} - {self.name}
        for name in find(self.glue, cst.Name):
            if name not in parts and name.value in changed:
                raise Manual(
                    f"`{name.value}` says how to concatenate in each round; collect the parts in a list by hand"
                )
        # In graph mode `x += 1` writes to the tensor that x is: a list of such sums is the last one over and over (2.10.0).
        for write in find(self.loop.body, cst.AugAssign):
            if any(is_name(write.target, name.value) for name in parts):
                raise Manual(
                    f"row {module.start(write).row} writes to `{module.code(write.target)}` in place in graph mode, which a "
                    "list would see too; assign the result to it"
                )

    def _check_number_of_parts(self) -> None:
        """Refuse where a tensor decides whether a round adds a part: graph mode compiles no list of unknown length."""
        module = self.module
        for branch in find(self.loop.body, cst.If):
            decides = branch in module.ancestors(self.statement) or any(find(branch, cst.Continue))
            if decides and not _is_of_python(module, branch.test):
                raise Manual(
                    f"the test in row {module.start(branch).row} may be a tensor, and graph mode compiles no list that is as "
                    "long as tensors decide (MindSpore 2.10.0)"
                )

    def _adds(self, call: cst.Call) -> bool:
        """Tell whether ``call`` puts something together with the variable, to be its new value."""
        assigned = self.module.parents[call]
        if not isinstance(assigned, cst.Assign) or called(self.module, call) not in _JOINING:
            return False
        targets = [self.module.code(target.target) for target in assigned.targets]
        return self.name in targets and any(name.value == self.name for name in find(call, cst.Name))

    def edits(self) -> tuple[Edit, ...]:
        module = self.module
        parts = self._parts()
        indent = indentation(module, self.loop)
        collected = free_name(module, self.loop, f"{self.name.rstrip('_')}_parts")
        branches = self._first_round(parts)
        if branches is not None:
            self._check_not_tested()
        start = "" if branches is not None else self.name
        edits = [self._adding(branches or self.statement, collected, parts)]
        before = self._before()
        value = before.body[0] if before is not None else None
        if isinstance(value, cst.Assign) and (branches is None or _is_none(value.value)):
            first = "" if branches is not None else one_line(module, value.value)
            edits.append(module.replace(value, f"{collected} = [{first}]"))
        else:
            place = module.start(self.loop)
            edits.append(Edit(place, place, in_lines(module, [f"{collected} = [{start}]"]) + indent))
        line = f"{indent}{self.name} = {self._joined(collected)}"
        edits.append(insert_after(module, self.loop, in_lines(module, [line])))
        return tuple(edits)

    def _adding(self, replaced: cst.CSTNode, collected: str, parts: list[str]) -> Edit:
        module = self.module
        method, start, end = ("append", "", "") if len(parts) == 1 else ("extend", "[", "]")
        statement = replaced if isinstance(replaced, cst.If) else statement_of(module, replaced)
        assert statement is not None
        indent = indentation(module, statement)
        if replaced is not statement and module.start(replaced) != module.start(statement):
            return module.replace(replaced, f"{collected}.{method}({start}{', '.join(parts)}{end})")
        lines = call(module, indent, f"{collected}.{method}({start}", parts, f"{end})")
        return module.replace(replaced, newline(module).join(lines)[len(indent) :])

    def _parts(self) -> list[str]:
        """Return what each round adds."""
        holder = self.glue.args[0].value
        if not isinstance(holder, (cst.Tuple, cst.List)) or inner_comments(self.module, self.glue):
            raise Manual("what is concatenated is no plain list; collect the parts in a list")
        first, *others = [element.value for element in holder.elements]
        names = [item.value for part in others for item in find(part, cst.Name)]
        if not isinstance(first, cst.Name) or first.value != self.name or self.name in names or not others:
            raise Manual(f"new parts go before `{self.name}`, not behind it; collect them in a list and turn it around")
        return [one_line(self.module, part) for part in others]

    def _joined(self, collected: str) -> str:
        text = spliced(self.module, self.glue, {self.glue.args[0].value: collected})
        return text.replace(f"({collected})", collected, 1) if self.glue.args[0].value.lpar else text

    def _first_round(self, parts: list[str]) -> cst.If | None:
        """Return the ``if`` that sets the variable in the first round and concatenates in the others."""
        module = self.module
        line = statement_of(module, self.statement)
        assert line is not None
        block = module.parents[line]
        other = module.parents[block]
        branch = module.parents[other] if isinstance(other, cst.Else) else None
        if not isinstance(branch, cst.If) or branch.orelse is not other:
            return None
        body = branch.body.body
        small = body[0].body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else None
        is_first = isinstance(small, cst.Assign) and module.code(small.targets[0].target) == self.name
        alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1 and not inner_comments(module, branch)
        alone = alone and self._tests_first_round(branch.test)
        if not is_first or not alone or not isinstance(small, cst.Assign) or [one_line(module, small.value)] != parts:
            raise Manual(f"the first round gives `{self.name}` something else; collect the parts in a list")
        return branch

    def _tests_first_round(self, test: cst.BaseExpression) -> bool:
        """Tell whether ``test`` holds in the first round alone: the loop's counter has its first value."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
            return False
        target: cst.BaseExpression = self.loop.target
        over = self.loop.iter
        name = over.func.value if isinstance(over, cst.Call) and isinstance(over.func, cst.Name) else ""
        if name == "enumerate" and isinstance(target, cst.Tuple):
            target = target.elements[0].value
        arguments = over.args if isinstance(over, cst.Call) else ()
        start = self.module.code(arguments[0].value) if name == "range" and len(arguments) > 1 else "0"
        counts = name in ("range", "enumerate") and isinstance(target, cst.Name) and target.value == test.left.value
        comparison = test.comparisons[0]
        is_equal = isinstance(comparison.operator, cst.Equal)
        return counts and is_equal and self.module.code(comparison.comparator) == start

    def _check_not_tested(self) -> None:
        """Refuse where the code below asks whether a loop of no rounds has left the variable as it was."""
        module = self.module
        function = module.enclosing(self.loop, cst.FunctionDef)
        for test in find(function, cst.Comparison) if function is not None else ():
            if is_name(test.left, self.name) and isinstance(test.comparisons[0].operator, (cst.Is, cst.IsNot)):
                raise Manual(
                    f"row {module.start(test).row} asks whether there was a round at all; collect the parts in a list and "
                    "ask that"
                )

    def _before(self) -> cst.SimpleStatementLine | None:
        """Return the statement before the loop that starts the variable, if nothing but the loop reads it."""
        module = self.module
        holder = self.glue.args[0].value
        assert isinstance(holder, (cst.Tuple, cst.List))
        name = holder.elements[0].value
        assert isinstance(name, cst.Name)
        bound = [item for item in module.lookup(self.name, name) if module.start(item.node) < module.start(self.loop)]
        if not bound:
            return None
        latest = max(bound, key=lambda item: module.start(item.node))
        line = statement_of(module, latest.node)
        block = module.parents[self.loop]
        if not isinstance(latest.node, cst.Assign) or not isinstance(line, cst.SimpleStatementLine):
            return None
        if module.parents[line] is not block or not is_plain(latest.node, line) or latest.value is None:
            return None
        between = [
            item
            for item in find(block, cst.Name)
            if item.value == self.name and module.end(line) <= module.start(item) < module.start(self.loop)
        ]
        rest = {item.value for item in find(latest.value, cst.Name)}
        return None if between or self.name in rest or inner_comments(module, line) else line


def _is_of_python(module: Module, test: cst.BaseExpression) -> bool:
    """Tell whether ``test`` is decided when the program is compiled: by numbers, texts, types and settings of ``self``."""
    if isinstance(test, cst.UnaryOperation):
        return _is_of_python(module, test.expression)
    if isinstance(test, cst.BooleanOperation):
        return _is_of_python(module, test.left) and _is_of_python(module, test.right)
    if isinstance(test, cst.Comparison):
        targets = test.comparisons
        if all(isinstance(target.operator, (cst.Is, cst.IsNot)) for target in targets):
            return True
        return all(
            _is_of_python(module, operand) for operand in (test.left, *(target.comparator for target in targets))
        )
    kind = values_at(module, test).kind(test)
    method = method_of(module, test)
    own = isinstance(test, cst.Attribute) and method is not None and is_self(test, self_name(method))
    asked = isinstance(test, cst.Call) and isinstance(test.func, cst.Name) and test.func.value in _ASKING
    return kind is Kind.NUMBER or isinstance(test, cst.SimpleString) or asked or (own and kind is not Kind.TENSOR)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
