"""Handles a failed scheduling attempt: requeues the pod and reports the failure.

Inputs   a `Failure`: rejection or error, the plugins that rejected the pod, and what happens to its nomination
Outputs  the pod unschedulable or in backoffQ; a PodScheduled condition, a FailedScheduling event, a nominated node

 1. A pod that was deleted or bound meanwhile is not requeued. The failure is reported all the same, as kube-scheduler
    does.
 2. A rejected pod is unschedulable until an event can help. After an error the pod is retried after its backoff.
 3. The pod is requeued before the failure is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Diagnosis, FitError, Status
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import NO_PLUGINS, QueuedPod
from mooring.scheduler.reporting.reports import Failure, Reports


def rejected_in_cycle(decision: Decision) -> Failure:
    """No node fits the pod, or the scheduling cycle ended with an error."""
    nominated = decision.preemption.node_name if decision.preemption is not None else None
    if nominated is None and decision.clears_nomination:
        nominated = ""
    return Failure(
        message=decision.message or "",
        is_error=not decision.is_unschedulable,
        plugin=",".join(decision.rejecting_plugins),
        unschedulable_plugins=decision.unschedulable_plugins,
        pending_plugins=decision.pending_plugins,
        nominated_node=nominated,
    )


def rejected_on_node(status: Status) -> Failure:
    """A Reserve or Permit plugin rejected the pod on the selected node."""
    reasons = dict.fromkeys(status.reasons, 1)
    by = frozenset((status.plugin,))
    is_pending = status.code is Code.PENDING
    return Failure(
        message=FitError(1, Diagnosis(reasons)).message,
        is_error=False,
        plugin=status.plugin,
        unschedulable_plugins=NO_PLUGINS if is_pending else by,
        pending_plugins=by if is_pending else NO_PLUGINS,
        nominated_node="",
    )


def rejected_in_binding(status: Status) -> Failure:
    """A PreBind or Bind plugin rejected the pod: reported as a rejection, retried as after an error."""
    return Failure(message=status.message, is_error=False, plugin=status.plugin, nominated_node="")


def failed_with_error(status: Status) -> Failure:
    """The attempt ended with an error that is not the pod's fault."""
    return Failure(message=status.message, is_error=True, plugin=status.plugin, nominated_node="")


class FailureHandler:
    """Requeues pods and reports their failures."""

    def __init__(
        self, engine: Engine, queue: SchedulingQueue, pending: Mapping[str, PodInfo], reports: Reports
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._pending = pending
        """The latest records of pending pods from the watch, by uid."""
        self._reports = reports

    def handle(self, entry: QueuedPod, profile: Profile, failure: Failure, started_s: float) -> None:
        uid = entry.pod.uid
        pod = self._pending.get(uid)
        if pod is None:
            self._queue.done(uid)
            self.report(entry.pod, entry.pod.view, profile, replace(failure, is_pod_gone=True), started_s)
            return
        self._reports.attempt_failed(profile, failure.is_error, started_s)
        entry.pod = pod
        self._queue.requeue(entry, failure.unschedulable_plugins, failure.pending_plugins, is_error=failure.is_error)
        if failure.nominated_node is not None:
            self._engine.renominate(pod, failure.nominated_node)
        self._reports.failed(pod, pod.view, profile, failure)

    def report(self, pod: PodInfo, view: Pod | None, profile: Profile, failure: Failure, started_s: float) -> None:
        """Reports the failure of a pod that is not requeued: it was deleted, or bound by another scheduler."""
        self._reports.attempt_failed(profile, failure.is_error, started_s)
        self._reports.failed(pod, view, profile, failure)
