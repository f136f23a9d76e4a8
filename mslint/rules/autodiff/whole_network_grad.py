"""MS101."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.rules.base import Rule
from mslint.semantics.gradients import (
    TRAIN_STEPS,
    Application,
    GradientOperator,
    find_forward,
    gradient_operators,
)
from mslint.semantics.module import Module


class WholeNetworkGrad(Rule):
    """A GradOperation differentiates a network by its weights.

    What it does
        Reports each ``GradOperation(get_by_list=True)`` that is applied to a network and its weights, wherever it is kept
        (an attribute, a variable, nowhere), whatever it is imported as and whether a ``functools.partial`` builds it, and
        the use of the ``self.grad`` that ``nn.TrainOneStepCell`` and ``nn.TrainOneStepWithLossScaleCell`` hand down.
        Derivatives with respect to inputs (physics losses, attacks, gradient penalties) are left alone: there
        GradOperation says what is meant.

    Why it matters
        A step written this way names the network twice: once for the loss, once for the gradients. In PyNative mode both
        run unless ``set_grad()`` was called on the network, and then BatchNorm moves its statistics twice a step and
        Dropout draws one mask for the loss and another for the gradients. ``mindspore.value_and_grad`` returns both from
        one forward pass, and says so where the reader looks.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``mslint verify SCRIPT --codemod functional-grad``. Without ``set_grad()``
        (fixtures/functional_grad/batchnorm_dropout_no_set_grad.py, ``--unsafe-fixes``) the rewrite brings a PyNative step
        from 2 forward passes and 56 operator calls to 1 and 40; the moving variance of BatchNorm, moved twice by the old
        step, differs by up to 0.47 of its largest value after one step, while loss and gradients are equal with Dropout off.
        With ``set_grad()`` and in graph mode, where equal forward passes are merged, the rewrite changes neither the
        number of forward passes nor a single bit (fixtures/functional_grad/loss_scale_reducer.py: graph 18 forward and 25
        backward nodes before and after, one forward run a step before and after in PyNative mode): there it makes the step
        easier to read, not faster.

    Example
        .. code-block:: python

            self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
            ...
            loss = self.network(*inputs)
            sens = ops.fill(loss.dtype, loss.shape, self.sens)
            grads = self.grad(self.network, self.weights)(*inputs, sens)

    Use instead
        .. code-block:: python

            def scaled_loss(*inputs):
                loss = self.network(*inputs)
                return loss * self.sens, loss

            self.value_and_grad = ms.value_and_grad(scaled_loss, None, self.weights, has_aux=True)
            ...
            (_, loss), grads = self.value_and_grad(*inputs)

    Fix safety
        ``functional-grad`` is safe where the compiler or ``set_grad()`` already makes two forward passes one, or where no
        layer could show the second; unsafe where the old code visibly runs two; manual where a use of the operator is out
        of sight or must be rewritten together with something else. ``mslint codemod functional-grad`` has the details.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore/mindspore.value_and_grad.html,
        https://www.mindspore.cn/docs/en/master/api_python/ops/mindspore.ops.GradOperation.html
    """

    code = "MS101"
    name = "whole-network-grad"
    severity = Severity.WARNING
    summary = "GradOperation differentiates a network by its weights, beside a forward pass of its own"
    codemod = "functional-grad"
    triggers = (b"GradOperation", b"TrainOneStep", b"self.grad")
    screen = "mslint.rules.autodiff.gradient_screen:takes_gradient"
    INVALID = (
        """
        from mindspore import nn, ops

        class Step(nn.Cell):
            def __init__(self, network, optimizer):
                super().__init__(auto_prefix=False)
                self.network = network
                self.network.set_grad()
                self.optimizer = optimizer
                self.weights = optimizer.parameters
                self.grad = ops.GradOperation(get_by_list=True)  # <- MS101

            def construct(self, x, y):
                loss = self.network(x, y)
                grads = self.grad(self.network, self.weights)(x, y)
                return ops.depend(loss, self.optimizer(grads))
        """,
        # A submodule under another name, options by position, sensitivity, both kinds of gradients of which one is used.
        """
        import mindspore.nn as nn
        import mindspore.ops.composite as comp

        class Step(nn.Cell):
            def __init__(self, network, optimizer):
                super().__init__()
                self.network = network
                self.network.set_grad()
                self.weights = optimizer.parameters
                self.optimizer = optimizer
                self.get_gradients = comp.GradOperation(True, True)  # <- MS101

            def construct(self, *inputs):
                loss = self.network(*inputs)
                _, grads = self.get_gradients(self.network, self.weights)(*inputs)
                self.optimizer(grads)
                return loss
        """,
        # The operator that nn.TrainOneStepCell hands down: the word GradOperation does not occur.
        """
        import mindspore as ms
        from mindspore import nn

        class ClippedStep(nn.TrainOneStepCell):
            def __init__(self, network, optimizer, sens=1.0):
                super().__init__(network, optimizer, sens)
                self.clip = 1.0

            def construct(self, x):
                loss = self.network(x)
                sens = ms.ops.ones_like(loss) * self.sens
                grads = self.grad(self.network, self.weights)(x, sens)  # <- MS101
                grads = ms.ops.clip_by_norm(grads, self.clip)
                return ms.ops.depend(loss, self.optimizer(grads))
        """,
        # A gradient function in a variable, no class at all.
        """
        from mindspore import nn, ParameterTuple
        from mindspore.ops import GradOperation

        def fit(network, batches, optimizer):
            network.set_grad()
            weights = ParameterTuple(network.trainable_params())
            gradient = GradOperation(get_by_list=True)(network, weights)  # <- MS101
            for x, y in batches:
                loss = network(x, y)
                grads = gradient(x, y)
                optimizer(grads)
                print(loss)
        """,
        # Built by a functools.partial.
        """
        from functools import partial
        from mindspore import nn, ops

        by_list = partial(ops.GradOperation, get_by_list=True)

        class Step(nn.Cell):
            def __init__(self, network, weights):
                super().__init__()
                self.network = network
                self.weights = weights
                self.grad = by_list(sens_param=True)  # <- MS101

            def construct(self, x, sens):
                return self.grad(self.network, self.weights)(x, sens)
        """,
        # Handed on: reported, left to a person.
        """
        from mindspore import ops

        def train(network, weights, batches, update):
            update(ops.GradOperation(get_by_list=True), network, weights, batches)  # <- MS101
        """,
    )
    VALID = (
        # Derivatives with respect to inputs: a physics loss, an attack.
        """
        from mindspore import nn, ops

        class Burgers(nn.Cell):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.first = ops.GradOperation()
                self.all = ops.GradOperation(get_all=True, sens_param=True)

            def construct(self, x, t, ones):
                u_x, u_t = self.all(self.net)(x, t, ones)
                return u_t + self.net(x, t) * u_x + self.first(self.net)(x, t)
        """,
        # Built, never applied; only imported; in a comment.
        """
        from mindspore import ops
        from mindspore.ops import GradOperation

        unused = ops.GradOperation(get_by_list=True)
        # grads = GradOperation(get_by_list=True)(net, weights)(x)
        """,
        # Functional already.
        """
        import mindspore as ms
        from mindspore import nn

        class Step(nn.TrainOneStepCell):
            def __init__(self, network, optimizer):
                super().__init__(network, optimizer)
                self.grad = ms.value_and_grad(network, None, self.weights)

            def construct(self, x):
                loss, grads = self.grad(x)
                return loss, self.optimizer(grads)
        """,
        # The same word of another library.
        """
        from mindspore import nn
        from mylib import GradOperation

        def train(net, weights, x):
            return GradOperation(get_by_list=True)(net, weights)(x)
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for operator in gradient_operators(module):
            if operator.trains:
                yield from self._findings(module, operator)

    def _findings(self, module: Module, operator: GradientOperator) -> Iterator[Finding]:
        if operator.construction is not None:
            yield self._finding(module, operator, operator.construction)
            return
        for application in operator.applications:
            yield self._finding(module, operator, application.node)
        if not operator.applications:
            yield self._finding(module, operator, operator.escapes[0])

    def _finding(self, module: Module, operator: GradientOperator, node: cst.CSTNode) -> Finding:
        related = tuple(self._related(module, operator, node))
        return self.finding(
            module,
            module.start(node),
            module.end(node),
            self._message(module, operator),
            related=related,
            subject=operator,
        )

    def _message(self, module: Module, operator: GradientOperator) -> str:
        if operator.construction is None:
            what = f"`self.{operator.attribute}`, a GradOperation inherited from {_class_name(operator.origin)},"
        else:
            what = "GradOperation"
        if not operator.applications:
            return f"{what} is handed on to be applied to a network and its weights elsewhere"
        application = operator.applications[0]
        network = module.code(application.network) if application.network else "a network"
        forward = _forward_row(module, operator, application)
        if forward is None:
            return f"{what} differentiates `{network}` by its weights; mindspore.grad says the same as a function"
        return (
            f"{what} differentiates `{network}` by its weights although row {forward} has just run it with the same "
            "arguments; value_and_grad gives loss and gradients from one forward pass"
        )

    def _related(self, module: Module, operator: GradientOperator, node: cst.CSTNode) -> Iterator[Related]:
        for application in operator.applications:
            if application.node is node:
                continue
            yield Related(
                module.source.filename,
                module.start(application.node),
                module.end(application.node),
                "applied to network and weights here",
            )


def _class_name(origin: str) -> str:
    return f"nn.{origin.rpartition('.')[2]}" if origin in TRAIN_STEPS else origin.rpartition(":")[2]


def _forward_row(module: Module, operator: GradientOperator, application: Application) -> int | None:
    for call in application.invocations:
        forward = find_forward(module, operator, application, call)
        if forward is not None:
            return module.start(forward.statement).row
    return None
