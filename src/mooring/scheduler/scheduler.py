"""The scheduler: constructs and connects its components, and runs their tasks.

Inputs   a client, a configuration, a clock, entropy
Outputs  bound pods

    reflectors -> event handlers -> queue -> loop -> engine (assume) -> binding cycle -> client
                       |                       |                            |
                    columns                 failure <-----------------------+     evictor, status writer, events

 1. The scheduling loop starts after every reflector has listed once, and after `may_begin` is set (leader election).
 2. All tasks belong to one group: `run` returns when all of them have ended.
 3. After cancellation the scheduler schedules no more pods, and waits up to `STOP_S_MAX` for running bindings.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from mooring.api.decode import UntypedObject
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.views.pod import Pod
from mooring.client.events import EventType, EventWriter, SeriesFormat
from mooring.client.interface import Client
from mooring.client.reflector import PagedSink, Reflector, Sink
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup, WorkerPool
from mooring.scheduler.binding.assumed_pods import AssumedPods, ExpiredPodChecker, RecordedPodUpdates
from mooring.scheduler.binding.cycle import BindingCycle
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.config.load import configuration_hash
from mooring.scheduler.cycle.schedule_pod import TieBreak
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import BufferedPagedSink, BufferedSink, EventBuffer
from mooring.scheduler.event_handlers import EventTiming, PodEventHandler, object_handlers
from mooring.scheduler.eviction import Evictor, RunningPreemptions
from mooring.scheduler.extenders.client import ExtenderClient, ExtenderTransport
from mooring.scheduler.extenders.cycle import cycle_factory
from mooring.scheduler.extenders.extender import Transport, extenders_of
from mooring.scheduler.failure import FailureHandler
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.loop import SchedulingLoop
from mooring.scheduler.pause import SchedulingPause
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.decision_log import DecisionLog
from mooring.scheduler.reporting.decision_records import BEST_NODES_MAX
from mooring.scheduler.reporting.metrics import Metrics, ReadMetrics
from mooring.scheduler.reporting.recording import Recording, recorded_sink
from mooring.scheduler.reporting.reports import Reports, StatusWriter

logger = logging.getLogger(__name__)

STOP_S_MAX = 5.0
STOP_CHECK_S = 0.05
"""Interval of the check for running work while the scheduler stops."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of concurrent work and of waiting times. Metrics show how far they are used."""

    bindings_max: int = 1_000
    """Concurrent bindings that send requests or wait for volumes."""
    status_writes_max: int = 100
    evictions_max: int = 100
    confirmation_s_max: float | None = 900.0
    """Time after which a binding that the watch has not confirmed is looked up; None: never."""
    unschedulable_s_max: float = 300.0
    """Time after which an unschedulable pod is retried, whatever the hints return."""


