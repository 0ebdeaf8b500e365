"""Evict the victims of preemption.

Takes a preempting pod and its plan: a node and the pods that have to leave it. Each victim gets a DisruptionTarget
condition and a Preempted event and is deleted. Eviction runs in the background, concurrently with the scheduling loop
(KEP 4832). Meanwhile DefaultPreemption's PreEnqueue holds the preempting pod back (service `evictions`): it would
find its victims still there and preempt again.

1. A victim that is only assumed goes back to the queue instead of being deleted: it waits for Permit, or its PreBind
   plugins are running.
2. All victims but the last are evicted first. When the watch shows the last one terminating, the preempting pod may
   be tried, even if the response to the delete request is still missing.
3. If an eviction fails, or the last victim had left before its turn, the preempting pod is activated: no event would
   move it out of the unschedulable pods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from mooring.api.kinds import POD
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.logs import fields
from mooring.kit.tasks import WorkerPool, run_bounded
from mooring.scheduler.binding.cycle import Binding
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import PreemptionPlan
from mooring.scheduler.framework.guard import is_interrupt
from mooring.scheduler.framework.post_filter import FollowUp
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.reporting.reports import Reports

logger = logging.getLogger(__name__)

AT_A_TIME_MAX = 16
"""Limit of the victims of one preemption that are evicted at the same time."""
PLUGIN = "DefaultPreemption"


class RunningPreemption:
    """One preemption whose victims are being evicted."""

    def __init__(self) -> None:
        self.last_victim: PodInfo | None = None
        """Set when all other victims are evicted."""


class RunningPreemptions:
    """The running preemptions by the uid of the preempting pod.

    A pod has two if it was retried because the watch showed its last victim terminating before the delete request was
    answered.
    """

    def __init__(self, pods: Mapping[str, PodInfo]) -> None:
        self._pods = pods
        """All assigned pods."""
        self._preemptions: dict[str, list[RunningPreemption]] = {}

    def __len__(self) -> int:
        return len(self._preemptions)

    def is_running_for(self, uid: str) -> bool:
        """Whether victims of this pod are still to be evicted."""
        preemptions = self._preemptions.get(uid)
        return preemptions is not None and any(self._is_waiting(preemption) for preemption in preemptions)

    def begin(self, uid: str) -> RunningPreemption:
        preemption = RunningPreemption()
        self._preemptions.setdefault(uid, []).append(preemption)
        return preemption

    def end(self, uid: str, preemption: RunningPreemption) -> None:
        self._preemptions[uid].remove(preemption)
        if not self._preemptions[uid]:
            del self._preemptions[uid]

    def _is_waiting(self, preemption: RunningPreemption) -> bool:
        if preemption.last_victim is None:
            return True
        victim = self._pods.get(preemption.last_victim.uid)
        return victim is not None and not victim.terminating


class Evictor:
    """Evicts the victims of preemption plans."""

    def __init__(
        self,
        running: RunningPreemptions,
        bindings: Mapping[str, Binding],
        waiting: WaitingPods,
        pool: WorkerPool,
        reports: Reports,
        client: Client,
        clock: Clock,
        activate: Callable[[str], None],
    ) -> None:
        self._running = running
        self._bindings = bindings
        self._waiting = waiting
        self._pool = pool
        self._reports = reports
        self._client = client
        self._clock = clock
        self._activate = activate

    def start(self, pod: PodInfo, scheduler_name: str, plan: PreemptionPlan) -> None:
        """Evict the victims of a plan in the background."""
        victims = [victim for victim in plan.victims if not victim.terminating]
        if not victims:
            return
        self._reports.preempting(len(plan.victims))
        preemption = self._running.begin(pod.uid)
        self._pool.start(partial(self._evict_all, preemption, pod, scheduler_name, plan.node_name, victims))

    def follow_up(self, pod: PodInfo, work: FollowUp) -> None:
        """Run the other work of a PostFilter plugin (deallocate a claim) in the background."""
        self._pool.start(partial(self._run_follow_up, pod, work))

    async def _run_follow_up(self, pod: PodInfo, work: FollowUp) -> None:
        try:
            await work()
        except BaseException as error:
            if is_interrupt(error):
                raise
            logger.exception("the follow-up of PostFilter for pod %s failed", pod.key, extra=fields(pod=pod.key))
            self._activate(pod.uid)

    async def _evict_all(
        self, preemption: RunningPreemption, pod: PodInfo, scheduler_name: str, node_name: str, victims: list[PodInfo]
    ) -> None:
        started_s = self._clock.now_s()
        evict = partial(self._evict, pod, scheduler_name, node_name)
        *first, last = victims
        is_done, has_left_already = True, False
        try:
            if first:
                is_done = all(await run_bounded(evict, first, limit=AT_A_TIME_MAX, name=f"evict for {pod.key}"))
            if is_done:
                preemption.last_victim = last
                has_left_already = not self._running.is_running_for(pod.uid)
                is_done = await evict(last)
        finally:
            self._running.end(pod.uid, preemption)
        self._reports.preemption_ended(is_done, self._clock.now_s() - started_s)
        if not is_done or has_left_already:
            self._activate(pod.uid)

    async def _evict(self, pod: PodInfo, scheduler_name: str, node_name: str, victim: PodInfo) -> bool:
        is_in_memory = self._cancel_binding(victim)
        if not is_in_memory:
            try:
                await self._delete(victim, scheduler_name)
            except NotFoundError:
                return True
            except ClientError as error:
                logger.warning(
                    "pod %s was not evicted for pod %s: %s",
                    victim.key,
                    pod.key,
                    error,
                    extra=fields(pod=victim.key, node=node_name, reason=error),
                )
                return False
        self._reports.preempted(victim, pod, node_name, scheduler_name, is_in_memory=is_in_memory)
        return True

    def _cancel_binding(self, victim: PodInfo) -> bool:
        """Whether the victim was only assumed, and goes back to the queue."""
        waiting = self._waiting.get(victim.uid)
        if waiting is not None:
            return waiting.preempt(PLUGIN, "preempted")
        binding = self._bindings.get(victim.uid)
        return binding is not None and binding.cancel(PLUGIN)

    async def _delete(self, victim: PodInfo, scheduler_name: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": format_rfc3339(self._clock.wall_s()),
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        place = (POD, victim.namespace, victim.name)
        await self._client.patch(*place, patch, form=PatchForm.STRATEGIC, subresource="status")
        await self._client.delete(*place, Deletion(uid=victim.uid))
