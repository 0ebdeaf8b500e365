"""The members of a StatefulSet.

Members corrected, and what is recorded when something fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.controllers.statefulset.members import (
    Member,
    are_claims_right,
    claim_document,
    claim_names,
    has_identity,
    has_storage,
    is_any_claim_stale,
    is_claim_right,
    is_controlled_by_others,
    is_in_range,
    is_made_of_current,
    is_member,
    member_document,
    parent_and_ordinal,
    right_owners,
)
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.controllers.batch_builders import CLAIM_SPEC, claim_view, member, stateful_set, stateful_set_view
from tests.controllers.world import Story, World, play

SET = ("StatefulSet", "db", "uid-db")
POD_BODY = ("Pod", "db-1", "uid-db-1")
OLD_POD = ("Pod", "db-1", "uid-of-another")
OTHER = ("Other", "x", "uid-x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-0", ("db", 0)),
        ("my-db-12", ("my-db", 12)),
        ("db-007", ("db", 7)),
        ("db", ("", -1)),
        ("db-x", ("", -1)),
        ("db-99999999999", ("db", -1)),
    ],
)
def test_names(name: str, expected: tuple[str, int]) -> None:
    assert parent_and_ordinal(name) == expected


def test_ordinals_may_start_anywhere() -> None:
    wanted = stateful_set_view(replicas=2, ordinals={"start": 5})
    assert [ordinal for ordinal in range(10) if is_in_range(wanted, ordinal)] == [5, 6]
    assert is_member(wanted, member(1))
    assert not is_member(stateful_set_view(name="web"), member(1))


@pytest.mark.parametrize(
    ("parts", "ordinal", "expected"),
    [
        pytest.param({"partition": 2}, 1, True, id="below the partition"),
        pytest.param({"partition": 2}, 2, False, id="at the partition"),
        pytest.param({"partition": 2, "ordinals": {"start": 5}}, 6, True, id="counted from the first"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, 0, False, id="on delete"),
        pytest.param(
            {"updateStrategy": {"type": "RollingUpdate"}, "status": {"currentReplicas": 1}},
            0,
            True,
            id="without a partition",
        ),
    ],
)
def test_the_template_of_a_new_member(parts: dict[str, Any], ordinal: int, expected: bool) -> None:
    assert is_made_of_current(stateful_set_view(**parts), ordinal) == expected


@pytest.mark.parametrize(
    ("pod", "is_right"),
    [
        pytest.param(member(0, claims=["data"]), True, id="as it should be"),
        pytest.param(member(0), False, id="without its claim"),
        pytest.param(
            member(0, claims=["data"], labels={"statefulset.kubernetes.io/pod-name": "x"}), False, id="misnamed"
        ),
    ],
)
def test_identity_and_storage(pod: Pod, is_right: bool) -> None:
    wanted = stateful_set_view(claims=["data"])
    assert (has_identity(wanted, pod) and has_storage(wanted, pod)) == is_right


def test_the_pod_of_an_ordinal() -> None:
    wanted = stateful_set_view(claims=["data", "log"])
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [], "volumes": volumes}}
    pod = member_document(wanted, template, "db-r1", 2)
    assert pod["metadata"]["name"] == pod["spec"]["hostname"] == "db-2"
    assert pod["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "db-r1",
    }
    assert pod["spec"]["subdomain"] == "db"
    assert claim_names(wanted, 2) == {"data": "data-db-2", "log": "log-db-2"}
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}},
        {"name": "log", "persistentVolumeClaim": {"claimName": "log-db-2"}},
        {"name": "tmp", "emptyDir": {}},
    ]


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
        pytest.param("Retain", "Delete", 1, [POD_BODY], id="goes with the pod that is scaled away"),
        pytest.param("Delete", "Delete", 2, [SET], id="in use, goes with the set"),
        pytest.param("Delete", "Delete", 1, [POD_BODY], id="scaled away, goes with the pod"),
    ],
)
def test_owners(when_deleted: str, when_scaled: str, replicas: int, owners: list[tuple[str, str, str]]) -> None:
    member = member_of(when_deleted, when_scaled, replicas)
    assert is_claim_right(claim_view("data-db-1", *owners), member)
    for wrong in ([], [SET], [POD_BODY], [SET, POD_BODY]):
        if wrong != owners:
            claim = claim_view("data-db-1", *wrong)
            assert not is_claim_right(claim, member)
            assert [
                (right_owner["kind"], right_owner["name"], right_owner["uid"])
                for right_owner in right_owners(claim, _documents(claim), member)
            ] == owners


@pytest.mark.parametrize(
    ("claim", "is_right"),
    [
        pytest.param(claim_view("data-db-1", OLD_POD), True, id="of a pod that is gone: left alone"),
        pytest.param(claim_view("data-db-1", OTHER), True, id="controlled by others: left alone"),
        pytest.param(claim_view("data-db-1", OTHER, SET), False, id="controlled by others and by us: given up"),
        pytest.param(claim_view("data-db-1", SET, controller=False), False, id="owned but not controlled"),
        pytest.param(claim_view("data-db-1", OTHER, controller=False), False, id="it has another owner, too"),
    ],
)
def test_claims_of_others(claim: PersistentVolumeClaim, is_right: bool) -> None:
    assert is_claim_right(claim, member_of("Delete", "Retain", 2)) == is_right


def test_a_claim_of_others_is_given_up() -> None:
    member = member_of("Delete", "Retain", 2)
    claim = claim_view("data-db-1", OTHER, SET)
    assert is_controlled_by_others(claim, member)
    assert [right_owner["kind"] for right_owner in right_owners(claim, _documents(claim), member)] == ["Other"]
    assert not is_controlled_by_others(claim, member_of("Retain", "Retain", 2))


@pytest.mark.parametrize(
    ("when_scaled", "claim", "expected"),
    [
        pytest.param("Delete", claim_view("data-db-1", OLD_POD), True, id="it is to go with the pod before"),
        pytest.param("Retain", claim_view("data-db-1", OLD_POD), False, id="it stays anyway"),
        pytest.param("Delete", claim_view("data-db-1"), False, id="without an owner"),
        pytest.param("Delete", None, False, id="there is none"),
    ],
)
def test_stale_claims(when_scaled: str, claim: PersistentVolumeClaim | None, expected: bool) -> None:
    member = Member(member_of("Retain", when_scaled, 2).stateful_set, 1)
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
        {
            "apiVersion": owner_reference.api_version,
            "kind": owner_reference.kind,
            "name": owner_reference.name,
            "uid": owner_reference.uid,
        }
        for owner_reference in claim.metadata.owner_references
    ]


CONTROLLERS = ["statefulset-controller"]


def run_story(story: Story, *faults: Fault) -> None:
    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, Script(*faults)))


def test_a_member_gets_its_name_back() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1))
        await world.run_pods(2)
        await world.patch(POD, "db-0", {"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "other"}}})
        await world.settle(2)
        labels = (await world.get(POD, "db-0"))["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
        assert await world.events("SuccessfulUpdate") == [
            ("db", "SuccessfulUpdate", "Update Pod db-0 in StatefulSet db successful")
        ]

    run_story(story, Fault("update", Outcome.CONFLICT, kind=POD, times=2))


def test_failures_are_reported() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, claims=["data"]))
        await world.run_pods(3)
        failed = [message for _, _, message in await world.events("FailedCreate")]
        assert any(
            message.startswith("Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error:")
            for message in failed
        )
        assert any(message.startswith("Create Pod db-0 in StatefulSet db failed error:") for message in failed)
        assert [pod["metadata"]["name"] for pod in await world.pods()] == ["db-0"]
        await world.patch(STATEFUL_SET, "db", {"spec": {"replicas": 0}})
        await world.settle(3)
        (failure,) = await world.events("FailedDelete")
        assert failure[2].startswith("Delete Pod db-0 in StatefulSet db failed error:")
        assert await world.pods() == []

    run_story(
        story,
        Fault("create", Outcome.BROKEN, kind=PERSISTENT_VOLUME_CLAIM),
        Fault("create", Outcome.BROKEN, kind=POD),
        Fault("delete", Outcome.BROKEN, kind=POD),
    )


def test_a_claim_of_another_controller_is_given_up() -> None:
    async def story(world: World) -> None:
        other = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1", "controller": True}
        metadata = {"name": "data-db-0", "ownerReferences": [other]}
        await world.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": CLAIM_SPEC}
        )
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        await world.create(stateful_set(replicas=1, claims=["data"], persistentVolumeClaimRetentionPolicy=policy))
        await world.run_pods(3)
        claim = await world.get(PERSISTENT_VOLUME_CLAIM, "data-db-0")
        assert claim["metadata"]["ownerReferences"] == [other]
        assert await world.events("ConflictingController")

    run_story(story)


def test_claims_of_a_waiting_member_are_made_again() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, claims=["data"]))
        await world.settle(2)
        await world.patch(POD, "db-0", {"status": {"phase": "Pending"}}, "status")
        await world.delete(PERSISTENT_VOLUME_CLAIM, "data-db-0")
        await world.patch(POD, "db-0", {"metadata": {"annotations": {"look": "again"}}})
        await world.settle(2)
        assert (await world.get(PERSISTENT_VOLUME_CLAIM, "data-db-0"))["metadata"]["labels"] == {"app": "db"}

    run_story(story)
