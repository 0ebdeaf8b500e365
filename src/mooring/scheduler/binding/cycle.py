"""The binding cycle: take an assumed pod from Permit to its binding, while the next pods are scheduled.

    Permit ──> (wait) ──> PreBind ──> Bind ──> PostBind
         \\        \\          \\       \\
          +--------+----------+-------+-> unreserve, forget, queue other pods, back to the queue

    stages of a binding:   WAITING ──> READY ──> PREPARING ──> BINDING ──> (bound, or failed)
                           Permit      queued    PreBind       Bind

On success the API server has the pod on its node. On failure the columns are as before, and the pod is in the queue.

1. A pod that waits for Permit uses no task and none of the limited number of bindings: a gang larger than that limit
   must be able to assemble.
2. When the API server rejects a binding, or its response is lost, the pod is looked up before its resources are freed:
   it may be bound. As long as the lookup fails, the pod stays assumed. A binding that was not sent, because this
   process does not lead any more, needs no lookup: the pod is forgotten immediately.
   A request whose response is lost may still be carried out after the lookup. So the same binding is sent again until
   there is a response: one of the requests binds the pod, the others are conflicts, and the node is the same.
3. Every change of the columns goes through the event buffer: the columns do not change while a decision waits for an
   extender.
4. A binding can be cancelled until PreBind has ended: preemption may need the node.
5. A binding of a cycle that ran while scheduling is paused waits for a step (`scheduler.pause`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from copy import copy
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError, NotLeadingError
from mooring.client.interface import Client
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.logs import fields
from mooring.kit.tasks import WorkerPool
from mooring.scheduler.binding.assumed_pods import AssumedPod, AssumedPods, forget_assumed
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders.client import ExtenderClient
from mooring.scheduler.failure import FailureHandler, failed_with_error, rejected_in_binding, rejected_on_node
from mooring.scheduler.framework.events import ASSIGNED_POD_DELETE
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import PreBind, Skip, Wait
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.pause import SchedulingPause
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.reporting.reports import Failure, Reports


class BindingStage(Enum):
    WAITING = "waiting for Permit"
    READY = "in line"
    PREPARING = "PreBind"
    BINDING = "Bind"


class Binding:
    """One running binding: a pod, its node and its stage."""

    def __init__(
        self,
        entry: QueuedPod,
        profile: Profile,
        assumed: AssumedPod,
        pre_binds: tuple[PreBind, ...],
        started_s: float,
    ) -> None:
        self.entry = entry
        self.profile = profile
        self.assumed = assumed
        self.pod, self.node_name = assumed.pod, assumed.node_name
        self.pre_binds = pre_binds
        """The PreBind plugins that have work for this pod."""
        self.started_s = started_s
        self.stage = BindingStage.READY
        self.cancelled_by = ""
        self.is_rejected = False
        """The API server rejected the binding: if the pod is on the node anyway, another scheduler has bound it."""
        self.is_outcome_unknown = False
        """No response of the API server to the binding has arrived."""
        self.is_unsent = False
        """The process does not lead any more, and the binding was not sent."""
        self.is_pod_gone = False
        """The API server has deleted the pod, or is deleting it, so that a failed binding is no error."""
        self.is_held = False
        """Scheduling is paused: the binding waits for a step."""
        self._worker: asyncio.Task[Any] | None = None

    def cancel(self, plugin: str) -> bool:
        """Cancel PreBind. False if PreBind has not started, or has ended."""
        if self.cancelled_by:
            return True
        if self._worker is None:
            return False
        self.cancelled_by = plugin
        self._worker.cancel()
        return True

    def begin_pre_bind(self) -> None:
        """PreBind begins, in the current task."""
        self.stage = BindingStage.PREPARING
        self._worker = asyncio.current_task()

    def end_pre_bind(self) -> bool:
        """PreBind has ended and can no longer be cancelled. Returns whether it was."""
        worker, self._worker = self._worker, None
        self.stage = BindingStage.BINDING
        if not self.cancelled_by:
            return False
        if worker is not None:
            worker.uncancel()
        return True


logger = logging.getLogger(__name__)

LOOKUP_BACKOFF = Backoff(initial_s=0.5, max_s=10.0)
BINDING_BACKOFF = Backoff(initial_s=0.1, max_s=1.0)
BINDINGS_MAX = 10
"""Maximum number of times that a binding is sent whose responses are lost. Then it has failed."""
LOOKUPS_MAX = 30
"""Maximum number of lookups after a failed binding, about four minutes. Then the binding has failed."""


class BindingCycle:
    """Runs the binding cycle of assumed pods."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumed_pods: AssumedPods,
        waiting: WaitingPods,
        pool: WorkerPool,
        failures: FailureHandler,
        reports: Reports,
        client: Client,
        clock: Clock,
        event_buffer: EventBuffer,
        extender_client: ExtenderClient | None,
        pause: SchedulingPause,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._assumed_pods = assumed_pods
        self._waiting = waiting
        self._pool = pool
        self._failures = failures
        self._reports = reports
        self._client = client
        self._clock = clock
        self._event_buffer = event_buffer
        self._extender_client = extender_client
        self._pause = pause
        self.running: dict[str, Binding] = {}
        """All running bindings, by the uid of the pod."""

    # Synchronous: still in the scheduling cycle

    def start(self, entry: QueuedPod, profile: Profile, node_name: str, started_s: float) -> None:
        """Run Permit, then start the binding, let the pod wait, or fail."""
        pod = entry.pod
        assumed = self._assumed_pods.add(pod, node_name)
        timeouts_s: dict[str, float] = {}
        if profile.permits:
            result = run_permit(profile, pod, node_name)
            if isinstance(result, Status):
                self._fail(Binding(entry, profile, assumed, (), started_s), result)
                return
            timeouts_s = result
        pre_binds = _pre_binds_with_work(profile, pod, node_name)
        if isinstance(pre_binds, Status):
            self._fail(Binding(entry, profile, assumed, (), started_s), pre_binds)
            return
        binding = self.running[pod.uid] = Binding(entry, profile, assumed, pre_binds, started_s)
        binding.is_held = self._pause.is_on
        if timeouts_s or pre_binds:
            # Other components, such as an autoscaler, can read the node while the binding runs.
            self._reports.nominate(pod, node_name)
        if timeouts_s:
            binding.stage = BindingStage.WAITING
            since_s = self._clock.now_s()
            self._waiting.add(pod, node_name, timeouts_s, partial(self._permit_ended, binding, since_s))
        else:
            self._queue_binding(binding)

    def _permit_ended(self, binding: Binding, since_s: float, status: Status | None) -> None:
        self._reports.permit_waited(status, self._clock.now_s() - since_s)
        if status is None:
            self._queue_binding(binding)
        else:
            self._event_buffer.run(partial(self._fail, binding, status))

    def _queue_binding(self, binding: Binding) -> None:
        """Queue the binding. The pod is no longer in flight: a failure from here on is retried without hints."""
        binding.stage = BindingStage.READY
        self._queue.done(binding.pod.uid)
        self._pool.start(partial(self._bind, binding))

    # Asynchronous

    async def _bind(self, binding: Binding) -> None:
        view = binding.pod.view  # the event handler drops the view when the watch shows a node
        if binding.is_held:
            await self._pause.wait_binding()
            binding.is_held = False
        status = await self._run_pre_bind(binding) if binding.pre_binds else None
        is_bound = False
        if status is None:
            binding.stage = BindingStage.BINDING
            if (pending_write := self._reports.discard_writes(binding.pod)) is not None:
                await pending_write.wait()
            status, is_bound = await self._bind_until_known(binding)
        if is_bound and status is not None and binding.is_rejected:
            self._bound_by_another(binding, view, status)
        elif is_bound or status is None:
            self._bound(binding, view)
        else:
            self._event_buffer.run(partial(self._fail, binding, status))

    async def _bind_until_known(self, binding: Binding) -> tuple[Status | None, bool]:
        """Send the binding, again while its outcome is unknown: the last status, and whether the pod is bound."""
        status: Status | None = None
        is_bound = was_unknown = False
        for attempt in range(1, BINDINGS_MAX + 1):
            binding.is_outcome_unknown = binding.is_rejected = False
            status = await self._run_bind(binding)
            if status is None:
                return None, True
            if binding.is_unsent:
                return status, False
            is_bound = not await self._is_unbound(binding)
            was_unknown = was_unknown or binding.is_outcome_unknown
            binding.is_rejected = binding.is_rejected and not was_unknown  # on the node: an earlier request bound it
            if is_bound or binding.is_pod_gone or not binding.is_outcome_unknown:
                break
            await self._clock.wait(BINDING_BACKOFF.delay_s(attempt))
        return status, is_bound

    async def _run_pre_bind(self, binding: Binding) -> Status | None:
        binding.begin_pre_bind()
        status: Status | None = None
        running = ""
        try:
            for plugin in binding.pre_binds:
                running = plugin.name
                try:
                    returned = await plugin.pre_bind(binding.pod, binding.node_name)
                    status = _result("PreBind", plugin.name, returned)
                except Exception as error:
                    status = _raised("PreBind", plugin.name, error)
                if status is not None:
                    break
        except asyncio.CancelledError:
            if not binding.cancelled_by:
                raise
            status = _error("PreBind", running, f"preempted by {binding.cancelled_by}")
        if binding.end_pre_bind() and status is None:
            status = Status.error(f"preempted by {binding.cancelled_by}")
        return status

    async def _run_bind(self, binding: Binding) -> Status | None:
        if self._extender_client is not None:
            try:
                result = await self._extender_client.bind(binding.pod, binding.node_name)
            except Exception as error:
                return _raised("Bind", "Extender", error)
            if not isinstance(result, Skip):
                return result
        for plugin in binding.profile.binds:
            try:
                returned = await plugin.bind(binding.pod, binding.node_name)
            except ClientError as error:
                binding.is_outcome_unknown = error.is_outcome_unknown
                binding.is_rejected = not error.is_outcome_unknown
                binding.is_unsent = isinstance(error, NotLeadingError)
                return _error("Bind", plugin.name, str(error))
            except Exception as error:
                return _raised("Bind", plugin.name, error)
            if isinstance(returned, Skip):
                continue
            return _result("Bind", plugin.name, returned)
        return Status.error("no plugin has bound the pod")

    async def _is_unbound(self, binding: Binding) -> bool:
        """After a failed binding: whether the pod is not on the node, so that its resources may be freed."""
        pod = binding.pod
        for attempt in range(1, LOOKUPS_MAX + 1):
            try:
                found = decode_as(Pod, await self._client.get(POD, pod.namespace, pod.name))
            except NotFoundError:
                binding.is_pod_gone = True
                return True
            except (ClientError, ObjectError) as error:
                logger.warning(
                    "the result of the binding of pod %s is not known yet: %s",
                    pod.key,
                    error,
                    extra=fields(pod=pod.key, node=binding.node_name, reason=error),
                )
                await self._clock.wait(LOOKUP_BACKOFF.delay_s(attempt))
                continue
            is_another = found.metadata.uid != pod.uid
            binding.is_pod_gone = is_another or found.metadata.deletion_timestamp is not None
            return is_another or found.spec.node_name != binding.node_name
        binding.is_outcome_unknown = False  # the API server does not respond: the binding has failed
        return True

    # The end

    def _bound(self, binding: Binding, view: Pod | None) -> None:
        pod = binding.pod
        del self.running[pod.uid]
        self._assumed_pods.bound(binding.assumed, self._clock.now_s())
        self._reports.binding_ended(pod, "bound")
        self._reports.scheduled(binding.entry, view, binding.profile, binding.node_name, binding.started_s)
        for plugin in binding.profile.post_binds:
            try:
                plugin.post_bind(pod, binding.node_name)
            except Exception:
                logger.exception(
                    "PostBind plugin %s failed for pod %s, which is bound",
                    plugin.name,
                    pod.key,
                    extra=fields(pod=pod.key, node=binding.node_name, plugin=plugin.name),
                )

    def _bound_by_another(self, binding: Binding, view: Pod | None, status: Status) -> None:
        """Another scheduler has bound the pod to the same node: the watch will show it, and this attempt has failed."""
        del self.running[binding.pod.uid]
        self._event_buffer.run(partial(self._engine.unreserve, binding.pod, binding.node_name))
        self._reports.binding_ended(binding.pod, "taken", status.message)
        self._assumed_pods.bound(binding.assumed, self._clock.now_s())
        self._failures.report(binding.pod, view, binding.profile, failed_with_error(status), binding.started_s)

    def _fail(self, binding: Binding, status: Status) -> None:
        """Undo everything, and return the pod to the queue."""
        pod, assumed = binding.pod, binding.assumed
        self.running.pop(pod.uid, None)
        is_unschedulable = status.code is not Code.ERROR
        is_ours = forget_assumed(self._engine, self._assumed_pods, assumed)
        self._reports.binding_ended(pod, "failed", status.message)
        if binding.pre_binds:
            self._pool.start(partial(self._release, binding))
        left = copy(pod)  # the hints of other pods get a pod that leaves this node; the pod itself has no node any more
        if is_ours:
            pod.node_name = ""  # otherwise the watch has shown a node, possibly in this record
        outcome = replace(_outcome_of(status, binding.stage), is_pod_gone=binding.is_pod_gone)
        if is_unschedulable:
            # The resources that the pod frees do not help the pod itself, which a plugin has just rejected.
            self._failures.handle(binding.entry, binding.profile, outcome, binding.started_s)
            self._queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, left, None, pre_check=lambda other: other.uid != pod.uid
            )
        else:
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, left, None)
            self._failures.handle(binding.entry, binding.profile, outcome, binding.started_s)

    async def _release(self, binding: Binding) -> None:
        """Undo the writes of PreBind, in the background."""
        for plugin in binding.profile.reserves:
            try:
                await plugin.released(binding.pod, binding.node_name)
            except Exception:
                logger.exception(
                    "plugin %s could not release what it had written for pod %s",
                    plugin.name,
                    binding.pod.key,
                    extra=fields(pod=binding.pod.key, plugin=plugin.name),
                )


