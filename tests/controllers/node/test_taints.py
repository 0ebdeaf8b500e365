"""Which taints and labels a node must carry."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import Pod
from mooring.client.errors import ConflictError
from mooring.client.events.recorder import EventKey, EventRecorder
from mooring.client.interface import Client, PatchForm
from mooring.controllers.node.taints import (
    NOT_READY,
    REACHABLE,
    TRIES_MAX,
    UNREACHABLE,
    NodeWriter,
    TaintChange,
    labels_to_set,
    mark_pods_not_ready,
    no_execute_change,
    no_schedule_change,
    taints_after,
)
from tests.api.builders import taint
from tests.controllers.cluster_builders import node_document, pod_document, taints_of
from tests.controllers.world import World, play


def node(conditions: str = "", taints: str = "", *, unschedulable: bool = False, labels: str = "") -> Node:
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
        pytest.param(node("Ready=True MemoryPressure=False"), [], [], id="a node that is well carries none"),
        pytest.param(node("Ready=False"), ["not-ready"], [], id="not ready"),
        pytest.param(node("Ready=Unknown"), ["unreachable"], [], id="unreachable"),
        pytest.param(
            node("MemoryPressure=True DiskPressure=True PIDPressure=True NetworkUnavailable=True"),
            ["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"],
            [],
            id="pressures, in the order of the conditions",
        ),
        pytest.param(node("Ready=True", unschedulable=True), ["unschedulable"], [], id="cordoned"),
        pytest.param(
            node("Ready=Unknown", "node.kubernetes.io/not-ready:NoSchedule"),
            ["unreachable"],
            ["not-ready"],
            id="one in place of the other",
        ),
        pytest.param(
            node("Ready=True", "node.kubernetes.io/unschedulable:NoSchedule mine:NoSchedule"),
            [],
            ["unschedulable"],
            id="others' taints stay",
        ),
        pytest.param(
            node("Ready=True", "node.kubernetes.io/not-ready:NoExecute"), [], [], id="NoExecute is not its business"
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
    assert labels_to_set(node(labels=labels)) == wanted


class _Disturbed:
    """Before each patch somebody else taints the node."""

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

        def tell(key: EventKey, note: str) -> None:
            recorded.append((key[5].name, key[2], note))

        pods = [convert_as(Pod, document) for document in await world.pods()]
        vanished = convert_as(Pod, pod_document("vanished", "n1"))
        recorder = EventRecorder(tell, "node-controller")
        errors = await mark_pods_not_ready(world.client, recorder, world.clock, [*pods, vanished])
        assert errors == []
        assert recorded == [("ready", "NodeNotReady", "Node is not ready")]
        assert (await world.conditions("ready", POD))["Ready"][0] == "False"

    play(story, controllers=[])
