"""Pods as endpoints of services: for the controllers of EndpointSlices and of Endpoints.

Inputs: services and pods, from informers. Outputs: keys of services in the controller's queue; the pods of a
service; addresses, ports and host names.

1. A pod without an address, or a finished one, is no endpoint. A terminating pod is one until it is gone, so that
   connections can drain.
2. A named target port is looked up in containers and sidecars. A pod without it is an endpoint without that port.
3. A pod event that changes no endpoint enqueues nothing. A pod that leaves a service enqueues it, too.
4. Pod events of a large service are batched, because each sync reads all of its pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address

from mooring.api.labels import NOTHING, LabelMatcher, matcher_of_pairs
from mooring.api.views.pod import Container, Pod
from mooring.api.views.workloads import EndpointPort, Service, ServicePort
from mooring.client.workqueue import WorkQueue
from mooring.controllers.context import ControllerContext
from mooring.controllers.pod_indexes import SelectorIndex
from mooring.controllers.pods import is_finished, is_ready, ready_condition

IPV4 = "IPv4"
IPV6 = "IPv6"
EXTERNAL_NAME = "ExternalName"
HEADLESS = "None"
LARGE_SERVICE = 100
BATCH_S_PER_POD = 100e-6


def selector_of_service(service: Service) -> LabelMatcher:
    """A service without a selector, or of type ExternalName, selects nothing: others write its endpoints."""
    selector = service.spec.selector
    if selector is None or service.spec.type == EXTERNAL_NAME:
        return NOTHING
    return matcher_of_pairs(selector)


def is_headless(service: Service) -> bool:
    return service.spec.cluster_ip in ("", HEADLESS)


def has_address(pod: Pod) -> bool:
    """Whether a pod can be an endpoint."""
    return bool(pod.status.pod_ips) and not is_finished(pod)


def addresses_of(pod: Pod, family: str) -> tuple[str, ...]:
    """The pod's addresses of one family."""
    return tuple(address.ip for address in pod.status.pod_ips if family_of(address.ip) == family)


def family_of(address: str) -> str:
    """The IP family of an address. Invalid addresses count as IPv4, as in kube-controller-manager."""
    if ":" not in address:
        return IPV4
    try:
        return IPV6 if isinstance(ip_address(address), IPv6Address) else IPV4
    except ValueError:
        return IPV4


def families_of(service: Service) -> tuple[str, ...]:
    """The IP families of a service."""
    families = tuple(dict.fromkeys(family for family in service.spec.ip_families if family in (IPV4, IPV6)))
    if families:
        return families
    return (IPV4, IPV6) if is_headless(service) else (family_of(service.spec.cluster_ip),)


def ports_of(service: Service, pod: Pod) -> tuple[EndpointPort, ...]:
    """The ports of a service with the numbers of a pod."""
    found = ((port, port_number(pod, port)) for port in service.spec.ports)
    return tuple(
        EndpointPort(name=port.name, protocol=port.protocol, port=number, app_protocol=port.app_protocol)
        for port, number in found
        if number is not None
    )


def port_number(pod: Pod, port: ServicePort) -> int | None:
    """The number of a service port in a pod. None if the pod has no port of that name."""
    if isinstance(port.target_port, int):
        return port.target_port
    for container in _containers_with_ports(pod):
        for container_port in container.ports:
            if container_port.name == port.target_port and container_port.protocol == port.protocol:
                return container_port.container_port
    return None


def _containers_with_ports(pod: Pod) -> Iterable[Container]:
    yield from pod.spec.containers
    yield from (container for container in pod.spec.init_containers if container.restart_policy == "Always")


def hostname_of(pod: Pod, service: Service) -> str | None:
    """The host name of the pod in the domain of the service, if it has one."""
    is_in_domain = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return pod.spec.hostname if is_in_domain else None


def is_endpoint_changed(old: Pod, new: Pod) -> bool:
    """Whether an update of a pod changes the endpoint itself."""
    return (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.status.pod_ips != new.status.pod_ips
        or is_ready(old) != is_ready(new)
    )


def is_membership_changed(old: Pod, new: Pod) -> bool:
    """Whether an update of a pod changes which services it belongs to, or its host name."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec.hostname != new.spec.hostname
        or old.spec.subdomain != new.spec.subdomain
    )


class TriggerTimes:
    """Computes the annotation `last-change-trigger-time`: the earliest change that was not reported yet."""

    def __init__(self) -> None:
        self._reported: dict[str, tuple[str, Mapping[str, str]]] = {}

    def observe(self, service: Service, pods: Iterable[Pod]) -> str:
        """The time of the earliest new change of the service or a pod. Empty if there is none."""
        service_before, pods_before = self._reported.get(service.key, ("", {}))
        changes: list[str] = []
        pod_times: dict[str, str] = {}
        for pod in pods:
            condition = ready_condition(pod)
            since = condition.last_transition_time if condition is not None else None
            if since is None:
                continue
            pod_times[pod.metadata.name] = since
            if since > pods_before.get(pod.metadata.name, ""):
                changes.append(since)
        created = service.metadata.creation_timestamp or ""
        if created > service_before:
            changes.append(created)
        self._reported[service.key] = (created, pod_times)
        return min(changes, default="")

    def forget(self, key: str) -> None:
        self._reported.pop(key, None)


class ServicePods:
    """Enqueues services for one controller. `batch_s` is the batch period of pod events."""

    def __init__(self, context: ControllerContext, name: str, queue: WorkQueue[str], batch_s: float) -> None:
        self._queue = queue
        self._batch_s = batch_s
        services, pods = context.informers.informer(Service), context.informers.informer(Pod)
        self._services, self._pods = services.lister, pods.lister
        self._groups = context.pod_groups()
        self._selectors = SelectorIndex(name, services, selector_of_service)
        self._trigger_times = TriggerTimes()
        self._sizes: dict[str, int] = {}
        services.add_handler(
            name,
            on_add=lambda service: queue.add(service.key),
            on_update=lambda old, new: queue.add(new.key),
            on_delete=lambda service: queue.add(service.key),
        )
        pods.add_handler(
            name,
            on_add=self._enqueue_services_of,
            on_update=self._on_pod_updated,
            on_delete=self._enqueue_services_of,
        )

    def service(self, key: str) -> Service | None:
        return self._services.by_key(key)

    def read(self, service: Service) -> tuple[list[Pod], str]:
        """The pods of a service, and the time of the change that caused the sync (empty if unknown)."""
        namespace = service.metadata.namespace
        groups = self._groups.selected(namespace, selector_of_service(service))
        named = (self._pods.get(namespace, name) for group in groups for name in group.names)
        pods = [pod for pod in named if pod is not None]
        self._sizes[service.key] = len(pods)
        return pods, self._trigger_times.observe(service, pods)

    def forget(self, key: str) -> None:
        """Drop the state of a deleted service."""
        self._trigger_times.forget(key)
        self._sizes.pop(key, None)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if not self._selectors.is_any_in(new.metadata.namespace):
            return
        if is_endpoint_changed(old, new) or is_membership_changed(old, new):
            self._enqueue_services_of(new)
            if old.metadata.labels != new.metadata.labels:
                self._enqueue_services_of(old)

    def _enqueue_services_of(self, pod: Pod) -> None:
        for key in self._selectors.keys(pod.metadata):
            size = self._sizes.get(key, 0)
            batch_s = size * BATCH_S_PER_POD if size > LARGE_SERVICE else 0.0
            self._queue.add_after(key, max(self._batch_s, batch_s))
