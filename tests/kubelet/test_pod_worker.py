"""One pod on its node: termination, restarts, reported statuses.

Statuses reach the API despite errors, and never another pod of the same name.
"""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD
from mooring.kubelet.settings import KubeletSettings, NodeCapacity
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.kubelet.harness import Body, Play, container, played, pod

SLEEPY = """
stageSets:
  - name: polite
    stages: [{name: serving, state: running}]
    stop: {for: 3s, exitCode: 0}
  - name: deaf
    stages: [{name: serving, state: running}]
    stop: {for: 1h}
  - name: done-soon
    stages: [{name: working, state: running, for: 2s}, {name: done, state: terminated}]
"""
SETTINGS = KubeletSettings(count=1, stages=SLEEPY, shape=NodeCapacity(cpu="4"))


@pytest.mark.parametrize(
    ("body", "grace_s", "timeline"),
    [
        pytest.param(
            pod(stage_set="polite"),
            None,
            ["0.0 Running terminating ready main=running", "3.1 gone"],
            id="it ends when it is asked to",
        ),
        pytest.param(
            pod(stage_set="deaf", terminationGracePeriodSeconds=5),
            None,
            ["0.0 Running terminating ready main=running", "5.1 gone"],
            id="or is killed when its time is over",
        ),
        pytest.param(
            pod(stage_set="deaf"),
            2,
            ["0.0 Running terminating ready main=running", "2.1 gone"],
            id="which a deletion can shorten",
        ),
        pytest.param(pod(stage_set="polite"), 0, ["0.0 gone"], id="or take away"),
        pytest.param(
            pod(stage_set="stuck-creating"),
            None,
            ["0.0 Pending terminating main=waiting:ContainerCreating", "0.1 gone"],
            id="one that never ran has nothing to end",
        ),
        pytest.param(
            pod(stage_set="polite", initContainers=[container("proxy", restartPolicy="Always")]),
            None,
            [
                "0.0 Running terminating ready proxy=running main=running",
                "3.1 Running terminating proxy=running main=terminated:Completed(0)",
                "3.2 gone",
            ],
            id="sidecars end after those that they serve",
        ),
        pytest.param(
            pod(stage_set="done-soon", restartPolicy="Never"),
            None,
            ["0.0 gone"],
            id="one that is over needs no kubelet",
        ),
    ],
)
def test_a_deletion(body: Body, grace_s: int | None, timeline: list[str]) -> None:
    async def story(play: Play) -> None:
        await play.create(body)
        await play.wait(4.0)
        await play.delete("web", grace_s)
        assert await play.timeline("web", 20.0) == timeline
        assert play.kubelets.statistics()["pods"] == 0

    played(story, SETTINGS)


def test_the_end_is_written_before_the_pod_goes() -> None:
    async def story(play: Play) -> None:
        body = pod(stage_set="deaf", terminationGracePeriodSeconds=5)
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await play.create(body)
        await play.wait(1.0)
        await play.delete("web")
        await play.wait(6.0)
        assert await play.line("web") == "Failed terminating main=terminated:Error(137)"
        status = await play.status("web")
        assert status["containerStatuses"][0]["state"]["terminated"]["signal"] == 9
        conditions = {
            condition["type"]: (condition["status"], condition.get("reason")) for condition in status["conditions"]
        }
        assert conditions["Ready"] == conditions["ContainersReady"] == ("False", "PodFailed")
        assert conditions["PodReadyToStartContainers"] == ("False", None)

    played(story, SETTINGS)


def test_one_that_never_ran_ends_as_failed() -> None:
    async def story(play: Play) -> None:
        body = pod(stage_set="stuck-creating")
        body["metadata"]["finalizers"] = ["example.com/wait"]
        await play.create(body)
        await play.wait(1.0)
        await play.delete("web")
        await play.wait(1.0)
        assert await play.line("web") == "Failed terminating main=terminated:ContainerStatusUnknown(137)"

    played(story, SETTINGS)


def test_a_deletion_can_be_hurried() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="deaf", terminationGracePeriodSeconds=60))
        await play.wait(1.0)
        await play.delete("web")
        await play.wait(10.0)
        await play.delete("web", 12)
        # Counted from then on, as a kubelet does.
        assert (await play.timeline("web", 60.0))[-1] == "12.0 gone"

    played(story, SETTINGS)


