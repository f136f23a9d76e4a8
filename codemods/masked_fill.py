"""``masked-fill``: what is written in place where a mask holds becomes a new tensor."""

from __future__ import annotations

import re
import struct

import libcst as cst

from codemods.base import Codemod, Manual
from codemods.imports import reach_operator
from codemods.inlining import other_reads
from codemods.statements import call, in_lines, indentation, inner_comments, newline, one_line
from mslint.findings import Applicability, Edit, Finding, Fix
from mslint.semantics.extents import asks_only, fits, hands_on, holds_floats, holds_numbers, is_fresh
from mslint.semantics.formula import Expression, numbers, read
from mslint.semantics.gradients import statement_of
from mslint.semantics.masks import Masked, mask_origin
from mslint.semantics.module import Binding, Module
from mslint.semantics.reaching import from_rounds_before, reaching
from mslint.semantics.tensors import values_at

_READ = (
    "what is done with the elements decides: for a sum or mean, ops.where(mask, x, 0).sum() / mask.sum(), so that the shape "
    "stays fixed"
)
_SIGNS: dict[type[cst.BaseAugOp], str] = {cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*"}
_MAKING = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
_KEEPING = ("append", "extend", "insert", "setdefault", "list", "tuple", "dict", "zip", "setattr")
"""Functions and methods that put a tensor somewhere."""
_LARGEST_WHOLE = 2048
"""Up to here float16 has every whole number."""
_LARGEST_FLOAT = 3e38
_WIDE = re.compile(r"\b(float64|double)\b")
_INFINITE = ("numpy.inf", "math.inf")


class MaskedFill(Codemod):
    """Replace a write by a boolean mask by ``ops.where``.

    What it does
        ``t[mask] = number`` becomes ``t = ops.where(mask, number, t)``, and ``t[mask] *= number`` becomes
        ``t = ops.where(mask, t * number, t)``. ``ops.where`` is taken, not ``masked_fill``, which on CPU refuses an integer
        for a float tensor.

    When it is safe
        The tensor was made in the same function by an operator and nothing but comparisons has read it before, so nothing
        else sees the write; the mask comes from the tensor or from what the tensor was made of, so it has its shape; and the
        number keeps the type of the elements. Then values and gradients are bit-equal in graph and PyNative mode.

    When it is unsafe
        One of these is likely but cannot be read: the message names it. If a value was computed from the tensor before the
        write, its gradient in PyNative mode is wrong today (it reads what was written since) and right after the rewrite.

    When it is left to you
        Elements that are read by a mask: what becomes of them decides. Tensors that have another name or belong to a caller,
        which sees the write in PyNative mode but not in graph mode. Values that are no numbers.
    """

    name = "masked-fill"
    summary = "a write by a boolean mask becomes ops.where"
    applicability = (
        "safe; unsafe where type, shape or earlier readers are not known; manual for reads and shared tensors"
    )
    rules = ("MS204",)

    def propose(self, module: Module, finding: Finding, target_version: tuple[int, int]) -> Fix:
        assert isinstance(finding.subject, Masked)
        return _Store(module, finding.subject).fix()


class _Store:
    """One write by a mask."""

    def __init__(self, module: Module, masked: Masked) -> None:
        self.module = module
        self.masked = masked
        statement = masked.stored
        if statement is None:
            raise Manual(_READ)
        self.statement = statement
        target = masked.subscript.value
        whole = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
        if len(masked.subscript.slice) > 1 or whole is not masked.subscript:
            raise Manual("the mask is one index of several; write it as ops.where with a mask of the whole shape")
        if isinstance(statement, cst.Assign) and len(statement.targets) > 1:
            raise Manual("several targets are written at once; give each its own statement")
        if not isinstance(target, cst.Name):
            raise Manual(f"`{module.code(target)}` is no local variable, and others may read it; give it a new value")
        self.tensor = target

    def fix(self) -> Fix:
        """Return the rewrite with what it takes for granted."""
        doubts = [*self._readers(), *self._type(), *self._shape()]
        message = "the same as a new value: ops.where"
        edits = self._edits()
        if doubts:
            taken = " and that ".join(dict.fromkeys(doubts))
            return Fix(MaskedFill.name, Applicability.UNSAFE, f"{message}; it takes for granted that {taken}", edits)
        return Fix(MaskedFill.name, Applicability.SAFE, message, edits)

    def _readers(self) -> list[str]:
        """Return what others may see of the write; refuse where they are certain to share the tensor."""
        module, name = self.module, self.tensor
        bound = [*reaching(module, name), *from_rounds_before(module, name)]
        if not bound or module.scope(bound[0].node) is not module.scope(name):
            raise Manual(f"`{name.value}` belongs to another function, which sees the write; give it a new value there")
        doubts = []
        for binding in bound:
            doubts += self._made(binding)
            for reader in other_reads(module, binding, name):
                if self._is_before(reader):
                    doubts += self._read_before(reader)
        return doubts

    def _made(self, binding: Binding) -> list[str]:
        module, name = self.module, self.tensor.value
        if isinstance(binding.node, cst.Param):
            if module.program.mode(module.source.path.absolute()) == "graph":
                return [f"all runs in graph mode: in PyNative mode the caller of this function sees `{name}` written"]
            raise Manual(
                f"`{name}` is an argument: in PyNative mode the caller's tensor is written too, in graph mode it is not; if "
                f"the caller does not need that, write {name} = ops.where(mask, value, {name})"
            )
        value = binding.value
        goes_elsewhere = isinstance(binding.node, cst.NamedExpr) or (
            isinstance(binding.node, cst.Assign) and len(binding.node.targets) > 1
        )
        if value is None or not isinstance(value, _MAKING) or goes_elsewhere:
            raise Manual(
                f"`{name}` may share its numbers with another name since row {module.start(binding.node).row}, which sees "
                "the write in PyNative mode but not in graph mode; give it a new value"
            )
        if hands_on(module, value):
            operands = read(Expression(module, value)).operands
            shared = f"`{operands[0].code}`" if operands else f"what `{Expression(module, value).code}` is made of"
            raise Manual(
                f"`{name}` may share its numbers with {shared} since row {module.start(binding.node).row}, "
                "which then sees the write in PyNative mode but not in graph mode; give it a new value"
            )
        if not is_fresh(module, value):
            assert isinstance(value, cst.Call)
            return [f"`{module.code(value.func)}` returns a tensor that nothing else holds"]
        return []

    def _is_before(self, reader: cst.Name) -> bool:
        """Tell whether ``reader`` may run before the write: it stands above, or a loop around the write holds it."""
        module = self.module
        loops = [item for item in module.ancestors(self.statement) if isinstance(item, (cst.For, cst.While))]
        scope = module.scope(self.tensor)
        loops = [loop for loop in loops if scope in set(module.ancestors(loop))]
        return module.start(reader) < module.start(self.statement) or any(
            loop in set(module.ancestors(reader)) for loop in loops
        )

    def _read_before(self, reader: cst.Name) -> list[str]:
        module = self.module
        parent = module.parents[reader]
        if isinstance(parent, cst.Subscript) and parent.value is reader and _is_target(module, parent):
            return []
        if any(isinstance(item, cst.Comparison) for item in self._around(reader)) or self._makes_mask(reader):
            return []
        if asks_only(module, reader):
            return []
        row, user = module.start(reader).row, self._user(reader)
        if user is None or hands_on(module, user):
            raise Manual(
                f"row {row} gives `{reader.value}` to another name before it is written, which sees the write in PyNative "
                "mode but not in graph mode; give it a new value"
            )
        if isinstance(user, cst.Call) and not read(Expression(module, user)).operation and not is_fresh(module, user):
            return [f"`{module.code(user.func)}` in row {row} neither keeps `{reader.value}` nor returns it"]
        return [
            f"what row {row} computes from `{reader.value}` before the write is to keep the gradient that it has in graph "
            "mode: in PyNative mode it reads what was written since"
        ]

    def _user(self, reader: cst.Name) -> cst.BaseExpression | None:
        """Return the operation or call that reads ``reader``; None if the tensor itself goes on, into a list perhaps."""
        module = self.module
        parent = module.parents[reader]
        above = module.parents[parent]
        if isinstance(parent, cst.AugAssign):
            return parent.value if parent.value is reader else None
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
            return parent
        if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
            method = above.func.attr.value if isinstance(above.func, cst.Attribute) else module.code(above.func)
            return None if method in _KEEPING else above
        is_method = isinstance(parent, cst.Attribute) and parent.value is reader and isinstance(above, cst.Call)
        if is_method and isinstance(above, cst.Call) and above.func is parent:
            return above
        return parent if isinstance(parent, cst.Attribute) else None

    def _around(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        line = statement_of(self.module, node)
        above = []
        for item in self.module.ancestors(node):
            if item is line:
                break
            above.append(item)
        return above

    def _makes_mask(self, reader: cst.Name) -> bool:
        values = values_at(self.module, reader)
        return any(
            isinstance(item, cst.Call) and mask_origin(values, item) is not None for item in self._around(reader)
        )

    def _type(self) -> list[str]:
        module, value = self.module, self.statement.value
        if not self._is_number(value):
            raise Manual(
                f"`{module.code(value)}` is no number that can be read; if it has the type and the shape of "
                f"`{self.tensor.value}`, write {self.tensor.value} = ops.where(mask, value, {self.tensor.value})"
            )
        if mask_origin(values_at(module, self.tensor), self.tensor) is not None:
            raise Manual(f"`{self.tensor.value}` holds truth values; write it with ops.logical_and or ops.logical_or")
        if self._is_whole(value):
            numeric = holds_numbers(module, self.tensor)
            return [] if numeric else [f"`{self.tensor.value}` holds numbers, not truth values"]
        floats = holds_floats(module, self.tensor)
        if floats is False:
            raise Manual(f"`{self.tensor.value}` holds integers, of which ops.where with a float makes floats; cast it")
        doubts = [] if floats else [f"`{self.tensor.value}` holds floats: of integers ops.where would make floats"]
        if _WIDE.search(module.source.text) and not self._is_exact(value):
            doubts.append(f"`{self.tensor.value}` is no float64: in PyNative mode ops.where writes a float32")
        return doubts

    def _is_exact(self, value: cst.BaseExpression) -> bool:
        """Tell whether float32 has all the numbers that ``value`` may be."""
        found = numbers(Expression(self.module, value))
        return all(abs(n) < _LARGEST_FLOAT and struct.unpack("f", struct.pack("f", n))[0] == n for n in found)

    def _is_whole(self, value: cst.BaseExpression) -> bool:
        """Tell whether ``value`` is a whole number that every type of number has."""
        if isinstance(value, cst.UnaryOperation):
            value = value.expression
        written = isinstance(value, (cst.Integer, cst.Float))
        return written and all(
            abs(n) <= _LARGEST_WHOLE and n == int(n) for n in numbers(Expression(self.module, value))
        )

    def _value(self, value: cst.BaseExpression) -> str:
        """Return the number as it is to be written: a whole one as an integer unless the tensor is sure to hold floats."""
        text = one_line(self.module, value)
        if not self._is_whole(value) or holds_floats(self.module, self.tensor):
            return text
        return str(int(float(text.replace("_", "").replace(" ", ""))))

    def _is_number(self, value: cst.BaseExpression) -> bool:
        module = self.module
        if isinstance(value, cst.UnaryOperation):
            return self._is_number(value.expression)
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "float":
            return not module.lookup("float", value)
        if isinstance(value, cst.Attribute) and module.resolve(value) in _INFINITE:
            return True
        return isinstance(value, (cst.Integer, cst.Float)) or bool(numbers(Expression(module, value)))

    def _shape(self) -> list[str]:
        if fits(self.module, self.masked.mask, self.tensor):
            return []
        mask = one_line(self.module, self.masked.mask)
        return [f"`{mask}` has the shape of `{self.tensor.value}`, not only its first axes"]

    def _edits(self) -> tuple[Edit, ...]:
        module, statement, name = self.module, self.statement, self.tensor.value
        value = self._value(statement.value)
        if isinstance(statement, cst.AugAssign):
            sign = _SIGNS.get(type(statement.operator))
            if sign is None:
                raise Manual(f"write {name} = ops.where(mask, ..., {name})")
            value = f"{name} {sign} {value}"
        reached = reach_operator(module, "where", self.tensor)
        indent = indentation(module, statement_of(module, statement) or statement)
        start = module.start(statement)
        before = module.lines[start.row - 1][: start.column - 1]
        arguments = [one_line(module, self.masked.mask), value, name]
        lines = call(module, "" if before.strip() else indent, f"{name} = {reached.expression}(", arguments)
        text = "\n".join(lines).replace("\n", newline(module))
        text = text if before.strip() else text[len(indent) :]
        edits = [*reached.edits, module.replace(statement, text)]
        # A mask of several lines with comments stays as it is written.
        kept = inner_comments(module, self.masked.mask) if "#" in text else []
        comments = [comment for comment in inner_comments(module, statement) if comment not in kept]
        if comments:
            line = statement_of(module, statement)
            assert line is not None
            above = module.start(line)
            edits.append(Edit(above, above, in_lines(module, [indent + c for c in comments])[len(indent) :] + indent))
        return tuple(edits)


def _is_target(module: Module, subscript: cst.Subscript) -> bool:
    parent = module.parents[subscript]
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.AugAssign) and parent.target is subscript)
