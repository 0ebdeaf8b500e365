"""What kube-controller-manager v1.36.4 did, state by state: every recorded transcript, against `mooring up`.

Most of a play is waiting until nothing changes any more, so many are played at once, by one process of the test run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recordings.served import ADMIN_TOKEN, read_transcripts, serving

HERE = Path(__file__).parent
PLAYER = HERE / "players" / "controllers" / "player.py"
TRANSCRIPTS = read_transcripts("controllers.jsonl.xz")
PLAYED_AT_ONCE = 12
PLAY_S_MAX = 900
PERIODS = (
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=5250ms",
    "--node-startup-grace-period=7250ms",
    "--node-eviction-rate=10",
    "--pvclaimbinder-sync-period=2s",
)
"""As the controllers had them that were recorded."""

pytestmark = pytest.mark.xdist_group("controllers")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the player tells after it has played everything."""
    directory = tmp_path_factory.mktemp("controllers")
    files = []
    for name, transcript in TRANSCRIPTS.items():
        files.append(directory / f"{name}.json")
        files[-1].write_text(json.dumps(transcript), encoding="utf-8")
    with serving(directory, "--ephemeral", "--without", "scheduler,nodes", *PERIODS) as served:
        command = [sys.executable, PLAYER.name, "compare", "--server", served.url, "--token", ADMIN_TOKEN, "--insecure"]
        played = subprocess.run(
            [*command, "--jobs", str(PLAYED_AT_ONCE), *map(str, files)],
            cwd=PLAYER.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PLAY_S_MAX,
            check=False,
        )
    return played.stdout


def test_the_recordings_are_there() -> None:
    assert len(TRANSCRIPTS) == 104


@pytest.mark.parametrize("name", sorted(TRANSCRIPTS))
def test_it_does_as_recorded(name: str, told: str) -> None:
    assert f"pass {name} (" in told, told
