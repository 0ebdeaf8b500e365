"""Builders of what controllers read: sets, Deployments and their pods, as documents and as views.

deployment("web", replicas=3, image="app:2", surge=1, unavailable=0)
replica_set_view("web-1", replicas=3, available=2)
pod_view("p1", ready_for_s=60, on="n1")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.views.meta import Condition, ObjectMeta, OwnerReference
from mooring.api.views.pod import ContainerStatus, Pod, PodSpec, PodStatus
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339

NOW_S = VIRTUAL_WALL_S + 1_000_000


def template(labels: Mapping[str, str], image: str = "app:1") -> Document:
    return {"metadata": {"labels": dict(labels)}, "spec": {"containers": [{"name": "c", "image": image}]}}


def replica_set(
    name: str, *, replicas: int = 1, labels: Mapping[str, str] | None = None, image: str = "app:1", **spec: Any
) -> Document:
    labels = labels if labels is not None else {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": template(labels, image),
            **spec,
        },
    }


def replication_controller(name: str, *, replicas: int = 1, **spec: Any) -> Document:
    labels = {"app": name}
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": labels, "template": template(labels), **spec},
    }


def deployment(
    name: str = "web",
    *,
    replicas: int = 1,
    image: str = "app:1",
    surge: int | str = "25%",
    unavailable: int | str = "25%",
    strategy: str = "RollingUpdate",
    annotations: Mapping[str, str] | None = None,
    deadline_s: int | None = 600,
    history: int | None = 10,
    **spec: Any,
) -> Document:
    """With the defaults that an API server would fill in."""
    labels = {"app": name}
    how: Document = {"type": strategy}
    if strategy == "RollingUpdate":
        how["rollingUpdate"] = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template(labels, image),
            "strategy": how,
            "progressDeadlineSeconds": deadline_s,
            "revisionHistoryLimit": history,
            **spec,
        },
    }


def deployment_view(name: str = "web", *, status: Document | None = None, **parts: Any) -> Deployment:
    document = deployment(name, **parts)
    document["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", "generation": 1}
    document["status"] = status or {}
    return decode_as(Deployment, msgspec.json.encode(document))


def replica_set_view(
    name: str,
    *,
    available: int = 0,
    ready: int | None = None,
    actual: int | None = None,
    created: int = 0,
    annotations: Mapping[str, str] | None = None,
    status: Document | None = None,
    owner: str = "",
    **parts: Any,
) -> ReplicaSet:
    """`created`: how many seconds after the beginning of time."""
    document = replica_set(name, **parts)
    actual = document["spec"]["replicas"] if actual is None else actual
    document["metadata"] |= {
        "namespace": "default",
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": format_rfc3339(VIRTUAL_WALL_S + created),
        "annotations": dict(annotations or {}),
    }
    if owner:
        document["metadata"]["ownerReferences"] = [{"kind": "Deployment", "uid": owner, "controller": True}]
    document["status"] = {
        "replicas": actual,
        "readyReplicas": available if ready is None else ready,
        "availableReplicas": available,
        "observedGeneration": 1,
        **(status or {}),
    }
    return decode_as(ReplicaSet, msgspec.json.encode(document))


def pod_view(
    name: str,
    *,
    on: str = "n1",
    phase: str = "Running",
    ready_for_s: float | None = None,
    age_s: float = 3600,
    restarts: int = 0,
    cost: str | None = None,
    labels: Mapping[str, str] | None = None,
    owner: str = "",
    going: bool = False,
) -> Pod:
    """Ready for so long, or not at all; ages are counted back from `NOW_S`."""
    conditions: tuple[Condition, ...] = ()
    if ready_for_s is not None:
        since = format_rfc3339(NOW_S - ready_for_s)
        conditions = (Condition(type="Ready", status="True", last_transition_time=since),)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version="1",
            labels=dict(labels or {}),
            creation_timestamp=format_rfc3339(NOW_S - age_s),
            deletion_timestamp=format_rfc3339(NOW_S) if going else None,
            annotations={"controller.kubernetes.io/pod-deletion-cost": cost} if cost is not None else {},
            owner_references=(OwnerReference(kind="ReplicaSet", uid=owner, controller=True),) if owner else (),
        ),
        spec=PodSpec(node_name=on),
        status=PodStatus(
            phase=phase, conditions=conditions, container_statuses=(ContainerStatus(restart_count=restarts),)
        ),
    )
