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

# cel-go reports syntax errors with the texts of its generated parser (ANTLR). Mooring reports one error with a text of
# its own at the same position. The test compares everything else in these two answers.
SYNTAX_ERRORS = {
    ("valid-deviceclasses", "bad cel"): (
        "no viable alternative at input '.('",
        "unexpected '(', expected a name",
    ),
    ("valid-resourceclaims", "bad cel"): (
        "mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, "
        "NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        "unexpected end of expression, expected an expression",
    ),
}

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
        if (name, step["name"]) in SYNTAX_ERRORS:
            step["expect"] = _with_text(step["expect"], *SYNTAX_ERRORS[name, step["name"]])
        if "collect" in step:  # ends as soon as all events are there
            step["collect"]["seconds"] = LIMIT_S
    results = api_player.Player(client, options).play(transcript)
    assert {result["result"] for result in results} == {"pass"}, _told(results)


def _with_text(expected: object, recorded: str, ours: str) -> object:
    document = json.dumps(expected)
    assert document.count(json.dumps(recorded)[1:-1]) == 2, "in the message and in its cause"
    return json.loads(document.replace(json.dumps(recorded)[1:-1], json.dumps(ours)[1:-1]))


def _told(results: list[dict[str, object]]) -> str:
    lines = []
    for result in results:
        if result["result"] != "pass":
            differences = result.get("diff") or [result["result"]]
            assert isinstance(differences, list)
            lines += [f"[{result['step']}] {result['name']}", *map(str, differences[:DIFFERENCES_SHOWN_MAX])]
    return "\n".join(lines)
