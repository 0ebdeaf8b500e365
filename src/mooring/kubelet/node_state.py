"""One node: its pods, its addresses, and what is taken of it.

Comes in   the node as the API has it; pods that come and go
Goes out   what the other pods take, for `admission`; free addresses

 1. What is taken is the sum over the pods that were admitted and are not over.
 2. An address belongs to one pod at a time. Nodes have ranges of their own.
 3. A silent node hears nothing and says nothing; its containers go on.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.kubelet.admission import HostPort, Refusal, Room, host_ports_of, lacking_resource, refusal_of
from mooring.kubelet.views import KubeletPod

ADDRESSES_PER_NODE = 256
INTERNAL_IP = "InternalIP"
_NODE_NETWORK = (172 << 24) | (16 << 16)
_NODE_NETWORK_SIZE = 1 << 20
_POD_NETWORK = 10 << 24
_POD_NETWORK_SIZE = 1 << 24


class FleetNode:
    """A place where pods run, simulated or for real."""

    __slots__ = (
        "_addresses_free",
        "_addresses_made",
        "_admitted",
        "_ports",
        "allocatable",
        "host_ip",
        "index",
        "is_registered",
        "is_silenced",
        "latest",
        "name",
        "used",
        "view",
        "worked_on",
    )

    def __init__(self, name: str, index: int, address: str = "") -> None:
        self.name = name
        self.index = index
        self.host_ip = address or node_address(index)
        self.view: Node | None = None
        """As the API has it; None while it does not."""
        self.allocatable: Mapping[str, int] = {}
        self.is_registered = False
        """Whether the API has ever had it: who deletes a node does not want it back."""
        self.is_silenced = False
        self.latest: dict[str, KubeletPod] = {}
        """Its pods, as the API told them last, by uid."""
        self.worked_on: dict[str, None] = {}
        """The uids of the pods that have a worker."""
        self.used: dict[str, int] = {}
        self._admitted: dict[str, Mapping[str, int]] = {}
        self._ports: dict[str, tuple[HostPort, ...]] = {}
        """Of those pods that take any."""
        self._addresses_made = 1  # the first of a range is the gateway's
        self._addresses_free: list[str] = []

    @property
    def pods(self) -> int:
        """How many are admitted and not over."""
        return len(self._admitted)

    def see(self, view: Node | None) -> None:
        """The API has it so; or not any more."""
        before, self.view = self.view, view
        if view is None:
            return
        self.is_registered = True
        # An adopted node has an address already, and its pods have it in their statuses.
        addresses = (each.address for each in view.status.addresses if each.type == INTERNAL_IP)
        self.host_ip = next(addresses, self.host_ip)
        if before is None or before.status.allocatable != view.status.allocatable:
            self.allocatable = node_allocatable(view)

    # ---------------------------------------------------------------------------------------------- resources

    def refusal(self, pod: KubeletPod, requests: Mapping[str, int]) -> Refusal | None:
        """Why a pod that requests so much cannot run here."""
        assert self.view is not None, f"node {self.name} is not known to the API"
        ports = [port for taken in self._ports.values() for port in taken] if self._ports else ()
        return refusal_of(pod, requests, self.view, Room(self.allocatable, self.used, len(self._admitted), ports))

    def lacking(self, pod: KubeletPod, requests: Mapping[str, int]) -> Refusal | None:
        """What is missing for a pod that is here already and requests another amount."""
        own = self._admitted.get(pod.metadata.uid, {})
        used = {name: amount - own.get(name, 0) for name, amount in self.used.items()}
        return lacking_resource(requests, Room(self.allocatable, used, self.pods - 1))

    def take(self, pod: KubeletPod, requests: Mapping[str, int]) -> None:
        """Count a pod, with what it requests; instead of what was counted for it before."""
        uid = pod.metadata.uid
        self.release(uid)
        self._admitted[uid] = requests
        if ports := host_ports_of(pod):
            self._ports[uid] = ports
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def release(self, uid: str) -> bool:
        """Count it no more; says whether it was counted."""
        taken = self._admitted.pop(uid, None)
        if taken is None:
            return False
        self._ports.pop(uid, None)
        for name, amount in taken.items():
            self.used[name] -= amount
        return True

    # ---------------------------------------------------------------------------------------------- addresses

    def new_address(self) -> str:
        if self._addresses_free:
            return self._addresses_free.pop()
        self._addresses_made += 1
        return pod_address(self.index, self._addresses_made)

    def give_back(self, address: str) -> None:
        self._addresses_free.append(address)


def node_address(index: int) -> str:
    return _dotted(_NODE_NETWORK + (index + 1) % _NODE_NETWORK_SIZE)


def pod_address(index: int, number: int) -> str:
    return _dotted(_POD_NETWORK + (index * ADDRESSES_PER_NODE + number) % _POD_NETWORK_SIZE)


def _dotted(address: int) -> str:
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"
