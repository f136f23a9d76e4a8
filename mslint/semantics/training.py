"""Which code is differentiated: what networks and losses run in training, and not data pipelines, metrics, evaluation."""

from __future__ import annotations

import libcst as cst

from mslint.program.calls import CallGraph, CallSite, Function
from mslint.semantics.cells import CellClass, is_self, self_name
from mslint.semantics.flow import lineage_here, owner_of
from mslint.semantics.inventory import inventories
from mslint.semantics.module import Module, find
from mslint.semantics.tensors import values_of

_GRADIENTS = frozenset(
    """
    value_and_grad GradOperation grad TrainOneStepCell TrainOneStepWithLossScaleCell build_train_network vjp jacrev jacfwd
    """.split()  # noqa: SIM905
)
_OPERATORS = ("mindspore.ops.", "mindspore.nn.", "mindspore.numpy.", "mindspore.mint.")
_ARRAYS = ("numpy.", "cv2.", "scipy.", "PIL.")
_NOT_NETWORKS = ("Metric", "Callback", "LearningRateSchedule", "Optimizer")


def is_differentiated(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether ``node`` is part of a network or loss that training runs, as far as the program shows.

    In a Cell that is what ``construct`` runs, branches for inference apart; outside of one, functions that a ``construct`` or
    a differentiated function calls, and functions that nothing in sight calls, not even a script.
    """
    function = _outermost_function(module, node)
    if function is None or _is_inference_branch(module, node):
        return False
    return module.remember((is_differentiated, function), lambda: _runs_in_training(module, function))


def _outermost_function(module: Module, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the method, or the function at module level, that holds ``node``."""
    found = None
    for item in module.ancestors(node):
        if isinstance(item, cst.FunctionDef):
            found = item
        elif isinstance(item, cst.ClassDef):
            break
    return found


def _is_inference_branch(module: Module, node: cst.CSTNode) -> bool:
    below: cst.CSTNode = node
    for item in module.ancestors(node):
        if isinstance(item, cst.If):
            flag = _training_flag(item.test)
            in_body = below is item.body
            if flag is not None and in_body is not flag and below is not item.test:
                return True
        below = item
    return False


def _training_flag(test: cst.BaseExpression) -> bool | None:
    """Return whether ``test`` asks for training (True), for inference (False) or for something else (None)."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        flag = _training_flag(test.expression)
        return None if flag is None else not flag
    if isinstance(test, cst.Attribute) and test.attr.value == "training":
        return True
    return None


def _runs_in_training(module: Module, function: cst.FunctionDef) -> bool:
    owner = owner_of(module, function)
    if owner is None:
        return module.scope(function) is module.tree and _is_called_in_training(
            module, function, function.name.value, unless_called=True
        )
    if any(base.rpartition(".")[2] in _NOT_NETWORKS for base in owner.lineage):
        return False
    name = function.name.value
    is_cell = any(base.startswith("mindspore.nn.") for base in owner.lineage)
    run = _run_by_construct(module, owner)
    if is_cell and run is not None:
        return name in run and not _only_evaluated(module, owner.name)
    # A plain class, or a Cell whose `construct` stands in another file: the calls of the program tell. Methods of a plain
    # class are mostly called on objects that cannot be followed; only one that is itself called like a loss is taken for one.
    return name != "__init__" and _is_called_in_training(
        module, function, f"{owner.name}.{name}", unless_called=is_cell or (run is not None and name in run)
    )


def _run_by_construct(module: Module, owner: CellClass) -> set[str] | None:
    """Return the methods that ``construct`` runs; None if the class has no ``construct`` in this file."""
    methods: dict[str, cst.FunctionDef] = {}
    for cell in lineage_here(module, owner):
        for name, method in cell.methods.items():
            methods.setdefault(name, method)
    queue = [name for name in methods if name in ("construct", "__call__")]
    if not queue:
        return None
    if "__init__" in methods:
        # `self.loss = self.cosine_loss`: construct runs the method under the other name.
        queue += sorted(_mentioned(methods["__init__"], methods, called=False))
    found = set(queue)
    while queue:
        for name in _mentioned(methods[queue.pop()], methods, called=True):
            if name not in found:
                found.add(name)
                queue.append(name)
    return found - {"__init__"}


def _mentioned(method: cst.FunctionDef, methods: dict[str, cst.FunctionDef], *, called: bool) -> set[str]:
    """Return those of ``methods`` that ``method`` names on its instance; with ``called`` false, without calling them."""
    this = self_name(method)
    calls = {call.func for call in find(method.body, cst.Call)} if not called else set()
    return {
        node.attr.value
        for node in find(method.body, cst.Attribute)
        if node.attr.value in methods and node not in calls and is_self(node, this)
    }


def _is_called_in_training(module: Module, function: cst.FunctionDef, name: str, *, unless_called: bool) -> bool:
    """Tell whether a network or a differentiated function calls ``function``; ``unless_called`` answers if nothing does."""
    graph = module.program.call_graph(module.source.path.absolute())
    node = f"{module.source.path.absolute()}:{name}"
    callers = [other for other in graph.reaching(node) if not other.endswith(":")]
    values = values_of(module, function)
    run = [values.operator(call) or "" for call in inventories(module)[function].calls]
    operators = any(name.startswith(_OPERATORS) for name in run)
    if not operators and any(name.startswith(_ARRAYS) for name in run):
        return False
    if not callers:
        # What nothing calls, a user may: a loss of a library. What a script runs by itself is no part of a loss.
        calls = [call for call in graph.callers(node) if not call.function]
        scripts = {f"{call.path}:" for call in calls if not (_is_demonstration(call) and _returns_something(function))}
        trained = not scripts or any(_trains(graph.functions[script]) for script in scripts)
        return operators and unless_called and trained
    return any(_differentiates(graph, other) for other in callers)


def _is_demonstration(call: CallSite) -> bool:
    """Tell whether ``call`` only runs when its file is started by itself."""
    return any("__main__" in condition.test for condition in call.conditions)


def _returns_something(function: cst.FunctionDef) -> bool:
    return any(item.value is not None for item in find(function.body, cst.Return))


def _differentiates(graph: CallGraph, node: str) -> bool:
    """Tell whether ``node`` is a ``construct`` or makes a gradient function."""
    if node.endswith(".construct"):
        return True
    function = graph.functions[node]
    names = [call.callee for call in function.calls] + [name for name, _ in function.mentions]
    return any(name.rpartition(".")[2] in _GRADIENTS for name in names)


def _only_evaluated(module: Module, name: str) -> bool:
    """Tell whether scripts run the class ``name`` and none of them trains anything."""
    own = f"{module.source.path.absolute()}:"
    graph = module.program.call_graph(module.source.path.absolute())
    node = f"{own}{name}.construct"
    starts = {start for start in graph.reaching(node) if start.endswith(":") and start != own}
    training = graph.remember(_training_starts, lambda: _training_starts(graph))
    return bool(starts) and starts.isdisjoint(training)


def _training_starts(graph: CallGraph) -> frozenset[str]:
    """Return the code that sooner or later trains something."""
    return graph.leading_to(node for node, function in graph.functions.items() if _trains(function))


def _trains(function: Function) -> bool:
    names = [call.callee for call in function.calls] + [name for name, _ in function.mentions]
    if any(name.rpartition(".")[2] in _GRADIENTS or name.endswith(".train") for name in names):
        return True
    return any(
        call.callee.rpartition(".")[2] == "set_train" and call.arguments != ("False",) for call in function.calls
    )
