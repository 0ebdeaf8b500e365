"""Reports: what the scheduler tells its users, each fact in one place.

Comes in   what happened to a pod
Goes out   PodScheduled conditions and nominated nodes (`status_writer`), events (`client.events`), numbers (`metrics`),
           log lines: failures always, what became of every attempt at `-v 2`

 1. The texts are kube-scheduler's, to the letter.
 2. Nothing here waits, and nothing here fails the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from mooring.api.views.meta import Condition, ObjectReference
from mooring.api.views.pod import Pod
from mooring.client.events.recorder import EventRecorder, EventType
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Rejection
from mooring.scheduler.queue.entry import DEFAULT_SCHEDULER_NAME, QueuedPod
from mooring.scheduler.reporting.decisions import DecisionLog
from mooring.scheduler.reporting.metrics import Metrics
from mooring.scheduler.reporting.plugin_timing import PluginTiming
from mooring.scheduler.reporting.status_writer import StatusWriter

logger = logging.getLogger(__name__)

ATTEMPTS_LOGGED = logging.INFO - 2
"""The level of lines about every attempt: klog's 2, at which kube-scheduler writes them."""
SAMPLED_ONE_IN = 20
"""In one of so many cycles the plugins are timed."""


class Reports:
    """Tells everybody."""

    def __init__(
        self,
        recorders: Mapping[str, EventRecorder],
        status: StatusWriter,
        metrics: Metrics,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._recorders = recorders
        """One for each profile: the scheduler's name is the source of the event."""
        self._status = status
        self._metrics = metrics
        self._clock = clock
        self._die = entropy
        self.decisions = DecisionLog(clock)
        self._timings: dict[str, PluginTiming] = {}
        self._cycles_to_sample = 1

    # Attempts

    def sampled(self, profile: Profile) -> PluginTiming | None:
        """What times the plugins of the next cycle, in one of `SAMPLED_ONE_IN` by chance; None in all others."""
        self._cycles_to_sample -= 1
        if self._cycles_to_sample > 0:
            return None
        self._cycles_to_sample = 1 + self._die.integer_below(2 * SAMPLED_ONE_IN - 1)
        timing = self._timings.get(profile.scheduler_name)
        if timing is None:
            timing = self._timings[profile.scheduler_name] = PluginTiming(profile, self._metrics, self._clock)
        return timing

    def decided(self, decision: Decision, took_s: float) -> None:
        self._metrics.algorithm_duration.observe(took_s)
        self.decisions.add(decision, took_s)
        if decision.node_name is None and decision.is_refusal:
            self._metrics.preemption_attempts.inc()

    def scheduled(self, entry: QueuedPod, profile: Profile, node_name: str, started_s: float) -> None:
        pod, now_s = entry.pod, self._clock.now_s()
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self._event(pod, profile.scheduler_name, "Normal", "Scheduled", "Binding", note)
        self._metrics.attempted("scheduled", profile.scheduler_name, now_s - started_s)
        waited_s = now_s - entry.first_attempt_s if entry.first_attempt_s is not None else None
        self._metrics.scheduled(entry.attempts, waited_s, was_flushed=entry.was_flushed)
        if logger.isEnabledFor(ATTEMPTS_LOGGED):  # asked first: this is done for every pod
            logger.log(ATTEMPTS_LOGGED, "pod %s is bound to %s, attempts: %d", pod.key, node_name, entry.attempts)

    def attempt_failed(self, profile: Profile, is_error: bool, started_s: float) -> None:
        result = "error" if is_error else "unschedulable"
        self._metrics.attempted(result, profile.scheduler_name, self._clock.now_s() - started_s)

    def failed(
        self,
        pod: PodInfo,
        view: Pod | None,
        profile: Profile,
        message: str,
        is_error: bool,
        nominated_node: str | None,
        *,
        is_pod_gone: bool = False,
    ) -> None:
        """`view` is the pod as it was tried; None if nobody remembers: then its status cannot be told."""
        self._event(pod, profile.scheduler_name, "Warning", "FailedScheduling", "Scheduling", message)
        if is_pod_gone:
            # Normal: a ReplicaSet that is scaled down, or a rollout, deletes pods that are not bound yet.
            logger.info("pod %s no longer exists, its scheduling attempt ended: %s", pod.key, message)
        elif is_error:
            logger.error("scheduling pod %s failed: %s", pod.key, message)
        else:
            logger.log(ATTEMPTS_LOGGED, "pod %s was refused and waits: %s", pod.key, message)
        if view is None:
            return
        reason = "SchedulerError" if is_error else "Unschedulable"
        condition = Condition(type="PodScheduled", status="False", reason=reason, message=message)
        self._status.write(view, condition, nominated_node)

    def skipped(self, pod: PodInfo, scheduler_name: str) -> None:
        note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
        self._event(pod, scheduler_name, "Warning", "FailedScheduling", "Scheduling", note)

    def tell(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> None:
        """What a plugin has to say about a pod."""
        scheduler_name = pod.signature.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        self._event(pod, scheduler_name, type_, reason, action, note)

    # Nominations and Permit

    def expect(self, pod: PodInfo, node_name: str) -> None:
        """The pod will take a while to get to its node: others may want to know where it is going."""
        if pod.view is not None:
            self._status.write(pod.view, nominated_node=node_name)

    def silence(self, pod: PodInfo) -> asyncio.Event | None:
        """The pod is about to be bound: what its status should have said before is not said any more.

        If it is being said just now: what is set when that is over.
        """
        return self._status.silence(pod.uid)

    def nomination_is_void(self, pod: PodInfo) -> None:
        if pod.view is not None:
            self._status.write(pod.view, nominated_node="")

    def permit_waited(self, rejection: Rejection | None, waited_s: float) -> None:
        code = rejection.code if rejection is not None else Code.SUCCESS
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
        self._event(victim, scheduler_name, "Normal", "Preempted", "Preempting", note, related=_reference(pod))

    def preemption_ended(self, is_done: bool, took_s: float) -> None:
        result = "success" if is_done else "error"
        self._metrics.preemptions.labels(result).inc()
        self._metrics.preemption_duration.labels(result).observe(took_s)

    # The queue

    def came_in(self, queue: str, event: str) -> None:
        self._metrics.came_in(queue, event)

    def _event(
        self,
        pod: PodInfo,
        scheduler_name: str,
        type_: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        self._recorders[scheduler_name].event(
            _reference(pod), type=type_, reason=reason, action=action, note=note, related=related
        )


def _reference(pod: PodInfo) -> ObjectReference:
    revision = pod.view.metadata.resource_version if pod.view is not None else ""
    return ObjectReference(
        api_version=Pod.api_version,
        kind=Pod.kind,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=revision,
    )
