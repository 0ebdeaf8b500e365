"""NodeName: reject all nodes but the one in `spec.nodeName`.

The scheduler never decides a pod with a node name, which is bound already. The filter serves profiles that list it, and
`mooring explain`.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Skip
from mooring.scheduler.framework.status import Code, Reason


class NodeName(Filter[str]):
    name = "NodeName"
    filter_reasons = (Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[str] | Skip:
        node_name = pod.view.spec.node_name if pod.view is not None else ""
        return Proceed(node_name) if node_name else SKIP

    def filter(self, state: str, rows: Rows) -> Int64s:
        return np.where(self._columns.node_selection.is_named(state, rows), 0, 1)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)
