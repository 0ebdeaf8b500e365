"""What kube-controller-manager v1.36.4 did, state by state: every recorded transcript, against `mooring up`.

Most of a play is waiting until nothing changes any more, so many are played at once, by one process of the test run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.recordings.served import ADMIN_TOKEN, Served, read_transcripts, serving

HERE = Path(__file__).parent
PLAYER = HERE / "players" / "controllers" / "player.py"
TRANSCRIPTS = read_transcripts("controllers.jsonl.xz")
PLAYED_AT_ONCE = 12
PLAY_S_MAX = 1_500
PERIODS = (
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=5250ms",
    "--node-startup-grace-period=7250ms",
    "--node-eviction-rate=10",
    "--pvclaimbinder-sync-period=2s",
)
"""As the controllers had them that were recorded."""


def test_the_recordings_are_there() -> None:
    assert len(TRANSCRIPTS) == 104


def test_every_transcript_is_played_as_recorded(tmp_path: Path) -> None:
    """One test, because all of them are played at once on one cluster.

    They wait on real time, some for seconds that are counted: on a busy machine one may come too late. What fails is
    therefore played once more, alone.
    """
    for name, transcript in TRANSCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(transcript), encoding="utf-8")
    with serving(tmp_path, "--ephemeral", "--without", "scheduler,nodes", *PERIODS) as served:
        told = _played(served, tmp_path, list(TRANSCRIPTS), PLAYED_AT_ONCE)
        wrong = [name for name in TRANSCRIPTS if f"pass {name} (" not in told]
        if wrong:
            told = _played(served, tmp_path, wrong, 1)
    still_wrong = [name for name in wrong if f"pass {name} (" not in told]
    assert not still_wrong, f"{still_wrong}\n{told}"


def _played(served: Served, directory: Path, names: list[str], at_once: int) -> str:
    command = [sys.executable, PLAYER.name, "compare", "--server", served.url, "--token", ADMIN_TOKEN, "--insecure"]
    files = [str(directory / f"{name}.json") for name in names]
    played = subprocess.run(
        [*command, "--jobs", str(at_once), *files],
        cwd=PLAYER.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PLAY_S_MAX,
        check=False,
    )
    return played.stdout
