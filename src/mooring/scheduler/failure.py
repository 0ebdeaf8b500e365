"""What becomes of a pod that could not be scheduled: told to its users, and back to the queue.

Comes in   an outcome: refused or failed, by whom, and what becomes of its nomination
Goes out   the pod asleep or backing off; a PodScheduled condition, a FailedScheduling event, a nominated node

 1. A pod that is gone, or that somebody else has bound meanwhile, goes nowhere; that the attempt failed is told all the
    same, as kube-scheduler does it.
 2. A refusal makes the pod sleep until something happens that can help; an error makes it try again after a while.
 3. The queue has the pod back before anybody is told: what users see never runs ahead of what is so.
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

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a pod was not scheduled this time."""

    message: str
    is_error: bool
    unschedulable_plugins: frozenset[str] = NOBODY
    pending_plugins: frozenset[str] = NOBODY
    nominated_node: str | None = None
    """None: the pod's nomination stays as it is. Empty: it is void."""
    is_pod_gone: bool = False
    """The API server has deleted the pod, whether or not the watch has told so."""


def refused(decision: Decision) -> Failure:
    """No node took the pod, or the cycle ended in an error."""
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
    """Reserve or Permit refused the pod on the node that it had been given."""
    reasons = dict.fromkeys(status.reasons, 1)
    by = frozenset((status.plugin,))
    is_pending = status.code is Code.PENDING
    return Failure(
        message=FitError(1, Diagnosis(reasons)).message,
        is_error=False,
        unschedulable_plugins=NOBODY if is_pending else by,
        pending_plugins=by if is_pending else NOBODY,
        nominated_node="",
    )


def turned_away(status: Status) -> Failure:
    """PreBind or Bind refused the pod: told as a refusal, and tried again as after an error."""
    return Failure(message=status.message, is_error=False, nominated_node="")


def failed(status: Status) -> Failure:
    """Something went wrong that says nothing about the pod."""
    return Failure(message=status.message, is_error=True, nominated_node="")


class FailureHandler:
    """Sends pods back."""

    def __init__(
        self, engine: Engine, queue: SchedulingQueue, pending: Mapping[str, PodInfo], reports: Reports
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._pending = pending
        """The pods without a node as the watch last told them, by uid."""
        self._reports = reports

    def handle(self, entry: QueuedPod, profile: Profile, outcome: Failure, started_s: float) -> None:
        uid = entry.pod.uid
        pod = self._pending.get(uid)
        if pod is None:
            self._queue.done(uid)
            self.tell(entry.pod, entry.pod.view, profile, replace(outcome, is_pod_gone=True), started_s)
            return
        self._reports.attempt_failed(profile, outcome.is_error, started_s)
        entry.pod = pod
        self._queue.give_back(entry, outcome.unschedulable_plugins, outcome.pending_plugins, is_error=outcome.is_error)
        if outcome.nominated_node is not None:
            self._engine.renominate(pod, outcome.nominated_node)
        self._report(pod, pod.view, profile, outcome)

    def tell(self, pod: PodInfo, view: Pod | None, profile: Profile, outcome: Failure, started_s: float) -> None:
        """The attempt failed, and the pod goes nowhere: it was deleted, or bound by somebody else."""
        self._reports.attempt_failed(profile, outcome.is_error, started_s)
        self._report(pod, view, profile, outcome)

    def _report(self, pod: PodInfo, view: Pod | None, profile: Profile, outcome: Failure) -> None:
        self._reports.failed(
            pod,
            view,
            profile,
            outcome.message,
            outcome.is_error,
            outcome.nominated_node,
            is_pod_gone=outcome.is_pod_gone,
        )
