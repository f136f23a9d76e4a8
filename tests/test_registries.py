"""The tables of built-in rules and codemods say what the classes say, and what we tell other programs."""

from __future__ import annotations

from importlib.metadata import distribution

import pytest

import codemods.registry
import mslint.rules.registry
from codemods.base import Codemod
from mslint.rules.base import Rule


@pytest.mark.parametrize("entry", mslint.rules.registry.BUILT_IN, ids=lambda entry: entry.code)
def test_a_rule_is_what_the_table_says(entry: mslint.rules.registry.BuiltIn) -> None:
    rule = entry.load()
    assert issubclass(rule, Rule)
    said = (entry.code, entry.name, entry.triggers, entry.context, entry.screen)
    assert (rule.code, rule.name, rule.triggers, rule.context, rule.screen) == said
    assert isinstance(entry(), rule)
    for name in rule.codemods():
        [codemod] = codemods.registry.named([name])
        assert rule.code in codemod.rules


@pytest.mark.parametrize("entry", codemods.registry.BUILT_IN, ids=lambda entry: entry.name)
def test_a_codemod_is_what_the_table_says(entry: codemods.registry.BuiltIn) -> None:
    codemod = entry.load()
    assert issubclass(codemod, Codemod)
    assert (codemod.name, codemod.rules) == (entry.name, entry.rules)
    assert isinstance(entry(), codemod)


def test_the_entry_points_are_the_tables() -> None:
    told = distribution("mslint").entry_points
    rules = {entry.name: entry.value for entry in told.select(group="mslint.rules")}
    rewrites = {entry.name: entry.value for entry in told.select(group="mslint.codemods")}
    assert rules == {rule.name: rule.target for rule in mslint.rules.registry.BUILT_IN}
    assert rewrites == {codemod.name: codemod.target for codemod in codemods.registry.BUILT_IN}
