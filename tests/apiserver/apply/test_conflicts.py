"""Messages of apply conflicts."""

from __future__ import annotations

import pytest

from mooring.apiserver.apply.conflicts import conflict_error, shown_manager
from mooring.apiserver.apply.managers import APPLY, UPDATE, ManagerId, manager_id
from tests.apiserver.apply.builders import fields

ANNA, BOB = manager_id("anna", APPLY, "v1", ""), manager_id("bob", UPDATE, "v1", "")


@pytest.mark.parametrize(
    ("who", "text"),
    [
        (ANNA, '"anna"'),
        (BOB, '"bob" using v1'),
        (manager_id("bob", UPDATE, "apps/v1", "scale"), '"bob" with subresource "scale" using apps/v1'),
        (manager_id("anna", APPLY, "v1", "status"), '"anna" with subresource "status"'),
    ],
)
def test_a_manager_is_named(who: ManagerId, text: str) -> None:
    assert shown_manager(who) == text


def test_one_conflict_is_one_sentence() -> None:
    error = conflict_error({ANNA: fields("data k1")})
    assert (error.code, error.message) == (409, 'Apply failed with 1 conflict: conflict with "anna": .data.k1')
    assert [(cause.reason, cause.message, cause.field) for cause in error.causes] == [
        ("FieldManagerConflict", 'conflict with "anna"', ".data.k1")
    ]


def test_several_conflicts_are_listed_by_manager() -> None:
    error = conflict_error({BOB: fields("data k3"), ANNA: fields("data k1", "data k2")})
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "anna":\n- .data.k1\n- .data.k2\n'
        'conflicts with "bob" using v1:\n- .data.k3'
    )
    assert len(error.causes) == 3
