"""Who is woken by what in a profile, and the kinds that are watched only because a plugin names them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from mooring.api.kinds import NODE, REPLICA_SET, Kind
from mooring.api.views.meta import ApiObject
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ANYTHING, Action, ClusterEvent, Subject, Wake
from mooring.scheduler.framework.plugin import Plugin, PreEnqueue
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.framework.waking import kinds_named, wakes_of, wakes_of_plugin
from tests.scheduler.harness import engine_of

TAINT = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_TAINT)


def default_profile() -> Profile:
    return engine_of().cycles["default-scheduler"].profile


def test_only_plugins_that_can_put_a_pod_to_sleep_are_asked() -> None:
    names = wakes_of(default_profile()).keys()
    assert {"SchedulingGates", "NodeResourcesFit", "VolumeBinding", "NodeDeclaredFeatures"} <= names
    assert not {"ImageLocality", "PrioritySort", "DefaultBinder"} & names


class Declared(Plugin):
    name = "Declared"

    def __init__(self, *wakes: Wake) -> None:
        self._wakes = wakes

    def wakes(self) -> tuple[Wake, ...]:
        return self._wakes


@pytest.mark.parametrize(
    ("declared", "is_added"),
    [
        pytest.param((Wake(Subject.NODE, Action.ADD),), True, id="hears of new nodes"),
        pytest.param((Wake(Subject.NODE, Action.UPDATE_NODE_LABEL),), False, id="does not"),
        pytest.param((Wake(Subject.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),), False, id="hears of taints itself"),
        pytest.param(
            (Wake(Subject.NODE, Action.ADD), Wake(Subject.NODE, Action.UPDATE)), False, id="hears of them elsewhere"
        ),
        pytest.param((Wake(Subject.CSI_NODE, Action.ADD),), False, id="hears of something else"),
        pytest.param((ANYTHING,), False, id="hears anything"),
        pytest.param((), False, id="hears nothing"),
    ],
)
def test_who_hears_of_new_nodes_is_woken_by_taints_too(declared: tuple[Wake, ...], is_added: bool) -> None:
    added = wakes_of_plugin(Declared(*declared))[len(declared) :]
    assert added == ((Wake(Subject.NODE, Action.UPDATE_NODE_TAINT),) if is_added else ())


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeAffinity", "InterPodAffinity", "VolumeZone", "NodeName"])
def test_of_our_plugins_these_are(name: str) -> None:
    assert any(wake.hint is None and wake.hears(TAINT) for wake in wakes_of(default_profile())[name])


class Widget(ApiObject):
    """A custom kind, as somebody's plugin reads it."""

    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


class Refusing(Declared, PreEnqueue):
    def pre_enqueue(self, pod: PodInfo) -> None:
        return None


def profile_with(*plugins: Plugin) -> Profile:
    return replace(
        default_profile(), plugins={f"{place} {plugin.name}": plugin for place, plugin in enumerate(plugins)}
    )


@pytest.mark.parametrize(
    ("wakes", "named"),
    [
        pytest.param([()], (), id="nothing beside the usual"),
        pytest.param([(Wake(Subject.NODE, Action.ADD), ANYTHING)], (), id="what has a subject is watched anyway"),
        pytest.param([(Wake(WIDGET, Action.ADD),)], (WIDGET,), id="a custom kind"),
        pytest.param([(Wake(REPLICA_SET, Action.ADD),)], (REPLICA_SET,), id="a kind that has no subject"),
        pytest.param([(Wake(WIDGET, Action.ADD),), (Wake(WIDGET, Action.DELETE),)], (WIDGET,), id="one row, twice"),
    ],
)
def test_kinds_that_plugins_name(wakes: list[tuple[Wake, ...]], named: tuple[Kind, ...]) -> None:
    assert kinds_named([profile_with(*(Refusing(*each) for each in wakes))]) == named


def test_our_plugins_name_none() -> None:
    assert kinds_named([default_profile()]) == ()


class OtherWidget(Widget):
    """The same kind, as somebody else reads it."""


def test_a_kind_has_one_view() -> None:
    another = Kind("example.com/v1", "Widget", "widgets", view=OtherWidget)
    plugins = [Refusing(Wake(WIDGET, Action.ADD)), Refusing(Wake(another, Action.ADD))]
    with pytest.raises(BadPluginError, match=r"1 Declared: wakes by example\.com/v1 Widget, which another"):
        kinds_named([profile_with(*plugins)])


class Forgetful(PreEnqueue):
    """Makes the row of its kind anew each time that it is asked."""

    name = "Forgetful"

    def pre_enqueue(self, pod: PodInfo) -> None:
        return None

    def wakes(self) -> tuple[Wake, ...]:
        return (Wake(Kind("example.com/v1", "Widget", "widgets", view=Widget), Action.ADD),)


def test_a_row_that_is_made_anew_is_the_same() -> None:
    profile = profile_with(Forgetful())
    (watched,) = kinds_named([profile, profile])
    (wake,) = wakes_of(profile)["0 Forgetful"]
    assert wake.hears(ClusterEvent(watched, Action.ADD))
    assert not wake.hears(ClusterEvent(Kind("example.com/v1", "Widget", "widgets", view=OtherWidget), Action.ADD))
    assert not wake.hears(ClusterEvent(Subject.NODE, Action.ADD))


def test_who_declares_what_cannot_be_is_named() -> None:
    class Hasty(Refusing):
        name = "Hasty"

        def wakes(self) -> tuple[Wake, ...]:
            return (Wake(NODE, Action.ADD),)

    with pytest.raises(BadPluginError, match=r"Hasty: a wake by v1 Node is a wake by Subject\.NODE"):
        kinds_named([profile_with(Hasty())])
