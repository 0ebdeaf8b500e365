"""NodeUnschedulable: reject cordoned nodes, unless the pod tolerates the unschedulable taint."""

from __future__ import annotations

import numpy as np

from mooring.api.tolerations import UNSCHEDULABLE_TAINT, is_tolerated
from mooring.api.views.node import Node
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Scope, Skip
from mooring.scheduler.framework.status import Code, Reason


class NodeUnschedulable(Filter[None]):
    name = "NodeUnschedulable"
    obstacle_kind = ObstacleKind.CORDON
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) were unschedulable", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[None] | Skip:
        return SKIP if is_tolerated(UNSCHEDULABLE_TAINT, pod.signature.spec.tolerations) else Proceed(None)

    def filter(self, state: None, rows: Rows) -> Int64s:
        return self._columns.unschedulable[rows].astype(np.int64)

    def explain(self, state: None, row: int, bits: int, context: ExplainContext) -> tuple[Obstacle, ...]:
        text = f"uncordon it (kubectl uncordon {self._columns.node_names[row]})"
        return (Obstacle(self.name, ObstacleKind.CORDON, text),)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                _becomes_schedulable,
                per_signature=True,
            ),
            ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION, _tolerates_cordons),
        )


def _becomes_schedulable(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """Whether an added or changed node is schedulable, and was not before."""
    return queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))


def _tolerates_cordons(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return queue_if(new.uid == pod.uid and is_tolerated(UNSCHEDULABLE_TAINT, new.signature.spec.tolerations))
