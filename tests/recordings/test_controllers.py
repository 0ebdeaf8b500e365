"""What kube-controller-manager v1.36.4 did, state by state: every recorded transcript, against `mooring up`.

Most of a play is waiting until nothing changes any more, so many are played at once. Transcripts that change nodes are
marked exclusive: each needs a cluster without other plays. Several clusters share them, one play after the other.

The machine may be busy. A step ends as soon as its state is the recorded one, however long that takes. A state that
passes by itself (a pod is ready, and available some seconds later) could be missed, so `_for_busy_machines` makes it
last longer than in the recording.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.recordings.served import ADMIN_TOKEN, Served, read_transcripts, serving
from tests.waiting import LIMIT_S, wait_until

HERE = Path(__file__).parent
PLAYER = HERE / "players" / "controllers" / "player.py"
TRANSCRIPTS = read_transcripts("controllers.jsonl.xz")
PLAYED_AT_ONCE = 16
EXCLUSIVE_CLUSTERS = 6
PASSING_S = 10
"""A state that the recording allows less time for does not last: it is a passing one."""
TOLERATED_LONGER_S = 20
LONGER_S = {
    "minReadySeconds": 20,
    "min_ready_s": 20,
    "progressDeadlineSeconds": 40,
    "activeDeadlineSeconds": 56,
    "ttlSecondsAfterFinished": 40,
    "tolerationSeconds": TOLERATED_LONGER_S,
    "seconds": TOLERATED_LONGER_S - 3,  # no deletion before: the player reads the clock some time after its request
    "wait": 4,  # until controllers have created the pods that the next action binds
}
"""By how much a field of a transcript grows."""
PERIODS = (
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=10250ms",  # recorded: 5250ms
    "--node-startup-grace-period=27250ms",  # recorded: 7250ms
    "--node-eviction-rate=10",
    "--pvclaimbinder-sync-period=2s",
)
"""As of the controllers that were recorded, but for the grace periods: heartbeats are late on a busy machine."""
CONTROLLERS = ("--controllers", "*,-root-ca-certificate-publisher-controller")
"""The recorded namespaces have no ConfigMap `kube-root-ca.crt`."""


def test_the_recordings_are_there() -> None:
    assert len(TRANSCRIPTS) == 104


def test_every_transcript_is_played_as_recorded(tmp_path: Path) -> None:
    clusters = _exclusive_groups()
    clusters.append([name for name, transcript in TRANSCRIPTS.items() if not transcript.get("exclusive")])
    with ThreadPoolExecutor(len(clusters)) as threads:
        outputs = threads.map(_play, [tmp_path / str(number) for number in range(len(clusters))], clusters)
        output = "".join(outputs)
    wrong = [name for name in TRANSCRIPTS if f"pass {name} (" not in output]
    assert not wrong, f"{wrong}\n{output}"


def _exclusive_groups() -> list[list[str]]:
    """The exclusive transcripts in groups that take about the same time."""
    exclusive = {name: _least_s(transcript) for name, transcript in TRANSCRIPTS.items() if transcript.get("exclusive")}
    groups: list[list[str]] = [[] for _ in range(EXCLUSIVE_CLUSTERS)]
    for name in sorted(exclusive, key=lambda name: -exclusive[name]):
        min(groups, key=lambda group: sum(exclusive[member] for member in group)).append(name)
    return groups


def _least_s(transcript: dict[str, Any]) -> float:
    """How long a play takes at least."""
    steps = _for_busy_machines(transcript)["steps"]
    return sum(max(1.0, float(step["settle"].get("min_s", 0))) for step in steps)


def _play(directory: Path, names: list[str]) -> str:
    """Play the transcripts on a cluster of their own. Return what the player prints."""
    directory.mkdir()
    files = [directory / f"{name}.json" for name in names]
    for name, file in zip(names, files, strict=True):
        file.write_text(json.dumps(_for_busy_machines(TRANSCRIPTS[name])), encoding="utf-8")
    with serving(directory, "--ephemeral", "--without", "scheduler,nodes", *CONTROLLERS, *PERIODS) as served:
        wait_until(lambda: _is_account_created(served))
        command = [sys.executable, PLAYER.name, "compare", "--server", served.url, "--token", ADMIN_TOKEN, "--insecure"]
        played = subprocess.run(
            [*command, "--jobs", str(PLAYED_AT_ONCE), *map(str, files)],
            cwd=PLAYER.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return played.stdout


def _for_busy_machines(transcript: dict[str, Any]) -> dict[str, Any]:
    """The transcript with more time for each step, and with passing states that last longer."""
    longer: dict[str, Any] = _longer(transcript)
    is_tolerated = "tolerationSeconds" in json.dumps(transcript)
    for step in longer["steps"]:
        settle = step.setdefault("settle", {})
        if is_tolerated and settle.get("max_s", LIMIT_S) > PASSING_S and "min_s" in settle:
            settle["min_s"] += TOLERATED_LONGER_S  # whether an eviction is due shows only after the toleration
        settle["max_s"] = LIMIT_S
    return longer


def _longer(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_longer(item) for item in tree]
    if isinstance(tree, dict):
        return {key: value + LONGER_S[key] if key in LONGER_S else _longer(value) for key, value in tree.items()}
    return tree


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
