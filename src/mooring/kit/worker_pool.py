"""A worker pool: runs jobs in a task group, a limited number at a time, started in the order of arrival.

Workers take one job after the other without a task for each: starting a task costs as much as a job that does not
wait, such as a binding through the in-process client.

1. At most `limit` jobs are running. Further jobs are queued.
2. Workers start when there is a job for them and end when the queue is empty.
3. Before the pool is open, jobs are only queued.
4. A job must not raise: an exception ends the task group of the pool, with the worker's name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from mooring.kit.tasks import TaskGroup

Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    running: int
    waiting: int
    started: int
    running_max: int


class WorkerPool:
    """Runs jobs in a task group, a limited number at a time."""

    def __init__(self, name: str, limit: int) -> None:
        assert limit > 0, f"pool {name!r} may run nothing with a limit of {limit}"
        self.limit = limit
        self._group: TaskGroup | None = None
        self._name = name
        self._jobs: deque[Job] = deque()
        self._workers = 0
        self._idle = 0
        self._running = 0
        self._running_max = 0
        self._started = 0

    def open(self, group: TaskGroup) -> None:
        """Start to run jobs, as tasks of this group."""
        self._group = group
        if self._jobs:
            self._start_worker()

    def start(self, job: Job) -> None:
        """Queue a job. Never waits."""
        self._jobs.append(job)
        self._start_worker()

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(self._running, len(self._jobs), self._started, self._running_max)

    async def _work(self) -> None:
        self._idle -= 1
        try:
            while self._jobs:
                job = self._jobs.popleft()
                self._running += 1
                self._started += 1
                self._running_max = max(self._running_max, self._running)
                if self._jobs:
                    self._start_worker()  # if this job waits, another worker continues with the queue
                try:
                    await job()
                finally:
                    self._running -= 1
        finally:
            self._workers -= 1

    def _start_worker(self) -> None:
        # A worker that was started and has not run yet will take this job.
        if not self._idle and self._workers < self.limit and self._group is not None:
            self._idle += 1
            self._workers += 1
            self._group.start(self._work(), name=f"{self._name}-{self._workers}")
