"""Write vmap_operators.json: which operators ``mindspore.vmap`` turns into one operator for all rows, with the same numbers.

usage: python mslint/data/make_vmap_operators.py  (needs MindSpore; about half an hour on a busy core)

Each operator is the body of a row function of ``a`` and ``b``, which differ from row to row, and ``w``, which does not.
Values and gradients of the vectorised function are compared, in graph and in PyNative mode, with those of a Python loop.
The compiled forward graph must have as many nodes for six rows as for three: an operator that ``vmap`` has no rule for is
run in a loop over the rows, or refused.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.graph.api import _CellGraphExecutor
from mindspore.train import mind_ir_pb2
from numpy.typing import NDArray

Row = Callable[[Tensor, Tensor, Tensor], Tensor]

UNARY = """
abs absolute acos asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor isfinite isnan log log1p log2 logical_not
neg negative reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc
""".split()  # noqa: SIM905
ACTIVATIONS = """
elu gelu hardshrink hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softshrink softsign
""".split()  # noqa: SIM905
BINARY = """
add atan2 div eq equal floor_divide ge greater greater_equal gt le less less_equal lt maximum minimum mul multiply ne
not_equal pow sub subtract true_divide
""".split()  # noqa: SIM905
REDUCTIONS = "all amax amin any max mean min prod std sum var logsumexp".split()  # noqa: SIM905
PRIMITIVES = """
Abs ACos Asin Atan Ceil Cos Erf Exp Expm1 Floor Log Log1p Neg Reciprocal Rsqrt Sigmoid Sign Sin Sqrt Square Tanh ReLU ReLU6
Elu GeLU Softplus OnesLike ZerosLike
""".split()  # noqa: SIM905
BINARY_PRIMITIVES = """
Add Div DivNoNan Equal Greater GreaterEqual Less LessEqual Maximum Minimum Mul NotEqual Pow RealDiv SquaredDifference Sub
""".split()  # noqa: SIM905
REDUCING_PRIMITIVES = "ReduceMax ReduceMean ReduceMin ReduceSum".split()  # noqa: SIM905
# a and b are 3 by 4, w is 4 by 4.
OTHERS = {
    "operator.+": "a + b + 1.0",
    "operator.-": "2.0 - a - b",
    "operator.*": "a * b",
    "operator./": "a / b",
    "operator.* with a number": "a * 2.0",
    "operator./ with a number": "a / 2.0",
    "operator.+ with a number": "a + 2.0",
    "operator.- with a number": "a - 2.0",
    "operator.== with a number": "(a == 0.5) * a",
    "operator.**": "a ** 2 + a ** 0.5",
    "operator.//": "a // b",
    "operator.%": "a % b",
    "operator.@": "a @ w",
    "operator.<": "(a < b) * a",
    "operator.<=": "(a <= b) * a",
    "operator.>": "(a > b) * a",
    "operator.>=": "(a >= 0.5) * a",
    "operator.==": "(a == b) * a",
    "operator.!=": "(a != b) * a",
    "operator.&": "((a > 0.3) & (b > 0.3)) * a",
    "operator.|": "((a > 0.3) | (b > 0.3)) * a",
    "operator.~": "(~(a > 0.3)) * b",
    "operator.neg": "-a",
    "operator.index": "a[0] + a[-1]",
    "operator.slice": "a[1:, :2] + b[:-1, 2:]",
    "operator.step": "a[:, ::2]",
    "operator.newaxis": "a[None] + b[:, None]",
    "mindspore.ops.clamp": "ops.clamp(a, 0.3, 0.6)",
    "mindspore.ops.clip": "ops.clip(a, 0.3, 0.6)",
    "mindspore.ops.clip_by_value": "ops.clip_by_value(a, 0.3, 0.6)",
    "Tensor.clamp": "a.clamp(0.3, 0.6)",
    "Tensor.clip": "a.clip(0.3, 0.6)",
    "mindspore.ops.where": "ops.where(a > 0.5, a, b)",
    "Tensor.where": "a.where(a > 0.5, b)",
    "mindspore.ops.select": "ops.select(a > 0.5, a, b)",
    "mindspore.ops.Select": "ops.Select()(a > 0.5, a, b)",
    "mindspore.ops.masked_fill": "ops.masked_fill(a, b > 0.5, 0.0)",
    "Tensor.masked_fill": "a.masked_fill(b > 0.5, 0.0)",
    "mindspore.ops.logical_and": "ops.logical_and(a > 0.5, b > 0.3) * a",
    "mindspore.ops.logical_or": "ops.logical_or(a > 0.5, b > 0.3) * a",
    "mindspore.ops.softmax": "ops.softmax(a, -1)",
    "Tensor.softmax": "a.softmax(-1)",
    "mindspore.ops.log_softmax": "ops.log_softmax(a, -1)",
    "Tensor.log_softmax": "a.log_softmax(-1)",
    "mindspore.ops.Softmax": "ops.Softmax(-1)(a)",
    "mindspore.ops.LogSoftmax": "ops.LogSoftmax(-1)(a)",
    "mindspore.ops.matmul": "ops.matmul(a, w) + ops.matmul(w, b.T).T",
    "Tensor.matmul": "a.matmul(w)",
    "mindspore.ops.matmul with a vector": "ops.matmul(w, a[0]) + ops.matmul(a[0], w)",
    "mindspore.ops.MatMul": "ops.MatMul()(a, w)",
    "mindspore.ops.mm": "ops.mm(a, w)",
    "mindspore.ops.bmm": "ops.bmm(a[None], b.T[None])",
    "mindspore.ops.BatchMatMul": "ops.BatchMatMul()(a[None], b.T[None])",
    "mindspore.ops.dot": "ops.dot(a, w)",
    "mindspore.ops.mv": "ops.mv(a, b[0])",
    "mindspore.ops.inner": "ops.inner(a[0], b[1])",
    "mindspore.ops.outer": "ops.outer(a[0], b[1])",
    "mindspore.ops.norm": "ops.norm(a, dim=-1)",
    "Tensor.norm": "a.norm(dim=-1)",
    "mindspore.ops.L2Normalize": "ops.L2Normalize(-1)(a)",
    "mindspore.ops.cosine_similarity": "ops.cosine_similarity(a, b, -1)",
    "mindspore.ops.cdist": "ops.cdist(a, b)",
    "mindspore.ops.reshape": "ops.reshape(a, (4, 3)) * 2.0",
    "Tensor.reshape": "a.reshape(4, 3) * a.reshape((4, 3))",
    "mindspore.ops.Reshape": "ops.Reshape()(a, (4, 3))",
    "Tensor.view": "a.view(-1)",
    "mindspore.ops.flatten": "ops.flatten(a)",
    "Tensor.flatten": "a.flatten()",
    "mindspore.ops.squeeze": "ops.squeeze(a[:1], 0)",
    "Tensor.squeeze": "a[:1].squeeze(0)",
    "mindspore.ops.Squeeze": "ops.Squeeze(0)(a[:1])",
    "mindspore.ops.unsqueeze": "ops.unsqueeze(a, 1)",
    "Tensor.unsqueeze": "a.unsqueeze(-1)",
    "mindspore.ops.expand_dims": "ops.expand_dims(a, 0)",
    "Tensor.expand_dims": "a.expand_dims(0)",
    "mindspore.ops.ExpandDims": "ops.ExpandDims()(a, 0)",
    "mindspore.ops.transpose": "ops.transpose(a, (1, 0))",
    "mindspore.ops.Transpose": "ops.Transpose()(a, (1, 0))",
    "Tensor.transpose": "a.transpose(1, 0)",
    "Tensor.T": "a.T",
    "mindspore.ops.permute": "ops.permute(a, (1, 0))",
    "Tensor.permute": "a.permute(1, 0)",
    "mindspore.ops.swapaxes": "ops.swapaxes(a, 0, 1)",
    "Tensor.swapaxes": "a.swapaxes(0, 1)",
    "mindspore.ops.tile": "ops.tile(a, (2, 1))",
    "Tensor.tile": "a.tile((2, 1))",
    "mindspore.ops.Tile": "ops.Tile()(a, (2, 1))",
    "mindspore.ops.broadcast_to": "ops.broadcast_to(a[:1], (3, 4))",
    "Tensor.broadcast_to": "a[:1].broadcast_to((3, 4))",
    "mindspore.ops.BroadcastTo": "ops.BroadcastTo((3, 4))(a[:1])",
    "Tensor.expand_as": "a[:1].expand_as(b)",
    "mindspore.ops.stack": "ops.stack((a, b), 0)",
    "mindspore.ops.Stack": "ops.Stack(0)((a, b))",
    "mindspore.ops.concat": "ops.concat((a, b), -1)",
    "mindspore.ops.cat": "ops.cat((a, b), 0)",
    "mindspore.ops.Concat": "ops.Concat(0)((a, b))",
    "mindspore.ops.split": "ops.split(a, 2, -1)[0]",
    "mindspore.ops.chunk": "ops.chunk(a, 2, -1)[1]",
    "mindspore.ops.unbind": "ops.unbind(a)[0]",
    "mindspore.ops.flip": "ops.flip(a, (0,))",
    "mindspore.ops.roll": "ops.roll(a, 1, 0)",
    "mindspore.ops.cumsum": "ops.cumsum(a, 0)",
    "mindspore.ops.gather": "ops.gather(a, Tensor([0, 2]), 0)",
    "mindspore.ops.Gather": "ops.Gather()(a, Tensor([0, 2]), 0)",
    "mindspore.ops.gather_elements": "ops.gather_elements(a, 1, ops.cast(b > 0.5, ms.int64))",
    "mindspore.ops.diagonal": "ops.diagonal(a)",
    "mindspore.ops.diag": "ops.diag(a[0])",
    "mindspore.ops.tril": "ops.tril(a)",
    "mindspore.ops.triu": "ops.triu(a)",
    "mindspore.ops.eye": "ops.eye(3, 4) * a",
    "mindspore.ops.ones": "ops.ones((3, 4)) * a",
    "mindspore.ops.zeros": "ops.zeros((3, 4)) + a",
    "mindspore.ops.arange": "ops.arange(4) * a",
    "mindspore.ops.full": "ops.full((3, 4), 2.0) * a",
    "mindspore.ops.ones_like": "ops.ones_like(a) * b",
    "mindspore.ops.zeros_like": "ops.zeros_like(a) + b",
    "mindspore.ops.argmax": "ops.argmax(a, -1) * b.sum(-1)",
    "mindspore.ops.argmin": "ops.argmin(a, -1) * b.sum(-1)",
    "Tensor.argmax": "a.argmax(-1) * b.sum(-1)",
    "mindspore.ops.topk": "ops.topk(a, 2)[0]",
    "mindspore.ops.sort": "ops.sort(a, -1)[0]",
    "mindspore.ops.cast": "ops.cast(a, ms.float16)",
    "mindspore.ops.Cast": "ops.Cast()(a, ms.float16)",
    "Tensor.astype": "a.astype(ms.float16)",
    "Tensor.to": "a.to(ms.float16)",
    "Tensor.float": "(a > 0.5).float() * b",
    "Tensor.int": "(a * 4).int() * b",
    "Tensor.long": "(a * 4).long() * b",
    "mindspore.ops.one_hot": "ops.one_hot(ops.cast(a[0] * 4, ms.int32), 5, Tensor(1.0), Tensor(0.0)) * b[:, :1].sum()",
    "mindspore.ops.stop_gradient": "ops.stop_gradient(a) * b",
    "mindspore.ops.l1_loss": "ops.l1_loss(a, b)",
    "mindspore.ops.mse_loss": "ops.mse_loss(a, b)",
    "mindspore.ops.smooth_l1_loss": "ops.smooth_l1_loss(a, b)",
    "mindspore.ops.huber_loss": "ops.huber_loss(a, b)",
    "mindspore.ops.SmoothL1Loss": "ops.SmoothL1Loss()(a, b)",
    "mindspore.ops.kl_div": "ops.kl_div(a, b, 'sum')",
    "mindspore.ops.cross_entropy": "ops.cross_entropy(a, Tensor([0, 1, 2], ms.int32)) + b.sum()",
    "mindspore.ops.nll_loss": "ops.nll_loss(a, Tensor([0, 1, 2], ms.int32)) + b.sum()",
    "mindspore.ops.binary_cross_entropy": "ops.binary_cross_entropy(a, b)",
    "mindspore.ops.binary_cross_entropy_with_logits": (
        "ops.binary_cross_entropy_with_logits(a, b, ops.ones_like(a), ops.ones_like(a))"
    ),
    "mindspore.ops.addmm": "ops.addmm(a[:, :4], a, w)",
    "mindspore.ops.einsum": "ops.einsum('ij,jk->ik', a, w)",
    "mindspore.ops.tensor_dot": "ops.tensor_dot(a, w, 1)",
    "mindspore.ops.isclose": "ops.isclose(a, b) * a",
    "mindspore.ops.count_nonzero": "ops.count_nonzero(a) * b.sum()",
    "mindspore.ops.scalar_to_tensor": "ops.scalar_to_tensor(2.0) * a",
    "mindspore.Tensor": "Tensor(2.0, ms.float32) * a",
    "mindspore.nn.Dense": "DENSE(a)",
    "mindspore.nn.LayerNorm": "LAYER_NORM(a)",
    "mindspore.nn.ReLU": "nn.ReLU()(a)",
    "mindspore.nn.Sigmoid": "nn.Sigmoid()(a)",
    "mindspore.nn.Tanh": "nn.Tanh()(a)",
    "mindspore.nn.GELU": "nn.GELU()(a)",
    "mindspore.nn.Softmax": "nn.Softmax()(a)",
    "mindspore.nn.LogSoftmax": "nn.LogSoftmax()(a)",
    "mindspore.nn.MSELoss": "nn.MSELoss()(a, b)",
    "mindspore.nn.L1Loss": "nn.L1Loss()(a, b)",
    "mindspore.nn.SmoothL1Loss": "nn.SmoothL1Loss()(a, b)",
    "mindspore.nn.BCELoss": "nn.BCELoss()(a, b)",
    "mindspore.nn.CosineSimilarity": "nn.CosineSimilarity(1)(a, b)",
}
GROUP = 10
MARK = "measured"
HEAD = """\
import mindspore as ms
from mindspore import Tensor, nn, ops

