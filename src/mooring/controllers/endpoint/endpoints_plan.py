"""The older form of endpoints: all of a service in one object, as subsets that share their ports.

Comes in   a service and its pods
Goes out   its subsets, packed and in order; cut down if there are too many

 1. Addresses with the same set of ports are one subset. An address that is not ready on one port of a subset is not
    ready.
 2. Of more than `ENDPOINTS_MAX` addresses those that are ready come first, from each subset in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.views.endpoints import EndpointPort
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service
from mooring.controllers.endpoint.parts import (
    HEADLESS,
    HEADLESS_LABEL,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_headless,
    ports_of,
)
from mooring.controllers.pods import is_ready

ENDPOINTS_MAX = 1000
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"

AddressKey: TypeAlias = tuple[str, str]
"""Address and uid of the pod: two pods may share an address, on the host's network."""

_NO_PORT = EndpointPort(port=-1)


def plan_subsets(service: Service, pods: Iterable[Pod]) -> list[Document]:
    addresses: dict[AddressKey, Document] = {}
    is_ready_by_port: dict[EndpointPort, dict[AddressKey, bool]] = {}
    family = families_of(service)[0]
    is_unready_wanted = service.spec.publish_not_ready_addresses
    for pod in pods:
        if not has_address(pod) or (pod.metadata.deletion_timestamp is not None and not is_unready_wanted):
            continue
        of_family = addresses_of(pod, family)
        if not of_family:
            continue
        key = (of_family[0], pod.metadata.uid)
        addresses[key] = _address(pod, service, of_family[0])
        is_usable = is_unready_wanted or is_ready(pod)
        for port in _ports(service, pod):
            of_port = is_ready_by_port.setdefault(port, {})
            of_port[key] = of_port.get(key, True) and is_usable
    return _packed(addresses, is_ready_by_port)


def _ports(service: Service, pod: Pod) -> Iterable[EndpointPort]:
    if service.spec.ports:
        return ports_of(service, pod)
    return (_NO_PORT,) if service.spec.cluster_ip == HEADLESS else ()


def _address(pod: Pod, service: Service, address: str) -> Document:
    metadata = pod.metadata
    target = {"kind": "Pod", "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}
    document: Document = {"ip": address, "nodeName": pod.spec.node_name, "targetRef": target}
    hostname = hostname_of(pod, service)
    if hostname is not None:
        document["hostname"] = hostname
    return document


def _packed(
    addresses: Mapping[AddressKey, Document], is_ready_by_port: Mapping[EndpointPort, Mapping[AddressKey, bool]]
) -> list[Document]:
    """One subset for each set of addresses."""
    ports_by_addresses: dict[tuple[tuple[AddressKey, bool], ...], list[EndpointPort]] = {}
    for port, of_port in is_ready_by_port.items():
        ports_by_addresses.setdefault(tuple(sorted(of_port.items())), []).append(port)
    subsets: list[Document] = []
    for members, ports in ports_by_addresses.items():
        subset: Document = {}
        ready = [addresses[key] for key, is_usable in members if is_usable]
        unready = [addresses[key] for key, is_usable in members if not is_usable]
        if ready:
            subset["addresses"] = ready
        if unready:
            subset["notReadyAddresses"] = unready
        if ports != [_NO_PORT]:
            subset["ports"] = [_port_document(port) for port in ports if port is not _NO_PORT]
        subsets.append(subset)
    return subsets


def _port_document(port: EndpointPort) -> Document:
    document: Document = msgspec.to_builtins(port)
    if not document.get("name"):
        document.pop("name", None)
    return document


def truncated(subsets: list[Document]) -> list[Document] | None:
    """The subsets cut down to what one object may hold; None if they are few enough."""
    ready = sum(len(subset.get("addresses", ())) for subset in subsets)
    unready = sum(len(subset.get("notReadyAddresses", ())) for subset in subsets)
    if ready + unready <= ENDPOINTS_MAX:
        return None
    cuts_ready = ready > ENDPOINTS_MAX
    field = "addresses" if cuts_ready else "notReadyAddresses"
    room, total = (ENDPOINTS_MAX, ready) if cuts_ready else (ENDPOINTS_MAX - ready, unready)
    left = room
    cut: list[Document] = []
    for subset in subsets:
        kept = {name: value for name, value in subset.items() if name != field}
        if cuts_ready:
            kept.pop("notReadyAddresses", None)
        found = subset.get(field, [])
        share = min(left, -(-len(found) * room // total))
        if found[:share]:
            kept[field] = found[:share]
        left -= len(found[:share])
        cut.append(kept)
    return cut


def labels_of_endpoints(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS_LABEL}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    labels[MANAGED_BY_LABEL] = MANAGER
    return labels


def are_labels_right(found: Mapping[str, str], service: Service) -> bool:
    """Whether they are the service's, besides our own."""
    if found.get(MANAGED_BY_LABEL) != MANAGER:
        return False
    rest = {name: value for name, value in found.items() if name not in (HEADLESS_LABEL, MANAGED_BY_LABEL)}
    return rest == dict(service.metadata.labels)


def are_subsets_same(found: list[Document], wanted: list[Document]) -> bool:
    """In whatever order they stand; versions of pods do not count."""
    return sorted(map(_comparable, found)) == sorted(map(_comparable, wanted))


def _comparable(subset: Document) -> str:
    def address(each: Document) -> Document:
        target: Document = each.get("targetRef") or {}
        return {**each, "targetRef": {name: value for name, value in target.items() if name != "resourceVersion"}}

    plain = {
        "ready": sorted((address(each) for each in subset.get("addresses") or []), key=str),
        "unready": sorted((address(each) for each in subset.get("notReadyAddresses") or []), key=str),
        "ports": sorted((dict(sorted(port.items())) for port in subset.get("ports") or []), key=str),
    }
    return msgspec.json.encode(plain, order="deterministic").decode()
