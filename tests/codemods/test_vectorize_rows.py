"""What vectorize-rows makes of loops over rows, written as an expert would by hand, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.registry import named
from mslint.commands.rewriting import Rewritten, rewrite_source
from mslint.findings import Applicability
from mslint.program.project import Program
from mslint.source.text import read

TRAINED = "\n\nstep = nn.TrainOneStepCell(Loss(), None)\n"


def rewrite(folder: Path, text: str | bytes, unsafe: bool = True) -> Rewritten:
    """Rewrite ``text``, the only file of a project."""
    (folder / "pyproject.toml").touch()
    path = folder / "loss.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return rewrite_source(read(path), Program([path]), named(["vectorize-rows"]), unsafe)


def laid_out(text: str) -> str:
    return dedent(text).lstrip("\n") + TRAINED


def cell(body: str, parameters: str = "x") -> str:
    """Return a file with a loss whose ``construct`` is ``body``."""
    lines = "".join(f"        {line}\n" if line else "\n" for line in dedent(body).strip("\n").split("\n"))
    return (
        "from mindspore import nn, ops\n\n\nclass Loss(nn.Cell):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.exp = ops.Exp()\n        self.drop = nn.Dropout(p=0.1)\n\n"
        f"    def construct(self, {parameters}):\n        x = ops.tanh(x)\n{lines}{TRAINED}"
    )


SAFE = {
    "comments and blank lines go where their statements go": (
        """
        import mindspore as ms
        from mindspore import nn, ops


        # The loss.
        class Loss(nn.Cell):
            def construct(self, x):
                z = ops.tanh(x)
                # all rows
                losses = []  # one each
                for i in range(z.shape[0]):  # by rows
                    # the square
                    square = ops.square(z[i])  # of all

                    # and then
                    losses.append(square.std())  # reduced
                    # done
                # now together
                return ops.stack(losses).mean()
        """,
        """
        import mindspore as ms
        from mindspore import nn, ops


        def row_loss(z):
            # the square
            square = ops.square(z)  # of all

            # and then
            return square.std()  # reduced
            # done


        row_losses = ms.vmap(row_loss)


        # The loss.
        class Loss(nn.Cell):
            def construct(self, x):
                z = ops.tanh(x)
                # all rows
                # one each
                # by rows
                # now together
                return row_losses(z).mean()
        """,
    ),
    "a row and the whole; a variable that names the row becomes the parameter": (
        """
        from mindspore import nn, ops


        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.temperature = 0.1

            def construct(self, x):
                z = ops.tanh(x)
                total = 0.0
                for i in range(len(z)):
                    total += ops.exp((z * z[i]).sum(-1) / self.temperature).mean()
                for i in range(len(z)):
                    one = z[i]
                    total -= one.sum() * one.std()
                return total / len(z)
        """,
        """
        from mindspore import nn, ops


        def row_total(z_row, z, temperature):
            return ops.exp(ops.ReduceSum()(z * z_row, -1) / temperature).mean()


        row_totals = ops.vmap(row_total, in_axes=(0, None, None))


        def row_total_2(one):
            return ops.ReduceSum()(one) * one.std()


        row_totals_2 = ops.vmap(row_total_2)


        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.temperature = 0.1

            def construct(self, x):
                z = ops.tanh(x)
                total = row_totals(z, z, self.temperature).sum(0)
                total -= row_totals_2(z).sum(0)
                return total / len(z)
        """,
    ),
    "comprehensions; the tensor itself looped over; a function": (
        """
        from mindspore import nn, ops, vmap


        def norms(x):
            \"\"\"Return the norms.\"\"\"
            x = ops.relu(x)
            return ops.stack([ops.norm(x[i]) for i in range(x.shape[0])], axis=0)


        def means(x):
            x = ops.exp(x)
            return sum(r.std() for r in x)


        class Loss(nn.Cell):
            def construct(self, x):
                total = 0
                for row in ops.sigmoid(x):
                    total = row.std() + total
                return total + means(x) + norms(x).sum()
        """,
        """
        from mindspore import nn, ops, vmap


        def row_value(x):
            return ops.norm(x)


        row_values = vmap(row_value)


        def norms(x):
            \"\"\"Return the norms.\"\"\"
            x = ops.relu(x)
            return row_values(x)


        def row_value_2(r):
            return r.std()


        row_values_2 = vmap(row_value_2)


        def means(x):
            x = ops.exp(x)
            return row_values_2(x).sum(0)


        def row_total(row):
            return row.std()


        row_totals = vmap(row_total)


        class Loss(nn.Cell):
            def construct(self, x):
                total = row_totals(ops.sigmoid(x)).sum(0)
                return total + means(x) + norms(x).sum()
        """,
    ),
    "operators kept in the Cell: the function is vectorised once, in __init__": (
        """
        import mindspore.nn as nn
        import mindspore.ops.operations as P
        from mindspore import Tensor


        class Loss(nn.Cell):
            def __init__(self, scale=1.0):
                super(Loss, self).__init__()
                self.scale = scale
                self.log = P.Log()
                self.concat = P.Concat(axis=-1)
                if scale > 1:
                    self.scale = 1.0

            def construct(self, x):
                x = self.log(x)
                parts = ()
                for i in range(x.shape[0]):
                    parts += (self.log(x[i, ..., 1:]) * self.scale,)
                out = self.concat(parts)
                return out.sum()
        """,
        """
        import mindspore.nn as nn
        import mindspore.ops.operations as P
        from mindspore import Tensor, vmap


        class Loss(nn.Cell):
            def __init__(self, scale=1.0):
                super(Loss, self).__init__()
                self.scale = scale
                self.log = P.Log()
                self.concat = P.Concat(axis=-1)
                if scale > 1:
                    self.scale = 1.0
                self.row_parts = vmap(self.row_part, in_axes=(0, None), out_axes=-2)

            def row_part(self, x, scale):
                return self.log(x[..., 1:]) * scale

            def construct(self, x):
                x = self.log(x)
                out = self.row_parts(x, self.scale).flatten(start_dim=-2, end_dim=-1)
                return out.sum()
        """,
    ),
    "an inner loop stays a loop; rows of width one keep their axis": (
        """
        from mindspore import nn, ops


        class Loss(nn.Cell):
            def construct(self, x):
                x = ops.tanh(x)
                rows, columns, _ = x.shape
                table = []
                for i in range(rows):
                    line = []
                    for j in range(columns):
                        line.append((x[i, j] * x[i : i + 1, 0]).sum())
                    table.append(ops.stack(line))
                table = ops.stack(table, 1)
                return table.mean()
        """,
        """
        from mindspore import nn, ops


        def row_table(x, columns):
            line = []
            for j in range(columns):
                line.append(ops.ReduceSum()(x[j] * x[None, 0]))
            return ops.stack(line)


        row_tables = ops.vmap(row_table, in_axes=(0, None), out_axes=1)


        class Loss(nn.Cell):
            def construct(self, x):
                x = ops.tanh(x)
                rows, columns, _ = x.shape
                table = row_tables(x, columns)
                return table.mean()
        """,
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_loops_over_all_rows_become_a_vectorised_function(name: str, tmp_path: Path) -> None:
    before, after = SAFE[name]
    done = rewrite(tmp_path, laid_out(before), unsafe=False)
    assert done.failures == ()
    assert done.text == laid_out(after)
    assert rewrite(tmp_path, done.text, unsafe=False).text == done.text


UNSAFE = {
    "a second tensor": (
        """
        losses = []
        for i in range(x.shape[0]):
            losses.append(ops.abs(x[i] - y[i, :]).sum())
        return ops.stack(losses).mean()
        """,
        "row_losses(x, y).mean()",
        "that `y` has as many rows as `x`",
    ),
    "a number": (
        """
        loss = ops.zeros(())
        for t in range(16):
            loss = loss - x[:, t, 1:].sum()
        return loss
        """,
        "loss - row_losses(x).sum(0)",
        "that `16` is the number of rows of `x`",
    ),
    "the last axis": (
        """
        loss = 0.0
        for t in range(y.shape[-1]):
            loss += (x[..., t] * y[..., t]).sum() - y[..., t].mean()
        return loss
        """,
        "row_losses(x, y).sum(0)",
        "that `x` has as many rows as `y`",
    ),
    "a product that may be with a vector": (
        """
        scores = []
        for i in range(len(x)):
            scores.append(ops.matmul(x, x[i]))
        return ops.stack(scores).mean()
        """,
        "row_scores(x, x).mean()",
        "that no operand of `ops.matmul` is a vector",
    ),
    "a sum of truth values": (
        """
        hits = 0.0
        for i in range(x.shape[0]):
            right = ops.argmax(x[i], 0) == 1
            hits += right.int().sum()
        return hits / 4 + y.mean()
        """,
        "hits = row_hits(x).sum(0)",
        "a sum of whole numbers or truth values may become an int64",
    ),
    "a sum of float16 that is added to a tensor": (
        """
        loss = y.mean()
        for i in range(x.shape[0]):
            loss += ops.square(x[i]).half().sum()
        return loss
        """,
        "loss += row_losses(x).sum(0)",
        "does not leave float16, whatever type `loss` has",
    ),
    "pairs of rows": (
        """
        loss = 0.0
        for a, b in zip(x, ops.exp(y)):
            loss += ops.square(a - b).sum()
        return loss
        """,
        "row_losses(x, ops.exp(y)).sum(0)",
        "that `ops.exp(y)` has as many rows as `x`",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_what_is_assumed_is_named(name: str, tmp_path: Path) -> None:
    body, rewritten, assumed = UNSAFE[name]
    text = cell(body, "x, y")
    left = rewrite(tmp_path, text, unsafe=False)
    assert left.text == text
    fix = left.left[0].fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE
    assert assumed in fix.message
    assert rewritten in rewrite(tmp_path, text).text


def test_rows_that_an_elementwise_operator_keeps_are_as_many(tmp_path: Path) -> None:
    text = cell(
        """
        p = ops.softmax(x, axis=-1)
        q = ops.log(ops.exp(p))
        loss = 0.0
        for i in range(p.shape[0]):
            loss += (p[i] * q[i]).sum()
        return loss
        """
    )
    assert "row_losses(p, q).sum(0)" in rewrite(tmp_path, text, unsafe=False).text


def test_a_tensor_that_is_bound_anew_may_have_other_rows(tmp_path: Path) -> None:
    text = cell(
        """
        n = x.shape[0]
        x = ops.concat((x, x))
        loss = 0.0
        for i in range(n):
            loss += x[i].sum()
        return loss
        """
    )
    left = rewrite(tmp_path, text, unsafe=False).left
    assert [finding.fix and finding.fix.applicability for finding in left] == [Applicability.UNSAFE]


def test_two_results_are_two_outputs(tmp_path: Path) -> None:
    text = cell(
        """
        total, count = 0, 1
        means = []
        for i in range(x.shape[0]):
            scaled = (
                x[i]  # the row
                * 2.0
            )
            means.append(scaled.mean(0))
            total = total + scaled.sum()
        return total + ops.stack(means, axis=1).mean() * count
        """
    )
    done = rewrite(tmp_path, text, unsafe=False).text
    assert (
        "def row_mean(x):\n    scaled = (\n        x  # the row\n        * 2.0\n    )\n"
        "    return scaled.mean(0), ops.ReduceSum()(scaled)\n\n\nrow_means = ops.vmap(row_mean, out_axes=(1, 0))\n"
    ) in done
    assert (
        "        total, count = 0, 1\n        means, totals = row_means(x)\n"
        "        total = total + totals.sum(0)\n        return total + means.mean() * count\n"
    ) in done


MANUAL = {
    "decides by the values of a row": """
        loss = 0.0
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                loss += x[i].mean()
        return loss
    """,
    "picks by values of the row": """
        loss = 0.0
        for i in range(x.shape[0]):
            row = x[i]
            loss += row[row > 0].sum()
        return loss
    """,
    "`x[0]` is the same for all rows": """
        loss = 0.0
        for i in range(x.shape[0]):
            loss += ops.square(x[i] - x[0]).sum()
        return loss
    """,
    "draws random numbers": """
        loss = 0.0
        for i in range(x.shape[0]):
            loss += self.drop(x[i]).sum()
        return loss
    """,
    "row's number `i`": """
        loss = 0.0
        for i in range(x.shape[0]):
            loss += x[i].sum() * i
        return loss
    """,
    "use `.diagonal()`": """
        loss = 0.0
        for i in range(x.shape[0]):
            loss += x[i, i]
        return loss
    """,
    "stored row by row": """
        out = ops.zeros_like(x)
        for i in range(x.shape[0]):
            out[i] = ops.exp(x[i])
        return out.sum()
    """,
    "selects into what earlier rounds left": """
        best = ops.zeros_like(x[0])
        for i in range(x.shape[0]):
            best = ops.maximum(best, x[i])
        return best.sum()
    """,
    "grow by a concatenation": """
        out = ops.zeros((1, 4))
        for i in range(x.shape[0]):
            out = ops.concat((out, ops.exp(x[i : i + 1])))
        return out.sum()
    """,
    "the body prints": """
        loss = 0.0
        for i in range(x.shape[0]):
            print(i)
            loss += x[i].sum()
        return loss
    """,
    "is read after the loop": """
        loss = 0.0
        for i in range(x.shape[0]):
            square = ops.square(x[i])
            loss += square.sum()
        return loss + square.mean()
    """,
    "also used in row": """
        losses = []
        for i in range(x.shape[0]):
            losses.append(x[i].mean())
        return ops.stack(losses).sum() + losses[0]
    """,
    "does not start empty": """
        losses = [x.mean()]
        for i in range(x.shape[0]):
            losses.append(x[i].mean())
        return ops.stack(losses).sum()
    """,
    "outlives the round": """
        loss, count = 0.0, 0
        for i in range(x.shape[0]):
            count += 1
            loss += x[i].mean()
        return loss / count
    """,
    "does not count all rows from the first": """
        loss = 0.0
        for i in range(1, x.shape[0]):
            loss += x[i].mean()
        return loss
    """,
    "an inner loop collects in `loss`": """
        loss = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                loss += (x[i] * x[j]).sum()
        return loss
    """,
    "`loss` is a product over the rows": """
        loss = 1.0
        for i in range(x.shape[0]):
            loss = x[i].mean() * loss
        return loss
    """,
    "is a product over the rows": """
        loss = 1.0
        for i in range(x.shape[0]):
            loss *= x[i].mean()
        return loss
    """,
    "under a condition": """
        loss = 0.0
        for i in range(x.shape[0]):
            if self.training:
                loss += x[i].mean()
        return loss
    """,
}


@pytest.mark.parametrize("reason", MANUAL)
def test_what_is_left_to_a_person_says_why(reason: str, tmp_path: Path) -> None:
    text = cell(MANUAL[reason])
    done = rewrite(tmp_path, text)
    assert done.text == text
    assert done.failures == ()
    fixes = [finding.fix for finding in done.left]
    assert [fix and fix.applicability for fix in fixes] == [Applicability.MANUAL]
    assert reason in str(fixes[0] and fixes[0].message)


def test_line_ends_tabs_and_encodings_survive(tmp_path: Path) -> None:
    text = cell(
        """
        losses = []  # größer
        for i in range(x.shape[0]):
            y = ops.exp(x[i])
            losses.append(y.std())
        return ops.stack(losses).sum()
        """
    )
    spaced = text.replace("    ", "\t").replace("\n", "\r\n")
    data = ("# -*- coding: latin-1 -*-\r\n" + spaced).encode("latin-1")
    done = rewrite(tmp_path, data)
    assert done.failures == ()
    assert "\n" not in done.text.replace("\r\n", "")
    assert "    " not in done.text
    assert (
        "def row_loss(x):\r\n\ty = ops.exp(x)\r\n\treturn y.std()\r\n\r\n\r\nrow_losses = ops.vmap(row_loss)\r\n"
        in done.text
    )
    assert "\t\t# größer\r\n\t\treturn row_losses(x).sum()\r\n" in done.text


def test_a_list_of_gradients_is_no_tensor(tmp_path: Path) -> None:
    text = cell(
        """
        grads = ops.GradOperation(get_by_list=True)(self.exp, self.weights)(x)
        grads = self.reducer(grads)
        total = 0.0
        for grad in grads:
            total += ops.norm(grad)
        return total
        """
    ).replace(
        "self.exp = ops.Exp()", "self.exp = ops.Exp()\n        self.reducer = nn.DistributedGradReducer(self.weights)"
    )
    assert rewrite(tmp_path, text).text == text
    plain = text.replace("nn.DistributedGradReducer(self.weights)", "ops.functional.identity")
    assert rewrite(tmp_path, plain).text == plain


def test_a_static_method_has_no_self(tmp_path: Path) -> None:
    text = cell("return self.norms(x).sum()").replace(
        "    def construct",
        "    @staticmethod\n    def norms(x):\n        y = ops.exp(x)\n"
        "        return ops.stack([(y[i] * x.mean()).sum() for i in range(len(y))])\n\n    def construct",
    )
    done = rewrite(tmp_path, text).text
    assert "def row_value(y, x):\n    return ops.ReduceSum()(y * x.mean())\n" in done
    assert "        return row_values(y, x)\n" in done


def test_no_two_blank_lines_are_left(tmp_path: Path) -> None:
    text = cell(
        "y = ops.exp(x)\n\nlosses = []\nfor i in range(len(y)):\n"
        "    losses.append(y[i].std())\n\nreturn ops.stack(losses).mean()"
    )
    assert "        y = ops.exp(x)\n\n        return row_losses(y).mean()\n" in rewrite(tmp_path, text).text


def test_new_names_do_not_collide(tmp_path: Path) -> None:
    text = cell(
        """
        row_loss = 1.0
        loss = 0.0
        for i in range(x.shape[0]):
            loss += x[i].std()
        return loss * row_loss
        """
    )
    done = rewrite(tmp_path, text).text
    assert "def row_loss_2(x):" in done
    assert "loss = row_losses(x).sum(0)" in done


def test_an_attribute_may_be_called_as_a_variable_of_the_round_is(tmp_path: Path) -> None:
    text = """
        from mindspore import Parameter, nn, ops


        class Loss(nn.Cell):
            def __init__(self, others):
                super().__init__()
                self.others = Parameter(others)

            def construct(self, x):
                z = ops.tanh(x)
                losses = []
                for i in range(z.shape[0]):
                    others = self.others[i : i + 1]
                    losses.append(ops.exp(others * z[i]))
                return ops.stack(losses).sum()
        """
    rewritten = rewrite(tmp_path, laid_out(text)).text
    assert "def row_loss(others_row, z):\n    others = others_row[None]\n    return ops.exp(others * z)\n" in rewritten
    assert "return row_losses(self.others, z).sum()" in rewritten


RESPELLED = {
    "ops.exp(x[i]).sum()": "ops.ReduceSum()(ops.exp(x))",
    "(x[i] * x[i]).sum(-1)": "ops.ReduceSum()(x * x, -1)",
    "(x[i] * x[i]).sum(axis=(0, -1), keepdims=True)": "ops.ReduceSum(keep_dims=True)(x * x, (0, -1))",
    "ops.sum((x[i] - 1.0), dim=0, keepdim=False)": "ops.ReduceSum()(x - 1.0, 0)",
    "(x[i] - x[i].max()).sum() / x[i].min()": "ops.ReduceSum()(x - x.amax()) / x.amin()",
    # What an axis less may have left a single number, on which these fail under vmap.
    "(x[i] * x[i]).mean(-1).mean()": "(x * x).mean(-1).reshape(-1).mean()",
    "ops.sqrt((x[i] * x[i]).sum(-1) + 0.1).sum()": "ops.ReduceSum()(ops.sqrt(ops.ReduceSum()(x * x, -1) + 0.1).reshape(-1))",
    "ops.mean(x[i].mean(-1) * 2.0) * x[i].mean(-1).max()": (
        "ops.mean((x.mean(-1) * 2.0).reshape(-1)) * x.mean(-1).reshape(-1).amax()"
    ),
    "ops.exp(x[i, :, 1:]).mean(-1).mean()": "ops.exp(x[:, 1:]).mean(-1).mean()",
    "(x[i].mean(-1, keep_dims=True) * x[i]).mean()": "(x.mean(-1, keep_dims=True) * x).mean()",
    # Sums of what may be whole numbers or truth values, whose type ReduceSum keeps; axes that are not there as numbers.
    "(y * x[i]).astype(ms.int32).sum()": "(y * x).astype(ms.int32).sum()",
    "ops.isnan(x[i]).sum()": "ops.isnan(x).sum()",
    "(x[i] > 0).sum()": "(x > 0).sum()",
    "ops.exp(x[i]).sum(y.ndim)": "ops.exp(x).sum(y.ndim)",
    "ops.exp(x[i]).sum(())": "ops.exp(x).sum(())",
    "ops.exp(x[i]).sum(dtype=ms.float32)": "ops.exp(x).sum(dtype=ms.float32)",
    # The gradient of ties goes to the first along an axis, and to all of them otherwise.
    "x[i].max(axis=-1)": "x.max(axis=-1)",
}


def test_operators_that_vmap_runs_row_by_row_are_written_by_equal_ones(tmp_path: Path) -> None:
    for before, after in RESPELLED.items():
        text = cell(f"return ops.stack([{before} * x[i].std() for i in range(x.shape[0])]).mean()", "x, y")
        done = rewrite(tmp_path, text.replace("import nn, ops", "import nn, ops\nimport mindspore as ms", 1))
        assert f"return {after} * x.std()\n" in done.text


def test_rows_of_floats_are_floats(tmp_path: Path) -> None:
    done = rewrite(tmp_path, cell("return sum(row.sum() * row.std() for i, row in enumerate(ops.exp(x)))")).text
    assert "def row_value(row):\n    return ops.ReduceSum()(row) * row.std()\n" in done


def test_a_file_without_operators_gets_their_import(tmp_path: Path) -> None:
    text = cell("return sum((x[i] * 2.0).sum() * x[i].std() for i in range(len(x)))").replace(
        "import nn, ops", "import nn"
    )
    text = text.replace("ops.tanh(x)", "x.tanh()").replace("        self.exp = ops.Exp()\n", "")
    done = rewrite(tmp_path, text).text
    assert done.startswith("from mindspore import nn, vmap\nfrom mindspore.ops import ReduceSum\n")
    assert "return ReduceSum()(x * 2.0) * x.std()\n" in done


BATCHED = {
    # Reductions along an axis counted from the end, and of the whole row.
    """
    losses = []
    for i in range(x.shape[0]):  # each row
        # of all features
        length = ops.sqrt((x[i] * x[i]).sum(-1) + 0.1)

        losses.append(-length.mean())
    return ops.stack(losses).mean()
    """: """
    # each row
    # of all features
    length = ops.sqrt((x * x).sum(-1) + 0.1)

    return (-length.reshape(x.shape[0], -1).mean(-1)).mean()
    """,
    # Axes counted from the first move by one; an index beside the row's; several results; an operator of the Cell.
    """
    total = 0.0
    tops = []
    for i in range(len(x)):
        share = ops.softmax(x[i, :, 1:], 0)
        total += (share * share).sum((0, -1))
        tops.append(self.exp(x[i].amax(axis=0, keepdims=True)) / 2.0)
    return total + ops.concat(tops, 0).mean()
    """: """
    share = ops.softmax(x[:, :, 1:], 1)
    total = (share * share).sum((1, -1)).sum(0)
    tops = self.exp(x.amax(axis=1, keepdims=True)) / 2.0
    return total + tops.flatten(start_dim=0, end_dim=1).mean()
    """,
    # The largest of a row, whose gradient ties share, along an axis.
    "return sum(x[i].max() - ops.mean(ops.exp(x[i])) for i in range(x.shape[0]))": (
        "return (x.reshape(x.shape[0], -1).amax(-1) - ops.mean(ops.exp(x).reshape(x.shape[0], -1), -1)).sum(0)"
    ),
    "return ops.stack([x[i : i + 1].sum(1) / x[i].max() for i in range(x.shape[0])]).mean()": "",
    "return 2.0 * ops.stack([x[i] / x[i].sum(-1, keepdims=True) for i in range(x.shape[0])]) ** 2": (
        "return 2.0 * (x / x.sum(-1, keepdims=True)) ** 2"
    ),
    # A tensor that has no name is looped over.
    """
    loss = 0.5
    for i, row in enumerate(ops.square(x)):
        loss = loss - ops.log(row.sum(0) + 0.5).sum()
    return loss
    """: """
    loss = 0.5
    row = ops.square(x)
    loss = loss - ops.log(row.sum(1) + 0.5).reshape(row.shape[0], -1).sum(-1).sum(0)
    return loss
    """,
    # Left to vmap: values of which one may have more axes, other tensors, rows along another axis, settings of a reduction.
    "return ops.stack([x[i] - x[i].mean() for i in range(x.shape[0])])": "",
    "return ops.stack([x[i] * self.scale for i in range(x.shape[0])])": "",
    "return ops.stack([x[:, i].sum(-1) for i in range(x.shape[1])])": "",
    "return ops.stack([x[i].mean(0, False) for i in range(x.shape[0])])": "",
    "return ops.stack([ops.ReduceSum(True)(x[i], 0) for i in range(x.shape[0])])": "",
    "return ops.stack([x[i].sum(-1) for i in range(x.shape[0])], 1)": "",
}


def test_simple_bodies_are_computed_on_the_whole_tensor(tmp_path: Path) -> None:
    for before, after in BATCHED.items():
        done = rewrite(tmp_path, cell(before))
        assert done.text == cell(after) if after else "vmap(" in done.text
        assert done.failures == ()


@pytest.mark.parametrize(
    ("body", "applicability"),
    [
        # MindSpore sums "the last axis" of a single number: of a vector's rows, nothing; of the vector, all of it.
        ("ops.exp(x[i]).sum(-1)", Applicability.UNSAFE),
        ("ops.softmax(x[i], -1).sum()", Applicability.UNSAFE),
        ("ops.exp(x[i, :]).sum(-1)", Applicability.SAFE),
        ("ops.exp(x[i]).sum(0)", Applicability.SAFE),
        ("ops.exp(x[i]).sum()", Applicability.SAFE),
    ],
)
def test_a_row_that_may_be_a_single_number_has_no_last_axis(
    body: str, applicability: Applicability, tmp_path: Path
) -> None:
    (finding,) = rewrite(tmp_path, cell(f"return ops.stack([{body} for i in range(x.shape[0])]).mean()")).applied
    assert finding.fix is not None
    assert finding.fix.applicability is applicability
    assert "vmap" not in finding.fix.message


def test_the_message_names_what_still_runs_row_by_row(tmp_path: Path) -> None:
    text = cell("return ops.stack([ops.norm(x[i]) * 2.0 + 1.0 for i in range(x.shape[0])]).mean()")
    (finding,) = rewrite(tmp_path, text).applied
    assert finding.fix is not None
    assert "(`*` with a number, for which it has no rule, row by row as before)" in finding.fix.message


HELPERS = {
    "`@` in `self.score` is a vector": "return ops.square(self.weight @ row).mean()",
    "`if row.mean() > 0` in `self.score`": "if row.mean() > 0:\n    return ops.exp(row).mean()\nreturn row.mean()",
    "`ops.exp(row)[row > 0]` in `self.score`": "return ops.exp(row)[row > 0].mean()",
    "`self.weight[0]` in `self.score`": "return (ops.exp(row) * self.weight[0]).mean()",
    "`.squeeze` in `self.score`": "return ops.exp(row).squeeze().mean()",
    "the loop over `row` in `self.score`": "out = 0.0\nfor value in row:\n    out = out + ops.exp(value)\nreturn out",
    "cannot run `.var` in `self.score`": "return ops.exp(row).var()",
    "`self.score` writes `self.calls` in place": "self.calls = self.calls + 1\nreturn ops.exp(row).mean()",
    "": "if row.ndim == 1 and self.scale is None:\n    return ops.exp(row).mean()\nreturn ops.square(row).mean()",
}


@pytest.mark.parametrize("assumed", HELPERS)
def test_what_a_method_runs_for_a_row_is_looked_at(assumed: str, tmp_path: Path) -> None:
    """A matrix times a vector, an `if` on values and a mask in a method gave other numbers or errors under ``vmap``."""
    body = """
        losses = []
        for i in range(x.shape[0]):
            losses.append(self.score(x[i]))
        return ops.stack(losses).mean()
    """
    method = "".join(f"        {line}\n" for line in HELPERS[assumed].split("\n"))
    text = cell(body).replace(TRAINED, f"\n    def score(self, row):\n{method}{TRAINED}")
    done = rewrite(tmp_path, text, unsafe=False)
    if assumed:
        assert done.text == text
        fix = done.left[0].fix
        assert fix is not None
        assert assumed in str(fix.message)
    else:
        assert "self.row_losses(x).mean()" in done.text


def test_what_a_cell_of_the_project_computes_is_not_followed(tmp_path: Path) -> None:
    text = cell(
        """
        losses = []
        for i in range(x.shape[0]):
            losses.append(self.score(x[i]))
        return ops.stack(losses).mean()
        """
    )
    text = text.replace(
        "class Loss", "class Score(nn.Cell):\n    def construct(self, row):\n        return row @ row\n\n\nclass Loss"
    )
    text = text.replace("self.exp = ops.Exp()", "self.score = Score()")
    done = rewrite(tmp_path, text, unsafe=False)
    assert done.text == text
    fix = done.left[0].fix
    assert fix is not None
    assert "vmap vectorises `self.score` rightly" in str(fix.message)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("loss = loss - (x[i] - x[i] * 0.5)", "loss = -(x - x * 0.5).sum(0)"),
        ("loss = (loss + (x[i] - 1.0) - (x[i] * 2.0))", "loss = ((x - 1.0) - (x * 2.0)).sum(0)"),
    ],
)
def test_what_is_added_may_stand_in_brackets(statement: str, expected: str, tmp_path: Path) -> None:
    text = cell(f"loss = 0.0\nfor i in range(x.shape[0]):\n    {statement}\nreturn loss.mean()")
    done = rewrite(tmp_path, text)
    assert done.failures == ()
    assert expected in done.text
