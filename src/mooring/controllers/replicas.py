"""Numbers of replicas: the desired number of a workload, and counts that may be percentages."""

from __future__ import annotations

from typing import TypeAlias

from mooring.api.views.meta import IntOrString
from mooring.api.views.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

ReplicatedWorkload: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet


def replicas_of(workload: ReplicatedWorkload) -> int:
    """The desired number of replicas; 1 if the spec leaves it open."""
    return workload.spec.replicas if workload.spec.replicas is not None else 1


def scaled_value(value: IntOrString | None, total: int, *, is_rounded_up: bool) -> int:
    """A number, or a percentage of the total. 0 for other values."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not digits.isdecimal():
        return 0
    hundredths = int(digits) * total
    return -(-hundredths // 100) if is_rounded_up else hundredths // 100
