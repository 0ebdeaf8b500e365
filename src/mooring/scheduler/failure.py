"""Handle a pod that could not be scheduled: report the failure, and return the pod to the queue.

Writes a PodScheduled condition, a FailedScheduling event and the nominated node. The queue puts the pod into the
unschedulable pods or into backoff.

1. A pod that is deleted, or that another scheduler has bound in the meantime, does not return to the queue. The
   failure is reported anyway, as in kube-scheduler.
2. A rejected pod waits until an event may help it. After an error the pod is retried with backoff.
3. The pod is in the queue before the failure is reported: users never see a state that the scheduler has not reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.diagnosis import Diagnosis, FitError
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.reports import Reports

NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, and what becomes of the pod's nomination."""

    message: str
    is_error: bool
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    nominated_node: str | None = None
    """None: the nomination stays as it is. Empty: it is cleared."""
    is_pod_gone: bool = False
    """The API server has deleted the pod, whether or not the watch has shown it."""


def not_scheduled(decision: Decision) -> Failure:
    """No node fits, or the cycle ended with an error."""
    nominated = decision.preemption.node_name if decision.preemption is not None else None
    if nominated is None and decision.clears_nomination:
        nominated = ""
    return Failure(
        message=decision.message or "",
        is_error=not decision.is_unschedulable,
        unschedulable_plugins=decision.unschedulable_plugins,
        pending_plugins=decision.pending_plugins,
        nominated_node=nominated,
    )


def rejected_on_node(status: Status) -> Failure:
    """Reserve or Permit rejected the pod on its selected node."""
    reasons = dict.fromkeys(status.reasons, 1)
    by = frozenset((status.plugin,))
    is_pending = status.code is Code.PENDING
    return Failure(
        message=FitError(1, Diagnosis(reasons)).message,
        is_error=False,
        unschedulable_plugins=NO_PLUGINS if is_pending else by,
        pending_plugins=by if is_pending else NO_PLUGINS,
        nominated_node="",
    )


def rejected_by_binding(status: Status) -> Failure:
    """PreBind or Bind rejected the pod: reported as Unschedulable, and retried as after an error."""
    return Failure(message=status.message, is_error=False, nominated_node="")


def failed(status: Status) -> Failure:
    """An error that says nothing about the pod."""
    return Failure(message=status.message, is_error=True, nominated_node="")


class FailureHandler:
    """Returns pods to the queue."""

    def __init__(
        self, engine: Engine, queue: SchedulingQueue, pending: Mapping[str, PodInfo], reports: Reports
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._pending = pending
        """The pending pods as the watch last showed them, by uid."""
        self._reports = reports

    def handle(self, entry: QueuedPod, profile: Profile, outcome: Failure, started_s: float) -> None:
        uid = entry.pod.uid
        pod = self._pending.get(uid)
        if pod is None:
            self._queue.done(uid)
            self.report(entry.pod, entry.pod.view, profile, replace(outcome, is_pod_gone=True), started_s)
            return
        self._reports.attempt_failed(profile, outcome.is_error, started_s)
        entry.pod = pod
        self._queue.give_back(entry, outcome.unschedulable_plugins, outcome.pending_plugins, is_error=outcome.is_error)
        if outcome.nominated_node is not None:
            self._engine.renominate(pod, outcome.nominated_node)
        self._write(pod, pod.view, profile, outcome)

    def report(self, pod: PodInfo, view: Pod | None, profile: Profile, outcome: Failure, started_s: float) -> None:
        """Report the failure of a pod that was deleted or bound by another scheduler: the queue does not get it."""
        self._reports.attempt_failed(profile, outcome.is_error, started_s)
        self._write(pod, view, profile, outcome)

    def _write(self, pod: PodInfo, view: Pod | None, profile: Profile, outcome: Failure) -> None:
        self._reports.failed(
            pod,
            view,
            profile,
            outcome.message,
            outcome.is_error,
            outcome.nominated_node,
            is_pod_gone=outcome.is_pod_gone,
        )
