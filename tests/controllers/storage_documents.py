"""Builders of what the volume controllers read, as documents and as views.

volume("v1", storage="5Gi", policy="Delete", claim="c")
claim("c", storage="1Gi", volume="v1")
storage_class("slow", waits=True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

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
