"""Builders of minimal API objects that a real API server accepts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Body = dict[str, object]


def config_map(
    name: str = "settings",
    data: dict[str, str] | None = None,
    *,
    labels: dict[str, str] | None = None,
    finalizers: Sequence[str] = (),
    **metadata: object,
) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(name, labels, finalizers, metadata),
        "data": data or {},
    }


def pod(
    name: str = "web",
    *,
    labels: dict[str, str] | None = None,
    on: str = "",
    gates: Sequence[str] = (),
    finalizers: Sequence[str] = (),
    grace_s: int = 30,
    scheduler: str = "default-scheduler",
    **metadata: object,
) -> Body:
    spec: Body = {
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}],
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": grace_s,
    }
    if on:
        spec["nodeName"] = on
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name, labels, finalizers, metadata), "spec": spec}


def node(name: str = "n1") -> Body:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def replica_set(name: str = "web", replicas: int = 1) -> Body:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "pause:3.9"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def read(raw: bytes) -> Body:
    plain = msgspec.json.decode(raw)
    assert isinstance(plain, dict)
    return plain


def at(raw: bytes | Body, path: str) -> object:
    """The value at a dotted path; None if there is none."""
    value: object = read(raw) if isinstance(raw, bytes) else raw
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def text_at(raw: bytes | Body, path: str) -> str:
    value = at(raw, path)
    assert isinstance(value, str), f"{path} is {value!r}"
    return value


def _metadata(name: str, labels: dict[str, str] | None, finalizers: Sequence[str], others: dict[str, object]) -> Body:
    metadata: Body = {"name": name, **others} if name else {**others}
    if labels:
        metadata["labels"] = labels
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return metadata
