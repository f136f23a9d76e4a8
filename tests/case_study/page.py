"""The page of the case study, written from the measured figures and nothing else."""

from __future__ import annotations

from typing import Any

TITLES = {
    "before": "before",
    "functional-grad": "`functional-grad` alone",
    "stop-gradient": "`stop-gradient` alone",
    "vectorize-rows": "`vectorize-rows` alone",
    "safe": "all safe fixes",
    "all": "with `--unsafe-fixes`",
}
WIDTH, HEIGHT, MARGIN = 640, 300, 45
COLOURS = {"before": "#c0392b", "all": "#2471a3"}


def page(figures: dict[str, Any]) -> str:
    """Return README.md."""
    names = list(TITLES)
    graph, pynative = figures["graph"], figures["pynative"]
    times = figures["times"]
    rows = [
        _row("graph mode: forward nodes", names, lambda n: f"{graph[n]['forward']:,}"),
        _row("backward nodes", names, lambda n: f"{graph[n]['backward']:,}"),
        _row("backward nodes, times fewer", names, lambda n: _fewer(graph, n, "backward")),
        _row("sub-graphs", names, lambda n: str(graph[n]["subgraphs"])),
        _row("bytes kept for the backward pass", names, lambda n: f"{graph[n]['saved']:,}"),
        _row("bytes at the peak (estimate)", names, lambda n: f"{graph[n]['peak']:,}"),
        _row("PyNative mode: autograd nodes", names, lambda n: f"{pynative[n]['autograd']:,}"),
        _row("autograd nodes, times fewer", names, lambda n: _fewer(pynative, n, "autograd")),
        _row("operator calls a step", names, lambda n: f"{pynative[n]['calls']:,}"),
        _row("forward runs a step", names, lambda n: str(pynative[n]["forward_runs"])),
        _row("gradients, graph mode", names, lambda n: _numbers(graph[n])),
        _row("gradients, PyNative mode", names, lambda n: _numbers(pynative[n])),
    ]
    for mode, title in (("graph", "graph mode"), ("pynative", "PyNative mode")):
        first = "compiling" if mode == "graph" else "first step beyond the others"
        of = times[mode]
        rows += [
            _row(f"{title}: {first}, s", names, lambda n, of=of: f"{of[n]['first']:.1f}"),
            _row(f"{title}: {first}, s of processor time", names, lambda n, of=of: f"{of[n]['first_processor']:.1f}"),
            _row(f"{title}: a step, ms", names, lambda n, of=of: f"{of[n]['step']:,.0f}"),
            _row(f"{title}: step, times faster", names, lambda n, of=of: _faster(of, n, "step")),
            _row(f"{title}: processor time, times less", names, lambda n, of=of: _faster(of, n, "step_processor")),
        ]
    head = f"| | {' | '.join(TITLES.values())} |\n|---|{'---:|' * len(TITLES)}"
    ranks = figures["ranks"]
    keys = list(ranks["before"])
    rank_rows = "\n".join(f"| {key} | {_told(ranks['before'][key])} | {_told(ranks['all'][key])} |" for key in keys)
    curves = figures["curves"]
    length = len(curves["before"]["losses"])
    return f"""# The case study

<!-- Written by tests/case_study/measure.py from figures.json: do not edit. -->

A contrastive training as its author left it: a small ResNet, features of a frozen network beside it, a loss that goes
through the batch row by row, a step with `GradOperation` and a fixed loss scale, float16, data parallel. mslint was told
nothing about it, and nothing was changed by hand:

```sh
mslint check fixtures/case_study
cp -r fixtures/case_study /tmp/case && cd /tmp/case
mslint fix                      # the safe fixes
mslint fix --unsafe-fixes       # those that rest on an assumption, which their message names
```

`python tests/case_study/measure.py` makes this page, the picture and `figures.json` anew. `tests/case_study` fails if what
the codemods make of the program, or the counts, are others than those shown.

## The step

MindSpore {figures["mindspore"]}, CPU, batches of 24. Nodes and bytes are those of the compiled first step (`mslint verify`
counts the same); gradients are compared from equal parameters and an equal batch, by the largest difference relative to the
largest value of its tensor. Times are the least of {figures["rounds"]["graph"] - 2} steps in graph mode and
of {figures["rounds"]["pynative"] - 2} in PyNative mode, made by turns in one run on a shared machine
({figures["processors"]} processors, load {figures["load"]}): only the ratios mean something.

{head}
{chr(10).join(rows)}

A column that equals another one in every figure is the same program: measured once. The network computes in float16,
where two neighbouring numbers lie up to 9.8e-4 of their size apart. What `stop-gradient` makes zero are the gradients of the
frozen network.
{_reading(figures)}
## The loss

![loss of the first {length} steps](loss.svg)

Graph mode, one device, {length} steps: from {curves["before"]["losses"][0]:.3f} to {_end(curves["before"])} (mean of the last
ten) before, to {_end(curves["all"])} after. Steps left out because a gradient was not finite:
{curves["before"]["skipped"]} before, {curves["all"]["skipped"]} after. The data set is seeded anew by `rank-seed` once
network and data set are built, so augmentation draws other numbers from the first batch on; and the features that the
embeddings are pulled to are no longer trained towards them. So the two curves are those of two different trainings, and the
one that falls lower here is not thereby the better one.

## Two ranks

Started by `msrun`, {ranks["samples"]} images, one epoch, PyNative mode. Communication nodes of a step compiled in graph mode
for two ranks: {figures["communication"]["before"]} before, {figures["communication"]["all"]} after.

| | before | with `--unsafe-fixes` |
|---|---|---|
{rank_rows}

`rank-seed` alone changes nothing: it seeds by the rank only what is sharded, and says so.
"""


