"""The health of a node by its heartbeats.

Which taints and labels a node must carry.
"""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Lease, LeaseSpec, Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import Pod
from mooring.client.errors import ConflictError
from mooring.client.events import EventKey, EventRecorder
from mooring.client.interface import Client, PatchForm
from mooring.controllers.node.health import (
    NOT_READY,
    REACHABLE,
    TRIES_MAX,
    UNREACHABLE,
    GracePeriods,
    NodeHealth,
    NodeWriter,
    TaintChange,
    evaluate_health,
    is_renewed,
    labels_to_set,
    mark_pods_not_ready,
    no_execute_change,
    no_schedule_change,
    taints_after,
)
from mooring.kit.clock import format_rfc3339, format_rfc3339_micro
from tests.api.builders import taint
from tests.controllers.cluster_builders import node_document, pod_document, taints_of
from tests.controllers.world import World, play

PERIODS = GracePeriods(monitor_s=50.0, startup_s=60.0)
CREATED_S = 1000.0


def node(*conditions: NodeCondition) -> Node:
    metadata = ObjectMeta(name="n1", creation_timestamp=format_rfc3339(CREATED_S))
    return Node(metadata=metadata, status=NodeStatus(conditions=conditions))


def ready(status: str = "True", beat_s: float = CREATED_S) -> NodeCondition:
    return NodeCondition(type="Ready", status=status, last_heartbeat_time=format_rfc3339(beat_s))


def lease(renewed_s: float) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=format_rfc3339_micro(renewed_s)))


@pytest.mark.parametrize(
    ("seen", "its_lease", "known", "now_s", "last_seen_s", "written"),
    [
        pytest.param(
            node(ready()), None, None, 5000.0, 5000.0, [], id="a node seen for the first time counts as seen now"
        ),
        pytest.param(node(), None, None, 1060.0, CREATED_S, [], id="a mute node has the start-up grace period"),
        pytest.param(
            node(),
            None,
            None,
            1060.5,
            CREATED_S,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="a mute node is silent after the start-up grace period",
        ),
        pytest.param(
            node(), lease(1050.0), None, 1070.0, 1070.0, [], id="a mute node with a lease is taken for healthy"
        ),
        pytest.param(
            node(ready(beat_s=1200.0)),
            None,
            NodeHealth(1100.0, ready(beat_s=1100.0)),
            1210.0,
            1210.0,
            [],
            id="a new heartbeat counts from when it is noticed",
        ),
        pytest.param(
            node(ready()), None, NodeHealth(1100.0, ready()), 1150.0, 1100.0, [], id="up to its grace period it is well"
        ),
        pytest.param(
            node(ready()),
            None,
            NodeHealth(1100.0, ready()),
            1150.5,
            1100.0,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="after its grace period it is silent",
        ),
        pytest.param(
            node(ready()),
            lease(1140.0),
            NodeHealth(1100.0, ready(), lease(1130.0)),
            1150.5,
            1150.5,
            [],
            id="a renewed lease is as good as a heartbeat",
        ),
        pytest.param(
            node(ready()),
            lease(1130.0),
            NodeHealth(1100.0, ready(), lease(1130.0)),
            1150.5,
            1100.0,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="a lease that is not renewed does not help",
        ),
        pytest.param(
            node(ready("Unknown")),
            None,
            NodeHealth(1100.0, ready("Unknown")),
            2000.0,
            1100.0,
            [],
            id="what is unknown already is not written again",
        ),
    ],
)
def test_when_a_node_is_silent(
    seen: Node, its_lease: Lease | None, known: NodeHealth | None, now_s: float, last_seen_s: float, written: list[str]
) -> None:
    health_update = evaluate_health(seen, its_lease, known, PERIODS, now_s=now_s, stamp="now")
    assert health_update.health.last_seen_s == last_seen_s
    assert [condition["type"] for condition in health_update.conditions] == written


def test_a_silent_node_says_unknown_and_was_ready() -> None:
    pressure = NodeCondition(type="MemoryPressure", status="False")
    health_update = evaluate_health(
        node(ready(), pressure), None, NodeHealth(CREATED_S, ready()), PERIODS, now_s=2000.0, stamp="now"
    )
    assert (health_update.was_ready, health_update.ready_status) == (True, "Unknown")
    assert health_update.conditions[0] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "now",
    }
    assert health_update.conditions[2] == {
        "type": "DiskPressure",
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": format_rfc3339(CREATED_S),
        "lastTransitionTime": "now",
    }
    assert not health_update.health.is_ready


