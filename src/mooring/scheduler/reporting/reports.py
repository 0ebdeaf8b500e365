"""Reports: what the scheduler reports about a pod, each fact in one place.

Writes PodScheduled conditions and nominated nodes (`StatusWriter`), events (`client.events`), metrics (`metrics`),
decision records for /debug/decisions (`decision_records`), the recording (`recording`), and log lines: failures always,
the result of every attempt at `-v 2`.

1. The texts are kube-scheduler's, byte for byte.
2. No method of `Reports` awaits, and none raises.

The status writer patches conditions and nominated nodes of pods in the background.

3. At most one patch of a pod is running, and a limited number in all. Writes that arrive meanwhile are merged: the
   last one counts for each condition and for the nominated node.
4. A write that changes nothing in the pod's status is not sent.
5. A patch is retried if the server is overloaded or unreachable. A pod that is gone needs no patch.
6. Pending writes of a pod are discarded before it is bound: sent later, they would contradict the binding.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from mooring.api.kinds import POD
from mooring.api.views.meta import Condition, ObjectReference
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.events import EventRecorder, EventType
from mooring.client.interface import Client, PatchForm
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.logs import ATTEMPTS, fields
from mooring.kit.tasks import WorkerPool
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import NO_STEPS, Steps
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.queue.queued_pod import NO_PLUGINS, QueuedPod
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecords
from mooring.scheduler.reporting.metrics import Metrics, PluginTiming
from mooring.scheduler.reporting.nearest_misses import NearestMiss
from mooring.scheduler.reporting.recording import Outcome, Recording

logger = logging.getLogger(__name__)

TRIES_MAX = 8
RETRY = Backoff(initial_s=0.25, max_s=30.0)
SAMPLED_ONE_IN = 20
"""The plugins are timed in one of this number of cycles."""


class PendingWrite:
    """The fields of a pod's status that are to be written."""

    def __init__(self, namespace: str, name: str, uid: str) -> None:
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.conditions: dict[str, dict[str, object]] = {}
        self.nominated_node: str | None = None
        self.is_discarded = False
        """The write was discarded: it is not retried."""
        self.done: asyncio.Event | None = None
        """While a request is running: set when the response has arrived."""

    def patch(self) -> dict[str, object]:
        status: dict[str, object] = {}
        if self.conditions:
            status["conditions"] = list(self.conditions.values())
        if self.nominated_node is not None:
            status["nominatedNodeName"] = self.nominated_node or None
        # The uid makes sure that a pod of the same name which came later is left alone.
        return {"metadata": {"uid": self.uid}, "status": status}


