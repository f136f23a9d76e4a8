"""What rows, pieces and masks of tensors are told by: names and numbers, for the rules and for the screens before them.

Screens look at a file without libcst, so nothing here may import it.
"""

from __future__ import annotations

GLUING_OPERATORS = frozenset(
    """
    Concat concat cat Stack stack Pack pack AddN addn concatenate hstack vstack dstack column_stack AccumulateNV2
    accumulate_n
    """.split()  # noqa: SIM905
)
"""Operators that take several tensors at once: what they are given is a list as often as a tensor."""
ADDING_OPERATORS = frozenset(
    """
    add Add AddN addn sub Sub subtract Mul mul multiply TensorAdd accumulate_n
    """.split()  # noqa: SIM905
)
CHOOSING_OPERATORS = frozenset(
    """
    select Select where maximum Maximum minimum Minimum logical_or LogicalOr logical_and LogicalAnd
    masked_fill
    """.split()  # noqa: SIM905
)
SCATTERING_OPERATORS = frozenset(
    """
    tensor_scatter_update TensorScatterUpdate scatter_nd_update tensor_scatter_elements tensor_scatter_add index_add IndexAdd
    """.split()  # noqa: SIM905
)
REDUCING_OPERATORS = frozenset(
    """
    ReduceSum ReduceMean mean sum AddN addn reduce_mean reduce_sum Tensor TupleToArray
    """.split()  # noqa: SIM905
)
ACTIVATIONS = frozenset(["sigmoid", "tanh", "relu", "exp", "log", "square", "abs", "sqrt", "softplus", "gelu", "silu"])
"""In small letters without underscores, as are the comparisons."""
COMPARISONS = frozenset(
    """
    less greater equal notequal lessequal greaterequal lt gt eq ne le ge logicaland logicalor logicalnot logicalxor isnan
    isinf isfinite isclose inequal
    """.split()  # noqa: SIM905
)
RESHAPING_METHODS = frozenset(["reshape", "view", "flatten", "squeeze", "ravel"])
RESHAPING_OPERATORS = frozenset(["reshape", "squeeze", "stop_gradient"])
"""What keeps a mask a mask; the operators in small letters."""
TENSOR_METHODS = frozenset(
    """
    reshape view astype transpose permute squeeze unsqueeze expand_dims flatten swapaxes swapdims sum mean max min abs
    exp log sqrt square pow clip clamp float half int long bool to type_as masked_fill broadcast_to expand repeat tile
    matmul mm bmm softmax log_softmax sigmoid tanh argmax argmin cumsum norm prod std var any all fill_diagonal copy clone
    gather index_select scatter add sub mul div expand_as view_as reshape_as T ravel negative rsqrt triu tril flip roll
    new_zeros new_ones logical_not ndimension gather_elements gather_nd select where contiguous masked_select amax amin
    """.split()  # noqa: SIM905
)
TENSOR_FACTS = frozenset(["shape", "ndim", "dtype", "strides", "itemsize", "nbytes", "T", "mT"])
HOST_METHODS = frozenset(["asnumpy", "tolist", "numpy", "nonzero", "masked_select", "argwhere", "unique"])
"""Methods that need the numbers of a tensor at once: on the host, or to know how many there are."""
HOST_PACKAGES = ("numpy", "scipy", "cv2", "random", "sklearn", "torch")

FEWEST_ROUNDS = 4
"""Of a loop that a number says the length of."""
FEWEST_ACTIVATED = 3
FEWEST_IN_STENCIL = 5
