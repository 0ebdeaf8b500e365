"""The diagnosis of a failed attempt: the reasons, how many nodes gave each, and the plugins that rejected the pod.

The message is that of kube-scheduler's FailedScheduling event, to the letter. The queue reads the rejecting plugins to
decide which events can help the pod.

1. A plugin is a rejector if it is reported for some node (the first filter that rejected it), if its PreFilter
   rejected the pod, or if its PreFilter named nodes and so excluded others.
2. A pending plugin is a rejector whose reasons are all `Pending`: it waits for something outside of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.framework.status import Code, Status


class Diagnosis(NamedTuple):
    """What is wrong, and according to whom."""

    reasons: Mapping[str, int]
    """How many nodes gave each reason. A node that gave several counts for each."""
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]


def diagnose(attempt: Attempt) -> Diagnosis:
    """Who refused, and in which words; kept with the signature while only row-local filters have something to say."""
    if attempt.pre_filter_status is not None:
        return _of_rejection(attempt, attempt.pre_filter_status)
    if not attempt.says_as_cached:
        return _of_refusals(attempt)
    if attempt.results.diagnosis is None:
        attempt.results.diagnosis = _of_refusals(attempt)
    return attempt.results.diagnosis


def unavailable_text(node_count: int, reasons: Mapping[str, int]) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    text = f"0/{node_count} nodes are available:"
    if reasons:
        # Sorted as text, number included: 10 comes before 2.
        text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
    return text


def failure_text(attempt: Attempt, reasons: Mapping[str, int], post_filter_message: str) -> str:
    """The whole message: what PreFilter or Filter said, then what PostFilter could not do about it."""
    if attempt.pre_filter_status is not None:
        text = f"0/{attempt.columns.node_count} nodes are available: {attempt.pre_filter_status.message}."
    else:
        text = unavailable_text(attempt.columns.node_count, reasons)
    return f"{text} {post_filter_message}" if post_filter_message else text


def _of_rejection(attempt: Attempt, status: Status) -> Diagnosis:
    unschedulable_plugins = {*attempt.naming_plugins, status.plugin} - {""}
    return Diagnosis({}, frozenset(unschedulable_plugins), frozenset())


def _of_refusals(attempt: Attempt) -> Diagnosis:
    counts: dict[str, int] = {}
    unschedulable_plugins, pending_plugins = {*attempt.naming_plugins, *attempt.other_plugins}, set()
    for use, _, bits in attempt.refusing():
        unschedulable_plugins.add(use.plugin.name)
        only_pending = 0
        for place, reason in enumerate(attempt.reasons_of(use)):
            only_pending |= (reason.code is Code.PENDING) << place
            if reason.message is not None:
                count = int(np.count_nonzero(bits & (1 << place)))
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
