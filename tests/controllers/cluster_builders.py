"""Builders of documents for stories about nodes, pods on them, and owners.

Builders of services and of pods that they select.

Builders of what the volume controllers read, as documents and as views.

volume("v1", storage="5Gi", policy="Delete", claim="c")
claim("c", storage="1Gi", volume="v1")
storage_class("slow", waits=True)

A custom kind: `WIDGET` and its definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, LEASE, NODE, Kind
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.views.workloads import Service
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


HTTP: Document = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(name: str = "web", *, ports: list[Document] | None = None, **spec: Any) -> Document:
    """With the defaults that an API server would fill in."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"team": "x"}},
        "spec": {
            "selector": {"app": "web"},
            "type": "ClusterIP",
            "clusterIP": "10.96.0.10",
            "ipFamilies": ["IPv4"],
            "ports": [HTTP] if ports is None else ports,
            **spec,
        },
    }


def backend(
    name: str,
    address: str = "10.1.0.1",
    *,
    is_ready: bool = True,
    phase: str = "Running",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"} if labels is None else labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "a"}], **spec},
        "status": {"phase": phase, "podIPs": [{"ip": address}] if address else [], "conditions": [condition]},
    }


def node(name: str = "n1", zone: str = "z1") -> Document:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def service_view(name: str = "web", **parts: Any) -> Service:
    document = service(name, **parts)
    document["metadata"] |= {"namespace": "default", "uid": f"uid-{name}"}
    return decode_as(Service, msgspec.json.encode(document))


def backend_view(name: str, address: str = "10.1.0.1", *, going: bool = False, **parts: Any) -> Pod:
    document = backend(name, address, **parts)
    document["metadata"]["uid"] = f"uid-{name}"
    if going:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decode_as(Pod, msgspec.json.encode(document))


CLASS = "slow"
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def volume(
    name: str = "v",
    *,
    storage: str = "1Gi",
    class_name: str = CLASS,
    modes: Sequence[str] = ("ReadWriteOnce",),
    policy: str = "Retain",
    claim: str = "",
    uid: str | None = None,
    phase: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    source: Document | None = None,
    **spec: Any,
) -> Document:
    """`claim` is what it names, with the uid of that claim's view unless another one is given."""
    if claim:
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim}
        spec["claimRef"] = {**reference, "uid": f"uid-{claim}" if uid is None else uid}
        if uid == "":
            del spec["claimRef"]["uid"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {
            "capacity": {"storage": storage},
            "accessModes": [*modes],
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": class_name,
            **(source or {"csi": {"driver": "example.com", "volumeHandle": name}}),
            **spec,
        },
        "status": {"phase": phase} if phase else {},
    }


def claim(
    name: str = "c",
    *,
    storage: str = "1Gi",
    class_name: str | None = CLASS,
    modes: Sequence[str] = ("ReadWriteOnce",),
    volume: str = "",
    phase: str = "Pending",
    annotations: Mapping[str, str] | None = None,
    status: Document | None = None,
    **spec: Any,
) -> Document:
    if volume:
        spec["volumeName"] = volume
    if class_name is not None:
        spec["storageClassName"] = class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"accessModes": [*modes], "resources": {"requests": {"storage": storage}}, **spec},
        "status": {"phase": phase, **(status or {})},
    }


def storage_class(
    name: str = CLASS,
    *,
    provisioner: str = "example.com/disk",
    waits: bool = False,
    is_default: bool = False,
    created: str = "2026-01-01T00:00:00Z",
    **fields: Any,
) -> Document:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations, "creationTimestamp": created},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **fields,
    }


def volume_view(name: str = "v", *, going: bool = False, **parts: Any) -> PersistentVolume:
    document = volume(name, **parts)
    document["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    if going:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decode_as(PersistentVolume, msgspec.json.encode(document))


def claim_view(name: str = "c", *, going: bool = False, **parts: Any) -> PersistentVolumeClaim:
    document = claim(name, **parts)
    document["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    if going:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decode_as(PersistentVolumeClaim, msgspec.json.encode(document))


def class_view(name: str = CLASS, **parts: Any) -> StorageClass:
    return decode_as(StorageClass, msgspec.json.encode(storage_class(name, **parts)))


WIDGET = Kind("example.com/v1", "Widget", "widgets", folder="example.com/widgets", has_generation=True)


def definition() -> Document:
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
        "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
    }
