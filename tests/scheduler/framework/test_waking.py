"""Who is woken by what in a profile, and what has to be watched for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.framework.events import ANYTHING, Action, ClusterEvent, Subject, Wake
from mooring.scheduler.framework.plugin import Filter, Plugin
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.waking import subjects_watched, wakes_of, wakes_of_plugin
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


def test_what_the_plugins_of_a_profile_want_to_hear_of_is_watched() -> None:
    watched = subjects_watched([default_profile()])
    assert {Subject.ASSIGNED_POD, Subject.NODE, Subject.VOLUME_ATTACHMENT, Subject.CSI_STORAGE_CAPACITY} <= set(watched)
    assert not {Subject.NAMESPACE, Subject.SERVICE, Subject.ANY} & set(watched)
    assert list(watched) == sorted(watched, key=list(Subject).index)


def test_pods_and_nodes_are_always_watched() -> None:
    assert subjects_watched([]) == (Subject.ASSIGNED_POD, Subject.PENDING_POD, Subject.NODE)


class Silent(Filter[None]):
    """Says nothing about what could help."""

    name = "Silent"

    def filter(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)


def test_for_a_plugin_that_is_woken_by_anything_nearly_everything_is_watched() -> None:
    watched = subjects_watched([replace(default_profile(), plugins={"Silent": Silent()})])
    assert {Subject.RESOURCE_CLAIM, Subject.CSI_DRIVER, Subject.PERSISTENT_VOLUME} <= set(watched)
    assert not {Subject.ANY, Subject.RESOURCE_SLICE, Subject.VOLUME_ATTACHMENT} & set(watched)
