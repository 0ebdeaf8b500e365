"""Pods with all fields, from the bodies of `harness`."""

from __future__ import annotations

from typing import Any

from mooring.api.decode import convert_as
from mooring.kubelet.environment.references import NodeFacts
from mooring.kubelet.full_views import FullContainer, FullPod
from tests.kubelet.harness import Body, container, pod

PLACE = NodeFacts("10.0.0.7", "172.16.0.1", {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi"})


def whole(body: Body, *, uid: str = "uid-1") -> FullPod:
    """A pod as the kubelet with processes reads it."""
    return convert_as(FullPod, {**body, "metadata": {**body["metadata"], "uid": uid}})


def pod_with(changes: dict[str, Any] | None = None, **of_container: Any) -> FullPod:
    """A pod with one container that has those fields."""
    return whole(pod(containers=[container(**of_container)], **(changes or {})))


def container_with(**fields: Any) -> FullContainer:
    return pod_with(**fields).spec.containers[0]
