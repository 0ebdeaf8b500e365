"""Taint eviction, decided: whether and when a pod must leave a node because of its NoExecute taints.

Comes in   the NoExecute taints of a node, the tolerations of a pod, the eviction that is scheduled already, the time
Goes out   one of: `Leave` it as it is, `Cancel` the eviction, `Evict` it at a time

 1. A taint that is not tolerated means at once. Otherwise the shortest `tolerationSeconds` of the tolerations that are
    used counts; without any, the pod stays for ever.
 2. An eviction that is scheduled keeps its time when taints change: the clock of a pod does not start anew with each
    taint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.tolerations import NO_EXECUTE, tolerates
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Toleration


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing changes."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """It may stay."""


@dataclass(frozen=True, slots=True)
class Evict:
    """In place of what was scheduled before, which counts as cancelled."""

    since_s: float
    due_s: float


Decision: TypeAlias = Leave | Cancel | Evict


def decide(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], scheduled_since_s: float | None, now_s: float
) -> Decision:
    """What to do about a pod on a node with these NoExecute taints, of which there is at least one."""
    stay_s = stay_s_max(taints, tolerations)
    if stay_s is None:
        return Cancel()
    if stay_s < 0:
        return Evict(now_s, now_s)
    if scheduled_since_s is None:
        return Evict(now_s, now_s + stay_s)
    if scheduled_since_s < now_s:
        return Leave()
    return Evict(scheduled_since_s, now_s + stay_s)


def stay_s_max(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """How long the pod may stay: None for ever; less than 0 if a taint is not tolerated at all."""
    shortest_s: float | None = None
    for taint in taints:
        used = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if used is None:
            return -1.0
        if used.toleration_seconds is not None:
            seconds = max(0.0, float(used.toleration_seconds))
            shortest_s = seconds if shortest_s is None else min(shortest_s, seconds)
    return shortest_s


def no_execute_taints(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
