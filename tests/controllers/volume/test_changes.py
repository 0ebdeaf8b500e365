"""What binding changes in a volume and in its claim."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.controllers.volume.changes import (
    CapacityError,
    bound_claim,
    bound_volume,
    claim_in_phase,
    migrated_claim,
    migrated_volume,
    unbound_volume,
    volume_in_phase,
)
from tests.controllers.storage_documents import BOUND, claim_view, volume_view

BY_CONTROLLER = {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_free_volume_names_its_claim_and_says_who_did_it() -> None:
    document = bound_volume(volume_view(), claim_view())
    assert document is not None
    assert document["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "c",
        "uid": "uid-c",
        "resourceVersion": "1",
    }
    assert document["metadata"]["annotations"] == BY_CONTROLLER
    assert document["spec"]["csi"]["volumeHandle"] == "v", "what the view does not read stays"


def test_a_volume_that_a_user_bound_gets_the_uid_and_no_mark() -> None:
    document = bound_volume(volume_view(claim="c", uid=""), claim_view())
    assert document is not None
    assert document["spec"]["claimRef"]["uid"] == "uid-c"
    assert document["metadata"]["annotations"] == {}


def test_a_volume_that_is_bound_is_left() -> None:
    assert bound_volume(volume_view(claim="c"), claim_view()) is None


@pytest.mark.parametrize(
    ("annotations", "reference", "left"),
    [
        pytest.param(BY_CONTROLLER, False, None, id="what a controller bound is free again"),
        pytest.param({**BY_CONTROLLER, "a": "b"}, False, {"a": "b"}, id="and keeps other notes"),
        pytest.param({}, True, {}, id="what a user bound waits for a claim of that name"),
    ],
)
def test_a_volume_is_unbound(annotations: dict[str, str], reference: bool, left: dict[str, str] | None) -> None:
    document = unbound_volume(volume_view(claim="c", annotations=annotations))
    assert ("claimRef" in document["spec"]) is reference
    assert "uid" not in document["spec"].get("claimRef", {})
    assert document["metadata"].get("annotations") == left


@pytest.mark.parametrize(
    ("claim", "annotations"),
    [
        pytest.param({}, BOUND, id="both marks"),
        pytest.param({"volume": "v"}, {"pv.kubernetes.io/bind-completed": "yes"}, id="the user's own wish: one mark"),
    ],
)
def test_a_claim_names_its_volume(claim: dict[str, Any], annotations: dict[str, str]) -> None:
    document = bound_claim(claim_view(**claim), volume_view())
    assert document is not None
    assert document["spec"]["volumeName"] == "v"
    assert document["metadata"]["annotations"] == annotations
    assert bound_claim(claim_view(volume="v", annotations=BOUND), volume_view()) is None


LENT = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


@pytest.mark.parametrize(
    ("claim", "phase", "volume", "status"),
    [
        pytest.param({}, "Bound", {}, LENT, id="bound: it has what its volume has"),
        pytest.param({"status": LENT}, "Bound", {}, None, id="nothing new"),
        pytest.param({"status": LENT}, "Bound", {"storage": "2Gi"}, None, id="growth is somebody else's to tell"),
        pytest.param({"status": LENT}, "Lost", None, {"phase": "Lost"}, id="lost: it has nothing"),
        pytest.param({}, "Pending", None, None, id="pending as before"),
        pytest.param(
            {},
            "Bound",
            {"annotations": {"volume.alpha.kubernetes.io/pre-resize-capacity": "512Mi"}},
            {**LENT, "capacity": {"storage": "512Mi"}},
            id="a volume that is being grown lends what it had",
        ),
        pytest.param(
            {},
            "Bound",
            {"volumeAttributesClassName": "gold"},
            {**LENT, "currentVolumeAttributesClassName": "gold"},
            id="its attributes class",
        ),
    ],
)
def test_a_claim_in_phase(
    claim: dict[str, Any], phase: str, volume: dict[str, Any] | None, status: Document | None
) -> None:
    found = claim_in_phase(claim_view(**claim), phase, volume_view(**volume) if volume is not None else None)
    assert (found["status"] if found is not None else None) == status


def test_a_volume_without_a_size_lends_nothing() -> None:
    with pytest.raises(CapacityError, match='PersistentVolume "v" is without a storage capacity'):
        claim_in_phase(claim_view(), "Bound", volume_view(capacity={}))


def test_a_volume_changes_its_phase_once() -> None:
    document = volume_in_phase(volume_view(phase="Released"), "Failed", "why")
    assert document is not None
    assert document["status"] == {"phase": "Failed", "message": "why"}
    assert volume_in_phase(volume_view(phase="Failed"), "Failed") is None


@pytest.mark.parametrize(
    ("provisioner", "policy", "finalizers", "driver"),
    [
        pytest.param("kubernetes.io/aws-ebs", "Delete", [], "ebs.csi.aws.com", id="one that became a driver"),
        pytest.param("kubernetes.io/other", "Delete", ["kubernetes.io/pv-controller"], None, id="one that did not"),
        pytest.param("kubernetes.io/other", "Retain", None, None, id="one that is kept"),
        pytest.param("example.com/disk", "Delete", None, None, id="one from outside"),
    ],
)
def test_a_volume_that_was_provisioned(
    provisioner: str, policy: str, finalizers: list[str] | None, driver: str | None
) -> None:
    annotations = {"pv.kubernetes.io/provisioned-by": provisioner}
    document = migrated_volume(volume_view(policy=policy, annotations=annotations))
    if finalizers is None:
        assert document is None
        return
    assert document is not None
    assert document["metadata"]["finalizers"] == finalizers
    assert document["metadata"]["annotations"].get("pv.kubernetes.io/migrated-to") == driver


def test_a_claim_learns_which_driver_makes_its_volume() -> None:
    document = migrated_claim(
        claim_view(annotations={"volume.kubernetes.io/storage-provisioner": "kubernetes.io/gce-pd"})
    )
    assert document is not None
    assert document["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"] == "pd.csi.storage.gke.io"
    assert migrated_claim(claim_view()) is None
