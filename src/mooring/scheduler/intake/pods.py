"""Intake of pods: those without a node to the queue, those with one to the columns.

Comes in   pods as the watch tells them
Goes out   places in the columns, entries in the queue, confirmations of assumptions, wake-ups of others

A pod is one of these to the scheduler:

  pending    ours (one of our profiles has its scheduler name), without a node: in the queue, in flight, or assumed
  assigned   with a node, whoever gave it: counted in the columns
  nobody's   finished, or waiting for another scheduler

 1. `pending` holds every pending pod as the watch last told it, also while it is assumed.
 2. A pod with a node leaves the queue, and an assumption about it is confirmed, or corrected if somebody else was
    faster: what the API server says is so.
 3. A pod that finishes is gone, as far as scheduling is concerned.
 4. Assigned pods of the first list are placed together, and what comes between them after those before it: whoever
    hears of a pod finds the columns as if each had been placed alone.
 5. A nomination that was promised in memory stands until the API says another one, or takes it back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from msgspec.structs import replace

from mooring.api.views.pod import Pod
from mooring.client.promise import Change
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.binding.assumed_pods import AssumedPods, AssumedPodState
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.engine import FINISHED, Engine
from mooring.scheduler.framework.changes import pod_events
from mooring.scheduler.framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, Subject
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.intake.unreadable import UNREADABLE, leave_out
from mooring.scheduler.queue.queue import SchedulingQueue

DEFAULT_SCHEDULER = "default-scheduler"
ARRIVING_MAX = 8_192
"""So many pods of the first list, before which nobody decides, are placed together: longer pauses help nobody."""


class PodIntake:
    """The sink for pods."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumptions: AssumedPods,
        waiting: WaitingPods,
        scheduler_names: Collection[str],
    ) -> None:
        self._engine = engine
        self._columns = engine.columns
        self._queue = queue
        self._assumptions = assumptions
        self._waiting = waiting
        self._names = frozenset(scheduler_names)
        self.pending: dict[str, PodInfo] = {}
        self._listed: set[str] = set()
        self._arriving: dict[str, PodInfo] = {}
        self._has_listed = False

    # What the reflector tells

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        """The first list, or a new one after the watch was lost: what is not in it is gone."""
        self._forget_all_but({view.metadata.uid for view in views})
        for view in views:
            self.put(view)

    def begin_list(self) -> None:
        """The same page by page: the views of 50,000 pods take 300 MB, and what is remembered of them a tenth. What is
        gone goes last then; until the end of the list its room is not given away."""
        self._place_arrived()
        self._listed.clear()

    def take_page(self, views: Sequence[Pod]) -> None:
        for view in views:
            uid = view.metadata.uid
            self._listed.add(uid)
            if self._is_newly_assigned(view, uid):
                self._arrive(view, uid)
            else:
                self._place_arrived()
                self.put(view)
        if self._has_listed or len(self._arriving) >= ARRIVING_MAX:
            self._place_arrived()

    def end_list(self, revision: str) -> None:
        self._place_arrived()
        self._forget_all_but(self._listed)
        self._listed = set()
        self._has_listed = True

    def _forget_all_but(self, present: set[str]) -> None:
        for uid in [uid for uid in self.pending if uid not in present]:
            self.forget(uid)
        for uid in [uid for uid in self._columns.pods if uid not in present and uid not in self._assumptions]:
            self.forget(uid)

    def apply(self, change: Change, view: Pod) -> None:
        if change is Change.DELETED:
            self.forget(view.metadata.uid)
        else:
            self.put(view)

    def put(self, view: Pod) -> None:
        """A pod, new or changed."""
        uid = view.metadata.uid
        try:
            if view.status.phase in FINISHED:
                self.forget(uid)
            elif view.spec.node_name:
                self._put_assigned(view, uid)
            elif uid in self.pending:
                self._update_pending(view, uid)
            elif (view.spec.scheduler_name or DEFAULT_SCHEDULER) in self._names:
                self._add_pending(view, uid)
        except UNREADABLE as error:
            leave_out(view, error)

    # Assigned, and new to us: on the first list nearly all are. Those are placed together.

    def _is_newly_assigned(self, view: Pod, uid: str) -> bool:
        return (
            bool(uid and view.spec.node_name)
            and view.status.phase not in FINISHED
            and uid not in self.pending
            and uid not in self._columns.pods
            and uid not in self._assumptions
            and uid not in self._arriving
        )

    def _arrive(self, view: Pod, uid: str) -> None:
        try:
            pod = self._arriving[uid] = self._columns.record(view)
            pod.view = None
        except UNREADABLE as error:
            leave_out(view, error)

    def _place_arrived(self) -> None:
        if not self._arriving:
            return
        arrived, self._arriving = self._arriving, {}
        self._columns.place_all(arrived.values())
        for pod in arrived.values() if self._queue.is_listening else ():
            self._queue.wake(ASSIGNED_POD_ADD, None, pod)

    # Assigned

    def _put_assigned(self, view: Pod, uid: str) -> None:
        was_pending = self.pending.pop(uid, None)
        known = self._columns.pods.get(uid)
        assumption = self._assumptions.remove(uid) if uid in self._assumptions else None
        if was_pending is not None:
            self._columns.withdraw(was_pending)
            if assumption is None:
                self._queue.delete(uid)
        if assumption is not None and known is not None and _is_confirmation(known, view):
            known.start_s, known.view = _started_s(view), None
            self._queue.wake(ASSIGNED_POD_ADD, None, known)
            return
        pod = self._columns.record(view)
        if known is None:
            self._place(pod)
        elif _counts_alike(known, pod):
            known.start_s, known.view, pod = pod.start_s, None, known
        elif _takes_alike(known, pod):
            pod.view = None
            self._columns.relabel(known, pod)
        else:
            self._columns.displace(known)
            pod.arrival = known.arrival
            self._place(pod)
        if known is None or assumption is not None:
            self._queue.wake(ASSIGNED_POD_ADD, None, pod)
            return
        for event in pod_events(known, pod, Subject.ASSIGNED_POD):
            self._queue.wake(event, known, pod)

    def _place(self, pod: PodInfo) -> None:
        pod.view = None  # a placed pod is counted, not read
        self._columns.place(pod, pod.node_name)

    # Pending

    def _add_pending(self, view: Pod, uid: str) -> None:
        pod = self.pending[uid] = self._columns.record(view)
        if pod.nominated_node and not pod.terminating:
            self._columns.nominate(pod, pod.nominated_node)
        self._queue.add(pod)

    def _update_pending(self, view: Pod, uid: str) -> None:
        old = self.pending[uid]
        old_view = old.view
        assert old_view is not None, f"{old} is pending and has no view"
        if old_view.metadata.resource_version == view.metadata.resource_version:
            return
        pod = self.pending[uid] = self._columns.record(view)
        if uid in self._assumptions:
            if pod.terminating and not old.terminating:
                self._assumed_is_deleted(uid)
            return
        promised = self._columns.nominations.node_of(old)
        told_before, told_now = old_view.status.nominated_node_name, view.status.nominated_node_name
        nominated = told_now or (promised if not told_before else None) or ""
        pod.nominated_node = nominated
        if nominated and not pod.terminating:
            self._columns.nominate(pod, nominated)
        else:
            self._columns.withdraw(old)
        self._queue.update(old, pod, pod_events(old, pod, Subject.PENDING_POD))
        if told_before and told_before != told_now:
            # Others who yielded to it on that node may fit now.
            self._queue.wake(ASSIGNED_POD_DELETE, old, None, only=partial(_is_at_most, old.priority))

    # Gone

    def forget(self, uid: str) -> None:
        """A pod is gone, or has finished."""
        pending = self.pending.pop(uid, None)
        if pending is not None:
            self._pending_is_gone(pending)
            return
        known = self._columns.pods.get(uid)
        if known is not None:
            self._assumptions.remove(uid)
            self._columns.displace(known)
            self._queue.wake(ASSIGNED_POD_DELETE, known, None)

    def _pending_is_gone(self, pod: PodInfo) -> None:
        self._queue.delete(pod.uid)
        self._columns.withdraw(pod)
        if pod.uid in self._assumptions:
            self._assumed_is_deleted(pod.uid)
        elif pod.nominated_node:
            self._queue.wake(ASSIGNED_POD_DELETE, pod, None, only=partial(_is_at_most, pod.priority))

    def _assumed_is_deleted(self, uid: str) -> None:
        """Its binding goes on and will fail; its room is free at once."""
        assumption = self._assumptions.get(uid)
        assert assumption is not None
        waiting = self._waiting.get(uid)
        if waiting is not None:
            waiting.reject("", "removed")
        elif assumption.state is not AssumedPodState.RELEASED:
            self._columns.displace(assumption.pod)
            if assumption.state is AssumedPodState.BOUND:
                self._assumptions.remove(uid)
            else:
                self._assumptions.release(uid)
        self._queue.wake(ASSIGNED_POD_DELETE, assumption.pod, None)


