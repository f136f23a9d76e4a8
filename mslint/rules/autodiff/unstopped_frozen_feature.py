"""MS102."""

from __future__ import annotations

from collections.abc import Iterator

from mslint.findings import Finding, Position, Related, Severity
from mslint.program.conditions import condition_of
from mslint.program.training import LossInput, training_of
from mslint.rules.base import Rule
from mslint.rules.places import related, span
from mslint.semantics.module import Module


class UnstoppedFrozenFeature(Rule):
    """The output of a network that is not trained enters a loss without stop_gradient.

    What it does
        Follows each training script from its networks and optimizers to the loss and reports the calls of a network none of
        whose parameters is trained (frozen by ``requires_grad = False``, wherever that stands, or held by no optimizer of
        the step), on an input that depends on no trained parameter (the batch, noise, another such output), whose output
        reaches the loss without ``ops.stop_gradient``. A frozen network on a prediction is left alone: there the gradient
        must pass. ``set_grad(False)`` and ``set_train(False)`` freeze nothing and count for nothing here (MS103).

    Why it matters
        The gradient ends in that network, so all of it is backward work for nothing, as far as nothing prunes it; and who
        later passes ``get_parameters()`` to the optimizer trains the teacher. ``ops.stop_gradient`` says what is meant where
        the reader looks, and changes no number.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``mslint verify fixtures/unstopped-frozen-feature/bad.py --against
        fixtures/unstopped-frozen-feature/fixed.py --mode graph`` (and ``pynative``): a PyNative step records 36 autograd
        nodes without the stop and 19 with it; in graph mode both have 28 forward and 14 backward nodes, because the compiler
        prunes what leads to no weight; loss, gradients and updated parameters are bit-equal in both modes. So the finding is
        ``info`` where the network is not among the weights. Where it is (an optimizer over ``get_parameters()``), graph mode
        prunes nothing and the finding is a ``warning``: with a teacher in the list of weights, stopping its output brought
        the backward graph from 69 to 36 nodes and the PyNative graph from 88 to 47, and steps without the stop took 2 to 2.6
        times as long (MindSpore 2.10.0, CPU).

    Example
        .. code-block:: python

            for parameter in self.teacher.get_parameters():
                parameter.requires_grad = False
            ...
            target = self.teacher(image)
            loss = self.distance(self.student(image), target)

    Use instead
        .. code-block:: python

            target = ops.stop_gradient(self.teacher(image))
            loss = self.distance(self.student(image), target)

    Fix safety
        Safe where nothing that is trained lies behind the call: loss and gradients stay the same to the bit. Unsafe where
        the frozen network is among the weights (graph mode trains it until then) or where it is not seen what feeds or
        differentiates the code. ``mslint codemod stop-gradient`` has the details.

    References
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.stop_gradient.html
    """

    code = "MS102"
    name = "unstopped-frozen-feature"
    severity = Severity.WARNING
    summary = "the output of a network that is not trained enters a loss without stop_gradient"
    triggers = (b"def construct", b"value_and_grad", b"GradOperation", b"grad(")
    codemod = "stop-gradient"
    INVALID = (
        # A teacher frozen through a variable that holds its parameters.
        """
        import mindspore as ms
        from mindspore import nn

        class Distillation(nn.Cell):
            def __init__(self, teacher, student):
                super().__init__()
                self.teacher = teacher
                fixed = self.teacher.trainable_params()
                for parameter in fixed:
                    parameter.requires_grad = False
                self.student = student
                self.distance = nn.MSELoss()

            def construct(self, image):
                goal, _ = self.teacher(image)  # <- MS102
                return self.distance(self.student(image), goal)

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.layer = nn.Dense(8, 8)

            def construct(self, x):
                x = self.layer(x)
                return x, x

        if __name__ == "__main__":
            loss = Distillation(Net(), nn.Dense(8, 8))
            optimizer = nn.Adam(loss.trainable_params())
            step = nn.TrainOneStepCell(loss, optimizer)
        """,
        # Frozen by setattr, in a comprehension.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, teacher, student):
                super().__init__()
                self.teacher = teacher
                [setattr(parameter, "requires_grad", False) for parameter in teacher.get_parameters()]
                self.student = student
                self.distance = nn.MSELoss()

            def construct(self, image):
                return self.distance(self.student(image), self.teacher(image))  # <- MS102

        loss = Loss(nn.Dense(8, 8), nn.Dense(8, 8))
        step = nn.TrainOneStepCell(loss, nn.Adam(loss.trainable_params()))
        """,
        # Features of target and prediction by one helper: only the target's. The optimizer leaves the encoder out.
        """
        from mindspore import nn

        class Perceptual(nn.Cell):
            def __init__(self, generator, encoder):
                super().__init__()
                self.generator = generator
                self.encoder = encoder
                self.distance = nn.L1Loss()

            def features(self, image):
                return self.encoder((image + 1) / 2)

            def construct(self, low, high):
                made = self.generator(low)
                wanted = self.features(high)  # <- MS102
                got = self.features(made)
                return self.distance(got, wanted)

        def encoder():
            return nn.SequentialCell([nn.Conv2d(3, 8, 3), nn.ReLU()])

        def main():
            generator = nn.SequentialCell(nn.Conv2d(3, 3, 3), nn.Tanh())
            loss = Perceptual(generator, encoder())
            optimizer = nn.Adam(generator.trainable_params(), learning_rate=1e-4)
            nn.TrainOneStepCell(loss, optimizer).set_train()

        main()
        """,
        # The image that a discriminator is trained with, by a step of one's own.
        """
        from mindspore import nn, ops

        class Judge(nn.Cell):
            def __init__(self, critic, painter):
                super().__init__()
                self.critic = critic
                self.painter = painter
                self.entropy = nn.BCEWithLogitsLoss()

            def construct(self, noise, real):
                painted = self.painter(noise)  # <- MS102
                wrong, right = self.critic(painted), self.critic(real)
                return self.entropy(wrong, ops.zeros_like(wrong)) + self.entropy(right, ops.ones_like(right))

        class JudgeStep(nn.Cell):
            def __init__(self, judge, optimizer):
                super().__init__(auto_prefix=False)
                self.judge = judge
                self.judge.set_grad()
                self.judge.painter.set_grad(False)
                self.optimizer = optimizer
                self.weights = optimizer.parameters
                self.gradient = ops.GradOperation(get_by_list=True)

            def construct(self, noise, real):
                loss = self.judge(noise, real)
                grads = self.gradient(self.judge, self.weights)(noise, real)
                return ops.depend(loss, self.optimizer(grads))

        critic, painter = nn.Dense(64, 1), nn.Dense(16, 64)
        judge = JudgeStep(Judge(critic, painter), nn.Adam(critic.trainable_params()))
        """,
        # Frozen in the function that builds it, among the weights all the same, in a loss that is a function.
        """
        import mindspore as ms
        from mindspore import nn

        def text_encoder():
            net = nn.Embedding(100, 8)
            for _, parameter in net.parameters_and_names():
                parameter.requires_grad = False
            return net

        def train(batches):
            words, head = text_encoder(), nn.Dense(8, 2)
            entropy = nn.CrossEntropyLoss()

            def forward(tokens, label):
                sentence = words(tokens).mean(1)  # <- MS102
                return entropy(head(sentence), label)

            both = nn.CellList([words, head])
            optimizer = nn.SGD(both.get_parameters(), learning_rate=0.1)
            step = ms.value_and_grad(forward, None, optimizer.parameters)
            for tokens, label in batches:
                loss, grads = step(tokens, label)
                optimizer(grads)

        train([])
        """,
        # A copy of the network, as it was when training began.
        """
        import copy

        import mindspore as ms
        from mindspore import nn

        policy = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 2))
        reference = copy.deepcopy(policy)
        for parameter in reference.trainable_params():
            parameter.requires_grad = False
        optimizer = nn.Adam(policy.trainable_params())

        def forward(state):
            before = reference(state)  # <- MS102
            return ((policy(state) - before) ** 2).mean()

        step = ms.value_and_grad(forward, None, optimizer.parameters)
        """,
        # A part of the network frozen with all that it holds so far; no script here trains the network.
        """
        from mindspore import Parameter, nn, ops

        class Quality(nn.Cell):
            def __init__(self):
                super().__init__()
                self.stage1 = nn.Conv2d(3, 8, 3)
                self.stage2 = nn.Conv2d(8, 8, 3)
                for item in self.parameters_and_names():
                    item[1].requires_grad = False
                self.weight = Parameter(ops.ones((1, 8, 1, 1)), name="weight")

            def stages(self, x):
                first = self.stage1(x)
                return [first, self.stage2(first)]

            def construct(self, x, y):
                left = self.stages(x)  # <- MS102
                right = self.stages(y)  # <- MS102
                return sum([(self.weight * (a - b) ** 2).mean() for a, b in zip(left, right)])
        """,
        # One call runs a network that this step leaves out and a head that it trains; other steps train both.
        """
        from mindspore import nn, ops

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.trunk = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 8))
                self.head = nn.Dense(8, 2)

            def construct(self, x):
                return self.head(self.trunk(x))

        class Loss(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.entropy = nn.CrossEntropyLoss()

            def construct(self, x, label):
                return self.entropy(self.net(x), label)

        class HeadLoss(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.entropy = nn.CrossEntropyLoss()

            def construct(self, x, label):
                return self.entropy(self.net(x), label)  # <- MS102

        net = Net()
        whole = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params()))
        head = nn.TrainOneStepCell(HeadLoss(net), nn.SGD(net.head.trainable_params()))
        """,
    )
    VALID = (
        # Frozen in runs other than those that train: the branch not taken, or left before.
        """
        import sys

        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, teacher, student):
                super().__init__()
                self.teacher = teacher
                self.student = student
                self.distance = nn.MSELoss()

            def construct(self, image):
                return self.distance(self.student(image), self.teacher(image))

        def main(mode, measure):
            teacher, student = nn.Dense(8, 8), nn.Dense(8, 8)
            if mode == "deploy":
                for parameter in teacher.get_parameters():
                    parameter.requires_grad = False
            loss = Loss(teacher, student)
            if measure:
                for parameter in teacher.get_parameters():
                    parameter.requires_grad = False
                return loss
            if mode != "deploy":
                step = nn.TrainOneStepCell(loss, nn.Adam(loss.trainable_params()))

        main(sys.argv[1], len(sys.argv) > 2)
        """,
        # Weights that are listed bit by bit.
        """
        import mindspore as ms
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Dense(8, 8)
                self.side = nn.Dense(8, 8)
                self.neck = nn.Dense(8, 8)
                self.head = nn.Dense(8, 8)
                self.distance = nn.MSELoss()

            def construct(self, image):
                return self.distance(self.head(image), self.trunk(image) + self.side(image) + self.neck(image))

        loss = Loss()
        weights = list(loss.head.trainable_params())
        weights.extend(loss.trunk.trainable_params())
        weights[len(weights):] = loss.side.trainable_params()
        step = ms.value_and_grad(loss, None, [*weights, *loss.neck.trainable_params()])
        """,
        # Frozen in part, in a comprehension.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, teacher, student):
                super().__init__()
                self.teacher = teacher
                [setattr(p, "requires_grad", False) for p in teacher.get_parameters() if "gamma" in p.name]
                self.student = student
                self.distance = nn.MSELoss()

            def construct(self, image):
                return self.distance(self.student(image), self.teacher(image))

        loss = Loss(nn.Dense(8, 8), nn.Dense(8, 8))
        step = nn.TrainOneStepCell(loss, nn.Adam(loss.trainable_params()))
        """,
        # No script trains the generator; its blocks are kept by a name made up in a loop, and each is given the picture
        # that the one before it has made.
        """
        from mindspore import nn, ops

        class Block(nn.Cell):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(8, 3, 3)
                self.blur = nn.Conv2d(3, 3, 5)
                for parameter in self.blur.get_parameters():
                    parameter.requires_grad = False

            def construct(self, x, picture):
                return x, self.conv(x) + self.blur(picture)

        class Generator(nn.Cell):
            def __init__(self, depth):
                super().__init__()
                self.depth = depth
                for number in range(depth):
                    block = Block()
                    setattr(self, f"block{number}", block)

            def construct(self, x, picture):
                for number in range(self.depth):
                    x, picture = getattr(self, f"block{number}")(x, picture)
                return picture
        """,
        # A frozen network on a prediction, a frozen discriminator on the generator's output, a frozen blur: the gradient
        # must pass.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, generator, critic, vgg):
                super().__init__()
                self.generator = generator
                self.critic = critic
                self.vgg = vgg
                self.blur = nn.Conv2d(3, 3, 5)
                for net in (self.vgg, self.blur, self.critic):
                    for parameter in net.get_parameters():
                        parameter.requires_grad = False

            def construct(self, low):
                made = self.generator(low)
                return self.vgg(made).mean() - self.critic(made).mean() + self.blur(made).sum()

        def main():
            generator, critic, vgg = nn.Conv2d(3, 3, 3), nn.Conv2d(3, 1, 3), nn.Conv2d(3, 8, 3)
            nn.TrainOneStepCell(Loss(generator, critic, vgg), nn.Adam(generator.trainable_params()))

        main()
        """,
        # Stopped at the call, a line later, on the way into the loss, or by a word of another library.
        """
        from mindspore import nn, ops

        class Loss(nn.Cell):
            def __init__(self, student, teacher):
                super().__init__()
                self.student = student
                self.teacher = teacher
                for parameter in self.teacher.get_parameters():
                    parameter.requires_grad = False
                self.distance = nn.MSELoss()

            def construct(self, x):
                mine = self.student(x)
                first = ops.stop_gradient(self.teacher(x))
                second = self.teacher(x + 1)
                second = ops.stop_gradient(second)
                third = self.teacher(x + 2)
                fourth = self.teacher(x + 3)
                total = self.distance(mine, first) + self.distance(mine, second)
                total += self.distance(mine, ops.stop_gradient(third))
                return total + self.distance(mine, fourth.detach())

        student, teacher = nn.Dense(4, 4), nn.Dense(4, 4)
        loss = Loss(student, teacher)
        step = nn.TrainOneStepCell(loss, nn.SGD(student.trainable_params()))
        """,
        # Inference only.
        """
        from mindspore import nn

        class Describe(nn.Cell):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Dense(8, 8)
                for parameter in self.encoder.get_parameters():
                    parameter.requires_grad = False
                self.norm = nn.L1Loss()

            def construct(self, image, other):
                return self.norm(self.encoder(image), self.encoder(other))

        print(Describe()(None, None))
        """,
        # Labels that are called targets, and teacher's features that come with the batch.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.entropy = nn.CrossEntropyLoss()
                self.distance = nn.MSELoss()

            def construct(self, image, target, teacher_features):
                logits, features = self.net(image)
                return self.entropy(logits, target) + self.distance(features, teacher_features)

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Dense(8, 8)
                self.head = nn.Dense(8, 2)

            def construct(self, x):
                features = self.trunk(x)
                return self.head(features), features

        net = Net()
        step = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params()))
        """,
        # Frozen in part: what is left is trained. The hard labels of a teacher pass no gradient.
        """
        import mindspore as ms
        from mindspore import nn

        trunk, head, teacher = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 4)), nn.Dense(4, 2), nn.Dense(4, 2)
        for parameter in trunk.trainable_params():
            if parameter.name.startswith("0."):
                parameter.requires_grad = False
        for parameter in teacher.get_parameters():
            parameter.requires_grad = False
        entropy = nn.CrossEntropyLoss()

        def forward(x):
            label = teacher(x).argmax(1)
            return entropy(head(trunk(x)), label)

        weights = trunk.trainable_params() + head.trainable_params()
        step = ms.value_and_grad(forward, None, weights)
        """,
        # Groups of weights picked cell by cell, and a layer made in the forward pass: nothing was meant to stay fixed.
        """
        from mindspore import nn

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.stem = nn.Conv2d(3, 8, 3)
                self.norm = nn.BatchNorm2d(8)
                self.head = nn.Conv2d(8, 1, 3)

            def groups(self):
                plain, rest = [], []
                for _, cell in self.cells_and_names():
                    if isinstance(cell, nn.Conv2d):
                        plain.append(list(cell.get_parameters())[0])
                    elif isinstance(cell, nn.BatchNorm2d):
                        rest.extend(cell.trainable_params())
                return [{"params": plain}, {"params": rest, "weight_decay": 0.0}]

            def construct(self, x):
                same = nn.Conv2d(3, 3, 1)
                return self.head(self.norm(self.stem(same(x)))).mean()

        net = Net()
        step = nn.TrainOneStepCell(net, nn.SGD(net.groups()))
        """,
        # set_grad(False) freezes nothing: MS103's business.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, student, teacher):
                super().__init__()
                self.student = student
                self.teacher = teacher
                self.teacher.set_grad(False)
                self.distance = nn.MSELoss()

            def construct(self, x):
                return self.distance(self.student(x), self.teacher(x))

        loss = Loss(nn.Dense(4, 4), nn.Dense(4, 4))
        step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        training = training_of(module.program, module.source.path)
        for item in training.features(module.source.path):
            start, end = span(module, item.place)
            yield self.finding(
                module,
                start,
                end,
                _message(module, item, start, end),
                severity=Severity.WARNING if item.trained else Severity.INFO,
                related=(_reason(module, item),),
                subject=item,
            )


def _message(module: Module, item: LossInput, start: Position, end: Position) -> str:
    network = f"`{item.feature.network}`"
    call = _short(module.text(start, end))
    reason = item.feature.reason
    where = reason.place.seen_from(module.source.path)
    if reason.frozen:
        test = condition_of(module.program, reason.place.path, reason.place.row) if reason.conditional else None
        untrained = (
            f"{network} is frozen ({where})" if test is None else f"{network} is frozen where `{test}` holds ({where})"
        )
    else:
        untrained = f"no parameter of {network} is among the weights of this step ({where})"
    if item.shared:
        return (
            f"{untrained} and reads only the batch inside `{call}`, which runs it together with parts that are trained; "
            "let the call return the features, stop them, then run the trained parts"
        )
    if item.trained:
        untrained += ", yet its parameters are among the weights of the step"
    returns = "" if call.startswith(item.feature.network) else f"`{call}` returns its output; "
    return (
        f"{untrained} and its input here depends on no trained parameter; {returns}"
        f"the output reaches the loss without ops.stop_gradient"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _reason(module: Module, item: LossInput) -> Related:
    reason = item.feature.reason
    return related(module, reason.place, "frozen here" if reason.frozen else "what the step trains is chosen here")
