"""``vectorize-rows``: a loop over the rows of a tensor becomes its body on all rows at once, or ``mindspore.vmap``."""

from __future__ import annotations

import ast
from textwrap import indent

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.batched_rows import batched
from codemods.imports import drop_unreferenced, reach
from codemods.row_bounds import listed, row_doubts
from codemods.row_function import read_row_function
from codemods.row_results import Glue, Result, check_results, names_read_after, read_results, type_doubts
from codemods.statements import (
    call,
    comments,
    comments_above,
    in_lines,
    indentation,
    insert_after,
    line_limit,
)
from mslint.findings import Applicability, Edit, Finding, Fix, Position
from mslint.semantics.cells import CellClass, method_of, self_name
from mslint.semantics.flow import owner_of
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module, find
from mslint.semantics.rows import How, RowLoop
from mslint.semantics.tensors import values_at


class VectorizeRows(Codemod):
    """Run the body of a loop over rows once for all rows.

    What it does
        A Python loop (or comprehension) over the rows of one tensor whose body is made of elementwise functions, numbers
        and reductions becomes that body on the whole tensor: axes counted from the first move by one, a reduction of a row
        becomes one of all axes but the first. Of any other loop over rows the body becomes a function of one row, and the
        loop a call of ``mindspore.vmap`` of it. Rows along any axis, several tensors side by side, values that are the same
        for all rows, several results, lists that are stacked, concatenated or added up, and sums are understood. The
        vectorised function is built once, at module level or, where the body runs operators kept in ``self``, in
        ``__init__``: built in ``construct`` it would be compiled anew at each step in PyNative mode as soon as there
        are two of them. MindSpore compiles it in PyNative mode too, so ``MS_JIT=0`` must not be set. An operator that
        ``vmap`` has no rule for is written by an equal one that has one: a sum of floats as ``ops.ReduceSum``, ``x.max()`` as
        ``x.amax()``. Where there is none, it still runs row by row, inside that function; the message names it.

    When it is safe
        The number of rounds provably is the number of rows of every tensor that is read (``range(x.shape[0])``,
        ``range(len(x))``, ``enumerate(x)``, ``for row in x``), and all operators of the body were measured to give the same
        values and gradients under ``vmap`` as in a loop, up to float rounding (a relative 2e-5), in graph and PyNative
        mode. Functions and methods of the same file that the body calls are read, too.

    When it is unsafe
        The message names the assumption: that a second tensor has as many rows as the first (``vmap`` raises an error if
        it has more, where the loop read the first ones), that a bound which is a plain number is the number of rows,
        that an operator which was not measured is vectorised rightly, nor a condition or a loop in a function that the
        body calls, or a Cell of the project; that rows whose axis -1 the body names (``x[i].sum(-1)``) are no single
        numbers, which MindSpore takes that axis of, too, where no index such as ``x[i, :]`` shows it; that a sum of whole
        numbers may be an int64, a sum of float16 no float32.

    When it is left to you
        Rounds that store in place, grow a concatenation or select into what is there; control flow that the values of a row
        decide; the row's number used as a value; indexing by values of a row; random operators and layers that keep state;
        operators that ``vmap`` refuses; results used as a Python list. The message says what to do.
    """

    name = "vectorize-rows"
    summary = "a loop over the rows of a tensor becomes its body on all rows at once, or mindspore.vmap over it"
    applicability = (
        "safe where the loop provably runs over all rows; unsafe where that is assumed; manual where rounds do more than "
        "compute something from their row"
    )
    rules = ("MS203",)

    def applies(self, finding: Finding) -> bool:
        return isinstance(finding.subject, RowLoop)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, RowLoop)
        return _Rewrite(module, finding.subject).fix()

    def tidy(self, module: Module, after: str) -> str:
        return drop_unreferenced(module.program, module.source.path.absolute(), module.source.text, after)


