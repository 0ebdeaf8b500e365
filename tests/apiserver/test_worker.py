"""The worker thread: large work runs in the thread, small work on the event loop."""

from __future__ import annotations

import gc
import threading

import pytest

from mooring.apiserver.worker import COLLECTION_DELAY_S, PAUSE_S_MAX, WORKER_BYTES_MIN, WorkerThread
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from tests.waiting import LIMIT_S


def thread_name() -> str:
    return threading.current_thread().name


def test_large_work_runs_in_the_thread_and_small_work_on_the_loop() -> None:
    async def main() -> list[str]:
        async with WorkerThread() as worker:
            return [await worker.run(size, thread_name) for size in (0, WORKER_BYTES_MIN - 1, WORKER_BYTES_MIN)]

    here = thread_name()
    assert run_real(main()) == [here, here, "apiserver-worker_0"]
    assert run(main()) == [here, here, here]


def test_the_loop_is_not_blocked_by_work_in_the_thread() -> None:
    may_end = threading.Event()

    def work(number: int) -> int:
        assert may_end.wait(LIMIT_S)
        return number

    async def main() -> list[int]:
        async with WorkerThread() as worker:
            async with TaskGroup("large") as group:
                large = [group.start(worker.run(WORKER_BYTES_MIN, work, number), name=str(number)) for number in (1, 2)]
                assert await worker.run(0, lambda: 3) == 3
                assert not any(each.done() for each in large)
                may_end.set()
            return [each.result() for each in large]

    assert run_real(main()) == [1, 2]


def test_an_error_is_raised_where_the_work_is_awaited() -> None:
    def fail() -> None:
        raise ValueError("as expected")

    async def main() -> None:
        async with WorkerThread() as worker:
            await worker.run(WORKER_BYTES_MIN, fail)

    with pytest.raises(ValueError, match="as expected"):
        run_real(main())


def test_garbage_collection_is_disabled_until_documents_of_large_work_are_freed() -> None:
    async def main() -> list[bool]:
        async with WorkerThread() as worker:
            found = [await worker.run(WORKER_BYTES_MIN, gc.isenabled), await worker.run(0, gc.isenabled)]
            await SystemClock().wait(COLLECTION_DELAY_S)
            return [*found, await worker.run(0, gc.isenabled)]

    assert run(main()) == [False, False, True]


def test_continuous_large_work_does_not_disable_garbage_collection_forever() -> None:
    async def main() -> int:
        async with WorkerThread() as worker:
            pauses = 0
            for _ in range(int(3 * PAUSE_S_MAX / COLLECTION_DELAY_S) * 2):
                await worker.run(WORKER_BYTES_MIN, lambda: None)
                await SystemClock().wait(COLLECTION_DELAY_S / 2)
                pauses += await worker.run(0, gc.isenabled)
            return pauses

    assert run(main()) == 3
    assert gc.isenabled()
