"""Properties of plans over random clusters; and plans compared with what the running scheduler then does."""

from __future__ import annotations

import asyncio
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.kinds import kind_of_view
from mooring.api.labels import compile_selector
from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run, run_real
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.obstacle import Obstacle
from mooring.scheduler.plan.fix import change_node, change_pod
from mooring.scheduler.plan.new_objects import cluster_objects_of_nodes, node_like
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import NodeType, PlanRequest, PlanResult, Question
from mooring.scheduler.plan.slices import SLICE_S
from mooring.scheduler.plan.what_if import WhatIf
from mooring.scheduler.scheduler import Scheduler
from tests.api_servers import store_object
from tests.builders import namespace, node, pod
from tests.device_builders import claim, device_class, gpus, wants
from tests.scheduler import random_world
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.plan.test_what_if import random_engine
from tests.scheduler.random_world import CLAIMS, NAMESPACES, NODE_NAMES
from tests.scheduler.world import World, check, open_world, plain

SEEDS = st.integers(0, 2**32)
TICK_S = SLICE_S / 7
"""Time passes at each look at the clock: a slice has about three steps."""


def random_pods(seed: int, count: int) -> tuple[Engine, tuple[Pod, ...]]:
    engine, world, templates = random_engine(seed)
    return engine, tuple(world.pod(templates, f"planned-{number}") for number in range(count))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_a_plan_is_what_the_engine_then_does(seed: int) -> None:
    """The first attempts of a plan are those of an equal engine that assumes one decision after the other."""
    engine, pods = random_pods(seed, 8)
    other, _, _ = random_engine(seed)
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.PLACE, seed=5, pods=pods))
    planned = {placement.pod: placement.node for placement in result.placements}
    for ours, theirs in zip([Entropy(5, stream.name) for stream in other.streams], other.streams, strict=True):
        ours.exchange(theirs)
    done: dict[str, str] = {}
    for record in sorted((other.record(view) for view in pods), key=lambda record: -record.priority):
        decision = other.decide(record)
        if decision.preemption is not None:
            for victim in decision.preemption.victims:
                other.columns.displace(victim)
            other.renominate(record, decision.preemption.node_name)
            decision = other.decide(record)
        if decision.node_name is not None and other.assume(decision) is None:
            done[record.key] = decision.node_name
    assert done.items() <= planned.items()  # a pod that waits for others is tried again


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(list(Question)))
def test_no_question_leaves_a_trace_and_slices_give_the_same_result(seed: int, question: Question) -> None:
    engine, pods = random_pods(seed, 3)
    before = logical_state(engine.columns)
    names = tuple(sorted(engine.columns.row_of))[:2]
    types = (NodeType("m", node("m", cpu=2)), NodeType("l", node("l", cpu=8), 3.0))
    request = PlanRequest(question, seed=3, pods=pods, nodes=names, node_types=types, wants_bound=False)
    planner = Planner(engine, lambda: ())
    at_once = planner.plan(request)
    assert logical_state(engine.columns) == before
    clock = iter(range(10**9))

    async def look() -> None:
        assert logical_state(engine.columns) == before

    in_slices = run_real(planner.plan_in_slices(request, lambda: next(clock) * TICK_S, look))
    assert in_slices == at_once
    assert logical_state(engine.columns) == before


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_moves_violate_no_budget_and_leave_nothing_pending(seed: int) -> None:
    engine, _, _ = random_engine(seed)
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.DEFRAGMENT, seed=1, wants_bound=False))
    by_key = {record.key: record for record in engine.columns.pods.values()}
    for budget in engine.columns.objects.of(PodDisruptionBudget):
        matcher = compile_selector(budget.spec.selector)
        if budget.status.disruptions_allowed <= 0 and budget.spec.selector is not None:
            moved = [by_key[move.pod] for move in result.moves]
            assert not any(
                moved_pod.namespace == budget.metadata.namespace and matcher.matches(moved_pod.signature.labels)
                for moved_pod in moved
            )
    assert len({move.pod for move in result.moves}) == len(result.moves)  # no pod moves twice


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=3),
    st.integers(1, 6),
    st.booleans(),
)
def test_no_smaller_set_of_changes_makes_the_pod_fit(
    shapes: list[tuple[int, bool, bool, bool]], cpu: int, needs_ssd: bool
) -> None:
    """By brute force over all changes of the pod and of one node."""
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    for number, (size, is_tainted, is_cordoned, has_ssd) in enumerate(shapes):
        engine.put(
            node(
                f"n{number}",
                cpu=size,
                taints=["gpu=true:NoSchedule"] if is_tainted else [],
                unschedulable=is_cordoned,
                labels={"disk": "ssd"} if has_ssd else {},
            )
        )
    view = pod("p", cpu=cpu, node_labels={"disk": "ssd"} if needs_ssd else {})
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.FIX, pods=(view,)))
    if not result.fixes:
        return
    found = len(result.fixes[0].changes)
    assert found == _fewest_changes(engine, view)


