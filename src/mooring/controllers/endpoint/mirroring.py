"""The EndpointSlice mirroring controller copies Endpoints that users write into slices.

Inputs: services, Endpoints and slices, from informers. Outputs: slices created, updated and deleted.

1. Endpoints are mirrored if their service has no selector. Those of leader election and those with the label
   `skip-mirror` are not.
2. A slice has the addresses of one family of one subset, at most `ENDPOINTS_PER_SUBSET_MAX`. Its name follows from
   both, so that a sync that runs twice writes the same slices.
3. The garbage collector deletes the slices of deleted Endpoints, which own them; the controller deletes the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, ClassVar

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINT_SLICE, place_of
from mooring.api.views.workloads import Endpoints, EndpointSlice, Service
from mooring.api.well_known import (
    ENDPOINT_SLICE_MANAGED_BY_LABEL,
    ENDPOINTS_TRIGGER_TIME,
    LAST_APPLIED,
    LEADER_ANNOTATION,
    SERVICE_NAME_LABEL,
    SKIP_MIRROR_LABEL,
)
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import document_of, is_namespace_terminating, owner_reference

MANAGER = "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_PER_SUBSET_MAX = 1000
NAME_PREFIX_LENGTH_MAX = 230
FAMILIES = {4: "IPv4", 6: "IPv6"}
BY_SERVICE = "mirrored slices of a service"
_NOT_COPIED = frozenset({LAST_APPLIED, ENDPOINTS_TRIGGER_TIME})


def is_mirrored(endpoints: Endpoints, service: Service | None) -> bool:
    """Whether slices of these Endpoints are wanted."""
    metadata = endpoints.metadata
    return (
        service is not None
        and service.spec.selector is None
        and metadata.deletion_timestamp is None
        and LEADER_ANNOTATION not in metadata.annotations
        and metadata.labels.get(SKIP_MIRROR_LABEL) != "true"
    )


def mirrored_slices(endpoints: Endpoints) -> list[Document]:
    """The slices that mirror these Endpoints."""
    metadata = endpoints.metadata
    slices: list[Document] = []
    for index, subset in enumerate(document_of(endpoints).get("subsets") or []):
        for version, family in FAMILIES.items():
            found = [*_endpoints_of(subset, version)][:ENDPOINTS_PER_SUBSET_MAX]
            if not found:
                continue
            prefix = metadata.name[:NAME_PREFIX_LENGTH_MAX].rstrip("-.")
            slices.append(
                {
                    "apiVersion": EndpointSlice.api_version,
                    "kind": EndpointSlice.kind,
                    "metadata": {
                        "name": f"{prefix}-{family.lower()}-{index}",
                        "labels": {
                            **metadata.labels,
                            SERVICE_NAME_LABEL: metadata.name,
                            ENDPOINT_SLICE_MANAGED_BY_LABEL: MANAGER,
                        },
                        "annotations": {
                            name: value for name, value in metadata.annotations.items() if name not in _NOT_COPIED
                        },
                        "ownerReferences": [owner_reference(endpoints)],
                    },
                    "addressType": family,
                    "endpoints": found,
                    "ports": [{"name": "", **port} for port in subset.get("ports") or []],
                }
            )
    return slices


def _endpoints_of(subset: Document, version: int) -> Iterable[Document]:
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or []:
            if ip_address(address["ip"]).version != version:
                continue
            endpoint: Document = {"addresses": [address["ip"]], "conditions": {"ready": is_ready}}
            endpoint.update({name: address[name] for name in ("hostname", "nodeName", "targetRef") if name in address})
            yield endpoint


class EndpointSliceMirroringController(Controller):
    """Keys are Endpoints."""

    name: ClassVar[str] = "endpointslice-mirroring-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._services = context.informers.informer(Service)
        self._endpoints = context.informers.informer(Endpoints)
        self._slices = context.informers.informer(EndpointSlice)
        self._slices.add_index(BY_SERVICE, _service_of)
        self.handle_changes(self._services, self._enqueue, self._enqueue)
        self.handle_changes(self._endpoints, self._enqueue, self._enqueue)
        self.handle_changes(self._slices, self._on_slice, self._on_slice)

    def _enqueue(self, changed: Service | Endpoints) -> None:
        self.queue.add(changed.key)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        endpoints = self._endpoints.lister.by_key(key)
        expected: dict[str, Document] = {}
        if endpoints is not None and is_mirrored(endpoints, self._services.lister.by_key(key)):
            expected = {document["metadata"]["name"]: document for document in mirrored_slices(endpoints)}
        found = {
            endpoint_slice.metadata.name: endpoint_slice
            for endpoint_slice in self._slices.lister.by_index(BY_SERVICE, key)
        }
        namespace = key.partition("/")[0]
        try:
            for name, document in expected.items():
                await self._write(namespace, document, found.get(name))
            for name in found.keys() - expected.keys():
                with suppress(NotFoundError):
                    await self.client.delete(ENDPOINT_SLICE, namespace, name)
        except ClientError as error:
            return DONE if is_namespace_terminating(error) else Failed(str(error))
        return DONE

    async def _write(self, namespace: str, expected: Document, found: EndpointSlice | None) -> None:
        """Raises `ClientError`."""
        if found is None:
            await self.client.create(ENDPOINT_SLICE, namespace, expected, is_answer_wanted=False)
            return
        document = document_of(found)
        metadata: Document = {**document["metadata"], **expected["metadata"]}
        if not metadata["annotations"]:
            del metadata["annotations"]
        changed: dict[str, Any] = {**document, **expected, "metadata": metadata}
        if changed != document:
            await self.client.update(*place_of(found), changed)

    # ----------------------------------------------------------------------------------------------- events

    def _on_slice(self, endpoint_slice: EndpointSlice) -> None:
        for key in _service_of(endpoint_slice):
            self.queue.add(key)


def _service_of(endpoint_slice: EndpointSlice) -> Iterable[str]:
    """The key of the Endpoints that a slice mirrors."""
    labels = endpoint_slice.metadata.labels
    name = labels.get(SERVICE_NAME_LABEL)
    is_managed = labels.get(ENDPOINT_SLICE_MANAGED_BY_LABEL) == MANAGER
    return (f"{endpoint_slice.metadata.namespace}/{name}",) if name and is_managed else ()
