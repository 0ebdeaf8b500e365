"""Who makes a volume for a claim, and who takes one away: us, somebody outside, or nobody.

Comes in   a storage class, a claim; a volume that nobody claims any more
Goes out   how it is made or deleted; the volume that the built-in provisioner makes

 1. Classes of `DEMO_PROVISIONER` get a volume at once: a directory of that name on the node. It is there so that a
    cluster out of the box can run pods with claims; nothing is created on anybody's disk but by the node that uses it.
 2. Everybody else is external: the claim is annotated with the provisioner's name, and he is waited for.
 3. Of the plug-ins that kube-controller-manager still carries, none provisions; the words are its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.csi_translation import DRIVERS
from mooring.api.document import Document
from mooring.api.storage import BOUND_BY_CONTROLLER, class_of_claim
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.controllers.volume.changes import IN_TREE_PREFIX, MIGRATED_TO, claim_reference
from mooring.controllers.volume.plan import PROVISIONED_BY

DEMO_PROVISIONER = "mooring.dev/demo"
DEMO_FOLDER = "/var/lib/mooring/volumes"
HOST_PATH = "kubernetes.io/host-path"
NFS = "kubernetes.io/nfs"
HOST_NAME_LABEL = "kubernetes.io/hostname"

_DELETABLE_HOST_PATH = re.compile("/tmp/.+")


@dataclass(frozen=True, slots=True)
class ByUs:
    """The built-in provisioner makes or deletes it."""


@dataclass(frozen=True, slots=True)
class ByOthers:
    """Somebody outside does, of that name."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class ByNobody:
    """It cannot be done."""

    why: str


Maker: TypeAlias = ByUs | ByOthers | ByNobody


def maker_of(found: StorageClass) -> Maker:
    provisioner = found.provisioner
    if provisioner in DRIVERS:
        return ByOthers(DRIVERS[provisioner])
    if provisioner in (DEMO_PROVISIONER, HOST_PATH):
        return ByUs()
    if provisioner == NFS:
        return ByNobody("no provisionable volume plugin matched")
    if provisioner.startswith(IN_TREE_PREFIX):
        return ByNobody(f"no volume plugin matched name: {provisioner}")
    return ByOthers(provisioner)


def why_not_made(found: StorageClass, claim: PersistentVolumeClaim) -> str:
    """Why the built-in provisioner cannot make a volume for the claim; empty if it can."""
    if claim.spec.data_source is not None:
        return (
            f'plugin "{found.provisioner}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource'
        )
    if found.provisioner == HOST_PATH:
        return f'Failed to create provisioner: provisioning in volume plugin "{HOST_PATH}" is disabled'
    return ""


def made_volume_name(claim: PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def made_volume(found: StorageClass, claim: PersistentVolumeClaim, host_name: str | None) -> Document:
    """The volume that the built-in provisioner makes; on one host, if the scheduler has chosen one."""
    name = made_volume_name(claim)
    spec: Document = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
        "accessModes": [*claim.spec.access_modes],
        "persistentVolumeReclaimPolicy": found.reclaim_policy or "Delete",
        "storageClassName": class_of_claim(claim),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "claimRef": claim_reference(claim),
        "hostPath": {"path": f"{DEMO_FOLDER}/{name}", "type": "DirectoryOrCreate"},
    }
    if host_name is not None:
        expression = {"key": HOST_NAME_LABEL, "operator": "In", "values": [host_name]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    annotations = {BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: found.provisioner}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def remover_of(volume: PersistentVolume) -> Maker:
    """Who deletes what is behind a volume whose policy is Delete."""
    annotations = volume.metadata.annotations
    provisioner = annotations.get(PROVISIONED_BY, "")
    if provisioner == DEMO_PROVISIONER:
        return ByUs()
    if provisioner and provisioner != HOST_PATH:
        if provisioner == NFS:
            return ByNobody("no deletable volume plugin matched")
        if provisioner.startswith(IN_TREE_PREFIX):
            return ByNobody(f"no volume plugin matched name: {provisioner}")
        return ByOthers(provisioner)
    if not provisioner and (MIGRATED_TO in annotations or volume.spec.csi is not None):
        return ByOthers()
    if volume.spec.host_path is not None:
        path = volume.spec.host_path.path
        if _DELETABLE_HOST_PATH.search(path):
            return ByUs()
        return ByNobody(f"host_path deleter only supports /tmp/.+ but received provided {path}")
    why = "no deletable volume plugin matched" if volume.spec.nfs is not None else "no volume plugin matched"
    return ByNobody(f'error getting deleter volume plugin for volume "{volume.metadata.name}": {why}')
