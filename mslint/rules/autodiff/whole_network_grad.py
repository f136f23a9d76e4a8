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
    """x"""

    code = "MS101"
    name = "whole-network-grad"
    severity = Severity.WARNING
    summary = "GradOperation differentiates a network by its weights, beside a forward pass of its own"
    codemod = "functional-grad"
    triggers = (b"GradOperation", b"TrainOneStep", b"self.grad")

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
        return Finding(
            self.code,
            self.name,
            self.severity,
            self._message(module, operator),
            module.source.filename,
            module.start(node),
            module.end(node),
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
