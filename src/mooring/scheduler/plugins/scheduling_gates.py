"""SchedulingGates: keep a pod with scheduling gates out of the active queue."""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, queue_on_own_update
from mooring.scheduler.framework.plugin import PreEnqueue
from mooring.scheduler.framework.status import Status


class SchedulingGates(PreEnqueue):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.view.spec.scheduling_gates if pod.view is not None else ()
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, queue_on_own_update
            ),
        )
