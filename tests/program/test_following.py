"""Both purposes that programs are followed for read plain Python alike."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from mslint.program.following import constants
from mslint.program.following.values import Constant, Sequence, Value
from mslint.program.networks.interpreter import Interpreter
from mslint.program.project import Program
from mslint.program.rehearsal.follow import Rehearsal
from mslint.program.trees import Trees


def _by_interpreter(program: Program, path: Path) -> Value:
    interpreter = Interpreter(program, 10_000)
    interpreter.run_file(path)
    return interpreter.scope.names["answer"]


def _by_rehearsal(program: Program, path: Path) -> Value:
    return Rehearsal(program, path, {}).modules.module(path).scope.names["answer"]


@pytest.fixture(params=[_by_interpreter, _by_rehearsal], ids=["networks", "ranks"])
def answer(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], object]:
    """What the name ``answer`` is after a script, as plain values."""

    def run(text: str) -> object:
        script = tmp_path / "train.py"
        script.write_text(dedent(text))
        return _plain(request.param(Program([script]), script))

    return run


def _plain(value: Value) -> object:
    if isinstance(value, Sequence):
        return [_plain(item) for item in value.items]
    return value.value if isinstance(value, Constant) else value


_FUNCTION = """
    def passed(a, b=2, *rest, c=3, d=4):
        return (a, b, rest, c, d)
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("passed(1)", [1, 2, [], 3, 4]),
        ("passed(1, 5, 6, 7)", [1, 5, [6, 7], 3, 4]),
        ("passed(b=1, a=0, d=9)", [0, 1, [], 3, 9]),
        ("passed(*[1, 5], **{'c': 6})", [1, 5, [], 6, 4]),
    ],
)
def test_arguments_reach_parameters(answer: Callable[[str], object], call: str, expected: object) -> None:
    assert answer(f"{_FUNCTION}\n    answer = {call}") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if 1 == 2:\n    answer = 'first'\nelse:\n    answer = 'second'", "second"),
        ("if __name__ == '__main__':\n    answer = 1", 1),
        ("answer = 1 if not None else 2", 1),
        ("def choose(x):\n    if x is None:\n        return 1\n    return 2\nanswer = choose(None)", 1),
        ("first, second = [1, 2]\nanswer = second", 2),
        ("answer = {'a': 1, **{'b': 2}}['b']", 2),
        ("answer = (lambda x: x)(3)", 3),
        ("answer = []\nanswer.append(1)\nanswer += [2]", [1, 2]),
    ],
)
def test_statements_and_expressions(answer: Callable[[str], object], body: str, expected: object) -> None:
    assert answer(body) == expected


def test_methods_are_bound_and_inherited(answer: Callable[[str], object]) -> None:
    text = """
        class Base:
            def __init__(self, size):
                self.size = size

            def name(self):
                return "base"

        class Derived(Base):
            kind = "derived"

            def __init__(self):
                super().__init__(4)

            @property
            def doubled(self):
                return (self.size, self.size)

            @staticmethod
            def free(x):
                return x

            def name(self):
                return (super().name(), self.kind)

        made = Derived()
        answer = (made.doubled, made.name(), made.free(5))
    """
    assert answer(text) == [[4, 4], ["base", "derived"], 5]


def test_names_come_from_other_files(answer: Callable[[str], object], tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("SIZE = 3\n\ndef size():\n    return SIZE\n")
    assert answer("import settings\nfrom settings import SIZE as own\nanswer = (settings.size(), own)") == [3, 3]


def test_recursion_ends(answer: Callable[[str], object]) -> None:
    assert answer("def again(x):\n    return again(x)\nagain(1)\nanswer = 2") == 2


@pytest.mark.parametrize(
    ("left", "sign", "right", "expected"),
    [
        (1, "==", 1, True),
        (1, "is not", None, True),
        (2, "in", [1], False),
        (2, "not in", [1], True),
        (1, "<", "a", None),
    ],
)
def test_comparisons_of_constants(left: object, sign: str, right: object, expected: bool | None) -> None:
    assert constants.compared(sign, left, right) is expected


def test_arithmetic_of_constants() -> None:
    assert constants.computed(ast.FloorDiv(), 7, 2) == Constant(3)
    assert constants.computed(ast.FloorDiv(), 7, 0) is None
    assert constants.computed(ast.Add(), "a", 1) is None


def test_a_file_is_parsed_once() -> None:
    read: list[Path] = []

    def text(path: Path) -> str | None:
        read.append(path)
        return "x = 1" if path.name == "good.py" else "x = ("

    trees = Trees()
    assert trees.tree(Path("good.py"), text) is trees.tree(Path("good.py"), text) is not None
    assert trees.tree(Path("bad.py"), text) is None
    assert read == [Path("good.py"), Path("bad.py")]
    assert trees.without([Path("good.py")]).tree(Path("good.py"), text) is not None
    assert len(read) == 3
