"""The diagnosis: all refusals of one attempt, and the one sentence that users read in the FailedScheduling event.

Comes in   an attempt that found no node
Goes out   reasons with how many nodes gave them, and Kubernetes' own text of it, to the letter
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.scheduler.cycle.attempt import Attempt


def count_reasons(attempt: Attempt) -> Mapping[str, int]:
    """How many nodes gave each reason. A node that gave several counts for each."""
    if not attempt.says_as_kept:
        return _count(attempt)
    if attempt.kept.reasons is None:
        attempt.kept.reasons = _count(attempt)
    return attempt.kept.reasons


def unavailable_text(node_count: int, reasons: Mapping[str, int]) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    text = f"0/{node_count} nodes are available:"
    if reasons:
        # Sorted as text, number included: 10 comes before 2.
        text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
    return text


def failure_text(attempt: Attempt, reasons: Mapping[str, int], post_filter_message: str) -> str:
    """The whole message: what PreFilter or Filter said, then what PostFilter could not do about it."""
    if attempt.rejection is not None:
        text = f"0/{attempt.columns.node_count} nodes are available: {attempt.rejection.message}."
    else:
        text = unavailable_text(attempt.columns.node_count, reasons)
    return f"{text} {post_filter_message}" if post_filter_message else text


def _count(attempt: Attempt) -> dict[str, int]:
    counts: dict[str, int] = {}
    for use, _, bits in attempt.refusing():
        for place, reason in enumerate(attempt.reasons_of(use)):
            if reason.message is not None:
                count = int(np.count_nonzero(bits & (1 << place)))
                if count:
                    counts[reason.message] = counts.get(reason.message, 0) + count
    if attempt.left_out_count:
        for message in attempt.left_out().reasons:
            counts[message] = counts.get(message, 0) + attempt.left_out_count
    return counts
