"""The last decisions, for people who ask what the scheduler has been doing.

Comes in   every decision, with how long it took
Goes out   the last `KEPT_MAX` of them as plain data, the youngest first

Keeping one costs a tuple; it is put into words only when somebody asks.
"""

from __future__ import annotations

from collections import deque

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.cycle.decision import Decision

KEPT_MAX = 1_000


class DecisionLog:
    """What was decided lately."""

    def __init__(self, clock: Clock, kept_max: int = KEPT_MAX) -> None:
        self._clock = clock
        self._kept: deque[tuple[float, float, Decision]] = deque(maxlen=kept_max)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, decision: Decision, took_s: float) -> None:
        self._kept.append((self._clock.wall_s(), took_s, decision))

    def told(self, *, pod: str = "", limit: int = KEPT_MAX) -> list[dict[str, object]]:
        """The youngest first; only those about `pod` (NAMESPACE/NAME), if it is given."""
        chosen = [entry for entry in reversed(self._kept) if not pod or entry[2].pod.key == pod]
        return [_told(*entry) for entry in chosen[:limit]]


def _told(wall_s: float, took_s: float, decision: Decision) -> dict[str, object]:
    told: dict[str, object] = {
        "time": format_rfc3339_micro(wall_s),
        "pod": decision.pod.key,
        "uid": decision.pod.uid,
        "result": decision.code.value,
        "node": decision.node_name,
        "feasibleNodes": decision.feasible_count,
        "tookMicroseconds": round(took_s * 1e6),
    }
    if decision.message:
        told["message"] = decision.message
    if decision.error:
        told["error"] = decision.error
    if decision.status is not None:
        told["rejectedBy"] = decision.status.plugin
    if decision.unschedulable_plugins or decision.pending_plugins:
        told["refusedBy"] = sorted(decision.unschedulable_plugins | decision.pending_plugins)
    if decision.preemption is not None:
        plan = decision.preemption
        told["preemption"] = {"node": plan.node_name, "victims": [victim.key for victim in plan.victims]}
    return told
