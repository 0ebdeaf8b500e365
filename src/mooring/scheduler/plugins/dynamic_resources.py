"""DynamicResources: pods that ask for devices through resource claims.

For pods without claims it has nothing to say, and says so as kube-scheduler does: every node scores 0, and there is
nothing to deallocate. Pods with claims are refused in plain words: the allocator is not part of this version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.plugin import (
    SKIP,
    Filter,
    PostFilter,
    PostFilterResult,
    PreFilter,
    Reads,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Rejection, failure, unresolvable, unschedulable

if TYPE_CHECKING:
    from mooring.scheduler.cycle.attempt import Attempt


class DynamicResources(PreFilter[None], Filter[None], PostFilter, Score[None]):
    name = "DynamicResources"
    score_reads = Reads.FACTS

    def pre_filter(self, pod: PodRecord) -> Skip | Rejection:
        if pod.view is not None and pod.view.spec.resource_claims:
            return unresolvable("pod has resource claims, and devices are not allocated by this scheduler yet")
        return SKIP

    def filter(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    def post_filter(self, attempt: Attempt) -> PostFilterResult:
        if not attempt.was_pre_filtered(self.name):
            # Another PreFilter ended the cycle first. Kubernetes finds no state of its own then and says just that.
            return PostFilterResult(rejection=failure("not found"))
        return PostFilterResult(rejection=unschedulable("no new claims to deallocate"))

    def prepare_score(self, pod: PodRecord) -> None:
        return None

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)