def _outcome_of(status: Status, stage: BindingStage) -> Failure:
    """A rejection up to Permit is about the node. No event is known to help after a rejection by PreBind or Bind."""
    if status.code is Code.ERROR:
        return failed_with_error(status)
    return (
        rejected_in_binding(status)
        if stage in (BindingStage.PREPARING, BindingStage.BINDING)
        else rejected_on_node(status)
    )


def run_permit(profile: Profile, pod: PodInfo, node_name: str) -> dict[str, float] | Status:
    """The time-out of each plugin that makes the pod wait; or the status of the plugin that rejected it."""
    timeouts_s: dict[str, float] = {}
    for plugin in profile.permits:
        try:
            result = plugin.permit(pod, node_name)
        except Exception as error:
            return _raised("Permit", plugin.name, error)
        if isinstance(result, Wait) and _is_time(result.timeout_s):
            timeouts_s[plugin.name] = result.timeout_s
        elif (status := _result("Permit", plugin.name, result)) is not None:
            return status
    return timeouts_s


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and not math.isnan(seconds)


def _pre_binds_with_work(profile: Profile, pod: PodInfo, node_name: str) -> tuple[PreBind, ...] | Status:
    """The PreBind plugins that have work for this pod; or the status of a plugin that failed."""
    found: list[PreBind] = []
    for plugin in profile.pre_binds:
        try:
            if plugin.has_work(pod, node_name):
                found.append(plugin)
        except Exception as error:
            return _raised("PreBindPreFlight", plugin.name, error)
    return tuple(found)


def _result(point: str, plugin: str, status: object) -> Status | None:
    """A plugin's result, with kube-scheduler's message. None if it is a success; an error if it is no Status."""
    if status is None or (isinstance(status, Status) and status.is_success):
        return None
    if not isinstance(status, Status):
        status = Status.error(f"it returned {status!r}, which is not a result of {point}")
    if status.code is not Code.ERROR:
        return status.with_plugin(plugin)
    return _error(point, plugin, status.message)


def _error(point: str, plugin: str, message: str) -> Status:
    return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {message}',), plugin)


def _raised(point: str, plugin: str, error: Exception) -> Status:
    """The status of a plugin that raised. The scheduler continues, and the pod is retried."""
    logger.exception("%s plugin %s failed", point, plugin, extra=fields(plugin=plugin))
    what = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    return _error(point, plugin, what)
