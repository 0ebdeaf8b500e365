"""Races between a decision and its confirmation: lost requests and responses, conflicts, deletions, several schedulers.

At the end every pod is bound once or pending, no node is overcommitted, and the columns count what the store has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import EVENT, POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ConflictError
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.scheduler import Limits
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, LosesFirstBinding, Outcome, Plan, Request, Script, Storm
from tests.scheduler.config.builders import configuration
from tests.scheduler.stories.actors import running
from tests.scheduler.world import Through, World, check, play, played

ZONE = "topology.kubernetes.io/zone"


def faulty(*faults: Fault) -> Through:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(*faults))

    return through


@pytest.mark.parametrize(
    ("fault", "scheduled_at_s_max"),
    [
        pytest.param(Fault("bind", Outcome.REQUEST_LOST), 15, id="the request is lost: tried again"),
        pytest.param(Fault("bind", Outcome.ANSWER_LOST), 1, id="the answer is lost: the pod is looked up"),
        pytest.param(Fault("bind", Outcome.CONFLICT), 15, id="a conflict that was none: tried again"),
        pytest.param(Fault("bind", Outcome.BROKEN), 15, id="the server is in trouble: tried again"),
        pytest.param(Fault("bind", Outcome.DONE, delay_s=30), 31, id="the request is slow: waited for"),
        pytest.param(Fault("bind", Outcome.DONE, answer_delay_s=30), 31, id="the watch is faster than the answer"),
        pytest.param(Fault("bind", Outcome.ANSWER_LOST, answer_delay_s=30), 31, id="no answer after a long time"),
    ],
)
def test_a_binding_that_goes_wrong(fault: Fault, scheduled_at_s_max: float) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(scheduled_at_s_max)
        assert await world.node_of("web") == "n1"
        assert await world.events("Scheduled") == [("web", "Scheduled", "Successfully assigned default/web to n1")]
        await world.settle(scheduled_at_s_max)
        assert len(world.scheduler.assumed_pods) == 0
        assert world.scheduler.bindings.running == {}
        assert len(world.scheduler.queue) == 0

    play(story, through=faulty(fault))


@pytest.mark.parametrize(
    "labels", [pytest.param({}, id="no labels to copy"), pytest.param({ZONE: "z1"}, id="the binding adds labels")]
)
def test_the_event_of_a_binding_names_the_version_that_was_tried(labels: dict[str, str]) -> None:
    """The watch is faster than the answer, and the scheduler has dropped its view of the pod."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1, labels=labels), pod("web", cpu=1))
        created = (await world.pods())["web"].metadata.resource_version
        await world.settle(31)
        (event,) = [msgspec.json.decode(raw) for raw in (await world.client.list(EVENT)).items]
        assert event["reason"] == "Scheduled"
        assert event["regarding"]["resourceVersion"] == created

    play(story, through=faulty(Fault("bind", Outcome.DONE, answer_delay_s=30)))


def test_while_the_outcome_is_unknown_no_other_pod_gets_the_resources() -> None:
    """The binding was carried out, but neither its answer nor the look-ups nor the watch come through for a while."""
    blind = Fault("next_batch", Outcome.DONE, kind=POD, delay_s=60, after=1, times=1)
    faults = (Fault("bind", Outcome.ANSWER_LOST), Fault("get", Outcome.REQUEST_LOST, times=5), blind)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1), pod("rival", cpu=1))
        for _ in range(300):
            await world.settle(0.5)
            assert await world.overcommitted() == []
        bound = [name for name, found in (await world.pods()).items() if found.spec.node_name]
        assert len(bound) == 1

    play(story, through=faulty(*faults))


