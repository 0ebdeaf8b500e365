"""The recorders: what they record from our own API server plays there without a difference, and names the version."""

from __future__ import annotations

import gc
import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mooring.kit.build import KUBERNETES_VERSION
from tests.recordings.players import api_player, kubectl_player
from tests.recordings.served import ADMIN_TOKEN, LIMITED_TOKEN, Served, serving
from tests.recordings.test_kubectl import KUBECTL
from tests.waiting import LIMIT_S
from tools.record import main, read_transcripts

API_TRANSCRIPT = "valid-clusterroles"
SESSION = "auth"
CONTROLLER_TRANSCRIPT = "node-labels"

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _closed_connections() -> Iterator[None]:
    """The player leaves its connections to the garbage collector: collect them while their warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("recorders"), "--ephemeral", "--without", "scheduler,nodes") as served:
        yield served


def test_an_api_transcript(server: Served, tmp_path: Path) -> None:
    arguments = ["--kubeconfig", str(server.kubeconfig), "--output", str(tmp_path), API_TRANSCRIPT]
    done = CliRunner().invoke(main, ["api", *arguments, "--limited-token", LIMITED_TOKEN])
    assert done.exit_code == 0, done.output
    transcripts = {
        read_transcript["name"]: read_transcript for read_transcript in read_transcripts(tmp_path / "api.jsonl.xz")
    }
    recorded = transcripts[API_TRANSCRIPT]
    assert recorded["recorded"]["version"].startswith(KUBERNETES_VERSION)
    client = api_player.Client(server.url, ADMIN_TOKEN, LIMITED_TOKEN, insecure=True, timeout=LIMIT_S)
    options = Namespace(record=False, ignore=[], run=None, keep=False, slow=0)
    results = api_player.Player(client, options).play(json.loads(json.dumps(recorded)))
    del client
    assert {result["result"] for result in results} == {"pass"}
    assert sum("recorded" in transcript for transcript in transcripts.values()) == 1, "the others stay as they were"


def test_a_controller_transcript(server: Served, tmp_path: Path) -> None:
    arguments = ["--kubeconfig", str(server.kubeconfig), "--output", str(tmp_path), CONTROLLER_TRANSCRIPT]
    done = CliRunner().invoke(main, ["controllers", *arguments, "--plays", "1"])
    assert done.exit_code == 0, done.output
    recorded = {
        read_transcript["name"]: read_transcript
        for read_transcript in read_transcripts(tmp_path / "controllers.jsonl.xz")
    }
    assert recorded[CONTROLLER_TRANSCRIPT]["recorded"]["version"].startswith(KUBERNETES_VERSION)
    assert recorded[CONTROLLER_TRANSCRIPT]["recorded"]["plays"] == 1


@pytest.mark.parametrize("session", [SESSION] if KUBECTL else [])
def test_a_kubectl_session(session: str, server: Served, tmp_path: Path) -> None:
    arguments = ["--kubeconfig", str(server.kubeconfig), "--output", str(tmp_path), session]
    done = CliRunner().invoke(main, ["kubectl", *arguments])
    assert done.exit_code == 0, done.output
    file = tmp_path / "kubectl" / f"{session}.txt"
    assert file.read_text().startswith("# recorded: kubectl v")
    options = Namespace(
        kubeconfig=str(server.kubeconfig), kubectl=KUBECTL, controllers=False, record=False, base=None, lines=30
    )
    assert {each["result"] for each in kubectl_player.play(str(file), options)} == {"pass"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("apiVersion: v1", "cannot read a cluster from it", id="no cluster"),
        pytest.param(
            "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a, user: {}}]}",
            "the user has no token",
            id="no token",
        ),
    ],
)
def test_a_bad_kubeconfig(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    done = CliRunner().invoke(main, ["api", "--kubeconfig", str(file), "--output", str(tmp_path)])
    assert done.exit_code == 1
    assert text in done.output
