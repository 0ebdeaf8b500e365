"""The binding cycle: take an assumed pod from Permit to its binding, while the next pods are scheduled.

    Permit ──> (wait) ──> PreBind ──> Bind ──> PostBind
         \\        \\          \\       \\
          +--------+----------+-------+-> unreserve, forget, queue other pods, back to the queue

    stages of a binding:   WAITING ──> READY ──> PREPARING ──> BINDING ──> (bound, or failed)
                           Permit      queued    PreBind       Bind

On success the API server has the pod on its node. On failure the columns are as before, and the pod is in the queue.

1. A pod that waits for Permit uses no task and none of the limited number of bindings: a gang larger than that limit
   must be able to assemble.
2. When the API server rejects a binding, or its answer is lost, the pod is looked up before its resources are freed:
   it may be bound. As long as the lookup fails, the pod stays assumed.
3. Every change of the columns goes through the event buffer: the columns do not change while a decision waits for an
   extender.
4. A binding can be cancelled until PreBind has ended: preemption may need the node.
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
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.worker_pool import WorkerPool
from mooring.scheduler.binding.assumed_pods import Assumption, Assumptions, AssumptionState
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders.client import ExtenderClient
from mooring.scheduler.failure import Failure, FailureHandler, failed_with_error, rejected_in_binding, rejected_on_node
from mooring.scheduler.framework.events import ASSIGNED_POD_DELETE
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import PreBind, Skip, Wait
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.reporting.reports import Reports


class Stage(Enum):
    WAITING = "waiting for Permit"
    READY = "in line"
    PREPARING = "PreBind"
    BINDING = "Bind"


class Binding:
    """What the rooms of the binding cycle hand on."""

    __slots__ = (
        "_worker",
        "assumption",
        "called_off_by",
        "entry",
        "is_pod_gone",
        "is_refused",
        "node_name",
        "pod",
        "pre_binds",
        "profile",
        "stage",
        "started_s",
    )

    def __init__(
        self,
        entry: QueuedPod,
        profile: Profile,
        assumption: Assumption,
        pre_binds: tuple[PreBind, ...],
        started_s: float,
    ) -> None:
        self.entry = entry
        self.profile = profile
        self.assumption = assumption
        self.pod, self.node_name = assumption.pod, assumption.node_name
        self.pre_binds = pre_binds
        """Those that have something to do for this pod."""
        self.started_s = started_s
        self.stage = Stage.READY
        self.called_off_by = ""
        self.is_refused = False
        """The API server has said no: if the pod is on its node all the same, somebody else has put it there."""
        self.is_pod_gone = False
        """The API server has deleted the pod, or is deleting it: a failed binding is a normal event then."""
        self._worker: asyncio.Task[Any] | None = None

    def call_off(self, plugin: str) -> bool:
        """Stops a PreBind that is under way. False if there is none: it is too late, or too early."""
        if self.called_off_by:
            return True
        if self._worker is None:
            return False
        self.called_off_by = plugin
        self._worker.cancel()
        return True

    def prepare(self) -> None:
        """PreBind begins, in the task that calls."""
        self.stage = Stage.PREPARING
        self._worker = asyncio.current_task()

    def prepared(self) -> bool:
        """PreBind is over, and cannot be called off any more. Returns whether it was."""
        worker, self._worker = self._worker, None
        self.stage = Stage.BINDING
        if not self.called_off_by:
            return False
        if worker is not None:
            worker.uncancel()
        return True


logger = logging.getLogger(__name__)

LOOK_UP_BACKOFF = Backoff(initial_s=0.5, max_s=10.0)
LOOK_UPS_MAX = 30
"""After so many tries to find out what became of a binding, it counts as failed; about four minutes."""


class BindingCycle:
    """Takes believed placements to the API server."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumptions: Assumptions,
        waiting: WaitingPods,
        pool: WorkerPool,
        failures: FailureHandler,
        reports: Reports,
        client: Client,
        clock: Clock,
        event_buffer: EventBuffer,
        extender_client: ExtenderClient | None,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._assumptions = assumptions
        self._waiting = waiting
        self._pool = pool
        self._failures = failures
        self._reports = reports
        self._client = client
        self._clock = clock
        self._event_buffer = event_buffer
        self._extender_client = extender_client
        self.under_way: dict[str, Binding] = {}
        """All bindings that are not over yet, by the uid of the pod."""

    # The synchronous part: still in the scheduling cycle

    def start(self, entry: QueuedPod, profile: Profile, node_name: str, started_s: float) -> None:
        """Asks Permit, and sends the pod on its way (or back)."""
        pod = entry.pod
        assumption = self._assumptions.add(pod, node_name)
        timeouts_s: dict[str, float] = {}
        if profile.permits:
            answer = _ask_permits(profile, pod, node_name)
            if isinstance(answer, Status):
                self._fail(Binding(entry, profile, assumption, (), started_s), answer)
                return
            timeouts_s = answer
        pre_binds = _with_work(profile, pod, node_name)
        if isinstance(pre_binds, Status):
            self._fail(Binding(entry, profile, assumption, (), started_s), pre_binds)
            return
        binding = self.under_way[pod.uid] = Binding(entry, profile, assumption, pre_binds, started_s)
        if timeouts_s or pre_binds:
            # Others (an autoscaler) should know where the pod is going, as it will not be there soon.
            self._reports.expect(pod, node_name)
        if timeouts_s:
            binding.stage = Stage.WAITING
            since_s = self._clock.now_s()
            self._waiting.add(pod, node_name, timeouts_s, partial(self._permit_ended, binding, since_s))
        else:
            self._go_on(binding)

    def _permit_ended(self, binding: Binding, since_s: float, status: Status | None) -> None:
        self._reports.permit_waited(status, self._clock.now_s() - since_s)
        if status is None:
            self._go_on(binding)
        else:
            self._event_buffer.run(partial(self._fail, binding, status))

    def _go_on(self, binding: Binding) -> None:
        """From here on a failure is no refusal: what happens meanwhile in the cluster need not be remembered."""
        binding.stage = Stage.READY
        self._queue.done(binding.pod.uid)
        self._pool.start(partial(self._bind, binding))

    # The part that waits

    async def _bind(self, binding: Binding) -> None:
        view = binding.pod.view  # the watch takes it away as soon as it tells of a node
        status = await self._prepare(binding) if binding.pre_binds else None
        is_there = False
        if status is None:
            binding.stage = Stage.BINDING
            if (silent := self._reports.silence(binding.pod)) is not None:
                await silent.wait()
            status = await self._ask_binders(binding)
            is_there = status is None or not await self._is_free(binding)
        if is_there and status is not None and binding.is_refused:
            self._forestalled(binding, view, status)
        elif is_there or status is None:
            self._bound(binding)
        else:
            self._event_buffer.run(partial(self._fail, binding, status))

    async def _prepare(self, binding: Binding) -> Status | None:
        binding.prepare()
        status: Status | None = None
        running = ""
        try:
            for plugin in binding.pre_binds:
                running = plugin.name
                try:
                    said = await plugin.pre_bind(binding.pod, binding.node_name)
                    status = _told("PreBind", plugin.name, said)
                except Exception as error:
                    status = _fault("PreBind", plugin.name, error)
                if status is not None:
                    break
        except asyncio.CancelledError:
            if not binding.called_off_by:
                raise
            status = _error("PreBind", running, f"preempted by {binding.called_off_by}")
        if binding.prepared() and status is None:
            status = Status.error(f"preempted by {binding.called_off_by}")
        return status

    async def _ask_binders(self, binding: Binding) -> Status | None:
        if self._extender_client is not None:
            try:
                answer = await self._extender_client.bind(binding.pod, binding.node_name)
            except Exception as error:
                return _fault("Bind", "Extender", error)
            if not isinstance(answer, Skip):
                return answer
        for plugin in binding.profile.binds:
            try:
                said = await plugin.bind(binding.pod, binding.node_name)
            except ClientError as error:
                binding.is_refused = not error.is_outcome_unknown
                return _error("Bind", plugin.name, str(error))
            except Exception as error:
                return _fault("Bind", plugin.name, error)
            if isinstance(said, Skip):
                continue
            return _told("Bind", plugin.name, said)
        return Status.error("no plugin has bound the pod")

    async def _is_free(self, binding: Binding) -> bool:
        """After a binding that failed: whether the pod has no node of ours, so that its room may be given away."""
        pod = binding.pod
        for attempt in range(1, LOOK_UPS_MAX + 1):
            try:
                found = decode_as(Pod, await self._client.get(POD, pod.namespace, pod.name))
            except NotFoundError:
                binding.is_pod_gone = True
                return True
            except (ClientError, ObjectError) as error:
                logger.warning("what became of the binding of %s is not known yet: %s", pod.key, error)
                await self._clock.wait(LOOK_UP_BACKOFF.delay_s(attempt))
                continue
            is_another = found.metadata.uid != pod.uid
            binding.is_pod_gone = is_another or found.metadata.deletion_timestamp is not None
            return is_another or found.spec.node_name != binding.node_name
        return True

    # How it ends

    def _bound(self, binding: Binding) -> None:
        pod = binding.pod
        del self.under_way[pod.uid]
        self._assumptions.bound(binding.assumption, self._clock.now_s())
        self._reports.scheduled(binding.entry, binding.profile, binding.node_name, binding.started_s)
        for plugin in binding.profile.post_binds:
            try:
                plugin.post_bind(pod, binding.node_name)
            except Exception:
                logger.exception("PostBind plugin %s failed for pod %s, which is bound", plugin.name, pod.key)

    def _forestalled(self, binding: Binding, view: Pod | None, status: Status) -> None:
        """Another scheduler has put the pod on the very node. That is for the watch to tell, and not our success."""
        del self.under_way[binding.pod.uid]
        self._event_buffer.run(partial(self._engine.unreserve, binding.pod, binding.node_name))
        self._assumptions.bound(binding.assumption, self._clock.now_s())
        self._failures.report(binding.pod, view, binding.profile, failed_with_error(status), binding.started_s)

    def _fail(self, binding: Binding, status: Status) -> None:
        """Takes everything back, and puts the pod back into the queue."""
        pod, assumption = binding.pod, binding.assumption
        self.under_way.pop(pod.uid, None)
        is_unschedulable = status.code is not Code.ERROR
        is_ours = self._assumptions.get(pod.uid) is assumption
        if is_ours:
            self._assumptions.remove(pod.uid)
        self._engine.unreserve(pod, binding.node_name)
        if binding.pre_binds:
            self._pool.start(partial(self._release, binding))
        if is_ours and assumption.state is not AssumptionState.RELEASED:
            self._engine.columns.displace(pod)
        left = copy(pod)  # others are told of a pod that leaves this node; it itself has none any more
        if is_ours:
            pod.node_name = ""  # otherwise the watch has told where it is, perhaps of this very record
        outcome = replace(_outcome_of(status, binding.stage), is_pod_gone=binding.is_pod_gone)
        if is_unschedulable:
            # Its own room becoming free does not help a pod that was just told off.
            self._failures.handle(binding.entry, binding.profile, outcome, binding.started_s)
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, left, None, pre_check=_anybody_but(pod))
        else:
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, left, None)
            self._failures.handle(binding.entry, binding.profile, outcome, binding.started_s)

    async def _release(self, binding: Binding) -> None:
        """What PreBind had told the API server is told back, beside everything else."""
        for plugin in binding.profile.reserves:
            try:
                await plugin.released(binding.pod, binding.node_name)
            except Exception:
                logger.exception("plugin %s could not let go of what pod %s had", plugin.name, binding.pod.key)


