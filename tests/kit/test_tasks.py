"""Task groups end after their tasks and lose no exception; worker pools limit running jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import StrayCancellationError, TaskGroup, WorkerPool, run_bounded


class Journal:
    """What happened, in order, with the virtual time of it."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []

    def write(self, line: str) -> None:
        self.lines.append((asyncio.get_running_loop().time(), line))

    async def work(self, name: str, takes_s: float) -> str:
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            self.write(f"{name} cancelled")
            raise
        self.write(f"{name} done")
        return name

    async def fail(self, name: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self.write(f"{name} failed")
        raise ValueError(name)


FOREVER_S = 1e9


def test_the_block_is_left_when_every_task_has_ended() -> None:
    async def main(journal: Journal) -> list[str]:
        async with TaskGroup("crew") as group:
            slow = group.start(journal.work("slow", 5), name="slow")
            fast = group.start(journal.work("fast", 1), name="fast")
            journal.write("body over")
        journal.write("left")
        return [slow.result(), fast.result()]

    journal = Journal()
    assert run(main(journal)) == ["slow", "fast"]
    assert journal.lines == [(0, "body over"), (1, "fast done"), (5, "slow done"), (5, "left")]


def test_a_task_is_named_after_its_group_and_itself() -> None:
    async def main() -> str:
        async with TaskGroup("kubelet") as group:
            return group.start(asyncio.sleep(0), name="pods").get_name()

    assert run(main()) == "kubelet/pods"


def test_the_first_failure_cancels_the_rest_in_the_order_of_starting_and_the_body() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            for number in range(20):
                group.start(journal.work(f"worker {number}", FOREVER_S), name=str(number))
            group.start(journal.fail("culprit", 1), name="culprit")
            await journal.work("body", FOREVER_S)

    journal = Journal()
    with pytest.raises(ExceptionGroup, match="task group 'crew' failed") as group:
        run(main(journal))
    assert [repr(error) for error in group.value.exceptions] == ["ValueError('culprit')"]
    assert group.value.exceptions[0].__notes__ == ["in task 'crew/culprit'"]
    cancelled = [line for _, line in journal.lines if line.startswith("worker")]
    assert cancelled == [f"worker {number} cancelled" for number in range(20)]
    assert (1, "body cancelled") in journal.lines


def test_all_failures_are_raised_together_those_of_the_cleanup_too() -> None:
    async def fail_in_cleanup() -> None:
        try:
            await asyncio.sleep(FOREVER_S)
        finally:
            raise OSError("cleanup")

    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start(fail_in_cleanup(), name="cleaner")
            group.start(journal.fail("one", 1), name="one")
            group.start(journal.fail("two", 1), name="two")

    with pytest.raises(ExceptionGroup) as group:
        run(main(Journal()))
    assert sorted(str(error) for error in group.value.exceptions) == ["cleanup", "one", "two"]


def test_an_error_of_the_body_cancels_the_tasks_and_is_raised_in_the_group() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start(journal.work("worker", FOREVER_S), name="worker")
            await asyncio.sleep(1)
            raise LookupError("body")

    journal = Journal()
    with pytest.raises(ExceptionGroup) as group:
        run(main(journal))
    assert [repr(error) for error in group.value.exceptions] == ["LookupError('body')"]
    assert journal.lines == [(1, "worker cancelled")]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["interrupt", "exit"])
def test_what_ends_the_program_is_raised_bare(error: BaseException) -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start(journal.work("worker", FOREVER_S), name="worker")
            await asyncio.sleep(1)
            raise error

    journal = Journal()
    with pytest.raises(type(error)):
        run(main(journal))
    assert journal.lines == [(1, "worker cancelled")]


def test_a_task_may_fail_after_the_body_is_over() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start(journal.work("worker", FOREVER_S), name="worker")
            group.start(journal.fail("late", 3), name="late")

    journal = Journal()
    with pytest.raises(ExceptionGroup):
        run(main(journal))
    assert journal.lines == [(3, "late failed"), (3, "worker cancelled")]


