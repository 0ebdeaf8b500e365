"""Intake of nodes: into the columns, and to the queue as the events that they are.

Most updates of a node are heartbeats: they change nothing that a plugin could see, and wake nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.client.interface import Change
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.changes import node_events
from mooring.scheduler.framework.events import Action, ClusterEvent, Subject
from mooring.scheduler.intake.unreadable import UNREADABLE, leave_out
from mooring.scheduler.queue.queue import SchedulingQueue

NODE_ADD = ClusterEvent(Subject.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Subject.NODE, Action.DELETE)


class NodeIntake:
    """The sink for nodes."""

    def __init__(self, engine: Engine, queue: SchedulingQueue) -> None:
        self._columns = engine.columns
        self._queue = queue

    def replace(self, views: Sequence[Node], revision: str) -> None:
        present = {view.metadata.name for view in views}
        for name in [name for name in self._columns.row_of if name not in present]:
            self._remove(name)
        for view in views:
            self._put(view)

    def apply(self, change: Change, view: Node) -> None:
        if change is Change.DELETED:
            self._remove(view.metadata.name)
        else:
            self._put(view)

    def _put(self, node: Node) -> None:
        row = self._columns.row_of.get(node.metadata.name)
        old = self._columns.nodes[row] if row is not None else None
        if old is None or old.status.allocatable != node.status.allocatable:
            try:
                node_allocatable(node)  # before anything is changed: half a node would be worse than none
            except UNREADABLE as error:
                leave_out(node, error)
                return
        self._columns.put_node(node)
        if old is None:
            self._queue.wake(NODE_ADD, None, node)
            return
        for event in node_events(old, node):
            self._queue.wake(event, old, node)

    def _remove(self, name: str) -> None:
        row = self._columns.row_of.get(name)
        if row is None:
            return
        self._queue.wake(NODE_DELETE, self._columns.nodes[row], None)
        self._columns.remove_node(name)
