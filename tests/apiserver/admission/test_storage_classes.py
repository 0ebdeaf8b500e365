"""Storage: DefaultStorageClass sets the default class; StorageObjectInUseProtection adds finalizers;
PersistentVolumeClaimResize allows expansion if the storage class does.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import (
    CONFIG_MAP,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    Kind,
)
from mooring.apiserver.admission.default_storage_class import DefaultStorageClass, class_of_claim, default_class
from mooring.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from mooring.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import NOW, Known, admitted, attempt, check, named

ANNOTATION = "volume.beta.kubernetes.io/storage-class"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param({"metadata": {}, "spec": {}}, None, id="absent"),
        pytest.param({"metadata": {}, "spec": {"storageClassName": ""}}, "", id="empty"),
        pytest.param({"metadata": {}, "spec": {"storageClassName": "gold"}}, "gold", id="the field"),
        pytest.param(
            {"metadata": {"annotations": {ANNOTATION: "old"}}, "spec": {"storageClassName": "gold"}},
            "old",
            id="the annotation",
        ),
    ],
)
def test_class_of_claim(claim: Document, expected: str | None) -> None:
    assert class_of_claim(claim) == expected


def storage_class(name: str, created: str, annotation: str = "storageclass.kubernetes.io/is-default-class") -> Document:
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": {annotation: "true"}}}


def test_the_newest_default_class_is_used_then_the_first_by_name() -> None:
    old = storage_class("a", "2026-01-01T00:00:00Z")
    same_age = [storage_class(name, "2026-01-02T00:00:00Z") for name in ("c", "b")]
    found = default_class([old, *same_age])
    assert found is not None
    assert found["metadata"]["name"] == "b"


def test_the_beta_annotation_marks_a_default_class_and_its_value_must_be_true() -> None:
    old = storage_class("a", "2026-01-01T00:00:00Z", "storageclass.beta.kubernetes.io/is-default-class")
    assert default_class([old]) is old
    old["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "True"}
    assert default_class([old]) is None


# --- DefaultStorageClass ---------------------------------------------------------------------------------------------


DEFAULT = {
    "metadata": {
        "name": "std",
        "creationTimestamp": NOW,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
}


@pytest.mark.parametrize(
    ("given", "classes", "expected"),
    [
        pytest.param({}, [DEFAULT], "std", id="the default"),
        pytest.param({"storageClassName": "gold"}, [DEFAULT], "gold", id="a class of its own"),
        pytest.param({"storageClassName": ""}, [DEFAULT], "", id="an empty class"),
        pytest.param({}, [], None, id="no default"),
    ],
)
def test_a_claim_without_a_class_gets_the_default_class(
    given: dict[str, Any], classes: list[Any], expected: str | None
) -> None:
    made = attempt(PERSISTENT_VOLUME_CLAIM, named("c", spec=given))
    claim = admitted(DefaultStorageClass(), made, Known({STORAGE_CLASS: classes}))
    assert claim["spec"].get("storageClassName") == expected


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(PERSISTENT_VOLUME, [], ["kubernetes.io/pv-protection"], id="a volume"),
        pytest.param(PERSISTENT_VOLUME_CLAIM, ["a/b"], ["a/b", "kubernetes.io/pvc-protection"], id="a claim"),
        pytest.param(VOLUME_ATTRIBUTES_CLASS, [], ["kubernetes.io/vac-protection"], id="a volume attributes class"),
        pytest.param(
            PERSISTENT_VOLUME,
            ["kubernetes.io/pv-protection", "a/b"],
            ["kubernetes.io/pv-protection", "a/b"],
            id="already protected",
        ),
    ],
)
def test_protection_finalizers_are_added(kind: Kind, given: list[str], expected: list[str]) -> None:
    made = attempt(kind, {"metadata": {"name": "x", "finalizers": given}})
    assert admitted(StorageObjectInUseProtection(), made)["metadata"]["finalizers"] == expected


def test_other_kinds_get_no_protection_finalizer() -> None:
    assert not StorageObjectInUseProtection().handles(CONFIG_MAP, "", Operation.CREATE)


KNOWN = Known({STORAGE_CLASS: [named("grows", allowVolumeExpansion=True), named("stays")]})
NOT_EXPANDABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def claim(storage: str, name: str = "grows", phase: str = "Bound") -> Document:
    spec = {"resources": {"requests": {"storage": storage}}, "storageClassName": name}
    return named("c", spec=spec, status={"phase": phase})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(claim("1Gi"), claim("2Gi"), id="a bound claim of an expandable class"),
        pytest.param(claim("1Gi", "stays"), claim("1024Mi", "stays"), id="the same size in another unit"),
        pytest.param(claim("2Gi", "stays"), claim("1Gi", "stays"), id="a smaller size"),
    ],
)
def test_allowed_changes_of_the_requested_storage(old: Document, new: Document) -> None:
    check(PersistentVolumeClaimResize(), attempt(PERSISTENT_VOLUME_CLAIM, new, old), KNOWN)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(
            claim("1Gi", phase="Pending"),
            claim("2Gi"),
            "Only bound persistent volume claims can be expanded",
            id="unbound",
        ),
        pytest.param(claim("1Gi", "stays"), claim("2Gi", "stays"), NOT_EXPANDABLE, id="the class does not allow it"),
        pytest.param(claim("1Gi", "gone"), claim("2Gi", "gone"), NOT_EXPANDABLE, id="a missing class"),
        pytest.param(claim("1Gi", ""), claim("2Gi", ""), NOT_EXPANDABLE, id="no class"),
    ],
)
def test_rejected_expansions(old: Document, new: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(PersistentVolumeClaimResize(), attempt(PERSISTENT_VOLUME_CLAIM, new, old), KNOWN)
    assert caught.value.message == f'persistentvolumeclaims "c" is forbidden: {why}'
