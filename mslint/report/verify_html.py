"""A verification as one HTML file that loads nothing else and is whole without JavaScript."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from mslint.report.drawing import drawings
from mslint.report.markup import Html, element, joined
from mslint.report.verify_rows import (
    MODE_NAMES,
    equality,
    graph_rows,
    of_bytes,
    of_time,
    pynative_rows,
    told_comparison,
    told_tolerance,
)
from mslint.source.text import shown
from mslint.verify import Comparison, GraphNode, GraphView, Loss, ModeResult, Rewrite, StepResult, Verification
from mslint.verify.compare import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, UNITS_IN_LAST_PLACE
from mslint.verify.mindir import KINDS

_ARROW, _MINUS = "\N{RIGHTWARDS ARROW}", "\N{MINUS SIGN}"
_SIGNS = {"equivalent": "\N{CHECK MARK}", "different": "\N{NOT EQUAL TO}", "unverified": "?"}
# With what works on gradients.
_BACKWARD = ("backward", "communication", "other")
_MOST_ROWS = 12
_CONTEXT_LINES = 3
_NUMBER_COLUMNS = {"before", "after", "change", "nodes", "bytes"}


def render(verification: Verification, command: str) -> str:
    """The report; ``command`` is what makes it again."""
    folder = files("mslint.report") / "html"
    page, style, script = ((folder / name).read_text("utf-8") for name in ("page.html", "style.css", "script.js"))
    verdict = verification.verdict.value
    return Template(page).substitute(
        title=joined(f"{verdict}: {Path(verification.script).name}"),
        style=style.strip(),
        script=script.strip(),
        body=joined(*_body(verification, command)),
    )


def _body(verification: Verification, command: str) -> Iterator[Html]:
    yield _head(verification)
    lines = _Lines(verification.rewrites)
    for number, mode in enumerate(verification.modes):
        yield element("section", *_mode(mode, lines, f"m{number}"))
    if verification.stand_ins:
        yield _section(
            "Stood in for or dropped", element("ul", *(element("li", one) for one in verification.stand_ins))
        )
    if verification.rewrites:
        yield _section("Changed source", *map(_diff, verification.rewrites))
    version = verification.mindspore
    yield _section(
        "To see it again",
        element("pre", *([f"pip install mslint mindspore=={version}\n"] if version else []), command),
        element(
            "p",
            "Both sides start from the same parameters and the same batch. Numbers count as equal if they differ by at "
            f"most {ABSOLUTE_TOLERANCE:g} plus {RELATIVE_TOLERANCE:g} of the largest value of their tensor; where float16 "
            f"or bfloat16 takes part, {UNITS_IN_LAST_PLACE} units in the last place of that value. Nodes of the "
            "two graphs are paired by operator, scope, shapes and neighbours: a pair looks alike, which does not prove "
            "that it computes the same; the compared numbers do.",
            class_="quiet",
        ),
    )


def _section(title: str, *content: str) -> Html:
    return element("section", element("h2", title), *content)


def _head(verification: Verification) -> Html:
    verdict = verification.verdict.value
    rewrite = f"rewritten by {', '.join(verification.codemods)}" if verification.codemods else "against another version"
    version = f", MindSpore {verification.mindspore}" if verification.mindspore else ""
    figures = [joined(element("dt", name), element("dd", *what)) for name, what in _figures(verification)]
    return joined(
        element(
            "header",
            element("h1", f"{_SIGNS[verdict]} {verdict.capitalize()}"),
            element("p", element("strong", shown(Path(verification.script))), f" {rewrite}{version}"),
            element("p", verification.reason),
            class_=verdict,
        ),
        element("dl", *(element("div", figure) for figure in figures), class_="figures") if figures else "",
    )


def _figures(verification: Verification) -> Iterator[tuple[str, list[str]]]:
    """What the reader wants to know first, over all steps."""
    counted = [(step.before, step.after) for step in verification.steps if step.before and step.after]
    for name, attribute, total, unit in (
        ("backward nodes, graph mode", "backward", sum, _number),
        ("memory kept for the backward", "saved_bytes", sum, of_bytes),
        ("memory at the peak (estimate)", "peak_bytes", max, of_bytes),
    ):
        if counted:
            before, after = (total(getattr(pair[side], attribute) for pair in counted) for side in (0, 1))
            yield name, _figure(before, after, unit)
    taped = [
        (step.pynative_before.autograd_nodes, step.pynative_after.autograd_nodes)
        for step in verification.steps
        if step.pynative_before and step.pynative_after
    ]
    if taped:
        before, after = map(sum, zip(*taped, strict=True))
        yield "autograd nodes, PyNative mode", _figure(before, after, _number)
    for step in verification.steps:
        if step.time is not None:
            usual, now = map(of_time, step.time.medians)
            several = len({one.name for one in verification.steps}) > 1
            name = f"step time here, {MODE_NAMES[step.mode]}{f', {step.name}' if several else ''}"
            noise = ", in the noise" if step.time.within_noise else ""
            ratio = element("small", f"{step.time.ratio:.2f} times{noise}")
            yield name, [f"{usual} {_ARROW} {now} ", ratio]


def _number(value: int) -> str:
    return f"{value:,}"


def _figure(before: int, after: int, unit: Callable[[int], str]) -> list[str]:
    change = _signed(after - before, unit) or "unchanged"
    return [f"{unit(before)} {_ARROW} {unit(after)} ", element("small", change)]


def _signed(change: int, unit: Callable[[int], str] = _number) -> str:
    return f"{'+' if change > 0 else _MINUS}{unit(abs(change))}" if change else ""


# -- a mode and its steps ----------------------------------------------------------------------------------------------


def _mode(mode: ModeResult, lines: _Lines, prefix: str) -> Iterator[Html]:
    native = element("span", " (the script\N{RIGHT SINGLE QUOTATION MARK}s own)", class_="quiet")
    yield element("h2", MODE_NAMES.get(mode.mode, mode.mode), *([native] if mode.native_mode == mode.mode else []))
    if mode.verdict.value == "unverified" or not mode.steps:
        yield element("p", element("strong", mode.verdict.value), f": {mode.reason}")
    for number, step in enumerate(mode.steps):
        yield from _step(step, lines, f"{prefix}s{number}")
    if mode.output.strip():
        yield element("h4", "The end of what it printed")
        yield element("pre", mode.output)


def _step(step: StepResult, lines: _Lines, prefix: str) -> Iterator[Html]:
    place = [" ", element("code", step.location, class_="quiet")] if step.location else []
    yield element("h3", f"Step {step.name}", *place)
    yield _numbers(step)
    for remark in step.remarks:
        yield element("p", f"Note: {remark}", class_="quiet")
    if step.before and step.after:
        yield _counts("Compiled graph", graph_rows(step.before, step.after))
        operators = {kind: (step.before.operators.get(kind, {}), step.after.operators.get(kind, {})) for kind in KINDS}
        yield _bars(operators)
    elif step.mode == "graph":
        yield element("p", "There is no graph to count.", class_="quiet")
    if step.pynative_before and step.pynative_after:
        yield _counts("One step", pynative_rows(step.pynative_before, step.pynative_after))
        called = "operator calls" if step.pynative_before.operator_calls is not None else "autograd nodes"
        yield _bars({called: (step.pynative_before.by_operator, step.pynative_after.by_operator)})
    if step.graph_before and step.graph_after:
        yield from _graphs(step.graph_before, step.graph_after, lines, prefix)


def _numbers(step: StepResult) -> Html:
    rows = [_loss_row(step.loss)]
    rows += [
        _compared_row(name, found)
        for name, found in (
            ("other outputs", step.outputs),
            ("gradients", step.gradients),
            ("parameters after", step.parameters),
        )
        if found is not None or name == "gradients"
    ]
    if step.tolerance is not None and step.rounded:
        rows.append(_row("tolerance", told_tolerance(step.tolerance)))
    if step.time is not None:
        (before, after), (spread_before, spread_after) = step.time.medians, step.time.quartiles
        told = (
            f"{of_time(before)} {_ARROW} {of_time(after)}, {step.time.ratio:.2f} times"
            f"{' (no difference beyond the noise)' if step.time.within_noise else ''}: medians of {len(step.time.before)} "
            f"and {len(step.time.after)} steps, made by turns on this machine; the middle half took "
            f"{of_time(spread_before[0])} to {of_time(spread_before[1])} before, "
            f"{of_time(spread_after[0])} to {of_time(spread_after[1])} after"
        )
        rows.append(_row("step time", told))
    return _table(["compared", "result"], rows, "compared")


def _loss_row(loss: Loss | None) -> Html:
    if loss is None:
        return _row("loss", "not seen")
    values = f"{loss.before:.8g}" if loss.comparison.bit_equal else f"{loss.before:.8g} {_ARROW} {loss.after:.8g}"
    return _row("loss", _result(loss.comparison), f" {values}")


def _compared_row(name: str, found: Comparison | None) -> Html:
    if found is None:
        return _row(name, "not seen on both sides")
    _, _, detail = told_comparison(found).partition(": ")
    others = [*found.differing, *found.only_before, *found.only_after]
    more = f"; beyond the tolerance or on one side only: {', '.join(others[:12])}" if others else ""
    more += f" and {len(others) - 12} more" if len(others) > 12 else ""
    return _row(name, _result(found), f" {detail}{more}")


def _result(found: Comparison) -> Html:
    return element("span", equality(found).lower(), class_="good" if found.equal else "bad")


def _row(name: str, *what: str) -> Html:
    return element("tr", element("th", name, scope="row"), element("td", *what))


def _table(head: Sequence[str], rows: Iterable[Html], kind: str, caption: str | None = None) -> Html:
    cells = [
        element("th", name, scope="col", class_="number" if place > 0 and name in _NUMBER_COLUMNS else None)
        for place, name in enumerate(head)
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption) if caption else "",
            element("thead", element("tr", *cells)),
            element("tbody", *rows),
            class_=kind,
        ),
        class_="wide",
    )


def _counts(caption: str, counted: Iterable[tuple[str, int, int]]) -> Html:
    rows = [
        element("tr", element("th", name, scope="row"), *_before_after(before, after))
        for name, before, after in counted
    ]
    return _table(["", "before", "after", "change"], rows, "narrow", caption)


def _before_after(before: int, after: int) -> Iterator[Html]:
    for text in (f"{before:,}", f"{after:,}", _signed(after - before)):
        yield element("td", text, class_="number")


def _bars(operators: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]]) -> Html:
    """Counts by operator with bars; what did not change is folded."""
    counted = [
        (operator, kind, before.get(operator, 0), after.get(operator, 0))
        for kind, (before, after) in operators.items()
        for operator in sorted({*before, *after})
    ]
    longest = max((max(before, after) for *_, before, after in counted), default=1)
    # What fell away first.
    counted.sort(key=lambda row: (row[3] - row[2], -row[2], row[1], row[0]))
    changed = [row for row in counted if row[2] != row[3]]
    same = [row for row in counted if row[2] == row[3]]
    key = joined(
        "Operators ",
        element("span", element("span", class_="key"), "before", element("span", class_="key after"), "after"),
    )
    parts = [element("h4", key)]
    if changed:
        parts.append(_bar_table(changed, longest))
    if same:
        parts.append(
            element("details", element("summary", f"{len(same)} unchanged"), _bar_table(same, longest), class_="fold")
        )
    return joined(*parts)


def _bar_table(counted: Sequence[tuple[str, str, int, int]], longest: int) -> Html:
    rows = [
        element(
            "tr",
            element("th", operator, element("span", f" {kind}", class_="quiet"), scope="row"),
            *_before_after(before, after),
            element(
                "td",
                *(element("span", style=f"--part:{100 * part / longest:.1f}%") for part in (before, after)),
                class_="bars",
                aria_hidden="true",
            ),
        )
        for operator, kind, before, after in counted
    ]
    return _table(["operator", "before", "after", "change", ""], rows, "operators")


# -- graphs ------------------------------------------------------------------------------------------------------------


class _Lines:
    """The source lines of the files that were rewritten."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        self._texts = [
            (Path(rewrite.path).as_posix(), (rewrite.before.splitlines(), rewrite.after.splitlines()))
            for rewrite in rewrites
        ]

    def at(self, source: str | None, side: int) -> str:
        """The text at ``file:line``, of the original or the rewritten file; nothing where it is not known."""
        name, _, number = (source or "").rpartition(":")
        for path, texts in self._texts:
            if name and path.endswith(f"/{name}") and int(number) <= len(texts[side]):
                return texts[side][int(number) - 1].strip()
        return ""


