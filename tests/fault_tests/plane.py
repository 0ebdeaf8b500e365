"""A control plane whose components die and restart: scheduler, controllers and kubelets, each with its own client.

   alive ──(its last request, or `kill`)──> dying ──(its tasks have ended)──> dead ──(a pause)──> alive again

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
from tests.fault_tests.faults import Death, Lifetime, MortalClient, Weather, mortal_client

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
DEAD_S_MAX = 4.0
STARTING_REQUESTS = {"scheduler": 40, "controllers": 20, "kubelets": 5}
"""About so many are asked before the work begins."""
DIES_EARLY_SHARE = 0.2

CONFIGURATION = load_configuration(None)

Run: TypeAlias = Callable[[Client, Entropy], Coroutine[Any, Any, None]]
ClientFor: TypeAlias = Callable[[str], Client]
"""Of a component."""
Fate: TypeAlias = Callable[[str, int, Entropy], Death | None]
"""Of a component, in which of its lives, by which chance: how it ends."""


def fate_by_chance(lifetime_requests_max: int) -> Fate:
    """Each life ends at any request; but seldom while it starts, or most lives would be spent on that."""

    def fate(name: str, number: int, chance: Entropy) -> Death:
        is_early = chance.uniform() < DIES_EARLY_SHARE
        at_request = chance.integer_below(lifetime_requests_max) + (0 if is_early else STARTING_REQUESTS[name])
        return Death(at_request, is_carried_out=chance.uniform() < 0.5)

    return fate


@dataclass
class Plane:
    """All components, and who keeps them going."""

    client_for: ClientFor
    clock: VirtualClock
    entropy: Entropy
    weather: Weather
    kubelet_settings: KubeletSettings
    other_controllers: tuple[str, ...]
    fate: Fate
    deaths: int = 0
    silenced: dict[str, None] = field(default_factory=dict)
    kubelets: Kubelets | None = None
    clients: dict[str, list[MortalClient]] = field(default_factory=lambda: {name: [] for name in COMPONENTS})
    """Of each component, one for each of its lives."""
    _lifetimes: dict[str, Lifetime] = field(default_factory=dict)

    def start(self, group: TaskGroup) -> None:
        runs: dict[str, Run] = {
            "scheduler": self._run_scheduler,
            "controllers": self._run_controllers,
            "kubelets": self._run_kubelets,
        }
        for name in COMPONENTS:
            group.start_background(self._keep_going(name, runs[name]), name=name)

    def kill(self, name: str) -> None:
        """Here and now, in the middle of whatever it does."""
        lifetime = self._lifetimes.get(name)
        if lifetime is not None:
            lifetime.died.set()

    def silence(self, node: str) -> None:
        self.silenced[node] = None
        if self.kubelets is not None:
            self.kubelets.silence(node)

    def resume(self, node: str) -> None:
        self.silenced.pop(node, None)
        if self.kubelets is not None:
            self.kubelets.resume(node)

    def lost_pod_answers(self, owner_uid: str) -> int:
        """Requests for pods of an owner of which the controllers do not know that they were carried out."""
        return sum(
            request.verb == "create" and fault.outcome is Outcome.ANSWER_LOST and _owner_uid(request) == owner_uid
            for client in self.clients["controllers"]
            for request, fault in client.faults
        )

    # --------------------------------------------------------------------------------------------------- lives

    async def _keep_going(self, name: str, run: Run) -> None:
        entropy = self.entropy.fork(name)
        inner = self.client_for(name)
        for number in range(1_000_000):
            chance = entropy.fork(f"life {number}")
            lifetime = self._lifetimes[name] = Lifetime(
                self.weather, chance.fork("faults"), self.fate(name, number, chance)
            )
            client = mortal_client(inner, self.clock, lifetime)
            self.clients[name].append(client)
            await self._live(lifetime, run(client, chance.fork("work")))
            self.deaths += 1
            await self.clock.wait(chance.uniform(0.0, DEAD_S_MAX))

    async def _live(self, lifetime: Lifetime, work: Coroutine[Any, Any, None]) -> None:
        async with TaskGroup("life") as group:
            task = group.start(work, name="work")
            group.start_background(_end(lifetime, task), name="death")
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
    await lifetime.died.wait()
    task.cancel()


def _owner_uid(request: Request) -> str:
    """Of a pod that is to be made; nothing for others."""
    if request.kind is not POD or not isinstance(request.subject, dict):
        return ""
    owners = request.subject["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))
