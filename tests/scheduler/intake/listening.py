"""A queue that remembers what it was told, for tests of the intake: `heard` has (event, old, new) by name.

queue = listening(engine)
NodeIntake(engine, queue).apply(Change.ADDED, node("n1"))
assert queue.heard == [("NodeAdd", None, "n1")]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.queue.queue import SchedulingQueue

Heard = tuple[str, str | None, str | None]


class ListeningQueue(SchedulingQueue):
    """The real one, and a record of its wake-ups."""

    heard: list[Heard]
    believed: list[tuple[str, ...]]
    """The nodes in the columns at the time of each wake-up."""
    engine: Engine

    def wake(
        self, event: ClusterEvent, old: Any = None, new: Any = None, only: Callable[[PodInfo], bool] | None = None
    ) -> int:
        self.heard.append((event.label, _name(old), _name(new)))
        self.believed.append(tuple(sorted(self.engine.columns.row_of)))
        return super().wake(event, old, new, only)


def listening(engine: Engine) -> ListeningQueue:
    queue = ListeningQueue({name: cycle.profile for name, cycle in engine.cycles.items()}, clock=VirtualClock())
    queue.heard, queue.believed, queue.engine = [], [], engine
    return queue


def _name(view: Any) -> str | None:
    return None if view is None else view.metadata.name
