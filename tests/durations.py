"""Seconds of a run by directory, so that it shows which tests cost most."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

import pytest

_LEAST = 10.0
"""Seconds from which on a directory is shown."""
_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    directory = PurePosixPath(report.nodeid.partition("::")[0]).parent
    _seconds["/".join(directory.parts[1:3])] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    shown = [(name, seconds) for name, seconds in _seconds.most_common() if seconds >= _LEAST]
    if shown:
        terminalreporter.section("seconds by directory, of all processes")
        terminalreporter.write_line(", ".join(f"{name} {seconds:.0f}" for name, seconds in shown))
