"""Tests of kinds.controller_revision."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.controller_revision import validate_controller_revision, validate_revision_data
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import GONE, body, created, updated


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"data": {}}, [], id="empty data"),
        pytest.param({"data": GONE}, ["data: Required value: data is mandatory"], id="no data"),
        pytest.param({"data": []}, ["data: Required value: data must be a valid JSON object"], id="a list"),
        pytest.param(
            {"revision": -1},
            ["revision: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative revision",
        ),
    ],
)
def test_controller_revisions_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_controller_revision(body("ControllerRevision", **changes))) == errors


def test_the_data_of_a_controller_revision_is_immutable() -> None:
    old, new = body("ControllerRevision"), body("ControllerRevision", data={"a": 2})
    assert messages(validate_revision_data(new, old)) == ['data: Invalid value: {"a":2}: field is immutable']
    assert validate_revision_data(body("ControllerRevision", revision=2), old) == []


def test_only_the_number_of_a_controller_revision_can_be_updated() -> None:
    old = created(body("ControllerRevision")).obj
    assert updated(body("ControllerRevision", revision=2), old).errors == []
    assert updated(body("ControllerRevision", data={"b": 1}), old).errors == [
        'data: Invalid value: {"b":1}: field is immutable'
    ]