class StatusWriter:
    """Writes the status of pods in the background."""

    def __init__(self, client: Client, clock: Clock, pool: WorkerPool) -> None:
        self._client = client
        self._clock = clock
        self._pool = pool
        self._pending: dict[str, PendingWrite] = {}
        self._queued: set[str] = set()
        self._sending: dict[str, PendingWrite] = {}
        self.failures = 0

    def __len__(self) -> int:
        """The number of pods with pending writes."""
        return len(self._queued)

    def write(self, pod: Pod, condition: Condition | None = None, nominated_node: str | None = None) -> None:
        """Write a condition, or another nominated node (empty: none), into the status of a pod. Never waits."""
        uid = pod.metadata.uid
        write = self._pending.get(uid)
        has_condition = condition is None or _has_condition(pod, condition)
        has_node = nominated_node is None or pod.status.nominated_node_name == nominated_node
        if write is None:
            if (has_condition and has_node) and uid not in self._queued:
                return
            write = self._pending[uid] = PendingWrite(pod.metadata.namespace, pod.metadata.name, uid)
        if condition is not None:
            write.conditions[condition.type] = self._as_json(pod, condition)
        if nominated_node is not None:
            write.nominated_node = nominated_node
        if uid not in self._queued:
            self._queued.add(uid)
            self._pool.start(partial(self._send, uid))

    def discard_writes(self, uid: str) -> asyncio.Event | None:
        """Discard the pending writes of a pod. Returns the event that is set when its running request has ended."""
        self._pending.pop(uid, None)
        sending = self._sending.get(uid)
        if sending is None:
            return None
        sending.is_discarded = True
        return sending.done

    def _as_json(self, pod: Pod, condition: Condition) -> dict[str, object]:
        """The condition as JSON. The transition time stays while the status is the same."""
        since = format_rfc3339(self._clock.wall_s())
        for known in pod.status.conditions:
            if known.type == condition.type and known.status == condition.status and known.last_transition_time:
                since = known.last_transition_time
        sent: dict[str, object] = {
            "type": condition.type,
            "status": condition.status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
            "reason": condition.reason,
            "message": condition.message,
        }
        if pod.metadata.generation:
            sent["observedGeneration"] = pod.metadata.generation
        return sent

    async def _send(self, uid: str) -> None:
        try:
            while (write := self._pending.pop(uid, None)) is not None:
                self._sending[uid] = write
                await self._send_one(write)
        finally:
            self._queued.discard(uid)
            self._sending.pop(uid, None)

    async def _send_one(self, write: PendingWrite) -> None:
        for attempt in range(1, TRIES_MAX + 1):
            error = await self._try(write)
            if error is None:
                return
            if not error.can_help_to_retry or attempt == TRIES_MAX:
                self.failures += 1
                logger.warning(
                    "the status of pod %s/%s was not written: %s",
                    write.namespace,
                    write.name,
                    error,
                    extra=fields(pod=f"{write.namespace}/{write.name}", reason=error),
                )
                return
            await self._clock.wait(RETRY.delay_s(attempt))
            if write.is_discarded:
                return

    async def _try(self, write: PendingWrite) -> ClientError | None:
        """Send the patch once. None: it was written, or the pod is gone."""
        place = (POD, write.namespace, write.name)
        write.done = asyncio.Event()
        try:
            await self._client.patch(*place, write.patch(), form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return error
        finally:
            write.done.set()
            write.done = None
        return None


def _has_condition(pod: Pod, condition: Condition) -> bool:
    for known in pod.status.conditions:
        if known.type == condition.type:
            return (known.status, known.reason, known.message) == (
                condition.status,
                condition.reason,
                condition.message,
            )
    return False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, and what becomes of the pod's nomination."""

    message: str
    is_error: bool
    plugin: str = ""
    """The plugins that rejected the pod, or the one that failed: names separated by commas."""
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    nominated_node: str | None = None
    """None keeps the nomination of the pod. An empty string clears it."""
    is_pod_gone: bool = False
    """The pod was deleted. The watch may not have delivered the event yet."""


class Reports:
    """Writes the reports of one scheduler."""

    def __init__(
        self,
        recorders: Mapping[str, EventRecorder],
        status: StatusWriter,
        metrics: Metrics,
        clock: Clock,
        entropy: Entropy,
        configuration_hash: str = "",
        recording: Recording | None = None,
    ) -> None:
        self._recorders = recorders
        """By scheduler name, which is the source of the event."""
        self._status = status
        self._metrics = metrics
        self._clock = clock
        self._entropy = entropy
        self.decisions = DecisionRecords(clock, seed=entropy.seed, configuration=configuration_hash)
        self._recording = recording
        self._timings: dict[str, PluginTiming] = {}
        self._cycles_to_sample = 1

    # Attempts

    def sampled(self, profile: Profile) -> PluginTiming | None:
        """The timing of the next cycle's plugins, in one of `SAMPLED_ONE_IN` cycles at random; None in the others."""
        self._cycles_to_sample -= 1
        if self._cycles_to_sample > 0:
            return None
        self._cycles_to_sample = 1 + self._entropy.integer_below(2 * SAMPLED_ONE_IN - 1)
        timing = self._timings.get(profile.scheduler_name)
        if timing is None:
            timing = self._timings[profile.scheduler_name] = PluginTiming(profile, self._metrics, self._clock)
        return timing

    def decided(
        self,
        decision: Decision,
        attempt: int,
        took_s: float,
        requeued_by: str = "",
        steps: Steps = NO_STEPS,
        nearest: tuple[NearestMiss, ...] = (),
    ) -> None:
        self._metrics.algorithm_duration.observe(took_s)
        self.decisions.add(decision, attempt, took_s, requeued_by, steps, nearest)
        if self._recording is not None:
            self._recording.decided(decision)
        if decision.node_name is None:
            if decision.is_unschedulable:
                self._metrics.preemption_attempts.inc()
        elif logger.isEnabledFor(ATTEMPTS):  # checked first: this runs for every pod
            pod, node_name, count = decision.pod.key, decision.node_name, decision.feasible_count
            about = fields(pod=pod, node=node_name, feasibleNodes=count)
            logger.log(ATTEMPTS, "pod %s gets %s, feasible nodes: %d", pod, node_name, count, extra=about)

    def cycle_failed(self, pod: PodInfo, error: Exception) -> None:
        """The scheduling cycle, or Reserve, has raised an exception."""
        logger.error("scheduling pod %s failed", pod.key, exc_info=error, extra=fields(pod=pod.key))
        if self._recording is not None:
            self._recording.failed(pod, error)

    def binding_ended(self, pod: PodInfo, outcome: Outcome, message: str = "") -> None:
        """A binding has ended, or Reserve has rejected the pod. The columns are as that leaves them."""
        if self._recording is not None:
            self._recording.binding_ended(pod, outcome, message)

    def scheduled(self, entry: QueuedPod, view: Pod | None, profile: Profile, node_name: str, started_s: float) -> None:
        """`view` is the pod as it was tried: the watch may have shown its node already."""
        pod, now_s = entry.pod, self._clock.now_s()
        self.decisions.bound(pod.uid, BOUND)
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self._record(pod, profile.scheduler_name, "Normal", "Scheduled", "Binding", note, view=view)
        self._metrics.attempted("scheduled", profile.scheduler_name, now_s - started_s)
        waited_s = now_s - entry.first_attempt_s if entry.first_attempt_s is not None else None
        self._metrics.scheduled(entry.attempts, waited_s, was_flushed=entry.was_flushed)
        if logger.isEnabledFor(ATTEMPTS):
            about = fields(pod=pod.key, node=node_name, attempts=entry.attempts)
            logger.log(ATTEMPTS, "pod %s is bound to %s, attempts: %d", pod.key, node_name, entry.attempts, extra=about)

    def attempt_failed(self, profile: Profile, is_error: bool, started_s: float) -> None:
        result = "error" if is_error else "unschedulable"
        self._metrics.attempted(result, profile.scheduler_name, self._clock.now_s() - started_s)

    def failed(self, pod: PodInfo, view: Pod | None, profile: Profile, failure: Failure) -> None:
        """`view` is the pod as it was tried. If it is None, the pod's status is not written."""
        message = failure.message
        self.decisions.bound(pod.uid, message)
        self._record(pod, profile.scheduler_name, "Warning", "FailedScheduling", "Scheduling", message, view=view)
        about = fields(pod=pod.key, plugin=failure.plugin, reason=message, node=failure.nominated_node)
        if failure.is_pod_gone:
            # Normal: a ReplicaSet that is scaled down, or a rollout, deletes pods that are not bound yet.
            logger.info("pod %s no longer exists, its scheduling attempt ended: %s", pod.key, message, extra=about)
        elif failure.is_error:
            logger.error("scheduling pod %s failed: %s", pod.key, message, extra=about)
        else:
            logger.log(ATTEMPTS, "pod %s is unschedulable: %s", pod.key, message, extra=about)
        if view is None:
            return
        reason = "SchedulerError" if failure.is_error else "Unschedulable"
        condition = Condition(type="PodScheduled", status="False", reason=reason, message=message)
        self._status.write(view, condition, failure.nominated_node)

    def skipped(self, pod: PodInfo, scheduler_name: str) -> None:
        note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
        self._record(pod, scheduler_name, "Warning", "FailedScheduling", "Scheduling", note)

    def event(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> None:
        """An event of a plugin about a pod."""
        self._record(pod, pod.signature.scheduler_name, type_, reason, action, note)

    # Nominations and Permit

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Write the node into the status of a pod whose binding may take a while."""
        if pod.view is not None:
            self._status.write(pod.view, nominated_node=node_name)

    def discard_writes(self, pod: PodInfo) -> asyncio.Event | None:
        """Discard pending status writes of a pod that is about to be bound: they would contradict the binding.

        If a write is running, returns the event that is set when it has ended.
        """
        return self._status.discard_writes(pod.uid)

    def clear_nomination(self, pod: PodInfo) -> None:
        if pod.view is not None:
            self._status.write(pod.view, nominated_node="")

    def permit_waited(self, status: Status | None, waited_s: float) -> None:
        code = status.code if status is not None else Code.SUCCESS
        self._metrics.permit_wait.labels(code.value).observe(waited_s)

    # Preemption

    def preempting(self, victim_count: int) -> None:
        self._metrics.preemption_victims.observe(victim_count)

    def preempted(
        self, victim: PodInfo, pod: PodInfo, node_name: str, scheduler_name: str, *, is_in_memory: bool
    ) -> None:
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        if is_in_memory:
            note += " (in kube-scheduler memory)."
        self._record(victim, scheduler_name, "Normal", "Preempted", "Preempting", note, related=_reference(pod))
        about = fields(pod=victim.key, node=node_name, preemptor=pod.key)
        logger.log(ATTEMPTS, "pod %s on %s is preempted by pod %s", victim.key, node_name, pod.key, extra=about)

    def preemption_ended(self, is_done: bool, took_s: float) -> None:
        result = "success" if is_done else "error"
        self._metrics.preemptions.labels(result).inc()
        self._metrics.preemption_duration.labels(result).observe(took_s)

    # The queue

    def pod_queued(self, queue: str, event: str) -> None:
        self._metrics.pod_queued(queue, event)

    def _record(
        self,
        pod: PodInfo,
        scheduler_name: str,
        type_: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
        view: Pod | None = None,
    ) -> None:
        self._recorders[scheduler_name].event(
            _reference(pod, view), type=type_, reason=reason, action=action, note=note, related=related
        )


def _reference(pod: PodInfo, view: Pod | None = None) -> ObjectReference:
    """A reference to a pod as `view` shows it, or to the current pod."""
    view = view if view is not None else pod.view
    revision = view.metadata.resource_version if view is not None else ""
    return ObjectReference(
        api_version=Pod.api_version,
        kind=Pod.kind,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=revision,
    )
