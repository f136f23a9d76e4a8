"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# Started in the background of a shell, tests ignore interrupts, and so would what they start to interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no test be skipped unnoticed where all that it may need is installed."""
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let no file of tests be skipped as a whole either."""
    return _no_skip((yield))


def _no_skip(report: Report) -> Report:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"skipped in CI: {report.longrepr}"
        report.outcome = "failed"
    return report
