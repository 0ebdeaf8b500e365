"""PrioritySort: higher priority first, then the earlier time of queueing."""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import QueueSort


class PrioritySort(QueueSort):
    name = "PrioritySort"

    def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
        return (-pod.signature.priority, queued_s)
