"""Does it show when a forward pass runs twice? Only with what keeps statistics, draws random numbers or writes."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mslint.semantics.module import Module

if TYPE_CHECKING:
    from mslint.program.project import Program

_STATEFUL = re.compile(
    r"^mindspore\.(nn|ops|mint|numpy)\."
    r"(.*Dropout.*|.*dropout.*|.*BatchNorm.*|InstanceNorm.*|batch_norm|instance_norm"
    r"|rand|randn|randint|randperm|normal|uniform|multinomial.*|Multinomial|bernoulli|Bernoulli|poisson|Poisson|gamma|Gamma"
    r"|laplace|gumbel_softmax|rrelu|RReLU|standard_(normal|laplace)|Standard(Normal|Laplace)|Uniform(Int|Real)"
    r"|random_.*|Random.*|log_uniform_.*|LogUniform.*"
    r"|assign|assign_add|assign_sub|Assign.*|scatter_.*|Scatter.*)$"
)
_DRAWN_IN_PYTHON = re.compile(r"^(numpy\.random|random)\.")
# Packages that define no MindSpore Cell: their code cannot be part of a network.
_WITHOUT_CELLS = frozenset(
    """
    mindspore numpy scipy matplotlib PIL cv2 tqdm yaml pandas sklearn easydict skimage h5py imageio psutil requests absl
    moxing pycocotools tensorboardX seaborn prettytable sympy numba networkx lmdb nltk jieba sentencepiece setuptools
    termcolor tabulate addict ml_collections librosa soundfile torch tensorflow transformers pytest docx hdf5storage
    medpy nibabel SimpleITK rdkit Bio download wget gym
    """.split()  # noqa: SIM905
)


def _written_or_drawn(program: Program, file: Path) -> str | None:
    """Return what Cells of ``file`` write or draw in their methods by other means than MindSpore's operators."""
    facts = program.facts(file)
    for use in facts.in_cells:
        if _DRAWN_IN_PYTHON.match(program.dotted_in(file, use) or ""):
            return f"{use} in {file.name}"
    for cell in facts.classes.values():
        for attribute in sorted(cell.updated & cell.built.keys()):
            if program.dotted_in(file, cell.built[attribute].callee) == "mindspore.Parameter":
                return f"self.{attribute}, a Parameter that {cell.name} in {file.name} writes"
    for holder in sorted(facts.chosen_by_name):
        if (program.dotted_in(file, holder) or "").startswith("mindspore."):
            return f"a layer that {file.name} chooses by name from {holder}"
    return None


def _counted(program: Program, file: Path) -> str | None:
    """Return an attribute that a forward pass computes from its own last value: ``self.calls += 1``."""
    if not any("construct" in cell.methods and cell.updated for cell in program.facts(file).classes.values()):
        return None
    tree = program.tree(file)
    for cell in ast.walk(tree) if tree is not None else ():
        if isinstance(cell, ast.ClassDef):
            for item in _forward(cell):
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                own = {ast.unparse(target) for target in targets if _is_of_self(target)}
                read = isinstance(item, ast.AugAssign) or own & {ast.unparse(node) for node in ast.walk(item.value)}
                if own and read:
                    return f"{min(own)} of {cell.name} in {file.name}"
    return None


def _forward(cell: ast.ClassDef) -> Iterator[ast.Assign | ast.AugAssign]:
    """Yield the assignments in ``construct`` and in the methods that it calls."""
    methods = {item.name: item for item in cell.body if isinstance(item, ast.FunctionDef)}
    queue, seen = ["construct"], set()
    while queue:
        name = queue.pop()
        if name in seen or name not in methods:
            continue
        seen.add(name)
        for item in ast.walk(methods[name]):
            if isinstance(item, (ast.Assign, ast.AugAssign)):
                yield item
            elif isinstance(item, ast.Attribute) and _is_of_self(item):
                queue.append(item.attr)


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def stateful_part(module: Module) -> str | None:
    """Return what in the program would show a second forward pass, in words, or None if nothing can.

    Every file is read that can run together with ``module``. A package outside the project that may hold Cells counts,
    since it is not read.
    """
    program, path = module.program, module.source.path.absolute()
    for file in sorted(program.neighbourhood(path)):
        for use in program.may_mean(file, _STATEFUL):
            name = program.dotted_in(file, use)
            if name and _STATEFUL.match(name):
                return f"{use} in {file.name}"
        found = _written_or_drawn(program, file) or _counted(program, file)
        if found:
            return found
    for file in sorted(program.neighbourhood(path)):
        for package in program.foreign_imports(file):
            if package not in _WITHOUT_CELLS and package not in sys.stdlib_module_names:
                return f"perhaps in {package}, which mslint does not read"
    return None
