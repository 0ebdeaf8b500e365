"""Volumes in the running scheduler: decisions about claims are written, carried out by controllers, and waited for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.api.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import BOUND_BY_CONTROLLER
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.scheduler.queue.queued_pod import QueueState
from tests.builders import HOSTNAME, node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.stories.actors import (
    HOLDS_NOTHING,
    bind_volumes,
    claim_of,
    complete,
    held_by_volume_binding,
    reject_provisioning,
    running,
    selected_node,
    volume_of,
)
from tests.scheduler.world import Through, World, play, played
from tests.storage_builders import from_nodes, storage_class, volume, waiting

MADE = storage_class("made", provisioner="disks.example.com")
LOCAL = storage_class("local")


def local_volume(name: str, on: str, *, of_class: str = "local") -> object:
    return volume(name, of_class=of_class, reached=from_nodes(HOSTNAME, on), version="")


async def with_a_local_volume(world: World) -> None:
    """A pod that waits for its claim to be bound to the volume on n1; there is a node n2, too."""
    await world.create(LOCAL, local_volume("disk-1", "n1"), waiting("data", version=""))  # type: ignore[arg-type]
    await world.create(node("n1", cpu=2), node("n2", cpu=2), pod("db", cpu=1, claims=["data"]))
    await world.settle()


async def with_a_volume_to_be_made(world: World) -> None:
    await world.create(MADE, waiting("data", of_class="made", version=""))
    await world.create(node("n1", cpu=2), node("n2", cpu=2), pod("db", cpu=1, claims=["data"]))
    await world.settle()


async def make_volume(world: World, name: str = "made-1", *, on: str = "") -> None:
    """The provisioner has made a volume for the claim `data`."""
    where = on or await selected_node(world, "data")
    uid = str((await claim_of(world, "data"))["metadata"]["uid"])
    reached = from_nodes(HOSTNAME, where)
    await world.create(volume(name, of_class="made", reached=reached, claimed_by="data", claimed_uid=uid, version=""))


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


def is_over(world: World) -> bool:
    """Nothing is under way, and VolumeBinding holds nothing."""
    scheduler = world.scheduler
    assert held_by_volume_binding(scheduler) == HOLDS_NOTHING
    return not (scheduler.bindings.running or len(scheduler.assumed_pods))


# --- as it should be ------------------------------------------------------------------------------------------------


@played()
async def test_a_claim_gets_the_volume_that_its_pod_can_reach_and_then_the_pod_is_bound(world: World) -> None:
    await with_a_local_volume(world)
    assert await world.node_of("db") == ""
    assert (await world.pod("db")).status.nominated_node_name == "n1"
    claim, written = await claim_of(world, "data"), await volume_of(world, "disk-1")
    assert written["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert written["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": claim["metadata"]["uid"],
        "resourceVersion": claim["metadata"]["resourceVersion"],
    }
    assert "volumeName" not in claim["spec"] or not claim["spec"]["volumeName"], "that is the controller's to write"
    assert await bind_volumes(world) == ["data"]
    await world.settle()
    assert await world.node_of("db") == "n1"
    assert is_over(world)


@played()
async def test_a_claim_reports_the_provisioner_for_which_node_a_volume_is_wanted(world: World) -> None:
    await with_a_volume_to_be_made(world)
    node_name = await selected_node(world, "data")
    assert node_name in ("n1", "n2")
    assert await world.node_of("db") == ""
    await make_volume(world)
    await complete(world, "data", "made-1")
    await world.settle()
    assert await world.node_of("db") == node_name
    assert is_over(world)


@played(through=faulty(Fault("next_batch", kind=PERSISTENT_VOLUME, answer_delay_s=20, times=None)))
async def test_a_volume_that_the_watch_reports_of_after_its_claim_is_waited_for_no_longer_than_that(
    world: World,
) -> None:
    """Claims and volumes are watched apart: the claim may be bound to a volume that nobody has heard of yet."""
    await with_a_volume_to_be_made(world)
    await make_volume(world)
    await complete(world, "data", "made-1")
    await world.settle(5)
    assert await world.node_of("db") == ""
    await world.settle(30)
    assert await world.node_of("db") != ""
    assert is_over(world)


@played()
async def test_two_pods_that_want_the_only_volume_get_it_one_after_the_other(world: World) -> None:
    await world.create(LOCAL, local_volume("disk-1", "n1"), node("n1", cpu=2))  # type: ignore[arg-type]
    await world.create(waiting("data-a", version=""), waiting("data-b", version=""))
    await world.create(pod("a", cpu=1, claims=["data-a"]), pod("b", cpu=1, claims=["data-b"]))
    await world.settle()
    await bind_volumes(world)
    await world.settle()
    assert await world.node_of("a") == "n1"
    assert await world.node_of("b") == ""
    reported = await world.condition("b")
    assert reported is not None
    assert "1 node(s) didn't find available persistent volumes to bind" in reported[2]
    await world.create(local_volume("disk-2", "n1"))  # type: ignore[arg-type]
    await world.settle(15)
    await bind_volumes(world)
    await world.settle()
    assert await world.node_of("b") == "n1"
    assert is_over(world)


@played()
async def test_pods_that_share_a_claim_go_to_the_same_node(world: World) -> None:
    await world.create(MADE, waiting("data", of_class="made", version=""))
    await world.create(*(node(f"n{n}", cpu=2) for n in range(3)))
    await world.create(pod("a", cpu=1, claims=["data"]), pod("b", cpu=1, claims=["data"]))
    await world.settle()
    await make_volume(world)
    await complete(world, "data", "made-1")
    await world.settle(60)
    assert await world.node_of("a") == await world.node_of("b") != ""
    assert is_over(world)


# --- as it should not be --------------------------------------------------------------------------------------------


@played()
async def test_a_pod_whose_provisioner_fails_gets_another_node(world: World) -> None:
    await with_a_volume_to_be_made(world)
    first = await selected_node(world, "data")
    await world.patch(first, {"spec": {"unschedulable": True}}, kind=NODE)
    await reject_provisioning(world, "data")
    await world.settle()
    assert ("db", "FailedScheduling", PROVISIONING_FAILED) in await world.events()
    await world.settle(15)
    second = await selected_node(world, "data")
    assert {first, second} == {"n1", "n2"}
    await make_volume(world)
    await complete(world, "data", "made-1")
    await world.settle()
    assert await world.node_of("db") == second
    assert is_over(world)


PROVISIONING_FAILED = (
    'running PreBind plugin "VolumeBinding": binding volumes: selectedNode annotation reset for PVC "data"'
)


def test_a_pod_whose_volumes_are_not_bound_in_time_is_tried_again() -> None:
    config = with_arguments("VolumeBinding", {"bindTimeoutSeconds": 30})
    message = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'

    async def story(world: World) -> None:
        await with_a_local_volume(world)
        await world.settle(28)
        assert len(world.scheduler.bindings.running) == 1
        await world.settle(1.5)
        assert await world.condition("db") == ("False", "SchedulerError", message)
        assert world.scheduler.engine.columns.pods == {}
        where = world.scheduler.queue.status((await world.pod("db")).metadata.uid)
        assert where is not None
        assert where.state is QueueState.ERROR_BACKOFF
        await bind_volumes(world)  # late, but not in vain: the volume was given for good
        await world.settle(15)
        assert await world.node_of("db") == "n1"
        assert is_over(world)

    play(story, config=config)


@played(through=faulty(Fault("patch", kind=PERSISTENT_VOLUME, delay_s=5)))
async def test_a_volume_that_another_pod_took_meanwhile_is_replaced(world: World) -> None:
    await with_a_local_volume(world)
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "theirs", "uid": "u"}
    await world.patch("disk-1", {"spec": {"claimRef": reference}}, kind=PERSISTENT_VOLUME)
    await world.create(local_volume("disk-2", "n2"))  # type: ignore[arg-type]
    await world.settle(5)
    reported = await world.condition("db")
    assert reported is not None
    assert reported[:2] == ("False", "SchedulerError")
    assert reported[2].startswith('running PreBind plugin "VolumeBinding": Operation cannot be fulfilled on')
    await world.settle(15)
    await bind_volumes(world)
    await world.settle()
    assert await world.node_of("db") == "n2"
    assert (await volume_of(world, "disk-1"))["spec"]["claimRef"]["name"] == "theirs"
    assert is_over(world)


@pytest.mark.parametrize("outcome", [Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.BROKEN, Outcome.CONFLICT])
@pytest.mark.parametrize("kind", [PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM], ids=["a volume", "a claim"])
def test_a_write_that_goes_wrong_is_made_again(kind: object, outcome: Outcome) -> None:
    fault = Fault("patch", outcome, kind=kind)  # type: ignore[arg-type]

    async def story(world: World) -> None:
        await (with_a_local_volume if kind is PERSISTENT_VOLUME else with_a_volume_to_be_made)(world)
        await world.settle(15)
        if kind is PERSISTENT_VOLUME:
            await bind_volumes(world)
        else:
            await make_volume(world)
            await complete(world, "data", "made-1")
        await world.settle(15)
        assert await world.node_of("db") != ""
        assert is_over(world)

    play(story, through=faulty(fault))


VolumeFailure = Callable[[World], object]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        pytest.param(
            lambda world: world.delete("data", kind=PERSISTENT_VOLUME_CLAIM),
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"',
            id="the claim is deleted",
        ),
        pytest.param(
            lambda world: world.delete("disk-1", kind=PERSISTENT_VOLUME),
            'failed to check binding: could not find v1.PersistentVolume "disk-1"',
            id="the volume is deleted",
        ),
        pytest.param(
            lambda world: world.patch("disk-1", {"spec": {"claimRef": None}}, kind=PERSISTENT_VOLUME),
            'ClaimRef got reset for pv "disk-1"',
            id="the volume forgets its claim",
        ),
        pytest.param(
            lambda world: world.patch("n1", {"metadata": {"labels": {HOSTNAME: "renamed"}}}, kind=NODE),
            'pv "disk-1" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="the node moves out of the volume's reach",
        ),
        pytest.param(
            lambda world: world.delete("n1", kind=NODE),
            'failed to get node "n1": node "n1" not found',
            id="the node is removed",
        ),
    ],
)
def test_what_makes_waiting_for_a_volume_pointless(failure: VolumeFailure, text: str) -> None:
    async def story(world: World) -> None:
        await with_a_local_volume(world)
        await failure(world)  # type: ignore[misc]
        await world.settle(1.5)
        message = f'running PreBind plugin "VolumeBinding": binding volumes: {text}'
        assert ("db", "FailedScheduling", message) in await world.events()
        assert (await world.pod("db")).spec.node_name == ""

    play(story)


@played()
async def test_a_pod_that_is_deleted_while_its_volumes_are_bound_holds_nothing_any_more(world: World) -> None:
    await with_a_local_volume(world)
    await world.delete("db")
    await world.settle(2)
    assert world.scheduler.engine.columns.pods == {}
    assert is_over(world)


@played()
async def test_a_pod_that_is_preempted_while_its_volumes_are_bound_goes_back(world: World) -> None:
    await with_a_local_volume(world)
    await world.create(pod("high", cpu=2, priority=100, node_labels={HOSTNAME: "n1"}))
    await world.settle(5)
    high = await world.pod("high")
    assert high.spec.node_name == "n1"
    assert await world.events("Preempted") == [
        ("db", "Preempted", f"Preempted by pod {high.metadata.uid} on node n1 (in kube-scheduler memory).")
    ]
    message = 'running PreBind plugin "VolumeBinding": preempted by DefaultPreemption'
    assert ("db", "FailedScheduling", message) in await world.events()
    assert (await world.pod("db")).metadata.deletion_timestamp is None
    assert is_over(world)
    await world.delete("high")
    await world.settle(15)
    await bind_volumes(world)
    await world.settle(15)
    assert await world.node_of("db") == "n1"


@played(through=faulty(Fault("patch", kind=PERSISTENT_VOLUME, delay_s=60)))
async def test_a_pod_that_is_preempted_before_anything_was_written_leaves_its_volume_to_others(world: World) -> None:
    await with_a_local_volume(world)
    await world.create(pod("high", cpu=2, priority=100, node_labels={HOSTNAME: "n1"}))
    await world.settle(5)
    assert await world.node_of("high") == "n1"
    assert is_over(world)
    assert "claimRef" not in (await volume_of(world, "disk-1"))["spec"]


@played(schedulers=0)
async def test_a_scheduler_that_starts_finds_half_bound_volumes_and_goes_on(world: World) -> None:
    async with running(world):
        await with_a_local_volume(world)
        assert (await volume_of(world, "disk-1"))["spec"]["claimRef"]["name"] == "data"
    async with running(world) as second:
        await world.settle()
        assert [binding.node_name for binding in second.bindings.running.values()] == ["n1"]
        await bind_volumes(world)
        await world.settle()
        assert await world.node_of("db") == "n1"
        assert held_by_volume_binding(second) == HOLDS_NOTHING


@played(schedulers=0)
async def test_a_scheduler_that_starts_finds_a_volume_on_order_and_waits_for_it(world: World) -> None:
    async with running(world):
        await with_a_volume_to_be_made(world)
        first = await selected_node(world, "data")
    async with running(world, seed=8) as second:
        await world.settle()
        assert await selected_node(world, "data") == first
        await make_volume(world)
        await complete(world, "data", "made-1")
        await world.settle()
        assert await world.node_of("db") == first
        assert held_by_volume_binding(second) == HOLDS_NOTHING


# --- recorded ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_the_pod_tried_again", [True, False])
def test_a_volume_that_a_failed_pre_bind_wrote_is_taken_before_the_watch_reports_it(
    is_the_pod_tried_again: bool,
) -> None:
    """And the replay of the recording, which runs no PreBind, decides alike."""
    late = Fault("next_batch", kind=PERSISTENT_VOLUME, answer_delay_s=20, times=None)
    refused = Fault("patch", Outcome.CONFLICT, kind=PERSISTENT_VOLUME, after=1)

    async def story(world: World) -> None:
        await world.create(LOCAL, node("n1", cpu=4), node("n2", cpu=4))
        for name in ("disk-1", "disk-2"):
            await world.create(local_volume(name, "n1"))  # type: ignore[arg-type]
        claims = ("data-1", "data-2", "data-3", "data-4")
        await world.create(*(waiting(name, version="") for name in claims))
        await world.settle(30)
        await world.create(pod("db", cpu=1, claims=["data-1", "data-2"]))
        await world.settle(0.5)
        assert any("planned" in note for _, _, note in await world.events("FailedScheduling"))
        if not is_the_pod_tried_again:
            await world.delete("db")
        await world.create(pod("other", cpu=1, claims=["data-3", "data-4"]))
        await world.settle(5)
        assert (await world.pod("other")).status.nominated_node_name == "", "there is one volume left"
        await world.settle(60)

    play(story, through=faulty(late, refused))
