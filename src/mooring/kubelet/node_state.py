"""The state of one node: its pods, resources in use, pod addresses, and the admission of pods.

Input: the Node object; pods that are admitted and removed. Output: whether a pod is admitted; addresses for pods.

 1. Resources in use are the sum over admitted pods that are not terminated.
 2. The kubelet checks a new pod again: operating system, resources, node affinity, host ports, NoExecute taints. The
    first failing check is reported, with reason and message of kubelet v1.36.
 3. Extended resources that the node does not list are not checked: a driver or the cluster manages them.
 4. Each node has its own address range. An address belongs to one pod at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from mooring.api.nodeselector import required_node_affinity
from mooring.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended_resource, node_allocatable
from mooring.api.tolerations import is_tolerated
from mooring.api.views.node import Node
from mooring.api.well_known import OS_LABEL
from mooring.kubelet.views import KubeletPod

OPERATING_SYSTEM = "linux"
_ANY_ADDRESSES = ("", "0.0.0.0")

HostPort: TypeAlias = tuple[str, int, str]
"""Protocol, port, address."""
ADDRESSES_PER_NODE = 256
INTERNAL_IP = "InternalIP"
_NODE_NETWORK = (172 << 24) | (16 << 16)
_NODE_NETWORK_SIZE = 1 << 20
_POD_NETWORK = 10 << 24
_POD_NETWORK_SIZE = 1 << 24


@dataclass(frozen=True, slots=True)
class Rejection:
    reason: str
    message: str


class NodeUsage(NamedTuple):
    """The allocatable resources of a node, and what its pods use."""

    allocatable: Mapping[str, int]
    used: Mapping[str, int]
    pods: int
    ports: Sequence[HostPort] = ()


def check_admission(pod: KubeletPod, requests: Mapping[str, int], node: Node, usage: NodeUsage) -> Rejection | None:
    """Why the node cannot admit a pod with these requests; None if it can."""
    if pod.metadata.labels.get(OS_LABEL, OPERATING_SYSTEM) != node.metadata.labels.get(OS_LABEL, OPERATING_SYSTEM):
        text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", text)
    if pod.spec.os is not None and pod.spec.os.name != OPERATING_SYSTEM:
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return (
        insufficient_resource(requests, usage)
        or _wrong_node(pod, node)
        or _taken_port(pod, usage.ports)
        or _evicting_taint(pod, node)
    )


def insufficient_resource(requests: Mapping[str, int], usage: NodeUsage) -> Rejection | None:
    """The first resource that is insufficient."""
    allocatable, used = usage.allocatable, usage.used
    capacity = allocatable.get(PODS, 0)
    if usage.pods + 1 > capacity:
        return _out_of(PODS, 1, usage.pods, capacity)
    insufficient = [name for name, requested in requests.items() if requested and _is_lacking(name, requested, usage)]
    if not insufficient:
        return None
    name = next((name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if name in insufficient), insufficient[0])
    return _out_of(name, requests[name], used.get(name, 0), allocatable.get(name, 0))


def host_ports_of(pod: KubeletPod) -> tuple[HostPort, ...]:
    """The host ports of a pod."""
    staying = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        (port.protocol or "TCP", port.host_port, port.host_ip)
        for container in (*staying, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _is_lacking(name: str, requested: int, usage: NodeUsage) -> bool:
    capacity = usage.allocatable.get(name)
    if capacity is None and is_extended_resource(name):
        return False
    return requested > (capacity or 0) - usage.used.get(name, 0)


def _out_of(name: str, requested: int, used: int, capacity: int) -> Rejection:
    text = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Rejection(f"OutOf{name}", text)


def _wrong_node(pod: KubeletPod, node: Node) -> Rejection | None:
    if not pod.spec.node_selector and pod.spec.affinity is None:
        return None
    if required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
        return None
    return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _taken_port(pod: KubeletPod, ports: Sequence[HostPort]) -> Rejection | None:
    if ports and any(_collide(mine, other) for other in ports for mine in host_ports_of(pod)):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _evicting_taint(pod: KubeletPod, node: Node) -> Rejection | None:
    for taint in node.spec.taints:
        if taint.effect == "NoExecute" and not is_tolerated(taint, pod.spec.tolerations):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {why}")


def _collide(mine: HostPort, other: HostPort) -> bool:
    if mine[:2] != other[:2]:
        return False
    return mine[2] == other[2] or mine[2] in _ANY_ADDRESSES or other[2] in _ANY_ADDRESSES


class NodeState:
    """One node, simulated or this machine."""

    __slots__ = (
        "_addresses_free",
        "_addresses_made",
        "_admitted",
        "_ports",
        "allocatable",
        "host_ip",
        "index",
        "is_registered",
        "is_silent",
        "name",
        "pods_by_uid",
        "used",
        "view",
        "worker_uids",
    )

    def __init__(self, name: str, index: int, address: str = "") -> None:
        self.name = name
        self.index = index
        self.host_ip = address or node_address(index)
        self.view: Node | None = None
        """The Node object; None if it does not exist."""
        self.allocatable: Mapping[str, int] = {}
        self.is_registered = False
        """Whether the Node object has ever existed. A node that a user deleted is not registered again."""
        self.is_silent = False
        self.pods_by_uid: dict[str, KubeletPod] = {}
        """The latest version of its Pod objects."""
        self.worker_uids: dict[str, None] = {}
        """UIDs of pods that have a worker."""
        self.used: dict[str, int] = {}
        self._admitted: dict[str, Mapping[str, int]] = {}
        self._ports: dict[str, tuple[HostPort, ...]] = {}
        """Host ports by pod, for pods that use any."""
        self._addresses_made = 1  # the first address of a range is the gateway
        self._addresses_free: list[str] = []

    @property
    def pods(self) -> int:
        """The number of admitted pods that are not terminated."""
        return len(self._admitted)

    def observe(self, view: Node | None) -> None:
        """The Node object changed, or was deleted (None)."""
        before, self.view = self.view, view
        if view is None:
            return
        self.is_registered = True
        # An adopted node has an address, which the statuses of its pods contain.
        addresses = (address.address for address in view.status.addresses if address.type == INTERNAL_IP)
        self.host_ip = next(addresses, self.host_ip)
        if before is None or before.status.allocatable != view.status.allocatable:
            self.allocatable = node_allocatable(view)

    # Resources

    def rejection(self, pod: KubeletPod, requests: Mapping[str, int]) -> Rejection | None:
        """Why a pod with these requests cannot be admitted."""
        assert self.view is not None, f"node {self.name} is not known to the API"
        ports = [port for taken in self._ports.values() for port in taken] if self._ports else ()
        return check_admission(
            pod, requests, self.view, NodeUsage(self.allocatable, self.used, len(self._admitted), ports)
        )

    def insufficient(self, pod: KubeletPod, requests: Mapping[str, int]) -> Rejection | None:
        """The resource that is insufficient for an admitted pod with new requests."""
        own = self._admitted.get(pod.metadata.uid, {})
        used = {name: amount - own.get(name, 0) for name, amount in self.used.items()}
        return insufficient_resource(requests, NodeUsage(self.allocatable, used, self.pods - 1))

    def reserve(self, pod: KubeletPod, requests: Mapping[str, int]) -> None:
        """Count the requests of a pod, instead of those that were counted before."""
        uid = pod.metadata.uid
        self.release(uid)
        self._admitted[uid] = requests
        if ports := host_ports_of(pod):
            self._ports[uid] = ports
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def release(self, uid: str) -> bool:
        """Stop counting a pod. Returns whether it was counted."""
        taken = self._admitted.pop(uid, None)
        if taken is None:
            return False
        self._ports.pop(uid, None)
        for name, amount in taken.items():
            self.used[name] -= amount
        return True

    # Addresses

    def new_address(self) -> str:
        if self._addresses_free:
            return self._addresses_free.pop()
        self._addresses_made += 1
        return pod_address(self.index, self._addresses_made)

    def release_address(self, address: str) -> None:
        self._addresses_free.append(address)


def node_address(index: int) -> str:
    return _address_text(_NODE_NETWORK + (index + 1) % _NODE_NETWORK_SIZE)


def pod_address(index: int, number: int) -> str:
    return _address_text(_POD_NETWORK + (index * ADDRESSES_PER_NODE + number) % _POD_NETWORK_SIZE)


def _address_text(address: int) -> str:
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"
