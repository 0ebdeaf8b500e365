"""Pods as the API server of Kubernetes v1.36 admits them.

1. A pod with a uid has been admitted already and only gets a priority if it lacks one.
2. Only fields that scheduling reads are filled in.
3. RuntimeClasses and LimitRanges are not applied: they would add overhead, selectors and default requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.quantity import NANO
from mooring.api.resource_names import is_huge_page_resource, is_pod_level_resource
from mooring.api.resources import RequestRules, pod_requests_nano
from mooring.api.tolerations import NO_EXECUTE, is_tolerated
from mooring.api.views.base import RawQuantity
from mooring.api.views.node import Taint
from mooring.api.views.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from mooring.api.views.selectors import LabelSelectorRequirement
from mooring.api.views.workloads import PriorityClass

SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
Side = TypeVar("Side", PodAffinity, PodAntiAffinity)

TOLERATED_FOR_S = 300
SHORT_OUTAGES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints of nodes that may come back: every pod stays there for a while."""


class PriorityRules:
    """Which priority a pod has that only names a class, or nothing at all."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._by_name = {each.metadata.name: each for each in classes}
        defaults = [each for each in self._by_name.values() if each.global_default]
        # Of several defaults the API server takes the lowest.
        self._default = min(defaults, key=lambda each: (each.value, each.metadata.name), default=None)
        self.missing: Counter[str] = Counter()
        """Classes that pods name and nobody has, with how many pods name them."""

    def can_rank(self, spec: PodSpec) -> bool:
        """Whether the pod has a priority, or its class is known."""
        name = spec.priority_class_name
        return spec.priority is not None or not name or name in SYSTEM_PRIORITIES or name in self._by_name

    def applied(self, spec: PodSpec) -> PodSpec:
        if spec.priority is not None:
            return spec
        name = spec.priority_class_name
        if not name:
            return _ranked(spec, self._default) if self._default is not None else replace(spec, priority=0)
        if name in SYSTEM_PRIORITIES:
            return replace(spec, priority=SYSTEM_PRIORITIES[name])
        known = self._by_name.get(name)
        if known is None:
            self.missing[name] += 1
            return replace(spec, priority=0)
        return _ranked(spec, known)


def _ranked(spec: PodSpec, priority_class: PriorityClass) -> PodSpec:
    return replace(
        spec,
        priority=priority_class.value,
        priority_class_name=priority_class.metadata.name,
        preemption_policy=spec.preemption_policy or priority_class.preemption_policy,
    )


def admitted_pod(pod: Pod, priorities: PriorityRules) -> Pod:
    """The pod as a scheduler would see it."""
    spec = priorities.applied(pod.spec)
    if not spec.scheduler_name:
        spec = replace(spec, scheduler_name="default-scheduler")
    if pod.metadata.uid:
        return replace(pod, spec=spec)
    spec = replace(
        spec,
        containers=_with_defaults(spec.containers, spec.host_network),
        init_containers=_with_defaults(spec.init_containers, spec.host_network),
        tolerations=_with_short_outages(spec.tolerations),
        affinity=_with_label_keys(spec.affinity, pod.metadata.labels) if spec.affinity is not None else None,
    )
    admitted = replace(pod, spec=spec)
    return _with_pod_level_requests(admitted)


# --- resources and ports ----------------------------------------------------------------------------------------


def _with_defaults(containers: tuple[Container, ...], host_network: bool) -> tuple[Container, ...]:
    return tuple(_with_host_ports(_with_requests(c)) if host_network else _with_requests(c) for c in containers)


def _with_requests(container: Container) -> Container:
    """What a container is limited to and does not request, it requests."""
    resources = container.resources
    if all(name in resources.requests for name in resources.limits):
        return container
    return replace(container, resources=replace(resources, requests={**resources.limits, **resources.requests}))


def _with_host_ports(container: Container) -> Container:
    """In the host's network every port is a port of the host."""
    ports = tuple(replace(port, host_port=port.host_port or port.container_port) for port in container.ports)
    return replace(container, ports=ports)


def _with_pod_level_requests(pod: Pod) -> Pod:
    """A pod that is limited as a whole requests, as a whole, what its containers do, or else what it is limited to."""
    resources = pod.spec.resources
    if resources is None or not resources.limits:
        return pod
    requests: dict[str, RawQuantity] = dict(resources.requests)
    of_containers = pod_requests_nano(pod, RequestRules(counts_pod_level=False, counts_overhead=False))
    for name, amount_nano in of_containers.items():
        if name not in requests and is_pod_level_resource(name) and not is_huge_page_resource(name):
            requests[name] = f"{amount_nano}n" if amount_nano % NANO else amount_nano // NANO
    for name, limit in resources.limits.items():
        if name not in requests and is_pod_level_resource(name):
            requests[name] = limit
    whole = ResourceRequirements(requests=requests, limits=resources.limits, claims=resources.claims)
    return replace(pod, spec=replace(pod.spec, resources=whole))


# --- tolerations ------------------------------------------------------------------------------------------------


def _with_short_outages(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    added = tuple(
        Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=TOLERATED_FOR_S)
        for key in SHORT_OUTAGES
        if not is_tolerated(Taint(key=key, effect=NO_EXECUTE), tolerations)
    )
    return (*tolerations, *added)


# --- affinity ---------------------------------------------------------------------------------------------------


def _with_label_keys(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    """`matchLabelKeys` and `mismatchLabelKeys` become part of the selectors."""
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return replace(
        affinity,
        pod_affinity=_merged(near, labels) if near is not None else None,
        pod_anti_affinity=_merged(far, labels) if far is not None else None,
    )


def _merged(side: Side, labels: Mapping[str, str]) -> Side:
    return replace(
        side,
        required_during_scheduling_ignored_during_execution=tuple(
            _merged_term(term, labels) for term in side.required_during_scheduling_ignored_during_execution
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            replace(weighted, pod_affinity_term=_merged_term(weighted.pod_affinity_term, labels))
            for weighted in side.preferred_during_scheduling_ignored_during_execution
        ),
    )


def _merged_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    if selector is None:  # selects nobody, and nobody less is still nobody
        return term
    added = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys))
        for key in keys
        if key in labels
    )
    if not added:
        return term
    return replace(term, label_selector=replace(selector, match_expressions=(*selector.match_expressions, *added)))
