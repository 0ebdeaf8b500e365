"""Deadlines: no request takes for ever.

Comes in   the task of a request, when its work begins and when it ends
Goes out   a cancellation to whoever takes too long; `is_over` tells it from others

 1. Nobody is cancelled before `seconds_max`, nor much later: all are looked at `LOOKS` times in that time.
 2. One alarm for all of them, and none while nobody works. One for each request cost as much as finding its object.
"""

from __future__ import annotations

import asyncio

LOOKS = 8


class Deadlines:
    """All requests of a server that somebody works on."""

    def __init__(self, seconds_max: float) -> None:
        self._pause_s = seconds_max / LOOKS
        self._looks: dict[asyncio.Task[object], int] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[object]:
        """The task that runs has begun to work."""
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None, "only a task can be cancelled"
        self._looks[task] = 0
        if self._alarm is None:
            self._set_alarm()
        return task

    def is_over(self, task: asyncio.Task[object]) -> bool:
        """Whether a cancellation came from here, and from nowhere else."""
        return self._looks[task] > LOOKS and task.cancelling() == 1

    def end(self, task: asyncio.Task[object]) -> None:
        """The work is over, one way or the other."""
        if self._looks.pop(task) > LOOKS:
            task.uncancel()

    def _set_alarm(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(self._pause_s, self._look)

    def _look(self) -> None:
        self._alarm = None
        for task, looks in self._looks.items():
            # The first look may come at once, so one more than fit into the time.
            if looks == LOOKS:
                task.cancel()
            self._looks[task] = looks + 1
        if self._looks:
            self._set_alarm()
