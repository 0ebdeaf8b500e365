"""The failed attempt as PostFilter plugins see it (`framework.failed_attempt`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.dry_run import DryRun
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.framework.failed_attempt import Cache
from mooring.scheduler.framework.status import Code, Status, status_of


class UnschedulableAttempt:
    """Implements `FailedAttempt` for an attempt of the cycle."""

    __slots__ = ("_attempt", "columns", "pod", "pre_filter_status", "states")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.pod: PodInfo = attempt.pod
        self.columns: Columns = attempt.columns
        self.pre_filter_status: Status | None = attempt.pre_filter_status
        self.states: Mapping[str, Any] = attempt.states

    def was_pre_filtered(self, plugin: str) -> bool:
        return self._attempt.was_pre_filtered(plugin)

    def status_at(self, row: int) -> Status | None:
        return self._attempt.status_at(row)

    def code_at(self, row: int) -> Code:
        return self._attempt.code_at(row)

    def is_rejected_with(self, code: Code) -> Bools:
        return self._attempt.is_rejected_with(code)

    def dry_run(self, rows: Int64s) -> PreemptionDryRun:
        return PreemptionDryRun(self._attempt, rows)

    def row_cache(self, kind: type[Cache]) -> Cache:
        attempt = self._attempt
        if not attempt.rejects_as_cached or attempt.asked or self.columns.nominations.node_of(self.pod) is not None:
            return kind()
        return attempt.results.row_cache(kind)


class PreemptionDryRun(DryRun):
    """A dry run of all filters of the profile, with the nominated pods of each row."""

    def __init__(self, attempt: Attempt, rows: Int64s) -> None:
        super().__init__(attempt, rows, attempt.profile.filters)

    def __enter__(self) -> PreemptionDryRun:
        return self

    def is_rejected(self, at: Int64s) -> Bools:
        first, _ = self.rejections_with_nominated_pods(at)
        is_rejected: Bools = first != FITS
        return is_rejected

    def statuses(self, at: Int64s) -> dict[int, Status]:
        first, bits = self.rejections_with_nominated_pods(at)
        attempt, found = self._attempt, {}
        for place in np.flatnonzero(first != FITS).tolist():
            use = attempt.profile.filters[first[place]]
            found[int(at[place])] = status_of(use.plugin.name, int(bits[place]), attempt.reasons_of(use))
        return found
