"""The plan and the status of a StatefulSet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import StatefulSetStatus
from mooring.controllers.statefulset.plan import (
    CorrectMember,
    CreateMember,
    DeleteMember,
    EnsureClaims,
    StatefulSetPlan,
    count_status,
    is_status_stale,
    is_update_complete,
    plan,
    status_document,
)
from tests.controllers.batch_builders import claim_view, member, stateful_set_view
from tests.controllers.builders import NOW_S

PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}


def sentences(planned: StatefulSetPlan) -> list[str]:
    """`+1` made, `-1` deleted, `~1` corrected, `?1` claims looked after, `u1` deleted for an update."""
    said = []
    for action in (action for actions in planned.members for action in actions):
        match action:
            case CreateMember(ordinal):
                said.append(f"+{ordinal}")
            case DeleteMember(pod):
                said.append(f"-{pod.metadata.name[3:]}")
            case EnsureClaims(pod):
                said.append(f"?{pod.metadata.name[3:]}")
            case CorrectMember(pod):
                said.append(f"~{pod.metadata.name[3:]}")
    said += [f"c{action.pod.metadata.name[3:]}" for action in planned.claims]
    said += [f"-{action.pod.metadata.name[3:]}" for action in planned.condemned]
    return said + ([f"u{planned.update.pod.metadata.name[3:]}"] if planned.update is not None else [])


def members(*states: str, revision: str = "db-1") -> list[Pod]:
    return [member(ordinal, state=state, revision=revision) for ordinal, state in enumerate(states) if state]


@pytest.mark.parametrize(
    ("parts", "pods", "expected"),
    [
        pytest.param({}, [], ["+0"], id="the first"),
        pytest.param({}, members("ready"), ["+1"], id="the next"),
        pytest.param({}, members("unready"), [], id="the next waits for the first to be ready"),
        pytest.param({}, members("pending"), ["?0"], id="a pending one: are its claims there"),
        pytest.param({}, members("ready", "", "ready"), ["+1"], id="a gap"),
        pytest.param({}, members("failed", "ready"), ["-0"], id="a failed one goes"),
        pytest.param({}, members("ready", "succeeded"), ["-1"], id="one that ended goes"),
        pytest.param({}, members("ready", "going", "ready"), [], id="one is going"),
        pytest.param({}, members("ready", "ready", "ready"), [], id="all are there"),
        pytest.param({"minReadySeconds": 99}, members("ready"), [], id="not ready for long enough"),
        pytest.param({"minReadySeconds": 9}, members("ready"), ["+1"], id="ready for long enough"),
        pytest.param(PARALLEL, members("unready"), ["+1", "+2"], id="all at once"),
        pytest.param(PARALLEL, members("failed", "pending"), ["-0", "?1", "+2"], id="whatever the others do"),
        pytest.param({"ordinals": {"start": 7}, "replicas": 1}, [], ["+7"], id="from another number on"),
        pytest.param({"going": True}, [], [], id="a set that is going does nothing"),
    ],
)
def test_making_members(parts: dict[str, Any], pods: Sequence[Pod], expected: list[str]) -> None:
    assert sentences(plan(stateful_set_view(**parts), pods, "db-1", lambda name: None, NOW_S)) == expected


@pytest.mark.parametrize(
    ("parts", "pods", "expected"),
    [
        pytest.param({}, members("ready", "ready", "ready"), ["-2"], id="the last goes first"),
        pytest.param({}, members("ready", "ready", "going"), [], id="one after the other"),
        pytest.param({}, members("unready", "ready", "ready"), [], id="not before those that stay are well"),
        pytest.param({}, members("ready", "unready", "ready"), ["-2"], id="the last is well"),
        pytest.param({}, members("ready", "unready", "unready"), [], id="not while one before it is not well"),
        pytest.param({}, members("ready", "ready", "unready"), ["-2"], id="it alone is not well"),
        pytest.param(PARALLEL, members("unready", "unready", "ready", "going"), ["-2", "-1"], id="all at once"),
    ],
)
def test_scaling_down(parts: dict[str, Any], pods: Sequence[Pod], expected: list[str]) -> None:
    assert sentences(plan(stateful_set_view(replicas=1, **parts), pods, "db-1", lambda name: None, NOW_S)) == expected


@pytest.mark.parametrize(
    ("parts", "pods", "expected"),
    [
        pytest.param({}, members("ready", "ready", "ready"), ["u2"], id="the highest number first"),
        pytest.param({}, [*members("ready", "ready"), member(2, revision="db-2")], ["u1"], id="then the next"),
        pytest.param(
            PARALLEL, [*members("ready", "ready"), member(2, revision="db-2", state="unready")], [], id="it waits"
        ),
        pytest.param(
            {"partition": 2}, [*members("ready", "ready"), member(2, revision="db-2")], [], id="the partition stays"
        ),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, members("ready", "ready", "ready"), [], id="on delete"),
        pytest.param(PARALLEL, members("ready", "ready", "unready"), ["u2"], id="one that is not well is replaced"),
        pytest.param({}, members("ready", "ready", "unready"), [], id="but in order only when it is"),
        pytest.param({"replicas": 2}, members("ready", "ready", "ready"), ["-2"], id="scaling goes first"),
    ],
)
def test_updating(parts: dict[str, Any], pods: Sequence[Pod], expected: list[str]) -> None:
    assert sentences(plan(stateful_set_view(**parts), pods, "db-2", lambda name: None, NOW_S)) == expected


def test_correcting() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    wanted = stateful_set_view(replicas=1, claims=["data"], persistentVolumeClaimRetentionPolicy=policy)
    pods = [member(0, claims=["data"]), member(1, claims=["data"])]
    assert sentences(plan(wanted, pods, "db-1", claim_view, NOW_S)) == ["~0", "c1", "-1"]
    assert sentences(plan(wanted, [member(0)], "db-1", lambda name: None, NOW_S)) == ["~0"]


def test_a_member_waits_for_a_stale_claim() -> None:
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    stale = ("Pod", "db-0", "uid-before")
    plain: dict[str, Any] = {}
    for how in (plain, PARALLEL):
        wanted = stateful_set_view(replicas=1, claims=["data"], persistentVolumeClaimRetentionPolicy=policy, **how)
        assert sentences(plan(wanted, [], "db-1", lambda name: claim_view(name, stale), NOW_S)) == []


def test_the_counts() -> None:
    pods = [
        member(0),
        member(1, revision="db-2"),
        member(2, revision="db-2", state="going"),
        member(3, state="pending"),
        member(4, ready_for_s=1),
    ]
    status = count_status(stateful_set_view(minReadySeconds=10), pods, "db-1", "db-2", 0, NOW_S)
    assert status == StatefulSetStatus(
        observed_generation=1,
        replicas=5,
        ready_replicas=4,
        available_replicas=3,
        current_replicas=3,
        updated_replicas=1,
        current_revision="db-1",
        update_revision="db-2",
        collision_count=0,
    )


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param({"replicas": 3, "updated_replicas": 3, "ready_replicas": 3}, True, id="all are new and ready"),
        pytest.param({"replicas": 4, "updated_replicas": 3, "ready_replicas": 3}, False, id="one is left over"),
        pytest.param({"replicas": 3, "updated_replicas": 3, "ready_replicas": 2}, False, id="one is not ready"),
    ],
)
def test_when_an_update_is_complete(counts: dict[str, int], expected: bool) -> None:
    status = StatefulSetStatus(**counts)  # type: ignore[arg-type]
    assert is_update_complete(stateful_set_view(), status) == expected
    assert not is_update_complete(stateful_set_view(updateStrategy={"type": "OnDelete"}), status)


def test_what_is_sent() -> None:
    document: Document = status_document(StatefulSetStatus(collision_count=0, update_revision="db-1"))
    assert document == {"replicas": 0, "availableReplicas": 0, "collisionCount": 0, "updateRevision": "db-1"}
    assert is_status_stale(StatefulSetStatus(), StatefulSetStatus(replicas=1))
    assert not is_status_stale(StatefulSetStatus(observed_generation=2), StatefulSetStatus(observed_generation=1))