def _is_confirmation(known: PodInfo, view: Pod) -> bool:
    """Whether this is the assumed pod just as it was, on the assumed node: what nearly every binding ends in."""
    assumed = known.view
    if assumed is None or view.spec.node_name != known.node_name:
        return False
    metadata, before, status = view.metadata, assumed.metadata, view.status
    return (
        metadata.deletion_timestamp is None
        and not known.terminating
        and metadata.labels == before.labels
        and metadata.owner_references == before.owner_references
        and not (status.container_statuses or status.init_container_statuses or status.resources)
        and replace(view.spec, node_name="") == assumed.spec
    )


def _started_s(view: Pod) -> float:
    return parse_rfc3339(view.status.start_time) if view.status.start_time is not None else NO_START_S


def _counts_alike(known: PodInfo, pod: PodInfo) -> bool:
    """Whether the columns would count both the same: then nothing has to be taken away and added again."""
    return known.signature is pod.signature and _is_used_alike(known, pod)


def _takes_alike(known: PodInfo, pod: PodInfo) -> bool:
    """Whether both take the same of the same node, as every pod that is bound and given its zone's label then."""
    return (
        known.row >= 0
        and not known.volumes
        and known.signature.family == pod.signature.family
        and _is_used_alike(known, pod)
    )


def _is_used_alike(known: PodInfo, pod: PodInfo) -> bool:
    return (
        known.node_name == pod.node_name
        and known.terminating == pod.terminating
        and known.disrupted == pod.disrupted
        and known.volumes == pod.volumes
    )


def _is_at_most(priority: int, pod: PodInfo) -> bool:
    return pod.priority <= priority
