"""Disruption: a pod that is deleted by the cluster, not by its owner, says so before it goes.

Comes in   a pod, and who disrupts it why
Goes out   the condition `DisruptionTarget` as a document for a patch of its status

 1. The time of a condition that was true already stays: it tells when the disruption began.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.views.pod import Pod

DISRUPTION_TARGET = "DisruptionTarget"


def disruption_condition(pod: Pod, reason: str, message: str, now: str) -> Document | None:
    """The condition; None if the pod carries the very same."""
    since = now
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET and condition.status == "True":
            if condition.reason == reason and condition.message == message:
                return None
            since = condition.last_transition_time or now
    condition_document: Document = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": since,
    }
    if pod.metadata.generation:
        condition_document["observedGeneration"] = pod.metadata.generation
    return condition_document
