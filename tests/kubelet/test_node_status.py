"""Node and Lease objects, and heartbeats."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from mooring.api.decode import convert_as
from mooring.api.kinds import LEASE, NODE
from mooring.api.views.node import Node
from mooring.client.batch_writes import renewal_patch
from mooring.client.interface import EVERYTHING
from mooring.kit.clock import VIRTUAL_WALL_S
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.node_status import (
    SIMULATED_ANNOTATION,
    heartbeat_patch,
    is_healthy,
    lease_document,
    needs_correction,
    node_document,
)
from mooring.kubelet.settings import KubeletSettings, NodeCapacity, host_settings
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.kubelet.harness import Body, Play, played
from tests.kubelet.processes.process_harness import HOST

SETTINGS = KubeletSettings(
    count=4,
    shape=NodeCapacity(cpu="8", memory="16Gi", pods=50, others={"example.com/gpu": "2"}, architecture="arm64"),
    zones=("a", "b"),
    region="north",
    labels={"pool": "general"},
)
STAMP = "2026-01-01T00:00:00Z"


def registered(index: int = 1) -> Body:
    return node_document(NodeState(f"node-{index}", index), SETTINGS, VIRTUAL_WALL_S)


def known_as(body: Body) -> NodeState:
    node = NodeState("node-1", 1)
    node.observe(convert_as(Node, {**body, "metadata": {**body["metadata"], "uid": "n-uid"}}))
    return node


def test_a_node_registers_with_its_labels_and_amounts() -> None:
    body = registered()
    assert body["metadata"]["labels"] == {
        "beta.kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
        "pool": "general",
        "topology.kubernetes.io/region": "north",
        "topology.kubernetes.io/zone": "b",
    }
    resources = {
        "cpu": "8",
        "ephemeral-storage": "1Ti",
        "example.com/gpu": "2",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "16Gi",
        "pods": "50",
    }
    assert body["status"]["capacity"] == body["status"]["allocatable"] == resources
    assert body["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.4"
    assert body["status"]["addresses"][0] == {"type": "InternalIP", "address": "172.16.0.2"}


def test_the_conditions_are_the_kubelets() -> None:
    reported = [(c["type"], c["status"], c["reason"], c["message"]) for c in registered()["status"]["conditions"]]
    assert reported == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]


def test_a_heartbeat_tells_the_time_and_nothing_else() -> None:
    patch = heartbeat_patch(known_as(registered()), SETTINGS, VIRTUAL_WALL_S)
    assert patch == {
        "status": {
            "conditions": [
                {"type": type, "lastHeartbeatTime": STAMP}
                for type in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
            ]
        }
    }


@pytest.mark.parametrize(
    ("name", "capacity", "allocatable", "expected"),
    [
        pytest.param("node-1", {"a.com/x": "5"}, {}, {"a.com/x": "5"}, id="a user added one"),
        pytest.param("node-1", {"a.com/x": "5"}, {"a.com/x": "3"}, {"a.com/x": "5"}, id="a user changed one"),
        pytest.param("node-1", {}, {"a.com/x": "5"}, {"a.com/x": None}, id="a user removed one"),
        pytest.param("node-1", {"a.com/x": "5"}, {"a.com/x": "5"}, None, id="both have it"),
        pytest.param("node-1", {"cpu": "16"}, {}, None, id="others are not changed"),
        pytest.param("clone-1", {"a.com/x": "5"}, {"a.com/x": "3"}, None, id="adopted nodes keep theirs"),
    ],
)
def test_extended_resources_of_the_capacity_become_allocatable(
    name: str, capacity: Body, allocatable: Body, expected: Body | None
) -> None:
    body = registered()
    body["metadata"]["name"] = name
    body["status"]["capacity"] = {**body["status"]["capacity"], **capacity}
    body["status"]["allocatable"] = {**body["status"]["allocatable"], **allocatable}
    node = NodeState(name, 1)
    node.observe(convert_as(Node, body))
    assert heartbeat_patch(node, SETTINGS, VIRTUAL_WALL_S)["status"].get("allocatable") == expected
    assert needs_correction(node, SETTINGS) is (expected is not None)


def test_a_node_that_was_taken_for_lost_says_that_it_is_not() -> None:
    body = registered()
    body["status"]["conditions"][3] |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
    node = known_as(body)
    assert not is_healthy(node)
    assert heartbeat_patch(node, SETTINGS, VIRTUAL_WALL_S)["status"]["conditions"][3] == {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": STAMP,
        "lastTransitionTime": STAMP,
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    }


def test_a_node_that_another_client_created_gets_its_whole_status() -> None:
    node = known_as({"metadata": {"name": "node-1"}})
    assert not is_healthy(node)
    status = heartbeat_patch(node, SETTINGS, VIRTUAL_WALL_S)["status"]
    assert {"addresses", "allocatable", "capacity", "conditions", "daemonEndpoints", "nodeInfo"} == set(status)


def test_a_node_that_another_client_created_with_resources_gets_the_rest() -> None:
    node = known_as({"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "2"}}})
    assert not is_healthy(node)
    status = heartbeat_patch(node, SETTINGS, VIRTUAL_WALL_S)["status"]
    assert {"addresses", "capacity", "conditions", "daemonEndpoints", "nodeInfo"} == set(status)
    assert status["capacity"] == {"cpu": "2"}
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.4"


def test_a_lease_belongs_to_its_node_and_is_renewed_with_one_field() -> None:
    body = lease_document(known_as(registered()), SETTINGS, VIRTUAL_WALL_S)
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "n-uid"}
    ]
    assert body["spec"] == {
        "holderIdentity": "node-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    assert renewal_patch(VIRTUAL_WALL_S) == {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}


@pytest.mark.parametrize("index", [0, 3])
def test_the_same_node_is_always_the_same(index: int) -> None:
    assert registered(index) == registered(index)
    assert registered(index)["status"]["nodeInfo"]["machineID"] != registered(2)["status"]["nodeInfo"]["machineID"]


def test_a_real_node_says_what_its_machine_is() -> None:
    settings = replace(host_settings(HOST, 1), port=4321)
    status = node_document(NodeState("here", 0, HOST.address), settings, VIRTUAL_WALL_S)["status"]
    assert status["addresses"][0] == {"type": "InternalIP", "address": HOST.address}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 4321}}
    assert status["capacity"]["cpu"] == str(HOST.cpus)
    assert status["nodeInfo"]["kernelVersion"] == HOST.kernel
    assert status["nodeInfo"]["machineID"] == HOST.machine_id


async def renewals(play: Play, kind: object = LEASE, for_s: float = 10.0, parts: int = 10) -> list[int]:
    """How many leases are renewed in each part of a while."""
    counts = []
    before = dict.fromkeys((await play.client.list(LEASE, EVERYTHING)).items)
    for _ in range(parts):
        await play.wait(for_s / parts)
        now = dict.fromkeys((await play.client.list(LEASE, EVERYTHING)).items)
        counts.append(sum(raw not in before for raw in now))
        before = now
    return counts


def test_leases_are_renewed_each_ten_seconds_evenly_over_time() -> None:
    async def story(play: Play) -> None:
        await play.wait(20.0)
        for _ in range(2):
            assert await renewals(play) == [10] * 10

    played(story, KubeletSettings(count=100))


def test_leases_of_adopted_nodes_are_spread_over_time_too() -> None:
    async def story(play: Play) -> None:
        for number in range(100):
            metadata = {"name": f"adopted-{number}", "annotations": {SIMULATED_ANNOTATION: "true"}}
            await play.client.create(NODE, "", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        await play.wait(20.0)
        assert all(5 <= count <= 15 for count in await renewals(play))

    played(story, KubeletSettings(count=0))


def test_the_status_is_written_every_five_minutes() -> None:
    async def story(play: Play) -> None:
        await play.wait(300.0)
        stamps: Counter[str] = Counter()
        for name in play.kubelets.node_names:
            node = await play.node(name)
            stamps[node["status"]["conditions"][3]["lastHeartbeatTime"]] += 1
        assert len(stamps) == 10
        assert min(stamps) >= "2026-01-01T00:00:01Z"
        transitions = {(await play.node(name))["status"]["conditions"][3]["lastTransitionTime"] for name in ("node-3",)}
        assert transitions == {"2026-01-01T00:00:00Z"}

    played(story, KubeletSettings(count=10))


def test_a_deleted_lease_is_created_again() -> None:
    async def story(play: Play) -> None:
        await play.client.delete(LEASE, "kube-node-lease", "node-0")
        await play.wait(11.0)
        lease: Body = msgspec.json.decode(await play.client.get(LEASE, "kube-node-lease", "node-0"))
        assert lease["spec"]["holderIdentity"] == "node-0"

    played(story)


def test_what_fails_is_tried_again() -> None:
    faults = Script(
        Fault("create", Outcome.BROKEN, kind=NODE),
        Fault("create", Outcome.REQUEST_LOST, kind=LEASE),
        Fault("patch", Outcome.ANSWER_LOST, kind=LEASE, times=3),
        Fault("patch", Outcome.BROKEN, kind=NODE, times=2),
    )

    async def story(play: Play) -> None:
        await play.wait(30.0)
        nodes = await play.client.list(NODE, EVERYTHING)
        leases = await play.client.list(LEASE, EVERYTHING)
        assert (len(nodes.items), len(leases.items)) == (2, 2)
        statistics = play.kubelets.statistics()["leases"]
        assert isinstance(statistics, dict)
        assert statistics["failed"] >= 2

    played(story, through=lambda client, clock: FaultyClient(client, clock, faults))