DENSE = nn.Dense(4, 4)
LAYER_NORM = nn.LayerNorm((4,))
"""


def cases() -> dict[str, str]:
    """Return the operators with the expression that uses each."""
    found = {f"mindspore.ops.{name}": f"ops.{name}(a)" for name in UNARY + ACTIVATIONS}
    found |= {f"Tensor.{name}": f"a.{name}()" for name in UNARY if hasattr(Tensor, name)}
    found |= {f"mindspore.ops.{name}": f"ops.{name}(a, b)" for name in BINARY}
    found |= {f"Tensor.{name}": f"a.{name}(b)" for name in BINARY if hasattr(Tensor, name)}
    for name in REDUCTIONS:
        ending = "[0]" if name in ("max", "min") else ""
        value = "a > 0.5" if name in ("all", "any") else "a"
        found[f"mindspore.ops.{name}"] = f"ops.{name}({value}, -1){ending} + b[:, 0]"
        if hasattr(Tensor, name):
            found[f"Tensor.{name}"] = f"({value}).{name}(-1) + b[:, 0] + ({value}).{name}()"
    found["Tensor.max"] = "a.max() * b"
    found["Tensor.min"] = "a.min() * b"
    found |= {f"mindspore.ops.{name}": f"ops.{name}()(a)" for name in PRIMITIVES}
    found |= {f"mindspore.ops.{name}": f"ops.{name}()(a, b)" for name in BINARY_PRIMITIVES}
    found |= {f"mindspore.ops.{name}": f"ops.{name}()(a, -1) + b[:, 0]" for name in REDUCING_PRIMITIVES}
    return found | OTHERS


def written(expressions: list[str]) -> ModuleType:
    """Return a module with a row function for each expression; MindSpore compiles only functions that stand in a file."""
    functions = [f"\n\ndef row_{i}(a, b, w):\n    return {text}\n" for i, text in enumerate(expressions)]
    folder = Path(tempfile.mkdtemp())
    path = folder / "vmap_rows.py"
    path.write_text(HEAD + "".join(functions), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("vmap_rows", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["vmap_rows"] = module
    sys.path.insert(0, str(folder))
    spec.loader.exec_module(module)
    return module


class Vectorised(nn.Cell):  # type: ignore[misc]
    """Row functions run for all rows at once."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = [ms.vmap(row, in_axes=(0, 0, None)) for row in rows]

    def construct(self, a: Tensor, b: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        """Return the results of all rows, a tensor a function."""
        return tuple([rows(a, b, w) for rows in self.rows])


class Looped(nn.Cell):  # type: ignore[misc]
    """Row functions run row by row."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows

    def construct(self, a: Tensor, b: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        """Return the results of all rows, a tensor a function."""
        return tuple([ops.stack([row(a[i], b[i], w) for i in range(a.shape[0])]) for row in self.rows])


def numbers(cell: nn.Cell, inputs: list[Tensor]) -> list[NDArray[np.float32]]:
    """Return values and gradients; the values' entries are weighed, so that gradients do not cancel."""

    def weighed(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        total = Tensor(0.0, ms.float32)
        for value in cell(a, b, w):
            out = value.astype(ms.float32)
            total = total + (out * ops.arange(out.size).reshape(out.shape).astype(ms.float32)).sum()
        return total

    gradients = ms.grad(weighed, (0, 1, 2))(*inputs)
    return [
        *(value.astype(ms.float32).asnumpy() for value in cell(*inputs)),
        *(gradient.asnumpy() for gradient in gradients),
    ]


def nodes(row: Row, inputs: list[Tensor]) -> int:
    """Return how many nodes the compiled forward graph has."""
    # A Cell that is let go takes its graphs along.
    executor, cell = _CellGraphExecutor(), Vectorised([row])
    phase, _ = executor.compile(cell, *inputs, phase="export.mindir", do_convert=False)
    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(executor._graph_executor.get_func_graph_proto(phase, "mind_ir", False))
    return sum(len(graph.node) for graph in [model.graph, *model.functions])


def draw(rows: int) -> list[Tensor]:
    """Return inputs that every operator is defined for."""
    random = np.random.RandomState(rows)
    shapes = ((rows, 3, 4), (rows, 3, 4), (4, 4))
    return [Tensor(random.uniform(0.15, 0.9, shape), ms.float32) for shape in shapes]


def agrees(rows: list[Row], inputs: list[Tensor]) -> bool:
    """Tell whether ``rows`` vectorised give the numbers of a loop, in both modes."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    expected = numbers(Looped(rows), inputs)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        found = numbers(Vectorised(rows), inputs)
        if not all(np.allclose(x, y, 2e-5, 2e-5) for x, y in zip(expected, found, strict=True)):
            return False
    return True


def kind(row: Row) -> str:
    """Tell by the number of nodes whether an operator runs once for all rows; what cannot be counted does not."""
    try:
        return "vectorised" if nodes(row, draw(3)) == nodes(row, draw(6)) else "looped"
    except RuntimeError:
        return "looped"


def measure(names: list[str], together: bool) -> None:
    """Print a verdict for each operator; ends at the first failure, since that may spoil what comes after."""
    ms.set_device("CPU")
    wanted = cases()
    module = written([wanted[name] for name in names])
    rows = [getattr(module, f"row_{number}") for number in range(len(names))]
    if together and not agrees(rows, draw(3)):
        sys.exit(1)
    for name, row in zip(names, rows, strict=True):
        try:
            verdict = kind(row) if together or agrees([row], draw(3)) else "other numbers"
        except Exception as exception:
            lines = [line for line in str(exception).splitlines() if line.strip()] or [type(exception).__name__]
            verdict = lines[0][:120]
        print(json.dumps([MARK, name, verdict]), flush=True)
        if verdict not in ("vectorised", "looped"):
            sys.exit(1)


def verdicts(names: list[str], together: bool) -> dict[str, str]:
    """Return the verdicts of a process of its own."""
    flags = ["--together"] if together else []
    done = subprocess.run([sys.executable, __file__, *flags, *names], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(f'["{MARK}"')]
    return {name: verdict for _, name, verdict in lines}


def table() -> dict[str, object]:
    """Measure all operators with the installed MindSpore."""
    names = list(cases())
    found: dict[str, str] = {}
    for first in range(0, len(names), GROUP):
        group = names[first : first + GROUP]
        found |= verdicts(group, together=True)
        while left := [name for name in group if name not in found]:
            found |= verdicts(left, together=False) or {left[0]: "the process crashes"}
        print({name: found[name] for name in group}, flush=True)
    return {
        "mindspore": ms.__version__,
        "vectorised": sorted(name for name, verdict in found.items() if verdict == "vectorised"),
        "looped": sorted(name for name, verdict in found.items() if verdict == "looped"),
        "refused": {name: found[name] for name in sorted(found) if found[name] not in ("vectorised", "looped")},
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        measure([name for name in sys.argv[1:] if name != "--together"], "--together" in sys.argv)
    else:
        text = json.dumps(table(), indent=0)
        Path(__file__).with_name("vmap_operators.json").write_text(f"{text}\n", encoding="utf-8")
