"""Tests of kinds.custom_resource_definition.status."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.custom_resource_definition.status import (
    validate_approval,
    validate_names,
    validate_preserving,
    validate_status,
)
from tests.apiserver.custom.definitions import definition, version


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        pytest.param(
            {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}, [], id="fine"
        ),
        pytest.param({"plural": "Things", "singular": "1"}, ["names.plural", "names.singular"], id="upper case"),
        pytest.param({"kind": "Thi ng", "listKind": "L_"}, ["names.kind", "names.listKind"], id="odd kinds"),
        pytest.param({"kind": "Thing", "listKind": "Thing"}, ["names.listKind"], id="the same twice"),
        pytest.param({"shortNames": ["ok", "A", ""]}, ["names.shortNames[1]", "names.shortNames[2]"], id="short names"),
        pytest.param({"categories": ["all", "Q"]}, ["names.categories[1]"], id="categories"),
    ],
)
def test_names(names: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_names(names, "names")] == paths


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        pytest.param(["v1"], [], id="fine"),
        pytest.param(
            None, ["status.storedVersions: Invalid value: null: must have at least one stored version"], id="none"
        ),
        pytest.param(
            ["v2"], ['status.storedVersions: Invalid value: ["v2"]: must have the storage version v1'], id="another one"
        ),
    ],
)
def test_stored_versions(stored: list[str] | None, found: list[str]) -> None:
    whole = definition(version(), version(name="v2"))
    whole["status"]["storedVersions"] = stored
    assert [error.message for error in validate_status(whole)] == found


def test_a_version_in_which_objects_were_stored_must_stay() -> None:
    whole = definition()
    whole["status"]["storedVersions"] = ["v0", "v1"]
    (error,) = validate_status(whole)
    assert (error.field, error.value) == ("status.storedVersions[0]", "v0")
    assert error.detail.startswith("missing from spec.versions; v0 was previously a storage version")


def protected(**annotations: str) -> Document:
    whole = definition()
    whole["spec"]["group"] = "foo.kubernetes.io"
    whole["metadata"]["annotations"] = {
        name.replace("_", "-") + ".kubernetes.io": text for name, text in annotations.items()
    }
    return whole


def test_protected_groups_need_an_approval() -> None:
    assert [error.kind.prefix for error in validate_approval(protected(), None)] == ["Required value"]
    assert [error.kind.prefix for error in validate_approval(protected(api_approved="hm"), None)] == ["Invalid value"]
    assert validate_approval(protected(api_approved="unapproved, a test"), None) == []
    assert validate_approval(protected(), protected()) == []
    assert validate_approval(definition(), None) == []


def test_unknown_fields_can_no_longer_all_be_kept() -> None:
    keeps = definition(version(), preserveUnknownFields=True)
    assert len(validate_preserving(keeps, None)) == 1
    assert validate_preserving(keeps, keeps) == []