def test_a_pod_that_is_active_for_too_long_fails() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite", activeDeadlineSeconds=10))
        assert await play.timeline("web", 60.0) == [
            "0.0 Pending",
            "0.1 Running ready main=running",
            "13.1 Failed (DeadlineExceeded) main=terminated:Completed(0)",
        ]
        assert (await play.status("web"))["message"] == (
            "Pod was active on the node longer than the specified deadline"
        )

    played(story, SETTINGS)


def test_sidecars_end_when_the_pod_is_through() -> None:
    async def story(play: Play) -> None:
        await play.create(
            pod(
                stage_set="done-soon",
                restartPolicy="Never",
                initContainers=[container("proxy", restartPolicy="Always")],
            )
        )
        await play.wait(10.0)
        assert await play.line("web") == "Succeeded proxy=terminated:Completed(0) main=terminated:Completed(0)"

    played(story, SETTINGS)


def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    async def story(play: Play) -> None:
        await play.create(
            pod(
                restartPolicy="Never",
                initContainers=[container("proxy", restartPolicy="Always"), container("init")],
                annotations={"stages.mooring.dev/init": "fails"},
            )
        )
        await play.wait(10.0)
        assert await play.line("web") == (
            "Failed proxy=terminated:Completed(0) init=terminated:Error(1) main=waiting:PodInitializing"
        )

    played(story, SETTINGS)


def test_a_pod_for_which_there_is_no_room_is_turned_away() -> None:
    async def story(play: Play) -> None:
        asking = [container(resources={"requests": {"cpu": "3"}})]
        await play.create(pod("first", containers=asking))
        await play.create(pod("second", containers=asking))
        await play.wait(2.0)
        assert await play.line("first") == "Running ready main=running"
        assert await play.line("second") == "Failed (OutOfcpu)"
        assert (await play.status("second"))["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"
        )
        await play.delete("first")
        await play.wait(2.0)
        await play.create(pod("third", containers=asking))
        await play.wait(2.0)
        assert await play.line("third") == "Running ready main=running"

    played(story, SETTINGS)


def test_readiness_gates_are_waited_for() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite", readinessGates=[{"conditionType": "example.com/lb"}]))
        await play.wait(2.0)
        assert await play.line("web") == "Running main=running"
        gate = {"type": "example.com/lb", "status": "True"}
        await play.change("web", {"status": {"conditions": [gate]}}, subresource="status")
        await play.wait(1.0)
        assert await play.line("web") == "Running ready main=running"
        conditions = (await play.status("web"))["conditions"]
        assert gate in [{"type": condition["type"], "status": condition["status"]} for condition in conditions]

    played(story, SETTINGS)


def test_a_resize_is_granted_or_waits_for_room() -> None:
    def amounts(cpu: str) -> Body:
        return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}

    async def story(play: Play) -> None:
        await play.create(pod(containers=[container(resources={"requests": {"cpu": "1"}})]))
        await play.create(pod("other", containers=[container(resources={"requests": {"cpu": "1"}})]))
        await play.wait(2.0)
        await play.change("web", amounts("2"), subresource="resize")
        await play.wait(1.0)
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert reported["resources"]["requests"] == reported["allocatedResources"] == {"cpu": "2"}
        assert (await play.status("web"))["observedGeneration"] == 2

        await play.change("web", amounts("4"), subresource="resize")
        await play.wait(1.0)
        status = await play.status("web")
        assert status["containerStatuses"][0]["allocatedResources"] == {"cpu": "2"}
        pending = {condition["type"]: condition for condition in status["conditions"]}["PodResizePending"]
        assert (pending["status"], pending["reason"]) == ("True", "Deferred")

        await play.delete("other")
        await play.wait(2.0)
        status = await play.status("web")
        assert status["containerStatuses"][0]["allocatedResources"] == {"cpu": "4"}
        assert "PodResizePending" not in {condition["type"] for condition in status["conditions"]}
        assert status["containerStatuses"][0]["restartCount"] == 0

    played(story, SETTINGS)


def test_a_resize_that_asks_for_a_new_run_gets_one() -> None:
    policy = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
    main = container(resources={"requests": {"cpu": "1"}}, resizePolicy=[policy])

    async def story(play: Play) -> None:
        await play.create(pod(containers=[main], stage_set="polite"))
        await play.wait(2.0)
        resized = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
        await play.change("web", resized, subresource="resize")
        await play.wait(6.0)
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert (reported["allocatedResources"], reported["restartCount"]) == ({"cpu": "2"}, 1)

    played(story, SETTINGS)


