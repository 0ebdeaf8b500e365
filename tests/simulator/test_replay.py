"""Recordings of schedulers, and their replay: every story of `tests/scheduler/stories` is replayed, too."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.interface import Client
from mooring.cluster.embedded import Cluster
from mooring.cluster.settings import ClusterSettings, ControlPlaneSettings
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.reporting import recording as recording_module
from mooring.scheduler.reporting.recording import PREVIOUS, Recording, RecordingError, RecordingLine
from mooring.simulator.errors import ScenarioError
from mooring.simulator.replay import RecordingReader
from tests.builders import HOSTNAME, node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.device_builders import GPU, claim, claiming, device_class, gpus, wants
from tests.scheduler.config.builders import configuration
from tests.scheduler.world import World, open_world, plain, replayed
from tests.storage_builders import from_nodes, storage_class, volume, waiting
from tests.waiting import LIMIT_S, LOOK_EACH_S

ROOT = Path(__file__).parents[2]
SPREADING = configuration(
    profiles=[
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
            ],
        }
    ]
)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


async def a_busy_minute(world: World) -> None:
    """Pods of several sizes, a binding that fails, a preemption, a node that leaves, a pod that fits nowhere."""
    await world.create(*(node(f"n{n}", cpu=4 + n % 3, zone="abc"[n % 3]) for n in range(6)))
    await world.create(*(pod(f"web-{n}", cpu=1 + n % 2, labels={"app": "web"}) for n in range(12)))
    await world.settle(5)
    await world.create(pod("huge", cpu=99))
    await world.create(pod("important", cpu=4, priority=100))
    await world.settle(5)
    await world.delete("web-3")
    await world.delete("web-4")
    await world.create(*(pod(f"late-{n}", cpu=1) for n in range(4)))
    await world.settle(20)


def recorded_minute(path: Path, *, bytes_max: int = 1 << 30, seed: int = 1) -> None:
    clock = VirtualClock()

    def through(client: Client) -> Client:
        fault = Fault("bind", Outcome.CONFLICT, where=lambda request: request.name in ("web-2", "late-1"))
        return FaultyClient(client, clock, Script(fault))

    async def main() -> None:
        async with open_world(clock, Entropy(seed)) as world:
            recording = Recording(path, clock, bytes_max=bytes_max)
            world.start_scheduler(None, client=through(world.client), recording=recording)
            await world.settle()
            await a_busy_minute(world)

    run(main(), clock)


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("minute") / "run.recording"
    recorded_minute(path)
    return path


def test_a_live_cluster_is_recorded_and_its_replay_agrees_decision_by_decision(tmp_path: Path) -> None:
    path = tmp_path / "run.recording"
    settings = ClusterSettings(control_plane=ControlPlaneSettings(record=str(path)))
    names = [f"web-{n}" for n in range(30)]

    async def main() -> dict[str, str]:
        async with asyncio.timeout(LIMIT_S), Cluster(nodes=8, settings=settings) as cluster:
            async with cluster.async_client() as client, TaskGroup("pods") as group:
                for number, name in enumerate(names):
                    document = plain(pod(name, cpu=1 + number % 5))
                    group.start(client.create(POD, "default", document), name=name)
            async with cluster.async_client() as client:
                while True:
                    found = [decode_as(Pod, raw) for raw in (await client.list(POD)).items]
                    if sum(bool(view.spec.node_name) for view in found) == len(names):
                        return {view.metadata.name: view.spec.node_name for view in found}
                    await SystemClock().wait(LOOK_EACH_S)

    bound = run_real(main())
    report = replayed(path, load_configuration(None))
    assert (report.attempts, report.differing, report.end) == (len(names), 0, "the scheduler stopped")
    decided = {line["pod"].partition("/")[2]: line["node"] for line in lines_of(path) if line.get("type") == "decision"}
    assert decided == bound
    other = replayed(path, load_configuration(SPREADING))
    assert other.differing == 1, "an exact replay ends with the first difference"
    first = other.differences[0]
    assert first.recorded.score != first.replayed.score


def test_what_is_recorded(minute: Path) -> None:
    header, *lines = lines_of(minute)
    assert (header["recording"], header["configuration"]["kind"]) == (2, "KubeSchedulerConfiguration")
    assert {line["type"] for line in lines} == {"list", "item", "change", "decision", "binding", "end"}
    outcomes = {line["outcome"] for line in lines if line["type"] == "binding"}
    assert outcomes == {"bound", "failed"}
    (preemption,) = [line for line in lines if line.get("preemptionNode")]
    assert preemption["pod"] == "default/important"
    assert preemption["victims"]


def test_the_lines_are_documented() -> None:
    text = (ROOT / "docs/simulate.md").read_text()
    table = text.partition("one JSON document per line:")[2].partition("`at` is in seconds")[0]
    kinds = {line.__struct_config__.tag for line in get_args(RecordingLine)}
    assert set(re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)) == kinds


def test_the_replay_of_a_busy_minute_agrees(minute: Path) -> None:
    report = replayed(minute, load_configuration(None))
    assert report.attempts >= 18
    assert report.differences == []


def test_another_seed_is_a_difference(minute: Path, tmp_path: Path) -> None:
    header, *lines = lines_of(minute)
    text = "\n".join(json.dumps(line) for line in ({**header, "seed": "12345"}, *lines)) + "\n"
    other = tmp_path / "other.recording"
    other.write_bytes(gzip.compress(text.encode()))
    report = replayed(other, load_configuration(None))
    assert report.differing == 1
    difference = report.differences[0]
    assert difference.recorded.node != difference.replayed.node
    assert difference.recorded.score == difference.replayed.score, "a tie"


def test_another_configuration_is_asked_about_the_recorded_cluster(minute: Path) -> None:
    same = replayed(minute, load_configuration(None), is_exact=False)
    assert same.differing == 0, "ties that include the recorded node are no differences"
    report = replayed(minute, load_configuration(SPREADING), is_exact=False)
    assert report.attempts == same.attempts
    assert report.moved == report.differing > 1, "other nodes are chosen, and whether pods fit does not change"
    explained = report.differences[0]
    assert set(explained.scores) == {explained.recorded.node, explained.replayed.node}


def test_a_recording_whose_scheduler_was_killed_is_replayed_up_to_its_last_line(minute: Path, tmp_path: Path) -> None:
    whole, total = minute.read_bytes(), len(lines_of(minute))
    cut = tmp_path / "cut.recording"
    counts = []
    for length in range(len(whole) // 4, len(whole), len(whole) // 23):
        cut.write_bytes(whole[:length])
        report = replayed(cut, load_configuration(None))
        assert (report.differing, report.end) == (0, "")
        counts.append(report.lines)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] < total


def test_a_full_recording_ends_and_the_scheduler_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording_module, "CHUNK_BYTES", 100)
    path = tmp_path / "small.recording"
    recorded_minute(path, bytes_max=6000)
    assert "small.recording ends: its size of 6000 bytes is reached; the scheduler goes on" in caplog.text
    assert 6000 <= path.stat().st_size < 8000
    report = replayed(path, load_configuration(None))
    assert (report.differing, report.end) == (0, "its size of 6000 bytes is reached")
    assert report.attempts > 0


@pytest.mark.parametrize(("limit", "words"), [("WAITING_BYTES_MAX", "wait for the disk"), ("", "cannot be written")])
def test_a_disk_that_fails_ends_the_recording_only(
    limit: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.recording"
    if limit:
        monkeypatch.setattr(recording_module, limit, 1000)
    else:
        path = Path("/dev/full")
    recorded_minute(path)
    assert words in caplog.text
    assert "the scheduler goes on" in caplog.text


def rewritten(path: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a recording whose lines are changed."""
    lines = lines_of(path)
    for line in lines:
        change(line)
    to.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return to


