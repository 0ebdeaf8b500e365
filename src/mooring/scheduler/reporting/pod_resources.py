"""The page /metrics/resources: the requests and limits of each pod, as two gauges in Prometheus' text format.

1. Pods that have finished are not shown: the event handlers have removed them.
2. Amounts are computed once per signature.
3. Pending pods of other schedulers are not shown: the scheduler does not keep them. kube-scheduler shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.api.quantity import NANO, quantity_nano
from mooring.api.resources import RequestRules, pod_requests_nano
from mooring.api.views.pod import Container, Pod
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature

LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_BYTES = ("memory", "storage", "ephemeral-storage")

Amounts = Mapping[str, float]


def pod_resources_text(pods: Iterable[PodInfo]) -> bytes:
    """The text of the page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_PodResources(pods))
    return generate_latest(registry)


class _PodResources(Collector):
    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._pods = pods

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        limits = GaugeMetricFamily("kube_pod_resource_limit", "What a pod may use at most, by resource.", labels=LABELS)
        requests = GaugeMetricFamily("kube_pod_resource_request", "What a pod requests, by resource.", labels=LABELS)
        for pod in self._pods:
            requested, limited = _amounts(pod.signature)
            spec = pod.signature.spec
            priority = str(spec.priority) if spec.priority is not None else ""
            labels = (pod.namespace, pod.name, pod.node_name, spec.scheduler_name, priority)
            for family, amounts in ((requests, requested), (limits, limited)):
                for resource, amount in amounts.items():
                    family.add_metric((*labels, resource, unit_of(resource)), amount)
        yield limits
        yield requests


def unit_of(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


@PerSignature
def _amounts(signature: PodSignature) -> tuple[Amounts, Amounts]:
    pod = signature.view
    return _whole(pod_requests_nano(pod, RequestRules())), _whole(_limits_nano(pod))


def _whole(amounts_nano: Mapping[str, int]) -> Amounts:
    return {name: amount / NANO for name, amount in sorted(amounts_nano.items()) if amount}


def _limits_nano(pod: Pod) -> dict[str, int]:
    """Limits add up like requests, but overhead counts only for resources with a limit."""
    spec = pod.spec
    limited = replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(_with_limits(container) for container in spec.containers),
            init_containers=tuple(_with_limits(container) for container in spec.init_containers),
            resources=None if spec.resources is None else replace(spec.resources, requests=spec.resources.limits),
        ),
    )
    limits = pod_requests_nano(limited, RequestRules(counts_overhead=False))
    for name, amount in spec.overhead.items():
        if limits.get(name):
            limits[name] += quantity_nano(amount)
    return limits


def _with_limits(container: Container) -> Container:
    return replace(container, resources=replace(container.resources, requests=container.resources.limits))