def test_cancelling_one_task_is_no_failure() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            doomed = group.start(journal.work("doomed", FOREVER_S), name="doomed")
            group.start(journal.work("other", 2), name="other")
            await asyncio.sleep(1)
            doomed.cancel()

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(1, "doomed cancelled"), (2, "other done")]


# ------------------------------------------------------------------------------------------- background


def test_background_tasks_are_cancelled_when_the_others_are_done() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start_background(journal.work("lamp", FOREVER_S), name="lamp")
            group.start_background(journal.work("radio", FOREVER_S), name="radio")
            group.start(journal.work("worker", 5), name="worker")
            await asyncio.sleep(2)
        journal.write("left")

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(5, "worker done"), (5, "lamp cancelled"), (5, "radio cancelled"), (5, "left")]


def test_background_tasks_live_as_long_as_the_body() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start_background(journal.work("lamp", FOREVER_S), name="lamp")
            await asyncio.sleep(2)

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(2, "lamp cancelled")]


def test_a_background_task_that_fails_fails_the_group() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start_background(journal.fail("lamp", 1), name="lamp")
            await journal.work("body", FOREVER_S)

    journal = Journal()
    with pytest.raises(ExceptionGroup) as group:
        run(main(journal))
    assert group.value.exceptions[0].__notes__ == ["in task 'crew/lamp'"]
    assert journal.lines == [(1, "lamp failed"), (1, "body cancelled")]


@pytest.mark.parametrize("is_background", [False, True])
def test_a_task_that_ends_cancelled_and_was_not_cancelled_fails_the_group(is_background: bool) -> None:
    async def stray() -> None:
        await asyncio.sleep(1)
        raise asyncio.CancelledError

    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            (group.start_background if is_background else group.start)(stray(), name="lamp")
            await journal.work("body", FOREVER_S)

    journal = Journal()
    with pytest.raises(ExceptionGroup) as group:
        run(main(journal))
    (error,) = group.value.exceptions
    assert isinstance(error, StrayCancellationError)
    assert error.__notes__ == ["in task 'crew/lamp'"]
    assert journal.lines == [(1, "body cancelled")]


def test_a_task_that_awaits_a_cancelled_future_fails_the_group() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await future

        async with TaskGroup("crew") as group:
            group.start(wait(), name="waiter")
            await asyncio.sleep(1)
            future.cancel()
            await asyncio.sleep(FOREVER_S)

    with pytest.raises(ExceptionGroup) as group:
        run(main())
    assert isinstance(group.value.exceptions[0], StrayCancellationError)


def test_a_task_that_was_cancelled_by_its_owner_does_not_fail_the_group() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            task = group.start(journal.work("worker", FOREVER_S), name="worker")
            await asyncio.sleep(1)
            task.cancel()
        journal.write("left")

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(1, "worker cancelled"), (1, "left")]


def test_a_task_may_start_others_in_its_own_group() -> None:
    async def main(journal: Journal) -> None:
        async def parent(group: TaskGroup) -> None:
            await asyncio.sleep(1)
            group.start(journal.work("child", 1), name="child")

        async with TaskGroup("crew") as group:
            group.start_background(journal.work("lamp", FOREVER_S), name="lamp")
            group.start(parent(group), name="parent")

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(2, "child done"), (2, "lamp cancelled")]


# ---------------------------------------------------------------------------------------- cancellation


async def cancelled_after(body: Callable[[], Awaitable[None]], after_s: float) -> asyncio.Task[None]:
    async def host() -> None:
        await body()

    task = asyncio.get_running_loop().create_task(host())
    await asyncio.sleep(after_s)
    task.cancel()
    await asyncio.wait([task])
    return task