class _Rewrite:
    """The rewrite of one loop."""

    def __init__(self, module: Module, loop: RowLoop) -> None:
        self.module = module
        self.loop = loop
        self.values = values_at(module, loop.node)
        if not isinstance(self.values.function, cst.FunctionDef):
            raise Manual("the loop is in no function of its own")
        self.function = self.values.function
        self.method = method_of(module, loop.node)
        if self.function is not self.method and module.scope(self.function) is not module.tree:
            raise Manual("the loop is in a function inside another one: move that to module level")
        self.owner = owner_of(module, loop.node) if self.method is not None else None
        check_results(loop)
        self.row = read_row_function(module, self.values, loop)
        self.results = read_results(self.row)
        self.doubts = [*row_doubts(self.row), *type_doubts(self.row, self.results)]
        self.at_once = False
        self._try_at_once()
        after = names_read_after(self.row)
        if after:
            raise Manual(f"`{after[0]}` is read after the loop, as the last round leaves it")
        stem = self._stem()
        number = self._namesakes(stem) + 1
        suffix = f"_{number}" if number > 1 else ""
        self.one, self.all = self._free(f"row_{stem}{suffix}"), self._free(f"row_{_plural(stem)}{suffix}")

    def _try_at_once(self) -> None:
        """Take the body as it is for all rows, without ``vmap``, if it is as simple as that."""
        whole = batched(self.row) if not self.doubts else None
        results = read_results(whole) if whole is not None else []
        if whole is not None and not any("\n" in result.text or result.axis != 0 for result in results):
            self.row, self.results, self.at_once = whole, results, True

    def _stem(self) -> str:
        """Return a word for what one round gives."""
        return _singular(self.results[0].gathered.name or self._assigned_to(self.loop.node))

    def _assigned_to(self, comprehension: cst.CSTNode) -> str:
        line = self.module.enclosing(comprehension, cst.Assign)
        target = line.targets[0].target if line is not None else None
        return target.value if isinstance(target, cst.Name) else "value"

    def _namesakes(self, stem: str) -> int:
        """Count the loops above that may be rewritten in the same pass and take the same name."""
        count = 0
        for node in (loop for inventory in inventories(self.module).values() for loop in inventory.loops):
            if self.module.start(node) < self.module.start(self.loop.node):
                words = _collected(node) if isinstance(node, cst.For) else {self._assigned_to(node)}
                count += any(_singular(word) == stem for word in words)
        return count

    def _free(self, name: str) -> str:
        taken = {known for names in self.module.bindings.values() for known in names}
        taken |= {node.attr.value for node in find(self.module.tree, cst.Attribute)}
        number, free = 2, name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free

    def fix(self) -> Fix:
        edits = self._comprehension() if not isinstance(self.loop.node, cst.For) else self._loop(self.loop.node)
        if self.at_once:
            message = "compute all rows at once, by the same operators on the whole tensor"
            doubts = ["that a row is no single number, whose axis -1 would be that of the rows"]
            return self._fix(message, edits, doubts if self.row.needs_axis else [])
        vmap = reach(self.module, "mindspore.vmap", self.loop.node)
        edits = [*vmap.edits, *self.row.imports, *self._definition(vmap.expression), *edits]
        message = "run the body once for all rows, by mindspore.vmap"
        if self.row.looped:
            message += f" ({listed(self.row.looped)}, for which it has no rule, row by row as before)"
        doubts = self.doubts
        if self.row.unmeasured:
            doubts.append(f"that vmap vectorises {listed(self.row.unmeasured)} rightly, which was not measured")
        if self.row.vectors:
            doubts.append(
                f"that no operand of {listed(self.row.vectors)} is a vector, which vmap takes for a matrix, nor a stack of "
                "matrices that all rows share, which vmap takes for those of the rows"
            )
        if self.row.uses_self and "deepcopy(" in self.module.source.text:
            doubts.append("that no copy of this Cell is run: a copy made by deepcopy would run the original's layers")
        return self._fix(message, edits, doubts)

    def _fix(self, message: str, edits: list[Edit], doubts: list[str]) -> Fix:
        if not doubts:
            return Fix(VectorizeRows.name, Applicability.SAFE, message, tuple(dict.fromkeys(edits)))
        message += f"; this assumes {listed(doubts)}"
        return Fix(VectorizeRows.name, Applicability.UNSAFE, message, tuple(dict.fromkeys(edits)))

    # The row function and where it is vectorised.

    def _definition(self, vmap: str) -> list[Edit]:
        parameters = [argument.parameter for argument in self.row.arguments]
        if not self.row.uses_self:
            return [self._insert_before(self._top(), self._defined(parameters, "", vmap, blank=2))]
        assert self.method is not None
        this = self_name(self.method)
        lines = self._function([this, *parameters], indentation(self.module, self.method))
        built = self._build(vmap, this)
        return [self._insert_before(self.method, [*lines, ""]), built]

    def _defined(self, parameters: list[str], margin: str, vmap: str, blank: int) -> list[str]:
        space = [""] * blank
        vectorised = call(self.module, margin, f"{self.all} = {vmap}(", [self.one, *self._axes()])
        return [*self._function(parameters, margin), *space, *vectorised, *space]

    def _build(self, vmap: str, this: str) -> Edit:
        """Return the edit that builds the vectorised function at the end of ``__init__``."""
        owner = self.owner
        start = owner.methods.get("__init__") if owner is not None else None
        if owner is None or start is None or not isinstance(start.body, cst.IndentedBlock):
            raise Manual(
                "the body runs operators of `self`, and the class has no `__init__` to vectorise it in: give it one"
            )
        last = start.body.body[-1]
        if not isinstance(last, cst.SimpleStatementLine) or isinstance(last.body[0], (cst.Return, cst.Raise)):
            if isinstance(last, cst.SimpleStatementLine):
                raise Manual("`__init__` ends by leaving: the vectorised function finds no place there")
        self._check_attributes(owner)
        margin = indentation(self.module, start.body.body[0])
        inside = self_name(start)
        built = f"{margin}{inside}.{self.all} = {vmap}("
        lines = call(self.module, "", built, [f"{inside}.{self.one}", *self._axes()])
        leaf = list(find(start.body, cst.SimpleStatementLine))[-1]
        return insert_after(self.module, leaf, in_lines(self.module, lines))

    def _check_attributes(self, owner: CellClass) -> None:
        """Refuse what PyNative mode would go on running as it was when the function was compiled."""
        called = {
            node.func.attr.value
            for node in find(self.row.body, cst.Call)
            if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name)
        }
        for attribute in called:
            for assigned in owner.assigned.get(attribute, []):
                if assigned.method.name.value != "__init__":
                    raise Manual(f"`self.{attribute}` is set anew in `{assigned.method.name.value}`")

    def _axes(self) -> list[str]:
        """Return the keyword arguments of ``vmap``."""
        axes = [argument.axis for argument in self.row.arguments]
        found = []
        if set(axes) == {axes[0]}:
            found += [f"in_axes={axes[0]}"] if axes[0] != 0 else []
        else:
            found.append(f"in_axes=({', '.join(map(str, axes))})")
        out = [result.axis for result in self.results]
        if set(out) == {out[0]}:
            found += [f"out_axes={out[0]}"] if out[0] != 0 else []
        else:
            found.append(f"out_axes=({', '.join(map(str, out))})")
        return found

    def _function(self, parameters: list[str], margin: str) -> list[str]:
        step = self.module.tree.default_indent
        body = self._body() if isinstance(self.loop.node, cst.For) else self._returned(self._margin())
        text = indent("\n".join(body), margin + step)
        return [*call(self.module, margin, f"def {self.one}(", parameters, "):"), *text.split("\n")]

    def _margin(self) -> str:
        return indentation(
            self.module, self.module.enclosing(self.loop.node, cst.SimpleStatementLine) or self.loop.node
        )

    def _returned(self, margin: str = "") -> list[str]:
        several = len(self.results) > 1 and any("\n" in result.text for result in self.results)
        column = len(self.module.tree.default_indent if several else "return ")
        texts = ["\n".join(_aligned(result.text, result.column, column, margin)) for result in self.results]
        if several:
            step = self.module.tree.default_indent
            return ["return (", *(line for text in texts for line in indent(f"{text},", step).split("\n")), ")"]
        written = f"return {', '.join(texts)}"
        try:
            ast.parse("def f():\n" + indent(written, " "))
        except SyntaxError:
            written = f"return ({texts[0]})"
        return written.split("\n")

    def _body(self) -> list[str]:
        """Return the lines of the loop's body up to the results, and the ``return`` of these."""
        loop = self.loop.node
        assert isinstance(loop, cst.For)
        if not isinstance(loop.body, cst.IndentedBlock):
            return self._returned(self._margin())
        lines, behind, trailing = self._before_results(loop, loop.body)
        returned = self._returned(indentation(self.module, loop.body.body[0]))
        if behind:
            returned[-1] += f"  {' '.join(behind)}"
        return [*lines, *returned, *trailing]

    def _before_results(self, loop: cst.For, body: cst.IndentedBlock) -> tuple[list[str], list[str], list[str]]:
        """Return the lines up to the results, the comments behind these, and those that end the body."""
        statements = list(body.body)
        collecting = [self.module.enclosing(result.gathered.node, cst.SimpleStatementLine) for result in self.results]
        if statements[len(statements) - len(collecting) :] != sorted(
            [line for line in collecting if line is not None], key=self.module.start
        ):
            raise Manual("results are collected before the round's end or under a condition: collect them last")
        if '"""' in self.module.code(loop) or "'''" in self.module.code(loop):
            raise Manual("the body holds a string of several lines")
        kept = [line for line in statements[: -len(collecting)] if line not in self.row.dropped]
        margin = indentation(self.module, statements[0])
        lines: list[str] = []
        for line in kept:
            first = Position(self.module.start(line).row - len(comments_above(self.module, line)), 1)
            end = self._end_of(line)
            lines += [""] if lines and not self.module.lines[first.row - 2].strip() else []
            lines += _dedented(self.row.text(first, end), margin)
        for line in statements[-len(collecting) :]:
            above = comments_above(self.module, line)
            row = self.module.start(line).row - len(above)
            lines += [""] if lines and not self.module.lines[row - 2].strip() else []
            lines += above
        behind = [text for line in statements[-len(collecting) :] for text in self._behind(line)]
        trailing = self.module.lines[self._last_row() - self._comments_below() : self._last_row()]
        return lines, behind, [text.strip() for text in trailing]

    def _behind(self, line: cst.CSTNode) -> list[str]:
        row = self._end_of(line).row
        end = self.module.end(line)
        rest = self.module.lines[row - 1][end.column - 1 :].strip()
        return [rest] if rest.startswith("#") else []

    def _end_of(self, statement: cst.CSTNode) -> Position:
        """Return the end of the last line of ``statement``, comment and all."""
        leaf = [statement, *find(statement, cst.SimpleStatementLine)][-1]
        row = self.module.end(leaf).row
        return Position(row, len(self.module.lines[row - 1]) + 1)

    def _last_row(self) -> int:
        """Return the last row of the loop, with the comments that end its body."""
        return self._end_of(self.loop.node).row + self._comments_below()

    def _comments_below(self) -> int:
        margin = len(indentation(self.module, self.loop.node))
        row = self._end_of(self.loop.node).row
        count = 0
        for line in self.module.lines[row:]:
            text = line.lstrip()
            if not text.startswith("#") or len(line) - len(text) <= margin:
                break
            count += 1
        return count

    def _top(self) -> cst.CSTNode:
        return next(
            item for item in self.module.ancestors(self.loop.node) if self.module.parents[item] is self.module.tree
        )

    def _insert_before(self, node: cst.CSTNode, lines: list[str]) -> Edit:
        row = self.module.start(node).row
        for decorator in getattr(node, "decorators", ()):
            row = min(row, self.module.start(decorator).row)
        while row > 1 and self.module.lines[row - 2].lstrip().startswith("#"):
            row -= 1
        return Edit(Position(row, 1), Position(row, 1), in_lines(self.module, [line.rstrip() for line in lines]))

    # The loop's place.

    def _callee(self) -> str:
        if not self.row.uses_self:
            return self.all
        assert self.method is not None
        return f"{self_name(self.method)}.{self.all}"

    def _arguments(self) -> list[str]:
        return [argument.expression for argument in self.row.arguments]

    def _comprehension(self) -> list[Edit]:
        (glue,) = self.results[0].glues
        return [self.module.replace(glue.call, self._inline(glue))]

    def _inline(self, glue: Glue) -> str:
        """Return what stands in the place of the glued list."""
        if not self.at_once:
            return f"{self._callee()}({', '.join(self._arguments())}){glue.ending}"
        stands_alone = isinstance(self.module.parents[glue.call], (cst.Arg, cst.Assign, cst.Return)) or glue.call.lpar
        text = self.results[0].text
        return _with_ending(text, glue.ending) if glue.ending or stands_alone else _as_primary(text)

    def _loop(self, loop: cst.For) -> list[Edit]:
        if loop.orelse is not None:
            raise Manual("the loop has an `else`")
        in_place = self._in_place(loop)
        lines = [] if in_place else self._assigned(loop)
        margin = indentation(self.module, loop)
        header = [margin + text for text in self._comments_of_header(loop)]
        if self.at_once and isinstance(loop.body, cst.IndentedBlock):
            above, behind, below = self._before_results(loop, loop.body)
            above = [self.row.whole, *above] if self.row.whole else above
            header += [(margin + text).rstrip() for text in (*above, *behind, *below)]
        edits = list(in_place)
        first = self.module.start(loop).row
        last = self._last_row()
        if not header and not lines and self._stands_between_blank_lines(first, last):
            last += 1
        edits.append(Edit(Position(first, 1), self._after(last), in_lines(self.module, [*header, *lines])))
        for result in self.results:
            if result.initial is not None:
                edits.append(self._without(result.initial, margin))
        if not in_place:
            edits += [self._unglued(result, glue) for result in self.results for glue in result.glues]
        return edits

    def _unglued(self, result: Result, glue: Glue) -> Edit:
        """Return the edit that takes the tensor in the place of the glued list."""
        name = result.gathered.name
        assign = self.module.parents[glue.call]
        if isinstance(assign, cst.Assign) and not glue.ending and len(assign.targets) == 1:
            target = assign.targets[0].target
            line = self.module.parents[assign]
            alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
            if isinstance(target, cst.Name) and target.value == name and alone:
                return self._without(assign, indentation(self.module, line))
        return self.module.replace(glue.call, name + glue.ending)

    def _stands_between_blank_lines(self, first: int, last: int) -> bool:
        """Tell whether blank lines meet once the loop, with the statement right above that starts the list, is gone."""
        lines = self.module.lines
        starts = {self.module.start(result.initial).row for result in self.results if result.initial is not None}
        while first - 1 in starts and "#" not in lines[first - 2]:
            first -= 1
        return first > 1 and last < len(lines) and not lines[first - 2].strip() and not lines[last].strip()

    def _comments_of_header(self, loop: cst.For) -> list[str]:
        row = self.module.start(loop).row
        end = self.module.start(loop.body.body[0]).row
        line = self.module.lines[row - 1]
        if end == row or "#" not in line:
            return []
        return [text for text in comments(self.module, loop) if line.rstrip().endswith(text)][:1]

    def _after(self, row: int) -> Position:
        lines = self.module.lines
        return Position(row + 1, 1) if row < len(lines) else Position(row, len(lines[-1]) + 1)

    def _without(self, statement: cst.Assign, margin: str) -> Edit:
        """Return the edit that takes the line of ``statement`` out and leaves its comment."""
        line = self.module.parents[statement]
        row, last = self.module.start(line).row, self.module.end(line).row
        kept = [margin + text for text in comments(self.module, line)]
        return Edit(Position(row, 1), self._after(last), in_lines(self.module, kept))

    def _in_place(self, loop: cst.For) -> list[Edit]:
        """Return the edit that puts the call where the list is glued together, if that is the very next statement."""
        result = self.results[0]
        if len(self.results) > 1 or len(result.glues) != 1:
            return []
        glue = result.glues[0].call
        line = self.module.enclosing(glue, cst.SimpleStatementLine)
        block = self.module.parents[loop]
        if line is None or not isinstance(block, cst.IndentedBlock):
            return []
        after = list(block.body)[list(block.body).index(loop) + 1 :]
        others = [use for use in self.values.uses(result.gathered.name) if use in set(find(line, cst.Name))]
        mentioned = {name for name in find(line, cst.Name) if name.value == result.gathered.name}
        targets = {name for target in find(line, cst.AssignTarget) for name in find(target, cst.Name)}
        if after[:1] != [line] or len([use for use in others if use not in targets]) != 1 or not mentioned:
            return []
        later = [
            use for use in self.values.uses(result.gathered.name) if self.module.start(use) > self.module.end(line)
        ]
        if later and not any(name.value == result.gathered.name for name in targets):
            return []
        text = self._inline(result.glues[0])
        row = self.module.lines[self.module.start(glue).row - 1]
        if len(row) - len(self.module.code(glue)) + len(text) > line_limit(self.module) or "\n" in self.module.code(
            glue
        ):
            return []
        return [self.module.replace(glue, text)]

    def _assigned(self, loop: cst.For) -> list[str]:
        margin = indentation(self.module, loop)
        if self.at_once:
            return [margin + self._collected_at_once(result) for result in self.results]
        callee, arguments = self._callee(), self._arguments()
        if len(self.results) == 1:
            result = self.results[0]
            if result.gathered.how is How.LISTED:
                return call(self.module, margin, f"{result.gathered.name} = {callee}(", arguments)
            return call(self.module, margin, f"{self._sum(result)}{callee}(", arguments, ").sum(0)")
        names = [
            result.gathered.name
            if result.gathered.how is How.LISTED
            else self._free(_plural(_singular(result.gathered.name)))
            for result in self.results
        ]
        lines = call(self.module, margin, f"{', '.join(names)} = {callee}(", arguments)
        for result, name in zip(self.results, names, strict=True):
            if result.gathered.how is not How.LISTED:
                lines.append(f"{margin}{self._sum(result)}{name}.sum(0)")
        return lines

    def _collected_at_once(self, result: Result) -> str:
        if result.gathered.how is How.LISTED:
            return f"{result.gathered.name} = {result.text}"
        return self._sum(result) + _with_ending(result.text, ".sum(0)")

    def _sum(self, result: Result) -> str:
        """Return what stands before the sum over the rows."""
        name, sign = result.gathered.name, "-" if result.subtracted else "+"
        if result.initial is not None:
            return f"{name} = {sign if result.subtracted else ''}"
        if isinstance(result.gathered.node, cst.AugAssign):
            return f"{name} {sign}= "
        return f"{name} = {name} {sign} "


