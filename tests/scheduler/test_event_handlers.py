"""Event handlers: the columns, the object stores, and the events for the queue; lists of pods in pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from mooring.api.kinds import NODE, POD, Kind, kind_of_view
from mooring.api.views.devices import ResourceSlice
from mooring.api.views.meta import ApiObject, Condition, ObjectMeta
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Namespace, PodDisruptionBudget, Service
from mooring.apiserver.storage.stored_form import decoded
from mooring.client.interface import Change, UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_handlers import WATCHED, EventTiming, NodeEventHandler, ObjectEventHandler, PodEventHandler
from mooring.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.scheduler import Scheduler
from tests.api_servers import store_object
from tests.builders import budget, namespace, node, pod, service
from tests.device_builders import device, slice_of
from tests.scheduler.harness import engine_of
from tests.scheduler.world import World, plain, play, played

RecordedEvent = tuple[str, str | None, str | None]


class RecordingQueue(SchedulingQueue):
    """A real queue that records the events."""

    events: list[RecordedEvent]
    nodes: list[tuple[str, ...]]
    """The nodes in the columns at the time of each event."""
    engine: Engine

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: Any = None, new: Any = None, pre_check: Callable[[PodInfo], bool] | None = None
    ) -> int:
        self.events.append((event.label, _name(old), _name(new)))
        self.nodes.append(tuple(sorted(self.engine.columns.row_of)))
        return super().move_all_to_active_or_backoff(event, old, new, pre_check)


def recording_queue(engine: Engine) -> RecordingQueue:
    queue = RecordingQueue({name: cycle.profile for name, cycle in engine.cycles.items()}, clock=VirtualClock())
    queue.events, queue.nodes, queue.engine = [], [], engine
    return queue


def _name(view: Any) -> str | None:
    return None if view is None else view.metadata.name


def at(view: Namespace, revision: str) -> Namespace:
    return replace(view, metadata=replace(view.metadata, resource_version=revision))


def test_each_change_has_one_event() -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    handler = ObjectEventHandler(Namespace, EventResource.NAMESPACE, engine, queue)
    store = engine.columns.objects.of(Namespace)
    handler.apply(Change.ADDED, at(namespace("a"), "1"))
    handler.apply(Change.MODIFIED, at(namespace("a"), "1"))  # known already: a watch may start with listed objects
    handler.apply(Change.MODIFIED, at(namespace("a", stage="test"), "2"))
    newest = store.get("a")
    assert newest is not None
    assert newest.metadata.labels == {"stage": "test"}
    handler.apply(Change.DELETED, at(namespace("a"), "3"))
    handler.apply(Change.DELETED, at(namespace("a"), "3"))
    expected: list[RecordedEvent] = [
        ("NamespaceAdd", None, "a"),
        ("NamespaceUpdate", "a", "a"),
        ("NamespaceDelete", "a", None),
    ]
    assert queue.events == expected
    assert list(store) == []


def test_without_resource_versions_every_change_has_an_event() -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    handler = ObjectEventHandler(Namespace, EventResource.NAMESPACE, engine, queue)
    handler.apply(Change.ADDED, namespace("a"))
    handler.apply(Change.MODIFIED, namespace("a"))
    assert [event for event, _, _ in queue.events] == ["NamespaceAdd", "NamespaceUpdate"]


def test_a_list_replaces_the_store() -> None:
    engine = engine_of(*(at(namespace(name), "1") for name in ("gone", "same", "changed")))
    queue = recording_queue(engine)
    handler = ObjectEventHandler(Namespace, EventResource.NAMESPACE, engine, queue)
    handler.replace([at(namespace("same"), "1"), at(namespace("changed"), "5"), at(namespace("new"), "6")], "6")
    expected: list[RecordedEvent] = [
        ("NamespaceDelete", "gone", None),
        ("NamespaceUpdate", "changed", "changed"),
        ("NamespaceAdd", None, "new"),
    ]
    assert queue.events == expected
    assert sorted(view.key for view in engine.columns.objects.of(Namespace)) == ["changed", "new", "same"]


def test_namespaces_separate_objects_of_one_name() -> None:
    engine = engine_of(service("web", "blue"), service("web", "green"))
    handler = ObjectEventHandler(Service, EventResource.SERVICE, engine, recording_queue(engine))
    handler.apply(Change.DELETED, service("web", "blue"))
    assert [view.key for view in engine.columns.objects.of(Service)] == ["green/web"]
    handler.replace([service("web", "red")], "2")
    assert [view.key for view in engine.columns.objects.of(Service)] == ["red/web"]


def test_a_kind_without_event_resource_is_stored_without_events() -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    handler = ObjectEventHandler(PodDisruptionBudget, WATCHED[PodDisruptionBudget], engine, queue)
    handler.apply(Change.ADDED, budget("b", None, allowed=1))
    assert [view.key for view in engine.columns.objects.of(PodDisruptionBudget)] == ["default/b"]
    handler.apply(Change.DELETED, budget("b", None, allowed=1))
    assert list(engine.columns.objects.of(PodDisruptionBudget)) == []
    assert queue.events == []


class Widget(ApiObject):
    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


def test_a_registered_kind_is_its_own_event_resource() -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    handler = ObjectEventHandler(Widget, WIDGET, engine, queue)
    handler.apply(Change.ADDED, Widget(metadata=ObjectMeta(name="w", namespace="default")))
    assert queue.events == [("widgets.v1.example.comAdd", None, "w")]


def test_an_object_that_cannot_be_parsed_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    handler = ObjectEventHandler(ResourceSlice, EventResource.RESOURCE_SLICE, engine, queue)
    with caplog.at_level(logging.ERROR):
        handler.replace([slice_of(device("d", memory="banana"), node="n1"), slice_of(device("e"), node="n2")], "1")
    assert "is skipped because it cannot be parsed" in caplog.text
    assert [event for event, _, _ in queue.events] == ["resource.k8s.io/ResourceSliceAdd"]


@pytest.mark.parametrize("view", [pytest.param(view, id=view.kind) for view, resource in WATCHED.items() if resource])
def test_an_event_resource_is_named_like_its_kind(view: type[ApiObject]) -> None:
    kind, resource = kind_of_view(view), WATCHED[view]
    assert resource is not None
    called = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    assert ClusterEvent(resource, ActionType.ADD).label == f"{called}Add"


def test_every_event_resource_but_nodes_and_pods_is_watched() -> None:
    elsewhere = {
        EventResource.NODE,
        EventResource.ASSIGNED_POD,
        EventResource.UNSCHEDULABLE_POD,
        EventResource.WILDCARD,
    }
    assert {resource for resource in WATCHED.values() if resource is not None} == set(EventResource) - elsewhere


N1 = node("n1", cpu=4)


def ready(view: Node, status: str, said: str) -> Node:
    conditions = (Condition(type="Ready", status=status, message=said),)
    return replace(view, status=replace(view.status, conditions=conditions))


UP = ready(N1, "True", "all is well")


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        pytest.param(UP, ready(N1, "True", "all is still well"), [], id="a heartbeat has no event"),
        pytest.param(N1, node("n1", cpu="4000m"), [], id="an equal quantity has no event"),
        pytest.param(UP, ready(N1, "False", "all is well"), ["NodeUpdateNodeCondition"], id="not ready"),
        pytest.param(N1, node("n1", cpu=8), ["NodeUpdateNodeAllocatable"], id="more cpu"),
        pytest.param(N1, node("n1", labels={"disk": "ssd"}), ["NodeUpdateNodeLabel"], id="a new label"),
        pytest.param(node("n1", taints=["a:NoSchedule"]), N1, ["NodeUpdateNodeTaint"], id="a taint was removed"),
        pytest.param(
            N1,
            node("n1", cpu=8, labels={"disk": "ssd"}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
            id="several changes are several events",
        ),
    ],
)
def test_events_of_a_node_update(before: Node, after: Node, events: list[str]) -> None:
    engine = engine_of(before)
    queue = recording_queue(engine)
    NodeEventHandler(engine, queue).apply(Change.MODIFIED, after)
    assert queue.events == [(event, "n1", "n1") for event in events]
    assert engine.columns.nodes[engine.columns.row_of["n1"]] is after, "the columns have the newest, heartbeats too"


def test_a_new_node_is_in_the_columns_before_its_event() -> None:
    engine = engine_of()
    queue = recording_queue(engine)
    NodeEventHandler(engine, queue).apply(Change.ADDED, N1)
    assert queue.events == [("NodeAdd", None, "n1")]
    assert queue.nodes == [("n1",)]


def test_the_event_of_a_deleted_node_has_the_last_known_node() -> None:
    engine = engine_of(N1, pod("web", uid="web", on="n1"))
    queue = recording_queue(engine)
    handler = NodeEventHandler(engine, queue)
    handler.apply(Change.DELETED, node("n1", labels={"new": "label"}))
    assert queue.events == [("NodeDelete", "n1", None)]
    assert (dict(engine.columns.row_of), list(engine.columns.pods)) == ({}, ["web"])
    handler.apply(Change.DELETED, N1)
    assert len(queue.events) == 1, "an unknown node has no event"


def test_a_list_of_nodes_replaces_the_columns() -> None:
    engine = engine_of(node("gone"), node("same"), node("grown", cpu=1))
    queue = recording_queue(engine)
    NodeEventHandler(engine, queue).replace([node("same"), node("grown", cpu=2), node("new")], "7")
    expected: list[RecordedEvent] = [
        ("NodeDelete", "gone", None),
        ("NodeUpdateNodeAllocatable", "grown", "grown"),
        ("NodeAdd", None, "new"),
    ]
    assert queue.events == expected
    assert sorted(engine.columns.row_of) == ["grown", "new", "same"]


@pytest.mark.parametrize(
    ("known", "cpu_milli"),
    [
        pytest.param((), None, id="a new node is skipped"),
        pytest.param((N1,), 4000, id="a known node is unchanged"),
    ],
)
def test_a_node_that_cannot_be_parsed_is_skipped(
    known: tuple[Node, ...], cpu_milli: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(*known)
    queue = recording_queue(engine)
    with caplog.at_level(logging.ERROR):
        NodeEventHandler(engine, queue).apply(Change.MODIFIED, node("n1", cpu="banana", labels={"disk": "ssd"}))
    assert queue.events == []
    assert "Node n1 is skipped because it cannot be parsed" in caplog.text
    row = engine.columns.row_of.get("n1")
    assert (None if row is None else int(engine.columns.resources.allocatable[0, row])) == cpu_milli
    assert row is None or engine.columns.nodes[row] is N1


Patch = dict[str, object]

BAD_REQUEST: Patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "banana"}}}]}}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(NODE, {**plain(node("bad")), "status": {"allocatable": {"cpu": "banana"}}}, id="a node's cpu"),
        pytest.param(POD, {**plain(pod("bad")), **BAD_REQUEST}, id="a pending pod's request"),
        pytest.param(
            POD,
            {**plain(pod("bad")), "spec": {"nodeName": "n1", **BAD_REQUEST["spec"]}},  # type: ignore[dict-item]
            id="a placed pod's request",
        ),
        pytest.param(
            POD,
            {**plain(pod("bad", on="n1")), "status": {"startTime": "yesterday"}},
            id="the time when a pod was started",
        ),
    ],
)
def test_scheduling_continues_without_an_object_that_cannot_be_parsed(
    kind: Kind, body: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("first", cpu=1))
        with caplog.at_level(logging.ERROR):
            await store_object(world.store, kind, "default" if kind.is_namespaced else "", body)
            await world.settle()
        assert "bad is skipped because it cannot be parsed" in caplog.text
        await world.create(pod("second", cpu=1))
        await world.settle()
        assert [await world.node_of(name) for name in ("first", "second")] == ["n1", "n1"]
        await world.delete("bad", kind=kind)
        await world.settle()
        assert sorted(record.name for record in world.scheduler.engine.columns.pods.values()) == ["first", "second"]

    play(story)


@played()
async def test_a_node_that_cannot_be_parsed_any_more_is_unchanged(world: World) -> None:
    async def store(**status: object) -> None:
        stored = decoded(await world.client.get(NODE, "", "n1"))
        await store_object(world.store, NODE, "", {**stored, "status": status})

    await world.create(node("n1", cpu=1, labels={"disk": "ssd"}))
    await world.settle()
    await store(allocatable={"cpu": "banana"})
    await world.create(pod("web", cpu=1, node_labels={"disk": "ssd"}))
    await world.settle()
    assert await world.node_of("web") == "n1"
    await store(allocatable={"cpu": "2", "pods": "9"})
    await world.create(pod("web-2", cpu=1))
    await world.settle(5)
    assert await world.node_of("web-2") == "n1"


@played(schedulers=0)
async def test_the_first_list_may_contain_objects_that_cannot_be_parsed(world: World) -> None:
    bad_node = {**plain(node("a-bad")), "status": {"allocatable": {"cpu": "banana"}}}
    await store_object(world.store, NODE, "", bad_node)
    await store_object(world.store, POD, "default", {**plain(pod("a-bad")), **BAD_REQUEST})
    await world.create(node("n1", cpu=1), pod("web", cpu=1))
    world.start_scheduler()
    await world.settle()
    assert await world.node_of("web") == "n1"


def test_how_long_events_take_is_measured_by_event() -> None:
    engine = engine_of(N1)
    times = iter(range(100))
    handled: list[tuple[str, float]] = []
    timing = EventTiming(lambda: float(next(times)), lambda event, took_s: handled.append((event.label, took_s)))
    nodes = NodeEventHandler(engine, recording_queue(engine), timing)
    nodes.apply(Change.ADDED, node("n2"))
    nodes.apply(Change.MODIFIED, node("n2", labels={"disk": "ssd"}, cpu=9))
    nodes.apply(Change.MODIFIED, node("n2", labels={"disk": "ssd"}, cpu=9))  # nothing that pods wait for
    nodes.apply(Change.DELETED, node("n2"))
    namespaces = ObjectEventHandler(Namespace, EventResource.NAMESPACE, engine, recording_queue(engine), timing)
    namespaces.apply(Change.ADDED, namespace("shop"))
    assert handled == [
        ("NodeAdd", 1.0),
        ("NodeUpdateNodeAllocatable", 1.0),
        ("NodeUpdateNodeLabel", 2.0),
        ("NodeDelete", 1.0),
        ("NamespaceAdd", 1.0),
    ]


FIRST = [pod("a", uid="a", on="n1"), pod("b", uid="b", on="n2"), pod("c", uid="c"), pod("d", uid="d")]
SECOND = [pod("b", uid="b", on="n2"), pod("c", uid="c", on="n1"), pod("e", uid="e")]


def replace_all(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.replace(views, "1")


def replace_in_pages(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.begin_list()
    for view in views:
        handler.take_page([view])
    handler.end_list("1")


def replace_after_a_failure(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.begin_list()
    handler.take_page(FIRST[:2])
    replace_in_pages(handler, views)


@pytest.mark.parametrize("tell", [replace_all, replace_in_pages, replace_after_a_failure])
def test_pods_that_are_in_no_page_are_removed(tell: object) -> None:
    async def listed() -> None:
        scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
        for name in ("n1", "n2"):
            scheduler.engine.put(node(name))
        handler = scheduler.pods
        assert callable(tell)
        tell(handler, FIRST)
        assert _picture(handler, scheduler) == (["a on n1", "b on n2"], ["c", "d"], 2)
        tell(handler, SECOND)
        assert _picture(handler, scheduler) == (["b on n2", "c on n1"], ["e"], 1)

    run(listed())


@pytest.mark.parametrize(
    ("updated", "cpu_milli"),
    [
        pytest.param(pod("a", uid="a", on="n1", cpu=1, labels={"zone": "z"}), 1_000, id="other labels"),
        pytest.param(pod("a", uid="a", on="n1", cpu=1, terminating=True), 1_000, id="terminating"),
        pytest.param(pod("a", uid="a", on="n1", cpu=2, labels={"zone": "z"}), 2_000, id="other requests"),
        pytest.param(pod("a", uid="a", on="n2", cpu=1, labels={"zone": "z"}), 1_000, id="another node"),
    ],
)
def test_the_columns_count_the_latest_update_of_an_assigned_pod(updated: Pod, cpu_milli: int) -> None:
    async def story() -> None:
        scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
        columns = scheduler.engine.columns
        for name in ("n1", "n2"):
            scheduler.engine.put(node(name))
        scheduler.pods.put(pod("a", uid="a", on="n1", cpu=1))
        scheduler.pods.put(updated)
        record = columns.pods["a"]
        assert (record.node_name, record.signature.labels) == (updated.spec.node_name, updated.metadata.labels)
        assert record.terminating == (updated.metadata.deletion_timestamp is not None)
        assert columns.resources.used[CPU].sum() == cpu_milli == columns.resources.used[CPU, record.row]
        assert [list(pods.values()) for pods in columns.pods_on if pods] == [[record]]

    run(story())


def _picture(handler: PodEventHandler, scheduler: Scheduler) -> tuple[list[str], list[str], int]:
    placed = sorted(f"{record.name} on {record.node_name}" for record in scheduler.engine.columns.pods.values())
    return placed, sorted(view.name for view in handler.pending.values()), len(scheduler.queue)
