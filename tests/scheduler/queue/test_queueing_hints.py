"""Queueing hints: what plugins register, which hints are called, and the resulting strategy."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import pytest

from mooring.api.kinds import NODE, REPLICA_SET, Kind
from mooring.api.views.meta import ApiObject
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    ANY_EVENT,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from mooring.scheduler.framework.plugin import Plugin, PreEnqueue
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.queue.queueing_hints import (
    QueueingHintMap,
    QueueingStrategy,
    plugin_events,
    registered_events,
    registered_kinds,
)
from tests.builders import pod
from tests.scheduler.harness import engine_of
from tests.scheduler.queue.builders import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    RecordingHint,
    profile,
    record,
    rejecting_plugin,
)

QUEUE = "queue"
SKIP = "skip"
BROKEN = "broken"
UNCALLED = "uncalled"

ON_NODE_ADD = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)


def hint_map(*plugins: Plugin, with_extenders: bool = False) -> QueueingHintMap:
    return QueueingHintMap({"default-scheduler": profile(*plugins)}, with_extenders=with_extenders)


def strategy(
    hints_of: QueueingHintMap, event: ClusterEvent, *, rejectors: Iterable[str] = (), pending: Iterable[str] = ()
) -> QueueingStrategy:
    hints = hints_of.hints("default-scheduler", frozenset(rejectors), frozenset(pending), event)
    return QueueingStrategy.SKIP if hints is None else hints.strategy(record(pod("p")), None, None)


ANSWERS: dict[str, bool | Exception] = {QUEUE: True, SKIP: False, BROKEN: RuntimeError("no such zone"), UNCALLED: True}


@pytest.mark.parametrize(
    ("rejectors", "pending", "hints", "expected"),
    [
        pytest.param(
            "A", "", {"A": QUEUE}, QueueingStrategy.AFTER_BACKOFF, id="QUEUE of a rejecting plugin: after the backoff"
        ),
        pytest.param("A", "", {"A": SKIP}, QueueingStrategy.SKIP, id="SKIP: stays unschedulable"),
        pytest.param("A", "", {"A": BROKEN}, QueueingStrategy.AFTER_BACKOFF, id="a hint that raises counts as QUEUE"),
        pytest.param("", "A", {"A": QUEUE}, QueueingStrategy.IMMEDIATELY, id="QUEUE of a pending plugin: immediately"),
        pytest.param("", "A", {"A": SKIP}, QueueingStrategy.SKIP, id="SKIP of a pending plugin"),
        pytest.param("AB", "", {"A": SKIP, "B": QUEUE}, QueueingStrategy.AFTER_BACKOFF, id="one QUEUE is enough"),
        pytest.param(
            "AB", "", {"A": QUEUE, "B": UNCALLED}, QueueingStrategy.AFTER_BACKOFF, id="no other hint could improve it"
        ),
        pytest.param(
            "AC",
            "B",
            {"A": QUEUE, "B": QUEUE, "C": UNCALLED},
            QueueingStrategy.IMMEDIATELY,
            id="the best strategy counts",
        ),
        pytest.param(
            "A",
            "B",
            {"A": QUEUE, "B": SKIP},
            QueueingStrategy.AFTER_BACKOFF,
            id="SKIP of a pending plugin, QUEUE of another",
        ),
        pytest.param(
            "A", "", {"A": SKIP, "B": UNCALLED}, QueueingStrategy.SKIP, id="the hint of another plugin is not called"
        ),
    ],
)
@pytest.mark.parametrize("per_signature", [True, False], ids=["per signature", "per pod"])
def test_the_best_strategy_of_the_rejecting_plugins_counts(
    rejectors: str, pending: str, hints: dict[str, str], expected: QueueingStrategy, per_signature: bool
) -> None:
    logs = {plugin: RecordingHint(ANSWERS[answer]) for plugin, answer in hints.items()}
    plugins = [
        rejecting_plugin(name, ClusterEventWithHint(EventResource.NODE, ActionType.ADD, hint, per_signature))
        for name, hint in logs.items()
    ]
    assert strategy(hint_map(*plugins), NODE_ADD, rejectors=rejectors, pending=pending) is expected
    assert {name for name, log in logs.items() if log.called_for} == {
        n for n, answer in hints.items() if answer != UNCALLED
    }


@pytest.mark.parametrize(
    ("registered", "event", "expected"),
    [
        pytest.param(ON_NODE_ADD, NODE_ADD, QueueingStrategy.AFTER_BACKOFF, id="no hint"),
        pytest.param(ON_NODE_ADD, NODE_LABEL, QueueingStrategy.SKIP, id="another action"),
        pytest.param(ON_NODE_ADD, CLAIM_ADD, QueueingStrategy.SKIP, id="another resource"),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE),
            NODE_LABEL,
            QueueingStrategy.AFTER_BACKOFF,
            id="UPDATE includes the specific updates",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.WILDCARD, ActionType.ADD),
            CLAIM_ADD,
            QueueingStrategy.AFTER_BACKOFF,
            id="any resource",
        ),
        pytest.param(ANY_EVENT, NODE_LABEL, QueueingStrategy.AFTER_BACKOFF, id="any event"),
    ],
)
def test_only_matching_registrations_count(
    registered: ClusterEventWithHint, event: ClusterEvent, expected: QueueingStrategy
) -> None:
    assert strategy(hint_map(rejecting_plugin("A", registered)), event, rejectors="A") is expected


@pytest.mark.parametrize(("pending", "rejectors"), [("A", "B"), ("B", "A")], ids=["pending first", "pending last"])
def test_the_best_strategy_counts_without_hints_too(pending: str, rejectors: str) -> None:
    both = hint_map(rejecting_plugin("A", ON_NODE_ADD), rejecting_plugin("B", ON_NODE_ADD))
    assert strategy(both, NODE_ADD, rejectors=rejectors, pending=pending) is QueueingStrategy.IMMEDIATELY


@pytest.mark.parametrize("event", [UNSCHEDULABLE_TIMEOUT, FORCE_ACTIVATE], ids=lambda event: event.label)
def test_a_wildcard_event_queues_after_the_backoff_without_calling_hints(event: ClusterEvent) -> None:
    log = RecordingHint()
    everything = hint_map(rejecting_plugin("A", ClusterEventWithHint(EventResource.WILDCARD, ActionType.ALL, log)))
    assert strategy(everything, event, pending="A") is QueueingStrategy.AFTER_BACKOFF
    assert everything.is_event_of_interest(event)
    assert log.called_for == []


def test_a_hint_that_raises_is_logged_with_its_plugin(caplog: pytest.LogCaptureFixture) -> None:
    broken = rejecting_plugin(
        "Zones", ClusterEventWithHint(EventResource.NODE, ActionType.ADD, RecordingHint(RuntimeError("no such zone")))
    )
    with caplog.at_level(logging.ERROR):
        strategy(hint_map(broken), NODE_ADD, rejectors=["Zones"])
    assert "queueing hint of plugin Zones failed for pod default/p; the pod is queued" in caplog.text
    assert "no such zone" in caplog.text


def test_a_plugin_that_is_not_in_the_profile_is_registered_for_every_event() -> None:
    assert (
        strategy(hint_map(rejecting_plugin("A", ON_NODE_ADD)), CLAIM_ADD, rejectors=["Stranger"])
        is QueueingStrategy.AFTER_BACKOFF
    )


def test_an_event_is_of_interest_if_any_plugin_registered_it() -> None:
    some = hint_map(rejecting_plugin("A", ON_NODE_ADD), PrioritySort())
    assert [some.is_event_of_interest(event) for event in (NODE_ADD, NODE_LABEL, CLAIM_ADD)] == [True, False, False]


def test_with_extenders_every_event_is_of_interest() -> None:
    extended = hint_map(rejecting_plugin("A", ON_NODE_ADD), with_extenders=True)
    assert extended.is_event_of_interest(CLAIM_ADD)
    assert strategy(extended, CLAIM_ADD, rejectors=["Extender"]) is QueueingStrategy.AFTER_BACKOFF


TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


def default_profile() -> Profile:
    return engine_of().cycles["default-scheduler"].profile


def test_only_plugins_that_can_reject_a_pod_register_events() -> None:
    names = registered_events(default_profile()).keys()
    assert {"SchedulingGates", "NodeResourcesFit", "VolumeBinding", "NodeDeclaredFeatures"} <= names
    assert not {"ImageLocality", "PrioritySort", "DefaultBinder"} & names


class Declared(Plugin):
    name = "Declared"

    def __init__(self, *events: ClusterEventWithHint) -> None:
        self._events = events

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return self._events


@pytest.mark.parametrize(
    ("declared", "is_added"),
    [
        pytest.param((ClusterEventWithHint(EventResource.NODE, ActionType.ADD),), True, id="added nodes"),
        pytest.param(
            (ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),), False, id="changed nodes only"
        ),
        pytest.param(
            (ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT),),
            False,
            id="added nodes and taints",
        ),
        pytest.param(
            (
                ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
                ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE),
            ),
            False,
            id="taints in another registration",
        ),
        pytest.param((ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD),), False, id="another resource"),
        pytest.param((ANY_EVENT,), False, id="any event"),
        pytest.param((), False, id="no event"),
    ],
)
def test_a_plugin_registered_for_added_nodes_is_registered_for_taints(
    declared: tuple[ClusterEventWithHint, ...], is_added: bool
) -> None:
    added = plugin_events(Declared(*declared))[len(declared) :]
    assert added == ((ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),) if is_added else ())


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeAffinity", "InterPodAffinity", "VolumeZone", "NodeName"])
def test_built_in_plugins_that_are_registered_for_taints(name: str) -> None:
    assert any(
        registered.queueing_hint_fn is None and registered.matches(TAINT)
        for registered in registered_events(default_profile())[name]
    )


class Widget(ApiObject):
    """A custom kind, as one plugin reads it."""

    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


class Rejecting(Declared, PreEnqueue):
    def pre_enqueue(self, pod: PodInfo) -> None:
        return None


def profile_with(*plugins: Plugin) -> Profile:
    return replace(
        default_profile(), plugins={f"{place} {plugin.name}": plugin for place, plugin in enumerate(plugins)}
    )


@pytest.mark.parametrize(
    ("events", "kinds"),
    [
        pytest.param([()], (), id="no extra kinds"),
        pytest.param(
            [(ClusterEventWithHint(EventResource.NODE, ActionType.ADD), ANY_EVENT)],
            (),
            id="listed resources are watched anyway",
        ),
        pytest.param([(ClusterEventWithHint(WIDGET, ActionType.ADD),)], (WIDGET,), id="a custom kind"),
        pytest.param(
            [(ClusterEventWithHint(REPLICA_SET, ActionType.ADD),)], (REPLICA_SET,), id="a kind that is not listed"
        ),
        pytest.param(
            [(ClusterEventWithHint(WIDGET, ActionType.ADD),), (ClusterEventWithHint(WIDGET, ActionType.DELETE),)],
            (WIDGET,),
            id="one kind twice",
        ),
    ],
)
def test_registered_kinds(events: list[tuple[ClusterEventWithHint, ...]], kinds: tuple[Kind, ...]) -> None:
    assert registered_kinds([profile_with(*(Rejecting(*event) for event in events))]) == kinds


def test_built_in_plugins_register_no_extra_kinds() -> None:
    assert registered_kinds([default_profile()]) == ()


class OtherWidget(Widget):
    """The same kind, as another plugin reads it."""


def test_plugins_must_share_the_view_of_a_kind() -> None:
    another = Kind("example.com/v1", "Widget", "widgets", view=OtherWidget)
    plugins = [
        Rejecting(ClusterEventWithHint(WIDGET, ActionType.ADD)),
        Rejecting(ClusterEventWithHint(another, ActionType.ADD)),
    ]
    with pytest.raises(BadPluginError, match=r"1 Declared: registers example\.com/v1 Widget with another view"):
        registered_kinds([profile_with(*plugins)])


class Rebuilding(PreEnqueue):
    """Builds its kind again on each call."""

    name = "Rebuilding"

    def pre_enqueue(self, pod: PodInfo) -> None:
        return None

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(Kind("example.com/v1", "Widget", "widgets", view=Widget), ActionType.ADD),)


def test_an_equal_kind_is_the_same_resource() -> None:
    profile = profile_with(Rebuilding())
    (watched,) = registered_kinds([profile, profile])
    (registered,) = registered_events(profile)["0 Rebuilding"]
    assert registered.matches(ClusterEvent(watched, ActionType.ADD))
    assert not registered.matches(
        ClusterEvent(Kind("example.com/v1", "Widget", "widgets", view=OtherWidget), ActionType.ADD)
    )
    assert not registered.matches(ClusterEvent(EventResource.NODE, ActionType.ADD))


def test_an_invalid_registration_names_the_plugin() -> None:
    class Invalid(Rejecting):
        name = "Invalid"

        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            return (ClusterEventWithHint(NODE, ActionType.ADD),)

    with pytest.raises(BadPluginError, match=r"Invalid: an event of v1 Node must be registered as EventResource\.NODE"):
        registered_kinds([profile_with(Invalid())])
