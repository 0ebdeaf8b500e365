"""Who is turned away: a kubelet looks at each new pod once more, and does not believe the scheduler.

Comes in   a pod and what it requests, its node as the API has it, what the other pods of the node take
Goes out   a `Refusal` in the words of the kubelet v1.36, or None

 1. The first fault counts, in the kubelet's order: operating system, resources, node affinity, ports, taints.
 2. Resources that the node has never heard of are not counted: they belong to the cluster, or to a driver.
 3. Of the taints only those count that would evict the pod at once (NoExecute).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from mooring.api.nodeselector import required_node_affinity
from mooring.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended_resource
from mooring.api.tolerations import is_tolerated
from mooring.api.views.node import Node
from mooring.kubelet.views import KubeletPod

OPERATING_SYSTEM = "linux"
_OS_LABEL = "kubernetes.io/os"
_ANY_ADDRESSES = ("", "0.0.0.0")

HostPort: TypeAlias = tuple[str, int, str]
"""Protocol, port, address."""


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    message: str


class Room(NamedTuple):
    """What a node has, and what is taken of it."""

    allocatable: Mapping[str, int]
    used: Mapping[str, int]
    pods: int
    ports: Sequence[HostPort] = ()


def refusal_of(pod: KubeletPod, requests: Mapping[str, int], node: Node, room: Room) -> Refusal | None:
    """Why a pod that requests so much cannot run on its node, beside what the others take there."""
    if pod.metadata.labels.get(_OS_LABEL, OPERATING_SYSTEM) != node.metadata.labels.get(_OS_LABEL, OPERATING_SYSTEM):
        text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", text)
    if pod.spec.os is not None and pod.spec.os.name != OPERATING_SYSTEM:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return (
        lacking_resource(requests, room)
        or _wrong_node(pod, node)
        or _taken_port(pod, room.ports)
        or _evicting_taint(pod, node)
    )


def lacking_resource(requests: Mapping[str, int], room: Room) -> Refusal | None:
    """The first resource of which the node has not enough."""
    allocatable, used = room.allocatable, room.used
    capacity = allocatable.get(PODS, 0)
    if room.pods + 1 > capacity:
        return _out_of(PODS, 1, room.pods, capacity)
    lacking = [name for name, wanted in requests.items() if wanted and _is_lacking(name, wanted, room)]
    if not lacking:
        return None
    name = next((name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if name in lacking), lacking[0])
    return _out_of(name, requests[name], used.get(name, 0), allocatable.get(name, 0))


def host_ports_of(pod: KubeletPod) -> tuple[HostPort, ...]:
    """The ports of the node that a pod takes."""
    staying = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        (port.protocol or "TCP", port.host_port, port.host_ip)
        for container in (*staying, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _is_lacking(name: str, wanted: int, room: Room) -> bool:
    capacity = room.allocatable.get(name)
    if capacity is None and is_extended_resource(name):
        return False
    return wanted > (capacity or 0) - room.used.get(name, 0)


def _out_of(name: str, requested: int, used: int, capacity: int) -> Refusal:
    text = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", text)


def _wrong_node(pod: KubeletPod, node: Node) -> Refusal | None:
    if not pod.spec.node_selector and pod.spec.affinity is None:
        return None
    if required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
        return None
    return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _taken_port(pod: KubeletPod, ports: Sequence[HostPort]) -> Refusal | None:
    if ports and any(_collide(mine, other) for other in ports for mine in host_ports_of(pod)):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _evicting_taint(pod: KubeletPod, node: Node) -> Refusal | None:
    for taint in node.spec.taints:
        if taint.effect == "NoExecute" and not is_tolerated(taint, pod.spec.tolerations):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")


def _collide(mine: HostPort, other: HostPort) -> bool:
    if mine[:2] != other[:2]:
        return False
    return mine[2] == other[2] or mine[2] in _ANY_ADDRESSES or other[2] in _ANY_ADDRESSES