@pytest.mark.parametrize("late_s", [0.01, 0.05, 0.5, 5.0])
def test_a_binding_that_is_carried_out_after_the_lookup_overcommits_no_node(late_s: float) -> None:
    """The connection is cut while the server waits for its store."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        uid = (await world.pods())["web"].metadata.uid
        await world.settle(0.01)
        await world.create(pod("rival", cpu=1))
        await world.settle(late_s)
        with suppress(ConflictError):
            await world.client.bind("default", "web", uid, "n1")
        for _ in range(60):
            await world.settle(1)
            assert await world.overcommitted() == []
        assert [name for name, found in (await world.pods()).items() if found.spec.node_name] == ["web"]

    play(story, through=faulty(Fault("bind", Outcome.REQUEST_LOST, where=lambda request: request.name == "web")))


@played(through=faulty(Fault("bind", Outcome.REQUEST_LOST, where=lambda request: request.name == "web", times=None)))
async def test_a_binding_without_any_response_fails_in_the_end(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("web", cpu=1), pod("rival", cpu=1))
    await world.settle(60)
    assert await world.node_of("rival") == "n1"


def test_after_a_failed_binding_the_resources_is_free_at_once() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("unlucky", cpu=1))
        await world.settle(0.1)
        await world.create(pod("lucky", cpu=1))
        await world.settle(60)
        assert await world.overcommitted() == []
        bound = [name for name, found in (await world.pods()).items() if found.spec.node_name]
        assert len(bound) == 1

    def only_the_unlucky(request: Request) -> bool:
        return request.name == "unlucky"

    play(story, through=faulty(Fault("bind", Outcome.BROKEN, where=only_the_unlucky)))


@played(schedulers=2)
async def test_two_schedulers_race_for_the_same_pods(world: World) -> None:
    """Both are called default-scheduler, and see every pod. The API server gives each pod to the faster one."""
    await world.create(*(node(f"n{n}", cpu=4) for n in range(5)))
    for n in range(20):
        await world.create(pod(f"web-{n}", cpu=1))
        await world.settle(0.01)
    await world.settle(60)
    assert all(found.spec.node_name for found in (await world.pods()).values())
    assert await world.overcommitted() == []
    # Nobody is reported twice that a pod was scheduled, and who lost a race has forgotten what he assumed.
    reported = Counter(name for name, _, _ in await world.events("Scheduled"))
    assert reported == Counter(f"web-{n}" for n in range(20))
    for scheduler in world.schedulers:
        assert len(scheduler.assumed_pods) == 0
        assert len(scheduler.queue) == 0


@pytest.mark.parametrize("is_same_node", [False, True], ids=["it is on another node", "it is on the very node"])
def test_the_scheduler_that_loses_the_race_for_a_pod_reports_it(is_same_node: bool) -> None:
    """As kube-scheduler: the attempt failed, and that is notified of the pod although it has a node."""

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), node("n2", cpu=1), pod("contested", cpu=1))
        await world.settle(0.5)  # the binding is on its way to one of the nodes
        (binding,) = world.scheduler.bindings.running.values()
        given = binding.node_name
        if not is_same_node:
            given = "n2" if given == "n1" else "n1"
        await world.client.bind("default", "contested", binding.pod.uid, given)
        await world.settle(30)
        reported = (
            'running Bind plugin "DefaultBinder": Operation cannot be fulfilled on pods/binding "contested": '
            f'pod contested is already assigned to node "{given}"'
        )
        assert await world.events("FailedScheduling") == [("contested", "FailedScheduling", reported)]
        (condition,) = (await world.pods())["contested"].status.conditions
        assert (condition.status, condition.reason, condition.message) == ("False", "SchedulerError", reported)
        assert await world.node_of("contested") == given
        assert await world.events("Scheduled") == []
        assert len(world.scheduler.assumed_pods) == len(world.scheduler.queue) == 0

    play(story, through=faulty(Fault("bind", Outcome.DONE, delay_s=1)))


@played(through=faulty(Fault("bind", Outcome.DONE, delay_s=5)))
async def test_the_scheduler_that_loses_the_race_for_a_pod_forgets_its_assumption(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("contested", cpu=1))
    await world.create(node("n2", cpu=1))
    await world.settle(0.5)  # the binding is on its way to one of the nodes
    (binding,) = world.scheduler.bindings.running.values()
    other = "n2" if binding.node_name == "n1" else "n1"
    await world.client.bind("default", "contested", binding.pod.uid, other)
    await world.settle(30)
    assert await world.node_of("contested") == other
    columns = world.scheduler.engine.columns
    assert columns.pods[binding.pod.uid].node_name == other
    assert len(columns.pods_on[columns.row_of[binding.node_name]]) == 0
    assert await world.events("Scheduled") == []
    assert len(world.scheduler.queue) == 0


@pytest.mark.parametrize("grace_s", [0, 30], ids=["at once", "gracefully"])
def test_a_pod_that_is_deleted_while_it_is_being_bound(grace_s: int) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("short-lived", cpu=1))
        await world.settle(0.5)
        assert len(world.scheduler.assumed_pods) == 1
        await world.delete("short-lived", grace_s=grace_s)
        await world.create(pod("next", cpu=1))
        await world.settle(0.5)
        assert "next" in [binding.pod.name for binding in world.scheduler.bindings.running.values()]
        await world.settle(30)
        assert await world.node_of("next") == "n1"
        assert await world.overcommitted() == []

    play(story, through=faulty(Fault("bind", Outcome.DONE, delay_s=5, times=None)))


@played(through=lambda client, clock: LosesFirstBinding(client), limits=Limits(confirmation_s_max=30))
async def test_an_unconfirmed_binding_is_looked_up(world: World) -> None:
    """The watch of pods is silent from the binding on, and an accepted binding was lost on the way."""
    await world.create(node("n1", cpu=1), pod("web", cpu=1))
    await world.settle(10)
    assert len(world.scheduler.assumed_pods) == 1
    await world.settle(60)
    assert await world.node_of("web") == "n1"
    assert len(world.scheduler.assumed_pods) == 0


def storm(seed: int) -> Through:
    """Every request may be late, lost or rejected for a while; watches break and expire."""

    def through(client: Client, clock: VirtualClock) -> Client:
        entropy = Entropy(seed)
        outcomes = (
            Outcome.DONE,
            Outcome.REQUEST_LOST,
            Outcome.ANSWER_LOST,
            Outcome.CONFLICT,
            Outcome.BROKEN,
        )
        writes = Storm(
            entropy.fork("writes"),
            {"bind": 0.5, "patch": 0.3, "get": 0.3, "delete": 0.3, "create": 0.2},
            outcomes,
            delay_s_max=3.0,
            requests_max=600,
        )
        reads = Storm(
            entropy.fork("reads"),
            {"watch": 0.2, "next_batch": 0.2, "list": 0.2},
            (Outcome.DONE, Outcome.BROKEN, Outcome.EXPIRED, Outcome.REQUEST_LOST),
            delay_s_max=3.0,
            requests_max=600,
        )

        def plan(request: Request) -> Fault | None:
            return writes(request) or reads(request)

        plan_: Plan = plan
        return FaultyClient(client, clock, plan_)

    return through


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_bound_twice_in_a_storm(seed: int) -> None:
    """One scheduler whose API server misbehaves for a while; pods come, go and preempt each other meanwhile."""
    entropy = Entropy(seed)

    async def story(world: World) -> None:
        watch_since = (await world.client.list(POD)).revision
        await world.create(*(node(f"n{n}", cpu=4) for n in range(4)))
        for n in range(30):
            priority = 10 * entropy.integer_below(3)
            await world.create(pod(f"pod-{n}", cpu=1 + entropy.integer_below(2), priority=priority))
            await world.settle(entropy.uniform(0.0, 1.0))
            if not entropy.integer_below(6):
                victim = entropy.choose(sorted(await world.pods()))
                await world.delete(victim)
            assert await world.overcommitted() == []
        await world.settle(900)
        assert await world.overcommitted() == []
        scheduler = world.scheduler
        pods = await world.pods()
        unbound = [found for found in pods.values() if not found.spec.node_name]
        assert sorted(scheduler.pods.pending) == sorted(found.metadata.uid for found in unbound)
        assert len(scheduler.queue) == len(unbound)
        assert scheduler.bindings.running == {}
        assert len(scheduler.assumed_pods) == 0
        columns = scheduler.engine.columns
        assert {uid: record.node_name for uid, record in columns.pods.items()} == {
            found.metadata.uid: found.spec.node_name for found in pods.values() if found.spec.node_name
        }
        for found in unbound:  # a pending pod fits nowhere
            decision = scheduler.engine.decide(scheduler.engine.record(found))
            assert decision.node_name is None, f"{found.metadata.name} waits, but fits on {decision.node_name}"
        assert await bound_once(world, watch_since) == []
        check(scheduler)

    play(story, through=storm(seed), seed=seed)


async def bound_once(world: World, since: str) -> list[str]:
    """Pods whose node changed after it was set, by the whole history of the store."""
    nodes: dict[str, str] = {}
    moved = []
    async with world.client.watch(POD, since=since, bookmarks=False) as watch:
        for event in await watch.next_batch():
            found = decode_as(Pod, event.raw)
            uid, node_name = found.metadata.uid, found.spec.node_name
            if nodes.get(uid) not in (None, "", node_name):
                moved.append(f"{found.metadata.name} moved from {nodes[uid]} to {node_name}")
            nodes[uid] = node_name
    return moved


def test_the_same_seed_gives_the_same_history() -> None:
    histories = []
    for _ in range(2):
        seen: list[bytes] = []

        async def story(world: World, seen: list[bytes] = seen) -> None:
            await world.create(*(node(f"n{n}", cpu=4) for n in range(4)))
            await world.create(*(pod(f"pod-{n}", cpu=1) for n in range(20)))
            await world.settle(300)
            seen += [msgspec.json.encode(sorted((await world.pods()).items()))]
            seen += [msgspec.json.encode(await world.events())]

        play(story, through=storm(3), seed=3)
        histories.append(seen)
    assert histories[0] == histories[1]


@played(
    config=configuration(
        profiles=[
            {"schedulerName": "default-scheduler"},
            {
                "schedulerName": "packer",
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}],
                            }
                        },
                    }
                ],
                "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
            },
        ]
    )
)
async def test_two_profiles_each_with_its_own_plugins(world: World) -> None:
    await world.create(node("busy", cpu=8), node("idle", cpu=8), pod("there", cpu=4, on="busy"))
    await world.settle()
    await world.create(pod("spread", cpu=1), pod("packed", cpu=1, scheduler="packer"))
    await world.settle()
    assert [await world.node_of(name) for name in ("spread", "packed")] == ["idle", "busy"]
    await world.create(pod("lost", cpu=1, scheduler="nobody"))
    await world.settle()
    assert await world.condition("lost") is None


def test_two_schedulers_with_names_of_their_own_share_a_cluster() -> None:
    config = configuration(profiles=[{"schedulerName": "second"}])

    async def story(world: World) -> None:
        await world.create(*(node(f"n{n}", cpu=2) for n in range(4)))
        async with running(world, config) as second:
            for n in range(5):
                await world.create(pod(f"a-{n}", cpu=1))
                await world.settle(0.3)
                await world.create(pod(f"b-{n}", cpu=1, scheduler="second"))
                await world.settle(0.3)
            await world.settle(60)
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 8
            # Each sees what the other has done. If both decided at the same moment, nobody would keep them from it.
            assert await world.overcommitted() == []
            check(second)

    play(story)


@played(schedulers=0)
async def test_a_new_scheduler_goes_on_with_the_nominations_of_the_last_one(world: World) -> None:
    async with running(world):
        await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1, grace_s=30))
        await world.settle()
        await world.create(pod("high", cpu=2, priority=100))
        await world.settle()
        assert (await world.pod("high")).status.nominated_node_name == "n1"
    async with running(world) as second:
        await world.create(pod("thief", cpu=2, priority=50))
        await world.settle()
        await world.delete("low")
        await world.settle(30)
        assert await world.node_of("high") == "n1"
        assert await world.node_of("thief") == ""
        check(second)


def test_a_new_scheduler_finds_what_the_last_one_had_only_assumed() -> None:
    class Cut:
        """A way to the API that ends with the first scheduler: its bindings never arrive."""

        def __init__(self, inner: Client) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
            await asyncio.Event().wait()

    async def story(world: World) -> None:
        async with running(world, client=Cut(world.client)) as first:  # type: ignore[arg-type]
            await world.create(node("n1", cpu=2), *(pod(f"web-{n}", cpu=1) for n in range(3)))
            await world.settle()
            assert len(first.assumed_pods) == 2
        async with running(world) as second:
            await world.settle()
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 2
            assert len(second.assumed_pods) == 0

    play(story, schedulers=0)
