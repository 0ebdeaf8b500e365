"""Stories of Deployments, on virtual time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.kinds import DEPLOYMENT, POD, REPLICA_SET
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.api.well_known import DEPLOYMENT_REVISION, DEPLOYMENT_ROLLBACK_TO
from mooring.client.interface import Change, Client
from mooring.controllers.context import ControllerContext
from mooring.controllers.deployment.controller import DeploymentController
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from tests.api_servers import NO_CLIENT
from tests.client.faulty import Fault, FaultyClient, Outcome, Script, Storm
from tests.controllers.builders import deployment, deployment_view, pod_view, replica_set_view
from tests.controllers.world import Story, World, play

CONTROLLERS = ["deployment-controller", "replicaset-controller"]


class Events:
    """A controller whose informers get events from the test."""

    def __init__(self, *deployments: Deployment) -> None:
        clock = VirtualClock()
        context = ControllerContext(NO_CLIENT, clock, Entropy(2))
        self.queue = DeploymentController(context).queue
        self.deployments = context.informers.informer(Deployment)
        self.sets = context.informers.informer(ReplicaSet)
        self.pods = context.informers.informer(Pod)
        for each in deployments:
            self.deployments.apply(Change.ADDED, each)
        self.enqueued()

    def enqueued(self) -> list[str]:
        found = []
        while (key := self.queue.get_nowait()) is not None:
            self.queue.done(key)
            found.append(key)
        return found


def owned(name: str, by: str = "web", version: str = "1", labels: dict[str, str] | None = None) -> ReplicaSet:
    view = replica_set_view(name, labels=labels)
    references = (OwnerReference(kind="Deployment", name=by, uid=f"uid-{by}", controller=True),) if by else ()
    return replace(view, metadata=replace(view.metadata, owner_references=references, resource_version=version))


def pod_of(name: str, owner: str) -> Pod:
    pod = pod_view(name)
    reference = OwnerReference(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(reference,)))


def test_a_set_enqueues_the_deployment_that_controls_it() -> None:
    events = Events(deployment_view("web"), deployment_view("db"))
    events.sets.apply(Change.ADDED, owned("web-1"))
    assert events.enqueued() == ["default/web"]
    events.sets.apply(Change.MODIFIED, owned("web-1", version="2"))
    assert events.enqueued() == ["default/web"]
    events.sets.apply(Change.DELETED, owned("web-1"))
    assert events.enqueued() == ["default/web"]


def test_a_set_with_another_owner_enqueues_both() -> None:
    events = Events(deployment_view("web"), deployment_view("db"))
    events.sets.apply(Change.ADDED, owned("x"))
    events.enqueued()
    events.sets.apply(Change.MODIFIED, owned("x", by="db", version="2"))
    assert events.enqueued() == ["default/web", "default/db"]


def test_an_orphan_enqueues_the_owners_that_select_it() -> None:
    events = Events(deployment_view("web"), deployment_view("db"))
    events.sets.apply(Change.ADDED, owned("x", by="", labels={"app": "db"}))
    assert events.enqueued() == ["default/db"]
    events.sets.apply(Change.MODIFIED, owned("x", by="", labels={"app": "db"}, version="2"))
    assert events.enqueued() == []
    events.sets.apply(Change.MODIFIED, owned("x", by="", labels={"app": "web"}, version="3"))
    assert events.enqueued() == ["default/web"]


def test_a_set_of_an_older_owner_of_that_name_enqueues_nothing() -> None:
    events = Events(deployment_view("web"))
    reference = OwnerReference(kind="Deployment", name="web", uid="an older one", controller=True)
    view = owned("x")
    events.sets.apply(Change.ADDED, replace(view, metadata=replace(view.metadata, owner_references=(reference,))))
    assert events.enqueued() == []


def test_only_the_last_pod_matters_and_only_to_recreate() -> None:
    events = Events(deployment_view("web", strategy="Recreate"), deployment_view("db"))
    for owner in ("web", "db"):
        events.sets.apply(Change.ADDED, owned(f"{owner}-1", by=owner))
        for number in (1, 2):
            events.pods.apply(Change.ADDED, pod_of(f"{owner}-1-{number}", f"{owner}-1"))
    events.enqueued()
    events.pods.apply(Change.DELETED, pod_of("web-1-1", "web-1"))
    events.pods.apply(Change.DELETED, pod_of("db-1-1", "db-1"))
    events.pods.apply(Change.DELETED, pod_of("db-1-2", "db-1"))
    assert events.enqueued() == []
    events.pods.apply(Change.DELETED, pod_of("web-1-2", "web-1"))
    assert events.enqueued() == ["default/web"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


def image(name: str) -> Document:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


async def running(world: World, **parts: Any) -> None:
    await world.create(deployment(**parts))
    await world.settle()
    await world.run_pods(2)


async def revision(world: World) -> str:
    found: str = (await world.get(DEPLOYMENT, "web"))["metadata"]["annotations"][DEPLOYMENT_REVISION]
    return found


def test_a_deployment_gets_its_pods_and_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(deployment(replicas=3))
        await world.settle()
        assert await world.sizes() == {"app:1": 3}
        assert await world.conditions("web") == {
            "Available": ("False", "MinimumReplicasUnavailable"),
            "Progressing": ("True", "ReplicaSetUpdated"),
        }
        await world.make_ready()
        await world.settle()
        assert await world.conditions("web") == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        status = (await world.get(DEPLOYMENT, "web"))["status"]
        del status["conditions"]
        assert status == {
            "observedGeneration": 1,
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
        }
        assert await revision(world) == "1"
        (name,) = [each["metadata"]["name"] for each in (await world.sets()).values()]
        assert await world.events("ScalingReplicaSet") == [
            ("web", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 3")
        ]

    run_story(story)


@pytest.mark.parametrize(
    ("surge", "unavailable", "first_step"),
    [
        pytest.param(1, 0, {"app:1": 4, "app:2": 1}, id="one more, none fewer"),
        pytest.param(0, 1, {"app:1": 3, "app:2": 1}, id="none more, one fewer"),
        pytest.param("25%", "25%", {"app:1": 3, "app:2": 2}, id="a quarter of each"),
        pytest.param("100%", 0, {"app:1": 4, "app:2": 4}, id="all at once beside the old ones"),
        pytest.param(0, "100%", {"app:1": 0, "app:2": 4}, id="all at once in place of the old ones"),
    ],
)
def test_a_rolling_update(surge: int | str, unavailable: int | str, first_step: dict[str, int]) -> None:
    async def story(world: World) -> None:
        await running(world, replicas=4, surge=surge, unavailable=unavailable)
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.settle()
        assert await world.sizes() == first_step
        await world.run_pods(8)
        assert await world.sizes() == {"app:1": 0, "app:2": 4}
        assert await revision(world) == "2"
        assert (await world.conditions("web"))["Progressing"] == ("True", "NewReplicaSetAvailable")

    run_story(story)


def test_recreate_lets_all_old_pods_go_first() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=2, strategy="Recreate")
        for pod in await world.pods():
            await world.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": ["example.com/slow"]}})
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.settle()
        assert await world.sizes() == {"app:1": 0}
        for pod in await world.pods():
            await world.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
        await world.settle()
        assert await world.sizes() == {"app:1": 0, "app:2": 2}

    run_story(story)


def test_what_is_paused_is_scaled_but_not_rolled_out() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=2)
        await world.patch(DEPLOYMENT, "web", {"spec": {"paused": True, **image("app:2")["spec"]}})
        await world.settle()
        assert (await world.conditions("web"))["Progressing"] == ("Unknown", "DeploymentPaused")
        await world.patch(DEPLOYMENT, "web", {"spec": {"replicas": 3}})
        await world.settle()
        assert await world.sizes() == {"app:1": 3}
        await world.patch(DEPLOYMENT, "web", {"spec": {"paused": None}})
        await world.run_pods(6)
        assert await world.sizes() == {"app:1": 0, "app:2": 3}

    run_story(story)


def test_a_rollout_that_stands_still_is_reported_and_taken_back() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=2, deadline_s=30)
        await world.patch(DEPLOYMENT, "web", image("broken"))
        await world.settle(25)
        assert (await world.conditions("web"))["Progressing"] == ("True", "ReplicaSetUpdated")
        await world.settle(10)
        assert (await world.conditions("web"))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        await world.patch(DEPLOYMENT, "web", image("app:1"))
        await world.run_pods(4)
        assert await world.sizes() == {"app:1": 2, "broken": 0}
        assert (await world.conditions("web"))["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert await revision(world) == "3"
        assert (await world.sets())["app:1"]["metadata"]["annotations"][f"{DEPLOYMENT_REVISION}-history"] == "1"

    run_story(story)


def test_going_back_by_annotation() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=1)
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.run_pods(4)
        await world.patch(DEPLOYMENT, "web", {"metadata": {"annotations": {DEPLOYMENT_ROLLBACK_TO: "0"}}})
        await world.run_pods(4)
        assert await world.sizes() == {"app:1": 1, "app:2": 0}
        assert await world.events("DeploymentRollback") == [
            ("web", "DeploymentRollback", 'Rolled back deployment "web" to revision 1')
        ]
        assert DEPLOYMENT_ROLLBACK_TO not in (await world.get(DEPLOYMENT, "web"))["metadata"]["annotations"]

    run_story(story)


@pytest.mark.parametrize(("history", "left"), [(0, 1), (2, 3), (10, 5)])
def test_old_sets_are_kept_up_to_a_limit(history: int, left: int) -> None:
    async def story(world: World) -> None:
        await running(world, replicas=1, history=history)
        for number in range(2, 6):
            await world.patch(DEPLOYMENT, "web", image(f"app:{number}"))
            await world.run_pods(4)
        images = sorted(await world.sets())
        assert images == [f"app:{number}" for number in range(6 - left, 6)]

    run_story(story)


def test_a_rollover_leaves_the_unfinished_rollout_behind() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=4)
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.settle()
        await world.patch(DEPLOYMENT, "web", image("app:3"))
        await world.run_pods(10)
        assert await world.sizes() == {"app:1": 0, "app:2": 0, "app:3": 4}

    run_story(story)


def test_a_name_that_is_taken_makes_another_hash() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=1)
        (taken,) = (await world.sets()).values()
        await world.delete(DEPLOYMENT, "web")
        name = taken["metadata"]["name"]
        await world.patch(REPLICA_SET, name, {"metadata": {"labels": None, "ownerReferences": None}})
        await world.create(deployment(replicas=1))
        await world.settle(5)
        found = await world.get(DEPLOYMENT, "web")
        assert found["status"]["collisionCount"] == 1
        names = [each["metadata"]["name"] for each in await world.list(REPLICA_SET)]
        assert len(names) == 2
        assert name in names

    run_story(story)


def test_annotations_and_the_time_to_be_ready_come_to_the_set() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=1)
        change = {"metadata": {"annotations": {"team": "a"}}, "spec": {"minReadySeconds": 7}}
        await world.patch(DEPLOYMENT, "web", change)
        await world.settle()
        (found,) = (await world.sets()).values()
        assert found["metadata"]["annotations"]["team"] == "a"
        assert found["spec"]["minReadySeconds"] == 7

    run_story(story)


def test_an_empty_selector_is_rejected() -> None:
    async def story(world: World) -> None:
        await world.store_invalid(deployment(replicas=1, selector={}))
        await world.settle()
        assert await world.sets() == {}
        assert [reason for _, reason, _ in await world.events()] == ["SelectingAll"]
        assert (await world.get(DEPLOYMENT, "web"))["status"] == {"observedGeneration": 1}

    run_story(story)


def test_an_orphaned_set_is_taken_back() -> None:
    async def story(world: World) -> None:
        await running(world, replicas=2)
        await world.delete(DEPLOYMENT, "web")
        (orphan,) = await world.list(REPLICA_SET)
        await world.patch(REPLICA_SET, orphan["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        await world.create(deployment(replicas=2))
        await world.settle()
        (found,) = await world.list(REPLICA_SET)
        assert found["metadata"]["uid"] == orphan["metadata"]["uid"]
        assert found["metadata"]["ownerReferences"][0]["name"] == "web"

    run_story(story)


@pytest.mark.parametrize("seed", range(12))
def test_in_any_storm_the_rollout_ends_when_it_is_over(seed: int) -> None:
    outcomes = [Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.CONFLICT, Outcome.BROKEN, Outcome.DONE]
    likelihoods = {"create": 0.2, "update": 0.2, "patch": 0.2, "delete": 0.2, "get": 0.2, "next_batch": 0.02}
    storm = Storm(Entropy(seed), likelihoods, outcomes, delay_s_max=0.5, requests_max=300)

    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, storm)

    async def story(world: World) -> None:
        await world.create(deployment(replicas=6))
        await world.run_pods(4)
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.run_pods(4)
        await world.patch(DEPLOYMENT, "web", {"spec": {"replicas": 9, **image("app:3")["spec"]}})
        await world.run_pods(4)
        for _ in range(40):
            await world.settle(60)
            await world.make_ready()
        sizes = {image: size for image, size in (await world.sizes()).items() if size}
        assert sizes == {"app:3": 9}
        assert len(await world.pods()) == 9
        assert (await world.conditions("web"))["Progressing"] == ("True", "NewReplicaSetAvailable")

    play(story, controllers=CONTROLLERS, through=through, seed=seed)


def test_a_set_that_the_informer_does_not_show_is_not_created_twice() -> None:
    """The watch of ReplicaSets is late: another template meanwhile must not double the pods."""

    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(Fault("next_batch", kind=REPLICA_SET, answer_delay_s=5.0)))

    async def story(world: World) -> None:
        await world.create(deployment("web", replicas=4, image="app:1", surge=0, unavailable=1))
        await world.settle()
        await world.patch(DEPLOYMENT, "web", image("app:2"))
        await world.settle()
        assert await world.sizes() == {"app:1": 4}
        await world.settle(6.0)
        assert sum((await world.sizes()).values()) <= 4
        assert "app:2" in await world.sizes()

    play(story, controllers=["deployment-controller"], through=through)


def test_conflicts_are_retried_at_debug_level_however_many_there_are(caplog: pytest.LogCaptureFixture) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(Fault("update", Outcome.CONFLICT, kind=DEPLOYMENT, times=20)))

    async def story(world: World) -> None:
        await world.create(deployment(replicas=1))
        await world.settle(4000.0)
        assert (await world.get(DEPLOYMENT, "web"))["status"]["observedGeneration"] == 1

    with caplog.at_level(logging.DEBUG, "mooring.client.workqueue"):
        play(story, controllers=["deployment-controller"], through=through)
    retries = [record for record in caplog.records if "default/web" in record.getMessage()]
    assert len(retries) == 20
    assert {record.levelno for record in retries} == {logging.DEBUG}


def test_other_failures_end_after_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(Fault("update", Outcome.BROKEN, kind=DEPLOYMENT, times=None)))

    async def story(world: World) -> None:
        await world.create(deployment(replicas=1))
        await world.settle(4000.0)

    play(story, controllers=["deployment-controller"], through=through)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("deployment default/web failed 15 times, no retry until it changes: ")
