"""For every run of the tests: what it says of the programs that it found, and what it begins with.

1. Some tests need a real etcd, or kubectl: a run says which it found.
2. One test waits for minutes and works little. It goes first, so that another process does the rest meanwhile; at the
   end it would be waited for alone. (Processes take tests from each other: `--dist worksteal`. By default a process
   would keep those that it was given together with the long one.)
"""

from __future__ import annotations

import shutil
from pathlib import Path

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

LONGEST_FILE = Path(__file__).parent / "recordings" / "test_controllers.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path != LONGEST_FILE)  # stable: all others stay in their order


def pytest_report_header() -> list[str]:
    return list(_LINES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A quiet run has no header, and on several processes nobody counts what was deselected."""
    if terminalreporter.verbosity < 0:
        for line in _LINES:
            terminalreporter.write_line(line)
