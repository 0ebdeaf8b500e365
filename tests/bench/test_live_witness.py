"""The witness: it believes the store and nobody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bench.live_witness import Witness
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore

PENDING = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{},"status":{}}'
BOUND = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1"},"status":{}}'
RUNNING = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}'
REFUSED = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{},"status":{"conditions":[{"reason":"Unschedulable"}]}}'
KEY = "/registry/pods/shop/a"


def watched(story: Callable[[MemoryStore, Witness, VirtualClock], Awaitable[None]]) -> None:
    """Plays a story on virtual time, with a witness who watches."""
    clock = VirtualClock()

    async def play() -> None:
        store = MemoryStore()
        witness = Witness(store)
        async with TaskGroup("test") as group:
            group.start_background(witness.run(), name="witness")
            await witness.watches.wait()
            await story(store, witness, clock)

    run(play(), clock)


@pytest.mark.parametrize(
    ("values", "expected", "left"),
    [
        pytest.param([PENDING, BOUND], "placed", 0, id="a node makes a pod placed"),
        pytest.param([PENDING], "placed", 1, id="being created does not"),
        pytest.param([PENDING, REFUSED], "refused", 0, id="its status makes a pod refused"),
        pytest.param([PENDING, REFUSED], "placed", 1, id="a refused pod is not placed"),
        pytest.param([PENDING, REFUSED, BOUND], "placed", 0, id="refused first and placed then is placed"),
        pytest.param([PENDING, BOUND], "refused", 1, id="a placed pod is not refused"),
    ],
)
def test_when_a_pod_is_decided(values: list[bytes], expected: str, left: int) -> None:
    async def story(store: MemoryStore, witness: Witness, clock: VirtualClock) -> None:
        witness.expect([KEY] if expected == "placed" else [], [KEY] if expected == "refused" else [])
        for value in values:
            await store.put(KEY, value)
        assert await witness.wait_until_decided(10.0) == left

    watched(story)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        pytest.param([PENDING, BOUND, RUNNING], 1, id="what happens to a bound pod is no second binding"),
        pytest.param([PENDING, BOUND, PENDING, BOUND], 2, id="a node that is taken away and given again is"),
        pytest.param([RUNNING], 0, id="a pod that came with its node was not bound here"),
    ],
)
def test_bindings_are_counted(values: list[bytes], count: int) -> None:
    async def story(store: MemoryStore, witness: Witness, clock: VirtualClock) -> None:
        for value in values:
            await store.put(KEY, value)
        await clock.wait(1.0)
        assert witness.bindings.get(KEY, 0) == count
        assert (KEY in witness.bound_ns) == (count > 0)

    watched(story)


def test_who_expects_nobody_need_not_wait() -> None:
    async def story(store: MemoryStore, witness: Witness, clock: VirtualClock) -> None:
        witness.expect([], [])
        assert await witness.wait_until_decided(10.0) == 0
        assert clock.now_s() == 0.0

    watched(story)


def test_what_was_given_up_is_expected_no_more() -> None:
    async def story(store: MemoryStore, witness: Witness, clock: VirtualClock) -> None:
        witness.expect([KEY], [])
        assert await witness.wait_until_decided(10.0) == 1
        assert await witness.wait_until_decided(10.0) == 0

    watched(story)
