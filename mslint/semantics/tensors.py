"""What a value is at the place where it is used: a tensor, parts of one, a Python list, a number, an array of numpy.

A loop over the rows of a tensor and one over a list of tensors look alike; only where the value comes from tells them
apart. Reading follows the order of statements, as far as blocks show it, since losses reuse their names (``preds`` is the
list of feature maps, then their concatenation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeAlias

import libcst as cst

from mslint.semantics.cells import method_of
from mslint.semantics.criteria import GLUING_OPERATORS, TENSOR_FACTS, TENSOR_METHODS
from mslint.semantics.flow import arguments_for, function_called, held, owner_of, returned
from mslint.semantics.module import Binding, Module, find
from mslint.semantics.reaching import reaching
from mslint.semantics.sensitivity import operator_called


class Kind(Enum):
    """What a value is."""

    TENSOR = "tensor"
    PARTS = "parts of one tensor, all shaped alike"
    LIST = "list, tuple or dict"
    NUMBER = "number"
    ARRAY = "array of numpy"
    UNKNOWN = "unknown"


_Function: TypeAlias = cst.FunctionDef | cst.Lambda | cst.Module

_PART_OPERATORS = frozenset(
    """
    Split split Unstack unstack unbind chunk tensor_split hsplit vsplit dsplit SplitV unsqueeze_list array_split
    """.split()  # noqa: SIM905
)
_TUPLE_OPERATORS = frozenset(
    """
    TopK topk sort Sort ArgMaxWithValue ArgMinWithValue max_with_index Unique unique UniqueWithPad unique_with_pad
    Meshgrid meshgrid RandomChoiceWithMask random_choice_with_mask LSTM GRU RNN LSTMCell BidirectionalLSTM cummax cummin svd
    Svd qr slogdet NMSWithMask CTCGreedyDecoder ctc_greedy_decoder moments var_mean std_mean unique_consecutive
    grad value_and_grad GradOperation vjp jvp jacfwd jacrev HyperMap Map CellList SequentialCell ParameterTuple
    ParameterList ModuleList CellDict MultitypeFuncGraph Partial partial make_tuple
    """.split()  # noqa: SIM905
)
_NUMBER_OPERATORS = frozenset(
    """
    Size size Rank rank DType dtype numel cdiv is_tensor get_rank get_group_size
    """.split()  # noqa: SIM905
)
_SHAPES = ("mindspore.ops.Shape", "mindspore.ops.shape", "mindspore.ops.TensorShape", "mindspore.ops.DynamicShape")
# What gives back a list for a list, a tensor for a tensor.
_IDENTITIES = frozenset(
    """
    stop_gradient depend Depend StopGradient identity Identity clip_by_global_norm clip_by_norm clip_by_value
    DistributedGradReducer PipelineGradReducer
    """.split()  # noqa: SIM905
)
_NUMBERS = ("len", "int", "float", "sum", "max", "min", "round", "abs")
_MAXIMUM_DEPTH = 12


class Values:
    """The values of one function."""

    def __init__(self, module: Module, function: _Function) -> None:
        self.module = module
        self.function = function
        self._uses: dict[str, list[cst.Name]] = {}
        for node in find(function, cst.Name):
            self._uses.setdefault(node.value, []).append(node)
        self._kinds: dict[cst.CSTNode, Kind] = {}
        self._evidence: dict[Binding, Kind] = {}

    def uses(self, name: str) -> list[cst.Name]:
        """Return the places of the function where ``name`` is written, in order."""
        return self._uses.get(name, [])

    def reaching(self, name: cst.Name) -> list[Binding]:
        """Return the bindings in the function that may have given ``name`` its value where it is read."""
        containers = set(self.module.ancestors(name))
        bindings = self.module.lookup(name.value, name)
        for binding in bindings:
            if isinstance(binding.node, cst.CompFor) and _is_inside_comprehension(
                self.module, binding.node, containers
            ):
                return [binding]
        if not bindings or self.module.scope(bindings[0].node) is not self.function:
            return []
        return [binding for binding in reaching(self.module, name) if not isinstance(binding.node, cst.CompFor)]

    def kind(self, node: cst.CSTNode, depth: int = 0) -> Kind:
        """Return what the expression ``node`` of the function is."""
        found = self._kinds.get(node)
        if found is None:
            if depth > _MAXIMUM_DEPTH:
                return Kind.UNKNOWN
            self._kinds[node] = Kind.UNKNOWN  # a value that is computed from itself
            found = self._kinds[node] = self._find_kind(node, depth + 1)
        return found

    def _find_kind(self, node: cst.CSTNode, depth: int) -> Kind:
        if isinstance(node, (cst.Integer, cst.Float)):
            return Kind.NUMBER
        if isinstance(node, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.GeneratorExp, cst.DictComp)):
            return Kind.LIST
        if isinstance(node, cst.Name):
            return self._name(node, depth)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, cst.Subscript):
            return self._subscript(node, depth)
        if isinstance(node, cst.Call):
            return self._call(node, depth)
        if isinstance(node, cst.BinaryOperation):
            return _computed([self.kind(node.left, depth), self.kind(node.right, depth)])
        if isinstance(node, cst.Comparison):
            operands = [node.left, *(target.comparator for target in node.comparisons)]
            return _computed([self.kind(operand, depth) for operand in operands])
        if isinstance(node, cst.UnaryOperation):
            return self.kind(node.expression, depth)
        if isinstance(node, cst.IfExp):
            return _agreed([self.kind(node.body, depth), self.kind(node.orelse, depth)])
        return Kind.UNKNOWN

    def _name(self, node: cst.Name, depth: int) -> Kind:
        bindings = self.reaching(node)
        if not bindings:
            return self._outside(node, depth)
        found = _agreed([self.bound(binding, node.value, depth) for binding in bindings])
        if found is Kind.UNKNOWN:
            evidence = {self.treated_as(binding) for binding in bindings}
            found = evidence.pop() if len(evidence) == 1 else Kind.UNKNOWN
        return found

    def _outside(self, node: cst.Name, depth: int) -> Kind:
        values = [binding.value for binding in self.module.lookup(node.value, node)]
        constants = [
            value for value in values if isinstance(value, (cst.List, cst.Tuple, cst.Integer, cst.Float, cst.Call))
        ]
        return (
            _agreed([self.kind(value, depth) for value in constants]) if len(constants) == len(values) else Kind.UNKNOWN
        )

    def bound(self, binding: Binding, name: str, depth: int = 0) -> Kind:
        """Return what ``binding`` makes of ``name``."""
        node = binding.node
        if isinstance(node, cst.Param):
            return self._parameter(node, depth)
        if isinstance(node, cst.AugAssign):
            return _computed([self.kind(node.target, depth), self.kind(node.value, depth)])
        if binding.value is not None:
            return self.kind(binding.value, depth)
        if isinstance(node, (cst.For, cst.CompFor)):
            return self._element(node, name, depth)
        if isinstance(node, cst.Assign):
            return self._unpacked(node, name, depth)
        return Kind.UNKNOWN

    def _parameter(self, node: cst.Param, depth: int) -> Kind:
        annotation = node.annotation.annotation if node.annotation else None
        if annotation is not None:
            written = self.module.resolve(annotation)
            if written in ("mindspore.Tensor", "mindspore.Parameter"):
                return Kind.TENSOR
            if written == "numpy.ndarray":
                return Kind.ARRAY
            head = annotation.value if isinstance(annotation, cst.Subscript) else annotation
            if isinstance(head, cst.Name) and head.value in (
                "list",
                "tuple",
                "dict",
                "List",
                "Tuple",
                "Dict",
                "Sequence",
            ):
                return Kind.LIST
            if isinstance(head, cst.Name) and head.value in ("int", "float", "bool"):
                return Kind.NUMBER
        if isinstance(node.default, (cst.Integer, cst.Float)):
            return Kind.NUMBER
        return Kind.UNKNOWN

    def from_callers(self, name: cst.Name) -> Kind:
        """Return what the calls in the same file pass for the parameter ``name``, if they agree."""
        passed = list(arguments_for(self.module, name))
        return _agreed([values_at(self.module, value).kind(value, 2) for value in passed])

    def treated_as(self, binding: Binding) -> Kind:
        """Return what the function takes the value of ``binding`` for, by what it does with it."""
        found = self._evidence.get(binding)
        if found is None:
            self._evidence[binding] = Kind.UNKNOWN
            found = Kind.UNKNOWN
            for use in self.uses(binding.name):
                array = self._is_used_as_array(use)
                if (array or self._is_used_as_tensor(use)) and binding in self.reaching(use):
                    found = Kind.ARRAY if array else Kind.TENSOR
                    if array:
                        break
            self._evidence[binding] = found
        return found

    def _is_used_as_array(self, use: cst.Name) -> bool:
        argument = self.module.parents.get(use)
        call = self.module.parents.get(argument) if isinstance(argument, cst.Arg) else None
        name = (self.operator(call) or "") if isinstance(call, cst.Call) and call.args[0] is argument else ""
        return name.startswith("numpy.") and name.rpartition(".")[2] not in ("array", "asarray")

    def _is_used_as_tensor(self, use: cst.Name) -> bool:
        parent = self.module.parents.get(use)
        if isinstance(parent, cst.Attribute) and parent.value is use:
            name = parent.attr.value
            if name in TENSOR_FACTS:
                return True
            call = self.module.parents.get(parent)
            return name in TENSOR_METHODS and isinstance(call, cst.Call) and call.func is parent
        if isinstance(parent, cst.Subscript) and parent.value is use:
            return len(parent.slice) > 1 or _has_ellipsis(parent)
        if isinstance(parent, cst.Arg) and parent.keyword is None:
            call = self.module.parents[parent]
            if isinstance(call, cst.Call) and call.args[0] is parent:
                name = self.operator(call) or ""
                last = name.rpartition(".")[2]
                if name in _SHAPES:
                    return True
                return (
                    name.startswith(("mindspore.ops.", "mindspore.mint."))
                    and last not in GLUING_OPERATORS
                    and last not in _TUPLE_OPERATORS
                    and last not in _IDENTITIES
                    and last
                    not in (
                        "tuple_to_array",
                        "TupleToArray",
                        "scalar_to_tensor",
                        "Print",
                        "print_",
                        "clip_by_global_norm",
                    )
                )
        return False

    def _attribute(self, node: cst.Attribute, depth: int) -> Kind:
        if node.attr.value == "shape":
            return Kind.LIST
        if node.attr.value in ("ndim", "size"):
            return Kind.NUMBER
        values = list(held(self.module, node))
        if values:
            return _agreed([values_at(self.module, value).kind(value, depth) for value in values])
        if node.attr.value in ("T", "mT"):
            return self.kind(node.value, depth)
        return Kind.UNKNOWN

    def _subscript(self, node: cst.Subscript, depth: int) -> Kind:
        base = self.kind(node.value, depth)
        if base in (Kind.TENSOR, Kind.ARRAY):
            return base
        if base is Kind.PARTS:
            return Kind.PARTS if _is_slice(node) else Kind.TENSOR
        if len(node.slice) > 1 or _has_ellipsis(node):
            return Kind.TENSOR
        if isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape":
            return Kind.LIST if _is_slice(node) else Kind.NUMBER
        return Kind.LIST if base is Kind.LIST and _is_slice(node) else Kind.UNKNOWN

    def operator(self, call: cst.Call) -> str | None:
        """Return the canonical name of what ``call`` runs, operators kept in ``self`` or in a variable seen through."""
        if isinstance(call.func, cst.Name):
            built = [binding.value for binding in self.reaching(call.func)]
            if len(built) == 1 and isinstance(built[0], cst.Call):
                return self.module.resolve(built[0].func)
        return operator_called(self.module, owner_of(self.module, call), call)

    def _call(self, node: cst.Call, depth: int) -> Kind:
        function = node.func
        if (
            isinstance(function, cst.Name)
            and function.value in _NUMBERS
            and not self.module.lookup(function.value, node)
        ):
            return Kind.NUMBER if function.value in ("len", "int", "float", "round") else Kind.UNKNOWN
        name = self.operator(node)
        if name is not None:
            return self._operator_result(node, name, depth)
        called = function_called(self.module, node)
        if called is not None:
            return self._returned(called, depth)
        if isinstance(function, cst.Attribute):
            return self._method(node, function, depth)
        return Kind.UNKNOWN

    def _operator_result(self, node: cst.Call, name: str, depth: int) -> Kind:
        last = name.rpartition(".")[2]
        if name.partition(".")[0] in ("numpy", "scipy", "cv2"):
            return Kind.ARRAY
        if name in ("mindspore.Tensor", "mindspore.Parameter"):
            return Kind.TENSOR
        if name in _SHAPES:
            return Kind.LIST
        if not name.startswith("mindspore."):
            called = function_called(self.module, node)
            return self._returned(called, depth) if called is not None else Kind.UNKNOWN
        if last in _IDENTITIES and node.args:
            return self.kind(node.args[0].value, depth)
        if last in _PART_OPERATORS:
            return Kind.PARTS
        if last == "SequentialCell" and self.module.resolve(node.func) != name:
            # Layers one behind the other are run here, not built.
            return Kind.TENSOR
        if last in _TUPLE_OPERATORS:
            return Kind.LIST
        if last in _NUMBER_OPERATORS:
            return Kind.NUMBER
        if name.startswith(("mindspore.ops.", "mindspore.nn.", "mindspore.numpy.", "mindspore.mint.")):
            return Kind.TENSOR
        return Kind.UNKNOWN

    def _returned(self, function: cst.FunctionDef, depth: int) -> Kind:
        values = values_of(self.module, function)
        return _agreed([values.kind(value, depth) for value in returned(self.module, function)])

    def _method(self, node: cst.Call, function: cst.Attribute, depth: int) -> Kind:
        name = function.attr.value
        if name in ("asnumpy", "numpy", "tolist"):
            return Kind.ARRAY
        if name in ("item", "size", "dim", "numel", "nelement"):
            return Kind.NUMBER
        base = self.kind(function.value, depth)
        if base is Kind.ARRAY:
            return Kind.ARRAY
        if name in ("split", "chunk", "unbind", "tensor_split"):
            return Kind.PARTS if base is Kind.TENSOR else Kind.UNKNOWN
        if name in ("topk", "sort") or (name in ("max", "min") and any(a.keyword is not None for a in node.args)):
            return Kind.UNKNOWN
        method = method_of(self.module, function)
        on_self = method is not None and isinstance(function.value, cst.Name) and function.value.value == "self"
        return Kind.TENSOR if base is Kind.TENSOR or (name in TENSOR_METHODS and not on_self) else Kind.UNKNOWN

    def _element(self, node: cst.For | cst.CompFor, name: str, depth: int) -> Kind:
        for target, value in loop_variables(node):
            if isinstance(target, cst.Name) and target.value == name:
                if value is None:
                    return Kind.NUMBER
                kind = self.kind(value, depth)
                return (
                    Kind.TENSOR if kind in (Kind.TENSOR, Kind.PARTS) else kind if kind is Kind.ARRAY else Kind.UNKNOWN
                )
        return Kind.UNKNOWN

    def _unpacked(self, node: cst.Assign, name: str, depth: int) -> Kind:
        value = node.value
        for target in node.targets:
            if not isinstance(target.target, (cst.Tuple, cst.List)):
                continue
            parts = [element.value for element in target.target.elements]
            if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(parts):
                for part, element in zip(parts, value.elements, strict=True):
                    if isinstance(part, cst.Name) and part.value == name:
                        return self.kind(element.value, depth)
            elif self.is_shape(value):
                return Kind.NUMBER
            else:
                kind = self.kind(value, depth)
                if isinstance(value, cst.Call) and (self.operator(value) or "").startswith("mindspore.ops."):
                    return Kind.TENSOR
                return Kind.TENSOR if kind in (Kind.TENSOR, Kind.PARTS) else Kind.UNKNOWN
        return Kind.UNKNOWN

    def is_shape(self, node: cst.CSTNode) -> bool:
        """Tell whether ``node`` is the shape of a tensor or a piece of it: ``x.shape``, ``ops.shape(x)``, ``x.shape[:2]``."""
        if isinstance(node, cst.Subscript) and _is_slice(node):
            return self.is_shape(node.value)
        if isinstance(node, cst.Attribute):
            return node.attr.value == "shape"
        if isinstance(node, cst.Call):
            if self.operator(node) in _SHAPES:
                return True
            return isinstance(node.func, cst.Attribute) and node.func.attr.value == "size" and not node.args
        if isinstance(node, cst.Name):
            values = [binding.value for binding in self.reaching(node)]
            return bool(values) and all(value is not None and self.is_shape(value) for value in values)
        return False


def loop_variables(node: cst.For | cst.CompFor) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Yield each variable of the loop with what it is an element of; None where it counts (``range``, ``enumerate``)."""
    target, over = node.target, node.iter
    name = over.func.value if isinstance(over, cst.Call) and isinstance(over.func, cst.Name) else ""
    arguments = [argument.value for argument in over.args] if isinstance(over, cst.Call) else []
    parts = [element.value for element in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else []
    if name == "range":
        yield target, None
    elif name == "enumerate" and len(parts) == 2 and arguments:
        yield parts[0], None
        yield parts[1], arguments[0]
    elif name == "zip" and len(parts) == len(arguments):
        yield from zip(parts, arguments, strict=True)
    elif not parts:
        yield target, over


def values_of(module: Module, function: _Function) -> Values:
    """Return the values of ``function``."""
    return module.remember((Values, function), lambda: Values(module, function))


def values_at(module: Module, node: cst.CSTNode) -> Values:
    """Return the values of the function that holds ``node``."""
    scope = module.scope(node)
    return values_of(module, module.tree if isinstance(scope, cst.ClassDef) else scope)


def _agreed(kinds: Iterable[Kind]) -> Kind:
    """Return what all ``kinds`` say; None of the branches may be unknown."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else Kind.UNKNOWN


def _computed(kinds: list[Kind]) -> Kind:
    """Return what an operation between values of ``kinds`` gives."""
    for kind in (Kind.ARRAY, Kind.TENSOR):
        if kind in kinds:
            return kind
    return _agreed(kinds)


def _is_slice(node: cst.Subscript) -> bool:
    return len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Slice)


def _has_ellipsis(node: cst.Subscript) -> bool:
    return any(isinstance(part.slice, cst.Index) and isinstance(part.slice.value, cst.Ellipsis) for part in node.slice)


def _is_inside_comprehension(module: Module, node: cst.CompFor, containers: set[cst.CSTNode]) -> bool:
    whole = next((item for item in module.ancestors(node) if not isinstance(item, cst.CompFor)), node)
    return whole in containers and node.iter not in containers
