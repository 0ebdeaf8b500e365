"""The API as kube-apiserver v1.36.4 answered it: every recorded transcript, against `mooring up`.

A transcript is one test. Each process of the test run has a server of its own, because transcripts that set a global
default would disturb each other if they were played at once.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator

import pytest

from tests.recordings.players import api_player
from tests.recordings.served import ADMIN_TOKEN, LIMITED_TOKEN, Served, read_transcripts, serving
from tests.waiting import LIMIT_S

TRANSCRIPTS = read_transcripts("api.jsonl.xz")
DIFFERENCES_SHOWN_MAX = 12

# The player leaves its connections to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("api"), "--ephemeral", "--without", "scheduler,controllers,nodes") as served:
        yield served


def test_the_recordings_are_there() -> None:
    assert len(TRANSCRIPTS) == 169
    assert sum(len(transcript["steps"]) for transcript in TRANSCRIPTS.values()) == 2973


@pytest.mark.parametrize("name", sorted(TRANSCRIPTS))
def test_it_answers_as_recorded(name: str, server: Served) -> None:
    client = api_player.Client(server.url, ADMIN_TOKEN, LIMITED_TOKEN, insecure=True, timeout=LIMIT_S)
    options = Namespace(record=False, ignore=[], run=None, keep=False, slow=0)
    transcript = json.loads(json.dumps(TRANSCRIPTS[name]))
    for step in transcript["steps"]:
        if "collect" in step:  # ends as soon as all events are there
            step["collect"]["seconds"] = LIMIT_S
    results = api_player.Player(client, options).play(transcript)
    assert {result["result"] for result in results} == {"pass"}, _told(results)


def _told(results: list[dict[str, object]]) -> str:
    lines = []
    for result in results:
        if result["result"] != "pass":
            differences = result.get("diff") or [result["result"]]
            assert isinstance(differences, list)
            lines += [f"[{result['step']}] {result['name']}", *map(str, differences[:DIFFERENCES_SHOWN_MAX])]
    return "\n".join(lines)
