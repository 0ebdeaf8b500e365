"""Conditions of a pod.

Comes in   the conditions that there are, and one more
Goes out   the conditions with it

 1. The time of a condition is when its status changed, not when it was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document


def with_condition(conditions: Sequence[Document], condition: Document, now: str) -> list[Document]:
    """The conditions with one of them set, in its place or at the end."""
    made: Document = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, known in enumerate(conditions):
        if known.get("type") == condition["type"]:
            if known.get("status") == condition["status"]:
                made["lastTransitionTime"] = known.get("lastTransitionTime")
            return [*conditions[:index], made, *conditions[index + 1 :]]
    return [*conditions, made]