@pytest.mark.parametrize("body_takes_s", [0.0, FOREVER_S], ids=["while waiting for tasks", "while in the body"])
def test_a_cancellation_from_outside_ends_the_tasks_and_passes_through(body_takes_s: float) -> None:
    async def main(journal: Journal) -> asyncio.Task[None]:
        async def body() -> None:
            async with TaskGroup("crew") as group:
                group.start(journal.work("worker", FOREVER_S), name="worker")
                await asyncio.sleep(body_takes_s)

        return await cancelled_after(body, 3)

    journal = Journal()
    assert run(main(journal)).cancelled()
    assert journal.lines == [(3, "worker cancelled")]


def test_when_tasks_fail_while_a_cancellation_passes_through_the_errors_are_raised_and_it_stays_pending() -> None:
    async def main() -> tuple[list[str], bool]:
        seen: list[str] = []

        async def fail_in_cleanup() -> None:
            try:
                await asyncio.sleep(FOREVER_S)
            finally:
                raise OSError("cleanup")

        async def body() -> None:
            try:
                async with TaskGroup("crew") as group:
                    group.start(fail_in_cleanup(), name="worker")
            except* OSError:
                seen.append("error seen")
            await asyncio.sleep(1)
            seen.append("never reached")

        task = await cancelled_after(body, 3)
        return seen, task.cancelled()

    assert run(main()) == (["error seen"], True)


def test_a_failure_of_an_inner_group_does_not_count_as_cancellation_of_its_host() -> None:
    async def main(journal: Journal) -> int:
        async with TaskGroup("outer") as outer:
            outer.start(journal.work("outer worker", 10), name="worker")
            with pytest.raises(ExceptionGroup):
                async with TaskGroup("inner") as inner:
                    inner.start(journal.fail("inner worker", 1), name="worker")
                    await asyncio.sleep(FOREVER_S)
            await journal.work("body", 1)
        host = asyncio.current_task()
        assert host is not None
        return host.cancelling()

    journal = Journal()
    assert run(main(journal)) == 0
    assert journal.lines == [(1, "inner worker failed"), (2, "body done"), (10, "outer worker done")]


def test_a_failure_of_an_outer_group_passes_through_an_inner_one() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("outer") as outer:
            outer.start(journal.fail("outer worker", 1), name="worker")
            async with TaskGroup("inner") as inner:
                inner.start(journal.work("inner worker", FOREVER_S), name="worker")

    journal = Journal()
    with pytest.raises(ExceptionGroup, match="task group 'outer' failed") as group:
        run(main(journal))
    assert [repr(error) for error in group.value.exceptions] == ["ValueError('outer worker')"]
    assert journal.lines == [(1, "outer worker failed"), (1, "inner worker cancelled")]


def test_both_groups_failing_at_once_lose_nothing() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("outer") as outer:
            outer.start(journal.fail("outer worker", 1), name="worker")
            async with TaskGroup("inner") as inner:
                inner.start(journal.fail("inner worker", 1), name="worker")
                await asyncio.sleep(FOREVER_S)

    with pytest.raises(ExceptionGroup) as group:
        run(main(Journal()))
    inner, outer = group.value.split(lambda error: "inner worker" in str(error))
    assert inner is not None
    assert outer is not None


def test_the_group_can_be_cancelled_by_hand_and_starts_nothing_after() -> None:
    async def main(journal: Journal) -> None:
        async with TaskGroup("crew") as group:
            group.start(journal.work("worker", FOREVER_S), name="worker")
            await asyncio.sleep(1)
            group.cancel()
            with pytest.raises(RuntimeError, match="'crew' is winding up and starts no 'late'"):
                group.start(journal.work("late", 1), name="late")
            await journal.work("body", 1)

    journal = Journal()
    run(main(journal))
    assert journal.lines == [(1, "worker cancelled"), (2, "body done")]


# ---------------------------------------------------------------------------------------------- names


