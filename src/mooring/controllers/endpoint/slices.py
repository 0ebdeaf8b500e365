"""The EndpointSlice controller writes the slices of services with a selector.

Inputs: services, pods, nodes and slices, from informers. Outputs: slices created, updated and deleted.

1. A service is not synced before the informer shows the controller's own writes.
2. The garbage collector deletes the slices of a deleted service, which owns them.

`plan_slices` distributes the endpoints of a service over slices, with few writes:

3. A slice has endpoints with the same ports, at most `limit`.
4. Every change of a slice is sent to every node, so endpoints stay in their slice. New ones fill the slices that
   are written anyway, then one with enough free places for all of them, then new slices. Slices are not compacted.
5. A service without endpoints has one empty slice per IP family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import ENDPOINT_SLICE, place_of
from mooring.api.views.meta import ObjectReference
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
    Service,
)
from mooring.api.well_known import (
    ENDPOINT_SLICE_MANAGED_BY_LABEL,
    ENDPOINTS_TRIGGER_TIME,
    HEADLESS_SERVICE_LABEL,
    SERVICE_NAME_LABEL,
    ZONE,
)
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import document_of, is_namespace_terminating, owner_reference
from mooring.controllers.endpoint.service_pods import (
    ServicePods,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_headless,
    ports_of,
    selector_of_service,
)
from mooring.controllers.pods import is_ready

MANAGER = "endpointslice-controller.k8s.io"
_OWN_LABELS = (SERVICE_NAME_LABEL, ENDPOINT_SLICE_MANAGED_BY_LABEL, HEADLESS_SERVICE_LABEL)

_CLOSE = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TOPOLOGY_ANNOTATIONS = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")

Ports: TypeAlias = tuple[EndpointPort, ...]
EndpointKey: TypeAlias = tuple[tuple[str, ...], str | None, str, str]


@dataclass(slots=True)
class DesiredSlice:
    """The desired content of a slice, existing or new."""

    ports: Ports
    endpoints: list[Endpoint]
    existing: EndpointSlice | None = None


@dataclass(slots=True)
class SliceChanges:
    """The writes of one IP family of a service."""

    to_create: list[DesiredSlice] = field(default_factory=list)
    to_update: list[DesiredSlice] = field(default_factory=list)
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
    """`slices` have the IP family. `zone_of_node` gives None for an unknown node, "" for a node without a zone."""
    changes = SliceChanges()
    own = [endpoint_slice for endpoint_slice in slices if is_owned_by(endpoint_slice, service)]
    changes.to_delete += [endpoint_slice for endpoint_slice in slices if endpoint_slice not in own]
    desired = _desired_endpoints(service, family, pods, zone_of_node, changes)
    for key, (ports, endpoints) in desired.items():
        same_ports = [endpoint_slice for endpoint_slice in own if _port_key(endpoint_slice.ports) == key]
        _plan_ports(service, ports, endpoints, same_ports, limit, changes)
    changes.to_delete += [endpoint_slice for endpoint_slice in own if _port_key(endpoint_slice.ports) not in desired]
    if len(changes.to_delete) == len(slices) and not changes.to_create:
        if len(slices) == 1 and _is_placeholder(slices[0], service):
            changes.to_delete.clear()
        else:
            changes.to_create.append(DesiredSlice((), []))
    _rename_instead_of_replacing(service, changes)
    return changes


def _desired_endpoints(
    service: Service,
    family: str,
    pods: Iterable[Pod],
    zone_of_node: Callable[[str], str | None],
    changes: SliceChanges,
) -> dict[object, tuple[Ports, dict[EndpointKey, Endpoint]]]:
    """The desired endpoints by ports, then by key."""
    desired: dict[object, tuple[Ports, dict[EndpointKey, Endpoint]]] = {}
    for pod in pods:
        if not has_address(pod):
            continue
        ports = ports_of(service, pod)
        _, endpoints = desired.setdefault(_port_key(ports), (ports, {}))
        zone = zone_of_node(pod.spec.node_name)
        if zone is None and not service.spec.publish_not_ready_addresses:
            changes.errors.append(
                f"skipping Pod {pod.metadata.name} for Service {service.key}: Node {pod.spec.node_name} Not Found"
            )
            continue
        endpoint = endpoint_of(pod, service, family, zone or None)
        if endpoint.addresses:
            endpoints[_endpoint_key(endpoint)] = endpoint
    return desired


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
    """The hints of an endpoint, if the service prefers close endpoints."""
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
    desired: dict[EndpointKey, Endpoint],
    slices: Sequence[EndpointSlice],
    limit: int,
    changes: SliceChanges,
) -> None:
    """Plan the endpoints with the same ports. Empties `desired`."""
    to_update: list[DesiredSlice] = []
    unchanged: list[EndpointSlice] = []
    for endpoint_slice in slices:
        remaining, is_changed = _remaining_endpoints(endpoint_slice, desired)
        if is_changed and not remaining:
            changes.to_delete.append(endpoint_slice)
        elif is_changed or not _has_labels_of(endpoint_slice, service):
            to_update.append(DesiredSlice(endpoint_slice.ports, remaining, endpoint_slice))
        else:
            unchanged.append(endpoint_slice)
    left = [*desired.values()]
    for draft in sorted(to_update, key=lambda draft: -len(draft.endpoints)):
        _fill(draft, left, limit)
    while left:
        roomy = _slice_with_capacity(unchanged, len(left), limit) if len(left) < limit else None
        if roomy is not None:
            unchanged.remove(roomy)
            draft = DesiredSlice(roomy.ports, [*roomy.endpoints], roomy)
            to_update.append(draft)
        else:
            draft = DesiredSlice(ports, [])
            changes.to_create.append(draft)
        _fill(draft, left, limit)
    changes.to_update += to_update


def _remaining_endpoints(
    endpoint_slice: EndpointSlice, desired: dict[EndpointKey, Endpoint]
) -> tuple[list[Endpoint], bool]:
    """The endpoints that stay in a slice, and whether the slice changes. Removes them from `desired`."""
    remaining: list[Endpoint] = []
    is_changed = False
    for endpoint in endpoint_slice.endpoints:
        now = desired.pop(_endpoint_key(endpoint), None)
        if now is None:
            is_changed = True
            continue
        remaining.append(now)
        is_changed = is_changed or not _is_same(now, endpoint)
    return remaining, is_changed


def _fill(draft: DesiredSlice, left: list[Endpoint], limit: int) -> None:
    capacity = max(0, limit - len(draft.endpoints))
    draft.endpoints += left[:capacity]
    del left[:capacity]


def _slice_with_capacity(slices: Sequence[EndpointSlice], count: int, limit: int) -> EndpointSlice | None:
    """The fullest slice that can take `count` more endpoints."""
    fitting = [
        endpoint_slice for endpoint_slice in slices if 0 <= limit - count - len(endpoint_slice.endpoints) < limit
    ]
    return max(fitting, key=lambda endpoint_slice: len(endpoint_slice.endpoints), default=None)


def _rename_instead_of_replacing(service: Service, changes: SliceChanges) -> None:
    """Reuse slices to be deleted for slices to be created."""
    for gone in [endpoint_slice for endpoint_slice in changes.to_delete if is_owned_by(endpoint_slice, service)]:
        if not changes.to_create:
            return
        draft = changes.to_create.pop()
        draft.existing = gone
        changes.to_update.append(draft)
        changes.to_delete.remove(gone)


# --- documents -----------------------------------------------------------------------------------------------


def slice_document(draft: DesiredSlice, service: Service, family: str, trigger_time: str) -> Document:
    """The object of a draft."""
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
    annotations.pop(ENDPOINTS_TRIGGER_TIME, None)
    if trigger_time:
        annotations[ENDPOINTS_TRIGGER_TIME] = trigger_time
    document["metadata"]["annotations"] = annotations
    return document


def labels_of_slice(service: Service) -> dict[str, str]:
    labels = _service_labels(service.metadata.labels)
    if is_headless(service):
        labels[HEADLESS_SERVICE_LABEL] = ""
    labels[SERVICE_NAME_LABEL] = service.metadata.name
    labels[ENDPOINT_SLICE_MANAGED_BY_LABEL] = MANAGER
    return labels


def is_owned_by(endpoint_slice: EndpointSlice, service: Service) -> bool:
    return any(
        owner.uid == service.metadata.uid and owner.kind == "Service" and owner.api_version == "v1"
        for owner in endpoint_slice.metadata.owner_references
    )


def _has_labels_of(endpoint_slice: EndpointSlice, service: Service) -> bool:
    return _service_labels(endpoint_slice.metadata.labels) == _service_labels(service.metadata.labels)


def _service_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in _OWN_LABELS}


def _is_placeholder(endpoint_slice: EndpointSlice, service: Service) -> bool:
    is_empty = not endpoint_slice.endpoints and not endpoint_slice.ports
    return (
        is_empty
        and is_owned_by(endpoint_slice, service)
        and dict(endpoint_slice.metadata.labels) == labels_of_slice(service)
    )


def _port_key(ports: Ports) -> object:
    return tuple(
        sorted((port.name or "", port.protocol or "", port.port or 0, port.app_protocol or "") for port in ports)
    )


def _endpoint_key(endpoint: Endpoint) -> EndpointKey:
    target = endpoint.target_ref
    namespace, name = (target.namespace, target.name) if target is not None else ("", "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname, namespace, name


def _is_same(one: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints with the same key are equal."""
    return (
        one.conditions == other.conditions
        and one.node_name == other.node_name
        and one.zone == other.zone
        and one.hints == other.hints
        and (one.target_ref is None) == (other.target_ref is None)
        and (one.target_ref is None or other.target_ref is None or one.target_ref.uid == other.target_ref.uid)
    )


