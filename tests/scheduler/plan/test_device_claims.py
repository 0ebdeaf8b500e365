"""Plans about pods with devices: an evicted pod gives its claims up, and its replacement asks for as much."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject, OwnerReference
from mooring.api.views.pod import Pod
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PlanRequest, PlanResult, Question
from mooring.scheduler.plan.what_if import OutdatedPlan, WhatIf
from tests.builders import node
from tests.device_builders import claim, claiming, device_class, given, gpus, wants
from tests.scheduler.harness import engine_of


def placed(name: str, on: str, *claims: str) -> Pod:
    """A pod of a ReplicaSet on a node."""
    view = claiming(name, *claims)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="web", controller=True)
    return replace(
        view,
        metadata=replace(view.metadata, owner_references=(owner,)),
        spec=replace(view.spec, node_name=on),
    )


def held(name: str, device: str, on: str, *pods: str) -> ResourceClaim:
    return claim(name, wants(), has=given(device, pool=on, node=on), used_by=pods)


def cluster(*views: ApiObject) -> Engine:
    return engine_of(device_class(), node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), *views)


def removed(engine: Engine, *names: str) -> PlanResult:
    return Planner(engine, lambda: ()).plan(PlanRequest(Question.REMOVE_NODES, nodes=names))


@pytest.mark.parametrize(
    ("views", "node_name"),
    [
        pytest.param([held("c", "gpu-0", "n1", "p")], "n2", id="a free device on the other node"),
        pytest.param(
            [held("c", "gpu-0", "n1", "p"), held("d", "gpu-0", "n2", "q"), placed("q", "n2", "d")],
            None,
            id="the device of the other node is in use",
        ),
        pytest.param(
            [held("c", "gpu-0", "n1", "p", "other")], None, id="another pod holds the claim, and with it the node"
        ),
    ],
)
def test_the_replacement_needs_devices_too(views: list[ApiObject], node_name: str | None) -> None:
    engine = cluster(placed("p", "n1", "c"), *views)
    result = removed(engine, "n1")
    assert [each.node for each in result.placements] == ([node_name] if node_name else [])
    assert result.drained[0].is_safe is (node_name is not None)
    assert removed(engine, "n1") == result  # and nothing has changed
    assert engine.columns.objects.of(ResourceClaim).get("default/c") is views[0]


def test_a_device_that_an_evicted_pod_gives_up_is_free_for_others() -> None:
    engine = cluster(held("c", "gpu-0", "n1", "p"), held("d", "gpu-0", "n2", "q"))
    engine.put(claim("new", wants()))
    engine.put(claim("more", wants()))
    engine.put(placed("p", "n1", "c"))
    engine.put(placed("q", "n2", "d"))
    asking = engine.record(claiming("asking", "new"))
    with WhatIf(engine, seed=1) as what_if:
        assert what_if.decide(asking).node_name is None
        what_if.evict(engine.columns.pods["q"])
        assert what_if.decide(asking).node_name == "n2"
        what_if.suspend()
        assert engine.decide(asking).node_name is None
        what_if.resume()
        decision = what_if.decide(asking)
        assert what_if.place(decision) is None
        again = engine.record(claiming("again", "more"))
        assert what_if.decide(again).node_name is None
        what_if.evict(asking)  # placed by the plan: its reservation ends
        assert what_if.decide(again).node_name == "n2"
    assert engine.decide(asking).node_name is None


def test_a_claim_that_changes_meanwhile_makes_the_plan_start_again() -> None:
    engine = cluster(held("c", "gpu-0", "n1", "p"), placed("p", "n1", "c"))
    with WhatIf(engine, seed=1) as what_if:
        what_if.evict(engine.columns.pods["p"])
        what_if.suspend()
        engine.put(held("c", "gpu-0", "n1", "p", "other"))
        with pytest.raises(OutdatedPlan, match="ResourceClaim default/c has changed"):
            what_if.resume()


def test_pods_that_share_a_claim_get_its_devices_together() -> None:
    engine = cluster(claim("shared", wants()))
    before = engine.columns.objects.of(ResourceClaim).get("default/shared")
    pods = tuple(claiming(name, "shared") for name in "ab")
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.PLACE, pods=pods))
    assert len({each.node for each in result.placements}) == 1
    assert len(result.placements) == 2
    assert engine.columns.objects.of(ResourceClaim).get("default/shared") is before
    with WhatIf(engine, seed=1) as what_if:
        for view in pods:
            assert what_if.place(what_if.decide(engine.record(view))) is None
        what_if.suspend()
        assert engine.columns.objects.of(ResourceClaim).get("default/shared") is before
        what_if.resume()
        after = engine.columns.objects.of(ResourceClaim).get("default/shared")
        assert after is not None
        assert [each.name for each in after.status.reserved_for] == ["a", "b"]
