"""A control plane whose components crash and restart: scheduler, controllers and kubelets, each with its own client.

   running ──(its last request, or `crash`)──> ending ──(its tasks have ended)──> down ──(a pause)──> running

1. A component has one lifetime at a time: the next begins when all tasks of the last have ended.
2. Each lifetime has its own client and its own random stream, so that its behaviour depends only on what it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mooring.api.kinds import POD
from mooring.client.interface import Client
from mooring.controllers.manager import ControllerManager
from mooring.controllers.settings import ControllerSettings
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.settings import KubeletSettings
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.scheduler import Scheduler
from tests.client.faulty import Outcome, Request
from tests.fault_tests.faults import Crash, CrashingClient, FaultInjection, Lifetime, crashing_client

CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "garbage-collector-controller",
)
CONTROLLER_SETTINGS = ControllerSettings(
    node_monitor_period_s=2.0,
    node_monitor_grace_period_s=8.0,
    node_startup_grace_period_s=10.0,
    node_eviction_rate=10.0,
    concurrent_deployment_syncs=2,
    concurrent_replicaset_syncs=2,
    concurrent_statefulset_syncs=2,
    concurrent_job_syncs=2,
    concurrent_gc_syncs=2,
)
COMPONENTS = ("scheduler", "controllers", "kubelets")
DOWN_S_MAX = 4.0
STARTING_REQUESTS = {"scheduler": 40, "controllers": 20, "kubelets": 5}
"""The approximate number of requests before the work begins."""
CRASHES_EARLY_SHARE = 0.2

CONFIGURATION = load_configuration(None)

Run: TypeAlias = Callable[[Client, Entropy], Coroutine[Any, Any, None]]
ClientFor: TypeAlias = Callable[[str], Client]
"""The client of a component, by name."""
CrashPlan: TypeAlias = Callable[[str, int, Entropy], Crash | None]
"""The crash of a lifetime: from the component, the number of the lifetime, and its entropy."""


def random_crash_plan(lifetime_requests_max: int) -> CrashPlan:
    """Each lifetime ends at a random request, rarely during the start: otherwise most lifetimes would end there."""

    def crash_plan(name: str, number: int, chance: Entropy) -> Crash:
        is_early = chance.uniform() < CRASHES_EARLY_SHARE
        at_request = chance.integer_below(lifetime_requests_max) + (0 if is_early else STARTING_REQUESTS[name])
        return Crash(at_request, is_carried_out=chance.uniform() < 0.5)

    return crash_plan


@dataclass
class ControlPlane:
    """All components. Restarts those that have crashed."""

    client_for: ClientFor
    clock: VirtualClock
    entropy: Entropy
    injection: FaultInjection
    kubelet_settings: KubeletSettings
    other_controllers: tuple[str, ...]
    crash_plan: CrashPlan
    crashes: int = 0
    silenced: dict[str, None] = field(default_factory=dict)
    kubelets: Kubelets | None = None
    clients: dict[str, list[CrashingClient]] = field(default_factory=lambda: {name: [] for name in COMPONENTS})
    """By component: one client for each lifetime."""
    _lifetimes: dict[str, Lifetime] = field(default_factory=dict)

    def start(self, group: TaskGroup) -> None:
        runs: dict[str, Run] = {
            "scheduler": self._run_scheduler,
            "controllers": self._run_controllers,
            "kubelets": self._run_kubelets,
        }
        for name in COMPONENTS:
            group.start_background(self._run_component(name, runs[name]), name=name)

    def crash(self, name: str) -> None:
        """Crash a component now, between any two steps."""
        lifetime = self._lifetimes.get(name)
        if lifetime is not None:
            lifetime.crashed.set()

    def silence(self, node: str) -> None:
        self.silenced[node] = None
        if self.kubelets is not None:
            self.kubelets.silence(node)

    def resume(self, node: str) -> None:
        self.silenced.pop(node, None)
        if self.kubelets is not None:
            self.kubelets.resume(node)

    def lost_pod_answers(self, owner_uid: str) -> int:
        """The number of pods of an owner whose create response was lost."""
        return sum(
            request.verb == "create" and fault.outcome is Outcome.ANSWER_LOST and _owner_uid(request) == owner_uid
            for client in self.clients["controllers"]
            for request, fault in client.faults
        )

    # --------------------------------------------------------------------------------------------------- lifetimes

    async def _run_component(self, name: str, run: Run) -> None:
        entropy = self.entropy.fork(name)
        inner = self.client_for(name)
        for number in range(1_000_000):
            chance = entropy.fork(f"life {number}")
            lifetime = self._lifetimes[name] = Lifetime(
                self.injection, chance.fork("faults"), self.crash_plan(name, number, chance)
            )
            client = crashing_client(inner, self.clock, lifetime)
            self.clients[name].append(client)
            await self._run_lifetime(lifetime, run(client, chance.fork("work")))
            self.crashes += 1
            await self.clock.wait(chance.uniform(0.0, DOWN_S_MAX))

    async def _run_lifetime(self, lifetime: Lifetime, work: Coroutine[Any, Any, None]) -> None:
        async with TaskGroup("lifetime") as group:
            task = group.start(work, name="work")
            group.start_background(_end(lifetime, task), name="crash")
            with suppress(asyncio.CancelledError):
                await task
            current = asyncio.current_task()
            assert current is not None
            if current.cancelling():
                raise asyncio.CancelledError

    async def _run_scheduler(self, client: Client, entropy: Entropy) -> None:
        await Scheduler(client, CONFIGURATION, clock=self.clock, entropy=entropy).run()

    async def _run_controllers(self, client: Client, entropy: Entropy) -> None:
        enabled = (*CONTROLLERS, *self.other_controllers)
        await ControllerManager(client, self.clock, entropy, CONTROLLER_SETTINGS, enabled).run()

    async def _run_kubelets(self, client: Client, entropy: Entropy) -> None:
        self.kubelets = Kubelets(client, self.clock, entropy, self.kubelet_settings)
        for node in self.silenced:
            self.kubelets.silence(node)
        try:
            await self.kubelets.run()
        finally:
            self.kubelets = None


async def _end(lifetime: Lifetime, task: asyncio.Task[None]) -> None:
    await lifetime.crashed.wait()
    task.cancel()


def _owner_uid(request: Request) -> str:
    """The owner of a pod that is created; empty for other requests."""
    if request.kind is not POD or not isinstance(request.subject, dict):
        return ""
    owners = request.subject["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))
