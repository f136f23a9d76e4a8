"""MS203."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module, find
from mslint.semantics.pieces import FragmentGroup, Fragments, fragments
from mslint.semantics.rows import Gathered, GrowingConcat, How, RowLoop, growing_concats, row_loops
from mslint.semantics.training import is_differentiated

_BECOMES = {
    How.LISTED: "put in the list `{name}`",
    How.ADDED: "added to `{name}`",
    How.GROWN: "concatenated to `{name}`",
    How.STORED: "stored row by row in `{name}`",
    How.SELECTED: "selected into `{name}`",
}


class FragmentedSlicing(Rule):
    """Rows or columns of a tensor are computed one by one and put together again.

    What it does
        Reports, in networks and losses that training runs, (a) a Python loop over the rows of a tensor whose rounds
        know nothing of each other and whose results are stacked, concatenated, summed or stored row by row; (b) pieces
        of one tensor that get the same formula and are put together again, and five or more shifted windows that are
        added up with constant factors (a convolution written out); (c) a Concat that grows in a loop. Left alone are
        pieces that get different formulas, pairs of corners, shifted differences, lists of feature maps and other loops
        over Python lists, recurrences, sampling for each image, numpy code, inference. Where it does not show whether a
        list or a tensor is looped over, nothing is reported.

    Why it matters
        Python loops are unrolled: a loop over 64 rows puts 64 copies of its body in the graph, each with its own
        backward, and all of them are compiled and launched one by one. Columns that are cut out one by one cost a slice
        forward and a padded gradient backward each.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``mslint verify --mode both fixtures/fragmented-slicing/bad.py --against
        fixtures/fragmented-slicing/fixed.py`` (a loop over 8 sentences, and 4 columns computed apart and concatenated,
        against the whole batch at once): forward nodes 81 -> 16, backward nodes 92 -> 17, saved bytes 11,520 -> 9,600
        in graph mode; 119 -> 24 autograd nodes and 171 -> 39 operator calls a step in PyNative mode; loss, gradients
        and parameters after the step bit-equal in both. For 64 rows, compiling the graph took 10.5 s against 0.27 s, a
        step 23 ms against 6.8 ms, in PyNative mode 2,370 ms against 19 ms. ``mindspore.vmap`` over the body of a
        contrastive loss for 8 rows brought the backward graph from 314 to 234 nodes, batched operators to 169. By ``mslint
        verify --mode both --codemod vectorize-rows fixtures/vectorize-rows/contrastive.py`` (12 rows): forward nodes 133 ->
        37, backward nodes 244 -> 48; 176 -> 20 autograd nodes and 436 -> 41 operator calls in PyNative mode, gradients
        equal to 1.7e-7. By the same command on ``attention_pool.py`` (two loops over 9 rows through layers): backward nodes
        245 -> 78, gradients equal to 1.4e-7. ``python fixtures/vectorize-rows/timing.py pynative 12``, on a busy machine:
        876 -> 476 ms a step; with ``graph``: 1,570 -> 401 ms.
        Merging slices (b) alone brought 21 backward nodes to 9 and showed no gain in time on CPU:
        those findings are ``info``. ``split`` in place of slices is slower in PyNative mode.

    Example
        .. code-block:: python

            losses = []
            for i in range(logits.shape[0]):
                losses.append(-(ops.log_softmax(logits[i], -1) * target[i]).sum(-1).mean())
            loss = ops.stack(losses).mean()

            left = ops.abs(box[:, 0:1] - target[:, 0:1])
            top = ops.abs(box[:, 1:2] - target[:, 1:2])
            distance = ops.concat((left, top), -1)

    Use instead
        .. code-block:: python

            loss = -(ops.log_softmax(logits, -1) * target).sum(-1).mean(-1).mean()

            distance = ops.abs(box[:, 0:2] - target[:, 0:2])

        Where the body is long, ``mindspore.vmap`` turns it into one for all rows as it stands.

    Fix safety
        Codemod ``merge-slices`` joins slices that are put side by side again, and concatenates once after the loop: the same
        bits. Codemod ``vectorize-rows`` makes the body a function and runs it for all rows by ``mindspore.vmap``; ``mslint
        codemod vectorize-rows`` says when that is safe. Sums over all rows at once may add in another order;
        BatchNorm in the body of a loop sees one row at a time and the whole batch afterwards; Dropout draws one mask instead
        of one for each row.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore/mindspore.vmap.html
    """

    code = "MS203"
    name = "fragmented-slicing"
    severity = Severity.WARNING
    summary = "rows or columns of a tensor are computed one by one and put together again"
    codemod = ("merge-slices", "vectorize-rows")
    triggers = (b"range(", b"enumerate(", b"zip(", b"concat", b"Concat", b"cat(", b"[:", b"[...", b", :")
    context = (b"mindspore", b"construct")
    screen = "mslint.rules.loss.slicing_screen:has_fragments"
    INVALID = (
        # The batch dimension, results in a list that is stacked.
        """
        from mindspore import nn, ops

        class TripletLoss(nn.Cell):
            def construct(self, anchor, positive):
                batch = anchor.shape[0]
                losses = []
                for i in range(batch):  # <- MS203
                    distance = ops.square(anchor[i] - positive[i : i + 1, :]).sum(-1)
                    losses.append(distance.mean())
                return ops.stack(losses).mean()
        """,
        # Added up, over another axis; the tensor comes from an operator kept in the Cell.
        """
        import mindspore.nn as nn
        import mindspore.ops.operations as P

        class Steps(nn.Cell):
            def __init__(self, steps):
                super().__init__()
                self.steps = steps
                self.transpose = P.Transpose()
                self.log = P.Log()

            def construct(self, prediction, label):
                prediction = self.transpose(prediction, (1, 0, 2))
                loss = 0
                for t in range(self.steps):  # <- MS203
                    loss = loss - (self.log(prediction[t]) * label[:, t]).mean()
                return loss
        """,
        # A nested loop is one finding, at the outermost; a tuple that grows; a function that a construct calls.
        """
        from mindspore import nn, ops

        def similarities(left, right):
            rows, columns, _ = left.shape
            table = ()
            for i in range(rows):  # <- MS203
                row = []
                for j in range(columns):
                    row.append((left[i, j] * right[i, 0]).sum())
                table += (ops.stack(row),)
            return ops.stack(table)

        class Loss(nn.Cell):
            def construct(self, left, right):
                return similarities(left, right).mean()
        """,
        # Stored row by row; selected over all rows; a comprehension; the tensor itself looped over.
        """
        from mindspore import nn, ops

        class Assigner(nn.Cell):
            def __init__(self, objects):
                super().__init__()
                self.objects = objects

            def construct(self, source, order, overlaps):
                sorted_source = ops.zeros_like(source)
                for b in range(source.shape[0]):  # <- MS203
                    if order[b, 0] == 1:
                        sorted_source[b] = source[b, ::-1]
                    else:
                        sorted_source[b] = source[b]
                assigned = ops.zeros_like(overlaps[0])
                for j in range(self.objects):  # <- MS203
                    assigned = ops.where(overlaps[j : j + 1, :] > 0.5, j + 1, assigned)
                norms = ops.stack([ops.norm(source[b]) for b in range(source.shape[0])])  # <- MS203
                total = 0.0
                for row in ops.sigmoid(source):  # <- MS203
                    total += row.max()
                return sorted_source.sum() + assigned.sum() + norms.sum() + total
        """,
        # A Concat that grows, of a list, with and without a first round of its own.
        """
        from mindspore import nn, ops

        class Head(nn.Cell):
            def __init__(self, convs):
                super().__init__()
                self.convs = nn.CellList(convs)

            def construct(self, features, first):
                out = first
                for conv, feature in zip(self.convs, features):
                    out = ops.concat((out, conv(feature)), 1)  # <- MS203
                for i, feature in enumerate(features):
                    if i == 0:
                        flat = feature.flatten()
                    else:
                        flat = ops.cat([flat, feature.flatten()])  # <- MS203
                return out.sum() + flat.sum()
        """,
        # Columns: sides of boxes multiplied, offsets concatenated through variables, one activation on each.
        """
        from mindspore import nn, ops

        class BoxLoss(nn.Cell):
            def construct(self, box, anchor, prediction):
                area = (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])  # <- MS203
                width = anchor[:, 2:3] - anchor[:, 0:1]  # <- MS203
                height = anchor[:, 3:4] - anchor[:, 1:2]
                size = ops.concat((ops.log(width), ops.log(height)), -1)
                x = ops.sigmoid(prediction[..., 0])  # <- MS203
                y = ops.sigmoid(prediction[..., 1])
                rest = ops.sigmoid(prediction[..., 2:])
                return area.sum() + size.sum() + self.score(x, y, rest)

            def score(self, x, y, rest):
                return (x - y).sum() + rest.sum()
        """,
        # A convolution written out.
        """
        from mindspore import nn

        class Laplace(nn.Cell):
            def construct(self, u):
                up, down = u[:, :-2, 1:-1], u[:, 2:, 1:-1]
                left = u[:, 1:-1, :-2]  # <- MS203
                right = u[:, 1:-1, 2:]
                middle = u[:, 1:-1, 1:-1]
                return (left + right - 2 * middle + u[:, :-2, 1:-1] + u[:, 2:, 1:-1] - 2 * middle + up - down).sum()
        """,
        # A loss that a script hands to Model.
        """
        from mindspore import Model, nn, ops
        from settings import network, data

        def by_sentence(logits, labels):
            losses = []
            for i in range(logits.shape[0]):  # <- MS203
                losses.append(ops.cross_entropy(logits[i, :, :], labels[i, :]))
            return ops.stack(losses).mean()

        model = Model(network, by_sentence, nn.Adam(network.trainable_params()))
        model.train(1, data)
        """,
        # Another tensor beside the rows, of which nothing else is seen.
        """
        from mindspore import nn, ops

        class Tagging(nn.Cell):
            def construct(self, out, tags):
                logits = ops.log_softmax(out, -1)
                losses = []
                for i in range(logits.shape[0]):  # <- MS203
                    losses.append(-(logits[i] * tags[i]).sum(-1))
                return ops.stack(losses).mean()
        """,
        # A loss that its file tries out.
        """
        from mindspore import ops

        def sliced(x, y):
            total = 0
            for i in range(x.shape[2]):  # <- MS203
                total = total + ops.l1_loss(x[:, :, i], y[:, :, i])
            return total

        if __name__ == "__main__":
            print(sliced(ops.ones((2, 3, 4)), ops.ones((2, 3, 4))))
        """,
    )
    VALID = (
        # A product of complex numbers: the pieces of one factor go up where those of the other go down.
        """
        from mindspore import nn, ops

        class Rotate(nn.Cell):
            def construct(self, wave, phase):
                real = wave[..., 0] * phase[..., 0] - wave[..., 1] * phase[..., 1]
                imaginary = wave[..., 0] * phase[..., 1] + wave[..., 1] * phase[..., 0]
                return ops.stack((real, imaginary), -1)
        """,
        # Jacobians: a body that differentiates cannot be put into vmap.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Jacobian(nn.Cell):
            def __init__(self, network):
                super().__init__()
                self.network = network
                self.gradient = ops.GradOperation(get_all=True, sens_param=True)

            def construct(self, x, directions):
                along = []
                for i in range(directions.shape[0]):
                    along.append(ms.jvp(self.network, x, directions[i, :])[1])
                derivative = self.gradient(self.network)
                back = []
                for i in range(directions.shape[0]):
                    back.append(derivative(x, directions[i, :])[0])
                return ops.stack(along), ops.stack(back)
        """,
        # What a script evaluates and plots by itself.
        """
        import mindspore.dataset as ds
        from mindspore import ops, load_checkpoint

        def lift(network, surface):
            pressure = ops.squeeze(network(surface))
            total = 0.0
            for i in range(pressure.shape[0]):
                total = total + pressure[i, 0] * surface[i, 1]
            return print(total)

        lift(load_checkpoint("net.ckpt"), ds.NumpySlicesDataset("surface.npy"))
        """,
        # Lists and tuples of feature maps, levels, losses, layers.
        """
        from mindspore import nn, ops

        class Perceptual(nn.Cell):
            def __init__(self, extractor, levels):
                super().__init__()
                self.extractor = extractor
                self.levels = levels
                self.layers = nn.CellList([nn.Dense(4, 4) for _ in range(levels)])
                self.weights = [1.0, 0.5, 0.25]
                self.scale = ops.ones((levels, 2))

            def construct(self, x, y, outputs, losses):
                x_features = self.extractor(x)
                y_features = self.extractor(y)
                loss = 0
                for i in range(self.levels):
                    loss += self.weights[i] * ops.abs(x_features[i] - y_features[i]).mean()
                for i in range(len(outputs)):
                    loss += ops.square(outputs[i]).mean()
                for i in range(self.levels):
                    loss = loss + losses[i] / self.scale[i, 0]
                for i in range(self.levels):
                    loss += self.layers[i](x[:, i]).sum()
                return loss
        """,
        # Recurrences: state handed on, the last result read, dynamic programming; a loop that ends early.
        """
        from mindspore import nn, ops

        class Decoder(nn.Cell):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(4, 4)

            def construct(self, x, state, cost):
                outputs = []
                for t in range(x.shape[1]):
                    state = self.cell(x[:, t], state)
                    outputs.append(state)
                smooth = [x[:, 0]]
                for t in range(x.shape[1]):
                    smooth.append(0.9 * smooth[-1] + x[:, t])
                alpha = ops.zeros_like(cost)
                for t in range(1, cost.shape[0]):
                    alpha[t] = ops.minimum(alpha[t - 1], cost[t])
                total = 0
                for t in range(x.shape[1]):
                    if total > 10:
                        break
                    total += x[:, t].sum()
                return ops.stack(outputs).sum() + ops.stack(smooth).sum() + alpha.sum() + total
        """,
        # A Cell that keeps state from one call to the next; sampling for each image, in another Cell.
        """
        from mindspore import nn, ops

        class Spike(nn.Cell):
            def __init__(self):
                super().__init__()
                self.voltage = 0.0

            def construct(self, x):
                self.voltage = self.voltage * 0.5 + x
                return self.voltage

        class Sampler(nn.Cell):
            def __init__(self):
                super().__init__()
                self.choose = ops.RandomChoiceWithMask(16)

            def construct(self, boxes, valid):
                index, _ = self.choose(valid)
                return ops.gather(boxes, index.squeeze(-1), 0)

        class Network(nn.Cell):
            def __init__(self):
                super().__init__()
                self.spike = Spike()
                self.sampler = Sampler()

            def construct(self, x, boxes, valid):
                total = 0
                for t in range(x.shape[0]):
                    total += self.spike(x[t])
                chosen = ()
                for i in range(boxes.shape[0]):
                    chosen += (self.sampler(boxes[i : i + 1, :].squeeze(0), valid[i]),)
                return total, ops.concat(chosen)
        """,
        # Different formulas for pieces, corner pairs, shifted differences, other sizes.
        """
        from mindspore import nn, ops

        class Yolo(nn.Cell):
            def construct(self, prediction, box1, box2, tokens, image):
                xy = ops.sigmoid(prediction[..., 0:2])
                wh = ops.exp(prediction[..., 2:4])
                confidence = ops.sigmoid(prediction[..., 4:5])
                classes = ops.sigmoid(prediction[..., 5:])
                decoded = ops.concat((xy, wh, confidence, classes), -1)
                inner = ops.minimum(box1[..., 2:], box2[..., 2:]) - ops.maximum(box1[..., :2], box2[..., :2])
                inter = inner[..., 0] * inner[..., 1]
                down = ops.abs(image[:, :, 1:] - image[:, :, :-1])
                right = ops.abs(image[:, :, :, 1:] - image[:, :, :, :-1])
                variation = ops.square(down).sum() + ops.square(right).sum()
                shifted = tokens[:, :-1] - tokens[:, 1:]
                rotated = ops.concat((-image[..., 4:], image[..., :4]), -1)
                return decoded.sum() + inter.sum() + variation + shifted.sum() + rotated.sum()
        """,
        # Inputs that a physics loss differentiates by must stay apart.
        """
        import mindspore as ms
        from mindspore import nn, ops

        class Heat(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.gradient = ms.grad(self.field, (0, 1))

            def field(self, x, t):
                return self.net(ops.concat((x, t), -1)).sum()

            def construct(self, points):
                x, t = points[:, 0:1], points[:, 1:2]
                u_x, u_t = self.gradient(x, t)
                return ops.square(u_t - u_x).mean()
        """,
        # numpy, shapes, few rounds, inference, a data pipeline, evaluation.
        """
        import numpy as np
        from mindspore import nn, ops

        class Post(nn.Cell):
            def construct(self, x):
                size = 1
                for i in range(len(x.shape)):
                    size *= x.shape[i]
                for axis in range(x.ndim):
                    size += x.shape[axis]
                lengths = []
                for row in ops.relu(x):
                    lengths.append(len(row))
                size += ops.stack(lengths)
                mean = 0
                for c in range(3):
                    mean += x[:, c].mean()
                if not self.training:
                    kept = []
                    for i in range(x.shape[0]):
                        kept.append(x[i].max())
                    return ops.stack(kept)
                return size * mean

            def predict(self, x):
                return ops.stack([x[i].max() for i in range(x.shape[0])])

        class Accuracy(nn.Metric):
            def update(self, logits, labels):
                hits = 0
                for i in range(logits.shape[0]):
                    hits += (ops.argmax(logits[i, :]) == labels[i, 0]).sum()
                self.hits = hits

        def collate(images):
            batch = np.stack(images)
            out = []
            for i in range(batch.shape[0]):
                out.append(batch[i, ::-1] / 255)
            return np.stack(out)
        """,
        # The Concat that grows is an input of the next round.
        """
        from mindspore import nn, ops

        class Dense(nn.Cell):
            def __init__(self, layers):
                super().__init__()
                self.layers = nn.CellList(layers)

            def construct(self, x):
                for layer in self.layers:
                    x = ops.concat((x, layer(x)), 1)
                return x
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for function in inventories(module):
            loops = {loop.node: loop for loop in row_loops(module, function)}
            inside = {inner for loop in loops for inner in find(loop, cst.For)}
            for loop in loops.values():
                if is_differentiated(module, loop.node):
                    yield self._row_loop(module, loop)
            for growing in growing_concats(module, function):
                if growing.loop not in inside and is_differentiated(module, growing.loop):
                    yield self._growing(module, growing)
            yield from self._fragments(module, function, inside)

    def _row_loop(self, module: Module, loop: RowLoop) -> Finding:
        rounds = _listed([f"`{tensor}`" for tensor in loop.tensors])
        what = "reads one row of" if loop.rows else "takes one row of"
        becomes = _listed(list(dict.fromkeys(_becomes(module, item) for item in loop.gathered)))
        each = "; `mindspore.vmap` over the body, or operators on the whole batch, run it once instead of once a row"
        message = (
            f"each round of this loop over `{_short(module, loop.header)}` {what} {rounds} and nothing of another round; "
            f"its result is {becomes}{each}"
        )
        related = [
            Related(
                module.source.filename, module.start(row), module.end(row), f"one row of `{module.code(row.value)}`"
            )
            for row in loop.rows
        ]
        related += [
            Related(module.source.filename, module.start(item.node), module.end(item.node), _becomes(module, item))
            for item in loop.gathered
        ]
        return self._finding(module, loop.node, loop.header, message, Severity.WARNING, related, loop)

    def _growing(self, module: Module, growing: GrowingConcat) -> Finding:
        loop, gathered = growing.loop, growing.gathered
        message = (
            f"each round of the loop over `{_short(module, loop.iter)}` concatenates to `{gathered.name}` and so copies "
            "all that earlier rounds put there; collect the parts in a list and concatenate once after the loop"
        )
        place = module.start(loop), module.end(loop.iter)
        related = [Related(module.source.filename, *place, "the loop")]
        return self._finding(module, gathered.node, gathered.node, message, Severity.WARNING, related, growing)

    def _fragments(self, module: Module, function: cst.FunctionDef, loops: set[cst.For]) -> Iterator[Finding]:
        together: dict[cst.CSTNode, list[Fragments]] = {}
        for found in fragments(module, function):
            statement = module.enclosing(found.first, cst.SimpleStatementLine) or found.first
            together.setdefault(statement, []).append(found)
        for group in together.values():
            first = min((found.first for found in group), key=module.start)
            if is_differentiated(module, first):
                yield self._pieces(module, group, first)

    def _pieces(self, module: Module, group: list[Fragments], first: cst.CSTNode) -> Finding:
        tensors = _listed([f"`{found.tensor}`" for found in group])
        glue, formulas = group[0].glue, group[0].formulas
        if len(formulas) == 1:
            message = (
                f"{len(group[0].pieces)} shifted windows of {tensors} are cut out and added up with constant factors: "
                "that is one convolution with a constant kernel"
            )
        else:
            together = f" and put together again in row {module.start(glue).row}" if glue is not None else ""
            written = " and ".join(f"`{_short(module, formula)}`" for formula in formulas[:2])
            message = (
                f"pieces of {tensors} get the same formula one by one ({written}){together}; computed on the whole, or on "
                "one slice that spans them, it takes fewer nodes in the backward graph and gives the same bits"
            )
        related = [
            Related(module.source.filename, module.start(formula), module.end(formula), "the same formula")
            for formula in formulas
            if len(formulas) > 1
        ]
        return self._finding(module, first, first, message, Severity.INFO, related, FragmentGroup(tuple(group)))

    def _finding(
        self,
        module: Module,
        first: cst.CSTNode,
        last: cst.CSTNode,
        message: str,
        severity: Severity,
        related: list[Related],
        subject: object,
    ) -> Finding:
        return self.finding(
            module,
            module.start(first),
            module.end(last),
            message,
            severity=severity,
            related=tuple(related),
            subject=subject,
        )


def _becomes(module: Module, gathered: Gathered) -> str:
    if gathered.glue is None:
        return _BECOMES[gathered.how].format(name=gathered.name)
    glue = f"glued together by `{module.code(gathered.glue.func)}` in row {module.start(gathered.glue).row}"
    return f"{_BECOMES[gathered.how].format(name=gathered.name)} and {glue}" if gathered.name else glue


def _listed(items: list[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _short(module: Module, node: cst.CSTNode) -> str:
    text = " ".join(module.code(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
