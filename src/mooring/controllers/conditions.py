"""Conditions in the status of objects: find one, and write one as a document.

1. The time of a DisruptionTarget condition that is true already stays: it is when the disruption began.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from mooring.api.document import Document
from mooring.api.views.batch import Job, JobCondition
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod

REPLICA_FAILURE = "ReplicaFailure"
DISRUPTION_TARGET = "DisruptionTarget"


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


AnyCondition = TypeVar("AnyCondition", bound=_Typed)


def find_condition(conditions: Iterable[AnyCondition], type: str) -> AnyCondition | None:
    """The condition of a type, or None."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def condition_document(condition: Condition) -> Document:
    """A condition in the form of the API, without empty fields."""
    fields = {
        "type": condition.type,
        "status": condition.status,
        "lastUpdateTime": condition.last_update_time,
        "lastTransitionTime": condition.last_transition_time,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {name: value for name, value in fields.items() if value}


def finished_condition(job: Job) -> JobCondition | None:
    """The condition of a finished Job, Complete or Failed. None if it is not finished."""
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition
    return None


def disruption_condition(pod: Pod, reason: str, message: str, now: str) -> Document | None:
    """The condition DisruptionTarget for a pod. None if the pod has the same one."""
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
