"""All codemods there are: ours from a table, those of others by the entry-point group ``mslint.codemods``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from codemods.base import Codemod
from mslint.console import UsageError, nearest, warning
from mslint.language import translated
from mslint.plugins import third_party


@dataclass(frozen=True)
class BuiltIn:
    """A codemod of ours that is imported only once there is something to rewrite; calling it makes the codemod."""

    name: str
    target: str
    rules: tuple[str, ...]

    def load(self) -> type[Codemod]:
        """Import the codemod's class."""
        module, _, name = self.target.partition(":")
        loaded: type[Codemod] = getattr(import_module(module), name)
        return loaded

    def __call__(self) -> Codemod:
        return self.load()()


AnyCodemod = BuiltIn | type[Codemod]

BUILT_IN = (
    BuiltIn("drop-suppression", "codemods.drop_suppression:DropSuppression", ("MS001",)),
    BuiltIn("freeze-parameters", "codemods.freeze_parameters:FreezeParameters", ("MS103",)),
    BuiltIn("functional-grad", "codemods.functional_grad:FunctionalGrad", ("MS101",)),
    BuiltIn("masked-fill", "codemods.masked_fill:MaskedFill", ("MS204",)),
    BuiltIn("merge-slices", "codemods.merge_slices:MergeSlices", ("MS203",)),
    BuiltIn("rank-seed", "codemods.rank_seed:RankSeed", ("MS302", "MS303")),
    BuiltIn("shard-dataset", "codemods.shard_dataset:ShardDataset", ("MS301",)),
    BuiltIn("stable-loss", "codemods.stable_loss:StableLoss", ("MS201", "MS202")),
    BuiltIn("stop-gradient", "codemods.stop_gradient:StopGradient", ("MS102",)),
    BuiltIn("vectorize-rows", "codemods.vectorize_rows:VectorizeRows", ("MS203",)),
)


@cache
def all_codemods() -> tuple[AnyCodemod, ...]:
    """Return every codemod, by name."""
    found: dict[str, AnyCodemod] = {codemod.name: codemod for codemod in BUILT_IN}
    targets = {codemod.target for codemod in BUILT_IN}
    for codemod in third_party("mslint.codemods", Codemod, ("name", "summary", "applicability", "rules"), targets):
        if codemod.name in found:
            warning(f"codemod {codemod.name} of plugin {codemod.__module__} is left out: the name is taken")
        else:
            found[codemod.name] = codemod
    return tuple(found[name] for name in sorted(found))


def named(names: list[str]) -> tuple[AnyCodemod, ...]:
    """Return the codemods called ``names``, all if there are none."""
    known = {codemod.name: codemod for codemod in all_codemods()}
    for name in names:
        if name not in known:
            raise UsageError(translated("unknown codemod {name!r}{near}", name=name, near=nearest(name, known)))
    return tuple(known[name] for name in dict.fromkeys(names)) if names else tuple(known.values())


def load(codemod: AnyCodemod) -> type[Codemod]:
    """Return the class of ``codemod``."""
    return codemod.load() if isinstance(codemod, BuiltIn) else codemod
