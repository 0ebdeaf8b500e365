"""The pool of workers: a bounded number of binding cycles run at a time, the rest stand in line.

Comes in   jobs, as functions that make a coroutine
Goes out   each job run once, in the order of arrival as far as starting is concerned

A job that never has to wait (a binding through the client in the process) is done by one worker after the other
without a task of its own: starting a task costs as much as the binding.

 1. At most `limit` jobs are under way; what comes beyond stands in line and counts as waiting.
 2. Workers are started when there is work for them and end when the line is empty.
 3. Before the pool is open, jobs only stand in line.
 4. An exception of a job is not expected: it ends the group that the pool lives in, with the job's name.
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
    """Runs jobs in a task group, a bounded number at a time."""

    def __init__(self, name: str, limit: int) -> None:
        assert limit > 0, f"pool {name!r} may run nothing with a limit of {limit}"
        self.limit = limit
        self._group: TaskGroup | None = None
        self._name = name
        self._line: deque[Job] = deque()
        self._workers = 0
        self._idle = 0
        self._running = 0
        self._running_max = 0
        self._started = 0

    def open(self, group: TaskGroup) -> None:
        """From now on jobs are run, as tasks of this group."""
        self._group = group
        if self._line:
            self._wake_a_worker()

    def start(self, job: Job) -> None:
        """Stands a job in line. Never waits."""
        self._line.append(job)
        self._wake_a_worker()

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(self._running, len(self._line), self._started, self._running_max)

    async def _work(self) -> None:
        self._idle -= 1
        try:
            while self._line:
                job = self._line.popleft()
                self._running += 1
                self._started += 1
                self._running_max = max(self._running_max, self._running)
                if self._line:
                    self._wake_a_worker()  # if this job has to wait, somebody else goes on with the line
                try:
                    await job()
                finally:
                    self._running -= 1
        finally:
            self._workers -= 1

    def _wake_a_worker(self) -> None:
        # One that was started but has not had its turn yet will take this job, too.
        if not self._idle and self._workers < self.limit and self._group is not None:
            self._idle += 1
            self._workers += 1
            self._group.start(self._work(), name=f"{self._name}-{self._workers}")
