"""What kube-controller-manager v1.36.4 did, state by state: every recorded transcript, against `mooring up`.

Most of a play is waiting until nothing changes any more, so many are played at once, by one process of the test run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.recordings.served import ADMIN_TOKEN, Served, read_transcripts, serving
from tests.waiting import LIMIT_S

HERE = Path(__file__).parent
PLAYER = HERE / "players" / "controllers" / "player.py"
TRANSCRIPTS = read_transcripts("controllers.jsonl.xz")
PLAYED_AT_ONCE = 12
TIMED_AT_ONCE = 3
PASSING_S = 10
"""A state that the recording allows less time for does not last: it is a passing one."""
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
    """One test, because many transcripts are played at once on one cluster.

    A step ends as soon as its state is the recorded one, however long that takes. Transcripts with states that pass by
    themselves after some seconds are played first, with few others, so that the states are seen.
    """
    timed = [name for name, transcript in TRANSCRIPTS.items() if _has_passing_states(transcript)]
    for name, transcript in TRANSCRIPTS.items():
        for step in transcript["steps"]:
            step.setdefault("settle", {})["max_s"] = LIMIT_S
        text = re.sub(r'"activeDeadlineSeconds": (\d+)', _longer, json.dumps(transcript))
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    with serving(tmp_path, "--ephemeral", "--without", "scheduler,nodes", *PERIODS) as served:
        told = _played(served, tmp_path, timed, TIMED_AT_ONCE)
        told += _played(served, tmp_path, [name for name in TRANSCRIPTS if name not in timed], PLAYED_AT_ONCE)
    wrong = [name for name in TRANSCRIPTS if f"pass {name} (" not in told]
    assert not wrong, f"{wrong}\n{told}"


def _longer(deadline: re.Match[str]) -> str:
    """A Job must be seen at work before its deadline, also on a machine that is ten times slower."""
    return f'"activeDeadlineSeconds": {15 * int(deadline[1])}'


def _has_passing_states(transcript: dict[str, Any]) -> bool:
    return any(step.get("settle", {}).get("max_s", LIMIT_S) <= PASSING_S for step in transcript["steps"])


def _played(served: Served, directory: Path, names: list[str], at_once: int) -> str:
    command = [sys.executable, PLAYER.name, "compare", "--server", served.url, "--token", ADMIN_TOKEN, "--insecure"]
    files = [str(directory / f"{name}.json") for name in names]
    played = subprocess.run(
        [*command, "--jobs", str(at_once), *files],
        cwd=PLAYER.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return played.stdout
