"""Builders of documents for stories about nodes, pods on them, and owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, LEASE, NODE
from mooring.api.well_known import NODE_LEASE_NAMESPACE
from mooring.client.errors import NotFoundError
from mooring.client.interface import PatchForm
from mooring.kit.clock import format_rfc3339, format_rfc3339_micro
from tests.controllers.world import NAMESPACE, World

KUBELET_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node_document(
    name: str, *, labels: Mapping[str, str] | None = None, taints: Sequence[str] = (), unschedulable: bool = False
) -> Document:
    spec: Document = {"taints": [taint_document(text) for text in taints]} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels or {})}, "spec": spec}


def taint_document(text: str) -> Document:
    """`key=value:Effect` or `key:Effect`."""
    said, _, effect = text.partition(":")
    key, _, value = said.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def pod_document(
    name: str,
    on: str = "",
    *,
    tolerations: Sequence[Mapping[str, Any]] = (),
    owners: Sequence[Document] = (),
    phase: str = "Running",
) -> Document:
    spec: Document = {
        "containers": [{"name": "main", "image": "app:1"}],
        "tolerations": [*tolerations],
        "terminationGracePeriodSeconds": 0,
    }
    if on:
        spec["nodeName"] = on
    metadata: Document = {"name": name, "namespace": NAMESPACE, "ownerReferences": [*owners]}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def config_map(name: str, *owners: Document, finalizers: Sequence[str] = ()) -> Document:
    metadata: Document = {"name": name, "ownerReferences": [*owners], "finalizers": [*finalizers]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def owner_of(world: World, name: str, *, blocks: bool = False) -> Document:
    """A reference to a ConfigMap that is there."""
    found = await world.get(CONFIG_MAP, name)
    uid = found["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid} | (
        {"blockOwnerDeletion": True} if blocks else {}
    )


async def heartbeat(world: World, name: str, ready: str = "True", **others: str) -> None:
    """What a kubelet posts: its conditions and its lease."""
    await report(world, name, ready, **others)
    await renew(world, name)


async def report(world: World, name: str, ready: str = "True", **others: str) -> None:
    now = format_rfc3339(world.clock.wall_s())
    states = {**dict.fromkeys(KUBELET_CONDITIONS, "False"), **others, "Ready": ready}
    conditions = [
        {"type": type, "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
        for type, status in states.items()
    ]
    await world.patch(NODE, name, {"status": {"conditions": conditions}}, "status")


async def renew(world: World, name: str) -> None:
    """What a kubelet posts far more often: its lease."""
    spec = {"renewTime": format_rfc3339_micro(world.clock.wall_s())}
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": name}, "spec": spec}
    try:
        await world.client.patch(LEASE, NODE_LEASE_NAMESPACE, name, {"spec": spec}, form=PatchForm.MERGE)
    except NotFoundError:
        await world.client.create(LEASE, NODE_LEASE_NAMESPACE, lease)


async def beat(world: World, *names: str, for_s: float, every_s: float = 1.0) -> None:
    """Heartbeats of these nodes for a while."""
    for _ in range(round(for_s / every_s)):
        for name in names:
            await heartbeat(world, name)
        await world.settle(every_s)


async def taints_of(world: World, name: str) -> list[str]:
    node = await world.get(NODE, name)
    return sorted(f"{taint['key']}:{taint['effect']}" for taint in node["spec"].get("taints") or ())
