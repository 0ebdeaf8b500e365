"""The endpoints controller: keeps the older `Endpoints` of services that have a selector.

Comes in   services, pods and endpoints, from informers
Goes out   one Endpoints object for each service, of its name; deleted with it

 1. Whoever follows services today reads slices; this is for those who do not yet.
 2. An update carries the version that was looked at, so a copy that is too old is found out and looked at again.
"""

from __future__ import annotations

from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINTS
from mooring.api.views.endpoints import Endpoints
from mooring.api.views.meta import ObjectReference
from mooring.api.views.workloads import Service
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.controllers.context import DONE, Controller, Failed, Outcome, Workshop, split_key
from mooring.controllers.documents import document_of
from mooring.controllers.endpoint.endpoints_plan import (
    ENDPOINTS_MAX,
    OVER_CAPACITY,
    are_labels_right,
    are_subsets_same,
    labels_of_endpoints,
    plan_subsets,
    truncated,
)
from mooring.controllers.endpoint.parts import EXTERNAL_NAME, TRIGGER_TIME
from mooring.controllers.endpoint.service_pods import ServicePods
from mooring.controllers.pod_control import is_namespace_terminating

LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"


class EndpointsController(Controller):
    name: ClassVar[str] = "endpoints-controller"

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self.workers = workshop.settings.concurrent_endpoint_syncs
        self._recorder = workshop.recorder("endpoint-controller")
        batch_s = workshop.settings.endpoint_updates_batch_period_s
        self._service_pods = ServicePods(workshop, self.name, self.queue, batch_s)
        self._endpoints = workshop.informers.informer(Endpoints)
        self._endpoints.add_handler(self.name, on_add=self._on_endpoints, on_delete=self._on_endpoints_deleted)

    # ------------------------------------------------------------------------------------------- one service

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
        try:
            await self.client.delete(ENDPOINTS, *split_key(key))
        except NotFoundError:
            return

    async def _write(self, service: Service) -> None:
        """If it differs. Raises `ClientError`, after an event."""
        namespace, name = service.metadata.namespace, service.metadata.name
        pods, trigger_time = self._service_pods.look(service)
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
                await self.client.update(ENDPOINTS, namespace, name, document)
        except (AlreadyExistsError, ConflictError):
            raise
        except ClientError as error:
            if current is None and is_namespace_terminating(error):
                return
            self._tell_failure(service, current, error)
            raise

    def _tell_failure(self, service: Service, current: Endpoints | None, error: ClientError) -> None:
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

    # ------------------------------------------------------------------------------------------ what is heard

    def _on_endpoints(self, endpoints: Endpoints, is_initial: bool) -> None:
        """What was left over from services that went while nobody looked. Elections of leaders were once held here."""
        if is_initial and LEADER_ANNOTATION not in endpoints.metadata.annotations:
            self.queue.add(endpoints.key)

    def _on_endpoints_deleted(self, endpoints: Endpoints) -> None:
        self.queue.add(endpoints.key)


def _is_right(current: Endpoints, document: Document, service: Service, subsets: list[Document]) -> bool:
    found: list[Document] = document.get("subsets") or []
    count = sum(len(each.get("addresses") or ()) + len(each.get("notReadyAddresses") or ()) for each in found)
    is_capacity_right = count <= ENDPOINTS_MAX and OVER_CAPACITY not in current.metadata.annotations
    return is_capacity_right and are_labels_right(current.metadata.labels, service) and are_subsets_same(found, subsets)


def _fill(document: Document, service: Service, subsets: list[Document], trigger_time: str) -> None:
    cut = truncated(subsets)
    metadata: Document = document["metadata"]
    annotations = {**(metadata.get("annotations") or {})}
    for name, value in ((TRIGGER_TIME, trigger_time), (OVER_CAPACITY, "truncated" if cut is not None else "")):
        annotations.pop(name, None)
        if value:
            annotations[name] = value
    metadata["annotations"] = annotations
    metadata["labels"] = labels_of_endpoints(service)
    document["subsets"] = cut if cut is not None else subsets
