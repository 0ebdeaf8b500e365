"""Tasks in named groups that lose no exception, and worker pools.

    async with TaskGroup("kubelet") as group:
        group.start(run_pods(), name="pods")                            # the group waits for it
        group.start_background(report_status(), name="status")          # cancelled when the others are done

 1. The block ends only when every task of the group has ended.
 2. The first failure cancels the other tasks and the body; all failures are raised together, each with its task's name.
 3. A background task is cancelled when the body and all other tasks are done.
 4. A cancellation from outside is raised after the tasks have ended.
 5. Tasks are cancelled in the order in which they were started, so that a run can be replayed.
 6. A task that ends with a `CancelledError` although it was not cancelled has failed (`StrayCancellationError`). It may
    have awaited a future that was cancelled, or called code that raised the error. asyncio calls such a task cancelled;
    without this rule it would end silently.

asyncio's group keeps its tasks in a set, which breaks the fifth rule, and has no background tasks.

A `WorkerPool` runs jobs in a group, at most `limit` at a time, in the order of arrival. Its workers take one job after
the other, because a task costs as much as a job that does not wait, such as a binding through the loopback client. A
job must not raise: an exception ends the group.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class StrayCancellationError(RuntimeError):
    """A task ended with a `CancelledError`, and nothing had cancelled the task."""


def errors_in(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions of a group, and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from errors_in(error)
        else:
            yield error


class TaskGroup:
    """Tasks that end before the block does."""

    def __init__(self, name: str) -> None:
        assert name, "a task group needs a name"
        self.name = name
        self._host: asyncio.Task[Any] | None = None
        self._running: dict[asyncio.Task[Any], bool] = {}  # in the order of starting; is it a background task?
        self._foreground_running = 0
        self._errors: list[BaseException] = []
        self._is_body_over = False
        self._is_winding_up = False
        self._has_interrupted_host = False
        self._all_ended: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        assert self._host is None, f"task group {self.name!r} is entered a second time"
        self._host = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_body_over = True
        outside_cancellation = self._sort_out(error)
        if error is not None:
            self.cancel()
        self._release_background()
        while self._running:
            outside_cancellation = await self._wait_for_tasks() or outside_cancellation
        self._conclude(outside_cancellation)

    def start(self, work: Coroutine[Any, Any, Result], *, name: str) -> asyncio.Task[Result]:
        """Start a task that the group waits for."""
        return self._start(work, name, is_background=False)

    def start_background(self, work: Coroutine[Any, Any, Result], *, name: str) -> asyncio.Task[Result]:
        """Start a task that is cancelled when the others are done."""
        return self._start(work, name, is_background=True)

    def cancel(self) -> None:
        """Cancel all tasks, oldest first, and start no more. The body continues."""
        self._is_winding_up = True
        for task in list(self._running):
            task.cancel()

    # Tasks

    def _start(self, work: Coroutine[Any, Any, Result], name: str, *, is_background: bool) -> asyncio.Task[Result]:
        error = self._start_error(name)
        if error is not None:
            work.close()  # avoids the warning that it was never awaited
            raise RuntimeError(error)
        task = asyncio.get_running_loop().create_task(work, name=f"{self.name}/{name}")
        self._running[task] = is_background
        self._foreground_running += not is_background
        task.add_done_callback(self._on_end)
        return task

    def _start_error(self, name: str) -> str | None:
        if not name:
            return f"a task of group {self.name!r} needs a name"
        if self._host is None:
            return f"task group {self.name!r} was not entered: use `async with` before starting {name!r}"
        if self._is_winding_up:
            return f"task group {self.name!r} is winding up and starts no {name!r}"
        return None

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        was_background = self._running.pop(task)
        self._foreground_running -= not was_background
        error = self._error_of(task)
        if error is not None:
            error.add_note(f"in task {task.get_name()!r}")
            self._errors.append(error)
            self.cancel()
            self._interrupt_body()
        self._release_background()
        if not self._running and self._all_ended is not None and not self._all_ended.done():
            self._all_ended.set_result(None)

    def _error_of(self, task: asyncio.Task[Any]) -> BaseException | None:
        if not task.cancelled():
            return task.exception()
        if task.cancelling() or self._is_winding_up:
            return None
        return StrayCancellationError("the task ended with a CancelledError, and nothing had cancelled it")

    def _release_background(self) -> None:
        if self._is_body_over and not self._foreground_running and not self._is_winding_up:
            self.cancel()

    def _interrupt_body(self) -> None:
        if self._is_body_over or self._has_interrupted_host:
            return
        assert self._host is not None
        self._has_interrupted_host = True
        self._host.cancel()

    # End of the block

    def _sort_out(self, error: BaseException | None) -> asyncio.CancelledError | None:
        """Keep the error of the body, and distinguish a cancellation by the group from one from outside."""
        assert self._host is not None
        cancellation = error if isinstance(error, asyncio.CancelledError) else None
        if error is not None and cancellation is None:
            self._errors.append(error)
        # The request of the group is taken back whether or not the body noticed it; any other came from outside.
        if self._has_interrupted_host and self._host.uncancel() == 0:
            return None
        return cancellation

    async def _wait_for_tasks(self) -> asyncio.CancelledError | None:
        self._all_ended = asyncio.get_running_loop().create_future()
        try:
            await self._all_ended
        except asyncio.CancelledError as cancellation:
            self.cancel()
            return cancellation
        return None

    def _conclude(self, outside_cancellation: asyncio.CancelledError | None) -> None:
        errors, self._errors = self._errors, []
        for error in errors:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise error
        if errors:
            self._keep_cancellation_pending()
            raise BaseExceptionGroup(f"task group {self.name!r} failed", errors) from None
        if outside_cancellation is not None:
            raise outside_cancellation

    def _keep_cancellation_pending(self) -> None:
        # The errors are raised first; the cancellation from outside takes effect at the next await.
        assert self._host is not None
        if self._host.cancelling():
            self._host.uncancel()
            self._host.cancel()


async def run_bounded(
    work: Callable[[Item], Coroutine[Any, Any, Result]], items: Iterable[Item], *, limit: int, name: str
) -> list[Result]:
    """`work` for every item, at most `limit` at a time. Returns the results in the order of the items."""
    assert limit > 0, f"{name!r} may not run anything with a limit of {limit}"
    waiting = list(enumerate(items))
    waiting.reverse()
    results: dict[int, Result] = {}

    async def work_on_the_next() -> None:
        while waiting:
            index, item = waiting.pop()
            results[index] = await work(item)

    async with TaskGroup(name) as group:
        group.start(work_on_the_next(), name="0")
        await asyncio.sleep(0)  # one task is enough for work that never waits, as with a loopback client
        for worker in range(1, min(limit, len(waiting) + 1)):
            group.start(work_on_the_next(), name=str(worker))
    return [results[index] for index in range(len(results))]


class WorkerPool:
    """Runs jobs in a task group, a limited number at a time."""

    def __init__(self, name: str, limit: int) -> None:
        assert limit > 0, f"pool {name!r} may run nothing with a limit of {limit}"
        self.limit = limit
        self.running = 0
        """The number of jobs that run."""
        self._group: TaskGroup | None = None
        self._name = name
        self._jobs: deque[Job] = deque()
        self._workers = 0
        self._idle = 0

    def open(self, group: TaskGroup) -> None:
        """Start to run jobs, as tasks of this group."""
        self._group = group
        if self._jobs:
            self._start_worker()

    def start(self, job: Job) -> None:
        """Queue a job. Never waits."""
        self._jobs.append(job)
        self._start_worker()

    @property
    def waiting(self) -> int:
        """The number of jobs that wait for their turn."""
        return len(self._jobs)

    async def _work(self) -> None:
        self._idle -= 1
        try:
            while self._jobs:
                job = self._jobs.popleft()
                self.running += 1
                if self._jobs:
                    self._start_worker()  # if this job waits, another worker continues with the queue
                try:
                    await job()
                finally:
                    self.running -= 1
        finally:
            self._workers -= 1

    def _start_worker(self) -> None:
        # A worker that was started and has not run yet will take this job.
        if not self._idle and self._workers < self.limit and self._group is not None:
            self._idle += 1
            self._workers += 1
            self._group.start(self._work(), name=f"{self._name}-{self._workers}")
