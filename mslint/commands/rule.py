"""``mslint rule``: list the rules, or explain one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from mslint import language
from mslint.console import UsageError, nearest
from mslint.language import translated
from mslint.report.markdown import plain
from mslint.rules.base import Rule
from mslint.rules.evidence import evidence_of
from mslint.rules.registry import all_rules, category, load

OPERANDS = "[CODE|NAME]"


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command line of ``mslint rule``."""
    parser.add_argument("rule", metavar="CODE|NAME", nargs="?", help="the rule to explain (default: list all)")


def run(options: Namespace) -> int:
    """Print one rule, or a table of all."""
    if options.rule is None:
        for rule in map(load, all_rules()):
            print(f"{rule.code}  {rule.severity.value:7}  {rule.name}: {_summary(rule)}{_rewritten_by(rule)}")
        return 0
    print(_explained(_find(options.rule)))
    return 0


def _find(wanted: str) -> type[Rule]:
    known = {word: rule for rule in all_rules() for word in (rule.code, rule.name)}
    if wanted not in known:
        raise UsageError(
            translated(
                "unknown rule {rule!r}{near} (`mslint rule` lists them)", rule=wanted, near=nearest(wanted, known)
            )
        )
    return load(known[wanted])


def _explained(rule: type[Rule]) -> str:
    names = ", ".join(rule.codemods())
    known = translated("rewritten by the codemod {names}", names=names)
    fixable = known if names else translated("no codemod rewrites it")
    kind = translated("category: {category}; ", category=category(rule)) if category(rule) else ""
    head = (
        f"{rule.code} {rule.name}\n{kind}{translated('severity: {severity}; ', severity=rule.severity.value)}{fixable}"
    )
    chinese = "".join(
        f"{text}\n\n" for kind in ("rules", "explanations") if (text := language.chinese(kind, rule.code))
    )
    return f"{head}\n\n{chinese}{plain(rule.__doc__ or rule.summary)}{_measured(rule)}"


def _summary(rule: type[Rule]) -> str:
    return language.summary("rules", rule.code, rule.summary)


def _measured(rule: type[Rule]) -> str:
    evidence = evidence_of(rule.code)
    if evidence is None:
        return ""
    lines = [
        "",
        "",
        "Measured",
        f"    {evidence['command']}",
        f"    (MindSpore {evidence['mindspore']}, CPU: {evidence['verdict']})",
    ]
    for mode in ("graph", "pynative"):
        counts = evidence[mode]
        assert isinstance(counts, Mapping)
        changes = (
            f"{name.replace('_', ' ')} {before:,}" + (f" -> {after:,}" if after != before else "")
            for name, (before, after) in counts.items()
        )
        lines.append(f"    {mode}: {', '.join(changes)}")
    return "\n".join(lines)


def _rewritten_by(rule: type[Rule]) -> str:
    return f" [{', '.join(rule.codemods())}]" if rule.codemods() else ""
