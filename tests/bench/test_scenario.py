"""Scenarios: streams of objects that a real cluster could have, the same every time."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest

from bench.scenario import Scenario, node_name
from bench.workload import Size, read_workload, workload_names
from mooring.api.decode import decode_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim

SMALL = Size(nodes=6, placed=12, pods=10)


def scenario(name: str, size: Size = SMALL) -> Scenario:
    return Scenario(read_workload(name), size)


def placed(name: str, count: int) -> list[Pod]:
    return [decode_as(Pod, item.raw) for item in islice(scenario(name).placed(), count)]


def measured(name: str, count: int) -> list[Pod]:
    return [decode_as(Pod, item.raw) for item in islice(scenario(name).measured(), count)]


def test_nodes_have_names_and_zones_in_turn() -> None:
    nodes = [decode_as(Node, item.raw) for item in scenario("plain").nodes()]
    assert [node.metadata.name for node in nodes] == [f"node-{number}" for number in range(6)]
    zones = [node.metadata.labels["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c"] * 2


def test_groups_take_turns_by_their_shares() -> None:
    nodes = [decode_as(Node, item.raw) for item in scenario("different", Size(nodes=20)).nodes()]
    assert [bool(node.spec.taints) for node in nodes] == ([False] * 9 + [True]) * 2


def test_placed_pods_lie_on_all_nodes_alike() -> None:
    assert Counter(pod.spec.node_name for pod in placed("plain", 12)) == {f"node-{number}": 2 for number in range(6)}


@pytest.mark.parametrize(
    ("serial", "only_every", "name"),
    [
        pytest.param(0, 1, "node-0", id="the first"),
        pytest.param(5, 1, "node-5", id="the last of a round"),
        pytest.param(6, 1, "node-1", id="the next round starts one node further"),
        pytest.param(3, 2, "node-2", id="on every second node: the second round"),
        pytest.param(4, 100, "node-0", id="there is always one node"),
    ],
)
def test_the_node_of_a_placed_pod(serial: int, only_every: int, name: str) -> None:
    assert node_name(6, serial, only_every) == name


def test_measured_pods_have_no_node() -> None:
    assert {pod.spec.node_name for pod in measured("plain", 10)} == {""}


def test_waiting_pods_are_nobody_else() -> None:
    beside = scenario("loop-plain-beside-gated")
    waiting = [decode_as(Pod, item.raw) for item in islice(beside.waiting(), 10)]
    assert {len(pod.spec.scheduling_gates) for pod in waiting} == {1}
    others = {pod.key for pod in (*placed("loop-plain-beside-gated", 10), *measured("loop-plain-beside-gated", 10))}
    assert others.isdisjoint(pod.key for pod in waiting)


@pytest.mark.parametrize("name", workload_names())
def test_no_two_pods_share_a_name_or_a_uid(name: str) -> None:
    pods = [*placed(name, 40), *measured(name, 40)]
    assert len({pod.metadata.uid for pod in pods}) == len({pod.key for pod in pods}) == 80


@pytest.mark.parametrize("name", workload_names())
def test_a_scenario_can_be_had_again(name: str) -> None:
    first, second = (list(islice(scenario(name).measured(), 20)) for _ in range(2))
    assert first == second


def test_every_pod_is_different_from_all_before_it() -> None:
    pods = measured("different", 50)
    anonymous = {(msgspec.json.encode(pod.spec), msgspec.json.encode(pod.metadata.labels)) for pod in pods}
    assert len(anonymous) == 50
    assert len({pod.spec.containers[0].resources.requests["cpu"] for pod in pods}) > 10


def test_pods_are_of_realistic_size_and_have_the_default_tolerations() -> None:
    item = next(scenario("plain").placed())
    assert 3_000 < len(item.raw) < 6_000
    tolerated = {toleration.key for toleration in decode_as(Pod, item.raw).spec.tolerations}
    assert tolerated == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def test_a_claiming_pod_comes_with_its_bound_claim_and_its_volume() -> None:
    item = next(scenario("volumes-bound").measured())
    pod = decode_as(Pod, item.raw)
    volume, claim = (decode_as(companion.kind, companion.raw) for companion in item.companions)
    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    used = pod.spec.volumes[0].persistent_volume_claim
    assert used is not None
    assert used.claim_name == claim.metadata.name
    assert claim.spec.volume_name == volume.metadata.name
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == claim.metadata.uid
