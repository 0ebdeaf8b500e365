"""Stories of pods on nodes with NoExecute taints."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.views.pod import Toleration
from mooring.client.errors import ServerError
from mooring.client.interface import Client, Deletion
from mooring.controllers.node.taint_eviction import (
    Cancel,
    Decision,
    Evict,
    KeepSchedule,
    decide,
    no_execute_taints,
    toleration_s_min,
)
from tests.api.builders import node, taint
from tests.controllers.cluster_builders import node_document, pod_document, taint_document
from tests.controllers.world import NAMESPACE, Story, Through, World, play

NOW_S = 100.0
CONTROLLERS = ["taint-eviction-controller"]


def toleration(key: str, seconds: int | None = None, *, operator: str = "Exists", value: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect="NoExecute", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "toleration_s"),
    [
        pytest.param("a", [], -1.0, id="without tolerations: not a moment"),
        pytest.param("a", [toleration("b")], -1.0, id="another key"),
        pytest.param("a", [toleration("a")], None, id="for ever"),
        pytest.param("a", [toleration("a", 5)], 5.0, id="for a while"),
        pytest.param("a", [toleration("a", 0)], 0.0, id="for no time"),
        pytest.param("a", [toleration("a", -3)], 0.0, id="for less than no time"),
        pytest.param("a b", [toleration("a", 5), toleration("b", 3)], 3.0, id="the shortest counts"),
        pytest.param("a b", [toleration("a", 5), toleration("b")], 5.0, id="for ever is longer than any time"),
        pytest.param("a b", [toleration("a")], -1.0, id="one that is not tolerated is enough"),
        pytest.param("a", [toleration("a", 5), toleration("a", 1)], 5.0, id="only the first that fits is used"),
        pytest.param(
            "a", [toleration("c", 1), toleration("a", 5)], 5.0, id="tolerations that are not used do not count"
        ),
        pytest.param("a", [Toleration(operator="Exists")], None, id="one for everything"),
        pytest.param("a=x", [toleration("a", operator="Equal", value="y")], -1.0, id="another value"),
    ],
)
def test_how_long_a_pod_may_stay(taints: str, tolerations: list[Toleration], toleration_s: float | None) -> None:
    assert toleration_s_min([taint(f"{text}:NoExecute") for text in taints.split()], tolerations) == toleration_s


@pytest.mark.parametrize(
    ("toleration", "scheduled_since_s", "decision"),
    [
        pytest.param(toleration("b"), None, Evict(NOW_S, NOW_S), id="not tolerated: at once"),
        pytest.param(toleration("b"), 90.0, Evict(NOW_S, NOW_S), id="not tolerated: at once, whatever was scheduled"),
        pytest.param(toleration("a"), 90.0, Cancel(), id="tolerated for ever: it may stay"),
        pytest.param(toleration("a", 7), None, Evict(NOW_S, 107.0), id="tolerated for a while: then"),
        pytest.param(toleration("a", 7), 99.0, KeepSchedule(), id="its time has begun already"),
        pytest.param(toleration("a", 7), NOW_S, Evict(NOW_S, 107.0), id="scheduled in this very moment: anew"),
    ],
)
def test_what_is_decided(toleration: Toleration, scheduled_since_s: float | None, decision: Decision) -> None:
    assert decide([taint("a:NoExecute")], [toleration], scheduled_since_s, NOW_S) == decision


def test_only_no_execute_taints_count() -> None:
    tainted = node(taints=["a:NoSchedule", "b:NoExecute", "c:PreferNoSchedule"])
    assert [taint.key for taint in no_execute_taints(tainted)] == ["b"]


def run_story(story: Story, through: Through | None = None) -> None:
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

    run_story(story)


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

    run_story(story)


def test_another_taint_does_not_start_the_time_anew() -> None:
    async def story(world: World) -> None:
        patience = [tolerates("a", 6), tolerates("b", 6)]
        await world.create(node_document("n1"), pod_document("p", "n1", tolerations=patience))
        await set_taints(world, "a:NoExecute")
        await world.settle(4)
        await set_taints(world, "a:NoExecute", "b:NoExecute")
        await world.settle(3)
        assert await names(world) == []

    run_story(story)


def test_a_pod_that_comes_to_a_tainted_node_leaves_too() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["maint:NoExecute"]))
        await world.settle()
        await world.create(pod_document("late", "n1"))
        await world.settle()
        assert await names(world) == []

    run_story(story)


def test_an_evicted_pod_says_why_it_goes() -> None:
    async def story(world: World) -> None:
        pod = pod_document("p", "n1")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(node_document("n1"), pod)
        await set_taints(world, "maint:NoExecute")
        await world.settle()
        assert (await world.conditions("p", POD))["DisruptionTarget"] == ("True", "DeletionByTaintManager")
        assert (await world.get(POD, "p"))["metadata"]["deletionTimestamp"]

    run_story(story)


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


def test_a_failed_eviction_is_retried_and_recorded_once() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["maint:NoExecute"]), pod_document("p", "n1"))
        await world.settle(2)
        assert await names(world) == []
        assert len(await world.events()) == 1

    run_story(story, through=lambda client, clock: _Weary(client))  # type: ignore[arg-type, return-value]
