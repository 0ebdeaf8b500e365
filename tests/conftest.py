"""Settings of every test run.

1. Some tests need a real etcd, kubectl or a browser: a run reports which of them it found.
2. One test mostly waits, for more than a minute. It runs first, so that the other process runs the rest. (Processes
   take tests from each other: `--dist worksteal`.)
3. Clusters that tests start are registered in a directory of the run, not in that of the user.
4. A run in the background of a script ignores SIGINT, and so would the programs that tests start and interrupt.
5. The garbage collector never traverses what exists when the tests begin: 18,000 tests and their modules, for half a
   second in each full collection.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="mooring-tests-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

_ETCD = shutil.which("etcd")
_KUBECTL = shutil.which("kubectl")
_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
_LINES = (
    f"etcd: the store is tested on {_ETCD}"
    if _ETCD
    else "etcd: not installed, so the tests that need one are DESELECTED (tools/ensure_etcd.sh installs it)",
    f"kubectl: recorded sessions are played with {_KUBECTL}"
    if _KUBECTL
    else "kubectl: not installed, so the recorded sessions are NOT PLAYED",
    f"browser: the console is tested in {_BROWSER}"
    if _BROWSER
    else "browser: not installed, so the tests that need one are DESELECTED (tools/ensure_browser.sh installs it)",
)

LONGEST_FILE = Path(__file__).parent / "recordings" / "test_controllers.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path != LONGEST_FILE)  # stable: all others stay in their order


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_report_header() -> list[str]:
    return list(_LINES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A quiet run has no header, and on several processes nobody counts what was deselected."""
    if terminalreporter.verbosity < 0:
        for line in _LINES:
            terminalreporter.write_line(line)
