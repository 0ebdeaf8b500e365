"""How the endpoints of a service lie in slices: which slices to write, so that few have to be.

Comes in   a service, its pods, its slices of one address family, the zones of nodes
Goes out   slices to create, to update, to delete

 1. A slice holds endpoints with the same ports, at most `limit` of them.
 2. Every change of a slice is sent to every node. So an endpoint stays where it is; new ones fill first the slices that
    are written anyway, then one that has room for all of them, then new slices. Slices are never packed closer.
 3. A service without endpoints has one empty slice in each family: nobody shall think that it was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.views.endpoints import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from mooring.api.views.meta import ObjectReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service
from mooring.controllers.documents import document_of, owner_reference
from mooring.controllers.endpoint.service_pods import (
    HEADLESS_LABEL,
    TRIGGER_TIME,
    addresses_of,
    has_address,
    hostname_of,
    is_headless,
    ports_of,
)
from mooring.controllers.pods import is_ready

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
_OWN_LABELS = (SERVICE_NAME_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL)

_CLOSE = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TOPOLOGY_ANNOTATIONS = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")

Ports: TypeAlias = tuple[EndpointPort, ...]
EndpointKey: TypeAlias = tuple[tuple[str, ...], str | None, str, str]


@dataclass(slots=True)
class Draft:
    """A slice as it shall be: one that exists, or a new one."""

    ports: Ports
    endpoints: list[Endpoint]
    existing: EndpointSlice | None = None


@dataclass(slots=True)
class SliceChanges:
    to_create: list[Draft] = field(default_factory=list)
    to_update: list[Draft] = field(default_factory=list)
    to_delete: list[EndpointSlice] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def plan_slices(
    service: Service,
    family: str,
    pods: Iterable[Pod],
    slices: Sequence[EndpointSlice],
    zone_of_node: Callable[[str], str | None],
    limit: int,
) -> SliceChanges:
    """`slices` are those of the family. `zone_of_node` answers None if there is no such node, "" if it has no zone."""
    changes = SliceChanges()
    own = [each for each in slices if is_owned_by(each, service)]
    changes.to_delete += [each for each in slices if each not in own]
    wanted = _wanted_endpoints(service, family, pods, zone_of_node, changes)
    for key, (ports, endpoints) in wanted.items():
        same_ports = [each for each in own if _port_key(each.ports) == key]
        _plan_ports(service, ports, endpoints, same_ports, limit, changes)
    changes.to_delete += [each for each in own if _port_key(each.ports) not in wanted]
    if len(changes.to_delete) == len(slices) and not changes.to_create:
        if len(slices) == 1 and _is_placeholder(slices[0], service):
            changes.to_delete.clear()
        else:
            changes.to_create.append(Draft((), []))
    _rename_instead_of_replacing(service, changes)
    return changes


def _wanted_endpoints(
    service: Service,
    family: str,
    pods: Iterable[Pod],
    zone_of_node: Callable[[str], str | None],
    changes: SliceChanges,
) -> dict[object, tuple[Ports, dict[EndpointKey, Endpoint]]]:
    """By ports; and then by what makes an endpoint the same."""
    wanted: dict[object, tuple[Ports, dict[EndpointKey, Endpoint]]] = {}
    for pod in pods:
        if not has_address(pod):
            continue
        ports = ports_of(service, pod)
        _, endpoints = wanted.setdefault(_port_key(ports), (ports, {}))
        zone = zone_of_node(pod.spec.node_name)
        if zone is None and not service.spec.publish_not_ready_addresses:
            changes.errors.append(
                f"skipping Pod {pod.metadata.name} for Service {service.key}: Node {pod.spec.node_name} Not Found"
            )
            continue
        endpoint = endpoint_of(pod, service, family, zone or None)
        if endpoint.addresses:
            endpoints[_endpoint_key(endpoint)] = endpoint
    return wanted


def endpoint_of(pod: Pod, service: Service, family: str, zone: str | None) -> Endpoint:
    """The pod as an endpoint of the service."""
    metadata = pod.metadata
    is_serving, is_terminating = is_ready(pod), metadata.deletion_timestamp is not None
    is_usable = service.spec.publish_not_ready_addresses or (is_serving and not is_terminating)
    node_name = pod.spec.node_name or None
    return Endpoint(
        addresses=addresses_of(pod, family),
        conditions=EndpointConditions(ready=is_usable, serving=is_serving, terminating=is_terminating),
        hostname=hostname_of(pod, service),
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        node_name=node_name,
        zone=zone,
        hints=_hints(service, zone, node_name) if is_usable else None,
    )


def _hints(service: Service, zone: str | None, node_name: str | None) -> EndpointHints | None:
    """Whom the endpoint should serve, if the service prefers what is close."""
    preference = service.spec.traffic_distribution
    if preference not in _CLOSE or _wants_topology_hints(service):
        return None
    zones = (ForZone(name=zone),) if zone is not None else ()
    nodes = (ForNode(name=node_name),) if node_name is not None and preference == "PreferSameNode" else ()
    return EndpointHints(for_zones=zones, for_nodes=nodes) if zones or nodes else None


def _wants_topology_hints(service: Service) -> bool:
    for name in _TOPOLOGY_ANNOTATIONS:
        value = service.metadata.annotations.get(name)
        if value is not None:
            return value in ("Auto", "auto")
    return False


def _plan_ports(
    service: Service,
    ports: Ports,
    wanted: dict[EndpointKey, Endpoint],
    slices: Sequence[EndpointSlice],
    limit: int,
    changes: SliceChanges,
) -> None:
    """Endpoints with the same ports. Empties `wanted`."""
    to_update: list[Draft] = []
    unchanged: list[EndpointSlice] = []
    for each in slices:
        kept, is_changed = _kept_endpoints(each, wanted)
        if is_changed and not kept:
            changes.to_delete.append(each)
        elif is_changed or not _has_labels_of(each, service):
            to_update.append(Draft(each.ports, kept, each))
        else:
            unchanged.append(each)
    left = [*wanted.values()]
    for draft in sorted(to_update, key=lambda draft: -len(draft.endpoints)):
        _fill(draft, left, limit)
    while left:
        roomy = _slice_with_room(unchanged, len(left), limit) if len(left) < limit else None
        if roomy is not None:
            unchanged.remove(roomy)
            draft = Draft(roomy.ports, [*roomy.endpoints], roomy)
            to_update.append(draft)
        else:
            draft = Draft(ports, [])
            changes.to_create.append(draft)
        _fill(draft, left, limit)
    changes.to_update += to_update


def _kept_endpoints(each: EndpointSlice, wanted: dict[EndpointKey, Endpoint]) -> tuple[list[Endpoint], bool]:
    """What stays of a slice, as it shall be, and whether that is a change. Takes it out of `wanted`."""
    kept: list[Endpoint] = []
    is_changed = False
    for endpoint in each.endpoints:
        now = wanted.pop(_endpoint_key(endpoint), None)
        if now is None:
            is_changed = True
            continue
        kept.append(now)
        is_changed = is_changed or not _is_same(now, endpoint)
    return kept, is_changed


def _fill(draft: Draft, left: list[Endpoint], limit: int) -> None:
    room = max(0, limit - len(draft.endpoints))
    draft.endpoints += left[:room]
    del left[:room]


def _slice_with_room(slices: Sequence[EndpointSlice], count: int, limit: int) -> EndpointSlice | None:
    """The slice that is fullest once so many were added."""
    fitting = [each for each in slices if 0 <= limit - count - len(each.endpoints) < limit]
    return max(fitting, key=lambda each: len(each.endpoints), default=None)


def _rename_instead_of_replacing(service: Service, changes: SliceChanges) -> None:
    """A slice that would be deleted becomes one that would be created."""
    for gone in [each for each in changes.to_delete if is_owned_by(each, service)]:
        if not changes.to_create:
            return
        draft = changes.to_create.pop()
        draft.existing = gone
        changes.to_update.append(draft)
        changes.to_delete.remove(gone)


# --- documents --------------------------------------------------------------------------------------------------


def slice_document(draft: Draft, service: Service, family: str, trigger_time: str) -> Document:
    """The whole object of a draft."""
    if draft.existing is not None:
        document = document_of(draft.existing)
    else:
        metadata = {"generateName": f"{service.metadata.name}-", "ownerReferences": [owner_reference(service)]}
        document = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata}
    document["addressType"] = family
    document["ports"] = [msgspec.to_builtins(port) for port in draft.ports]
    document["endpoints"] = [msgspec.to_builtins(endpoint) for endpoint in draft.endpoints]
    document["metadata"]["labels"] = labels_of_slice(service)
    annotations = {**(document["metadata"].get("annotations") or {})}
    annotations.pop(TRIGGER_TIME, None)
    if trigger_time:
        annotations[TRIGGER_TIME] = trigger_time
    document["metadata"]["annotations"] = annotations
    return document


def labels_of_slice(service: Service) -> dict[str, str]:
    labels = _service_labels(service.metadata.labels)
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    labels[SERVICE_NAME_LABEL] = service.metadata.name
    labels[MANAGED_BY_LABEL] = MANAGER
    return labels


def is_owned_by(each: EndpointSlice, service: Service) -> bool:
    return any(
        owner.uid == service.metadata.uid and owner.kind == "Service" and owner.api_version == "v1"
        for owner in each.metadata.owner_references
    )


def _has_labels_of(each: EndpointSlice, service: Service) -> bool:
    return _service_labels(each.metadata.labels) == _service_labels(service.metadata.labels)


def _service_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in _OWN_LABELS}


def _is_placeholder(each: EndpointSlice, service: Service) -> bool:
    is_empty = not each.endpoints and not each.ports
    return is_empty and is_owned_by(each, service) and dict(each.metadata.labels) == labels_of_slice(service)


def _port_key(ports: Ports) -> object:
    return tuple(
        sorted((port.name or "", port.protocol or "", port.port or 0, port.app_protocol or "") for port in ports)
    )


def _endpoint_key(endpoint: Endpoint) -> EndpointKey:
    target = endpoint.target_ref
    namespace, name = (target.namespace, target.name) if target is not None else ("", "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname, namespace, name


def _is_same(one: Endpoint, other: Endpoint) -> bool:
    """Beyond what makes it the same endpoint."""
    return (
        one.conditions == other.conditions
        and one.node_name == other.node_name
        and one.zone == other.zone
        and one.hints == other.hints
        and (one.target_ref is None) == (other.target_ref is None)
        and (one.target_ref is None or other.target_ref is None or one.target_ref.uid == other.target_ref.uid)
    )
