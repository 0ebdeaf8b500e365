"""Everything that is neither a node nor a pod: what the store has of it, and what the queue hears of it."""

from __future__ import annotations

import logging
from typing import ClassVar

import pytest
from msgspec.structs import replace

from mooring.api.kinds import Kind, kind_of_view
from mooring.api.views.devices import ResourceSlice
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.workloads import Namespace, PodDisruptionBudget, Service
from mooring.client.interface import Change
from mooring.scheduler.framework.events import Action, ClusterEvent, Subject
from mooring.scheduler.intake.objects import WATCHED, ObjectIntake
from tests.builders import budget, namespace, service
from tests.device_builders import device, slice_of
from tests.scheduler.harness import engine_of
from tests.scheduler.intake.listening import Heard, listening


def at(view: Namespace, revision: str) -> Namespace:
    return replace(view, metadata=replace(view.metadata, resource_version=revision))


def test_a_life_is_told_and_each_news_once() -> None:
    engine = engine_of()
    queue = listening(engine)
    intake = ObjectIntake(Namespace, Subject.NAMESPACE, engine, queue)
    store = engine.columns.objects.of(Namespace)
    intake.apply(Change.ADDED, at(namespace("a"), "1"))
    intake.apply(Change.MODIFIED, at(namespace("a"), "1"))  # heard before: a watch may begin with what was listed
    intake.apply(Change.MODIFIED, at(namespace("a", stage="test"), "2"))
    newest = store.get("a")
    assert newest is not None
    assert newest.metadata.labels == {"stage": "test"}
    intake.apply(Change.DELETED, at(namespace("a"), "3"))
    intake.apply(Change.DELETED, at(namespace("a"), "3"))
    expected: list[Heard] = [("NamespaceAdd", None, "a"), ("NamespaceUpdate", "a", "a"), ("NamespaceDelete", "a", None)]
    assert queue.heard == expected
    assert list(store) == []


def test_without_revisions_every_change_is_news() -> None:
    engine = engine_of()
    queue = listening(engine)
    intake = ObjectIntake(Namespace, Subject.NAMESPACE, engine, queue)
    intake.apply(Change.ADDED, namespace("a"))
    intake.apply(Change.MODIFIED, namespace("a"))
    assert [event for event, _, _ in queue.heard] == ["NamespaceAdd", "NamespaceUpdate"]


def test_a_list_is_what_there_is() -> None:
    engine = engine_of(*(at(namespace(name), "1") for name in ("gone", "same", "changed")))
    queue = listening(engine)
    intake = ObjectIntake(Namespace, Subject.NAMESPACE, engine, queue)
    intake.replace([at(namespace("same"), "1"), at(namespace("changed"), "5"), at(namespace("new"), "6")], "6")
    expected: list[Heard] = [
        ("NamespaceDelete", "gone", None),
        ("NamespaceUpdate", "changed", "changed"),
        ("NamespaceAdd", None, "new"),
    ]
    assert queue.heard == expected
    assert sorted(view.key for view in engine.columns.objects.of(Namespace)) == ["changed", "new", "same"]


def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    engine = engine_of(service("web", "blue"), service("web", "green"))
    intake = ObjectIntake(Service, Subject.SERVICE, engine, listening(engine))
    intake.apply(Change.DELETED, service("web", "blue"))
    assert [view.key for view in engine.columns.objects.of(Service)] == ["green/web"]
    intake.replace([service("web", "red")], "2")
    assert [view.key for view in engine.columns.objects.of(Service)] == ["red/web"]


def test_a_kind_without_a_subject_is_read_and_wakes_nobody() -> None:
    engine = engine_of()
    queue = listening(engine)
    intake = ObjectIntake(PodDisruptionBudget, WATCHED[PodDisruptionBudget], engine, queue)
    intake.apply(Change.ADDED, budget("b", None, allowed=1))
    assert [view.key for view in engine.columns.objects.of(PodDisruptionBudget)] == ["default/b"]
    intake.apply(Change.DELETED, budget("b", None, allowed=1))
    assert list(engine.columns.objects.of(PodDisruptionBudget)) == []
    assert queue.heard == []


class Widget(ApiObject):
    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


def test_a_kind_that_a_users_plugin_named_is_its_own_subject() -> None:
    engine = engine_of()
    queue = listening(engine)
    intake = ObjectIntake(Widget, WIDGET, engine, queue)
    intake.apply(Change.ADDED, Widget(metadata=ObjectMeta(name="w", namespace="default")))
    assert queue.heard == [("widgets.v1.example.comAdd", None, "w")]


def test_an_object_that_cannot_be_read_is_left_out_and_the_next_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_of()
    queue = listening(engine)
    intake = ObjectIntake(ResourceSlice, Subject.RESOURCE_SLICE, engine, queue)
    with caplog.at_level(logging.ERROR):
        intake.replace([slice_of(device("d", memory="banana"), node="n1"), slice_of(device("e"), node="n2")], "1")
    assert "is left out because it cannot be read" in caplog.text
    assert [event for event, _, _ in queue.heard] == ["resource.k8s.io/ResourceSliceAdd"]


@pytest.mark.parametrize("view", [pytest.param(view, id=view.kind) for view, subject in WATCHED.items() if subject])
def test_a_subject_is_called_as_its_kind(view: type[ApiObject]) -> None:
    kind, subject = kind_of_view(view), WATCHED[view]
    assert subject is not None
    called = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    assert ClusterEvent(subject, Action.ADD).label == f"{called}Add"


def test_every_subject_but_those_of_nodes_and_pods_is_watched() -> None:
    elsewhere = {Subject.NODE, Subject.ASSIGNED_POD, Subject.PENDING_POD, Subject.ANY}
    assert {subject for subject in WATCHED.values() if subject is not None} == set(Subject) - elsewhere
