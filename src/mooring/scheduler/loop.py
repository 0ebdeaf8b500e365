"""The scheduling loop: pops pods and runs one scheduling cycle for each.

Inputs   the next pod of the scheduling queue
Outputs  an assumed pod, passed to the binding cycle; or a failure, passed to the failure handler

 1. A scheduling cycle never awaits, except for extenders. Meanwhile the event buffer defers changes of the columns.
 2. The loop yields to other tasks (bindings, watches, leases) every few milliseconds.
 3. A pod that is terminating or assumed already is skipped.
 4. An error ends the attempt of one pod, never the loop.
 5. While scheduling is paused (`pause`), each step runs one cycle.
 6. `problem` is for the health check of the process: the loop has ended, or one attempt does not end.
"""

from __future__ import annotations

import logging

from mooring.kit.clock import Clock
from mooring.kit.logs import fields
from mooring.scheduler.binding.assumed_pods import AssumedPods
from mooring.scheduler.binding.cycle import BindingCycle
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import NO_STEPS, SchedulingCycle
from mooring.scheduler.engine import Engine
from mooring.scheduler.eviction import Evictor
from mooring.scheduler.extenders.client import ExtenderClient
from mooring.scheduler.failure import FailureHandler, failed_with_error, rejected_in_cycle, rejected_on_node
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.pause import SchedulingPause
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.reporting.nearest_misses import NearestMisses
from mooring.scheduler.reporting.reports import Reports

logger = logging.getLogger(__name__)

BATCH_S_MAX = 0.004
"""Time after which the loop yields to other tasks."""
BATCH_PODS_MAX = 64
"""Pods after which the loop yields. Needed with a virtual clock."""
ATTEMPT_S_MAX = 180.0
"""An attempt that takes longer is a problem of the process. Only an attempt with extenders can wait that long."""
SLOW_CYCLE_S = 0.1
"""A cycle that takes longer is logged."""


