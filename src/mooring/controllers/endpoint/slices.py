"""The EndpointSlice controller writes the slices of services with a selector.

Inputs: services, pods, nodes and slices, from informers. Outputs: slices created, updated and deleted.

1. A service is not synced before the informer shows the controller's own writes.
2. The garbage collector deletes the slices of a deleted service, which owns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.kinds import ENDPOINT_SLICE
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import EndpointSlice, Service
from mooring.api.well_known import ENDPOINT_SLICE_MANAGED_BY_LABEL, SERVICE_NAME_LABEL, ZONE
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import is_namespace_terminating
from mooring.controllers.endpoint.service_pods import ServicePods, families_of, selector_of_service
from mooring.controllers.endpoint.slices_plan import MANAGER, SliceChanges, plan_slices, slice_document

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
            on_add=lambda each, is_initial: self._on_slice(each),
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
            each
            for each in self._slices.lister.by_index(BY_SERVICE, key)
            if each.metadata.deletion_timestamp is None and _is_managed(each)
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
            of_family = [each for each in slices if each.address_type == family]
            changes = plan_slices(service, family, pods, of_family, self._zone_of_node, self._limit)
            await self._write(service, family, changes, trigger_time)
            errors += changes.errors
        for each in slices:
            if each.address_type not in families:
                await self._delete(service, each)
        return errors

    async def _write(self, service: Service, family: str, changes: SliceChanges, trigger_time: str) -> None:
        namespace = service.metadata.namespace
        if service.metadata.deletion_timestamp is None:
            for draft in changes.to_create:
                document = slice_document(draft, service, family, trigger_time)
                try:
                    answer = await self.client.create(ENDPOINT_SLICE, namespace, document)
                except ClientError as error:
                    if is_namespace_terminating(error):
                        return
                    raise
                self._expect(service.key, decode_as(EndpointSlice, answer))
        for draft in changes.to_update:
            assert draft.existing is not None, f"a slice of {service.key} that does not exist cannot be updated"
            document = slice_document(draft, service, family, trigger_time)
            name = draft.existing.metadata.name
            answer = await self.client.update(ENDPOINT_SLICE, namespace, name, document)
            self._expect(service.key, decode_as(EndpointSlice, answer))
        for each in changes.to_delete:
            await self._delete(service, each)

    async def _delete(self, service: Service, each: EndpointSlice) -> None:
        try:
            await self.client.delete(ENDPOINT_SLICE, each.metadata.namespace, each.metadata.name)
        except NotFoundError:
            return
        if self._slices.lister.by_key(each.key) is not None:
            self._written.setdefault(service.key, {})[each.key] = _Written(_GONE, self.clock.now_s())

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

    def _on_slice(self, each: EndpointSlice) -> None:
        if not _is_managed(each):
            return
        for key in _service_of(each):
            expected = self._written.get(key, {}).get(each.key)
            if expected is None or _version(each) > expected.version:
                self._enqueue_delayed(key)

    def _on_slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if _is_managed(old) != _is_managed(new) or [*_service_of(old)] != [*_service_of(new)]:
            for key in dict.fromkeys((*_service_of(old), *_service_of(new))):
                self._enqueue_delayed(key)
        else:
            self._on_slice(new)

    def _on_slice_deleted(self, each: EndpointSlice) -> None:
        for key in _service_of(each):
            expected = self._written.get(key, {}).pop(each.key, None)
            if _is_managed(each) and (expected is None or expected.version != _GONE):
                self._enqueue_delayed(key)

    def _enqueue_delayed(self, key: str) -> None:
        batch_s = self.context.settings.endpointslice_updates_batch_period_s
        self.queue.add_after(key, max(FOREIGN_CHANGE_S, batch_s))


def _is_managed(each: EndpointSlice) -> bool:
    return each.metadata.labels.get(ENDPOINT_SLICE_MANAGED_BY_LABEL) == MANAGER


def _service_of(each: EndpointSlice) -> Iterable[str]:
    name = each.metadata.labels.get(SERVICE_NAME_LABEL)
    return (f"{each.metadata.namespace}/{name}",) if name else ()


def _version(each: EndpointSlice) -> int:
    return int(each.metadata.resource_version)
