"""What claims of volumes use of a quota, and which ones a scope means."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.quota.volume_claims import is_volume_claim_in_scope, is_volume_claim_name, volume_claim_usage
from mooring.api.views.quotas import ScopeRequirement
from mooring.api.views.storage import PersistentVolumeClaim
from tests.api.quota.builders import texts


def claim(storage: str | None = None, status: Document | None = None, **spec: Any) -> PersistentVolumeClaim:
    requests = {"storage": storage} if storage is not None else {}
    document = {"spec": {"resources": {"requests": requests}, **spec}, "status": status or {}}
    return convert_as(PersistentVolumeClaim, document)


@pytest.mark.parametrize(
    ("asked", "given", "storage"),
    [
        pytest.param("1Gi", None, "1Gi", id="what it asks for"),
        pytest.param("1500m", None, "2", id="in whole bytes"),
        pytest.param("1Gi", "3Gi", "3Gi", id="what it was given, if that is more"),
        pytest.param("1Gi", "1Mi", "1Gi", id="and only then"),
    ],
)
def test_a_claim_uses_storage_in_all_and_by_class(asked: str, given: str | None, storage: str) -> None:
    status = {"allocatedResources": {"storage": given}} if given else {}
    assert texts(volume_claim_usage(claim(asked, status, storageClassName="gold"))) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": storage,
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": storage,
    }


def test_a_claim_that_says_nothing_is_only_counted() -> None:
    expected = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1"}
    assert texts(volume_claim_usage(claim())) == expected


@pytest.mark.parametrize(
    ("spec", "status", "is_meant"),
    [
        pytest.param({"volumeAttributesClassName": "fast"}, {}, True, id="the class that it asks for"),
        pytest.param({}, {"currentVolumeAttributesClassName": "fast"}, True, id="the class that it has"),
        pytest.param(
            {"volumeAttributesClassName": "slow"},
            {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast"}},
            True,
            id="the class that it is on its way to",
        ),
        pytest.param({"volumeAttributesClassName": "slow"}, {}, False, id="another class"),
        pytest.param({}, {}, False, id="no class"),
    ],
)
def test_a_scope_means_claims_of_a_class_of_attributes(spec: Document, status: Document, is_meant: bool) -> None:
    scope = ScopeRequirement(scope_name="VolumeAttributesClass", operator="In", values=("fast",))
    assert is_volume_claim_in_scope(scope, claim(status=status, **spec)) is is_meant


def test_no_other_scope_means_a_claim() -> None:
    scope = ScopeRequirement(scope_name="PriorityClass", operator="DoesNotExist")
    assert not is_volume_claim_in_scope(scope, claim())


@pytest.mark.parametrize(
    ("name", "is_theirs"),
    [
        pytest.param("count/persistentvolumeclaims", True, id="their number"),
        pytest.param("requests.storage", True, id="storage"),
        pytest.param("gold.storageclass.storage.k8s.io/requests.storage", True, id="storage of a class"),
        pytest.param("requests.ephemeral-storage", False, id="storage of pods"),
    ],
)
def test_claims_are_measured_by(name: str, is_theirs: bool) -> None:
    assert is_volume_claim_name(name) is is_theirs
