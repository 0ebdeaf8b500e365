"""Queueing hints: pods that were rejected for their devices."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.plugins.dynamic_resources import DynamicResources
from tests.builders import pod
from tests.device_builders import claim, claiming, claiming_by_template, given, wants
from tests.scheduler.harness import engine_of, plugin_of


def registered_for(plugin: DynamicResources, subject: EventResource) -> ClusterEventWithHint:
    (found,) = [registered for registered in plugin.events_to_register() if registered.resource is subject]
    return found


PLAIN, HAS, USED = claim("c", wants()), claim("c", wants(), has=given("gpu-0")), claim("c", wants(), used_by=["q"])
OTHER, OTHER_HAS = claim("d", wants()), claim("d", wants(), has=given("gpu-0"))


@pytest.mark.parametrize(
    ("view", "old", "new", "helps"),
    [
        pytest.param(claiming("p", "c"), None, PLAIN, True, id="the claim that it waits for"),
        pytest.param(claiming("p", "c"), None, OTHER, False, id="somebody else's claim"),
        pytest.param(claiming("p", "c"), OTHER_HAS, OTHER, True, id="devices that were given back"),
        pytest.param(claiming("p", "c"), OTHER, OTHER_HAS, False, id="devices that were taken"),
        pytest.param(claiming("p", "c"), PLAIN, HAS, True, id="its claim has devices now"),
        pytest.param(claiming("p", "c"), PLAIN, PLAIN, False, id="nothing that it reads"),
        pytest.param(claiming("p", "c"), PLAIN, USED, True, id="its claim is used by another"),
        pytest.param(claiming("p", "c", "missing"), OTHER_HAS, OTHER, False, id="another claim is still missing"),
        pytest.param(pod("p"), OTHER_HAS, OTHER, True, id="a pod without claims may want devices all the same"),
    ],
)
def test_claims(view: Pod, old: ResourceClaim | None, new: ResourceClaim, helps: bool) -> None:
    engine = engine_of(PLAIN, new)
    registered = registered_for(plugin_of(engine, DynamicResources), EventResource.RESOURCE_CLAIM)
    assert registered.action_type == ActionType.ADD | ActionType.UPDATE
    assert registered.queueing_hint_fn is not None
    assert bool(registered.queueing_hint_fn(engine.record(view), old, new)) is helps


@pytest.mark.parametrize(
    ("rejected", "updated", "helps"),
    [
        pytest.param("p", claiming_by_template("p", "c"), True, id="its claim was made"),
        pytest.param("p", claiming_by_template("p", None, is_made=False), False, id="not yet"),
        pytest.param("p", claiming_by_template("p", "missing"), False, id="made, but not seen yet"),
        pytest.param("q", claiming_by_template("p", "c"), False, id="another pod's claim was made"),
    ],
)
def test_claims_that_are_made_for_the_pod(rejected: str, updated: Pod, helps: bool) -> None:
    engine = engine_of(claim("c", wants(), owner="p"))
    registered = registered_for(plugin_of(engine, DynamicResources), EventResource.UNSCHEDULABLE_POD)
    assert registered.action_type == ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    assert registered.queueing_hint_fn is not None
    sleeping = engine.record(claiming_by_template(rejected, None, is_made=False))
    assert bool(registered.queueing_hint_fn(sleeping, sleeping, engine.record(updated))) is helps


def test_nodes_classes_and_slices_always_may_help() -> None:
    plugin = plugin_of(engine_of(), DynamicResources)
    always = {
        registered.resource: registered.action_type
        for registered in plugin.events_to_register()
        if registered.queueing_hint_fn is None
    }
    assert always == {
        EventResource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE,
        EventResource.DEVICE_CLASS: ActionType.ADD | ActionType.UPDATE,
        EventResource.RESOURCE_SLICE: ActionType.ADD | ActionType.UPDATE,
    }
