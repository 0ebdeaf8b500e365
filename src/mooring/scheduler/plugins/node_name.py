"""NodeName: a pod that names its node goes nowhere else.

A pod whose `spec.nodeName` is set is bound already and never reaches a cycle of ours; the filter is here for
profiles that list it, and for what-if questions about such pods.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import SKIP, Filter, Proceed, Skip
from mooring.scheduler.framework.status import Code, Reason


class NodeName(Filter[int]):
    name = "NodeName"
    filter_reasons = (Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[int] | Skip:
        wanted = pod.view.spec.node_name if pod.view is not None else ""
        return Proceed(self._columns.row_of.get(wanted, -1)) if wanted else SKIP

    def filter(self, state: int, rows: Rows) -> Int64s:
        refused = np.ones(length_of(rows), dtype=np.int64)
        if isinstance(rows, slice):
            if 0 <= state < rows.stop:
                refused[state] = 0
        else:
            refused[rows == state] = 0
        return refused

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)
