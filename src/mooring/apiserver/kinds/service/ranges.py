"""Pools of cluster IPs and node ports, and values that an update takes over from the stored Service.

1. A number that the client does not choose is random, and comes from the upper part of a pool while it has a free one.
   The lower part is left to clients that choose.
2. A dry run reserves nothing. It checks less than a real write, as in Kubernetes: a port may lie outside of the range.
3. A client may send an update without the allocated values. They are filled in from the stored Service.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network

from mooring.api.document import Document
from mooring.apiserver.kinds.service.validation import needs_health_check
from mooring.kit.entropy import Entropy

DRY_RUN_PORT_FIRST = 32_769
RESERVED_MIN = 16
"""The node port of a dry run; outside of the usual range."""


class AllocationError(Exception):
    """The number is not available; the text is the reason."""


class RangeFull(AllocationError):
    """There is no number left."""

    def __init__(self) -> None:
        super().__init__("range is full")


class NumberPool:
    """Numbers from 0 on. The first `reserved_count` are used for explicit requests only, while others are free."""

    def __init__(self, size: int, reserved_count: int) -> None:
        self.size = size
        self.reserved_count = reserved_count
        self.taken: set[int] = set()

    def take_any(self, entropy: Entropy) -> int:
        for low, high in ((self.reserved_count, self.size), (0, self.reserved_count)):
            number = self._free_between(low, high, entropy)
            if number is not None:
                self.taken.add(number)
                return number
        raise RangeFull

    def _free_between(self, low: int, high: int, entropy: Entropy) -> int | None:
        if low >= high:
            return None
        start = entropy.integer_below(high - low)
        for step in range(high - low):
            number = low + (start + step) % (high - low)
            if number not in self.taken:
                return number
        return None


class ServiceAddresses:
    """The cluster's addresses of services. The first is kept for the API server's own service."""

    def __init__(self, network: IPv4Network) -> None:
        self.network = network
        self._first = int(network.network_address) + 1
        size = network.num_addresses - 2
        self._pool = NumberPool(size, _reserved_count(network.num_addresses, part=16, most=256))

    def take(self, address: IPv4Address, *, may_take_first: bool = False) -> None:
        number = int(address) - self._first
        if not 0 <= number < self._pool.size:
            raise AllocationError("the provided network does not match the current range")
        if number in self._pool.taken or (number == 0 and not may_take_first):
            raise AllocationError("provided IP is already allocated")
        self._pool.taken.add(number)

    def take_any(self, entropy: Entropy) -> IPv4Address:
        # The first number is never allocated at random: it belongs to the `kubernetes` Service.
        is_first_free = 0 not in self._pool.taken
        self._pool.taken.add(0)
        try:
            return IPv4Address(self._first + self._pool.take_any(entropy))
        finally:
            if is_first_free:
                self._pool.taken.discard(0)

    def check_dry(self, address: IPv4Address) -> None:
        if not 0 <= int(address) - self._first < self._pool.size:
            raise AllocationError(
                f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {self.network}"
            )

    def release(self, address: IPv4Address) -> None:
        self._pool.taken.discard(int(address) - self._first)


class ServicePorts:
    """The ports that nodes open for services."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        size = last - first + 1
        self._pool = NumberPool(size, _reserved_count(size, part=32, most=128))

    def take(self, port: int) -> None:
        if not self.first <= port <= self.last:
            raise AllocationError(
                f"provided port is not in the valid range. The range of valid ports is {self.first}-{self.last}"
            )
        if self.is_taken(port):
            raise AllocationError("provided port is already allocated")
        self._pool.taken.add(port - self.first)

    def take_any(self, entropy: Entropy) -> int:
        return self.first + self._pool.take_any(entropy)

    def is_taken(self, port: int) -> bool:
        return port - self.first in self._pool.taken

    def release(self, port: int) -> None:
        self._pool.taken.discard(port - self.first)

    def take_dry(self, port: int, taken: Collection[int]) -> None:
        if self.is_taken(port) or port in taken:
            raise AllocationError("provided port is already allocated")


def _reserved_count(size: int, *, part: int, most: int) -> int:
    """The number of values of a range that are reserved for explicit requests."""
    return 0 if size <= RESERVED_MIN else min(max(size // part, RESERVED_MIN), most)


def normalize_cluster_ips(spec: Document, old_spec: Document | None) -> None:
    """Set the list of addresses from the single one: old clients write only that."""
    first, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if old_spec is None:
        if first and not ips:
            spec["clusterIPs"] = [first]
        return
    old_first, old_ips = old_spec.get("clusterIP", ""), old_spec.get("clusterIPs") or []
    if first == old_first:
        if old_ips and not ips:
            spec["clusterIPs"] = old_ips
    elif ips == old_ips:
        if first:
            spec["clusterIPs"] = [first]
        else:
            spec.pop("clusterIPs", None)


def fill_from_old(spec: Document, old_spec: Document) -> None:
    """Fill in allocated values that the update omits."""
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old_spec.get(field):
                spec[field] = old_spec[field]
    if _keeps_node_ports(spec) and _keeps_node_ports(old_spec):
        _fill_node_ports(spec, old_spec)
    known = old_spec.get("healthCheckNodePort")
    if known and needs_health_check(spec) and needs_health_check(old_spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = known


def allocates_node_ports(spec: Document) -> bool:
    """Whether every port gets a node port."""
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts")))


def node_ports_of(spec: Document) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def _keeps_node_ports(spec: Document) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def _fill_node_ports(spec: Document, old_spec: Document) -> None:
    new_ports = node_ports_of(spec)
    used = [port for port in node_ports_of(old_spec) if port in new_ports]
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in old_spec.get("ports") or ()}
    for port in spec.get("ports") or ():
        known = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and known and known not in used:
            port["nodePort"] = known
