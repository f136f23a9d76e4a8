"""Training scripts of a few layers, run for real: what verify says of them is reasoned in each test."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mslint.verify import Verification, verify

_MINDSPORE = importlib.util.find_spec("mindspore") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # In continuous integration a missing MindSpore is a failure, not a reason to skip what this package is for.
    if not _MINDSPORE and not os.environ.get("CI"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="MindSpore is not installed"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


Against = Callable[..., Verification]


@pytest.fixture(scope="module")
def against(tmp_path_factory: pytest.TempPathFactory) -> Against:
    """Verify one text of a script against another."""

    def check(original: str, rewritten: str, **options: object) -> Verification:
        script = tmp_path_factory.mktemp("script") / "train.py"
        script.write_text(original)
        return verify(script, {script: rewritten.encode()}, working_directory=script.parent, **options)  # type: ignore[arg-type]

    return check
