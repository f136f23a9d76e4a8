"""MS103."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mslint.findings import Finding, Severity
from mslint.program.training import VainFreeze, training_of
from mslint.rules.base import Rule
from mslint.rules.places import related, span
from mslint.semantics.module import Module

_SWITCHES = re.compile(r"\b(set_grad|set_train|train)\([^)]*False|\.eval\(\)")


class FreezeThatDoesNot(Rule):
    """``set_grad(False)`` or ``set_train(False)`` as the only freeze of a network that the optimizer trains.

    What it does
        Follows each training script and reports ``net.set_grad(False)`` on a network whose parameters are among the weights
        of a training step that runs it beside other trained networks, and ``net.set_train(False)`` on such a network if it
        got its weights from a checkpoint in the place where it is built. Networks that are left out of the weights, or
        frozen by ``requires_grad = False``, are left alone, and so is evaluation.

    Why it matters
        Both switches leave ``trainable_params()`` as it was: ``set_grad`` tells PyNative mode whether to record the cell as
        the top of a gradient, ``set_train`` turns Dropout and BatchNorm. The network that is meant to stay fixed gets
        gradients, weight decay and updates; a loss computed with it moves its own yardstick.

    Evidence
        Measured on MindSpore 2.10.0, CPU. fixtures/freeze-that-does-not/bad.py prints that 30 steps moved the encoder, for
        which ``set_grad(False)`` had been called, by up to 0.21, and brought the loss to 0.0005: both networks agreed on
        features that are easy to match. In fixed.py the encoder moved by 0.0 and the loss stayed at 0.042. ``mslint verify
        fixtures/freeze-that-does-not/bad.py --against fixtures/freeze-that-does-not/fixed.py --mode graph`` (and
        ``pynative``): 25 backward nodes become 10 in graph mode, the gradients of the encoder's four parameters are gone, and
        a PyNative step makes 35 operator calls instead of 49.

    Example
        .. code-block:: python

            self.teacher.set_grad(False)
            ...
            optimizer = nn.Adam(self.trainable_params())

    Use instead
        .. code-block:: python

            for parameter in self.teacher.get_parameters():
                parameter.requires_grad = False

    Fix safety
        Unsafe: freezing for real changes what is trained, which is the point. Left to you where another step trains the
        network: there the optimizer of this step gets the weights of the other networks alone.
        ``mslint codemod freeze-parameters`` has the details.

    References
        https://www.mindspore.cn/docs/en/master/api_python/nn/mindspore.nn.Cell.html
    """

    code = "MS103"
    name = "freeze-that-does-not"
    severity = Severity.ERROR
    summary = "set_grad(False) or set_train(False) is the only freeze of a network that is trained nevertheless"
    triggers = (b"set_grad(", b"set_train(", b".train(False", b".eval()")
    codemod = "freeze-parameters"
    INVALID = (
        """
        from mindspore import nn

        class Distillation(nn.Cell):
            def __init__(self, student, teacher):
                super().__init__()
                self.student = student
                self.teacher = teacher
                self.teacher.set_grad(False)  # <- MS103
                self.distance = nn.MSELoss()

            def construct(self, x):
                return self.distance(self.student(x), self.teacher(x))

        loss = Distillation(nn.Dense(4, 4), nn.Dense(4, 4))
        step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
        """,
        # Pretrained and put in evaluation mode where it is built; the functional form.
        """
        import mindspore as ms
        from mindspore import nn

        class Perceptual(nn.Cell):
            def __init__(self):
                super().__init__()
                self.painter = nn.Conv2d(3, 3, 3)
                self.vgg = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.ReLU())
                ms.load_param_into_net(self.vgg, ms.load_checkpoint("vgg.ckpt"))
                self.vgg.set_train(False)  # <- MS103

            def construct(self, image, wanted):
                return (self.vgg(self.painter(image)) - self.vgg(wanted)).abs().mean()

        def main():
            net = Perceptual()
            optimizer = nn.Adam(net.trainable_params())
            ms.value_and_grad(net, None, optimizer.parameters)

        main()
        """,
    )
    VALID = (
        # Frozen for real, too; or left out of the optimizer.
        """
        from mindspore import nn

        class Distillation(nn.Cell):
            def __init__(self, student, teacher, critic):
                super().__init__()
                self.student = student
                self.teacher = teacher
                self.critic = critic
                self.teacher.set_grad(False)
                self.critic.set_grad(False)
                for parameter in self.teacher.trainable_params():
                    parameter.requires_grad = False
                self.distance = nn.MSELoss()

            def construct(self, x):
                return self.distance(self.student(x), self.teacher(x)) - self.critic(self.student(x)).mean()

        loss = Distillation(nn.Dense(4, 4), nn.Dense(4, 4), nn.Dense(4, 1))
        loss_step = nn.TrainOneStepCell(loss, nn.SGD(loss.student.trainable_params()))
        """,
        # Its output is stopped: no gradient reaches it.
        """
        from mindspore import nn, ops

        class Pose(nn.Cell):
            def __init__(self, trunk, head):
                super().__init__()
                self.trunk = trunk
                self.trunk.set_grad(False)
                self.head = head

            def construct(self, image):
                features = self.trunk(image)
                features = ops.stop_gradient(features)
                return self.head(features).mean()

        loss = Pose(nn.Dense(4, 4), nn.Dense(4, 1))
        step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
        """,
        # Evaluation, switched back.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, net, head):
                super().__init__()
                self.net = net
                self.head = head
                self.entropy = nn.CrossEntropyLoss()

            def construct(self, x, label):
                return self.entropy(self.head(self.net(x)), label)

        def evaluate(net, batches):
            net.set_train(False)
            for x in batches:
                print(net(x))
            net.set_train(True)

        net = nn.Dense(4, 4)
        loss = Loss(net, nn.Dense(4, 2))
        step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
        evaluate(net, [])
        """,
        # A cell for evaluation, with networks that got their weights from a checkpoint.
        """
        import mindspore as ms
        from mindspore import nn

        class Evaluation(nn.Cell):
            def __init__(self, trunk, head):
                super().__init__(auto_prefix=False)
                self.trunk = trunk
                self.head = head
                self.trunk.set_train(False)

            def construct(self, x):
                return self.head(self.trunk(x)).argmax(-1)

        class Loss(nn.Cell):
            def __init__(self, trunk, head):
                super().__init__()
                self.trunk = trunk
                self.head = head

            def construct(self, x):
                return self.head(self.trunk(x)).mean()

        trunk, head = nn.Dense(4, 4), nn.Dense(4, 2)
        ms.load_param_into_net(trunk, ms.load_checkpoint("trunk.ckpt"))
        loss = Loss(trunk, head)
        step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params()))
        evaluation = Evaluation(trunk, head)
        """,
        # Steps that take turns: each switches the other's network off and leaves it out of its weights.
        """
        from mindspore import nn

        class Loss(nn.Cell):
            def __init__(self, trunk, head):
                super().__init__()
                self.trunk = trunk
                self.head = head

            def construct(self, x):
                return self.head(self.trunk(x)).mean()

        trunk, head = nn.Dense(4, 4), nn.Dense(4, 2)
        first, second = Loss(trunk, head), Loss(trunk, head)
        both = nn.SGD([*trunk.trainable_params(), *head.trainable_params()])
        one = nn.TrainOneStepCell(first, both)
        trunk.set_grad(False)
        two = nn.TrainOneStepCell(second, nn.SGD(head.trainable_params()))
        """,
        # Nothing else is trained: a network put in evaluation mode as a whole.
        """
        from mindspore import nn

        net = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 1))
        net.set_grad(False)
        step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()))
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        path = module.source.path
        if not module.program.says(path, _SWITCHES):
            return
        seen = set()
        for item in sorted(
            training_of(module.program, path).vain, key=lambda item: (item.step, item.weights, item.hush.place)
        ):
            hush = item.hush
            if hush.place.path != path or hush.place in seen or not _meant_to_freeze(item):
                continue
            seen.add(hush.place)
            start, end = span(module, hush.place)
            yield self.finding(
                module,
                start,
                end,
                _message(module, item, _receiver(module.text(start, end))),
                related=(related(module, item.step, "this step trains it"),),
                subject=item,
            )


def _meant_to_freeze(item: VainFreeze) -> bool:
    """Tell a freeze from switching Dropout and BatchNorm: only pretrained parts are put in evaluation mode for good."""
    return item.hush.method == "set_grad" or item.pretrained


def _receiver(call: str) -> str:
    return call[: call.rindex("(")].rpartition(".")[0]


def _message(module: Module, item: VainFreeze, network: str) -> str:
    step = item.step
    where = step.seen_from(module.source.path)
    trained = "and is trained, unless the test that picks them leaves it out" if item.picked else "and is trained"
    return (
        f"{item.hush.method}(False) freezes nothing: `{network}` stays among the weights of the training step ({where}) "
        f"{trained}; set requires_grad = False on its parameters before the optimizer is built"
    )
