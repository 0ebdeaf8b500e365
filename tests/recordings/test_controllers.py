"""What kube-controller-manager v1.36.4 did, state by state: every recorded transcript, against `mooring up`.

Most of a play is waiting until nothing changes any more, so many are played at once, by one process of the test run.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.recordings.served import ADMIN_TOKEN, Served, read_transcripts, serving
from tests.waiting import LIMIT_S, wait_until

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
"""As of the controllers that were recorded."""
CONTROLLERS = ("--controllers", "*,-root-ca-certificate-publisher-controller")
"""The recorded namespaces have no ConfigMap `kube-root-ca.crt`."""


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
        (tmp_path / f"{name}.json").write_text(_for_busy_machines(json.dumps(transcript)), encoding="utf-8")
    with serving(tmp_path, "--ephemeral", "--without", "scheduler,nodes", *CONTROLLERS, *PERIODS) as served:
        wait_until(lambda: _is_account_created(served))
        told = _played(served, tmp_path, timed, TIMED_AT_ONCE)
        told += _played(served, tmp_path, [name for name in TRANSCRIPTS if name not in timed], PLAYED_AT_ONCE)
    wrong = [name for name in TRANSCRIPTS if f"pass {name} (" not in told]
    assert not wrong, f"{wrong}\n{told}"


def _for_busy_machines(transcript: str) -> str:
    """A Job with a deadline must have its pod before the player binds pods, and be seen at work before its deadline."""
    if '"activeDeadlineSeconds"' not in transcript:
        return transcript
    transcript = re.sub(r'"wait": ([\d.]+)', lambda wait: f'"wait": {10 * float(wait[1])}', transcript)
    return re.sub(r'"activeDeadlineSeconds": (\d+)', lambda s: f'"activeDeadlineSeconds": {15 * int(s[1])}', transcript)


def _is_account_created(served: Served) -> bool:
    """Whether the controllers run: they create an account in each namespace, also in one that is new."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "controllers-run"}}
    _ask(served, "/api/v1/namespaces", namespace)
    return _ask(served, "/api/v1/namespaces/controllers-run/serviceaccounts/default") == 200


def _ask(served: Served, path: str, body: object = None) -> int:
    request = urllib.request.Request(
        f"{served.url}{path}",
        json.dumps(body).encode() if body is not None else None,
        {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


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
