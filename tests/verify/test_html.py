"""The HTML report, the nodes it draws and the times it gives: of one real verification and of large made-up graphs."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mslint.findings import Verdict
from mslint.report import verify_html, verify_json, verify_text
from mslint.verify import Counts, GraphNode, GraphView, ModeResult, StepResult, StepTime, Verification, verify
from mslint.verify.graphview import match
from mslint.verify.mindir import KINDS

from .scripts import GRAD_OPERATION, step_cell

ROUNDS = 5
# As many batches as steps are measured and made before, and some more.
ORIGINAL = step_cell(GRAD_OPERATION).replace("range(3)", f"range({ROUNDS + 9})")
STOPPED = ORIGINAL.replace("self.relu(self.first(x))", "ops.stop_gradient(self.relu(self.first(x)))")
LARGEST_PAGE = 4_000_000
VOID = {"br", "meta"}


class Page(HTMLParser):
    """What a browser would have to make sense of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [value or "" for attribute, value in self.attributes if attribute == name]

    def rows(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def verification(tmp_path_factory: pytest.TempPathFactory) -> Verification:
    script = tmp_path_factory.mktemp("script") / "<b>.py"
    script.write_text(ORIGINAL)
    return verify(
        script, {script: STOPPED.encode()}, working_directory=script.parent, views=True, time_rounds=ROUNDS, timeout=400
    )


@pytest.fixture(scope="module")
def page(verification: Verification) -> Page:
    return Page(verify_html.render(verification, "mslint verify '<b>.py' --against other.py"))


def test_it_holds_the_numbers_of_the_json(page: Page, verification: Verification) -> None:
    shown = page.rows()
    document = json.loads(verify_json.render(verification))
    assert document["verdict"].capitalize() in shown
    assert document["reason"] in shown
    for step in document["steps"]:
        assert step["location"] in shown
        assert f"{step['loss']['before']:.8g}" in shown
    graph, pynative = document["steps"]
    for kind in KINDS:
        assert f"{kind} nodes {graph['before'][kind]} {graph['after'][kind]}" in shown
    assert f"bytes kept for the backward {graph['before']['saved_bytes']} {graph['after']['saved_bytes']}" in shown
    assert f"bytes at the peak (estimate) {graph['before']['peak_bytes']} {graph['after']['peak_bytes']}" in shown
    for kind, operators in graph["before"]["operators"].items():
        for operator, count in operators.items():
            assert f"{operator} {kind} {count} {graph['after']['operators'][kind].get(operator, 0)}" in shown
    for what in ("autograd_nodes", "forward_runs"):
        counts = [pynative["pynative"][side][what] for side in ("before", "after")]
        assert f"{counts[0]} {counts[1]}" in shown


def test_what_the_user_wrote_is_text(page: Page) -> None:
    assert page.tags["b"] == 0
    assert "<b>.py:15" in page.rows()
    assert "different: <b>.py" in page.rows()


def test_it_loads_nothing(page: Page, verification: Verification) -> None:
    assert page.values("src") == []
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == 0
    assert all(target.startswith("#") for target in page.values("href"))
    text = verify_html.render(verification, "mslint verify")
    assert not re.search(r"url\(|@import|https?:", text)


def test_the_diff_has_the_lines_of_both_files(page: Page) -> None:
    shown = page.rows()
    assert f"15 {chr(0x2212)} return self.second(self.relu(self.first(x)))" in shown
    assert "15 + return self.second(ops.stop_gradient(self.relu(self.first(x))))" in shown


def test_nodes_know_their_line_and_their_forward_node(verification: Verification) -> None:
    graph = verification.steps[0].graph_before
    assert graph is not None
    assert {node.source for node in graph.nodes if node.kind == "forward"} == {"<b>.py:15", "<b>.py:24"}
    (relu_gradient,) = (node for node in graph.nodes if node.operator == "ReluGrad")
    assert relu_gradient.source == "<b>.py:15"
    assert relu_gradient.cells == ("network-WithLoss", "network-Network", "relu-ReLU")
    assert relu_gradient.shapes == ("float32[4, 5]",)
    assert relu_gradient.forward is not None
    assert graph.nodes[relu_gradient.forward].operator == "ReLU"
    # The gradient of each MatMul is of the layer of that MatMul, although both are compiled from one.
    assert {node.cells[-1] for node in graph.nodes if node.operator == "MatMul" and node.kind == "backward"} == {
        "first-Dense",
        "second-Dense",
    }


def test_what_fell_away_is_what_the_stop_makes_needless(verification: Verification) -> None:
    step = verification.steps[0]
    assert step.graph_before is not None
    assert step.graph_after is not None
    removed = Counter(node.operator for node in step.graph_before.nodes if node.counterpart is None)
    # The second layer's gradient for its input, the ReLU's, and those of the first layer's weight and bias.
    assert removed == {"MatMul": 2, "ReluGrad": 1, "BiasAddGrad": 1}
    assert all(node.counterpart is not None for node in step.graph_after.nodes)


def test_only_the_html_report_has_the_graph(verification: Verification) -> None:
    assert "graph_before" not in verify_json.render(verification)


def test_times_are_of_as_many_steps_as_asked_for_on_both_sides(verification: Verification) -> None:
    for step, told in zip(verification.steps, json.loads(verify_json.render(verification))["steps"], strict=True):
        assert step.time is not None, step.remarks
        assert len(step.time.before) == ROUNDS
        assert ROUNDS - 1 <= len(step.time.after) <= ROUNDS
        assert min(*step.time.before, *step.time.after) > 0
        assert told["time_ms"]["ratio"] == pytest.approx(told["time_ms"]["after"] / told["time_ms"]["before"])
    assert verify_text.render(verification).count("on this machine") == 2


@pytest.mark.parametrize(
    ("before", "after", "noise"),
    [
        # Two equal halves of the pairs each way, one the other way, none; too few pairs to tell; no difference at all.
        ([10.0] * 10, [5.0, 15.0] * 5, True),
        ([10.0] * 10, [5.0] * 9 + [15.0], False),
        ([10.0] * 10, [15.0] * 10, False),
        ([10.0] * 5, [5.0] * 5, True),
        ([10.0] * 10, [10.0] * 10, True),
        # What slows the machine slows both: the middle halves overlap, each pair says the same.
        ([10.0, 20.0] * 5, [9.0, 18.0] * 5, False),
    ],
)
def test_a_difference_counts_if_pairs_of_steps_agree_on_it(
    before: list[float], after: list[float], noise: bool
) -> None:
    assert StepTime(tuple(before), tuple(after)).within_noise is noise


def test_times_are_told_by_their_medians() -> None:
    time = StepTime((10.0, 11.0, 99.0), (5.0, 5.5, 6.0))
    assert time.medians == (11.0, 5.5)
    assert time.ratio == 0.5


# -- graphs made up ----------------------------------------------------------------------------------------------------


def chain(*operators: str, cells: tuple[str, ...] = ("net-Net",), kind: str = "backward") -> GraphView:
    nodes = tuple(
        GraphNode(operator, kind, cells, None, ("float32[2]",), 8, "net.py:1", None) for operator in operators
    )
    return GraphView(nodes, tuple((number, number + 1) for number in range(len(nodes) - 1)))


def unmatched(graph: GraphView) -> list[int]:
    return [number for number, node in enumerate(graph.nodes) if node.counterpart is None]


@pytest.mark.parametrize(
    ("before", "after", "removed", "added"),
    [
        (chain("Mul", "Add", "Mul"), chain("Mul", "Add", "Mul"), [], []),
        (chain("Mul", "Add", "Mul"), chain("Mul", "Mul"), [1], []),
        # Of two like nodes the one stays whose neighbours stay.
        (chain("Exp", "Mul", "Neg", "Log", "Mul", "Abs"), chain("Log", "Mul", "Abs"), [0, 1, 2], []),
        (chain("Mul", "Add"), chain("Mul", "Sub"), [1], [1]),
        (chain("Mul", "Add"), chain("Mul", "Add", cells=("model-Net",)), [], []),
        (chain("Mul"), chain("Mul", kind="forward"), [0], [0]),
    ],
)
def test_matching(before: GraphView, after: GraphView, removed: list[int], added: list[int]) -> None:
    one, other = match(before, after)
    assert (unmatched(one), unmatched(other)) == (removed, added)
    for number, node in enumerate(one.nodes):
        assert node.counterpart is None or other.nodes[node.counterpart].counterpart == number


def of_blocks(blocks: int, trained: int) -> GraphView:
    """A network of blocks of five convolutions; the backward pass goes through the last ``trained`` blocks."""
    nodes: list[GraphNode] = []
    edges: list[tuple[int, int]] = []

    def add(operator: str, kind: str, cells: tuple[str, ...], forward: int | None) -> int:
        number = len(nodes)
        shapes, line = ("float32[32, 64, 56, 56]",), f"nets/resnet.py:{number % 300}"
        nodes.append(GraphNode(operator, kind, cells, None, shapes, 25_690_112, line, forward))
        if number:
            edges.append((number - 1, number))
        return number

    made = []
    for block in range(blocks):
        for layer in range(5):
            cells = (
                "network-WithLossCell",
                f"layer{block // 10}-SequentialCell",
                f"{block}-Block",
                f"conv{layer}-Conv2d",
            )
            made += [(block, add(name, "forward", cells, None)) for name in ("Conv2D", "BatchNorm", "ReLU", "Add")]
    for block, number in reversed(made):
        if block >= blocks - trained:
            for name in ("ReluGrad", "Conv2DBackpropFilter"):
                edges.append((number, add(name, "backward", nodes[number].cells, number)))
    return GraphView(tuple(nodes), tuple(edges))


def counts_of(graph: GraphView) -> Counts:
    kinds = Counter(node.kind for node in graph.nodes)
    operators = {kind: Counter(node.operator for node in graph.nodes if node.kind == kind) for kind in KINDS}
    return Counts(
        **{kind: kinds[kind] for kind in KINDS}, subgraphs=0, saved_bytes=0, peak_bytes=0, operators=operators
    )


def drawn(before: GraphView, after: GraphView) -> str:
    seen = match(before, after)
    step = StepResult(
        mode="graph", name="Step", location=None, verdict=Verdict.EQUIVALENT, reason="", before=counts_of(before),
        after=counts_of(after), graph_before=seen[0], graph_after=seen[1],
    )  # fmt: skip
    mode = ModeResult("graph", Verdict.EQUIVALENT, "", (step,))
    return verify_html.render(Verification("/train.py", Verdict.EQUIVALENT, "", (mode,)), "mslint verify train.py")


@pytest.mark.parametrize("trained", [83, 43, 0])
def test_a_graph_of_5000_nodes_is_folded_by_cells(trained: int) -> None:
    before = of_blocks(83, 83)
    assert len(before.nodes) == 4_980
    text = drawn(before, of_blocks(83, trained))
    assert len(text.encode()) < LARGEST_PAGE
    page = Page(text)
    # Each scope that is drawn as one box unfolds at the place to which the box leads.
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = {target.removeprefix("#") for target in page.values("href")}
    assert targets
    assert targets <= set(ids)
    # No drawing is so large that it could not be read.
    assert max(int(height) for height in page.values("height")) < 6_000


def test_many_nodes_of_one_cell_are_drawn_by_operator() -> None:
    unrolled = chain(*["Mul", "Add", "Neg", "Exp"] * 500)
    text = drawn(unrolled, chain(*["Mul", "Add"] * 500))
    page = Page(text)
    assert f"{chr(0xD7)} 500" in page.rows()
    assert max(int(height) for height in page.values("height")) < 600


def test_a_report_without_a_step_says_why() -> None:
    mode = ModeResult("graph", Verdict.UNVERIFIED, "the script <raised>", output="Traceback <most recent>")
    verification = Verification("/train.py", Verdict.UNVERIFIED, "the script <raised>", (mode,))
    page = Page(verify_html.render(verification, "mslint verify train.py"))
    assert "unverified : the script <raised>" in page.rows()
    assert "Traceback <most recent>" in page.rows()


def test_the_files_of_the_page_come_with_the_package() -> None:
    folder = Path(verify_html.__file__).parent / "html"
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"report/html/*"' in declared
    assert {path.name for path in folder.iterdir()} == {"page.html", "style.css", "script.js"}
