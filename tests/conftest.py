"""What a run of the tests says of the programs that it found: some tests need a real etcd."""

from __future__ import annotations

import shutil

import pytest

_PROGRAM = shutil.which("etcd")
_LINE = (
    f"etcd: the store is tested on {_PROGRAM}"
    if _PROGRAM
    else "etcd: not installed, so the tests that need one are DESELECTED (tools/ensure_etcd.sh installs it)"
)


def pytest_report_header() -> str:
    return _LINE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A quiet run has no header, and on several processes nobody counts what was deselected."""
    if terminalreporter.verbosity < 0:
        terminalreporter.write_line(_LINE)