def test_a_write_of_pre_bind_that_is_not_what_reserve_chose_is_a_difference(tmp_path: Path) -> None:
    path, clock = tmp_path / "run.recording", VirtualClock()

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            world.start_scheduler(None, recording=Recording(path, clock))
            await world.settle()
            await world.create(node("n1", cpu=2), storage_class("local"), waiting("data", version=""))
            await world.create(volume("disk", of_class="local", reached=from_nodes(HOSTNAME, "n1"), version=""))
            await world.create(gpus("n1", 1), device_class(), claim("c", wants()))
            await world.create(pod("db", cpu=1, claims=["data"]), claiming("learner", "c"))
            await world.settle()

    run(main(), clock)
    assert replayed(path, load_configuration(None)).differing == 0
    kinds = [line["kind"] for line in lines_of(path) if line.get("type") == "write"]
    assert sorted(kinds) == ["persistentvolumes", "resourceclaims.resource.k8s.io"]

    def of_another_claim(line: dict[str, Any]) -> None:
        if line.get("type") == "write" and line["plugin"] == "VolumeBinding":
            line["object"]["spec"]["claimRef"]["name"] = "another"

    def another_device(line: dict[str, Any]) -> None:
        if line.get("type") == "write" and line["plugin"] == "DynamicResources":
            line["object"]["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-7"

    for change, recorded, chosen in (
        (of_another_claim, "VolumeBinding wrote PersistentVolume disk", "PersistentVolume disk for claim default/data"),
        (another_device, "DynamicResources wrote ResourceClaim default/c", f"device {GPU}/n1/gpu-0"),
    ):
        (difference,) = replayed(rewritten(path, tmp_path / "x", change), load_configuration(None)).differences
        assert difference.recorded.message == f"PreBind of {recorded}"
        assert difference.replayed.message.endswith(f"chose {chosen}")
        assert replayed(tmp_path / "x", load_configuration(None), is_exact=False).differing == 0


def test_a_list_has_a_line_for_each_object_and_may_be_larger_than_what_may_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock = tmp_path / "run.recording", VirtualClock()
    monkeypatch.setattr(recording_module, "WAITING_BYTES_MAX", 20_000)

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            await world.create(*(node(f"n{n}", cpu=4) for n in range(400)))
            world.start_scheduler(None, recording=Recording(path, clock))
            await world.settle()
            await world.create(pod("web", cpu=1))
            await world.settle()

    run(main(), clock)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert len(b"".join(lines)) > 40_000
    assert max(map(len, lines[1:])) < 1000
    report = replayed(path, load_configuration(None))
    assert (report.attempts, report.differing, report.end) == (1, 0, "the scheduler stopped")


def test_an_existing_recording_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.recording"
    recorded_minute(path)
    first = path.read_bytes()
    recorded_minute(path, seed=2)
    assert path.with_name(path.name + PREVIOUS).read_bytes() == first != path.read_bytes()
    with pytest.raises(RecordingError, match="No such file or directory"):
        Recording(tmp_path / "nowhere" / "x", VirtualClock())
    with pytest.raises(RecordingError, match="Is a directory"):
        Recording(tmp_path, VirtualClock())


HEADER = (
    '{"recording":2,"mooring":"0.1.0","startedAt":"2026-01-01T00:00:00Z","seed":"1","stream":"x","configuration":{}}\n'
)
LIST = '{"type":"list","at":2.0,"kind":"nodes","part":"begin"}\n'
ITEM = '{"type":"item","at":2.0,"kind":"nodes","object":{}}\n'
POD_LINE = (
    '{"type":"change","at":1.0,"kind":"pods","change":"ADDED","object":{"metadata":{"name":"web","namespace":"default",'
    '"uid":"u"},"spec":{"containers":[{"name":"c"}]}}}\n'
)
DECISION = '{"type":"decision","at":1.0,"pod":"default/web","uid":"u","message":"no nodes","node":"n1"}\n'
ERRORS: dict[str, tuple[str | bytes, str]] = {
    "no recording": (b"apiVersion: v1\n", "bad.recording: is no recording; wanted a file that"),
    "empty": (gzip.compress(b""), "bad.recording: has no complete line"),
    "no header": (LIST, "bad.recording:1: is no header of a recording: Object missing required field `recording`"),
    "a later format": (HEADER.replace(":2,", ":9,", 1), ":1: has version 9 of the format; this mooring reads 2"),
    "an older format": (
        HEADER.replace(":2,", ":1,", 1),
        ":1: has version 1 of the format; this mooring reads 2; replay it with the one that recorded it, 0.1.0",
    ),
    "no seed": (HEADER.replace('"1"', '"one"'), ":1: is no header of a recording: invalid literal for int()"),
    "no time": (HEADER.replace("2026-01", "then"), ":1: is no header of a recording"),
    "no node": (HEADER + POD_LINE + DECISION, ":3: places pod default/web on node n1, which does not exist"),
    "a page of nodes": (HEADER + LIST + LIST.replace("begin", "page"), ":3: has a page of nodes, whose lists have no"),
    "no list": (HEADER + ITEM, ":2: belongs to a list of nodes, which has not begun"),
    "no beginning": (HEADER + LIST.replace("begin", "end"), ":2: belongs to a list of nodes, which has not begun"),
    "no JSON": (HEADER + LIST + "{]\n", "bad.recording:3: cannot be read: JSON is malformed"),
    "an unknown line": (HEADER + '{"type":"joke","at":0}\n', "bad.recording:2: cannot be read: Invalid value 'joke'"),
    "a bad number": (HEADER + LIST.replace("2.0", '"x"'), "bad.recording:2: cannot be read: Expected `float`"),
    "time decreases": (HEADER + LIST + LIST.replace("2.0", "1.5"), ":3: time decreases from 2.0 to 1.5 s"),
    "a bad object": (HEADER + ITEM.replace("{}", '{"spec":7}'), "bad.recording:2: Node: spec: expected an object"),
    "an unknown kind": (HEADER + LIST.replace("nodes", "boats"), ":2: has boats, which no plugin of this"),
    "a long line": (HEADER + " " * (33 << 20), "bad.recording:2: is longer than 32 MiB"),
    "damaged": (gzip.compress(HEADER.encode())[:-8] + b"\xff" * 50, "bad.recording: is damaged after line 0"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_have_file_and_line(case: str, tmp_path: Path) -> None:
    content, words = ERRORS[case]
    path = tmp_path / "bad.recording"
    path.write_bytes(gzip.compress(content.encode()) if isinstance(content, str) else content)
    with pytest.raises(ScenarioError) as caught:
        replayed(path, load_configuration(None))
    assert words in str(caught.value)


def test_lines_are_read_without_the_whole_file_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.recording"
    names = Entropy(1)
    with gzip.open(path, "wt") as file:
        file.write(HEADER)
        for _ in range(5000):
            file.write(LIST.replace("nodes", names.uuid()))
    reader = RecordingReader(path)
    lines = iter(reader)
    next(lines)
    assert reader.share < 1
    assert sum(1 for _ in lines) == 5000 - 1
    assert reader.share == 1
