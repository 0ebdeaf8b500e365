"""The Endpoints controller writes the older Endpoints of services with a selector.

Inputs: services, pods and Endpoints, from informers. Outputs: one Endpoints object for each service, deleted with
it.

1. Addresses with the same set of ports form one subset. An address that is not ready on one port is not ready.
2. Of more than `ENDPOINTS_MAX` addresses the ready ones come first, from each subset in proportion.
3. An update carries the resourceVersion of the informer, so that a stale sync ends in a conflict and is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import ClassVar, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINTS, place_of
from mooring.api.views.meta import ObjectReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import EndpointPort, Endpoints, Service
from mooring.api.well_known import (
    ENDPOINTS_MANAGED_BY_LABEL,
    ENDPOINTS_OVER_CAPACITY,
    ENDPOINTS_TRIGGER_TIME,
    HEADLESS_SERVICE_LABEL,
    LEADER_ANNOTATION,
)
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome, split_key
from mooring.controllers.documents import document_of, is_namespace_terminating
from mooring.controllers.endpoint.service_pods import (
    EXTERNAL_NAME,
    HEADLESS,
    ServicePods,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_headless,
    ports_of,
)
from mooring.controllers.pods import is_ready

ENDPOINTS_MAX = 1000
MANAGER = "endpoint-controller"
AddressKey: TypeAlias = tuple[str, str]
"""Address and uid of the pod. Pods in the host network share addresses."""
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
    """The subsets cut to the maximum of one object. None if they are below it."""
    ready = sum(len(subset.get("addresses", ())) for subset in subsets)
    unready = sum(len(subset.get("notReadyAddresses", ())) for subset in subsets)
    if ready + unready <= ENDPOINTS_MAX:
        return None
    cuts_ready = ready > ENDPOINTS_MAX
    field = "addresses" if cuts_ready else "notReadyAddresses"
    capacity, total = (ENDPOINTS_MAX, ready) if cuts_ready else (ENDPOINTS_MAX - ready, unready)
    left = capacity
    cut: list[Document] = []
    for subset in subsets:
        remaining = {name: value for name, value in subset.items() if name != field}
        if cuts_ready:
            remaining.pop("notReadyAddresses", None)
        found = subset.get(field, [])
        share = min(left, -(-len(found) * capacity // total))
        if found[:share]:
            remaining[field] = found[:share]
        left -= len(found[:share])
        cut.append(remaining)
    return cut


def labels_of_endpoints(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS_SERVICE_LABEL}
    if is_headless(service):
        labels[HEADLESS_SERVICE_LABEL] = ""
    labels[ENDPOINTS_MANAGED_BY_LABEL] = MANAGER
    return labels


def are_labels_right(found: Mapping[str, str], service: Service) -> bool:
    """Whether labels are those of the service, apart from those of the controller."""
    if found.get(ENDPOINTS_MANAGED_BY_LABEL) != MANAGER:
        return False
    rest = {
        name: value for name, value in found.items() if name not in (HEADLESS_SERVICE_LABEL, ENDPOINTS_MANAGED_BY_LABEL)
    }
    return rest == dict(service.metadata.labels)


def are_subsets_same(found: list[Document], expected: list[Document]) -> bool:
    """Equality in any order, without the resource versions of pods."""
    return sorted(map(_comparable, found)) == sorted(map(_comparable, expected))


def _comparable(subset: Document) -> str:
    def address(entry: Document) -> Document:
        target: Document = entry.get("targetRef") or {}
        return {**entry, "targetRef": {name: value for name, value in target.items() if name != "resourceVersion"}}

    plain = {
        "ready": sorted((address(entry) for entry in subset.get("addresses") or []), key=str),
        "unready": sorted((address(entry) for entry in subset.get("notReadyAddresses") or []), key=str),
        "ports": sorted((dict(sorted(port.items())) for port in subset.get("ports") or []), key=str),
    }
    return msgspec.json.encode(plain, order="deterministic").decode()


class EndpointsController(Controller):
    """Keys are services."""

    name: ClassVar[str] = "endpoints-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_endpoint_syncs
        self._recorder = context.recorder("endpoint-controller")
        batch_s = context.settings.endpoint_updates_batch_period_s
        self._service_pods = ServicePods(context, self.name, self.queue, batch_s)
        self._endpoints = context.informers.informer(Endpoints)
        self._endpoints.add_handler(
            self.name, on_add=self._on_endpoints, on_delete=lambda gone: self.queue.add(gone.key)
        )

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        service = self._service_pods.service(key)
        try:
            if service is None:
                await self._delete(key)
            elif service.spec.type != EXTERNAL_NAME and service.spec.selector is not None:
                await self._write(service)
        except ClientError as error:
            return Failed(str(error))
        return DONE

    async def _delete(self, key: str) -> None:
        self._service_pods.forget(key)
        if self._endpoints.lister.by_key(key) is None:
            return
        with suppress(NotFoundError):
            await self.client.delete(ENDPOINTS, *split_key(key))

    async def _write(self, service: Service) -> None:
        """Create or update the Endpoints if they differ. Raises `ClientError`, after an event."""
        namespace, name = service.metadata.namespace, service.metadata.name
        pods, trigger_time = self._service_pods.read(service)
        subsets = plan_subsets(service, pods)
        current = self._endpoints.lister.get(namespace, name)
        document: Document = (
            document_of(current)
            if current is not None
            else {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, "namespace": namespace}}
        )
        if current is not None and _is_right(current, document, service, subsets):
            return
        _fill(document, service, subsets, trigger_time)
        try:
            if current is None:
                await self.client.create(ENDPOINTS, namespace, document, is_answer_wanted=False)
            else:
                await self.client.update(*place_of(current), document)
        except (AlreadyExistsError, ConflictError):
            raise
        except ClientError as error:
            if current is None and is_namespace_terminating(error):
                return
            self._record_failure(service, current, error)
            raise

    def _record_failure(self, service: Service, current: Endpoints | None, error: ClientError) -> None:
        metadata = service.metadata
        uid = current.metadata.uid if current is not None else ""
        about = ObjectReference(
            api_version="v1", kind="Endpoints", namespace=metadata.namespace, name=metadata.name, uid=uid
        )
        if current is None:
            message = f"Failed to create endpoint for service {service.key}: {error}"
            self._recorder.event(about, "Warning", "FailedToCreateEndpoint", message)
        else:
            message = f"Failed to update endpoint {service.key}: {error}"
            self._recorder.event(about, "Warning", "FailedToUpdateEndpoint", message)

    # ----------------------------------------------------------------------------------------------- events

    def _on_endpoints(self, endpoints: Endpoints) -> None:
        """Enqueue Endpoints whose service was deleted while the controller did not run, but not those of leader
        election."""
        if not self._endpoints.has_synced and LEADER_ANNOTATION not in endpoints.metadata.annotations:
            self.queue.add(endpoints.key)


def _is_right(current: Endpoints, document: Document, service: Service, subsets: list[Document]) -> bool:
    found: list[Document] = document.get("subsets") or []
    count = sum(len(subset.get("addresses") or ()) + len(subset.get("notReadyAddresses") or ()) for subset in found)
    is_capacity_right = count <= ENDPOINTS_MAX and ENDPOINTS_OVER_CAPACITY not in current.metadata.annotations
    return is_capacity_right and are_labels_right(current.metadata.labels, service) and are_subsets_same(found, subsets)


def _fill(document: Document, service: Service, subsets: list[Document], trigger_time: str) -> None:
    cut = truncated(subsets)
    metadata: Document = document["metadata"]
    annotations = {**(metadata.get("annotations") or {})}
    for name, value in (
        (ENDPOINTS_TRIGGER_TIME, trigger_time),
        (ENDPOINTS_OVER_CAPACITY, "truncated" if cut is not None else ""),
    ):
        annotations.pop(name, None)
        if value:
            annotations[name] = value
    metadata["annotations"] = annotations
    metadata["labels"] = labels_of_endpoints(service)
    document["subsets"] = cut if cut is not None else subsets
