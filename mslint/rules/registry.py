"""All rules there are: ours from a table, those of others by the entry-point group ``mslint.rules``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mslint.console import warning
from mslint.findings import Finding, Severity
from mslint.plugins import third_party
from mslint.rules.base import Rule

if TYPE_CHECKING:
    from mslint.semantics.module import Module


@dataclass(frozen=True)
class BuiltIn:
    """A rule of ours that is imported only once a file might need it; calling it makes the rule, like calling a class.

    A rule's module brings libcst along, which costs more than checking a file where no rule can fire.
    """

    code: str
    name: str
    target: str
    triggers: tuple[bytes, ...]
    context: tuple[bytes, ...] = ()
    screen: str = ""

    def load(self) -> type[Rule]:
        """Import the rule's class."""
        module, _, name = self.target.partition(":")
        loaded: type[Rule] = getattr(import_module(module), name)
        return loaded

    def __call__(self) -> Rule:
        return self.load()()


@dataclass(frozen=True)
class Narrowed:
    """A rule of which only the findings of some severities are wanted: one rule may know some things and suspect others."""

    rule: BuiltIn | type[Rule]
    severities: frozenset[Severity]

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.rule.code

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def triggers(self) -> tuple[bytes, ...]:
        """The rule's triggers."""
        return self.rule.triggers

    @property
    def context(self) -> tuple[bytes, ...]:
        """The rule's context."""
        return self.rule.context

    @property
    def screen(self) -> str:
        """The rule's screen."""
        return self.rule.screen

    def load(self) -> type[Rule]:
        """Import the rule's class."""
        return load(self.rule)

    def __call__(self) -> Narrowed:
        return self

    def check(self, module: Module) -> Iterator[Finding]:
        """Yield the findings in ``module`` that are wanted."""
        return (finding for finding in self.rule().check(module) if finding.severity in self.severities)


AnyRule = BuiltIn | Narrowed | type[Rule]

# A small number is written in the file, or named there.
_EPSILON = (b"eps", b"EPS", b"Eps", b"0.00", b"** -", b"**-", *(b"e-%d" % digit for digit in range(10)))
# What a file computes with tensors of MindSpore, it computes by its name or in a Cell (954 other files of five public
# repositories have no finding of these rules).
_TENSORS = (b"mindspore", b"construct")

BUILT_IN = (
    BuiltIn(
        "MS001",
        "unused-suppression",
        "mslint.rules.engine.unused_suppression:UnusedSuppression",
        (b"noqa", b"NOQA", b"mslint"),
    ),
    BuiltIn(
        "MS101",
        "whole-network-grad",
        "mslint.rules.autodiff.whole_network_grad:WholeNetworkGrad",
        (b"GradOperation", b"TrainOneStep", b"self.grad"),
        screen="mslint.rules.autodiff.gradient_screen:takes_gradient",
    ),
    BuiltIn(
        "MS102",
        "unstopped-frozen-feature",
        "mslint.rules.autodiff.unstopped_frozen_feature:UnstoppedFrozenFeature",
        (b"def construct", b"value_and_grad", b"GradOperation", b"grad("),
    ),
    BuiltIn(
        "MS103",
        "freeze-that-does-not",
        "mslint.rules.autodiff.freeze_that_does_not:FreezeThatDoesNot",
        (b"set_grad(", b"set_train(", b".train(False", b".eval()"),
    ),
    BuiltIn(
        "MS201",
        "epsilon-add",
        "mslint.rules.loss.epsilon_add:EpsilonAdd",
        _EPSILON,
        _TENSORS,
        "mslint.rules.loss.epsilon_screen:adds_epsilon",
    ),
    BuiltIn(
        "MS202",
        "half-epsilon",
        "mslint.rules.loss.half_epsilon:HalfEpsilon",
        (b"e-0", b"e-1", b"e-8", b"e-9", b"eps", b"EPS", b"Eps", b"0.0000000", b"** -", b"**-"),
        _TENSORS,
        "mslint.rules.loss.epsilon_screen:guards_half",
    ),
    BuiltIn(
        "MS203",
        "fragmented-slicing",
        "mslint.rules.loss.fragmented_slicing:FragmentedSlicing",
        (b"range(", b"enumerate(", b"zip(", b"concat", b"Concat", b"cat(", b"[:", b"[...", b", :"),
        _TENSORS,
        "mslint.rules.loss.slicing_screen:has_fragments",
    ),
    BuiltIn(
        "MS204",
        "boolean-mask",
        "mslint.rules.loss.boolean_mask:BooleanMask",
        (b"[",),
        _TENSORS,
        "mslint.rules.loss.mask_screen:has_mask",
    ),
    BuiltIn(
        "MS301",
        "unsharded-dataset",
        "mslint.rules.data.unsharded_dataset:UnshardedDataset",
        (b"Dataset",),
        screen="mslint.rules.data.screens:names_dataset",
    ),
    BuiltIn(
        "MS302",
        "rank-blind-seed",
        "mslint.rules.data.rank_blind_seed:RankBlindSeed",
        (b"seed(",),
        screen="mslint.rules.data.screens:seeds",
    ),
    BuiltIn(
        "MS303",
        "rank-dependent-shuffle",
        "mslint.rules.data.rank_dependent_shuffle:RankDependentShuffle",
        (b"seed(",),
        screen="mslint.rules.data.screens:seeds_by_name",
    ),
    BuiltIn(
        "MS304",
        "sampler-with-shards",
        "mslint.rules.data.sampler_with_shards:SamplerWithShards",
        (b"num_shards",),
        screen="mslint.rules.data.screens:shares_sampled",
    ),
    BuiltIn(
        "MS305",
        "device-id-as-shard",
        "mslint.rules.data.device_id_as_shard:DeviceIdAsShard",
        (b"shard_id", b"DistributedSampler"),
    ),
)


@cache
def all_rules() -> tuple[AnyRule, ...]:
    """Return every rule, by code."""
    found: dict[str, AnyRule] = {rule.code: rule for rule in BUILT_IN}
    targets = {rule.target for rule in BUILT_IN}
    for rule in third_party("mslint.rules", Rule, ("code", "name", "severity", "summary", "triggers"), targets):
        if rule.code in found:
            warning(f"rule {rule.code} of plugin {rule.__module__} is left out: the code is taken")
        else:
            found[rule.code] = rule
    return tuple(found[code] for code in sorted(found))


def load(rule: AnyRule) -> type[Rule]:
    """Return the class of ``rule``."""
    return rule if isinstance(rule, type) else rule.load()


def is_ours(rule: AnyRule) -> bool:
    """Tell whether ``rule`` comes with mslint: of those of others it is not known what they look at."""
    return is_ours(rule.rule) if isinstance(rule, Narrowed) else isinstance(rule, BuiltIn)


def category(rule: AnyRule) -> str:
    """Return the name of the folder that ``rule`` lies in, such as ``autodiff``; empty for one that lies in none."""
    if isinstance(rule, Narrowed):
        return category(rule.rule)
    module = rule.target.partition(":")[0] if isinstance(rule, BuiltIn) else rule.__module__
    return module.rpartition(".")[0].rpartition(".")[2]
