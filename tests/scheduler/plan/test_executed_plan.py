"""A plan of the running scheduler, then the scheduler itself: on an API server, on virtual time, over random clusters.

The scheduler has read the cluster and waits for its start. The plan runs on its engine; then the engine gets the random
streams of the plan, the scheduler starts, and the store must hold the bindings that were planned.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.kinds import kind_of_view
from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.config import load_configuration
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PlanRequest, PlanResult, Question
from mooring.scheduler.scheduler import Scheduler
from tests.api_servers import store_object
from tests.builders import namespace
from tests.device_builders import claim, device_class, gpus, wants
from tests.scheduler import random_world
from tests.scheduler.random_world import CLAIMS, NAMESPACES, NODE_NAMES
from tests.scheduler.world import World, check, open_world, plain

SEEDS = st.integers(0, 999)
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
            for each in (*objects, *pending):
                kind, document = kind_of_view(type(each)), _without_grace(plain(each))
                await store_object(world.store, kind, each.metadata.namespace, document)
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
            bindings.update(await _bindings(world, {each.key for each in pending}))
            return result

    return run(main(), clock), bindings


def _without_grace(document: dict[str, Any]) -> dict[str, Any]:
    """A preempted pod is gone at once: no kubelet runs."""
    if document["kind"] == "Pod":
        document["spec"]["terminationGracePeriodSeconds"] = 0
    return document


async def _bindings(world: World, wanted: set[str]) -> dict[str, str]:
    return {
        each.key: each.spec.node_name
        for each in (await world.pods()).values()
        if each.key in wanted and each.spec.node_name
    }


def random_cluster(seed: int, pending_count: int, *, preempts: bool) -> tuple[list[ApiObject], list[Pod]]:
    """Objects as a user would create them, and pending pods."""
    world = random_world.World(seed)
    templates = [world.template() for _ in range(6)]
    objects: list[ApiObject] = [*map(namespace, NAMESPACES), *world.surroundings()]
    objects += [world.node(name) for name in NODE_NAMES]
    objects += [world.pod(templates, f"placed-{number}", on=world.choose(NODE_NAMES)) for number in range(10)]
    if preempts:  # no kubelet ends the terminating ones, so a victim among them would stay
        objects = [_not_terminating(each) if isinstance(each, Pod) else each for each in objects]
    distinct = {(each.kind, each.key): each for each in objects if each.key != "default"}
    pending = [world.pod(templates, f"pending-{number}") for number in range(pending_count)]
    claims, pending = _with_devices(world, [_startable(each, preempts=preempts) for each in pending])
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
        each
        for each in view.spec.volumes
        if each.persistent_volume_claim is None or each.persistent_volume_claim.claim_name != UNBOUND_CLAIM
    )
    policy = view.spec.preemption_policy if preempts or view.spec.priority is None else "Never"
    spec = replace(view.spec, volumes=volumes, preemption_policy=policy)
    return _not_terminating(replace(view, spec=spec))


def _not_terminating(view: Pod) -> Pod:
    return replace(view, metadata=replace(view.metadata, deletion_timestamp=None))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_each_planned_placement_is_the_binding(seed: int) -> None:
    objects, pending = random_cluster(seed, 10, preempts=False)
    result, bound = executed(objects, pending)
    assert {each.pod: each.node for each in result.placements} == bound


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_a_pod_that_preempts_gets_the_planned_node(seed: int) -> None:
    objects, pending = random_cluster(seed, 1, preempts=True)
    result, bound = executed(objects, pending)
    assert {each.pod: each.node for each in result.placements} == bound