def _graphs(before: GraphView, after: GraphView, lines: _Lines, prefix: str) -> Iterator[Html]:
    yield element("h4", "Backward graph before and after")
    yield element("p", _LEGEND, class_="quiet")
    yield drawings(before, after, _BACKWARD, f"{prefix}b")
    forward = drawings(before, after, ("forward",), f"{prefix}f")
    yield element("details", element("summary", "Forward graph"), forward, class_="fold")
    for side, (name, graph) in enumerate((("Removed nodes", before), ("Added nodes", after))):
        unmatched = [node for node in graph.nodes if node.counterpart is None]
        if unmatched:
            yield _unmatched(f"{name} ({len(unmatched):,})", unmatched, lines, side)


_LEGEND = (
    "Data flows from top to bottom. Dashed and \N{MINUS SIGN}: only before; green and +: only after. Rounded boxes are "
    "cells: they unfold below. Hover, tap or tab to a node for its shape, scope and source line."
)


def _unmatched(title: str, nodes: Sequence[GraphNode], lines: _Lines, side: int) -> Html:
    """Nodes without a counterpart, like ones in one row."""
    alike: dict[tuple[object, ...], list[GraphNode]] = {}
    for node in nodes:
        alike.setdefault((node.kind, node.operator, node.shapes, node.cells, node.source), []).append(node)
    # The backward pass first: it is what rewrites are for.
    ordered = sorted(alike.values(), key=lambda group: (group[0].kind != "backward", KINDS.index(group[0].kind)))
    rows = [
        element(
            "tr",
            element("th", group[0].operator, element("span", f" {group[0].kind}", class_="quiet"), scope="row"),
            element("td", f"{len(group):,}", class_="number"),
            element("td", f"{sum(node.bytes for node in group):,}", class_="number"),
            element("td", ", ".join(shape.replace(" ", "\N{NO-BREAK SPACE}") for shape in group[0].shapes)),
            element(
                "td",
                element("span", "/".join(group[0].cells), class_="scope"),
                *_source(group[0].source, lines, side),
            ),
        )
        for group in ordered
    ]
    head = ["operator", "nodes", "bytes", "shape", "scope and source line"]
    parts = [element("h4", title), _table(head, rows[:_MOST_ROWS], "nodes")]
    if len(rows) > _MOST_ROWS:
        more = rows[_MOST_ROWS:]
        folded = element("summary", f"{len(more):,} more rows"), _table(head, more, "nodes")
        parts.append(element("details", *folded, class_="fold"))
    return joined(*parts)