def _reading(figures: dict[str, Any]) -> str:
    """Say what the figures say of the usual advice."""
    graph, pynative, times = figures["graph"], figures["pynative"], figures["times"]

    def change(of: dict[str, Any], name: str, key: str) -> str:
        before, after = of["before"][key], of[name][key]
        return f"{before:,} as before" if before == after else f"{before:,} → {after:,}"

    backward = {name: change(graph, name, "backward") for name in TITLES}
    autograd = {name: change(pynative, name, "autograd") for name in TITLES}
    calls = change(pynative, "functional-grad", "calls")
    runs = change(pynative, "functional-grad", "forward_runs")
    less = {mode: _faster(times[mode], "functional-grad", "step_processor") for mode in times}
    return f"""
What of the usual advice made a difference here, and what did not:

- *Replace `GradOperation` by a functional gradient.* Backward nodes {backward["functional-grad"]}: graph mode merges
  two equal forward passes by itself. In PyNative mode forward runs a step {runs}, operator calls {calls}: the step
  calls `network.set_grad()`, with which MindSpore uses the forward pass again. Processor time by this codemod alone:
  {less["graph"]} times less in graph mode, {less["pynative"]} in PyNative mode.
- *Stop the gradient behind frozen features.* Backward nodes {backward["stop-gradient"]},
  autograd nodes {autograd["stop-gradient"]}. It is offered as unsafe, as the parameters of the frozen network are in
  the optimizer's list, so that graph mode trained them. Gradients that differ: {_differing(graph["stop-gradient"])}.
- *Do not compute a batch row by row.* Backward nodes {backward["vectorize-rows"]},
  autograd nodes {autograd["vectorize-rows"]}. It is offered as unsafe, as nothing in the files proves that all tensors
  have as many rows as the first.
  {_share(figures)}
- *Remove epsilons.* mslint reports two and leaves both to a person, so they are still there after all fixes.
- *Choose the loss scale with care.* mslint has no rule for that yet: steps are left out before and after (below).
"""


def _share(figures: dict[str, Any]) -> str:
    """Say what the loss has of the step: the networks' part stays what it was."""
    said = []
    for mode, title in (("graph", "In graph mode"), ("pynative", "In PyNative mode")):
        before, after = (figures["loss"][mode][name]["step_processor"] for name in ("before", "all"))
        step = figures["times"][mode]["before"]["step_processor"]
        less = f"{before / after:.1f} times less"
        said.append(
            f"{title} they took {before:,.0f} of the {step:,.0f} ms of a step, and take {after:,.0f} now: {less}."
        )
    return (
        "The loss and its gradients were measured without the networks, too, in processor time:\n  what the convolutions of "
        "the networks take stays.\n  " + "\n  ".join(said)
    )


def _row(title: str, names: list[str], cell: Any) -> str:
    return f"| {title} | {' | '.join(cell(name) for name in names)} |"


def _fewer(of: dict[str, Any], name: str, key: str) -> str:
    return f"{of['before'][key] / of[name][key]:.2f}"


def _faster(of: dict[str, Any], name: str, key: str) -> str:
    return f"{of['before'][key] / of[name][key]:.2f}"


def _numbers(column: dict[str, Any]) -> str:
    numbers = column.get("numbers")
    if numbers is None:
        return ""
    if "gradients" not in numbers:
        return str(numbers["verdict"])
    if numbers["loss"] == numbers["gradients"] == 0:
        return "bit-equal"
    return f"{numbers['verdict']}: {numbers['gradients']:.1e}"


def _differing(column: dict[str, Any]) -> str:
    names = column["numbers"].get("differing", [])
    shown = {".".join(name.split(".")[:2]) for name in names}
    return f"{len(names)}, all of " + " and ".join(f"`{name}`" for name in sorted(shown)) if names else "none"


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _end(curve: dict[str, Any]) -> str:
    last = curve["losses"][-10:]
    return f"{sum(last) / len(last):.3f}"


def picture(curves: dict[str, Any]) -> str:
    """Return the losses as an SVG."""
    every = [loss for curve in curves.values() for loss in curve["losses"]]
    top = max(every)
    steps = max(len(curve["losses"]) for curve in curves.values())

    def at(step: int, loss: float) -> str:
        x = MARGIN + (WIDTH - 2 * MARGIN) * step / max(steps - 1, 1)
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * loss / top
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{at(0, top)} L{at(0, 0)} L{at(steps - 1, 0)}" fill="none" stroke="black"/>',
        f'<text x="{MARGIN - 5}" y="{MARGIN}" text-anchor="end">{top:.1f}</text>',
        f'<text x="{MARGIN - 5}" y="{HEIGHT - MARGIN}" text-anchor="end">0</text>',
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN + 16}" text-anchor="end">step {steps}</text>',
        f'<text x="{MARGIN}" y="{MARGIN - 18}">loss</text>',
    ]
    for number, (name, curve) in enumerate(curves.items()):
        points = " ".join(at(step, loss) for step, loss in enumerate(curve["losses"]))
        title = "before" if name == "before" else "after all fixes"
        lines.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
        y = MARGIN + 16 * number
        lines.append(f'<text x="{WIDTH - MARGIN}" y="{y}" text-anchor="end" fill="{COLOURS[name]}">{title}</text>')
    return "\n".join([*lines, "</svg>", ""])
