"""Defaults of volumes: kept when released, mounted as a file system, and what each kind of source assumes."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import round_amounts

_SOURCE_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "hostPath": {"type": ""},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "iscsi": {"iscsiInterface": "default"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_persistent_volume(volume: Document) -> None:
    volume["status"].setdefault("phase", "Pending")
    default_volume_spec(volume["spec"])


def default_volume_spec(spec: Document) -> None:
    """Also for the volume inside a VolumeAttachment, but for its policy and mode."""
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)
    if "capacity" in spec:
        round_amounts(spec["capacity"])


def default_volume_source(spec: Document) -> None:
    for source, defaults in _SOURCE_DEFAULTS.items():
        if source in spec:
            for field, value in defaults.items():
                spec[source].setdefault(field, value)