def _source(source: str | None, lines: _Lines, side: int) -> Iterator[Html]:
    if source:
        yield Html("<br>")
        yield element("code", source, " ", element("span", lines.at(source, side), class_="quiet"))


# -- sources -----------------------------------------------------------------------------------------------------------


def _diff(rewrite: Rewrite) -> Html:
    before, after = rewrite.before.splitlines(), rewrite.after.splitlines()
    rows: list[Html] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        if rows:
            rows.append(element("tr", element("td", "\N{VERTICAL ELLIPSIS}", colspan=4), class_="gap"))
        for kind, start, end, other_start, other_end in group:
            if kind == "equal":
                rows += [
                    _diff_row(str(start + place + 1), str(other_start + place + 1), " ", before[start + place])
                    for place in range(end - start)
                ]
            else:
                rows += [_diff_row(str(line + 1), "", _MINUS, before[line]) for line in range(start, end)]
                rows += [_diff_row("", str(line + 1), "+", after[line]) for line in range(other_start, other_end)]
    return joined(element("h4", shown(Path(rewrite.path))), element("table", element("tbody", *rows), class_="diff"))


def _diff_row(number: str, other_number: str, sign: str, text: str) -> Html:
    kind = {_MINUS: "removed", "+": "added"}.get(sign)
    cells = [element("td", one, class_="number") for one in (number, other_number)]
    return element("tr", *cells, element("td", sign, class_="sign"), element("td", text), class_=kind)