def _with_ending(text: str, ending: str) -> str:
    """Return the expression ``text`` with the method call ``ending``."""
    return _as_primary(text) + ending if ending else text


def _as_primary(text: str) -> str:
    """Return the expression ``text``, in brackets unless what follows takes it as a whole anyhow."""
    whole = ast.parse(f"({text})", mode="eval").body
    return text if isinstance(whole, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _dedented(text: str, margin: str) -> list[str]:
    """Return the lines of ``text`` without ``margin``, where they start with it."""
    return [line.removeprefix(margin) for line in text.split("\n")]


def _aligned(text: str, old: int, new: int, margin: str) -> list[str]:
    """Return the lines of ``text``, which moves from column ``old`` to ``new``: lines aligned with its start stay so."""
    first, *others = text.split("\n")
    lines = [first]
    for line in others:
        spaces = len(line) - len(line.lstrip())
        lines.append(" " * (spaces - old + new) + line.lstrip() if spaces >= old else line.removeprefix(margin))
    return lines


def _collected(loop: cst.For) -> set[str]:
    """Return the variables that ``loop`` adds something to."""
    found: set[cst.CSTNode] = {node.target for node in find(loop, cst.AugAssign)}
    for assign in find(loop, cst.Assign):
        target = assign.targets[0].target
        read = {name.value for name in find(assign.value, cst.Name)}
        found |= {target} if isinstance(target, cst.Name) and target.value in read else set()
    for append in find(loop, cst.Call):
        if isinstance(append.func, cst.Attribute) and append.func.attr.value == "append":
            found.add(append.func.value)
    return {node.value for node in found if isinstance(node, cst.Name)}


def _singular(name: str) -> str:
    plain = name.rpartition(".")[2].removesuffix("_list").strip("_") or "value"
    if plain in ("row", "rows"):
        return "value"
    if plain.endswith(("sses", "xes")):
        return plain[:-2]
    return plain[:-1] if plain.endswith("s") and not plain.endswith("ss") and len(plain) > 3 else plain


def _plural(name: str) -> str:
    if name.endswith("y") and name[-2:-1] not in tuple("aeiou"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"
