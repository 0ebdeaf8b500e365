"""kubectl itself, against `mooring up`: every recorded session, where there is a kubectl on the machine.

The sessions were recorded with kubectl v1.36. Another version words a few things differently, whatever the server does;
of such a one only the exit codes are compared. Where there is no kubectl at all nothing is collected here, and the
header of the test run says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recordings.players import kubectl_player
from tests.recordings.served import Served, serving

KUBECTL = shutil.which("kubectl")
RECORDED_WITH = "1.36"
SESSIONS = sorted((Path(__file__).parent / "kubectl").glob("*.txt")) if KUBECTL else []
LINES_SHOWN_MAX = 60

# The player leaves its files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(
        tmp_path_factory.mktemp("kubectl"), "--ephemeral", "--without", "scheduler,controllers,nodes"
    ) as served:
        yield served


@pytest.fixture(scope="module")
def is_recorded_version() -> bool:
    assert KUBECTL is not None
    told = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, check=True, text=True)
    version = json.loads(told.stdout)["clientVersion"]
    return f"{version['major']}.{version['minor']}" == RECORDED_WITH


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_it_prints_as_recorded(session: Path, server: Served, is_recorded_version: bool) -> None:
    options = Namespace(
        kubeconfig=str(server.kubeconfig), kubectl=KUBECTL, controllers=False, record=False, base=None, lines=30
    )
    results = kubectl_player.play(str(session), options)
    wrong = [result for result in results if result["result"] == "fail" and _counts(result, is_recorded_version)]
    assert not wrong, "\n".join(line for each in wrong for line in [each["name"], *each["diff"]][:LINES_SHOWN_MAX])


def _counts(result: dict[str, list[str]], is_recorded_version: bool) -> bool:
    return is_recorded_version or any(line.startswith("exit:") for line in result["diff"])
