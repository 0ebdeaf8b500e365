"""Stories of ReplicaSets and ReplicationControllers, on virtual time.

What a ReplicaSet needs next, and how it is.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from mooring.api.labels import LabelMatcher
from mooring.api.views.workloads import ReplicationController
from mooring.controllers.pod_indexes import LabelsKey, StateCounts
from mooring.controllers.replicaset import (
    PodCounts,
    count_from_index,
    count_pods,
    plan_status,
    pods_to_add,
    selector_of,
    status_document,
)
from mooring.kit.entropy import Entropy
from tests.client.faulty import Fault, FaultyClient, Outcome, Script, Storm
from tests.controllers.builders import NOW_S, pod_view, replica_set, replica_set_view, replication_controller
from tests.controllers.world import Story, World, play

LATE_S = 60.0
CONTROLLERS = ["replicaset-controller", "replicationcontroller-controller"]


def bare_pod(name: str, **labels: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "app:1"}]},
        "status": {"phase": "Running"},
    }


def owner_of(pod: Document) -> str:
    return next(
        (
            owner_reference["name"]
            for owner_reference in pod["metadata"].get("ownerReferences", [])
            if owner_reference.get("controller")
        ),
        "",
    )


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        pytest.param(REPLICA_SET, replica_set("web", replicas=3), id="ReplicaSet"),
        pytest.param(REPLICATION_CONTROLLER, replication_controller("web", replicas=3), id="ReplicationController"),
    ],
)
def test_a_set_gets_its_pods_and_counts_them(kind: Kind, document: Document) -> None:
    async def story(world: World) -> None:
        await world.create(document)
        await world.settle()
        pods = await world.pods()
        assert [owner_of(pod) for pod in pods] == ["web"] * 3
        assert all(pod["metadata"]["name"].startswith("web-") for pod in pods)
        await world.make_ready(pods[0]["metadata"]["name"])
        await world.settle()
        status = (await world.get(kind, "web"))["status"]
        terminating = {"terminatingReplicas": 0} if kind is REPLICA_SET else {}
        assert status == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "observedGeneration": 1,
            **terminating,
        }

    run_story(story)


def test_a_deleted_pod_comes_again() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=2))
        await world.settle()
        gone = (await world.pods())[0]["metadata"]["name"]
        await world.delete(POD, gone)
        await world.settle()
        names = [pod["metadata"]["name"] for pod in await world.pods()]
        assert len(names) == 2
        assert gone not in names

    run_story(story)


def test_a_failed_pod_is_replaced_and_left_lying() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=2))
        await world.settle()
        failed = (await world.pods())[0]["metadata"]["name"]
        await world.patch(POD, failed, {"status": {"phase": "Failed"}}, "status")
        await world.settle()
        assert len(await world.pods()) == 3
        assert (await world.get(REPLICA_SET, "web"))["status"]["replicas"] == 2

    run_story(story)


def test_scaling_down_deletes_the_pods_that_are_not_ready() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=4))
        await world.settle()
        ready = [pod["metadata"]["name"] for pod in (await world.pods())[:2]]
        await world.make_ready(*ready)
        await world.patch(REPLICA_SET, "web", {"spec": {"replicas": 2}})
        await world.settle()
        assert sorted(pod["metadata"]["name"] for pod in await world.pods()) == sorted(ready)
        recorded = await world.events("SuccessfulDelete")
        assert len(recorded) == 2

    run_story(story)


def test_a_thousand_pods_come_in_bursts_and_go_again() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=1200))
        await world.settle(3)
        assert len(await world.pods()) == 1200
        await world.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}})
        await world.settle(3)
        assert len(await world.pods()) == 0
        assert (await world.get(REPLICA_SET, "web"))["status"]["replicas"] == 0

    run_story(story)


def test_pods_that_match_are_adopted_and_those_beyond_the_size_go() -> None:
    async def story(world: World) -> None:
        await world.create(bare_pod("a", app="web"), bare_pod("b", app="web"), bare_pod("other", app="x"))
        await world.create(replica_set("web", replicas=3))
        await world.settle()
        owners = {pod["metadata"]["name"]: owner_of(pod) for pod in await world.pods()}
        assert len(owners) == 4
        assert (owners["a"], owners["b"], owners["other"]) == ("web", "web", "")

    run_story(story)


def test_a_pod_that_loses_its_label_is_released_and_replaced() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=2))
        await world.settle()
        name = (await world.pods())[0]["metadata"]["name"]
        await world.patch(POD, name, {"metadata": {"labels": {"app": "debug"}}})
        await world.settle()
        owners = {pod["metadata"]["name"]: owner_of(pod) for pod in await world.pods()}
        assert len(owners) == 3
        assert owners[name] == ""

    run_story(story)


def test_a_pod_is_available_after_it_was_ready_for_long_enough() -> None:
    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=1, minReadySeconds=10))
        await world.settle()
        await world.make_ready()
        await world.settle(8)
        assert "availableReplicas" not in (await world.get(REPLICA_SET, "web"))["status"]
        await world.settle(3)
        assert (await world.get(REPLICA_SET, "web"))["status"]["availableReplicas"] == 1

    run_story(story)


def test_what_cannot_be_created_is_said_and_tried_again() -> None:
    faults = Script(Fault("create", Outcome.BROKEN, kind=POD, after=2, times=6))

    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=8))
        await world.settle(0.02)
        assert await world.conditions("web", REPLICA_SET) == {"ReplicaFailure": ("True", "FailedCreate")}
        assert [name for name, _, _ in await world.events("FailedCreate")]
        await world.settle(60)
        assert len(await world.pods()) == 8
        assert await world.conditions("web", REPLICA_SET) == {}

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, faults))


def test_a_set_that_is_gone_gets_no_more_pods_although_its_watch_is_late() -> None:
    """Whoever deletes its pods would fight with the controller until the watch comes."""
    late = Script(Fault("next_batch", Outcome.DONE, kind=REPLICA_SET, answer_delay_s=LATE_S, times=None))

    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=4))
        await world.settle(LATE_S * 3)
        assert len(await world.pods()) == 4
        await world.delete(REPLICA_SET, "web")
        made: set[str] = set()
        for _ in range(8):
            for pod in await world.pods():
                made.add(pod["metadata"]["name"])
                await world.delete(POD, pod["metadata"]["name"])
            await world.settle(1)
        assert len(made) <= 8, "those that were there, and those that were under way when it was deleted"
        await world.settle(LATE_S * 3)
        assert await world.pods() == []

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, late))


def test_another_set_of_the_same_name_does_not_get_the_counts_of_the_first() -> None:
    late = Script(Fault("next_batch", Outcome.DONE, kind=REPLICA_SET, answer_delay_s=LATE_S, times=None))

    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=3))
        await world.settle(LATE_S * 3)
        await world.delete(REPLICA_SET, "web")
        await world.create(replica_set("web", replicas=0))
        for pod in (await world.pods())[:1]:
            await world.make_ready(pod["metadata"]["name"])
        await world.settle(LATE_S / 2)
        assert (await world.get(REPLICA_SET, "web")).get("status", {}).get("readyReplicas", 0) == 0

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, late))


@pytest.mark.parametrize("seed", range(12))
def test_in_any_storm_the_size_is_right_when_it_is_over(seed: int) -> None:
    outcomes = [Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.CONFLICT, Outcome.BROKEN, Outcome.DONE]
    likelihoods = {"create": 0.2, "update": 0.3, "patch": 0.3, "delete": 0.2, "get": 0.2, "next_batch": 0.02}
    storm = Storm(Entropy(seed), likelihoods, outcomes, delay_s_max=0.5, requests_max=300)

    async def story(world: World) -> None:
        await world.create(replica_set("web", replicas=10), bare_pod("a", app="web"))
        await world.settle(2)
        for replicas in (3, 12, 5):
            await world.patch(REPLICA_SET, "web", {"spec": {"replicas": replicas}})
            await world.settle(3)
        await world.settle(1200)
        owners = [owner_of(pod) for pod in await world.pods()]
        assert owners == ["web"] * 5
        status = (await world.get(REPLICA_SET, "web"))["status"]
        assert (status["replicas"], status["observedGeneration"]) == (5, 4)

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, storm), seed=seed)


NOW = "2026-01-01T00:00:00Z"
LABELS = {"app": "web"}


def counts_by_labels(**counts: int) -> dict[LabelsKey, StateCounts]:
    found = StateCounts()
    for name, count in counts.items():
        setattr(found, name, count)
    return {(("app", "web"),): found}


@pytest.mark.parametrize(
    ("wanted", "active", "count"),
    [
        pytest.param(3, 3, 0, id="enough"),
        pytest.param(3, 1, 2, id="too few"),
        pytest.param(3, 5, -2, id="too many"),
        pytest.param(10_000, 0, 500, id="no more than five hundred come at once"),
        pytest.param(0, 10_000, -500, id="or go"),
    ],
)
def test_the_size(wanted: int, active: int, count: int) -> None:
    assert pods_to_add(replica_set_view("web", replicas=wanted), active) == count


def test_pods_counted_one_by_one() -> None:
    pods = [
        pod_view("a", labels=LABELS, ready_for_s=100),
        pod_view("b", labels=LABELS, ready_for_s=5),
        pod_view("c", labels={}, ready_for_s=None),
    ]
    wanted = replica_set_view("web", minReadySeconds=10)
    assert count_pods(wanted, pods, 4, NOW_S) == PodCounts(3, 2, 2, 1, 4)


@pytest.mark.parametrize(
    ("parts", "labels", "counts"),
    [
        pytest.param({}, LABELS, PodCounts(3, 3, 2, 2, 1), id="the index is enough"),
        pytest.param({"minReadySeconds": 5}, LABELS, None, id="who is available must be looked up"),
        pytest.param({}, {"app": "other"}, None, id="who must be released must be looked up"),
    ],
)
def test_pods_counted_by_the_tally(parts: dict[str, Any], labels: dict[str, str], counts: PodCounts | None) -> None:
    wanted = replica_set_view("web", **parts)
    found = {tuple(labels.items()): counts_by_labels(all=4, active=3, ready=2, terminating=1)[(("app", "web"),)]}
    assert count_from_index(wanted, selector_of(wanted), found) == counts


def test_pods_that_do_not_match_do_not_matter_if_they_are_finished() -> None:
    wanted = replica_set_view("web")
    found: dict[LabelsKey, StateCounts] = {(("app", "other"),): counts_by_labels(all=2)[(("app", "web"),)]}
    assert count_from_index(wanted, selector_of(wanted), found) == PodCounts()


def test_fully_labeled_are_those_with_all_labels_of_the_template() -> None:
    wanted = replica_set_view("web", template={"metadata": {"labels": {"app": "web", "more": "x"}}})
    counts = count_from_index(wanted, LabelMatcher(), counts_by_labels(all=3, active=3))
    assert counts == PodCounts(active=3)


def test_the_status() -> None:
    status = plan_status(replica_set_view("web", replicas=3), PodCounts(3, 3, 2, 1, 0), None, NOW)
    assert status_document(status) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


def test_a_replication_controller_does_not_tell_of_terminating_pods() -> None:
    wanted = decode_as(ReplicationController, b'{"metadata":{"name":"rc","generation":2},"spec":{"replicas":1}}')
    assert status_document(plan_status(wanted, PodCounts(terminating=1), None, NOW)) == {
        "replicas": 0,
        "observedGeneration": 2,
    }


@pytest.mark.parametrize(("wanted", "active", "reason"), [(3, 1, "FailedCreate"), (1, 3, "FailedDelete"), (1, 1, None)])
def test_a_failure_is_a_condition(wanted: int, active: int, reason: str | None) -> None:
    view = replica_set_view("web", replicas=wanted)
    conditions = status_document(plan_status(view, PodCounts(active=active), "quota", NOW))["conditions"]
    failed = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": NOW, "message": "quota"}
    assert conditions == [failed | ({"reason": reason} if reason else {})]


def test_a_failure_keeps_its_first_words_and_goes_with_the_next_success() -> None:
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "first"}
    view = replica_set_view("web", replicas=3, status={"conditions": [failed]})
    assert plan_status(view, PodCounts(active=1), "second", NOW).conditions[0].message == "first"
    assert plan_status(view, PodCounts(active=1), None, NOW).conditions == ()
