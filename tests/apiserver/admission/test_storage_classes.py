"""The default storage class, and DefaultStorageClass, which sets it."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from mooring.apiserver.admission.default_storage_class import DefaultStorageClass, class_of_claim, default_class
from tests.apiserver.admission.builders import NOW, Known, admitted, attempt, named

ANNOTATION = "volume.beta.kubernetes.io/storage-class"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param({"metadata": {}, "spec": {}}, None, id="left open"),
        pytest.param({"metadata": {}, "spec": {"storageClassName": ""}}, "", id="none on purpose"),
        pytest.param({"metadata": {}, "spec": {"storageClassName": "gold"}}, "gold", id="by the field"),
        pytest.param(
            {"metadata": {"annotations": {ANNOTATION: "old"}}, "spec": {"storageClassName": "gold"}},
            "old",
            id="by annotation",
        ),
    ],
)
def test_class_of_a_claim(claim: Document, expected: str | None) -> None:
    assert class_of_claim(claim) == expected


def storage_class(name: str, created: str, annotation: str = "storageclass.kubernetes.io/is-default-class") -> Document:
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": {annotation: "true"}}}


def test_the_newest_default_class_wins_and_then_the_first_by_name() -> None:
    old = storage_class("a", "2026-01-01T00:00:00Z")
    same_age = [storage_class(name, "2026-01-02T00:00:00Z") for name in ("c", "b")]
    found = default_class([old, *same_age])
    assert found is not None
    assert found["metadata"]["name"] == "b"


def test_the_old_annotation_counts_and_other_values_than_true_do_not() -> None:
    old = storage_class("a", "2026-01-01T00:00:00Z", "storageclass.beta.kubernetes.io/is-default-class")
    assert default_class([old]) is old
    old["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "True"}
    assert default_class([old]) is None


# --- A claim that names no class gets the default one ----------------------------------------------------------------


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
        pytest.param({"storageClassName": "gold"}, [DEFAULT], "gold", id="its own"),
        pytest.param({"storageClassName": ""}, [DEFAULT], "", id="none on purpose"),
        pytest.param({}, [], None, id="no default"),
    ],
)
def test_class(given: dict[str, Any], classes: list[Any], expected: str | None) -> None:
    made = attempt(PERSISTENT_VOLUME_CLAIM, named("c", spec=given))
    claim = admitted(DefaultStorageClass(), made, Known({STORAGE_CLASS: classes}))
    assert claim["spec"].get("storageClassName") == expected
