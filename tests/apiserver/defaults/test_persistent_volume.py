"""A volume is kept, holds files, and its source assumes what it always assumed."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.persistent_volume import default_persistent_volume


@pytest.mark.parametrize(
    ("source", "given", "wanted"),
    [
        ("hostPath", {"path": "/a"}, {"path": "/a", "type": ""}),
        ("rbd", {"pool": "p"}, {"pool": "p", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ("iscsi", {}, {"iscsiInterface": "default"}),
        ("azureDisk", {}, {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
        ("scaleIO", {"fsType": "ext4"}, {"storageMode": "ThinProvisioned", "fsType": "ext4"}),
        ("nfs", {"path": "/a"}, {"path": "/a"}),
    ],
)
def test_volumes(source: str, given: Document, wanted: Document) -> None:
    volume: Document = {"spec": {source: dict(given), "capacity": {"storage": "1.0001"}}, "status": {}}
    default_persistent_volume(volume)
    default_persistent_volume(volume)
    assert volume == {
        "spec": {
            source: wanted,
            "capacity": {"storage": "1001m"},
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Pending"},
    }
