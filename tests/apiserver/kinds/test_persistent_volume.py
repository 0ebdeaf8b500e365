"""Tests of kinds.persistent_volume."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.persistent_volume import (
    has_bad_label_values,
    validate_volume,
    validate_volume_spec,
    validate_volume_update,
)
from tests.apiserver.core_documents import NOW, call, changed, created, document, messages, strategy


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("hostPath", {"path": "/a"}, {"path": "/a", "type": ""}),
        ("rbd", {"pool": "p"}, {"pool": "p", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ("iscsi", {}, {"iscsiInterface": "default"}),
        ("azureDisk", {}, {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
        ("scaleIO", {"fsType": "ext4"}, {"storageMode": "ThinProvisioned", "fsType": "ext4"}),
        ("nfs", {"path": "/a"}, {"path": "/a"}),
    ],
)
def test_persistent_volumes_are_defaulted(source: str, given: Document, expected: Document) -> None:
    volume: Document = {"spec": {source: dict(given), "capacity": {"storage": "1.0001"}}, "status": {}}
    strategy_of(PERSISTENT_VOLUME).default(volume)
    strategy_of(PERSISTENT_VOLUME).default(volume)
    assert volume == {
        "spec": {
            source: expected,
            "capacity": {"storage": "1001m"},
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Pending"},
    }


SPEC: Document = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
INLINE = "in the context of inline volumes"


def affinity(key: str = "zone", value: str = "a") -> Document:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"capacity": None},
            ["spec.capacity: Required value", 'spec.capacity: Unsupported value: null: supported values: "storage"'],
            id="no size",
        ),
        pytest.param(
            {"capacity": {"storage": "-1"}},
            [
                "spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
                'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
            ],
            id="a negative size",
        ),
        pytest.param({"accessModes": []}, ["spec.accessModes: Required value"], id="no access modes"),
        pytest.param(
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
            id="ReadWriteOncePod with another mode",
        ),
        pytest.param(
            {"persistentVolumeReclaimPolicy": "Keep"},
            [
                'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", '
                '"Recycle", "Retain"'
            ],
            id="an unknown policy",
        ),
        pytest.param(
            {"hostPath": {"path": "//."}, "persistentVolumeReclaimPolicy": "Recycle"},
            ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
            id="recycling the root directory of the host",
        ),
        pytest.param({"volumeMode": "Block"}, [], id="a block device"),
        pytest.param(
            {"nodeAffinity": {}},
            ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
            id="an empty affinity",
        ),
        pytest.param(
            {"volumeAttributesClassName": ""},
            [
                "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
                "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
            ],
            id="an attributes class without a CSI driver",
        ),
    ],
)
def test_persistent_volumes_are_validated(change: Document, errors: list[str]) -> None:
    assert messages(validate_volume(document(PERSISTENT_VOLUME, spec={**SPEC, **change}))) == errors


def test_mount_options_are_forbidden_for_some_sources() -> None:
    metadata = {"annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}}
    assert messages(validate_volume(document(PERSISTENT_VOLUME, metadata, spec=SPEC))) == [
        "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: "
        "may not specify mount options for this volume type"
    ]
    spec = {**SPEC, "hostPath": None, "nfs": {"server": "a", "path": "/b"}}
    assert validate_volume(document(PERSISTENT_VOLUME, metadata, spec=spec)) == []


def test_inline_volumes_must_not_have_most_fields() -> None:
    spec = {**SPEC, "claimRef": {}, "nodeAffinity": affinity(), "storageClassName": "a", "volumeMode": "Block"}
    spec["persistentVolumeReclaimPolicy"] = "Delete"
    assert messages(validate_volume_spec(spec, "v", "s", is_inline=True)) == [
        f"s.claimRef: Forbidden: may not be specified {INLINE}",
        f"s.capacity: Forbidden: may not be specified {INLINE}",
        f"s.csi: Required value: has to be specified {INLINE}",
        f"s.persistentVolumeReclaimPolicy: Forbidden: may only be Retain {INLINE}",
        f"s.nodeAffinity: Forbidden: may not be specified {INLINE}",
        f"s.storageClassName: Forbidden: may not be specified {INLINE}",
        f"s.volumeMode: Forbidden: may not specify volumeMode other than Filesystem {INLINE}",
    ]


def test_invalid_label_values_in_node_affinity_can_be_tolerated() -> None:
    old = document(PERSISTENT_VOLUME, spec={**SPEC, "nodeAffinity": affinity(value="a b")})
    assert has_bad_label_values(old)
    assert len(validate_volume(old)) == 1
    assert validate_volume_spec(old["spec"], "v", "spec", tolerates_label_values=True) == []
    assert not has_bad_label_values(document(PERSISTENT_VOLUME, spec=SPEC))


CSI = {"driver": "d", "volumeHandle": "h"}
SECRET = {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({}, {"hostPath": {"path": "/y"}}, ["spec.persistentvolumesource"], id="another source"),
        pytest.param({"csi": CSI}, {"csi": {**CSI, **SECRET}}, [], id="an expansion secret may be added"),
        pytest.param(
            {"csi": {**CSI, **SECRET}},
            {"csi": CSI},
            ["spec.persistentvolumesource"],
            id="an expansion secret may not be removed",
        ),
        pytest.param({}, {"volumeMode": "Block"}, ["volumeMode"], id="another mode"),
        pytest.param({}, {"nodeAffinity": affinity()}, [], id="an affinity may be added"),
        pytest.param(
            {"nodeAffinity": affinity()}, {"nodeAffinity": None}, ["nodeAffinity"], id="an affinity may not be removed"
        ),
        pytest.param(
            {"nodeAffinity": affinity("beta.kubernetes.io/os")},
            {"nodeAffinity": affinity("kubernetes.io/os")},
            [],
            id="a label may get its new name",
        ),
        pytest.param(
            {"nodeAffinity": affinity("kubernetes.io/os")},
            {"nodeAffinity": affinity("beta.kubernetes.io/os")},
            ["nodeAffinity"],
            id="a label may not get its deprecated name",
        ),
        pytest.param(
            {"volumeAttributesClassName": "a"},
            {"volumeAttributesClassName": None},
            ["spec.volumeAttributesClassName"],
            id="an attributes class may not be removed",
        ),
        pytest.param(
            {}, {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadOnlyMany"]}, [], id="the rest may change"
        ),
    ],
)
def test_updates_of_persistent_volumes_are_validated(old: Document, new: Document, fields: list[str]) -> None:
    before = document(PERSISTENT_VOLUME, spec={**SPEC, **old})
    after = document(PERSISTENT_VOLUME, spec={**SPEC, **old, **new})
    assert [error.field for error in validate_volume_update(after, before)] == fields


VALID_SPEC: Document = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/x"},
}
EARLIER, LATER = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


def test_a_new_volume_is_pending() -> None:
    volume = document(PERSISTENT_VOLUME, spec=VALID_SPEC, status={"phase": "Bound"})
    assert created(PERSISTENT_VOLUME, volume) == []
    assert volume["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}


def test_an_update_of_a_persistent_volume_is_validated_twice() -> None:
    old = document(PERSISTENT_VOLUME, spec=VALID_SPEC)
    errors, volume = changed(PERSISTENT_VOLUME, old, spec={**VALID_SPEC, "accessModes": []}, status={"phase": "Bound"})
    assert errors == ["spec.accessModes: Required value"] * 2
    assert volume["status"] == old["status"]


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param({"phase": "Pending"}, EARLIER, id="the same phase"),
        pytest.param(
            {"phase": "Pending", "lastPhaseTransitionTime": LATER},
            LATER,
            id="the same phase and a later time in the request",
        ),
        pytest.param({"phase": "Bound"}, NOW, id="another phase"),
        pytest.param(
            {"phase": "Bound", "lastPhaseTransitionTime": EARLIER},
            NOW,
            id="another phase and the old time in the request",
        ),
        pytest.param(
            {"phase": "Bound", "lastPhaseTransitionTime": LATER},
            LATER,
            id="another phase and a later time in the request",
        ),
    ],
)
def test_a_status_update_sets_the_last_phase_transition_time(status: Document, since: str) -> None:
    old = document(
        PERSISTENT_VOLUME,
        spec=VALID_SPEC,
        status={"phase": "Pending", "lastPhaseTransitionTime": EARLIER},
    )
    errors, volume = changed(PERSISTENT_VOLUME, old, "status", spec={}, status=status)
    assert errors == []
    assert volume["spec"] == old["spec"]
    assert volume["status"] == {"phase": status["phase"], "lastPhaseTransitionTime": since}


def test_deprecated_fields_of_persistent_volumes_have_a_warning() -> None:
    terms = [{"matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}]}]
    spec = {**VALID_SPEC, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "rbd": {}}
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}
    volume = document(PERSISTENT_VOLUME, metadata, spec={**spec, "persistentVolumeReclaimPolicy": "Recycle"})
    warnings = strategy(PERSISTENT_VOLUME).warnings_on_create(volume, call(PERSISTENT_VOLUME))
    assert [warning.partition(":")[0] for warning in warnings] == [
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]",
        "spec.persistentVolumeReclaimPolicy",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key",
        "spec.rbd",
    ]
    assert strategy(PERSISTENT_VOLUME).warnings_on_update(volume, volume, call(PERSISTENT_VOLUME)) == warnings
