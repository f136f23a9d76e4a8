"""Parameters and inputs as numpy arrays: taken from a process, and put into another."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.common.generator import default_generator

from mslint.verify.arrays import same_bits

OWN = "mslint."
"""How the names of parameters begin that mslint itself creates."""


def to_array(tensor: Any) -> Any:
    """A copy as numpy array; numpy has no bfloat16, float32 holds every value of it."""
    return np.array(as_array(tensor))


def as_array(tensor: Any) -> Any:
    """The same without a copy: it holds until the tensor is written to."""
    if tensor.dtype == ms.bfloat16:
        tensor = tensor.astype(ms.float32)
    return tensor.asnumpy()


def tensors(value: Any) -> Iterator[Any]:
    """The dense tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


def live_parameters() -> dict[str, Any]:
    """Every parameter of the process by name; of equally named ones the later created get a number.

    Names are not unique before a training cell takes its parts in: two optimizers have a learning_rate each. Cells know
    when they were created; a scan of the garbage collector's objects finds these, and the parameters no cell owns.
    """
    gc.collect()
    with _alone():
        # Not isinstance: it would ask objects of the user for their __class__ and run their code.
        live = [candidate for candidate in gc.get_objects() if issubclass(type(candidate), (Parameter, nn.Cell))]
    cells = sorted((one for one in live if isinstance(one, nn.Cell)), key=lambda cell: cell.create_time)
    parameters = [parameter for cell in cells for parameter in cell.get_parameters(expand=False)]
    parameters += [one for one in live if isinstance(one, Parameter)]
    # The random generator keeps its state in parameters, too.
    seen = {id(default_generator._seed), id(default_generator._offset)}
    found: dict[str, Any] = {}
    for parameter in parameters:
        if id(parameter) in seen or parameter.name.startswith(OWN):
            continue
        seen.add(id(parameter))
        if parameter.has_init:
            parameter.init_data()
        name, number = parameter.name, 2
        while name in found:
            name, number = f"{parameter.name}#{number}", number + 1
        found[name] = parameter
    return found


@contextmanager
def _alone() -> Iterator[None]:
    """Let no other thread of Python run meanwhile.

    The collector's list refers to tuples that the thread of a data set is just building, which then fails in there.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    # Whoever waits by the usual interval has its turn now.
    time.sleep(2 * usual)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def snapshot(inputs: Any) -> dict[str, Any]:
    """All parameters and the inputs of a step, as they are until something is written to them."""
    return {**parameter_arrays(), **input_arrays(inputs)}


def parameter_arrays() -> dict[str, Any]:
    """All parameters, as they are until something is written to them."""
    return {f"parameter:{name}": as_array(parameter) for name, parameter in live_parameters().items()}


def input_arrays(inputs: Any) -> dict[str, Any]:
    """The tensors among the arguments of a call, by their number."""
    return {f"input:{number}": as_array(tensor) for number, tensor in enumerate(tensors(inputs))}


def restore(state: Mapping[str, Any], inputs: Any) -> list[str]:
    """Put a snapshot into this process, in place: identities decide whether PyNative runs a forward pass again.

    Returns what could not be restored or had to be changed, as remarks for the user.
    """
    remarks = []
    parameters = live_parameters()
    for name, parameter in parameters.items():
        saved = state.get(f"parameter:{name}")
        if saved is None:
            remarks.append(f"parameter {name} exists in the rewritten script only")
        elif saved.shape != tuple(parameter.shape):
            remarks.append(f"parameter {name} has shape {tuple(parameter.shape)}, in the original {saved.shape}")
        elif not same_bits(saved, as_array(parameter)):
            parameter.set_data(Tensor(np.array(saved, order="C"), dtype=parameter.dtype))
    remarks += [
        f"parameter {name[len('parameter:') :]} exists in the original script only"
        for name in state
        if name.startswith("parameter:") and name[len("parameter:") :] not in parameters
    ]
    return remarks + restore_inputs(state, inputs)


def restore_inputs(state: Mapping[str, Any], inputs: Any) -> list[str]:
    """Give the arguments of a call the saved values, in place; returns remarks for the user."""
    remarks = []
    for number, tensor in enumerate(tensors(inputs)):
        saved = state.get(f"input:{number}")
        if saved is None or saved.shape != tuple(tensor.shape):
            remarks.append(f"input {number} of the step could not be set to the original's")
        elif not same_bits(saved, as_array(tensor)):
            tensor.assign_value(Tensor(np.array(saved, order="C"), dtype=tensor.dtype))
            remarks.append(f"input {number} of the step differed between the runs; the original's was used for both")
    return remarks
