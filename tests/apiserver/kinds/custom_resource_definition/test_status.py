"""Tests of kinds.custom_resource_definition.status."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.custom_resource_definition.status import (
    approval_faults,
    names_faults,
    preserving_faults,
    status_faults,
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
    assert [fault.field for fault in names_faults(names, "names")] == paths


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
    assert [fault.message for fault in status_faults(whole)] == found


def test_a_version_in_which_objects_were_stored_must_stay() -> None:
    whole = definition()
    whole["status"]["storedVersions"] = ["v0", "v1"]
    (fault,) = status_faults(whole)
    assert (fault.field, fault.value) == ("status.storedVersions[0]", "v0")
    assert fault.detail.startswith("missing from spec.versions; v0 was previously a storage version")


def protected(**annotations: str) -> Document:
    whole = definition()
    whole["spec"]["group"] = "foo.kubernetes.io"
    whole["metadata"]["annotations"] = {
        name.replace("_", "-") + ".kubernetes.io": text for name, text in annotations.items()
    }
    return whole


def test_protected_groups_need_an_approval() -> None:
    assert [fault.kind.words for fault in approval_faults(protected(), None)] == ["Required value"]
    assert [fault.kind.words for fault in approval_faults(protected(api_approved="hm"), None)] == ["Invalid value"]
    assert approval_faults(protected(api_approved="unapproved, a test"), None) == []
    assert approval_faults(protected(), protected()) == []
    assert approval_faults(definition(), None) == []


def test_unknown_fields_can_no_longer_all_be_kept() -> None:
    keeps = definition(version(), preserveUnknownFields=True)
    assert len(preserving_faults(keeps, None)) == 1
    assert preserving_faults(keeps, keeps) == []
