"""Bodies of patches, and what is said of those that are none."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call
from mooring.apiserver.wire.patch_bodies import read_patch
from mooring.client.errors import BadRequestError
from mooring.client.interface import PatchForm

CALL = Call(verb="patch", kind=CONFIG_MAP, user=User("tester"), now_s=0.0, now="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("form", "data", "content"),
    [
        pytest.param(PatchForm.JSON, b"[]", [], id="no steps"),
        pytest.param(PatchForm.JSON, b"null", [], id="nothing, as steps"),
        pytest.param(PatchForm.MERGE, b"{}", {}, id="an empty merge patch"),
        pytest.param(PatchForm.STRATEGIC, b"null", {}, id="nothing, as a strategic patch"),
        pytest.param(PatchForm.APPLY, b"", {}, id="no object"),
        pytest.param(PatchForm.APPLY, b"null", {}, id="nothing, as an object"),
    ],
)
def test_patches(form: PatchForm, data: bytes, content: object) -> None:
    assert read_patch(data, form, CALL).content == content


@pytest.mark.parametrize(
    ("form", "data", "expected_message"),
    [
        pytest.param(PatchForm.MERGE, b"null", "Invalid JSON Patch", id="nothing, as a merge patch"),
        pytest.param(
            PatchForm.MERGE,
            b"[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
        pytest.param(
            PatchForm.JSON,
            b"{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="no list",
        ),
        pytest.param(PatchForm.STRATEGIC, b"", "unexpected end of JSON input", id="no text"),
    ],
)
def test_what_is_no_patch(form: PatchForm, data: bytes, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        read_patch(data, form, CALL)
    assert raised.value.message == expected_message