def _outcome_of(status: Status, stage: Stage) -> Failure:
    """Only up to Permit is a rejection about the node; of what PreBind and Bind say nobody knows what could help."""
    if status.code is Code.ERROR:
        return failed_with_error(status)
    return rejected_in_binding(status) if stage in (Stage.PREPARING, Stage.BINDING) else rejected_on_node(status)


def _ask_permits(profile: Profile, pod: PodInfo, node_name: str) -> dict[str, float] | Status:
    """How long each plugin wants the pod to wait, or why it may not go."""
    timeouts_s: dict[str, float] = {}
    for plugin in profile.permits:
        try:
            answer = plugin.permit(pod, node_name)
        except Exception as error:
            return _fault("Permit", plugin.name, error)
        if isinstance(answer, Wait) and _is_time(answer.timeout_s):
            timeouts_s[plugin.name] = answer.timeout_s
        elif (status := _told("Permit", plugin.name, answer)) is not None:
            return status
    return timeouts_s


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and not math.isnan(seconds)


def _with_work(profile: Profile, pod: PodInfo, node_name: str) -> tuple[PreBind, ...] | Status:
    """The PreBind plugins that have something to do for this pod."""
    found: list[PreBind] = []
    for plugin in profile.pre_binds:
        try:
            if plugin.has_work(pod, node_name):
                found.append(plugin)
        except Exception as error:
            return _fault("PreBindPreFlight", plugin.name, error)
    return tuple(found)


def _told(point: str, plugin: str, status: object) -> Status | None:
    """A plugin's result, with kube-scheduler's message. None if it is a success; an error if it is no Status."""
    if status is None or (isinstance(status, Status) and status.is_success):
        return None
    if not isinstance(status, Status):
        status = Status.error(f"it answered {status!r}, which is no answer to {point}")
    if status.code is not Code.ERROR:
        return status.with_plugin(plugin)
    return _error(point, plugin, status.message)


def _error(point: str, plugin: str, message: str) -> Status:
    return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {message}',), plugin)


def _fault(point: str, plugin: str, error: Exception) -> Status:
    """A plugin that failed does not stop the scheduler: the pod is tried again."""
    logger.exception("%s plugin %s failed", point, plugin)
    what = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    return _error(point, plugin, what)


def _anybody_but(pod: PodInfo) -> partial[bool]:
    return partial(_is_another, pod.uid)


def _is_another(uid: str, pod: PodInfo) -> bool:
    return pod.uid != uid
