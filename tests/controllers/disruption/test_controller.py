"""Stories of disruption budgets, on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
    kind_named,
)
from mooring.api.views.meta import OwnerReference
from mooring.client.interface import Client
from mooring.controllers.context import ControllerContext
from mooring.controllers.disruption.controller import OwnerScales, ScaleError
from mooring.kit.clock import VirtualClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.api_servers import open_loopback_client, store_object
from tests.controllers.builders import deployment, template
from tests.controllers.world import Story, World, play

ANY_OBJECT: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WIDGET = Kind("example.com/v1", "Widget", "widgets", folder="example.com/widgets")
OWNERS = ["deployment-controller", "replicaset-controller"]


class Cluster:
    """Owners, and a client that reads their scales."""

    def __init__(self, clock: VirtualClock, group: TaskGroup, store: MemoryStore, client: Client) -> None:
        self.clock, self.group = clock, group
        self.store = store
        self.client = client

    async def create(self, kind: Kind, name: str, spec: Document, **metadata: Any) -> str:
        """Its uid."""
        namespace = "default" if kind.is_namespaced else ""
        identity = {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}
        if kind in (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET, DEPLOYMENT):
            labels = {"app": name}
            selector = labels if kind is REPLICATION_CONTROLLER else {"matchLabels": labels}
            spec = {"selector": selector, "template": template(labels), **spec}
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": identity, "spec": spec}
        made: Document = msgspec.json.decode(await self.client.create(kind, namespace, document))
        return str(made["metadata"]["uid"])

    async def replicas(self, api_version: str, kind: str, name: str, uid: str) -> int | None:
        context = ControllerContext(self.client, self.clock, Entropy(2))
        scales = OwnerScales(context)
        context.informers.start(self.group)
        await self.clock.wait(1)
        owner = OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)
        scale = await scales.scale_of(owner, "default")
        assert scale is None or scale.uid == uid or kind == "ReplicaSet"
        return scale.replicas if scale is not None else None


def run_with_cluster(story: Callable[[Cluster], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore()
        async with open_loopback_client(clock, store=store) as client, TaskGroup("owners") as group:
            await story(Cluster(clock, group, store, client))
            group.cancel()

    run(main(), clock)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")],
)
@pytest.mark.parametrize(("spec", "replicas"), [({"replicas": 0}, 0), ({}, 1)], ids=["it says how many", "one else"])
def test_a_built_in_owner_wants(api_version: str, kind: str, spec: Document, replicas: int) -> None:
    async def story(cluster: Cluster) -> None:
        uid = await cluster.create(kind_named(api_version, kind), "x", spec)
        assert await cluster.replicas(api_version, kind, "x", uid) == replicas
        assert await cluster.replicas(api_version, kind, "x", "former") is None, "another one by now"
        assert await cluster.replicas(api_version, kind, "y", uid) is None, "not there"

    run_with_cluster(story)


@pytest.mark.parametrize(
    ("above", "replicas"),
    [
        pytest.param({"kind": "Deployment", "name": "d"}, 7, id="a Deployment decides"),
        pytest.param({"kind": "Deployment", "name": "gone"}, None, id="a Deployment that is gone"),
        pytest.param({"kind": "Rollout", "name": "d"}, 3, id="another kind does not"),
    ],
)
def test_above_a_replica_set(above: Document, replicas: int | None) -> None:
    async def story(cluster: Cluster) -> None:
        uid = await cluster.create(kind_named("apps/v1", "Deployment"), "d", {"replicas": 7})
        owner = {"apiVersion": "apps/v1", "uid": uid, "controller": True, **above}
        mine = await cluster.create(kind_named("apps/v1", "ReplicaSet"), "x", {"replicas": 3}, ownerReferences=[owner])
        assert await cluster.replicas("apps/v1", "ReplicaSet", "x", mine) == replicas

    run_with_cluster(story)


async def define_widgets(cluster: Cluster, **subresources: Any) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"openAPIV3Schema": ANY_OBJECT}
    versions = [
        {"name": "v1beta1", "served": True, "storage": False, "schema": schema},
        {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": subresources},
    ]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com", spec)
    await cluster.clock.wait(1)


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        pytest.param({"pods": {"count": 5}}, 5, id="where its definition says"),
        pytest.param({"pods": {"count": "5"}}, 0, id="not a number"),
        pytest.param({"pods": 5}, 0, id="another shape"),
        pytest.param({}, 0, id="it says nothing"),
    ],
)
def test_a_custom_owner_wants(spec: Document, replicas: int) -> None:
    async def story(cluster: Cluster) -> None:
        await define_widgets(
            cluster, scale={"specReplicasPath": ".spec.pods.count", "statusReplicasPath": ".status.count"}
        )
        document = {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": {"name": "x"}, "spec": spec}
        await store_object(cluster.store, WIDGET, "default", document)  # not every case is valid
        uid = "uid-x"
        assert await cluster.replicas("example.com/v1", "Widget", "x", uid) == replicas
        assert await cluster.replicas("example.com/v1", "Widget", "x", "former") is None, "another one by now"
        assert await cluster.replicas("example.com/v1", "Widget", "y", uid) is None, "not there"

    run_with_cluster(story)


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("example.com/v1", "Widget", "widgets.example.com does not implement the scale subresource"),
        ("batch/v1", "Job", "jobs.batch does not implement the scale subresource"),
        ("apps/v9", "Thing", 'no matches for kind "Thing" in version "apps/v9"'),
    ],
    ids=["a custom kind without one", "a built-in kind without one", "an unknown kind"],
)
def test_a_kind_without_a_scale_is_refused_in_words(api_version: str, kind: str, message: str) -> None:
    async def story(cluster: Cluster) -> None:
        await define_widgets(cluster)
        with pytest.raises(ScaleError, match=message):
            await cluster.replicas(api_version, kind, "x", "u")

    run_with_cluster(story)


def budget(name: str = "b", app: str = "web", **spec: Any) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def bare_pod(name: str, owner: Document | None = None) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [owner] if owner else []},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "app:1"}]},
        "status": {"phase": "Pending"},
    }


def owner(api_version: str, kind: str, uid: str = "u") -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": "owner", "uid": uid, "controller": True}


async def counts(world: World, name: str = "b") -> tuple[int, int, int, int]:
    """Expected, desired, healthy, allowed."""
    status = (await world.get(POD_DISRUPTION_BUDGET, name))["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    expected, desired, healthy, allowed = (status[field] for field in fields)
    return expected, desired, healthy, allowed


def run_story(story: Story, controllers: list[str] | None = None) -> None:
    play(story, controllers=["disruption-controller", *(controllers or [])])


def test_a_budget_follows_its_pods() -> None:
    async def story(world: World) -> None:
        await world.create(budget(minAvailable="50%"))
        await world.settle()
        assert await counts(world) == (0, 0, 0, 0)
        assert await world.events("NoPods") == [("b", "NoPods", "No matching pods found")]
        await world.create(deployment("web", replicas=5))
        await world.settle()
        assert await counts(world) == (5, 3, 0, 0)
        await world.make_ready()
        await world.settle()
        assert await counts(world) == (5, 3, 5, 2)
        await world.patch(DEPLOYMENT, "web", {"spec": {"replicas": 8}})
        await world.settle()
        assert await counts(world) == (8, 4, 5, 1)
        assert (await world.conditions("b", POD_DISRUPTION_BUDGET))["DisruptionAllowed"] == ("True", "SufficientPods")

    run_story(story, OWNERS)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param(
            owner("batch/v1", "Job"), "jobs.batch does not implement the scale subresource", id="a Job has no scale"
        ),
        pytest.param(
            owner("example.com/v1", "Foo"),
            'no matches for kind "Foo" in version "example.com/v1"',
            id="an unknown kind",
        ),
        pytest.param(owner("apps/v1", "ReplicaSet"), 'found no controllers for pod "p"', id="an owner that is gone"),
        pytest.param(owner("apps/v1", "StatefulSet"), 'found no controllers for pod "p"', id="a set that is gone"),
        pytest.param(owner("v1", "ReplicationController"), 'found no controllers for pod "p"', id="and another"),
    ],
)
def test_a_budget_fails_safe_if_a_scale_cannot_be_read(reference: Document, message: str) -> None:
    async def story(world: World) -> None:
        await world.create(bare_pod("p", reference), budget(maxUnavailable=1))
        await world.settle()
        status = (await world.get(POD_DISRUPTION_BUDGET, "b"))["status"]
        (condition,) = status["conditions"]
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SyncFailed", message)
        expected = f"Failed to calculate the number of expected pods: {message}"
        assert await world.events("CalculateExpectedPodCountFailed") == [
            ("b", "CalculateExpectedPodCountFailed", expected)
        ]

    run_story(story)


def test_the_scale_of_a_custom_owner_is_read() -> None:
    definition: Document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": ANY_OBJECT},
                    "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                }
            ],
        },
    }

    async def story(world: World) -> None:
        kind = Kind("example.com/v1", "Foo", "foos", folder="example.com/foos")
        await world.create(definition)
        await world.settle()
        foo = {
            "apiVersion": "example.com/v1",
            "kind": "Foo",
            "metadata": {"name": "owner", "namespace": "default"},
            "spec": {"size": 6},
        }
        await world.client.create(kind, "default", foo)
        uid = (await world.get(kind, "owner"))["metadata"]["uid"]
        await world.create(bare_pod("p", owner("example.com/v1", "Foo", uid)), budget(maxUnavailable=2))
        await world.settle()
        assert await counts(world) == (6, 4, 0, 0)

    run_story(story)


def test_bare_pods_are_reported() -> None:
    async def story(world: World) -> None:
        await world.create(bare_pod("p"), budget(maxUnavailable=1), budget("number", minAvailable=1))
        await world.settle()
        assert await counts(world) == (0, 0, 0, 0)
        assert await counts(world, "number") == (1, 1, 0, 0)
        ((name, _, message),) = await world.events("UnmanagedPods")
        assert name == "b"
        assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}" in message

    run_story(story)


def test_a_pod_of_two_budgets_is_reported_and_counts_in_both() -> None:
    async def story(world: World) -> None:
        await world.create(budget("one", minAvailable=1), budget("two", minAvailable=1), bare_pod("p"))
        await world.settle()
        assert await counts(world, "one") == await counts(world, "two") == (1, 1, 0, 0)
        expected = 'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
        assert ("p", "MultiplePodDisruptionBudgets", expected) in await world.events()

    run_story(story)


def test_a_promised_eviction_counts_until_it_is_overdue() -> None:
    async def story(world: World) -> None:
        await world.create(bare_pod("p"), bare_pod("q"), budget(minAvailable=1))
        await world.make_ready("p", "q")
        await world.settle()
        assert await counts(world) == (2, 1, 2, 1)
        now = format_rfc3339(world.clock.wall_s())
        await world.patch(POD_DISRUPTION_BUDGET, "b", {"status": {"disruptedPods": {"p": now}}}, "status")
        await world.settle()
        assert await counts(world) == (2, 1, 1, 0)
        await world.settle(125)
        assert await counts(world) == (2, 1, 2, 1)
        expected = "Pod was expected by PDB default/default to be deleted but it wasn't"
        assert await world.events("NotDeleted") == [("p", "NotDeleted", expected)]

    run_story(story)


def test_a_pod_that_was_not_disrupted_after_all_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(bare_pod("p"))
        now = format_rfc3339(world.clock.wall_s())
        target = {"type": "DisruptionTarget", "status": "True", "reason": "Preemption", "lastTransitionTime": now}
        await world.patch(POD, "p", {"status": {"phase": "Running", "conditions": [target]}}, "status")
        await world.settle(119)
        assert (await world.get(POD, "p"))["status"]["conditions"][0]["status"] == "True"
        await world.settle(2)
        (condition,) = (await world.get(POD, "p"))["status"]["conditions"]
        assert condition["status"] == "False"
        assert condition.get("reason") is None

    run_story(story)
