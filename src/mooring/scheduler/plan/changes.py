"""Changes to a pod or a node that remove one obstacle: the candidates of `fix`.

An obstacle says what keeps a pod from a node (`framework.obstacle`). For each kind there is at most one change of the
pod and one of the node that removes it. A change only rewrites values; `fix` verifies it by deciding again.

    obstacle        the pod                         the node
    resource        requests less                   pods are evicted
    podSlot                                         pods are evicted
    taint           tolerates it                    loses it
    cordon                                          is uncordoned
    nodeLabel       does not require the label      gets the label
    hostPort        does not use the port           the pod that uses it is evicted
    spread          without the constraints
    affinity        without required affinity
    antiAffinity    without required anti-affinity
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.api.quantity import parse_quantity, quantity_nano
from mooring.api.views.meta import NodeSelectorRequirement
from mooring.api.views.node import Node
from mooring.api.views.pod import Affinity, Container, Pod, PodAffinity, PodAntiAffinity, PodSpec, Toleration
from mooring.scheduler.framework.obstacle import Details, Obstacle, ObstacleKind

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class PodChange:
    """A change of the pod."""

    text: str
    pod: Pod


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A change of the node."""

    text: str
    node: Node


def change_pod(pod: Pod, obstacle: Obstacle) -> PodChange | None:
    """The pod without the obstacle; None if no change of a pod removes it."""
    details, spec = obstacle.details, pod.spec
    match obstacle.kind:
        case ObstacleKind.RESOURCE:
            return _request_less(pod, details)
        case ObstacleKind.TAINT:
            toleration = Toleration(
                key=str(details["key"]),
                operator="Equal",
                value=str(details["value"]),
                effect=str(details["effect"]),
            )
            text = f"tolerate {_taint_text(details)}"
            return PodChange(text, replace(pod, spec=replace(spec, tolerations=(*spec.tolerations, toleration))))
        case ObstacleKind.NODE_LABEL:
            return _require_less(pod, details)
        case ObstacleKind.HOST_PORT:
            port = int(details["port"])
            containers = tuple(_without_port(container, port) for container in spec.containers)
            return PodChange(f"do not use host port {port}", replace(pod, spec=replace(spec, containers=containers)))
        case ObstacleKind.SPREAD:
            soft = tuple(
                each for each in spec.topology_spread_constraints if each.when_unsatisfiable != "DoNotSchedule"
            )
            if len(soft) == len(spec.topology_spread_constraints):
                return None
            text = "drop the topology spread constraints with DoNotSchedule"
            return PodChange(text, replace(pod, spec=replace(spec, topology_spread_constraints=soft)))
        case ObstacleKind.AFFINITY:
            return _with_affinity(pod, "drop the required pod affinity", pod_affinity=PodAffinity())
        case ObstacleKind.ANTI_AFFINITY:
            return _with_affinity(pod, "drop the required pod anti-affinity", pod_anti_affinity=PodAntiAffinity())
        case _:
            return None


def change_node(node: Node, obstacle: Obstacle) -> NodeChange | None:
    """The node without the obstacle; None if no change of its object removes it."""
    details, name = obstacle.details, node.metadata.name
    match obstacle.kind:
        case ObstacleKind.CORDON:
            return NodeChange(f"uncordon node {name}", uncordoned(node))
        case ObstacleKind.TAINT:
            taints = tuple(
                taint
                for taint in node.spec.taints
                if (taint.key, taint.effect) != (str(details["key"]), str(details["effect"]))
            )
            text = f"remove the taint {_taint_text(details)} from node {name}"
            return NodeChange(text, replace(node, spec=replace(node.spec, taints=taints)))
        case ObstacleKind.NODE_LABEL:
            key, separator, value = str(details.get("needs", "")).partition("=")
            if not separator or not key or "(" in key or key.endswith("!") or key.startswith("metadata."):
                return None
            labels = {**node.metadata.labels, key: value}
            text = f"label node {name} with {key}={value}"
            return NodeChange(text, replace(node, metadata=replace(node.metadata, labels=labels)))
        case _:
            return None


def uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def _taint_text(details: Details) -> str:
    value = f"={details['value']}" if details["value"] else ""
    return f"{details['key']}{value}:{details['effect']}"


def _request_less(pod: Pod, details: Details) -> PodChange | None:
    """The container that requests most of the resource requests less, by what is missing."""
    resource, missing = str(details["resource"]), quantity_nano(str(details["missing"]))
    containers = list(pod.spec.containers)

    def requested(container: Container) -> int:
        return quantity_nano(container.resources.requests.get(resource, "0"))

    if not containers:
        return None
    largest = max(range(len(containers)), key=lambda index: requested(containers[index]))
    before = requested(containers[largest])
    if before <= missing:
        return None
    amount = str(
        parse_quantity(containers[largest].resources.requests[resource]) - parse_quantity(str(details["missing"]))
    )
    requests = {**containers[largest].resources.requests, resource: amount}
    resources = replace(containers[largest].resources, requests=requests)
    containers[largest] = replace(containers[largest], resources=resources)
    where = f" in container {containers[largest].name}" if len(containers) > 1 else ""
    text = (
        f"request {amount} {resource} instead of {details['wanted']}{where}"
        if len(containers) == 1
        else (f"request {amount} {resource}{where}")
    )
    return PodChange(text, replace(pod, spec=replace(pod.spec, containers=tuple(containers))))


def _require_less(pod: Pod, details: Details) -> PodChange | None:
    """Without the node selector, or the requirement of node affinity, that the node does not meet."""
    needs, spec = str(details.get("needs", "")), pod.spec
    key = needs.partition("=")[0].partition(" ")[0].removeprefix("!").rstrip("!")
    if key in spec.node_selector:
        selector: Mapping[str, str] = {name: value for name, value in spec.node_selector.items() if name != key}
        text = f"drop the node selector {key}={spec.node_selector[key]}"
        return PodChange(text, replace(pod, spec=replace(spec, node_selector=selector)))
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if spec.affinity is None or affinity is None or required is None:
        return None

    def others(requirements: tuple[NodeSelectorRequirement, ...]) -> tuple[NodeSelectorRequirement, ...]:
        return tuple(each for each in requirements if each.key != key)

    terms = tuple(
        replace(term, match_expressions=others(term.match_expressions), match_fields=others(term.match_fields))
        for term in required.node_selector_terms
    )
    if terms == required.node_selector_terms:
        return None
    is_empty = any(not term.match_expressions and not term.match_fields for term in terms)
    changed = None if is_empty else replace(required, node_selector_terms=terms)
    node_affinity = replace(affinity, required_during_scheduling_ignored_during_execution=changed)
    spec = replace(spec, affinity=replace(spec.affinity, node_affinity=node_affinity))
    return PodChange(f"do not require the node label {key}", replace(pod, spec=spec))


def _without_port(container: Container, port: int) -> Container:
    ports = tuple(replace(each, host_port=0) if each.host_port == port else each for each in container.ports)
    return replace(container, ports=ports)


def _with_affinity(
    pod: Pod, text: str, pod_affinity: PodAffinity | None = None, pod_anti_affinity: PodAntiAffinity | None = None
) -> PodChange | None:
    """The pod without required terms of the kind that is given; preferred terms stay."""
    affinity = pod.spec.affinity or Affinity()
    if pod_affinity is not None:
        if affinity.pod_affinity is None:
            return None
        preferred = affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
        affinity = replace(
            affinity, pod_affinity=PodAffinity(preferred_during_scheduling_ignored_during_execution=preferred)
        )
    if pod_anti_affinity is not None:
        if affinity.pod_anti_affinity is None:
            return None
        preferred = affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution
        affinity = replace(
            affinity, pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=preferred)
        )
    spec: PodSpec = replace(pod.spec, affinity=affinity)
    return PodChange(text, replace(pod, spec=spec))