class Scheduler:
    """One scheduler with the profiles of its configuration."""

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
        decision_log: DecisionLog | None = None,
        recording: Recording | None = None,
        services: Mapping[str, object] | None = None,
        tie_break: Callable[[Columns], TieBreak] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> None:
        """`events_client` sends events. Without it they share `client`, and its rate limit, with bindings.

        `services` are further parameters that constructors of plugins may have. `on_synced` is called when the caches
        are filled, before the first decision.
        """
        limits = limits if limits is not None else Limits()
        self.client = client
        self._clock = clock
        self._entropy = entropy
        self._on_synced = on_synced
        columns = Columns()
        self.assumed_pods = AssumedPods(limits.confirmation_s_max)
        self.waiting_pods = WaitingPods()
        self.evictions = RunningPreemptions(columns.pods)
        self.event_buffer = EventBuffer()
        self.binding_pool = WorkerPool("binding", limits.bindings_max)
        self._status_pool = WorkerPool("status", limits.status_writes_max)
        self._eviction_pool = WorkerPool("eviction", limits.evictions_max)
        self.engine = Engine(
            configuration,
            entropy=entropy.fork("engine"),
            registry=registry,
            columns=columns,
            cycle_factory=cycle_factory(configuration),
            best_nodes_max=BEST_NODES_MAX,
            services={
                "client": client,
                "clock": clock,
                "evictions": self.evictions,
                "waiting_pods": self.waiting_pods,
                "activate": self._activate,
                "record_event": self._record_event,
                **({"record_write": recording.written} if recording is not None else {}),
                **(services or {}),
            },
            tie_break=tie_break,
        )
        self._extender_client = (
            _extender_client(self.engine, transport, self.event_buffer) if configuration.extenders else None
        )
        self.metrics = Metrics(metrics if metrics is not None else CollectorRegistry())
        self.status_writer = StatusWriter(client, clock, self._status_pool)
        self.events = EventWriter(
            events_client if events_client is not None else client, clock, entropy.fork("events"), SeriesFormat()
        )
        recorders = {name: self.events.recorder(name, f"{name}-{instance}") for name in self.engine.cycles}
        self.reports = Reports(
            recorders,
            self.status_writer,
            self.metrics,
            clock,
            entropy.fork("samples"),
            configuration_hash(configuration),
            recording,
        )
        self._recording = recording
        if recording is not None:
            cycles = self.engine.cycles.values()
            plugins = dict.fromkeys(type(plugin) for cycle in cycles for plugin in cycle.profile.plugins.values())
            recording.begin(configuration, entropy.fork("engine"), tuple(plugins))
        self._decision_log = decision_log
        if decision_log is not None:
            decision_log.attach(self.reports.decisions)
        profiles = {name: cycle.profile for name, cycle in self.engine.cycles.items()}
        self.queue = SchedulingQueue(
            profiles,
            clock=clock,
            backoff_initial_s=configuration.pod_initial_backoff_seconds,
            backoff_max_s=configuration.pod_max_backoff_seconds,
            unschedulable_s_max=limits.unschedulable_s_max,
            with_extenders=bool(configuration.extenders),
            on_incoming=self.reports.pod_queued,
        )
        self.pause = SchedulingPause(clock)
        self._timing = EventTiming(clock.now_s, self.metrics.event_handled)
        self.pods = PodEventHandler(
            self.engine, self.queue, self.assumed_pods, self.waiting_pods, profiles, self._timing
        )
        self.failures = FailureHandler(self.engine, self.queue, self.pods.pending, self.reports)
        self.bindings = BindingCycle(
            self.engine,
            self.queue,
            self.assumed_pods,
            self.waiting_pods,
            self.binding_pool,
            self.failures,
            self.reports,
            client,
            clock,
            self.event_buffer,
            self._extender_client,
            self.pause,
        )
        self.evictor = Evictor(
            self.evictions,
            self.bindings.running,
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
            self.assumed_pods,
            self.bindings,
            self.failures,
            self.evictor,
            self.reports,
            clock,
            self._extender_client,
            self.pause,
        )
        lookups = self.pods if recording is None else RecordedPodUpdates(self.pods, recording)
        self._expired_pods = ExpiredPodChecker(
            self.assumed_pods, self.engine, self.queue, lookups, client, clock, self.event_buffer
        )
        self.reflectors = dict(self._reflectors())
        self._register_metrics()

    async def run(self, may_begin: asyncio.Event | None = None) -> None:
        """Schedules pods until it is cancelled, then waits for running bindings.

        Until `may_begin` is set the scheduler watches the cluster, but makes no decision.
        """
        async with TaskGroup("scheduler") as group:
            for pool in (self.binding_pool, self._status_pool, self._eviction_pool):
                pool.open(group)
            self.events.start(group)
            if self._decision_log is not None:
                group.start_background(self._decision_log.run(), name="decision-log")
            if self._recording is not None:
                group.start_background(self._recording.run(), name="recording")
            for name, reflector in self.reflectors.items():
                group.start_background(reflector.run(), name=f"watch-{name}")
            for reflector in self.reflectors.values():
                await reflector.wait_synced()
            if self._on_synced is not None:
                self._on_synced()
            if may_begin is not None:
                await may_begin.wait()
            logger.info("scheduling on %d nodes, %d pods are pending", self.engine.columns.node_count, len(self.queue))
            group.start_background(self._expired_pods.run(), name="overdue")
            try:
                await self.loop.run()
            finally:
                await self._stop()

    async def _stop(self) -> None:
        """Waits for running work and for pending events, up to `STOP_S_MAX`."""
        self.pause.resume("the scheduler stops")
        try:
            async with asyncio.timeout(STOP_S_MAX):
                while self._is_busy:
                    await self._clock.wait(STOP_CHECK_S)
                await self.events.close()
        except TimeoutError:
            logger.warning("stopped with %d unfinished bindings", len(self.bindings.running))
        finally:
            self.waiting_pods.close()
            if self._extender_client is not None:
                await self._extender_client.close()

    @property
    def _is_busy(self) -> bool:
        pools = (self.binding_pool, self._status_pool, self._eviction_pool)
        return any(pool.running or pool.waiting for pool in pools)

    @property
    def has_synced(self) -> bool:
        """Whether every reflector has listed once."""
        return all(reflector.has_synced for reflector in self.reflectors.values())

    def pending_pods(self) -> Sequence[PodInfo]:
        """The pods in the queue that have no node, by priority and then by the time since which they are queued."""
        placed = self.engine.columns.pods
        waiting = [
            entry for entry in self.queue.entries() if entry.pod.uid not in placed and entry.pod.view is not None
        ]
        waiting.sort(key=lambda entry: (-entry.pod.priority, entry.queued_s))
        return [entry.pod for entry in waiting]

    def _reflectors(self) -> Iterable[tuple[str, Reflector[Any]]]:
        for kind, view, handler in object_handlers(self.engine, self.queue, self._timing):
            yield self._reflector(kind, view, handler)
        if self._extender_client is not None:
            yield "whole nodes", self._raw_reflector(NODE, self._extender_client.objects.nodes)
            yield "whole pods", self._raw_reflector(POD, self._extender_client.objects.pods)
        yield self._reflector(POD, Pod, self.pods)  # last: the first list then finds nodes and claims in the columns

    def _reflector(self, kind: Kind, view: type[Any], sink: Sink[Any]) -> tuple[str, Reflector[Any]]:
        if self._recording is not None:
            sink = recorded_sink(kind.resource, sink, self._recording)
        if self._extender_client is None:
            pass  # only a decision with extenders holds the event buffer
        elif isinstance(sink, PagedSink):
            sink = BufferedPagedSink(sink, sink, self.event_buffer)
        else:
            sink = BufferedSink(sink, self.event_buffer)
        entropy = self._entropy.fork(f"watch {kind.resource}")
        return kind.resource, Reflector(self.client, kind, view, sink, clock=self._clock, entropy=entropy)

    def _raw_reflector(self, kind: Kind, sink: Sink[UntypedObject]) -> Reflector[UntypedObject]:
        entropy = self._entropy.fork(f"watch whole {kind.plural}")
        return Reflector(self.client, kind, UntypedObject, sink, clock=self._clock, entropy=entropy)

    def _record_event(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> None:
        self.reports.event(pod, type_, reason, action, note)

    def _activate(self, uid: str) -> None:
        pod = self.pods.pending.get(uid)
        if pod is not None:
            self.event_buffer.run(partial(self.queue.activate, (pod,)))

    def _register_metrics(self) -> None:
        metrics = ReadMetrics()
        metrics.add("pending_pods", "Pods in the queue, by state.", ("queue",), self._pending_pods)
        metrics.add("unschedulable_pods", "Rejected pods, by plugin.", ("plugin", "profile"), self._unschedulable_pods)
        metrics.add("cache_size", "Nodes, pods and assumed pods in the columns.", ("type",), self._cache_size)
        metrics.add("goroutines", "Running operations.", ("operation",), self._running_work)
        metrics.add("inflight_events", "Events stored for in-flight pods.", ("event",), self._in_flight_events)
        by_result, by_reason = ("profile", "result"), ("profile", "reason")
        metrics.add("batch_attempts_total", "Pods, by use of cached results.", by_result, self._batch_attempts)
        metrics.add("batch_cache_flushed_total", "Signatures not cached any more.", by_reason, self._batch_flushed)
        self.metrics.registry.register(metrics)

    def _batch_attempts(self) -> Mapping[tuple[str, ...], float]:
        counted: dict[tuple[str, ...], float] = {}
        for profile, cycle in self.engine.cycles.items():
            counted[(profile, "hint_used")] = cycle.reuse_counts.reused
            counted[(profile, "no_hint")] = cycle.reuse_counts.unknown
        return counted

    def _batch_flushed(self) -> Mapping[tuple[str, ...], float]:
        return {
            (profile, reason): count
            for profile, cycle in self.engine.cycles.items()
            for reason, count in cycle.reuse_counts.dropped.items()
        }

    def _pending_pods(self) -> Mapping[tuple[str, ...], float]:
        numbers = self.queue.statistics()
        return {
            ("active",): numbers.active,
            ("backoff",): numbers.backoff,
            ("unschedulable",): numbers.unschedulable,
            ("gated",): numbers.gated,
        }

    def _unschedulable_pods(self) -> Mapping[tuple[str, ...], float]:
        return {(plugin, profile): count for (plugin, profile), count in self.queue.unschedulable_counts().items()}

    def _cache_size(self) -> Mapping[tuple[str, ...], float]:
        columns = self.engine.columns
        return {
            ("nodes",): columns.node_count,
            ("pods",): len(columns.pods),
            ("assumed_pods",): len(self.assumed_pods),
        }

    def _running_work(self) -> Mapping[tuple[str, ...], float]:
        return {
            ("binding",): len(self.bindings.running),
            ("preemption",): len(self.evictions),
            ("status",): len(self.status_writer),
        }

    def _in_flight_events(self) -> Mapping[tuple[str, ...], float]:
        return {(event,): count for event, count in self.queue.in_flight_events().items()}


def _extender_client(engine: Engine, transport: Transport | None, event_buffer: EventBuffer) -> ExtenderClient:
    if transport is None:
        transport = ExtenderTransport(extenders_of(engine.configuration))
    return ExtenderClient(engine, transport, event_buffer)
