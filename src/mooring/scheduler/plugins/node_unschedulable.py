"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon."""

from __future__ import annotations

import numpy as np

from mooring.api.tolerations import UNSCHEDULABLE_TAINT, is_tolerated
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.plugin import SKIP, Filter, Reads, Skip
from mooring.scheduler.framework.status import Code, Reason


class NodeUnschedulable(Filter[None]):
    name = "NodeUnschedulable"
    filter_reads = Reads.FACTS
    filter_reasons = (Reason("node(s) were unschedulable", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def prepare(self, pod: PodRecord) -> Skip | None:
        return SKIP if is_tolerated(UNSCHEDULABLE_TAINT, pod.shape.spec.tolerations) else None

    def filter(self, state: None, rows: Rows) -> Int64s:
        return self._columns.unschedulable[rows].astype(np.int64)
