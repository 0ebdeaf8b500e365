"""A `WhatIf` leaves no trace, in the columns and in later decisions; evicted pods release their ResourceClaims."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject, OwnerReference
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PlanRequest, PlanResult, Question
from mooring.scheduler.plan.what_if import OutdatedPlan, WhatIf
from tests.builders import node, pod
from tests.device_builders import claim, claiming, device_class, gpus, wants
from tests.device_builders import given as allocation_of
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.harness import engine_of
from tests.scheduler.random_world import NODE_NAMES, World


def random_engine(seed: int) -> tuple[Engine, World, list[Pod]]:
    """An engine with a random cluster, and the templates of its pods."""
    world = World(seed)
    engine = Engine(load_configuration(None), entropy=Entropy(seed))
    templates = [world.template() for _ in range(6)]
    for view in world.surroundings():
        engine.put(view)
    for name in NODE_NAMES:
        engine.put(world.node(name))
    for number in range(12):
        engine.put(world.pod(templates, f"placed-{number}", on=world.choose(NODE_NAMES)))
    return engine, world, templates


def disturb(what_if: WhatIf, world: World, templates: list[Pod]) -> None:
    """Random steps."""
    columns = what_if.engine.columns
    for number in range(12):
        match world.integer_below(5):
            case 0 | 1:
                decision = what_if.decide(what_if.engine.record(world.pod(templates, f"planned-{number}")))
                if decision.node_name is not None:
                    what_if.place(decision)
                elif decision.preemption is not None:
                    what_if.nominate(decision.pod, decision.preemption.node_name)
            case 2:
                placed = [record for record in columns.pods.values() if record.row >= 0]
                if placed:
                    what_if.evict(world.choose(placed))
            case 3:
                what_if.put_node(world.node(world.choose((*NODE_NAMES, f"new-{number}"))))
            case 4:
                if len(columns.row_of) > 1:
                    what_if.remove_node(world.choose(sorted(columns.row_of)))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_leaving_restores_columns_and_later_decisions(seed: int) -> None:
    engine, world, templates = random_engine(seed)
    untouched, _, _ = random_engine(seed)
    before = logical_state(engine.columns)
    with WhatIf(engine, seed=7) as what_if:
        disturb(what_if, world, templates)
        what_if.suspend()
        assert logical_state(engine.columns) == before
        what_if.resume()
    assert logical_state(engine.columns) == before
    for number in range(6):
        view = World(seed + number).pod(templates, f"later-{number}")
        ours, theirs = engine.decide(engine.record(view)), untouched.decide(untouched.record(view))
        assert (ours.node_name, ours.message) == (theirs.node_name, theirs.message)
        for either, decision in ((engine, ours), (untouched, theirs)):
            if decision.node_name is not None:
                either.assume(decision)


def test_undo_to_a_mark_keeps_what_came_before() -> None:
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    engine.put(node("n1", cpu=2))
    with WhatIf(engine, seed=1) as what_if:
        what_if.place(what_if.decide(engine.record(pod("a", cpu=1))))
        mark = what_if.mark()
        what_if.place(what_if.decide(engine.record(pod("b", cpu=1))))
        assert what_if.decide(engine.record(pod("c", cpu=1))).node_name is None
        what_if.undo_to(mark)
        assert what_if.decide(engine.record(pod("c", cpu=1))).node_name == "n1"
    assert not engine.columns.pods


def test_the_seed_decides_between_equal_nodes() -> None:
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    for number in range(50):
        engine.put(node(f"n{number}"))

    def chosen(seed: int) -> list[str | None]:
        with WhatIf(engine, seed) as what_if:
            return [what_if.decide(engine.record(pod(f"p{number}"))).node_name for number in range(5)]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


def test_a_plan_whose_node_is_gone_is_outdated() -> None:
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    view = node("n1")
    engine.put(view)
    with WhatIf(engine, seed=1) as what_if:
        what_if.place(what_if.decide(engine.record(pod("a"))))
        what_if.suspend()
        engine.remove(view)
        with pytest.raises(OutdatedPlan, match="node n1 is gone"):
            what_if.resume()
    assert not engine.columns.pods


def test_a_plan_does_not_move_the_search_of_a_sampling_scheduler() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    engine = Engine(load_configuration({**document, "percentageOfNodesToScore": 50}), entropy=Entropy(1))
    for number in range(300):
        engine.put(node(f"n{number}"))
    engine.decide(engine.record(pod("first")))
    assert engine.node_order.start == 150
    with WhatIf(engine, seed=1) as what_if:
        assert engine.node_order.start == 0
        what_if.decide(engine.record(pod("second")))
        what_if.decide(engine.record(pod("third")))
        assert engine.node_order.start == 0
    assert engine.node_order.start == 150


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
    return claim(name, wants(), has=allocation_of(device, pool=on, node=on), used_by=pods)


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
    assert [placement.node for placement in result.placements] == ([node_name] if node_name else [])
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
    assert len({placement.node for placement in result.placements}) == 1
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
        assert [consumer.name for consumer in after.status.reserved_for] == ["a", "b"]
