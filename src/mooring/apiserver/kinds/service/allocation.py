"""Allocation of the cluster IPs, IP families and node ports of Services.

1. The registry calls `reserve` before it prepares and validates an object, because validation reads allocated values.
2. A reservation is kept after a successful write and closed in any case. Closing releases what was not kept. Values
   that an update no longer needs are released when the reservation is kept.
3. Nothing is stored: the existing Services determine the allocated values. A new server reads the Services once.
4. The cluster has one IP family, IPv4. Only a Service without a cluster IP may use the other one; a headless Service
   without a selector may have both.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.errors import internal, invalid_kind, plain_error
from mooring.apiserver.kinds.service.ranges import (
    DRY_RUN_PORT_FIRST,
    AllocationError,
    RangeFull,
    ServiceAddresses,
    ServicePorts,
    allocates_node_ports,
    fill_from_old,
    node_ports_of,
    normalize_cluster_ips,
)
from mooring.apiserver.kinds.service.validation import (
    NO_ADDRESS,
    SINGLE_STACK,
    is_headless,
    needs_health_check,
    validate_cluster_ips,
)
from mooring.apiserver.validation.addresses import IPV4, IPV6, family_of, parse_ip
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.client.errors import InvalidError
from mooring.kit.entropy import Entropy

CLUSTER_FAMILY = IPV4
REQUIRE_DUAL_STACK = "RequireDualStack"
PREFER_DUAL_STACK = "PreferDualStack"

_POLICY = "spec.ipFamilyPolicy"
PORT_FIRST, PORT_LAST = 30_000, 32_767
API_SERVICE = ("default", "kubernetes")
"""The service of the API server itself, which has the first address."""


def settle_families(service: Document, old: Document | None) -> None:
    spec = service["spec"]
    old_spec = old["spec"] if old is not None else None
    if spec.get("type") == "ExternalName" or (old_spec is not None and _prefers_the_same(spec, old_spec)):
        return
    is_bare = spec.get("clusterIP") == NO_ADDRESS and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        spec["ipFamilyPolicy"] = _assumed_policy(old_spec, is_bare)
    _raise_invalid(service, validate_cluster_ips(spec, old_spec))
    field_errors = _validate_reduction(spec, old_spec) if old_spec is not None else []
    field_errors += _validate_single_stack(spec)
    field_errors += _infer_families(spec)
    _raise_invalid(service, field_errors)
    if is_bare:
        _settle_bare(spec)
        return
    _raise_invalid(service, _validate_unconfigured(spec))
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = [CLUSTER_FAMILY]


def _assumed_policy(old_spec: Document | None, is_bare: bool) -> str:
    if old_spec is not None and "ipFamilyPolicy" in old_spec:
        policy: str = old_spec["ipFamilyPolicy"]
        return policy
    return REQUIRE_DUAL_STACK if is_bare else SINGLE_STACK


def _prefers_the_same(spec: Document, old_spec: Document) -> bool:
    return (
        spec.get("ipFamilyPolicy") == PREFER_DUAL_STACK
        and old_spec.get("ipFamilyPolicy", PREFER_DUAL_STACK) == PREFER_DUAL_STACK
        and spec.get("type") == old_spec.get("type")
        and spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")
        and all((spec.get(field) or []) == (old_spec.get(field) or []) for field in ("clusterIPs", "ipFamilies"))
    )


def _validate_reduction(spec: Document, old_spec: Document) -> list[FieldError]:
    """The policy must agree with the removal of the second family."""
    policy = spec["ipFamilyPolicy"]
    field_errors = []
    for field, called in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        new, old = spec.get(field) or [], old_spec.get(field) or []
        if policy == SINGLE_STACK:
            if new == old and len(new) > 1:
                spec[field] = new[:1]
        elif new and len(new) < len(old):
            field_errors.append(invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {called}"))
    return field_errors


def _validate_single_stack(spec: Document) -> list[FieldError]:
    policy = spec["ipFamilyPolicy"]
    if policy != SINGLE_STACK:
        return []
    return [
        invalid(
            _POLICY, policy, f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {called} are specified"
        )
        for field, called in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field) or ()) == 2
    ]


def _infer_families(spec: Document) -> list[FieldError]:
    """Set the IP families of a Service."""
    field_errors = []
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or [])
    for index, ip in enumerate(ips):
        if ip == NO_ADDRESS:
            break
        if index < len(families):
            continue
        family = family_of(ip)
        if family == CLUSTER_FAMILY:
            families.append(family)
        else:
            detail = f"{family} is not configured on this cluster"
            field_errors.append(invalid(f"spec.clusterIPs[{index}]", ips, detail))
    if families:
        spec["ipFamilies"] = families
    return field_errors


def _settle_bare(spec: Document) -> None:
    families = spec.get("ipFamilies") or [CLUSTER_FAMILY]
    if len(families) < 2 and spec["ipFamilyPolicy"] != SINGLE_STACK:
        families = [*families, IPV6 if families[0] == IPV4 else IPV4]
    spec["ipFamilies"] = families


def _validate_unconfigured(spec: Document) -> list[FieldError]:
    policy = spec["ipFamilyPolicy"]
    field_errors = []
    if policy == REQUIRE_DUAL_STACK:
        field_errors.append(invalid(_POLICY, policy, "this cluster is not configured for dual-stack services"))
    return field_errors + [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec.get("ipFamilies") or ())
        if family != CLUSTER_FAMILY
    ]


def _raise_invalid(service: Document, field_errors: list[FieldError]) -> None:
    if field_errors:
        error: InvalidError = invalid_kind(SERVICE, service["metadata"].get("name", ""), field_errors)
        raise error


ADDRESS_RANGE = IPv4Network("10.96.0.0/16")


class ServiceAllocator:
    """Allocates addresses and ports."""

    def __init__(self, services: Iterable[Document], entropy: Entropy) -> None:
        self.addresses = ServiceAddresses(ADDRESS_RANGE)
        self.ports = ServicePorts(PORT_FIRST, PORT_LAST)
        self.entropy = entropy
        for service in services:
            self._learn(service)

    def reserve(self, service: Document, old: Document | None, *, is_dry_run: bool = False) -> ServiceReservation:
        """Allocate addresses and ports. Raises `StatusError`, and then reserves nothing."""
        reservation = ServiceReservation(self, service, is_dry_run)
        try:
            if old is None:
                normalize_cluster_ips(service["spec"], None)
                settle_families(service, None)
                reservation.take_addresses()
                reservation.take_ports()
            else:
                fill_from_old(service["spec"], old["spec"])
                normalize_cluster_ips(service["spec"], old["spec"])
                settle_families(service, old)
                reservation.change_addresses(old["spec"])
                reservation.change_ports(old["spec"])
        except BaseException:
            reservation.close()
            raise
        return reservation

    def release(self, service: Document) -> None:
        """Release everything of a deleted Service."""
        spec = service["spec"]
        for ip in _held_addresses(spec):
            self.addresses.release(ip)
        for port in _held_ports(spec):
            self.ports.release(port)

    def _learn(self, service: Document) -> None:
        # A number that is rejected here is used by two services, or is out of range.
        for ip in _held_addresses(service["spec"]):
            with suppress(AllocationError):
                self.addresses.take(ip, may_take_first=True)
        for port in _held_ports(service["spec"]):
            with suppress(AllocationError):
                self.ports.take(port)


class ServiceReservation:
    """The values that one write allocates, and those that it releases."""

    def __init__(self, allocator: ServiceAllocator, service: Document, is_dry_run: bool) -> None:
        self._allocator = allocator
        self._service = service
        self._spec: Document = service["spec"]
        self._is_dry_run = is_dry_run
        self._taken_addresses: list[IPv4Address] = []
        self._taken_ports: list[int] = []
        self._freed_addresses: list[IPv4Address] = []
        self._freed_ports: list[int] = []

    def keep(self) -> None:
        """The write has happened."""
        if not self._is_dry_run:
            self._give_back(self._freed_addresses, self._freed_ports)
        self._taken_addresses, self._taken_ports = [], []

    def close(self) -> None:
        """Release the values of a reservation that was not kept."""
        if not self._is_dry_run:
            self._give_back(self._taken_addresses, self._taken_ports)
        self._taken_addresses, self._taken_ports = [], []

    def _give_back(self, addresses: list[IPv4Address], ports: list[int]) -> None:
        for address in addresses:
            self._allocator.addresses.release(address)
        for port in ports:
            self._allocator.ports.release(port)

    # ------------------------------------------------------------------------------------------- addresses

    def take_addresses(self) -> None:
        spec = self._spec
        if spec.get("type") == "ExternalName" or is_headless(spec):
            return
        # One family, one address: `settle_families` has rejected everything else.
        requested = (spec.get("clusterIPs") or [""])[0]
        spec["clusterIPs"] = [self._take_address(requested)]
        spec["clusterIP"] = spec["clusterIPs"][0]

    def change_addresses(self, old_spec: Document) -> None:
        kind, old_kind = self._spec.get("type"), old_spec.get("type")
        if old_kind == "ExternalName" != kind:
            self.take_addresses()
        elif kind == "ExternalName" != old_kind:
            self._freed_addresses += _held_addresses(old_spec)

    def _take_address(self, requested: str) -> str:
        if not requested:
            return str(self._allocator.addresses.network.network_address if self._is_dry_run else self._any_address())
        parsed = parse_ip(requested)
        assert parsed is not None, f"{requested} has passed as an address"
        assert isinstance(parsed.ip, IPv4Address), f"{requested} has passed as an IPv4 address"
        try:
            if self._is_dry_run:
                self._allocator.addresses.check_dry(parsed.ip)
            else:
                self._allocator.addresses.take(parsed.ip, may_take_first=self._is_api_service())
                self._taken_addresses.append(parsed.ip)
                self._note_owner(parsed.ip)
        except AllocationError as error:
            detail = f"failed to allocate IP {requested}: {error}"
            raise self._invalid(invalid("spec.clusterIPs", self._spec["clusterIPs"], detail)) from None
        return requested

    def _any_address(self) -> IPv4Address:
        try:
            address = self._allocator.addresses.take_any(self._allocator.entropy)
            self._taken_addresses.append(address)
            self._note_owner(address)
        except RangeFull as error:
            name = self._service["metadata"].get("name", "")
            raise internal(f'failed to allocate a serviceIP for Service "{name}": {error}') from None
        except AllocationError as error:
            raise self._invalid(invalid("spec.clusterIPs", [""], f"failed to allocate IP: {error}")) from None
        return address

    def _note_owner(self, address: IPv4Address) -> None:
        """Kubernetes stores an IPAddress object for each address, which fails for a Service without a name."""
        if not self._service["metadata"].get("name"):
            reason = "spec.parentRef.name: Required value"
            raise AllocationError(f'IPAddress.networking.k8s.io "{address}" is invalid: {reason}')

    def _is_api_service(self) -> bool:
        metadata = self._service["metadata"]
        return (metadata.get("namespace"), metadata.get("name")) == API_SERVICE

    # ------------------------------------------------------------------------------------------- ports

    def take_ports(self) -> None:
        if self._spec.get("type") in ("NodePort", "LoadBalancer"):
            self._take_node_ports()
        if needs_health_check(self._spec):
            self._take_health_check_port()

    def change_ports(self, old_spec: Document) -> None:
        spec = self._spec
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            self._change_node_ports(node_ports_of(old_spec))
        elif old_spec.get("type") in ("NodePort", "LoadBalancer"):
            self._freed_ports += node_ports_of(old_spec)
        if needs_health_check(spec) and not needs_health_check(old_spec):
            self._take_health_check_port()
        elif needs_health_check(old_spec) and not needs_health_check(spec):
            self._freed_ports.append(old_spec.get("healthCheckNodePort", 0))

    def _take_node_ports(self) -> None:
        """Ports of one number (TCP and UDP) share a node port unless the Service names two."""
        ports = self._spec.get("ports") or []
        by_number: dict[int, int] = {}
        requested_by_number = _requested_node_ports(ports)
        for index, port in enumerate(ports):
            requested, number = port.get("nodePort", 0), port.get("port", 0)
            if not requested and not allocates_node_ports(self._spec):
                continue
            shared = by_number.get(number)
            if shared is None:
                port["nodePort"] = by_number[number] = self._take_port_for(index, requested_by_number.get(number, 0))
            elif not requested:
                port["nodePort"] = shared
            elif requested != shared:
                self._take_port_for(index, requested)

    def _change_node_ports(self, old_ports: list[int]) -> None:
        seen: list[tuple[str, int]] = []
        taken: list[int] = []
        for index, port in enumerate(self._spec.get("ports") or ()):
            requested = port.get("nodePort", 0)
            if not requested and not allocates_node_ports(self._spec):
                continue
            if not requested:
                port["nodePort"] = requested = self._take_port_for(index, 0)
            elif requested not in old_ports and requested not in taken:
                self._take_port_for(index, requested)
                taken.append(requested)
            identity = (port.get("protocol", ""), requested)
            if identity in seen:
                raise plain_error(f"duplicate nodePort: {{{identity[0]} {identity[1]}}}")
            seen.append(identity)
        new_ports = node_ports_of(self._spec)
        self._freed_ports += [port for port in old_ports if port not in new_ports]

    def _take_port_for(self, index: int, requested: int) -> int:
        try:
            return self._take_port(requested)
        except RangeFull as error:
            raise internal(f"failed to allocate a nodePort: {error}") from None
        except AllocationError as error:
            raise self._invalid(invalid(f"spec.ports[{index}].nodePort", requested, str(error))) from None

    def _take_health_check_port(self) -> None:
        requested = self._spec.get("healthCheckNodePort", 0)
        try:
            self._spec["healthCheckNodePort"] = self._take_port(requested)
        except RangeFull as error:
            raise internal(f"failed to allocate a HealthCheck NodePort 0: {error}") from None
        except AllocationError as error:
            raise internal(f"failed to allocate requested HealthCheck NodePort {requested}: {error}") from None

    def _take_port(self, requested: int) -> int:
        """A certain port, or any (0)."""
        ports = self._allocator.ports
        if not requested:
            port = self._any_dry_port() if self._is_dry_run else ports.take_any(self._allocator.entropy)
        elif self._is_dry_run:
            ports.take_dry(requested, self._taken_ports)
            port = requested
        else:
            ports.take(requested)
            port = requested
        self._taken_ports.append(port)
        return port

    def _any_dry_port(self) -> int:
        return max(self._taken_ports) + 1 if self._taken_ports else DRY_RUN_PORT_FIRST

    def _invalid(self, error: FieldError) -> Exception:
        return invalid_kind(SERVICE, self._service["metadata"].get("name", ""), [error])


def _held_addresses(spec: Document) -> list[IPv4Address]:
    if spec.get("type") == "ExternalName" or is_headless(spec):
        return []
    parsed = [parse_ip(ip) for ip in spec.get("clusterIPs") or ()]
    return [address.ip for address in parsed if address is not None and isinstance(address.ip, IPv4Address)]


def _held_ports(spec: Document) -> list[int]:
    ports = list(dict.fromkeys(node_ports_of(spec)))
    if needs_health_check(spec) and spec.get("healthCheckNodePort"):
        ports.append(spec["healthCheckNodePort"])
    return ports


def _requested_node_ports(ports: Iterable[Document]) -> dict[int, int]:
    """By port number, the first node port that a port of that number names."""
    requested: dict[int, int] = {}
    for port in ports:
        if port.get("nodePort"):
            requested.setdefault(port.get("port", 0), port["nodePort"])
    return requested
