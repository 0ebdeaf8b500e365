from __future__ import annotations

import asyncio

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kit.worker_pool import WorkerPool


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
        assert pool.statistics().waiting == 1
        async with TaskGroup("test") as group:
            pool.open(group)
        assert pool.statistics() == type(pool.statistics())(running=0, waiting=0, started=1, running_max=1)

    run(main())
    assert done == ["job"]
