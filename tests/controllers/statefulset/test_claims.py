"""Whose the claims of a StatefulSet are."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.controllers.statefulset.claims import (
    Member,
    are_claims_right,
    claim_document,
    is_any_claim_stale,
    is_claim_right,
    is_controlled_by_others,
    right_owners,
)
from tests.controllers.batch_builders import claim_view, stateful_set_view

SET = ("StatefulSet", "db", "uid-db")
POD = ("Pod", "db-1", "uid-db-1")
OLD_POD = ("Pod", "db-1", "uid-of-another")
OTHER = ("Other", "x", "uid-x")


def member_of(when_deleted: str, when_scaled: str, replicas: int) -> Member:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    wanted = stateful_set_view(replicas=replicas, claims=["data"], persistentVolumeClaimRetentionPolicy=policy)
    return Member(wanted, 1, "uid-db-1")


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "replicas", "owners"),
    [
        pytest.param("Retain", "Retain", 2, [], id="kept whatever happens"),
        pytest.param("Delete", "Retain", 2, [SET], id="goes with the set"),
        pytest.param("Delete", "Retain", 1, [SET], id="goes with the set, even if scaled away"),
        pytest.param("Retain", "Delete", 2, [], id="in use"),
        pytest.param("Retain", "Delete", 1, [POD], id="goes with the pod that is scaled away"),
        pytest.param("Delete", "Delete", 2, [SET], id="in use, goes with the set"),
        pytest.param("Delete", "Delete", 1, [POD], id="scaled away, goes with the pod"),
    ],
)
def test_owners(when_deleted: str, when_scaled: str, replicas: int, owners: list[tuple[str, str, str]]) -> None:
    member = member_of(when_deleted, when_scaled, replicas)
    assert is_claim_right(claim_view("data-db-1", *owners), member)
    for wrong in ([], [SET], [POD], [SET, POD]):
        if wrong != owners:
            claim = claim_view("data-db-1", *wrong)
            assert not is_claim_right(claim, member)
            assert [
                (each["kind"], each["name"], each["uid"]) for each in right_owners(claim, _documents(claim), member)
            ] == owners


@pytest.mark.parametrize(
    ("claim", "is_right"),
    [
        pytest.param(claim_view("data-db-1", OLD_POD), True, id="of a pod that is gone: left alone"),
        pytest.param(claim_view("data-db-1", OTHER), True, id="controlled by others: left alone"),
        pytest.param(claim_view("data-db-1", OTHER, SET), False, id="controlled by others and by us: given up"),
        pytest.param(claim_view("data-db-1", SET, controller=False), False, id="owned but not controlled"),
        pytest.param(claim_view("data-db-1", OTHER, controller=False), False, id="somebody else owns it too"),
    ],
)
def test_claims_of_others(claim: PersistentVolumeClaim, is_right: bool) -> None:
    assert is_claim_right(claim, member_of("Delete", "Retain", 2)) == is_right


def test_a_claim_of_others_is_given_up() -> None:
    member = member_of("Delete", "Retain", 2)
    claim = claim_view("data-db-1", OTHER, SET)
    assert is_controlled_by_others(claim, member)
    assert [each["kind"] for each in right_owners(claim, _documents(claim), member)] == ["Other"]
    assert not is_controlled_by_others(claim, member_of("Retain", "Retain", 2))


@pytest.mark.parametrize(
    ("when_scaled", "claim", "expected"),
    [
        pytest.param("Delete", claim_view("data-db-1", OLD_POD), True, id="it is to go with the pod before"),
        pytest.param("Retain", claim_view("data-db-1", OLD_POD), False, id="it stays anyway"),
        pytest.param("Delete", claim_view("data-db-1"), False, id="nobody's"),
        pytest.param("Delete", None, False, id="there is none"),
    ],
)
def test_stale_claims(when_scaled: str, claim: PersistentVolumeClaim | None, expected: bool) -> None:
    member = Member(member_of("Retain", when_scaled, 2).wanted, 1)
    assert is_any_claim_stale(member, lambda name: claim if name == "data-db-1" else None) == expected


def test_claims_that_are_missing_are_no_fault() -> None:
    assert are_claims_right(member_of("Delete", "Retain", 2), lambda name: None)
    assert not are_claims_right(member_of("Delete", "Retain", 2), lambda name: claim_view(name))


def test_a_claim_as_its_template_wants_it() -> None:
    template: Document = {"metadata": {"name": "data", "labels": {"app": "x", "tier": "t"}}, "spec": {"a": 1}}
    claim = claim_document(stateful_set_view(), template, "data-db-0")
    assert claim["metadata"] == {"name": "data-db-0", "namespace": "default", "labels": {"app": "db", "tier": "t"}}
    assert claim["spec"] == {"a": 1}


def _documents(claim: PersistentVolumeClaim) -> list[Document]:
    return [
        {"apiVersion": each.api_version, "kind": each.kind, "name": each.name, "uid": each.uid}
        for each in claim.metadata.owner_references
    ]
