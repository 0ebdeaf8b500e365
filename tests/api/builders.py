"""Builders: short functions that make the objects of tests.

pod(container(cpu="500m"), overhead={"cpu": "10m"})
node("n1", taints=["gpu=true:NoSchedule"], allocatable={"cpu": 4})
selector("app=web", "stage in test,beta")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.views.meta import (
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PreferredSchedulingTerm,
    RawQuantity,
)
from mooring.api.views.node import Node, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import (
    Affinity,
    Container,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)


def container(
    name: str = "main",
    *,
    cpu: RawQuantity | None = None,
    memory: RawQuantity | None = None,
    others: Mapping[str, RawQuantity] | None = None,
) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=amounts(cpu, memory) | dict(others or {})))


def sidecar(name: str = "sidecar", *, cpu: RawQuantity | None = None, memory: RawQuantity | None = None) -> Container:
    requests = amounts(cpu, memory)
    return Container(name=name, restart_policy="Always", resources=ResourceRequirements(requests=requests))


def amounts(cpu: RawQuantity | None = None, memory: RawQuantity | None = None) -> dict[str, RawQuantity]:
    return {name: raw for name, raw in (("cpu", cpu), ("memory", memory)) if raw is not None}


def resized(
    actual: Mapping[str, RawQuantity], allocated: Mapping[str, RawQuantity] | None = None, name: str = "main"
) -> ContainerStatus:
    """The status of a container: its actual and its allocated resources."""
    return ContainerStatus(
        name=name, resources=ResourceRequirements(requests=actual), allocated_resources=allocated or {}
    )


def pod(
    *containers: Container,
    init: Sequence[Container] = (),
    overhead: Mapping[str, RawQuantity] | None = None,
    as_a_whole: Mapping[str, RawQuantity] | None = None,
    statuses: Sequence[ContainerStatus] = (),
    init_statuses: Sequence[ContainerStatus] = (),
    status_as_a_whole: Mapping[str, RawQuantity] | None = None,
    promised_as_a_whole: Mapping[str, RawQuantity] | None = None,
    resize_pending: str = "",
    node_selector: Mapping[str, str] | None = None,
    required: NodeSelector | None = None,
    preferred: Sequence[PreferredSchedulingTerm] = (),
) -> Pod:
    affinity = NodeAffinity(
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=tuple(preferred),
    )
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default"),
        spec=PodSpec(
            containers=containers,
            init_containers=tuple(init),
            overhead=overhead or {},
            resources=ResourceRequirements(requests=as_a_whole) if as_a_whole is not None else None,
            node_selector=node_selector or {},
            affinity=Affinity(node_affinity=affinity) if required or preferred else None,
        ),
        status=PodStatus(
            container_statuses=tuple(statuses),
            init_container_statuses=tuple(init_statuses),
            resources=ResourceRequirements(requests=status_as_a_whole) if status_as_a_whole is not None else None,
            allocated_resources=promised_as_a_whole or {},
            conditions=(Condition(type="PodResizePending", reason=resize_pending),) if resize_pending else (),
        ),
    )


def node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    allocatable: Mapping[str, RawQuantity] | None = None,
) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        spec=NodeSpec(taints=tuple(taint(text) for text in taints)),
        status=NodeStatus(allocatable=allocatable or {}),
    )


def taint(text: str) -> Taint:
    """`key=value:Effect`, or `key:Effect`."""
    said, _, effect = text.partition(":")
    key, _, value = said.partition("=")
    return Taint(key=key, value=value, effect=effect)


def toleration(text: str) -> Toleration:
    """`key=value:Effect` tolerates that value, `key:Effect` any; `:Effect` any key, `key` any effect."""
    said, _, effect = text.partition(":")
    key, equals, value = said.partition("=")
    return Toleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)


def selector(*requirements: str, **match_labels: str) -> LabelSelector:
    """`app="web"` for a matching label, `"stage In test,beta"` for an expression."""
    expressions = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=values)
        for key, operator, values in map(_expression, requirements)
    )
    return LabelSelector(match_labels=match_labels, match_expressions=expressions)


def node_selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def term(*requirements: str, fields: Sequence[str] = ()) -> NodeSelectorTerm:
    """`"zone In a,b"`, `"cores Gt 4"`, `"gpu Exists"`."""
    return NodeSelectorTerm(
        match_expressions=tuple(_node_requirement(text) for text in requirements),
        match_fields=tuple(_node_requirement(text) for text in fields),
    )


def preferred(weight: int, *requirements: str) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=term(*requirements))


def _node_requirement(text: str) -> NodeSelectorRequirement:
    key, operator, values = _expression(text)
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def _expression(text: str) -> tuple[str, str, tuple[str, ...]]:
    key, operator, *rest = text.split(" ")
    return key, operator, tuple(rest[0].split(",")) if rest else ()
