"""An attachment names an attacher, a node and one volume; its wish never changes."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import VOLUME_ATTACHMENT
from mooring.apiserver.validation.volume_attachment import volume_attachment_faults, volume_attachment_update_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": "h"}}
ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def attachment(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    wish = {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}, **spec}
    return document(VOLUME_ATTACHMENT, spec=wish, status=status or {})


@pytest.mark.parametrize(
    ("obj", "faults"),
    [
        pytest.param(attachment(), [], id="a volume at a node"),
        pytest.param(attachment(source={"inlineVolumeSpec": INLINE}), [], id="a volume that stands here"),
        pytest.param(attachment(attacher=""), ["spec.attacher: Required value"], id="nobody attaches"),
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
            id="errors that cannot be",
        ),
        pytest.param(
            attachment({"attachmentMetadata": {"a": "x" * 262144}}),
            ["status.attachmentMetadata: Too long: may not be more than 262144 bytes"],
            id="too much to remember",
        ),
    ],
)
def test_what_is_wrong_with_an_attachment(obj: dict[str, Any], faults: list[str]) -> None:
    assert messages(volume_attachment_faults(obj)) == faults


def test_a_volume_needs_a_name() -> None:
    first, second = volume_attachment_faults(attachment(source={"persistentVolumeName": ""}))
    assert first.message == (
        "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName"
    )
    assert second.field == "spec.source.persistentVolumeName"


def test_the_wish_never_changes() -> None:
    assert volume_attachment_update_faults(attachment({"attached": True}), attachment()) == []
    (fault,) = volume_attachment_update_faults(attachment(nodeName="m"), attachment())
    assert (fault.field, fault.detail) == ("spec", "field is immutable")
