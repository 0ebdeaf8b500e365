"""What a run of the tests says of the programs that it found: some tests need a real etcd, or kubectl."""

from __future__ import annotations

import shutil

import pytest

_ETCD = shutil.which("etcd")
_KUBECTL = shutil.which("kubectl")
_LINES = (
    f"etcd: the store is tested on {_ETCD}"
    if _ETCD
    else "etcd: not installed, so the tests that need one are DESELECTED (tools/ensure_etcd.sh installs it)",
    f"kubectl: recorded sessions are played with {_KUBECTL}"
    if _KUBECTL
    else "kubectl: not installed, so the recorded sessions are NOT PLAYED",
)


def pytest_report_header() -> list[str]:
    return list(_LINES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A quiet run has no header, and on several processes nobody counts what was deselected."""
    if terminalreporter.verbosity < 0:
        for line in _LINES:
            terminalreporter.write_line(line)
