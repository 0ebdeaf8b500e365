"""SchedulingGates: keep a pod with scheduling gates out of the active queue."""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.hints import is_about_itself
from mooring.scheduler.framework.plugin import PreEnqueue
from mooring.scheduler.framework.status import Rejection, unresolvable


class SchedulingGates(PreEnqueue):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Rejection | None:
        gates = pod.view.spec.scheduling_gates if pod.view is not None else ()
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def wakes(self) -> tuple[Wake, ...]:
        return (Wake(Subject.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_about_itself),)
