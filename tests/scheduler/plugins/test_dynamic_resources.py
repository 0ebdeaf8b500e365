"""DynamicResources: pods that request devices."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from mooring.api.views.devices import AllocatedDeviceStatus, ResourceClaim
from mooring.api.views.meta import ApiObject, Condition, ObjectMeta, OwnerReference
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.devices import allocator as allocator
from mooring.scheduler.devices.claims import EXTENDED_RESOURCE_ANNOTATION
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.dynamic_resources.binder import ClaimDeletion, Deallocation
from mooring.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import node, pod
from tests.device_builders import (
    GPU,
    claim,
    claiming,
    claiming_by_template,
    device,
    device_class,
    first_of,
    given,
    gpus,
    slice_of,
    wants,
)
from tests.scheduler.harness import decide, engine_of, plugin_of, settle

GPUS = "example.com/gpu"
NO_PREEMPTION = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def cluster(*views: ApiObject) -> Engine:
    """Two nodes, the first with two GPUs, the second with one."""
    return engine_of(node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 1), device_class(), *views)


def rejections(decision: Decision) -> dict[str, str]:
    return {name: ", ".join(said.reasons) for name, said in decision.node_to_status.items() if said is not None}


def test_pods_without_claims_fit_and_score_nothing() -> None:
    decision = decide(engine_of(node("n1")), pod())
    assert decision.node_name == "n1"
    assert decision.scores["n1"]["DynamicResources"] == 0


# Before anything else


@pytest.mark.parametrize(
    ("view", "cluster_has", "text"),
    [
        pytest.param(claiming("p", "c"), [], 'could not find ResourceClaim "default/c"', id="no such claim"),
        pytest.param(
            claiming("p", "c"), [claim("c", deleted=True)], 'resourceclaim "c" is being deleted', id="on its way out"
        ),
        pytest.param(
            claiming_by_template("p", None, is_made=False),
            [],
            'pod "default/p": ResourceClaim not created yet',
            id="not made yet",
        ),
        pytest.param(
            claiming_by_template("p", "c"),
            [claim("c", owner="another")],
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="made for somebody else",
        ),
        pytest.param(
            replace(pod("p"), spec=replace(pod("p").spec, resource_claims=(PodResourceClaim(name="g"),))),
            [],
            'pod "default/p", spec.resourceClaim "g": none of the supported fields are set',
            id="neither a claim nor a template",
        ),
    ],
)
def test_claims_must_exist_before_a_pod_is_queued(view: Pod, cluster_has: list[ApiObject], text: str) -> None:
    decision = decide(cluster(*cluster_has), view)
    assert decision.status is not None
    assert (decision.status.plugin, decision.status.reasons) == ("DynamicResources", (text,))
    assert decision.message is None, "it was not even tried"


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(claiming_by_template("p", None), id="a template that makes none on purpose"),
        pytest.param(claiming_by_template("p", "c"), id="a claim that was made for the pod"),
    ],
)
def test_claims_from_templates(view: Pod) -> None:
    assert decide(cluster(claim("c", wants(), owner="p")), view).is_placed


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        pytest.param(claim("c", wants("no")), "request r: device class no does not exist", id="no such class"),
        pytest.param(
            claim("c", first_of(wants(name="a"), wants("no", name="b"))),
            "request r/b: device class no does not exist",
            id="of an alternative",
        ),
    ],
)
def test_classes_must_exist(asked: ResourceClaim, text: str) -> None:
    decision = decide(cluster(asked), claiming("p", "c"))
    assert decision.message == f"0/2 nodes are available: {text}. no new claims to deallocate, {NO_PREEMPTION}"


# Which nodes


@pytest.mark.parametrize(
    ("asked", "rejected"),
    [
        pytest.param(claim("c", wants()), {}, id="one device is everywhere"),
        pytest.param(claim("c", wants(count=2)), {"n2": "cannot allocate all claims"}, id="two are on the first"),
        pytest.param(
            claim("c", wants(count=3)),
            {"n1": "cannot allocate all claims", "n2": "cannot allocate all claims"},
            id="three are nowhere",
        ),
        pytest.param(
            claim("c", wants(), has=given("gpu-0", node="n1")),
            {"n2": "resourceclaim not available on the node"},
            id="what it has is on the first",
        ),
        pytest.param(claim("c", wants(), has=given("gpu-0")), {}, id="what it has can be reached from anywhere"),
    ],
)
def test_where_devices_can_be_had(asked: ResourceClaim, rejected: dict[str, str]) -> None:
    assert rejections(decide(cluster(asked), claiming("p", "c"))) == rejected


def test_an_invalid_pool_is_reported_where_nothing_else_is_found() -> None:
    twice = slice_of(device("x"), device("x"), node="n2", pool="broken")
    engine = cluster(twice, claim("c", wants()), claim("d", wants(count=2)))
    assert rejections(decide(engine, claiming("p", "c"))) == {}
    assert rejections(decide(engine, claiming("p", "d"))) == {"n2": "invalid resource pools were encountered"}


def test_what_goes_wrong_ends_the_decision_and_names_the_claim() -> None:
    engine = cluster(claim("c", wants("gpu", f'device.attributes["{GPU}"].x == 1')))
    decision = decide(engine, claiming("p", "c"))
    text = 'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: x'
    assert (decision.error, decision.message) == ("filter", text)


def test_errors_that_name_pools_differ_and_the_first_by_name_is_reported() -> None:
    count = 80
    nodes = [node(f"n{number:03}") for number in range(count)]
    slices = [slice_of(device("d"), node=f"n{number:03}", of=2) for number in range(count)]
    engine = engine_of(*reversed(nodes), *slices, device_class(), claim("c", wants(every=True)))
    decision = decide(engine, claiming("p", "c"))
    assert (decision.message or "").endswith("resource pool gpu.example.com/n000 is currently being updated")
    codes = [status.code for status in decision.node_to_status.values() if status is not None]
    assert codes == [Code.ERROR] * count


def test_a_search_that_takes_too_long_is_an_error_that_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "STEPS_MAX", 1_000)
    many = [device(f"d{number}", n=number) for number in range(30)]
    hopeless = claim("c", wants(name="a", count=15), wants(name="b", count=16))
    engine = engine_of(
        node("n1"), node("n2"), slice_of(*many, node="n1"), slice_of(*many, node="n2"), device_class(), hopeless
    )
    decision = decide(engine, claiming("p", "c"))
    text = 'running "DynamicResources" filter plugin: node n1: timed out trying to allocate devices'
    assert (decision.error, decision.message) == ("filter", text)


# Devices that must be made ready


def with_status(name: str, allocation_since: str | None, *conditions: tuple[str, str]) -> ResourceClaim:
    asked = claim(name, wants(), has=given("gpu-0", ready_when=["up"], fails_when=["down"], since=allocation_since))
    said = tuple(Condition(type=type_, status=status) for type_, status in conditions)
    devices = (AllocatedDeviceStatus(driver=GPU, pool="n1", device="gpu-0", conditions=said),) if said else ()
    return replace(asked, status=replace(asked.status, devices=devices))


LONG_AGO, JUST_NOW = "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("asked", "is_available"),
    [
        pytest.param(with_status("c", LONG_AGO, ("up", "True")), True, id="ready"),
        pytest.param(with_status("c", JUST_NOW), True, id="there is still time"),
        pytest.param(with_status("c", LONG_AGO), False, id="time is over"),
        pytest.param(with_status("c", LONG_AGO, ("up", "False")), False, id="time is over, and it says so"),
        pytest.param(with_status("c", JUST_NOW, ("down", "True")), False, id="it has failed"),
        pytest.param(with_status("c", None, ("up", "False")), True, id="nobody knows since when"),
    ],
)
def test_devices_with_failed_binding_conditions_reject_the_pod(asked: ResourceClaim, is_available: bool) -> None:
    decision = decide(cluster(asked), claiming("p", "c"))
    assert decision.is_placed is is_available
    if not is_available:
        assert "2 resourceclaim not available on the node. deallocation of ResourceClaim" in (decision.message or "")


# Nothing can be done, or can it?


@pytest.mark.parametrize(
    ("used_by", "is_deallocated"),
    [
        pytest.param([], True, id="nobody uses the claim"),
        pytest.param(["p"], True, id="only the pod itself"),
        pytest.param(["other"], False, id="somebody else"),
        pytest.param(["p", "other"], False, id="the pod and somebody else"),
    ],
)
def test_a_claim_in_the_way_loses_its_devices(used_by: Sequence[str], is_deallocated: bool) -> None:
    elsewhere = claim("c", wants(), has=given("gpu-0", pool="n9", node="n9"), used_by=used_by, version="7")
    decision = decide(cluster(elsewhere), claiming("p", "c"))
    reported = "deallocation of ResourceClaim completed" if is_deallocated else "still not schedulable"
    assert decision.message == (
        f"0/2 nodes are available: 2 resourceclaim not available on the node. {reported}, {NO_PREEMPTION}"
    )
    assert [type(follow_up) for follow_up in decision.follow_ups] == ([Deallocation] if is_deallocated else [])
    assert [
        (follow_up.key, follow_up.resource_version)
        for follow_up in decision.follow_ups
        if isinstance(follow_up, Deallocation)
    ] == ([("default/c", "7")] if is_deallocated else [])


def test_no_claim_is_blamed_where_devices_are_lacking_anyway() -> None:
    elsewhere = claim("c", wants(), has=given("gpu-0", pool="n9", node="n9"))
    decision = decide(cluster(elsewhere, claim("d", wants(count=9))), claiming("p", "c", "d"))
    assert decision.message == (
        f"0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, {NO_PREEMPTION}"
    )


# Scores


def test_nodes_with_earlier_alternatives_score_more() -> None:
    asked = claim("c", first_of(wants(name="two", count=2), wants(name="one")))
    decision = decide(cluster(asked), claiming("p", "c"))
    assert {name: scores["DynamicResources"] for name, scores in decision.scores.items()} == {"n1": 200, "n2": 174}


def test_what_claims_have_already_counts_beside_what_they_get() -> None:
    had = claim("c", first_of(wants(name="a"), wants(name="b")), has=given("gpu-0", request="r/b"))
    asked = claim("d", first_of(wants(name="one"), wants(name="x", count=2)))
    decision = decide(cluster(had, asked), claiming("p", "c", "d"))
    assert {name: scores["DynamicResources"] for name, scores in decision.scores.items()} == {"n1": 200, "n2": 200}
    decision = decide(cluster(had), claiming("p", "c"))
    assert {name: scores["DynamicResources"] for name, scores in decision.scores.items()} == {"n1": 0, "n2": 0}


# Believing it


def test_devices_are_not_given_twice() -> None:
    engine = cluster(*(claim(f"c{number}", wants()) for number in range(4)))
    assert settle(engine, *(claiming(f"p{number}", f"c{number}") for number in range(4))) == ["n1", "n2", "n1", None]


def test_a_claim_in_flight_makes_its_other_pods_wait() -> None:
    engine = cluster(claim("c", wants()))
    assert settle(engine, claiming("p", "c")) == ["n1"]
    decision = decide(engine, claiming("q", "c"))
    assert decision.status is not None
    assert decision.status.reasons == ("resource claim default/c is in the process of being allocated",)


def test_unreserved_devices_are_free_again() -> None:
    engine = cluster(claim("c", wants(count=2)), claim("d", wants(count=2)))
    decision = decide(engine, claiming("p", "c"))
    assert engine.assume(decision) is None
    assert not decide(engine, claiming("q", "d")).is_placed
    engine.forget(decision.pod)
    assert decide(engine, claiming("q", "d")).node_name == "n1"
    assert decide(engine, claiming("p", "c")).node_name == "n1"


def test_reserve_fails_if_the_devices_are_allocated_meanwhile() -> None:
    engine = cluster(claim("c", wants(count=2)), claim("d", wants()))
    first, second = decide(engine, claiming("p", "c")), decide(engine, claiming("q", "d"))
    assert (first.node_name, second.node_name) == ("n1", "n1")
    assert engine.assume(second) is None
    status = engine.assume(first)
    assert status is not None
    assert status.reasons == ("claim allocation not found for node",)
    assert decide(engine, claiming("p", "c")).node_name is None


# Extended resources


def wanting(count: int, name: str = "p", *claims: str) -> Pod:
    return claiming(name, *claims, others={GPUS: count})


def test_extended_resources_are_devices_where_a_node_does_not_offer_them() -> None:
    engine = engine_of(
        node("n1", others={GPUS: 1}),
        node("n2"),
        node("n3"),
        gpus("n2", 2),
        device_class(resource=GPUS),
    )
    assert rejections(decide(engine, wanting(1))) == {"n3": "cannot allocate all claims"}
    assert rejections(decide(engine, wanting(2))) == {
        "n1": f"Insufficient {GPUS}",
        "n3": "cannot allocate all claims",
    }
    assert settle(engine, wanting(2, "a"), wanting(1, "b"), wanting(1, "c")) == ["n2", "n1", None]


def test_extended_resources_and_claims_get_different_devices() -> None:
    engine = engine_of(node("n1"), gpus("n1", 3), device_class(resource=GPUS), claim("c", wants(count=2)))
    assert decide(engine, wanting(1, "p", "c")).node_name == "n1"
    assert rejections(decide(engine, wanting(2, "p", "c"))) == {"n1": "cannot allocate all claims"}


def test_a_resource_that_no_node_has_does_not_fit() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/disk"]}}]}
        ],
    }
    engine = engine_of(node("n1"), gpus("n1", 1), device_class(resource=GPUS), config=config)
    assert rejections(decide(engine, pod(others={GPUS: 1, "example.com/disk": 1}))) == {"n1": "cannot fit resource"}


def test_what_an_earlier_attempt_left_is_deleted_first() -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="p", controller=True)
    left = claim("left", wants())
    left = replace(
        left,
        metadata=ObjectMeta(
            name="left",
            namespace="default",
            uid="uid-left",
            annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
            owner_references=(owner,),
        ),
    )
    engine = engine_of(node("n1"), gpus("n1", 1), device_class(resource=GPUS), left)
    decision = decide(engine, wanting(1))
    assert rejections(decision) == {"n1": "cannot schedule extended resource claim"}
    assert "deletion of ResourceClaim completed" in (decision.message or "")
    assert [follow_up.key for follow_up in decision.follow_ups if isinstance(follow_up, ClaimDeletion)] == [
        "default/left"
    ]


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
