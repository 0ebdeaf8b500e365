"""The scheduling loop: one pod after the other, as fast as they come.

Comes in   the queue's best ready pod
Goes out   a placement that the columns believe, handed to the binding cycle; or a failure, handed to its handler

 1. A cycle never waits (unless extenders have to be asked; then the believed cluster stands still, see `standstill`).
 2. Every few milliseconds the loop lets the others have a turn: bindings, watches, leases.
 3. A pod that is being deleted, or that is assumed already, is not tried.
 4. Whatever goes wrong with one pod ends this pod's attempt, never the loop.
"""

from __future__ import annotations

import logging

from mooring.kit.clock import Clock
from mooring.scheduler.binding.assumed_pods import Assumptions
from mooring.scheduler.binding.cycle import BindingCycle
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle
from mooring.scheduler.engine import Engine
from mooring.scheduler.eviction import Evictor
from mooring.scheduler.extenders.client import ExtenderClient
from mooring.scheduler.failure import FailureHandler, failed, refused, rejected_on_node
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.reports import Reports

logger = logging.getLogger(__name__)

TURN_S = 0.004
"""How long the loop goes on before others have a turn."""
TURN_PODS_MAX = 64
"""The same in pods, where time does not pass by itself."""
SLOW_CYCLE_S = 0.1
"""A cycle that takes longer is worth a line in the log."""


class SchedulingLoop:
    """Pops pods and decides about them."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        assumptions: Assumptions,
        bindings: BindingCycle,
        failures: FailureHandler,
        evictor: Evictor,
        reports: Reports,
        clock: Clock,
        extender_client: ExtenderClient | None,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._assumptions = assumptions
        self._bindings = bindings
        self._failures = failures
        self._evictor = evictor
        self._reports = reports
        self._clock = clock
        self._extender_client = extender_client

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._queue.wait_until_ready()
            await self._take_a_turn()
            await self._clock.wait(0)

    async def _take_a_turn(self) -> None:
        end_s = self._clock.now_s() + TURN_S
        for _ in range(TURN_PODS_MAX):
            entry = self._queue.pop()
            if entry is None:
                return
            if self._extender_client is None:
                self.schedule(entry)
            else:
                await self._schedule_with_extenders(entry, self._extender_client)
            if self._clock.now_s() >= end_s:
                return

    def schedule(self, entry: QueuedPod) -> None:
        """The whole scheduling cycle of one pod."""
        started_s = self._clock.now_s()
        if self._is_to_be_skipped(entry):
            return
        cycle = self._engine.cycles[entry.scheduler_name]
        timing = self._reports.sampled(cycle.profile)
        try:
            if timing is None:
                decision = self._engine.decide_admitted(cycle, entry.pod)
            else:
                with timing.sampling():
                    decision = self._engine.decide_admitted(cycle, entry.pod)
        except Exception as error:
            self._fail(entry, cycle, error, started_s)
            return
        self._carry_out(entry, cycle, decision, started_s)

    async def _schedule_with_extenders(self, entry: QueuedPod, extender_client: ExtenderClient) -> None:
        """The same, with extenders."""
        started_s = self._clock.now_s()
        if self._is_to_be_skipped(entry):
            return
        cycle = self._engine.cycles[entry.scheduler_name]
        try:
            decision = await extender_client.decide(entry.pod)
        except Exception as error:
            self._fail(entry, cycle, error, started_s)
            return
        self._carry_out(entry, cycle, decision, started_s)

    def _is_to_be_skipped(self, entry: QueuedPod) -> bool:
        pod = entry.pod
        if not pod.terminating and pod.uid not in self._assumptions:
            return False
        if pod.terminating:
            self._reports.skipped(pod, entry.scheduler_name)
        self._queue.done(pod.uid)
        return True

    def _fail(self, entry: QueuedPod, cycle: SchedulingCycle, error: Exception, started_s: float) -> None:
        logger.error("scheduling pod %s failed", entry.pod.key, exc_info=error)
        self._failures.handle(entry, cycle.profile, failed(Status.error(f"{type(error).__name__}: {error}")), started_s)

    def _carry_out(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
        took_s = self._clock.now_s() - started_s
        self._reports.decided(decision, took_s)
        if took_s > SLOW_CYCLE_S:
            self._log_slow(cycle, decision, took_s)
        if decision.node_name is None:
            self._refuse(entry, cycle, decision, started_s)
        else:
            self._place(entry, cycle, decision, started_s)

    def _place(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
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
        if status.code is Code.ERROR:
            told = f'running Reserve plugin "{status.plugin}": '
            message = status.message.removeprefix(told)  # of an exception it is said already
            outcome = failed(Status.error(f"{told}{message}"))
        else:
            outcome = rejected_on_node(status)
        self._failures.handle(entry, cycle.profile, outcome, started_s)

    def _refuse(self, entry: QueuedPod, cycle: SchedulingCycle, decision: Decision, started_s: float) -> None:
        plan = decision.preemption
        if plan is not None:
            for pod in self._engine.nominate(decision):
                self._reports.nomination_is_void(pod)
            self._evictor.start(entry.pod, cycle.profile.scheduler_name, plan)
        self._failures.handle(entry, cycle.profile, refused(decision), started_s)
        for follow_up in decision.follow_ups:
            self._evictor.follow_up(entry.pod, follow_up)

    def _log_slow(self, cycle: SchedulingCycle, decision: Decision, took_s: float) -> None:
        logger.warning(
            "slow cycle: pod %s took %.1f ms on %d nodes (%s)",
            decision.pod.key,
            took_s * 1000,
            self._engine.columns.node_count,
            "waiting for extenders"
            if self._extender_client is not None
            else cycle.last_steps.words(decision.is_placed),
        )