def test_after_a_heartbeat_the_lease_counts_as_renewed_once_more() -> None:
    known = NodeHealth(1100.0, ready(beat_s=1100.0), lease(1105.0))
    first = evaluate_health(node(ready(beat_s=1200.0)), lease(1105.0), known, PERIODS, now_s=1210.0, stamp="now")
    assert first.health.lease is None
    second = evaluate_health(
        node(ready(beat_s=1200.0)), lease(1105.0), first.health, PERIODS, now_s=1215.0, stamp="now"
    )
    assert second.health.last_seen_s == 1215.0


def renewed_at(text: str | None) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=text))


@pytest.mark.parametrize(
    ("before", "after", "is_so"),
    [
        pytest.param("2026-01-01T00:00:09.900000Z", "2026-01-01T00:00:10.000000Z", True, id="later"),
        pytest.param("2026-01-01T00:00:10.000000Z", "2026-01-01T00:00:09.900000Z", False, id="earlier"),
        pytest.param("2026-01-01T00:00:10.000000Z", "2026-01-01T00:00:10.000000Z", False, id="the same"),
        pytest.param("2026-01-01T00:00:10Z", "2026-01-01T00:00:10.5Z", True, id="written otherwise"),
        pytest.param("2026-01-01T02:00:00.000000+02:00", "2026-01-01T01:00:00.000000Z", True, id="of another zone"),
        pytest.param(None, "2026-01-01T00:00:10.000000Z", False, id="for the first time"),
    ],
)
def test_a_lease_is_renewed_if_its_time_is_later(before: str | None, after: str, is_so: bool) -> None:
    assert is_renewed(renewed_at(before), renewed_at(after)) is is_so


def node_view(conditions: str = "", taints: str = "", *, unschedulable: bool = False, labels: str = "") -> Node:
    """`Ready=False MemoryPressure=True`, `a:NoSchedule`."""
    pairs = [text.split("=") for text in conditions.split()]
    return Node(
        metadata=ObjectMeta(labels=dict(text.split("=") for text in labels.split())),
        spec=NodeSpec(taints=tuple(taint(text) for text in taints.split()), unschedulable=unschedulable),
        status=NodeStatus(conditions=tuple(NodeCondition(type=type, status=status) for type, status in pairs)),
    )


def keys(taints: tuple[Taint, ...]) -> list[str]:
    assert all(taint.effect == "NoSchedule" for taint in taints)
    return [taint.key.removeprefix("node.kubernetes.io/") for taint in taints]


@pytest.mark.parametrize(
    ("seen", "added", "removed"),
    [
        pytest.param(node_view("Ready=True MemoryPressure=False"), [], [], id="a node that is well carries none"),
        pytest.param(node_view("Ready=False"), ["not-ready"], [], id="not ready"),
        pytest.param(node_view("Ready=Unknown"), ["unreachable"], [], id="unreachable"),
        pytest.param(
            node_view("MemoryPressure=True DiskPressure=True PIDPressure=True NetworkUnavailable=True"),
            ["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"],
            [],
            id="pressures, in the order of the conditions",
        ),
        pytest.param(node_view("Ready=True", unschedulable=True), ["unschedulable"], [], id="cordoned"),
        pytest.param(
            node_view("Ready=Unknown", "node.kubernetes.io/not-ready:NoSchedule"),
            ["unreachable"],
            ["not-ready"],
            id="one in place of the other",
        ),
        pytest.param(
            node_view("Ready=True", "node.kubernetes.io/unschedulable:NoSchedule mine:NoSchedule"),
            [],
            ["unschedulable"],
            id="others' taints stay",
        ),
        pytest.param(
            node_view("Ready=True", "node.kubernetes.io/not-ready:NoExecute"),
            [],
            [],
            id="NoExecute is not its business",
        ),
    ],
)
def test_no_schedule_taints_mirror_the_state(seen: Node, added: list[str], removed: list[str]) -> None:
    change = no_schedule_change(seen)
    assert (keys(change.added), keys(change.removed)) == (added, removed)


@pytest.mark.parametrize(
    ("status", "change"),
    [
        pytest.param("True", None, id="ready"),
        pytest.param("False", TaintChange((NOT_READY,), (UNREACHABLE,)), id="not ready"),
        pytest.param("Unknown", TaintChange((UNREACHABLE,), (NOT_READY,)), id="unreachable"),
    ],
)
def test_no_execute_taints_exclude_each_other(status: str, change: TaintChange | None) -> None:
    assert no_execute_change(status) == change


