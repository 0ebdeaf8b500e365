"""Devices in the running scheduler: claims are allocated, shared, waited for and released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import POD, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from mooring.api.views.devices import ResourceClaim
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.errors import ConflictError, ServerError
from mooring.client.interface import Client, JsonObject
from mooring.kit.clock import VIRTUAL_WALL_S, VirtualClock, format_rfc3339
from mooring.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.device_builders import GPU, claim, claiming, device, device_class, given, gpus, slice_of, wants
from tests.scheduler.world import Through, World, play, played

GPUS = "example.com/gpu"


async def read(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(await world.client.get(RESOURCE_CLAIM, "default", name))
    return found


async def write_status(world: World, name: str, status: Mapping[str, object]) -> None:
    """As a driver or another controller would."""
    stored = await read(world, name)
    stored["status"] = {**stored.get("status", {}), **status}
    await world.client.update(RESOURCE_CLAIM, "default", name, stored, subresource="status")


def plugin(world: World) -> DynamicResources:
    found = world.scheduler.engine.cycles["default-scheduler"].profile.plugins["DynamicResources"]
    assert isinstance(found, DynamicResources)
    return found


@played()
async def test_a_claim_gets_its_allocation_its_finalizer_and_its_user(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 2), device_class(), claim("c", wants()), claiming("p", "c"))
    await world.settle()
    assert await world.node_of("p") == "n1"
    stored = await read(world, "c")
    assert stored["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    uid = (await world.pod("p")).metadata.uid
    assert stored["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid}]
    allocation = stored["status"]["allocation"]
    assert allocation["devices"]["results"] == [{"request": "r", "driver": GPU, "pool": "n1", "device": "gpu-0"}]
    assert allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]
    assert allocation["allocationTimestamp"].startswith("2026-")
    assert not plugin(world).has_work(world.scheduler.engine.columns.pods[uid], "n1")


@played()
async def test_pods_share_a_claim_one_after_the_other(world: World) -> None:
    await world.create(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), device_class(), claim("c", wants()))
    await world.create(*(claiming(f"p{number}", "c") for number in range(4)))
    await world.settle(30)
    nodes = {await world.node_of(f"p{number}") for number in range(4)}
    assert len(nodes) == 1
    assert len((await read(world, "c"))["status"]["reservedFor"]) == 4


@played()
async def test_a_pod_waits_for_a_device_that_another_gives_back(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 1), device_class(), claim("c", wants()), claim("d", wants()))
    await world.create(claiming("first", "c"))
    await world.settle()
    await world.create(claiming("second", "d"))
    await world.settle()
    assert await world.node_of("second") == ""
    stored = await read(world, "c")
    stored["status"] = {}
    await world.client.update(RESOURCE_CLAIM, "default", "c", stored, subresource="status")
    await world.settle(15)
    assert await world.node_of("second") == "n1"


@pytest.mark.parametrize(
    "comes_later",
    [
        pytest.param("claim", id="the claim"),
        pytest.param("class", id="the class"),
        pytest.param("slice", id="the devices"),
    ],
)
def test_a_pod_waits_for_what_is_missing(comes_later: str) -> None:
    parts = {"claim": claim("c", wants()), "class": device_class(), "slice": gpus("n1", 1)}

    async def story(world: World) -> None:
        await world.create(node("n1"), *(view for name, view in parts.items() if name != comes_later))
        await world.create(claiming("p", "c"))
        await world.settle()
        assert await world.node_of("p") == ""
        await world.create(parts[comes_later])
        await world.settle(15)
        assert await world.node_of("p") == "n1"

    play(story)


@played()
async def test_a_claim_with_unavailable_devices_is_deallocated_and_allocated_again(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 1), device_class())
    await world.create(claim("c", wants()))
    gone = msgspec.json.decode(msgspec.json.encode(given("gpu-0", pool="n9", node="n9")))
    await write_status(world, "c", {"allocation": gone})
    await world.create(claiming("p", "c"))
    await world.settle(30)
    assert await world.node_of("p") == "n1"
    results = (await read(world, "c"))["status"]["allocation"]["devices"]["results"]
    assert [result["pool"] for result in results] == ["n1"]


READY = {"driver": GPU, "pool": "n1", "device": "fabric", "conditions": []}


def condition(name: str) -> dict[str, object]:
    now = format_rfc3339(VIRTUAL_WALL_S)
    fields = {"status": "True", "reason": "Because", "message": "so", "lastTransitionTime": now}
    return {**READY, "conditions": [{"type": name, **fields}]}


@played()
async def test_binding_waits_until_a_device_is_ready(world: World) -> None:
    fabric = device("fabric", ready_when=["up"], fails_when=["down"])
    await world.create(node("n1"), slice_of(fabric, node="n1"), device_class(), claim("c", wants()))
    await world.create(claiming("p", "c"))
    await world.settle(60)
    assert await world.node_of("p") == "", "the device is being prepared"
    await write_status(world, "c", {"devices": [condition("up")]})
    await world.settle(1)
    assert await world.node_of("p") == "n1"


@played()
async def test_a_device_that_fails_sends_the_pod_to_another(world: World) -> None:
    await world.create(node("n1"), slice_of(device("fabric", ready_when=["up"], fails_when=["down"]), node="n1"))
    await world.create(device_class(), claim("c", wants()), claiming("p", "c"))
    await world.settle(5)
    await world.create(node("n2"), gpus("n2", 1))
    await world.delete(f"n1-{GPU}", RESOURCE_SLICE)
    await write_status(world, "c", {"devices": [condition("down")]})
    await world.settle(60)
    assert await world.node_of("p") == "n2"


@played(
    config={
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": {"bindingTimeout": "30s"}}]}],
    }
)
async def test_patience_with_a_device_ends(world: World) -> None:
    await world.create(node("n1"), slice_of(device("fabric", ready_when=["up"], fails_when=["down"]), node="n1"))
    await world.create(device_class(), claim("c", wants()), claiming("p", "c"))
    await world.settle(29)
    assert await world.events("FailedScheduling") == []
    pending = ("p", "BindingConditionsPending", "waiting for binding conditions for device on node n1")
    assert await world.events("BindingConditionsPending") == [pending]
    await world.settle(10)
    notes = [note for _, _, note in await world.events("FailedScheduling")]
    assert any("device binding timeout" in note for note in notes)


@played()
async def test_extended_resources_get_a_claim_that_is_named_in_the_pod_status(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 2), device_class(resource=GPUS), pod("p", others={GPUS: 2}))
    await world.settle(5)
    assert await world.node_of("p") == "n1"
    (raw,) = (await world.client.list(RESOURCE_CLAIM)).items
    made = decode_as(ResourceClaim, raw)
    assert made.metadata.name.startswith("p-extended-resources-")
    assert made.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made.status.allocation is not None
    assert [result.device for result in made.status.allocation.devices.results] == ["gpu-0", "gpu-1"]
    reported = (await world.pod("p")).status.extended_resource_claim_status
    assert reported is not None
    assert reported.resource_claim_name == made.metadata.name
    assert [request_mapping.request_name for request_mapping in reported.request_mappings] == ["container-0-request-0"]
    await world.create(pod("q", others={GPUS: 1}))
    await world.settle(5)
    assert await world.node_of("q") == ""


class Rejecting(LoopbackClient):
    """An API server that rejects the first writes of a kind."""

    rejections: list[tuple[Kind, str, Exception]]

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        for rejection in self.rejections:
            if rejection[:2] == (kind, subresource):
                self.rejections.remove(rejection)
                raise rejection[2]
        return await super().update(kind, namespace, name, body, subresource=subresource)


@pytest.mark.parametrize(
    "rejections",
    [
        pytest.param([(RESOURCE_CLAIM, "", ConflictError("changed"))], id="a conflict at the finalizer"),
        pytest.param([(RESOURCE_CLAIM, "status", ConflictError("changed"))], id="a conflict at the status"),
        pytest.param([(RESOURCE_CLAIM, "status", ServerError("no"))], id="a failure"),
        pytest.param([(RESOURCE_CLAIM, "status", ConflictError("changed"))] * 7, id="more conflicts than patience"),
    ],
)
def test_writes_that_are_rejected_are_tried_again(rejections: list[tuple[Kind, str, Exception]]) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        assert isinstance(client, LoopbackClient)
        client.__class__ = Rejecting
        assert isinstance(client, Rejecting)
        client.rejections = []
        return client

    async def story(world: World) -> None:
        await world.create(node("n1"), gpus("n1", 1), device_class(), claim("c", wants()))
        assert isinstance(world.client, Rejecting)
        world.client.rejections = list(rejections)
        await world.create(claiming("p", "c"))
        await world.settle(60)
        assert await world.node_of("p") == "n1"
        assert len((await read(world, "c"))["status"]["reservedFor"]) == 1

    play(story, through=through)


@played()
async def test_a_pod_that_is_gone_before_it_is_bound_leaves_the_devices_to_others(world: World) -> None:
    await world.create(
        node("n1"), slice_of(device("fabric", ready_when=["up"], fails_when=["down"]), node="n1"), device_class()
    )
    await world.create(claim("c", wants()), claiming("p", "c"))
    await world.settle(5)
    await world.delete("p", POD)
    await world.settle(700)
    assert plugin(world)._reserved == {}


@played()
async def test_what_was_written_is_taken_back_where_binding_fails_in_the_end(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 2), device_class(resource=GPUS), claim("c", wants()))
    await world.create(claiming("p", "c"), pod("q", others={GPUS: 1}))
    await world.settle(5)
    assert len((await world.client.list(RESOURCE_CLAIM)).items) == 2
    for name in ("p", "q"):
        await plugin(world).released(world.scheduler.engine.record(await world.pod(name)), "n1")
    stored = await read(world, "c")
    assert stored["status"].get("reservedFor", []) == []
    assert "allocation" in stored["status"], "the devices stay with the claim"
    assert len((await world.client.list(RESOURCE_CLAIM)).items) == 1


# --- recorded: the replay runs no PreBind, and decides alike ----------------------------------------------------------

LATE = Fault("next_batch", kind=RESOURCE_CLAIM, answer_delay_s=20, times=None)


def faulty(*faults: Fault) -> Through:
    return lambda client, clock: FaultyClient(client, clock, Script(*faults))


@played(through=faulty(LATE, Fault("bind", delay_s=30, where=lambda request: request.name == "p")))
async def test_a_claim_is_allocated_as_soon_as_it_is_written(world: World) -> None:
    await world.create(node("n1"), gpus("n1", 2), device_class(), claim("c", wants()))
    await world.settle(30)
    await world.create(claiming("p", "c"))
    await world.settle(1)
    await world.create(claiming("q", "c"))
    await world.settle(1)
    assert [await world.node_of(name) for name in ("p", "q")] == ["", "n1"]
    await world.settle(60)
    assert await world.node_of("p") == "n1"


@played(
    through=faulty(
        LATE, Fault("update", Outcome.BROKEN, kind=RESOURCE_CLAIM, where=lambda request: request.name == "c2")
    )
)
async def test_a_claim_that_a_failed_pre_bind_wrote_stays_allocated_before_the_watch_reports_it(world: World) -> None:
    await world.create(node("n1", cpu=2), gpus("n1", 2), device_class(), claim("c1", wants()), claim("c2", wants()))
    await world.settle(30)
    await world.create(node("n2", cpu=9), gpus("n2", 2))
    await world.create(claiming("p", "c1", "c2", cpu=2))
    await world.settle(0.5)
    assert any("planned" in note for _, _, note in await world.events("FailedScheduling"))
    where = (await read(world, "c1"))["status"]["allocation"]["devices"]["results"][0]["pool"]
    await world.delete("p")
    await world.create(claiming("q", "c1", cpu=9 if where == "n1" else 1))
    await world.settle(5)
    assert await world.node_of("q") == ("" if where == "n1" else "n2")
    await world.settle(60)
