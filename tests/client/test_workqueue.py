"""WorkQueue: each key is processed by one worker at a time, and again if it was added meanwhile.

Workers: outcomes of reconciliations, and failures.
TokenBucket: a burst, and then a constant rate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.client.ratelimit import TokenBucket
from mooring.client.workqueue import DONE, Failed, Later, Outcome, WorkQueue, run_workers
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup

Queue = WorkQueue[str]
Scenario = Callable[[Queue, VirtualClock], Awaitable[None]]


def run_scenario(scenario: Scenario) -> None:
    """Run a scenario with a queue on virtual time."""
    clock = VirtualClock()

    async def main() -> None:
        await scenario(Queue("test", clock, Entropy(1)), clock)

    run(main(), clock)


def all_ready(queue: Queue) -> list[str]:
    keys = []
    while (key := queue.get_nowait()) is not None:
        keys.append(key)
    return keys


def test_keys_are_returned_once_in_the_order_in_which_they_were_added() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        for key in ("b", "a", "b", "c", "a"):
            queue.add(key)
        assert len(queue) == 3
        assert all_ready(queue) == ["b", "a", "c"]
        assert queue.get_nowait() is None

    run_scenario(scenario)


def test_a_key_added_during_its_processing_is_returned_again_after_done() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        assert queue.get_nowait() is None
        queue.done("a")
        assert all_ready(queue) == ["a"]
        queue.done("a")
        assert len(queue) == 0

    run_scenario(scenario)


def test_done_of_a_key_that_is_not_in_work_is_an_assertion_error() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        with pytest.raises(AssertionError, match="'a' is not in work in queue 'test'"):
            queue.done("a")

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("delays_s", "ready_at_s"),
    [
        pytest.param([5.0], 5.0, id="one delay"),
        pytest.param([5.0, 9.0], 5.0, id="a later time is ignored"),
        pytest.param([5.0, 2.0], 2.0, id="an earlier time applies"),
        pytest.param([0.0], 0.0, id="no delay"),
        pytest.param([-1.0], 0.0, id="a negative delay"),
        pytest.param([7.0, 0.0], 0.0, id="no delay for a waiting key"),
    ],
)
def test_add_after_uses_the_earliest_time(delays_s: list[float], ready_at_s: float) -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        for delay_s in delays_s:
            queue.add_after("a", delay_s)
        assert await queue.get() == "a"
        assert clock.now_s() == ready_at_s

    run_scenario(scenario)


def test_waiting_keys_are_returned_in_order_of_their_times() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        for key, delay_s in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("also a", 1.0)):
            queue.add_after(key, delay_s)
        got = [(await queue.get(), clock.now_s()) for _ in range(4)]
        assert got == [("a", 1.0), ("also a", 1.0), ("b", 2.0), ("c", 3.0)]
        assert queue.statistics()["waiting"] == 0

    run_scenario(scenario)


def test_the_delay_of_a_key_doubles_with_each_failure_until_forget() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        waits_s = []
        for _ in range(4):
            began_s = clock.now_s()
            queue.add_rate_limited("a")
            await queue.get()
            queue.done("a")
            waits_s.append(clock.now_s() - began_s)
        assert waits_s == pytest.approx([0.005, 0.01, 0.02, 0.04])
        assert queue.num_requeues("a") == 4
        queue.forget("a")
        assert queue.num_requeues("a") == 0

    run_scenario(scenario)


def test_rate_limited_keys_are_limited_to_a_burst_of_100_and_10_per_second() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        for number in range(120):
            queue.add_rate_limited(str(number))
        await clock.wait(0.005)
        assert len(all_ready(queue)) == 100
        await clock.wait(0.995)
        assert len(all_ready(queue)) == 10
        await clock.wait(1.0)
        assert len(all_ready(queue)) == 10

    run_scenario(scenario)


def test_a_worker_waits_for_a_key() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        got: list[str | None] = []

        async def work() -> None:
            got.append(await queue.get())

        async with TaskGroup("workers") as group:
            for number in range(2):
                group.start(work(), name=str(number))
            await clock.wait(1)
            queue.add("a")
            queue.add("b")
        assert got == ["a", "b"]

    run_scenario(scenario)


def test_a_key_is_not_lost_if_the_woken_worker_is_cancelled() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        got: list[str | None] = []

        async def work() -> None:
            got.append(await queue.get())

        async with TaskGroup("workers") as group:
            cancelled = group.start(work(), name="cancelled")
            group.start(work(), name="other")
            await clock.wait(1)
            queue.add("a")
            cancelled.cancel()
        assert got == ["a"]

    run_scenario(scenario)


def test_a_queue_that_is_shut_down_returns_ready_keys_and_ignores_new_ones() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        queue.add("a")
        queue.add_after("late", 5.0)
        queue.shut_down()
        queue.add("b")
        queue.add_after("c", 1.0)
        assert queue.is_shut_down
        assert [await queue.get(), await queue.get()] == ["a", None]
        await clock.wait(10)
        assert await queue.get() is None

    run_scenario(scenario)


def test_shut_down_ends_waiting_calls_of_get() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        async with TaskGroup("workers") as group:
            workers = [group.start(queue.get(), name=str(number)) for number in range(3)]
            await clock.wait(1)
            queue.shut_down()
        assert [worker.result() for worker in workers] == [None, None, None]

    run_scenario(scenario)


def test_wait_drained_waits_for_ready_keys_and_keys_in_work() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        async def work() -> None:
            while (key := await queue.get()) is not None:
                await clock.wait(2)
                queue.done(key)

        for key in "abc":
            queue.add(key)
        async with TaskGroup("workers") as group:
            group.start(work(), name="worker")
            await clock.wait(1)
            queue.add("a")  # in work now, so it is processed again
            queue.shut_down()
            await queue.wait_drained()
            assert clock.now_s() == 8.0
        await queue.wait_drained()

    run_scenario(scenario)


def test_wait_drained_requires_shut_down() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        with pytest.raises(AssertionError, match="is not shut down"):
            await queue.wait_drained()

    run_scenario(scenario)


def test_statistics_contain_queue_and_work_durations() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        queue.add("a")
        queue.add("b")
        queue.add_after("c", 60.0)
        queue.add_rate_limited("d")
        await clock.wait(2)
        queue.get_nowait()
        await clock.wait(3)
        queue.done("a")
        queue.get_nowait()
        await clock.wait(4)
        assert queue.backlog == 2
        assert queue.statistics() == pytest.approx(
            {
                "depth": 1,
                "waiting": 1,
                "in_work": 1,
                "adds": 3,
                "retries": 1,
                "gotten": 2,
                "done": 1,
                "queue_duration_s": 2 + 5,
                "work_duration_s": 3,
                "unfinished_work_s": 4,
                "longest_running_s": 4,
            }
        )

    run_scenario(scenario)


def test_random_adds_and_failures_never_lose_a_key_or_process_it_concurrently() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        dice = Entropy(7)
        in_work: set[str] = set()
        seen_after: dict[str, float] = {}
        added_at: dict[str, float] = {}

        async def work() -> None:
            while (key := await queue.get()) is not None:
                assert key not in in_work, f"{key} is processed by two workers"
                in_work.add(key)
                seen_after[key] = clock.now_s()
                await clock.wait(dice.uniform(0, 2))
                in_work.remove(key)
                if dice.integer_below(5) == 0:
                    queue.add_rate_limited(key)
                queue.done(key)

        async with TaskGroup("workers") as group:
            for number in range(4):
                group.start(work(), name=str(number))
            for _ in range(500):
                key = dice.choose("abcdefgh")
                added_at[key] = clock.now_s()
                if dice.integer_below(3) == 0:
                    queue.add_after(key, dice.uniform(0, 1))
                else:
                    queue.add(key)
                await clock.wait(dice.uniform(0, 0.5))
            await clock.wait(100)
            queue.shut_down()
        assert all(seen_after[key] >= at_s for key, at_s in added_at.items())

    run_scenario(scenario)


def test_get_works_after_a_cancelled_get() -> None:
    async def scenario(queue: Queue, clock: VirtualClock) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await queue.get()
        queue.add("a")
        assert await queue.get() == "a"

    run_scenario(scenario)


class Reconciler:
    """Returns or raises the next outcome, and records the keys and times of its calls."""

    def __init__(self, clock: VirtualClock, outcomes: Sequence[Outcome | Exception], takes_s: float = 0.0) -> None:
        self._clock = clock
        self._outcomes = list(outcomes)
        self._takes_s = takes_s
        self.calls: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> Outcome:
        self.calls.append((key, round(self._clock.now_s(), 3)))
        if self._takes_s:
            await self._clock.wait(self._takes_s)
        outcome = self._outcomes.pop(0) if self._outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def reconciled(
    keys: Sequence[str], outcomes: Sequence[Outcome | Exception], *, workers: int = 1, takes_s: float = 0.0
) -> tuple[list[tuple[str, float]], WorkQueue[str]]:
    """The time at which each key was reconciled, and the queue at the end."""
    clock = VirtualClock()

    async def main() -> tuple[list[tuple[str, float]], WorkQueue[str]]:
        queue: WorkQueue[str] = WorkQueue("boats", clock, Entropy(1))
        reconciler = Reconciler(clock, outcomes, takes_s)
        async with TaskGroup("controller") as group:
            run_workers(queue, reconciler, workers=workers, group=group)
            for key in keys:
                queue.add(key)
            await clock.wait(1000)
            queue.shut_down()
        return reconciler.calls, queue

    return run(main(), clock)


@pytest.mark.parametrize(
    ("outcomes", "called_at_s", "requeues"),
    [
        pytest.param([DONE], [0.0], 0, id="done"),
        pytest.param([Later(30.0)], [0.0, 30.0], 0, id="later"),
        pytest.param([Failed("no node")] * 2, [0.0, 0.005, 0.015], 0, id="failed twice, then done"),
        pytest.param([RuntimeError("oops")], [0.0, 0.005], 0, id="an exception"),
        pytest.param(
            [Failed("no"), Later(1.0), Failed("no")],
            [0.0, 0.005, 1.005, 1.01],
            0,
            id="the delay is reset after a success",
        ),
    ],
)
def test_outcomes_determine_when_a_key_is_reconciled_again(
    outcomes: list[Outcome | Exception], called_at_s: list[float], requeues: int
) -> None:
    calls, queue = reconciled(["a"], outcomes)
    assert calls == [("a", at_s) for at_s in called_at_s]
    assert queue.num_requeues("a") == requeues
    assert queue.statistics()["in_work"] == 0


def test_an_exception_is_logged_with_its_key(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reconciled(["default/web"], [RuntimeError("oops")])
    (record,) = caplog.records
    assert record.getMessage() == "boats: default/web could not be reconciled; trying again"
    assert record.exc_info is not None


def test_the_number_of_workers_limits_concurrent_keys() -> None:
    calls, _ = reconciled(["a", "b", "c"], [], workers=2, takes_s=10.0)
    assert calls == [("a", 0.0), ("b", 0.0), ("c", 10.0)]


def test_run_workers_rejects_zero_workers() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with TaskGroup("controller") as group:
            run_workers(WorkQueue[str]("boats", clock, Entropy(1)), Reconciler(clock, []), workers=0, group=group)

    with pytest.raises(BaseExceptionGroup) as caught:
        run(main(), clock)
    assert "would never be emptied" in str(caught.value.exceptions[0])


def test_a_token_bucket_allows_a_burst_and_then_one_per_interval() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=0.5, burst=3)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    clock.advance_to(1.9)
    assert not bucket.try_take()
    clock.advance_to(2.0)
    assert [bucket.try_take() for _ in range(2)] == [True, False]


def test_a_token_bucket_never_exceeds_its_burst() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=10, burst=2)
    clock.advance_to(1_000.0)
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]


def test_a_reservation_waits_for_earlier_reservations() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=10, burst=2)
    assert [bucket.reserve_s() for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    clock.advance_to(0.1)
    assert bucket.reserve_s() == pytest.approx(0.2)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_token_bucket_rejects_a_rate_or_burst_of_zero(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1, at more than 0"):
        TokenBucket(VirtualClock(), rate_per_s=rate, burst=burst)


@given(st.lists(st.floats(0, 5), max_size=30), st.integers(1, 5))
def test_a_token_bucket_never_allows_more_than_burst_and_refill(pauses_s: list[float], burst: int) -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=1.0, burst=burst)
    taken = 0
    for pause_s in pauses_s:
        clock.advance_to(clock.now_s() + pause_s)
        taken += bucket.try_take()
        assert taken <= burst + clock.now_s() + 1e-6