def _fewest_changes(engine: Engine, view: Pod) -> int:
    """The smallest number of changes on any node, trying all subsets of the changes that exist."""
    record = engine.record(view)
    found = explain(engine.cycle_for(record).profile, engine.columns, record)
    best = 1 if _fits_a_new_node(engine, view) else 99
    for name in found.nearest:
        obstacles = found.at(name)
        for count in range(1, len(obstacles) + 1):
            for chosen in combinations(obstacles, count):
                if count < best and _fits_without(engine, view, name, chosen):
                    best = count
    return best


def _fits_without(engine: Engine, view: Pod, name: str, chosen: tuple[Obstacle, ...]) -> bool:
    changed_pod, row = view, engine.columns.row_of[name]
    changed_node = engine.columns.nodes[row]
    assert changed_node is not None
    for obstacle in chosen:
        by_pod = change_pod(changed_pod, obstacle)
        by_node = change_node(changed_node, obstacle)
        if by_pod is not None:
            changed_pod = by_pod.pod
        elif by_node is not None:
            changed_node = by_node.node
        else:
            return False
    with WhatIf(engine, 1) as what_if:
        what_if.put_node(changed_node)
        changed_pod = replace(changed_pod, metadata=replace(changed_pod.metadata, uid="changed"))
        return what_if.decide(engine.record(changed_pod)).node_name is not None


def _fits_a_new_node(engine: Engine, view: Pod) -> bool:
    with WhatIf(engine, 1) as what_if:
        for old in [node for node in engine.columns.nodes if node is not None]:
            mark = what_if.mark()
            name = old.metadata.name
            what_if.add_node(node_like(old, cluster_objects_of_nodes(engine.columns, [name])[name], "new"))
            if what_if.decide(engine.record(view)).node_name is not None:
                return True
            what_if.undo_to(mark)
    return False


CLUSTER_SEEDS = st.integers(0, 999)
PLAN_SEED = 5
SETTLED_S = 700.0
"""Longer than the time after which every unschedulable pod is tried again."""
UNBOUND_CLAIM = CLAIMS[2]
"""Its volume is bound by a controller, which does not run here."""


def executed(objects: list[ApiObject], pending: list[Pod]) -> tuple[PlanResult, dict[str, str]]:
    """Plan the pending pods on a scheduler that has not started, then start it. Returns the plan and the bindings."""
    clock = VirtualClock()
    bindings: dict[str, str] = {}

    async def main() -> PlanResult:
        async with open_world(clock, Entropy(1)) as world:
            for view in (*objects, *pending):
                kind, document = kind_of_view(type(view)), _without_grace(plain(view))
                await store_object(world.store, kind, view.metadata.namespace, document)
            scheduler = Scheduler(world.client, load_configuration(None), clock=clock, entropy=Entropy(2))
            may_begin = asyncio.Event()
            world.group.start_background(scheduler.run(may_begin), name="scheduler")
            await world.settle()
            result = Planner(scheduler.engine, scheduler.pending_pods).plan(PlanRequest(Question.PLACE, PLAN_SEED))
            for stream in scheduler.engine.streams:
                Entropy(PLAN_SEED, stream.name).exchange(stream)
            may_begin.set()
            await world.settle(SETTLED_S)
            check(scheduler)
            bindings.update(await _bindings(world, {view.key for view in pending}))
            return result

    return run(main(), clock), bindings


