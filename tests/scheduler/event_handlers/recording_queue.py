"""A queue that records the events it gets, for tests of the event handlers: (label, old name, new name).

queue = recording_queue(engine)
NodeEventHandler(engine, queue).apply(Change.ADDED, node("n1"))
assert queue.events == [("NodeAdd", None, "n1")]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.queue.queue import SchedulingQueue

RecordedEvent = tuple[str, str | None, str | None]


class RecordingQueue(SchedulingQueue):
    """A real queue that records the events."""

    events: list[RecordedEvent]
    nodes: list[tuple[str, ...]]
    """The nodes in the columns at the time of each event."""
    engine: Engine

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: Any = None, new: Any = None, pre_check: Callable[[PodInfo], bool] | None = None
    ) -> int:
        self.events.append((event.label, _name(old), _name(new)))
        self.nodes.append(tuple(sorted(self.engine.columns.row_of)))
        return super().move_all_to_active_or_backoff(event, old, new, pre_check)


def recording_queue(engine: Engine) -> RecordingQueue:
    queue = RecordingQueue({name: cycle.profile for name, cycle in engine.cycles.items()}, clock=VirtualClock())
    queue.events, queue.nodes, queue.engine = [], [], engine
    return queue


def _name(view: Any) -> str | None:
    return None if view is None else view.metadata.name
