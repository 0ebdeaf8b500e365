"""NodePorts: a host port belongs to one pod of a node."""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.ports import HostPort
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Reads, Skip
from mooring.scheduler.framework.status import Reason

HostPorts = tuple[HostPort, ...]


class NodePorts(PreFilter[HostPorts], Filter[HostPorts]):
    name = "NodePorts"
    filter_reads = Reads.USAGE
    filter_reasons = (Reason("node(s) didn't have free ports for the requested pod ports"),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodRecord) -> Proceed[HostPorts] | Skip:
        return Proceed(pod.shape.host_ports) if pod.shape.host_ports else SKIP

    def filter(self, state: HostPorts, rows: Rows) -> Int64s:
        return self._columns.ports.conflicts(state, self._columns.height)[rows].astype(np.int64)

    def filter_row(self, state: HostPorts, row: int) -> int:
        return int(self._columns.ports.conflicts_at(state, row))
