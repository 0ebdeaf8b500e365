"""Diagnose a failed attempt: count the reasons, and name the plugins that rejected the pod."""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.framework.diagnosis import Diagnosis
from mooring.scheduler.framework.status import Code, Status


def diagnose(attempt: Attempt) -> Diagnosis:
    """The diagnosis of an attempt; cached with the signature if only cached filter results rejected nodes."""
    if attempt.pre_filter_status is not None:
        return _of_pre_filter(attempt, attempt.pre_filter_status)
    if not attempt.rejects_as_cached:
        return _of_nodes(attempt)
    return attempt.results.diagnosis(lambda: _of_nodes(attempt))


def _of_pre_filter(attempt: Attempt, status: Status) -> Diagnosis:
    unschedulable_plugins = {*attempt.naming_plugins, status.plugin} - {""}
    return Diagnosis({}, frozenset(unschedulable_plugins), pre_filter_message=status.message)


def _of_nodes(attempt: Attempt) -> Diagnosis:
    counts: dict[str, int] = {}
    unschedulable_plugins, pending_plugins = {*attempt.naming_plugins, *attempt.other_plugins}, set()
    for use, _, bits in attempt.rejections():
        unschedulable_plugins.add(use.plugin.name)
        only_pending = 0
        for index, reason in enumerate(attempt.reasons_of(use)):
            only_pending |= (reason.code is Code.PENDING) << index
            if reason.message is not None:
                count = int(np.count_nonzero(bits & (1 << index)))
                if count:
                    counts[reason.message] = counts.get(reason.message, 0) + count
        if only_pending and bool((bits & ~only_pending == 0).any()):
            pending_plugins.add(use.plugin.name)
    for status in attempt.extender_statuses.values():
        for message in status.reasons:
            counts[message] = counts.get(message, 0) + 1
    if attempt.left_out_count:
        for message in attempt.left_out().reasons:
            counts[message] = counts.get(message, 0) + attempt.left_out_count
    return Diagnosis(counts, frozenset(unschedulable_plugins), frozenset(pending_plugins))