MINE: Document = {"key": "mine", "effect": "NoExecute"}
OLD: Document = {"key": NOT_READY.key, "effect": "NoExecute", "timeAdded": "then"}
NEW: Document = {"key": UNREACHABLE.key, "effect": "NoExecute", "timeAdded": "now"}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        pytest.param([MINE], TaintChange((UNREACHABLE,), (NOT_READY,)), [MINE, NEW], id="added at the end"),
        pytest.param([OLD, MINE], TaintChange((UNREACHABLE,), (NOT_READY,)), [MINE, NEW], id="swapped"),
        pytest.param(
            [{**NEW, "timeAdded": "then"}, MINE], TaintChange((UNREACHABLE,)), [NEW, MINE], id="added again: a new time"
        ),
        pytest.param([NEW], TaintChange((UNREACHABLE,)), None, id="the very same is no change"),
        pytest.param([OLD, NEW, MINE], REACHABLE, [MINE], id="both taken away"),
        pytest.param([MINE], REACHABLE, None, id="nothing to take away"),
    ],
)
def test_the_list_after_a_change(before: list[Document], change: TaintChange, after: list[Document] | None) -> None:
    assert taints_after(before, change, "now") == after


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        pytest.param("", {}, id="nothing to copy"),
        pytest.param(
            "kubernetes.io/os=linux kubernetes.io/arch=amd64",
            {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"},
            id="old names are added",
        ),
        pytest.param(
            "kubernetes.io/os=linux beta.kubernetes.io/os=windows", {"beta.kubernetes.io/os": "linux"}, id="corrected"
        ),
        pytest.param("beta.kubernetes.io/os=windows", {}, id="an old name alone is left"),
    ],
)
def test_old_labels_follow_the_new_ones(labels: str, wanted: dict[str, str]) -> None:
    assert labels_to_set(node_view(labels=labels)) == wanted


class _Disturbed:
    """Before each patch another client taints the node."""

    def __init__(self, inner: Client, times: int) -> None:
        self._inner = inner
        self._times = times

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._inner.get(kind, namespace, name)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm) -> bytes:
        if self._times:
            self._times -= 1
            taints = [{"key": f"other{self._times}", "effect": "NoSchedule"}]
            await self._inner.patch(kind, namespace, name, {"spec": {"taints": taints}}, form=PatchForm.MERGE)
        return await self._inner.patch(kind, namespace, name, patch, form=form)


@pytest.mark.parametrize(
    ("times", "is_written"),
    [
        pytest.param(0, True, id="undisturbed"),
        pytest.param(TRIES_MAX - 1, True, id="disturbed now and then"),
        pytest.param(TRIES_MAX, False, id="disturbed each time"),
    ],
)
def test_taints_of_others_are_kept(times: int, is_written: bool) -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["mine:NoExecute"]))
        client: Client = _Disturbed(world.client, times)  # type: ignore[assignment]
        writer = NodeWriter(client, world.clock, world.entropy)
        if is_written:
            await writer.change_taints("n1", TaintChange((UNREACHABLE,)))
            others = "other0:NoSchedule" if times else "mine:NoExecute"
            assert await taints_of(world, "n1") == sorted([others, "node.kubernetes.io/unreachable:NoExecute"])
        else:
            with pytest.raises(ConflictError):
                await writer.change_taints("n1", TaintChange((UNREACHABLE,)))

    play(story, controllers=[])


def test_conditions_are_written_on_the_state_that_was_seen() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        metadata = (await world.get(NODE, "n1"))["metadata"]
        writer = NodeWriter(world.client, world.clock, world.entropy)
        uid, revision = metadata["uid"], metadata["resourceVersion"]
        await writer.set_conditions("n1", uid, revision, [{"type": "Ready", "status": "Unknown"}])
        with pytest.raises(ConflictError):
            await writer.set_conditions("n1", uid, revision, [{"type": "Ready", "status": "False"}])
        assert (await world.conditions("n1", NODE))["Ready"][0] == "Unknown"

    play(story, controllers=[])


def test_pods_that_claim_to_be_ready_are_marked() -> None:
    async def story(world: World) -> None:
        unready, fresh = pod_document("unready", "n1"), pod_document("fresh", "n1")
        unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        fresh["status"]["conditions"] = []
        await world.create(pod_document("ready", "n1"), unready, fresh)
        recorded: list[tuple[str, str, str]] = []

        def record(key: EventKey, note: str) -> None:
            recorded.append((key.regarding.name, key.reason, note))

        pods = [convert_as(Pod, document) for document in await world.pods()]
        vanished = convert_as(Pod, pod_document("vanished", "n1"))
        recorder = EventRecorder(record, "node-controller")
        errors = await mark_pods_not_ready(world.client, recorder, world.clock, [*pods, vanished])
        assert errors == []
        assert recorded == [("ready", "NodeNotReady", "Node is not ready")]
        assert (await world.conditions("ready", POD))["Ready"][0] == "False"

    play(story, controllers=[])
