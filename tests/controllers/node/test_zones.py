"""The states of zones, and what follows for evictions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node
from mooring.api.well_known import EXCLUDE_DISRUPTION_LABEL
from mooring.controllers.node.zones import (
    ClusterTransition,
    EvictionRates,
    TimedQueue,
    ZoneCounts,
    Zones,
    ZoneState,
    zone_of,
    zone_state,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run

RATES = EvictionRates(normal_per_s=0.1, secondary_per_s=0.01, large_zone=50, unhealthy_share=0.55)
Play = Callable[[VirtualClock, TimedQueue, list[str]], Awaitable[None]]


def node(name: str, zone: str = "a", **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels={"topology.kubernetes.io/zone": zone, **labels}))


def key(zone: str) -> str:
    return zone_of(node("any", zone))


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        pytest.param(3, 0, ZoneState.NORMAL, id="all well"),
        pytest.param(1, 2, ZoneState.NORMAL, id="two are never a disruption"),
        pytest.param(2, 3, ZoneState.PARTIAL_DISRUPTION, id="three of five are"),
        pytest.param(9, 11, ZoneState.PARTIAL_DISRUPTION, id="exactly the threshold"),
        pytest.param(10, 11, ZoneState.NORMAL, id="less than the threshold"),
        pytest.param(0, 1, ZoneState.FULL_DISRUPTION, id="no node is ready"),
    ],
)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    assert zone_state(ZoneCounts(ready, not_ready), RATES.unhealthy_share) is state


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        pytest.param({}, "", id="neither"),
        pytest.param({"topology.kubernetes.io/zone": "z"}, ":\0:z", id="a zone"),
        pytest.param({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, "r:\0:z", id="both"),
        pytest.param(
            {"failure-domain.beta.kubernetes.io/zone": "old", "topology.kubernetes.io/zone": "new"},
            ":\0:old",
            id="the old label counts first",
        ),
    ],
)
def test_the_name_of_a_zone(labels: dict[str, str], name: str) -> None:
    assert zone_of(Node(metadata=ObjectMeta(labels=labels))) == name


def test_one_zone_down_and_the_other_well_goes_on_at_the_normal_rate() -> None:
    zones = Zones(RATES)
    zones.count(node("a1"), False)
    zones.count(node("b1", "b"), True)
    update = zones.update_states()
    assert update.transition is ClusterTransition.NOTHING
    assert update.rates_per_s == {key("a"): 0.1, key("b"): 0.1}
    assert dict(zones.states()) == {key("a"): ZoneState.FULL_DISRUPTION, key("b"): ZoneState.NORMAL}
    assert zones.update_states().rates_per_s == {}


@pytest.mark.parametrize(
    ("size", "rate_per_s"),
    [pytest.param(50, 0.0, id="a small zone stops"), pytest.param(51, 0.01, id="a large zone slows down")],
)
def test_a_partly_disrupted_zone(size: int, rate_per_s: float) -> None:
    zones = Zones(RATES)
    for number in range(size):
        zones.count(node(f"n{number}"), number % 3 == 0)
    assert zones.update_states().rates_per_s == {key("a"): rate_per_s}


def test_all_zones_down_stops_everything_until_one_node_is_back() -> None:
    zones = Zones(RATES)
    zones.count(node("a1"), True)
    zones.count(node("b1", "b"), True)
    zones.update_states()
    zones.count(node("a1"), False)
    zones.count(node("b1", "b"), False)
    down = zones.update_states()
    assert (down.transition, down.rates_per_s) == (ClusterTransition.ALL_DOWN, {key("a"): 0.0, key("b"): 0.0})
    assert zones.update_states().transition is ClusterTransition.NOTHING
    zones.count(node("b1", "b"), True)
    back = zones.update_states()
    assert (back.transition, back.rates_per_s) == (ClusterTransition.SOME_READY_AGAIN, {key("a"): 0.1, key("b"): 0.1})


def test_excluded_nodes_do_not_count() -> None:
    zones = Zones(RATES)
    zones.count(node("n1"), True)
    zones.count(node("n2", **{EXCLUDE_DISRUPTION_LABEL: ""}), False)
    assert zones.update_states().transition is ClusterTransition.NOTHING
    assert dict(zones.states()) == {key("a"): ZoneState.NORMAL}


def test_a_zone_without_nodes_is_forgotten() -> None:
    zones = Zones(RATES)
    zones.count(node("n1"), True)
    zones.update_states()
    zones.forget("n1")
    zones.update_states()
    assert not zones.is_known(key("a"))


def play(story: Play, rate_per_s: float = 1.0) -> list[str]:
    clock, handled = VirtualClock(), list[str]()

    async def main() -> None:
        await story(clock, TimedQueue(clock, rate_per_s), handled)

    run(main(), clock)
    return handled


async def drain(clock: VirtualClock, queue: TimedQueue, handled: list[str], for_s: float) -> None:
    async def attempt(name: str) -> float | None:
        handled.append(f"{name} at {clock.now_s():.1f}")
        return None

    for _ in range(round(for_s * 8)):
        await queue.handle(attempt)
        await clock.wait(0.125)


def test_names_are_handled_one_by_one_at_the_rate() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        for name in ("a", "b", "c"):
            assert queue.add(name)
        await drain(clock, queue, handled, 2.5)
        assert len(queue) == 0

    assert play(story) == ["a at 0.0", "b at 1.0", "c at 2.0"]


def test_a_handled_name_is_not_taken_again_until_it_was_removed() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        await drain(clock, queue, handled, 2)
        assert not queue.add("a")
        assert queue.remove("a")
        assert not queue.remove("a")
        assert queue.add("a")
        await drain(clock, queue, handled, 1)

    assert play(story) == ["a at 0.0", "a at 2.0"]


def test_a_rate_of_zero_keeps_the_names() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        queue.set_rate(0.0)
        await drain(clock, queue, handled, 5)
        assert len(queue) == 1
        queue.set_rate(1.0)
        await drain(clock, queue, handled, 2)

    assert play(story) == ["a at 6.0"]


def test_a_change_of_the_rate_adds_no_token() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        queue.add("b")
        await drain(clock, queue, handled, 0.125)
        queue.set_rate(0.5)
        await drain(clock, queue, handled, 3)

    assert play(story) == ["a at 0.0", "b at 2.1"]


def test_what_fails_is_tried_again_after_a_while() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        async def fail_once(name: str) -> float | None:
            handled.append(f"{name} at {clock.now_s():.1f}")
            return 0.5 if len(handled) == 1 else None

        queue.add("a")
        for _ in range(20):
            await queue.handle(fail_once)
            await clock.wait(0.125)

    assert play(story, rate_per_s=100.0) == ["a at 0.0", "a at 0.5"]
