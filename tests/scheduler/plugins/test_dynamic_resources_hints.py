"""What wakes pods that were refused for their devices."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.plugins.dynamic_resources import DynamicResources
from tests.builders import pod
from tests.device_builders import claim, claiming, claiming_by_template, given, wants
from tests.scheduler.harness import engine_of, plugin_of


def wake_for(plugin: DynamicResources, subject: Subject) -> Wake:
    (found,) = [wake for wake in plugin.wakes() if wake.subject is subject]
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
    wake = wake_for(plugin_of(engine, DynamicResources), Subject.RESOURCE_CLAIM)
    assert wake.actions == Action.ADD | Action.UPDATE
    assert wake.hint is not None
    assert wake.hint(engine.record(view), old, new) is helps


@pytest.mark.parametrize(
    ("asleep", "updated", "helps"),
    [
        pytest.param("p", claiming_by_template("p", "c"), True, id="its claim was made"),
        pytest.param("p", claiming_by_template("p", None, is_made=False), False, id="not yet"),
        pytest.param("p", claiming_by_template("p", "missing"), False, id="made, but not seen yet"),
        pytest.param("q", claiming_by_template("p", "c"), False, id="another pod's claim was made"),
    ],
)
def test_claims_that_are_made_for_the_pod(asleep: str, updated: Pod, helps: bool) -> None:
    engine = engine_of(claim("c", wants(), owner="p"))
    wake = wake_for(plugin_of(engine, DynamicResources), Subject.PENDING_POD)
    assert wake.actions == Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    assert wake.hint is not None
    sleeping = engine.record(claiming_by_template(asleep, None, is_made=False))
    assert wake.hint(sleeping, sleeping, engine.record(updated)) is helps


def test_nodes_classes_and_slices_always_may_help() -> None:
    plugin = plugin_of(engine_of(), DynamicResources)
    always = {wake.subject: wake.actions for wake in plugin.wakes() if wake.hint is None}
    assert always == {
        Subject.NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Subject.DEVICE_CLASS: Action.ADD | Action.UPDATE,
        Subject.RESOURCE_SLICE: Action.ADD | Action.UPDATE,
    }
