"""What a gradient function of MindSpore differentiates, with respect to what, and what its result means."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter
from mindspore.ops.composite import base as composite

from mslint.verify.child.state import tensors
from mslint.verify.child.step import Step


class TopLevelGradient:
    """A gradient function called outside any graph in graph mode: MindSpore makes it a jit function of its own."""

    def __init__(self, operation: Any, weights: Any) -> None:
        self._operation = operation
        self._weights = weights

    @property
    def names(self) -> tuple[str, ...]:
        return names_of(self._weights)

    @property
    def gives_value(self) -> bool:
        return bool(getattr(self._operation, "get_value", False))

    def own_arguments(self, arguments: Any) -> Any:
        """The arguments of the differentiated function: without the sensitivity."""
        return arguments[:-1] if self._operation.sens_param else arguments

    def keep(self, step: Step, result: Any) -> None:
        """Note the loss, if it is in the result, and the gradients."""
        operation = self._operation
        gradients = result
        if self.gives_value:
            step.add_loss("value", result[0])
            gradients = result[1]
        elif getattr(operation, "has_aux", False):
            gradients = result[0]
        by_position = operation.get_all or getattr(operation, "get_by_position", False)
        step.add_gradients(paired(gradients, self._weights if operation.get_by_list else None, by_position))


def differentiated(function: Any) -> tuple[Any, TopLevelGradient | None]:
    """What a jit function differentiates if it is one that MindSpore made for a gradient; else the function itself."""
    inner = getattr(function, "__wrapped__", function)
    if getattr(inner, "__module__", None) != composite.__name__ or inner.__closure__ is None:
        return function, None
    free = dict(zip(inner.__code__.co_freevars, (cell.cell_contents for cell in inner.__closure__), strict=True))
    if not {"fn", "grad_"} <= free.keys():
        return function, None
    return free["fn"], TopLevelGradient(free["grad_"], free.get("weights"))


def without_auxiliary(function: Any) -> Any:
    """MindSpore wraps functions with auxiliary outputs anew on every call: the user's function is the closure's."""
    if getattr(function, "__module__", None) == composite.__name__ and getattr(function, "__closure__", None):
        free = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
        if "fn" in free:
            return free["fn"].cell_contents
    return function


def name_of(function: Any) -> str:
    """What to call a function or cell in the report."""
    return str(getattr(function, "__qualname__", type(function).__name__))


def identity_of(function: Any) -> Any:
    """The same for a function that is defined anew in every step."""
    code = getattr(function, "__code__", None)
    return id(code) if code is not None else id(function)


def names_of(weights: Any) -> tuple[str, ...]:
    """The names in a list of weights, a single weight, or none."""
    if weights is None:
        return ()
    return tuple(weight.name for weight in ([weights] if isinstance(weights, Parameter) else weights))


def paired(gradients: Any, weights: Any, by_position: bool) -> list[tuple[Any, Any]]:
    """The parameters, or the numbers of the inputs, with what a gradient function gave for them."""
    inputs, by_weights = (gradients, None) if weights is None else (None, gradients)
    if weights is not None and by_position:
        inputs, by_weights = gradients
    pairs = [(f"(input {number})", tensor) for number, tensor in enumerate(tensors(inputs))]
    if weights is not None:
        parameters = [weights] if isinstance(weights, Parameter) else list(weights)
        found = list(tensors(by_weights))
        if len(found) == len(parameters):
            pairs += zip(parameters, found, strict=True)
    return pairs
