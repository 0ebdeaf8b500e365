"""The pods of services: what both controllers of endpoints follow, and when they look at a service again.

Comes in   services and pods, from informers
Goes out   keys of services into the controller's queue; the pods of one service, and since when they are so

 1. A pod that changes nothing about a service does not wake it. One that leaves a service wakes that one too.
 2. A large service is looked at less often: its pods change all the time, and each look costs what it has pods.
"""

from __future__ import annotations

from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service
from mooring.client.workqueue import WorkQueue
from mooring.controllers.context import Workshop
from mooring.controllers.endpoint.parts import (
    TriggerTimes,
    is_endpoint_changed,
    is_membership_changed,
    selector_of_service,
)
from mooring.controllers.pod_groups import pod_groups
from mooring.controllers.selecting import Selecting

LARGE_SERVICE = 100
GATHER_S_PER_POD = 100e-6


class ServicePods:
    """For one controller, into whose queue it puts the keys of services. `batch_s` is how long changes are gathered."""

    def __init__(self, workshop: Workshop, name: str, queue: WorkQueue[str], batch_s: float) -> None:
        self._queue = queue
        self._batch_s = batch_s
        services, pods = workshop.informers.informer(Service), workshop.informers.informer(Pod)
        self._services, self._pods = services.lister, pods.lister
        self._groups = pod_groups(pods)
        self._selecting = Selecting(name, services, selector_of_service)
        self._trigger_times = TriggerTimes()
        self._sizes: dict[str, int] = {}
        services.add_handler(
            name,
            on_add=lambda service, is_initial: queue.add(service.key),
            on_update=lambda old, new: queue.add(new.key),
            on_delete=lambda service: queue.add(service.key),
        )
        pods.add_handler(
            name,
            on_add=lambda pod, is_initial: self._wake_services_of(pod),
            on_update=self._on_pod_updated,
            on_delete=self._wake_services_of,
        )

    def service(self, key: str) -> Service | None:
        return self._services.by_key(key)

    def look(self, service: Service) -> tuple[list[Pod], str]:
        """The pods of a service, and the time of the change that made us look; empty if nobody knows it."""
        namespace = service.metadata.namespace
        groups = self._groups.selected(namespace, selector_of_service(service))
        named = (self._pods.get(namespace, name) for group in groups for name in group.names)
        pods = [pod for pod in named if pod is not None]
        self._sizes[service.key] = len(pods)
        return pods, self._trigger_times.observe(service, pods)

    def forget(self, key: str) -> None:
        """The service is gone."""
        self._trigger_times.forget(key)
        self._sizes.pop(key, None)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if not self._selecting.is_any_in(new.metadata.namespace):
            return
        if is_endpoint_changed(old, new) or is_membership_changed(old, new):
            self._wake_services_of(new)
            if old.metadata.labels != new.metadata.labels:
                self._wake_services_of(old)

    def _wake_services_of(self, pod: Pod) -> None:
        for key in self._selecting.keys(pod.metadata):
            size = self._sizes.get(key, 0)
            gather_s = size * GATHER_S_PER_POD if size > LARGE_SERVICE else 0.0
            self._queue.add_after(key, max(self._batch_s, gather_s))
