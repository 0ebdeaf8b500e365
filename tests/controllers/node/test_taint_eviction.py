"""Stories of pods on nodes with NoExecute taints."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.client.errors import ServerError
from mooring.client.interface import Client, Deletion
from tests.controllers.cluster_builders import node_document, pod_document, taint_document
from tests.controllers.world import NAMESPACE, Story, Through, World, play

CONTROLLERS = ["taint-eviction-controller"]


def told(story: Story, through: Through | None = None) -> None:
    play(story, controllers=CONTROLLERS, through=through)


def tolerates(key: str, seconds: int | None = None) -> Document:
    toleration: Document = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else toleration | {"tolerationSeconds": seconds}


async def set_taints(world: World, *taints: str) -> None:
    await world.patch(NODE, "n1", {"spec": {"taints": [taint_document(text) for text in taints] or None}})


async def names(world: World) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await world.pods())


def test_pods_leave_at_once_later_or_never() -> None:
    async def story(world: World) -> None:
        await world.create(
            node_document("n1"),
            pod_document("bare", "n1"),
            pod_document("later", "n1", tolerations=[tolerates("maint", 5)]),
            pod_document("never", "n1", tolerations=[tolerates("maint")]),
            pod_document("elsewhere", "n2"),
        )
        await set_taints(world, "maint:NoExecute")
        await world.settle(4)
        assert await names(world) == ["elsewhere", "later", "never"]
        await world.settle(2)
        assert await names(world) == ["elsewhere", "never"]
        assert sorted(await world.events("TaintManagerEviction")) == [
            ("bare", "TaintManagerEviction", f"Marking for deletion Pod {NAMESPACE}/bare"),
            ("later", "TaintManagerEviction", f"Marking for deletion Pod {NAMESPACE}/later"),
        ]

    told(story)


def test_a_taint_that_goes_in_time_cancels_the_eviction() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), pod_document("p", "n1", tolerations=[tolerates("maint", 5)]))
        await set_taints(world, "maint:NoExecute")
        await world.settle(3)
        await set_taints(world)
        await world.settle(10)
        assert await names(world) == ["p"]
        message = f"Cancelling deletion of Pod {NAMESPACE}/p"
        assert await world.events() == [("p", "TaintManagerEviction", message)]

    told(story)


def test_another_taint_does_not_start_the_time_anew() -> None:
    async def story(world: World) -> None:
        patience = [tolerates("a", 6), tolerates("b", 6)]
        await world.create(node_document("n1"), pod_document("p", "n1", tolerations=patience))
        await set_taints(world, "a:NoExecute")
        await world.settle(4)
        await set_taints(world, "a:NoExecute", "b:NoExecute")
        await world.settle(3)
        assert await names(world) == []

    told(story)


def test_a_pod_that_comes_to_a_tainted_node_leaves_too() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["maint:NoExecute"]))
        await world.settle()
        await world.create(pod_document("late", "n1"))
        await world.settle()
        assert await names(world) == []

    told(story)


def test_an_evicted_pod_says_why_it_goes() -> None:
    async def story(world: World) -> None:
        pod = pod_document("p", "n1")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(node_document("n1"), pod)
        await set_taints(world, "maint:NoExecute")
        await world.settle()
        assert (await world.conditions("p", POD))["DisruptionTarget"] == ("True", "DeletionByTaintManager")
        assert (await world.get(POD, "p"))["metadata"]["deletionTimestamp"]

    told(story)


class _Weary:
    """A client whose first deletions fail."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self.failures = 3

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        if self.failures:
            self.failures -= 1
            raise ServerError("not now")
        await self._inner.delete(kind, namespace, name, deletion)


def test_an_eviction_that_fails_is_tried_again_and_told_once() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["maint:NoExecute"]), pod_document("p", "n1"))
        await world.settle(2)
        assert await names(world) == []
        assert len(await world.events()) == 1

    told(story, through=lambda client, clock: _Weary(client))  # type: ignore[arg-type, return-value]