def test_another_image_is_another_run() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite"))
        await play.wait(2.0)
        await play.change("web", {"spec": {"containers": [{"name": "main", "image": "example.com/web:2"}]}})
        await play.wait(6.0)
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert (reported["image"], reported["restartCount"]) == ("example.com/web:2", 1)
        assert reported["imageID"].startswith("example.com/web@sha256:")
        assert reported["lastState"]["terminated"]["exitCode"] == 0

    played(story, SETTINGS)


def test_a_container_to_look_around_with_is_started_beside_the_others() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite"))
        await play.wait(2.0)
        shell = {"spec": {"ephemeralContainers": [container("shell")]}}
        await play.change("web", shell, subresource="ephemeralcontainers")
        await play.wait(2.0)
        assert await play.line("web") == "Running ready main=running shell=running:unready"

    played(story, SETTINGS)


def test_conditions_that_other_clients_changed_are_corrected() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite"))
        await play.wait(2.0)
        lost = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
        await play.change("web", {"status": {"conditions": [lost]}}, subresource="status")
        await play.wait(1.0)
        assert await play.line("web") == "Running ready main=running"

    played(story, SETTINGS)


def test_a_pod_with_a_terminal_phase_of_another_client_is_stopped() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(stage_set="polite"))
        await play.wait(2.0)
        await play.change("web", {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
        await play.wait(5.0)
        assert await play.line("web") == "Failed (Evicted) main=terminated:Completed(0)"

    played(story, SETTINGS)


def test_a_condition_that_holds_gives_no_reason_any_more() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(initContainers=[container("init")]))
        await play.wait(0.15)
        reported = {condition["type"]: condition for condition in (await play.status("web"))["conditions"]}
        assert reported["Initialized"]["reason"] == "ContainersNotInitialized"
        await play.wait(5.0)
        for condition in (await play.status("web"))["conditions"]:
            assert (condition["status"], "reason" in condition, "message" in condition) == ("True", False, False)

    played(story, SETTINGS)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Fault("patch", Outcome.REQUEST_LOST, kind=POD, times=3)], id="requests are lost"),
        pytest.param([Fault("patch", Outcome.ANSWER_LOST, kind=POD, times=3)], id="answers are lost"),
        pytest.param([Fault("patch", Outcome.BROKEN, kind=POD, times=3)], id="the server is ill"),
        pytest.param([Fault("patch", Outcome.CONFLICT, kind=POD, times=3)], id="others write at the same time"),
        pytest.param([Fault("patch", Outcome.EXPIRED, kind=POD)], id="a refusal that should not be"),
        pytest.param([Fault("patch", Outcome.DONE, kind=POD, delay_s=3.0)], id="the server is slow"),
        pytest.param([Fault("delete", Outcome.REQUEST_LOST, kind=POD, times=2)], id="deletions are lost"),
        pytest.param([Fault("delete", Outcome.ANSWER_LOST, kind=POD, times=2)], id="answers to deletions are lost"),
        pytest.param([Fault("watch", Outcome.EXPIRED, kind=POD, times=2)], id="the history is gone"),
        pytest.param([Fault("next_batch", Outcome.BROKEN, kind=POD, times=3)], id="watches break"),
    ],
)
def test_a_pod_runs_and_goes_whatever_happens(faults: list[Fault]) -> None:
    async def story(play: Play) -> None:
        await play.create(pod())
        await play.wait(45.0)
        assert await play.line("web") == "Running ready main=running"
        await play.delete("web")
        await play.wait(30.0)
        assert await play.line("web") == "gone"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(*faults)))


def test_another_pod_of_the_same_name_is_left_alone() -> None:
    late = Fault("patch", Outcome.REQUEST_LOST, kind=POD, times=2)

    async def story(play: Play) -> None:
        await play.create(pod("web", stage_set="fails", restartPolicy="Never"))
        await play.wait(1.5)
        await play.delete("web", 0)
        await play.create(pod("web", on=""))
        await play.wait(30.0)
        assert await play.line("web") == "Pending"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(late)))


def test_a_change_of_another_client_is_corrected_although_the_watch_is_faster_than_the_answer() -> None:
    late = Fault("patch", Outcome.DONE, kind=POD, answer_delay_s=5.0)

    async def story(play: Play) -> None:
        await play.create(pod())
        await play.wait(3.0)
        assert await play.line("web") == "Running ready main=running"
        not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await play.change("web", not_ready, subresource="status")
        assert await play.line("web") == "Running main=running"
        await play.wait(30.0)
        assert await play.line("web") == "Running ready main=running"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(late)))
