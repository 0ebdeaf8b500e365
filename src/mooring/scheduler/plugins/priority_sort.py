"""PrioritySort: pods of higher priority are tried first, then those that have waited longer."""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.plugin import QueueSort


class PrioritySort(QueueSort):
    name = "PrioritySort"

    def queue_key(self, pod: PodRecord, queued_s: float) -> tuple[float, ...]:
        return (-pod.shape.priority, queued_s)
