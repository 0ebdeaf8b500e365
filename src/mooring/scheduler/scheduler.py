"""The scheduler: its rooms, wired, and the tasks that keep it running.

Comes in   a client, a configuration, time and chance
Goes out   bound pods

    reflectors -> intake -> queue -> loop -> engine (assume) -> binding cycle -> client
                    |                  |                            |
                 columns            failure <-----------------------+        evictor, status writer, events

 1. Nothing is scheduled before every reflector has listed once, nor before it may begin (a leader's lease).
 2. Everything runs as tasks of one group: `run` ends when all of them have ended.
 3. A clean stop schedules nothing more, and gives the bindings under way `STOP_S_MAX` to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from mooring.api.kinds import NODE, POD, Kind, kind_of_view
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.whole import Whole
from mooring.client.cache.reflector import Reflector, Sink, TakesPages
from mooring.client.events.formats import SeriesFormat
from mooring.client.events.recorder import EventType
from mooring.client.events.writer import EventWriter
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.memory import settle_memory
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.binding.assumptions import Assumptions
from mooring.scheduler.binding.cycle import BindingCycle
from mooring.scheduler.binding.overdue import OverdueWatch
from mooring.scheduler.binding.permits import WaitingPods
from mooring.scheduler.binding.pool import WorkerPool
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.engine import Engine
from mooring.scheduler.eviction.evictor import Evictor
from mooring.scheduler.eviction.under_way import EvictionsUnderWay
from mooring.scheduler.extenders.asker import Asker
from mooring.scheduler.extenders.http import HttpTransport
from mooring.scheduler.extenders.transport import Transport
from mooring.scheduler.failure import FailureHandler
from mooring.scheduler.framework.events import About
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.waking import kinds_named
from mooring.scheduler.intake.nodes import NodeIntake
from mooring.scheduler.intake.objects import WATCHED, ObjectIntake
from mooring.scheduler.intake.pods import PodIntake
from mooring.scheduler.intake.put_off import PutOff, PutOffPages
from mooring.scheduler.loop import SchedulingLoop
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.metrics import Gauges, Metrics
from mooring.scheduler.reporting.reports import Reports
from mooring.scheduler.reporting.status_writer import StatusWriter
from mooring.scheduler.standstill import Standstill

logger = logging.getLogger(__name__)

STOP_S_MAX = 5.0
STOP_LOOK_S = 0.05
"""How often it is looked at, while stopping, whether everything has ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a scheduler may have under way, and for how long. Each is told in its metrics."""

    bindings_max: int = 1_000
    """Bindings that talk to the API server, or wait for volumes, at a time."""
    status_writes_max: int = 100
    evictions_max: int = 100
    confirmation_s_max: float | None = 900.0
    """An accepted binding that the watch has not confirmed after so long is looked up; None: never."""
    asleep_s_max: float = 300.0
    """A refused pod is tried again after so long, whatever the hints say."""


class Scheduler:
    """One scheduler, with as many profiles as its configuration has."""

    def __init__(
        self,
        client: Client,
        configuration: SchedulerConfiguration,
        *,
        clock: Clock,
        entropy: Entropy,
        registry: Registry | None = None,
        limits: Limits | None = None,
        metrics: CollectorRegistry | None = None,
        instance: str = "mooring",
        transport: Transport | None = None,
        events_client: Client | None = None,
    ) -> None:
        """`events_client` brings events to the API; without one they share the way, and its limits, with bindings."""
        limits = limits if limits is not None else Limits()
        self._client = client
        self._clock = clock
        self._entropy = entropy
        columns = Columns()
        self.assumptions = Assumptions(limits.confirmation_s_max)
        self.waiting_pods = WaitingPods()
        self.evictions = EvictionsUnderWay(columns.pods)
        self.standstill = Standstill()
        self.binding_pool = WorkerPool("binding", limits.bindings_max)
        self._status_pool = WorkerPool("status", limits.status_writes_max)
        self._eviction_pool = WorkerPool("eviction", limits.evictions_max)
        self.engine = Engine(
            configuration,
            entropy=entropy.fork("engine"),
            registry=registry,
            columns=columns,
            services={
                "client": client,
                "clock": clock,
                "evictions": self.evictions,
                "waiting_pods": self.waiting_pods,
                "activate": self._activate,
                "tell": self._tell,
            },
        )
        self._asker = _asker(self.engine, transport, self.standstill) if self.engine.extenders else None
        self.metrics = Metrics(metrics if metrics is not None else CollectorRegistry())
        self.status_writer = StatusWriter(client, clock, self._status_pool)
        self.events = EventWriter(
            events_client if events_client is not None else client, clock, entropy.fork("events"), SeriesFormat()
        )
        recorders = {name: self.events.recorder(name, f"{name}-{instance}") for name in self.engine.cycles}
        self.reports = Reports(recorders, self.status_writer, self.metrics, clock, entropy.fork("samples"))
        profiles = {name: cycle.profile for name, cycle in self.engine.cycles.items()}
        self.queue = SchedulingQueue(
            profiles,
            clock=clock,
            backoff_initial_s=configuration.pod_initial_backoff_seconds,
            backoff_max_s=configuration.pod_max_backoff_seconds,
            asleep_s_max=limits.asleep_s_max,
            with_extenders=bool(configuration.extenders),
            moved=self.reports.came_in,
        )
        self.pods = PodIntake(self.engine, self.queue, self.assumptions, self.waiting_pods, profiles)
        self.failures = FailureHandler(self.engine, self.queue, self.pods.pending, self.reports)
        self.bindings = BindingCycle(
            self.engine,
            self.queue,
            self.assumptions,
            self.waiting_pods,
            self.binding_pool,
            self.failures,
            self.reports,
            client,
            clock,
            self.standstill,
            self._asker,
        )
        self.evictor = Evictor(
            self.evictions,
            self.bindings.under_way,
            self.waiting_pods,
            self._eviction_pool,
            self.reports,
            client,
            clock,
            self._activate,
        )
        self.loop = SchedulingLoop(
            self.engine,
            self.queue,
            self.assumptions,
            self.bindings,
            self.failures,
            self.evictor,
            self.reports,
            clock,
            self._asker,
        )
        self._overdue = OverdueWatch(
            self.assumptions, self.engine, self.queue, self.pods, client, clock, self.standstill
        )
        self.reflectors = dict(self._reflectors())
        self._register_gauges()

    async def run(self, may_begin: asyncio.Event | None = None) -> None:
        """Schedules until it is cancelled; then gives what is under way a moment to end.

        Before `may_begin` is set it stands by: it knows the cluster, and decides nothing.
        """
        async with TaskGroup("scheduler") as group:
            for pool in (self.binding_pool, self._status_pool, self._eviction_pool):
                pool.open(group)
            self.events.start(group)
            for name, reflector in self.reflectors.items():
                group.start_background(reflector.run(), name=f"watch-{name}")
            for reflector in self.reflectors.values():
                await reflector.wait_synced()
            settle_memory()
            if may_begin is not None:
                await may_begin.wait()
            logger.info("scheduling on %d nodes, %d pods are pending", self.engine.columns.node_count, len(self.queue))
            group.start_background(self._overdue.run(), name="overdue")
            try:
                await self.loop.run()
            finally:
                await self._wind_up()

    async def _wind_up(self) -> None:
        """Nothing new is scheduled; what was begun may end, and what was said is written. Not for ever."""
        try:
            async with asyncio.timeout(STOP_S_MAX):
                while self._is_busy:
                    await self._clock.wait(STOP_LOOK_S)
                await self.events.close()
        except TimeoutError:
            logger.warning("stopped with %d bindings under way", len(self.bindings.under_way))
        finally:
            self.waiting_pods.close()
            if self._asker is not None:
                await self._asker.close()

    @property
    def _is_busy(self) -> bool:
        pools = (self.binding_pool, self._status_pool, self._eviction_pool)
        return any(pool.statistics().running or pool.statistics().waiting for pool in pools)

    @property
    def has_synced(self) -> bool:
        """Whether everything that is watched was listed once."""
        return all(reflector.has_synced for reflector in self.reflectors.values())

    def _reflectors(self) -> Iterable[tuple[str, Reflector[Any]]]:
        yield self._reflector(NODE, Node, NodeIntake(self.engine, self.queue))
        watched: dict[type[ApiObject], About | None] = dict(WATCHED)
        named = kinds_named(cycle.profile for cycle in self.engine.cycles.values())
        watched.update((kind.view, kind) for kind in named if kind.view is not None)
        for view, subject in watched.items():
            kind = subject if isinstance(subject, Kind) else kind_of_view(view)
            yield self._reflector(kind, view, ObjectIntake(view, subject, self.engine, self.queue))
        if self._asker is not None:
            yield "whole nodes", self._whole(NODE, self._asker.objects.nodes)
            yield "whole pods", self._whole(POD, self._asker.objects.pods)
        yield self._reflector(POD, Pod, self.pods)  # last: on the first list their nodes and claims are known already

    def _reflector(self, kind: Kind, view: type[Any], sink: Sink[Any]) -> tuple[str, Reflector[Any]]:
        if self._asker is None:
            pass  # nobody ever holds the standstill
        elif isinstance(sink, TakesPages):
            sink = PutOffPages(sink, sink, self.standstill)
        else:
            sink = PutOff(sink, self.standstill)
        entropy = self._entropy.fork(f"watch {kind.resource}")
        return kind.resource, Reflector(self._client, kind, view, sink, clock=self._clock, entropy=entropy)

    def _whole(self, kind: Kind, sink: Sink[Whole]) -> Reflector[Whole]:
        entropy = self._entropy.fork(f"watch whole {kind.plural}")
        return Reflector(self._client, kind, Whole, sink, clock=self._clock, entropy=entropy)

    def _tell(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> None:
        self.reports.tell(pod, type_, reason, action, note)

    def _activate(self, uid: str) -> None:
        pod = self.pods.pending.get(uid)
        if pod is not None:
            self.standstill.run(partial(self.queue.activate, (pod,)))

    def _register_gauges(self) -> None:
        gauges = Gauges()
        gauges.add("pending_pods", "Pods in the queue, by room.", ("queue",), self._pending_pods)
        gauges.add("unschedulable_pods", "Refused pods, by plugin.", ("plugin", "profile"), self._refused_pods)
        gauges.add("cache_size", "Nodes, pods and assumed pods that are believed.", ("type",), self._cache_size)
        gauges.add("goroutines", "Work under way.", ("operation",), self._work_under_way)
        gauges.add("inflight_events", "Events remembered for pods in flight.", ("event",), self._in_flight_events)
        self.metrics.registry.register(gauges)

    def _pending_pods(self) -> Mapping[tuple[str, ...], float]:
        numbers = self.queue.statistics()
        return {
            ("active",): numbers.active,
            ("backoff",): numbers.backoff,
            ("unschedulable",): numbers.unschedulable,
            ("gated",): numbers.gated,
        }

    def _refused_pods(self) -> Mapping[tuple[str, ...], float]:
        return {(plugin, profile): count for (plugin, profile), count in self.queue.refused_by().items()}

    def _cache_size(self) -> Mapping[tuple[str, ...], float]:
        columns = self.engine.columns
        return {
            ("nodes",): columns.node_count,
            ("pods",): len(columns.pods),
            ("assumed_pods",): len(self.assumptions),
        }

    def _work_under_way(self) -> Mapping[tuple[str, ...], float]:
        return {
            ("binding",): len(self.bindings.under_way),
            ("preemption",): len(self.evictions),
            ("status",): len(self.status_writer),
        }

    def _in_flight_events(self) -> Mapping[tuple[str, ...], float]:
        return {(event,): count for event, count in self.queue.in_flight_events().items()}


def _asker(engine: Engine, transport: Transport | None, standstill: Standstill) -> Asker:
    if transport is None:
        transport = HttpTransport(engine.extenders)
    return Asker(engine, transport, standstill)