def _without_grace(document: dict[str, Any]) -> dict[str, Any]:
    """A preempted pod is gone at once: no kubelet runs."""
    if document["kind"] == "Pod":
        document["spec"]["terminationGracePeriodSeconds"] = 0
    return document


async def _bindings(world: World, wanted: set[str]) -> dict[str, str]:
    return {
        view.key: view.spec.node_name
        for view in (await world.pods()).values()
        if view.key in wanted and view.spec.node_name
    }


def random_cluster(seed: int, pending_count: int, *, preempts: bool) -> tuple[list[ApiObject], list[Pod]]:
    """Objects as a user would create them, and pending pods."""
    world = random_world.World(seed)
    templates = [world.template() for _ in range(6)]
    objects: list[ApiObject] = [*map(namespace, NAMESPACES), *world.surroundings()]
    objects += [world.node(name) for name in NODE_NAMES]
    objects += [world.pod(templates, f"placed-{number}", on=world.choose(NODE_NAMES)) for number in range(10)]
    if preempts:  # no kubelet ends the terminating ones, so a victim among them would stay
        objects = [_not_terminating(view) if isinstance(view, Pod) else view for view in objects]
    distinct = {(view.kind, view.key): view for view in objects if view.key != "default"}
    pending = [world.pod(templates, f"pending-{number}") for number in range(pending_count)]
    claims, pending = _with_devices(world, [_startable(view, preempts=preempts) for view in pending])
    devices = [gpus(name, 1 + world.integer_below(3)) for name in world.some(NODE_NAMES, one_in=2)]
    return [*distinct.values(), device_class(), *devices, *claims], pending


def _with_devices(world: random_world.World, pods: list[Pod]) -> tuple[list[ResourceClaim], list[Pod]]:
    """Some pods get a ResourceClaim of their own. Returns the claims, and all pods.

    With a shared one the result depends on when its devices are written: until then other pods are tried first."""
    claims: list[ResourceClaim] = []
    claiming: list[Pod] = []
    for number, view in enumerate(pods):
        if world.integer_below(3):
            claiming.append(view)
            continue
        name = f"own-{number}"
        asked = claim(name, wants(count=1 + world.integer_below(2)))
        metadata = replace(asked.metadata, namespace=view.metadata.namespace)
        claims.append(replace(asked, metadata=metadata))
        use = PodResourceClaim(name=name, resource_claim_name=name)
        claiming.append(replace(view, spec=replace(view.spec, resource_claims=(use,))))
    return claims, claiming


def _startable(view: Pod, *, preempts: bool) -> Pod:
    volumes = tuple(
        volume
        for volume in view.spec.volumes
        if volume.persistent_volume_claim is None or volume.persistent_volume_claim.claim_name != UNBOUND_CLAIM
    )
    policy = view.spec.preemption_policy if preempts or view.spec.priority is None else "Never"
    spec = replace(view.spec, volumes=volumes, preemption_policy=policy)
    return _not_terminating(replace(view, spec=spec))


def _not_terminating(view: Pod) -> Pod:
    return replace(view, metadata=replace(view.metadata, deletion_timestamp=None))


@settings(max_examples=100, deadline=None)
@given(CLUSTER_SEEDS)
def test_each_planned_placement_is_the_binding(seed: int) -> None:
    objects, pending = random_cluster(seed, 10, preempts=False)
    result, bound = executed(objects, pending)
    assert {placement.pod: placement.node for placement in result.placements} == bound


@settings(max_examples=100, deadline=None)
@given(CLUSTER_SEEDS)
def test_a_pod_that_preempts_gets_the_planned_node(seed: int) -> None:
    objects, pending = random_cluster(seed, 1, preempts=True)
    result, bound = executed(objects, pending)
    assert {placement.pod: placement.node for placement in result.placements} == bound
