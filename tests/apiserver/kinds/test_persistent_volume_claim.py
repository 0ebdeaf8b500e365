"""Tests of kinds.persistent_volume_claim."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM
from mooring.apiserver.kinds.persistent_volume_claim import (
    default_claim,
    tolerance_for,
    validate_claim_update,
    validate_persistent_volume_claim_spec,
    validate_persistent_volume_claim_status,
)
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy


def test_claims_are_defaulted() -> None:
    resources = {"requests": {"storage": "1.0001"}, "limits": {"storage": "2"}}
    claim: Document = {"spec": {"resources": resources}, "status": {"capacity": {"storage": "0.0001"}}}
    default_claim(claim)
    default_claim(claim)
    assert claim["spec"] == {
        "resources": {"requests": {"storage": "1001m"}, "limits": {"storage": "2"}},
        "volumeMode": "Filesystem",
    }
    assert claim["status"] == {"phase": "Pending", "capacity": {"storage": "1m"}}


SPEC: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
CLAIM: Document = {"kind": "PersistentVolumeClaim", "name": "a"}
ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def size(text: str) -> Document:
    return {"resources": {"requests": {"storage": text}}}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"accessModes": []}, ["spec.accessModes: Required value: at least 1 access mode is required"], id="no mode"
        ),
        pytest.param({"resources": {}}, ["spec.resources[storage]: Required value"], id="no size"),
        pytest.param(
            size("-1Gi"),
            ['spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero'],
            id="a negative size",
        ),
        pytest.param({"storageClassName": ""}, [], id="an empty class"),
        pytest.param(
            {"volumeMode": "Tape"},
            ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
            id="an unknown mode",
        ),
        pytest.param(
            {"dataSource": {"kind": "Foo", "name": ""}},
            [
                "spec.dataSource.name: Required value",
                "spec.dataSource: Invalid value: \"Foo\": must be 'PersistentVolumeClaim' when referencing the default "
                "apiGroup",
            ],
            id="a source that is no claim",
        ),
        pytest.param(
            {"dataSource": CLAIM, "dataSourceRef": {**CLAIM, "name": "b"}},
            ["spec: Invalid value: {}: must match dataSourceRef"],
            id="two different sources",
        ),
        pytest.param(
            {"dataSource": CLAIM, "dataSourceRef": {**CLAIM, "namespace": "b"}},
            ["spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified"],
            id="a dataSourceRef with a namespace",
        ),
    ],
)
def test_claim_specs_are_validated(change: Document, errors: list[str]) -> None:
    claim = document(PERSISTENT_VOLUME_CLAIM, spec={**SPEC, **change})
    assert messages(validate_persistent_volume_claim_spec(claim["spec"], "spec")) == errors


def test_invalid_values_of_a_stored_claim_are_tolerated() -> None:
    spec = {**SPEC, "dataSourceRef": {**CLAIM, "apiGroup": "A_"}, "selector": {"matchLabels": {"a": "b c"}}}
    old = document(PERSISTENT_VOLUME_CLAIM, spec=spec)
    strict = validate_persistent_volume_claim_spec(old["spec"], "spec")
    tolerance = tolerance_for(old)
    assert len(strict) == 2
    assert (tolerance.api_groups, tolerance.label_values) == (True, True)
    kept = [error.field for error in validate_persistent_volume_claim_spec(old["spec"], "spec", tolerance)]
    assert "spec.dataSourceRef.apiGroup" not in kept


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({}, size("2048Mi"), [], id="the same size in another unit"),
        pytest.param({}, {"volumeName": "a"}, [], id="a volume is named"),
        pytest.param({"volumeName": "a"}, {"volumeName": "b"}, ["spec"], id="another volume"),
        pytest.param({}, {"storageClassName": "a"}, [], id="a class is named"),
        pytest.param({"storageClassName": "a"}, {"storageClassName": "b"}, ["spec"], id="another class"),
        pytest.param({}, {"accessModes": ["ReadOnlyMany"]}, ["spec"], id="another mode"),
        pytest.param({}, size("3Gi"), ["spec"], id="more for a claim without a volume"),
        pytest.param({}, size("1Gi"), ["spec"], id="less for a claim without a volume"),
        pytest.param({}, {"volumeMode": "Block"}, ["spec", "volumeMode"], id="another kind of volume"),
    ],
)
def test_updates_of_claims_are_validated(old: Document, new: Document, fields: list[str]) -> None:
    before = document(PERSISTENT_VOLUME_CLAIM, spec={**SPEC, **old})
    after = document(PERSISTENT_VOLUME_CLAIM, spec={**SPEC, **old, **new})
    assert [error.field for error in validate_claim_update(after, before)] == fields


@pytest.mark.parametrize(
    ("new", "errors"),
    [
        pytest.param(size("6Gi"), [], id="more than requested"),
        pytest.param(size("4Gi"), [], id="less than requested, more than the capacity"),
        pytest.param(
            size("3Gi"),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
            id="not above the capacity",
        ),
        pytest.param({"volumeAttributesClassName": "b"}, [], id="other attributes"),
        pytest.param(
            {"volumeAttributesClassName": None},
            [
                "spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when "
                "status.currentVolumeAttributesClassName is not nil"
            ],
            id="no attributes",
        ),
    ],
)
def test_resizes_of_bound_claims_are_validated(new: Document, errors: list[str]) -> None:
    spec = {**SPEC, **size("5Gi"), "volumeAttributesClassName": "a"}
    status = {"phase": "Bound", "capacity": {"storage": "3Gi"}, "currentVolumeAttributesClassName": "a"}
    before = document(PERSISTENT_VOLUME_CLAIM, spec=spec, status=status)
    after = document(PERSISTENT_VOLUME_CLAIM, spec={**spec, **new}, status=status)
    assert messages(validate_claim_update(after, before)) == errors


@pytest.mark.parametrize(
    ("annotation", "name", "errors"),
    [
        pytest.param("a", "a", [], id="annotation and field"),
        pytest.param(None, "a", [], id="field instead of annotation"),
        pytest.param(
            "b",
            None,
            [f'metadata.annotations.{ANNOTATION}: Invalid value: "b": field is immutable'],
            id="another class",
        ),
    ],
)
def test_the_storage_class_may_move_from_the_annotation_to_its_field(
    annotation: str | None, name: str | None, errors: list[str]
) -> None:
    before = document(PERSISTENT_VOLUME_CLAIM, {"annotations": {ANNOTATION: "a"}}, spec=SPEC)
    metadata = {"annotations": {ANNOTATION: annotation}} if annotation else {}
    after = document(PERSISTENT_VOLUME_CLAIM, metadata, spec={**SPEC, "storageClassName": name})
    assert messages(validate_claim_update(after, before)) == errors


def test_claim_statuses_are_validated() -> None:
    status = {
        "capacity": {"storage": "-1"},
        "allocatedResourceStatuses": {"storage": "Odd", "cpu": "NodeResizePending"},
        "allocatedResources": {"cpu": "1", "storage": "1500m"},
    }
    claim = document(PERSISTENT_VOLUME_CLAIM, spec=SPEC, status=status)
    errors = messages(validate_persistent_volume_claim_status(claim))
    assert errors == [
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResourceStatuses: Unsupported value: "storage": supported values: '
        '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", '
        '"NodeResizePending"',
        'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"',
        'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
    ]


VALID_SPEC: Document = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIM_SOURCE: Document = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "a"}
OTHER: Document = {"apiGroup": "example.com", "kind": "Image", "name": "a"}


@pytest.mark.parametrize(
    ("given", "source", "reference"),
    [
        pytest.param({}, None, None, id="nothing"),
        pytest.param(
            {"dataSource": CLAIM_SOURCE},
            CLAIM_SOURCE,
            CLAIM_SOURCE,
            id="dataSource is a claim",
        ),
        pytest.param(
            {"dataSourceRef": CLAIM_SOURCE},
            CLAIM_SOURCE,
            CLAIM_SOURCE,
            id="dataSourceRef is a claim",
        ),
        pytest.param({"dataSource": OTHER}, None, None, id="dataSource of another kind is dropped"),
        pytest.param({"dataSourceRef": OTHER}, OTHER, OTHER, id="dataSourceRef of another kind"),
        pytest.param(
            {"dataSourceRef": {**CLAIM_SOURCE, "namespace": "b"}},
            None,
            None,
            id="dataSourceRef in another namespace is dropped",
        ),
    ],
)
def test_data_source_and_data_source_ref_are_synchronized(
    given: Document, source: Document | None, reference: Document | None
) -> None:
    claim = document(PERSISTENT_VOLUME_CLAIM, spec={**VALID_SPEC, **given}, status={"phase": "Bound"})
    assert created(PERSISTENT_VOLUME_CLAIM, claim) == []
    assert (claim["spec"].get("dataSource"), claim["spec"].get("dataSourceRef")) == (source, reference)
    assert claim["status"] == {"phase": "Pending"}


def test_an_update_of_a_claim_stored_with_only_a_data_source_is_accepted() -> None:
    old = document(
        PERSISTENT_VOLUME_CLAIM,
        spec={**VALID_SPEC, "dataSource": CLAIM_SOURCE},
    )
    errors, claim = changed(
        PERSISTENT_VOLUME_CLAIM,
        old,
        spec={**VALID_SPEC, "dataSourceRef": CLAIM_SOURCE},
    )
    assert errors == []
    assert claim["spec"]["dataSource"] == CLAIM_SOURCE


def test_a_status_update_of_a_claim_keeps_the_spec() -> None:
    old = document(PERSISTENT_VOLUME_CLAIM, spec=VALID_SPEC)
    errors, claim = changed(PERSISTENT_VOLUME_CLAIM, old, "status", spec={}, status={"phase": "Bound"})
    assert (errors, claim["spec"], claim["status"]) == ([], old["spec"], {"phase": "Bound"})


def test_fractional_bytes_and_deprecated_annotations_have_a_warning() -> None:
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}
    resources = {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m"}}
    claim = document(PERSISTENT_VOLUME_CLAIM, metadata, spec={**VALID_SPEC, "resources": resources})
    assert strategy(PERSISTENT_VOLUME_CLAIM).warnings_on_create(claim, call(PERSISTENT_VOLUME_CLAIM)) == [
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]: "
        'deprecated since v1.8; use "storageClassName" attribute instead',
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
        'spec.resources.limits[storage]: fractional byte value "2500m" is invalid, must be an integer',
    ]
