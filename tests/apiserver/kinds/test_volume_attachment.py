"""Tests of kinds.volume_attachment."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import VOLUME_ATTACHMENT
from mooring.apiserver.kinds.volume_attachment import (
    keep_metadata,
    validate_volume_attachment,
    validate_volume_attachment_update,
)
from tests.apiserver.core_documents import changed, created, document, messages, strategy

INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": "h"}}
ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def attachment(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    whole_spec = {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}, **spec}
    return document(VOLUME_ATTACHMENT, spec=whole_spec, status=status or {})


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(attachment(), [], id="a volume by name"),
        pytest.param(attachment(source={"inlineVolumeSpec": INLINE}), [], id="an inline volume"),
        pytest.param(attachment(attacher=""), ["spec.attacher: Required value"], id="no attacher"),
        pytest.param(attachment(source={}), [f"spec.source: Required value: {ONE}"], id="no volume"),
        pytest.param(
            attachment(source={"persistentVolumeName": "pv", "inlineVolumeSpec": INLINE}),
            [f"spec.source: Forbidden: {ONE}"],
            id="two volumes",
        ),
        pytest.param(
            attachment({"attachError": {"message": "x" * 1025}, "detachError": {"errorCode": -1}}),
            [
                "status.attachError.message: Too long: may not be more than 262144 bytes",
                "status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
            id="invalid errors",
        ),
        pytest.param(
            attachment({"attachmentMetadata": {"a": "x" * 262144}}),
            ["status.attachmentMetadata: Too long: may not be more than 262144 bytes"],
            id="too large attachment metadata",
        ),
    ],
)
def test_volume_attachments_are_validated(obj: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_volume_attachment(obj)) == errors


def test_an_empty_volume_name_is_rejected() -> None:
    first, second = validate_volume_attachment(attachment(source={"persistentVolumeName": ""}))
    assert first.message == (
        "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName"
    )
    assert second.field == "spec.source.persistentVolumeName"


def test_the_spec_of_an_attachment_is_immutable() -> None:
    assert validate_volume_attachment_update(attachment({"attached": True}), attachment()) == []
    (error,) = validate_volume_attachment_update(attachment(nodeName="m"), attachment())
    assert (error.field, error.detail) == ("spec", "field is immutable")


SPEC = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def test_a_new_attachment_is_detached() -> None:
    made = document(VOLUME_ATTACHMENT, spec=SPEC, status={"attached": True})
    assert created(VOLUME_ATTACHMENT, made) == []
    assert made["status"] == {"attached": False}


def test_updates_and_status_updates_of_attachments_change_only_their_part() -> None:
    old = document(VOLUME_ATTACHMENT, spec=SPEC)
    errors, new = changed(VOLUME_ATTACHMENT, old, status={"attached": True})
    assert (errors, new["status"]) == ([], {"attached": False})
    parts = {"status": {"attached": True}, "spec": {**SPEC, "nodeName": "m"}}
    errors, new = changed(VOLUME_ATTACHMENT, old, "status", metadata={"labels": {"a": "b"}}, **parts)
    assert (errors, new["status"], new["spec"]) == ([], {"attached": True}, SPEC)
    assert "labels" not in new["metadata"]
    errors, _ = changed(VOLUME_ATTACHMENT, old, "status", status={"detachError": {"errorCode": -1}})
    assert [error.partition(":")[0] for error in errors] == ["status.detachError.errorCode"]
    assert strategy(VOLUME_ATTACHMENT, "status").ignored_fields == (("metadata",), ("spec",))


def test_keep_metadata_changes_only_managed_fields() -> None:
    old = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    new = {"metadata": {"name": "a", "finalizers": ["b/c"], "managedFields": [{}]}}
    keep_metadata(new, old)
    assert new == {"metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [{}]}}


def test_an_inline_volume_gets_only_the_defaults_of_its_source() -> None:
    inline = {"hostPath": {"path": "/x"}, "capacity": {"storage": "1Gi"}}
    made = document(VOLUME_ATTACHMENT, spec={"source": {"inlineVolumeSpec": inline}})
    assert made["spec"]["source"]["inlineVolumeSpec"] == {**inline, "hostPath": {"path": "/x", "type": ""}}