def test_nothing_starts_without_a_name_or_outside_the_block() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="was not entered"):
            TaskGroup("crew").start(asyncio.sleep(0), name="early")
        async with TaskGroup("crew") as group:
            with pytest.raises(RuntimeError, match="needs a name"):
                group.start(asyncio.sleep(0), name="")
        with pytest.raises(RuntimeError, match="winding up"):
            group.start(asyncio.sleep(0), name="late")
        with pytest.raises(AssertionError, match="needs a name"):
            TaskGroup("")

    run(main())


# ------------------------------------------------------------------------------------------ run_bounded


@given(takes_s=st.lists(st.integers(0, 5), max_size=12), limit=st.integers(1, 4))
def test_bounded_work_keeps_its_limit_and_its_order(takes_s: list[int], limit: int) -> None:
    at_work = 0
    at_work_max = 0

    async def work(item: tuple[int, int]) -> int:
        nonlocal at_work, at_work_max
        at_work += 1
        at_work_max = max(at_work_max, at_work)
        await asyncio.sleep(item[1])
        at_work -= 1
        return item[0]

    results = run(run_bounded(work, enumerate(takes_s), limit=limit, name="bounded"))
    assert results == list(range(len(takes_s)))
    assert at_work_max <= limit
    if all(takes_s):
        assert at_work_max == min(limit, len(takes_s))


def test_a_failure_of_bounded_work_cancels_what_runs_and_starts_no_more() -> None:
    async def main(journal: Journal) -> None:
        async def work(name: str) -> None:
            if name == "bad":
                await journal.fail(name, 1)
            await journal.work(name, 2)

        await run_bounded(work, ["good", "bad", "next", "last"], limit=2, name="bounded")

    journal = Journal()
    with pytest.raises(ExceptionGroup, match="'bounded' failed"):
        run(main(journal))
    assert journal.lines == [(1, "bad failed"), (1, "good cancelled")]


def test_no_more_jobs_are_under_way_than_the_limit_says() -> None:
    clock, running, most = VirtualClock(), 0, 0

    async def job() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await clock.wait(1)
        running -= 1

    async def main() -> float:
        async with TaskGroup("test") as group:
            pool = WorkerPool("jobs", limit=3)
            pool.open(group)
            for _ in range(9):
                pool.start(job)
        return clock.now_s()

    assert run(main(), clock) == 3.0  # three rounds of three
    assert most == 3


def test_jobs_that_never_wait_are_done_by_one_worker_in_their_order() -> None:
    done: list[int] = []
    workers: set[str] = set()

    async def main() -> None:
        async with TaskGroup("test") as group:
            pool = WorkerPool("jobs", limit=10)
            pool.open(group)
            for number in range(100):

                async def job(number: int = number) -> None:
                    done.append(number)
                    task = asyncio.current_task()
                    assert task is not None
                    workers.add(task.get_name())

                pool.start(job)

    run(main())
    assert done == list(range(100))
    assert len(workers) == 1


def test_a_job_that_waits_does_not_hold_up_those_behind_it() -> None:
    clock = VirtualClock()
    ends_s: dict[str, float] = {}

    async def job(name: str, wait_s: float) -> None:
        await clock.wait(wait_s)
        ends_s[name] = clock.now_s()

    async def main() -> None:
        async with TaskGroup("test") as group:
            pool = WorkerPool("jobs", limit=2)
            pool.open(group)
            pool.start(lambda: job("slow", 100))
            for name in ("a", "b"):
                pool.start(lambda name=name: job(name, 1))  # type: ignore[misc]

    run(main(), clock)
    assert ends_s == {"a": 1.0, "b": 2.0, "slow": 100.0}


def test_before_the_pool_is_open_jobs_stand_in_line() -> None:
    done: list[str] = []

    async def job() -> None:
        done.append("job")

    async def main() -> None:
        pool = WorkerPool("jobs", limit=1)
        pool.start(job)
        assert pool.waiting == 1
        async with TaskGroup("test") as group:
            pool.open(group)
        assert (pool.running, pool.waiting) == (0, 0)

    run(main())
    assert done == ["job"]