class SchedulingLoop:
    """Pops pods and schedules them."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumed_pods: AssumedPods,
        bindings: BindingCycle,
        failures: FailureHandler,
        evictor: Evictor,
        reports: Reports,
        clock: Clock,
        extender_client: ExtenderClient | None,
        pause: SchedulingPause,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._assumed_pods = assumed_pods
        self._bindings = bindings
        self._failures = failures
        self._evictor = evictor
        self._reports = reports
        self._clock = clock
        self._extender_client = extender_client
        self._nearest_misses = NearestMisses(engine.columns, clock)
        self._pause = pause
        self._attempt_started_s: float | None = None
        self._has_ended = False

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            while True:
                await self._queue.wait_until_ready()
                await self._pause.wait_turn()
                await self._run_batch()
                await self._clock.wait(0)
        finally:
            self._has_ended = True

    def problem(self) -> str:
        """Why the loop schedules no pods any more; empty if it does."""
        if self._has_ended:
            return "the scheduling loop has ended"
        started_s = self._attempt_started_s
        took_s = self._clock.now_s() - started_s if started_s is not None else 0.0
        if took_s > ATTEMPT_S_MAX:
            return f"the scheduling loop has worked on one pod for {took_s:.0f} s"
        return ""

    async def _run_batch(self) -> None:
        try:
            await self._schedule_batch()
        finally:
            self._attempt_started_s = None

    async def _schedule_batch(self) -> None:
        end_s = self._clock.now_s() + BATCH_S_MAX
        for _ in range(BATCH_PODS_MAX):
            entry = self._queue.pop()
            if entry is None:
                return
            self._attempt_started_s = self._clock.now_s()
            if self._extender_client is None:
                self.schedule(entry)
            else:
                await self._schedule_with_extenders(entry, self._extender_client)
            if self._clock.now_s() >= end_s or self._pause.is_on:
                return

    def schedule(self, entry: QueuedPod) -> None:
        """Runs the scheduling cycle of one pod."""
        started_s = self._clock.now_s()
        if self._skip_pod(entry):
            return
        cycle = self._engine.prepare(entry.pod)
        timing = self._reports.sampled(cycle.profile)
        try:
            if timing is None:
                decision = cycle.decide_admitted(entry.pod)
            else:
                with timing.sampling():
                    decision = cycle.decide_admitted(entry.pod)
        except Exception as error:
            self._fail(entry, cycle, error, started_s)
            return
        self._handle_decision(entry, cycle, decision, started_s)

    async def _schedule_with_extenders(self, entry: QueuedPod, extender_client: ExtenderClient) -> None:
        """Runs the scheduling cycle of one pod, and awaits extenders."""
        started_s = self._clock.now_s()
        if self._skip_pod(entry):
            return
        cycle = self._engine.cycles[entry.scheduler_name]
        try:
            decision = await extender_client.decide(entry.pod)
        except Exception as error:
            self._fail(entry, cycle, error, started_s)
            return
        self._handle_decision(entry, cycle, decision, started_s)

    def _skip_pod(self, entry: QueuedPod) -> bool:
        """Whether the pod needs no attempt. If so, the pod is done."""
        pod = entry.pod
        if not pod.terminating and pod.uid not in self._assumed_pods:
            return False
        if pod.terminating:
            self._reports.skipped(pod, entry.scheduler_name)
        self._queue.done(pod.uid)
        return True

    def _fail(self, entry: QueuedPod, cycle: SchedulingCycle, error: Exception, started_s: float) -> None:
        self._reports.cycle_failed(entry.pod, error)
        self._failures.handle(
            entry, cycle.profile, failed_with_error(Status.error(f"{type(error).__name__}: {error}")), started_s
        )

    def _handle_decision(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
        took_s = self._clock.now_s() - started_s
        # A failed cycle, or one that waits for extenders, has no steps: those of the last pod would be shown.
        has_steps = self._extender_client is None and decision.error is None
        steps = cycle.last_steps if has_steps else NO_STEPS
        nearest = self._nearest_misses.of(cycle.profile, decision) if decision.node_name is None else ()
        self._reports.decided(decision, entry.attempts, took_s, entry.requeued_by, steps, nearest)
        if took_s > SLOW_CYCLE_S:
            self._log_slow(cycle, decision, took_s)
        if decision.node_name is None:
            self._reject(entry, cycle, decision, started_s)
        else:
            self._assume(entry, cycle, decision, started_s)

    def _assume(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
        assert decision.node_name is not None
        try:
            status = self._engine.assume(decision)
        except Exception as error:
            if entry.pod.uid in self._engine.columns.pods:
                self._engine.forget(entry.pod)
            entry.pod.node_name = ""
            self._fail(entry, cycle, error, started_s)
            return
        if status is None:
            self._bindings.start(entry, cycle.profile, decision.node_name, started_s)
            return
        entry.pod.node_name = ""
        self._reports.binding_ended(entry.pod, "failed", status.message)
        if status.code is Code.ERROR:
            prefix = f'running Reserve plugin "{status.plugin}": '
            message = status.message.removeprefix(prefix)  # the message of an exception has the prefix already
            outcome = failed_with_error(Status.error(f"{prefix}{message}"))
        else:
            outcome = rejected_on_node(status)
        self._failures.handle(entry, cycle.profile, outcome, started_s)

    def _reject(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
        plan = decision.preemption
        if plan is not None:
            for pod in self._engine.nominate(decision):
                self._reports.clear_nomination(pod)
            self._evictor.start(entry.pod, cycle.profile.scheduler_name, plan)
        self._failures.handle(entry, cycle.profile, rejected_in_cycle(decision), started_s)
        for follow_up in decision.follow_ups:
            self._evictor.follow_up(entry.pod, follow_up)

    def _log_slow(self, cycle: SchedulingCycle, decision: Decision, took_s: float) -> None:
        logger.warning(
            "slow cycle: pod %s took %.1f ms on %d nodes (%s)",
            decision.pod.key,
            took_s * 1000,
            self._engine.columns.node_count,
            "waiting for extenders" if self._extender_client is not None else cycle.last_steps.text(decision.is_placed),
            extra=fields(pod=decision.pod.key, node=decision.node_name),
        )