# --- the controller -------------------------------------------------------------------------------------------


BY_SERVICE = "slices of a service"

FOREIGN_CHANGE_S = 1.0
"""Delay after another client changed a slice: it may write more."""
STALE_S = 0.05
EXPECTED_S_MAX = 30.0
"""How long a write may be missing in the informer. A lost event must not block a service forever."""

_GONE = -1


@dataclass(frozen=True, slots=True)
class _Written:
    version: int
    since_s: float


class EndpointSliceController(Controller):
    """Keys are services."""

    name: ClassVar[str] = "endpointslice-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_service_endpoint_syncs
        self._recorder = context.recorder("endpoint-slice-controller")
        self._limit = context.settings.max_endpoints_per_slice
        batch_s = context.settings.endpointslice_updates_batch_period_s
        self._service_pods = ServicePods(context, self.name, self.queue, batch_s)
        informers = context.informers
        self._nodes = informers.informer(Node).lister
        self._slices = informers.informer(EndpointSlice)
        self._slices.add_index(BY_SERVICE, _service_of)
        self._written: dict[str, dict[str, _Written]] = {}
        """Versions that were written and that the informer does not show yet, by service and slice."""
        self._slices.add_handler(
            self.name,
            on_add=self._on_slice,
            on_update=self._on_slice_updated,
            on_delete=self._on_slice_deleted,
        )

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        service = self._service_pods.service(key)
        if service is None:
            self._forget(key)
            return DONE
        if selector_of_service(service).matches_nothing:
            return DONE
        slices = [
            endpoint_slice
            for endpoint_slice in self._slices.lister.by_index(BY_SERVICE, key)
            if endpoint_slice.metadata.deletion_timestamp is None and _is_managed(endpoint_slice)
        ]
        if self._is_stale(key):
            return Later(STALE_S)
        pods, trigger_time = self._service_pods.read(service)
        try:
            errors = await self._write_families(service, pods, slices, trigger_time)
        except ClientError as error:
            errors = [str(error)]
        if not errors:
            return DONE
        reason = ", ".join(errors)
        message = f"Error updating Endpoint Slices for Service {key}: {reason}"
        self._recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", message)
        return Failed(reason)

    async def _write_families(
        self, service: Service, pods: Sequence[Pod], slices: Sequence[EndpointSlice], trigger_time: str
    ) -> list[str]:
        """Write the slices of all IP families. Returns errors of single pods. Raises `ClientError`."""
        errors: list[str] = []
        families = families_of(service)
        for family in families:
            of_family = [endpoint_slice for endpoint_slice in slices if endpoint_slice.address_type == family]
            changes = plan_slices(service, family, pods, of_family, self._zone_of_node, self._limit)
            await self._write(service, family, changes, trigger_time)
            errors += changes.errors
        for endpoint_slice in slices:
            if endpoint_slice.address_type not in families:
                await self._delete(service, endpoint_slice)
        return errors

    async def _write(self, service: Service, family: str, changes: SliceChanges, trigger_time: str) -> None:
        if service.metadata.deletion_timestamp is None:
            for draft in changes.to_create:
                document = slice_document(draft, service, family, trigger_time)
                try:
                    answer = await self.client.create(ENDPOINT_SLICE, service.metadata.namespace, document)
                except ClientError as error:
                    if is_namespace_terminating(error):
                        return
                    raise
                self._expect(service.key, decode_as(EndpointSlice, answer))
        for draft in changes.to_update:
            assert draft.existing is not None, f"a slice of {service.key} that does not exist cannot be updated"
            document = slice_document(draft, service, family, trigger_time)
            answer = await self.client.update(*place_of(draft.existing), document)
            self._expect(service.key, decode_as(EndpointSlice, answer))
        for endpoint_slice in changes.to_delete:
            await self._delete(service, endpoint_slice)

    async def _delete(self, service: Service, endpoint_slice: EndpointSlice) -> None:
        try:
            await self.client.delete(*place_of(endpoint_slice))
        except NotFoundError:
            return
        if self._slices.lister.by_key(endpoint_slice.key) is not None:
            self._written.setdefault(service.key, {})[endpoint_slice.key] = _Written(_GONE, self.clock.now_s())

    def _zone_of_node(self, name: str) -> str | None:
        node = self._nodes.get("", name)
        return node.metadata.labels.get(ZONE, "") if node is not None else None

    # ------------------------------------------------------------------------------------------- own writes

    def _expect(self, service_key: str, written: EndpointSlice) -> None:
        self._written.setdefault(service_key, {})[written.key] = _Written(_version(written), self.clock.now_s())

    def _is_stale(self, service_key: str) -> bool:
        """Whether the informer does not show all writes of this controller."""
        expected = self._written.get(service_key)
        if not expected:
            return False
        overdue_s = self.clock.now_s() - EXPECTED_S_MAX
        for key, written in [*expected.items()]:
            seen = self._slices.lister.by_key(key)
            is_gone_seen = written.version == _GONE and seen is None
            is_seen = written.version != _GONE and seen is not None and _version(seen) >= written.version
            if is_gone_seen or is_seen or written.since_s < overdue_s:
                del expected[key]
        return bool(expected)

    def _forget(self, service_key: str) -> None:
        self._service_pods.forget(service_key)
        self._written.pop(service_key, None)

    # ----------------------------------------------------------------------------------------------- events

    def _on_slice(self, endpoint_slice: EndpointSlice) -> None:
        if not _is_managed(endpoint_slice):
            return
        for key in _service_of(endpoint_slice):
            expected = self._written.get(key, {}).get(endpoint_slice.key)
            if expected is None or _version(endpoint_slice) > expected.version:
                self._enqueue_delayed(key)

    def _on_slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if _is_managed(old) != _is_managed(new) or [*_service_of(old)] != [*_service_of(new)]:
            for key in dict.fromkeys((*_service_of(old), *_service_of(new))):
                self._enqueue_delayed(key)
        else:
            self._on_slice(new)

    def _on_slice_deleted(self, endpoint_slice: EndpointSlice) -> None:
        for key in _service_of(endpoint_slice):
            expected = self._written.get(key, {}).pop(endpoint_slice.key, None)
            if _is_managed(endpoint_slice) and (expected is None or expected.version != _GONE):
                self._enqueue_delayed(key)

    def _enqueue_delayed(self, key: str) -> None:
        batch_s = self.context.settings.endpointslice_updates_batch_period_s
        self.queue.add_after(key, max(FOREIGN_CHANGE_S, batch_s))


def _is_managed(endpoint_slice: EndpointSlice) -> bool:
    return endpoint_slice.metadata.labels.get(ENDPOINT_SLICE_MANAGED_BY_LABEL) == MANAGER


def _service_of(endpoint_slice: EndpointSlice) -> Iterable[str]:
    name = endpoint_slice.metadata.labels.get(SERVICE_NAME_LABEL)
    return (f"{endpoint_slice.metadata.namespace}/{name}",) if name else ()


def _version(endpoint_slice: EndpointSlice) -> int:
    return int(endpoint_slice.metadata.resource_version)
