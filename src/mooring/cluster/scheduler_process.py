"""A scheduler as a process of its own: clients, a lease, a secure port, and the scheduler between them.

Comes in   what was asked for, time and chance, and an event that says when to stop
Goes out   bound pods in a cluster somewhere else

    election client ──> elector ── may begin ──> scheduler <── client, events client, extenders
                           └────── may write ───────────────────┘
    secure port ──> health, metrics, profiles of all of them

 1. The lease is renewed over a client of its own, so that neither rate limits nor a thousand bindings hold it up.
    Events have one, too: they do not take turns with bindings.
 2. Whoever stands by knows the cluster already, unless the configuration wants otherwise (`delayCacheUntilActive`).
 3. In order, when it is told to stop: not ready any more, nothing new is scheduled, bindings end, the lease is given
    back, the port is closed.
 4. A process that does not lead sends no write: the clients ask the elector immediately before they send. When the
    lease is lost, `run` raises.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from mooring.api.kinds import LEASE
from mooring.api.views.meta import ObjectReference
from mooring.client.election.elector import ElectionSettings, LeaderElector
from mooring.client.events.formats import CoreFormat
from mooring.client.events.writer import EventWriter
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.request_metrics import RequestMetrics
from mooring.cluster.scheduler_pages import Insight, scheduler_pages
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.extenders.extender import extenders_of
from mooring.scheduler.extenders.http import HttpTransport
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.scheduler import Limits, Scheduler

NAME = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Everything about a scheduler that can be chosen."""

    configuration: SchedulerConfiguration
    connection: Connection = field(repr=False)
    registry: Registry | None = None
    port: SecurePort | None = None
    """None: nothing is served."""
    in_flight_max: int = 100
    limits: Limits = field(default_factory=Limits)
    flags: Mapping[str, str] = field(default_factory=dict)
    """As text, to be shown."""
    hidden_metrics: Sequence[str] = ()
    set_verbosity: Callable[[int], None] | None = None
    """How much is logged, changed while it runs."""


class SchedulerProcess:
    """One scheduler, from its clients to its port."""

    def __init__(self, settings: SchedulerSettings, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._may_begin = asyncio.Event()
        self._stop = asyncio.Event()
        self._metrics = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._metrics)
        self._requests = RequestMetrics(settings.connection.server)
        self._metrics.register(self._requests)
        self.port = 0

    def stop(self) -> None:
        """End in order."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def run(self) -> None:
        """Until it is stopped. Raises `LeadershipLostError` in a group, among others."""
        configuration = self._settings.configuration
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(TaskGroup("events"))
            elector = await self._elector(stack, group) if configuration.leader_election.leader_elect else None
            may_write = None if elector is None else lambda: elector.is_leading
            if elector is None:
                self._may_begin.set()
            client = await self._client(stack, "client", "scheduler", may_write)
            events = await self._client(stack, "events client", "events", may_write)
            extenders = HttpTransport(extenders_of(configuration), may_write)
            scheduler = self._scheduler(client, events, extenders)
            async with self._served(scheduler, elector):
                await self._work(scheduler, elector)

    async def _work(self, scheduler: Scheduler, elector: LeaderElector | None) -> None:
        has_ended = asyncio.Event()
        is_late = elector is not None and self._settings.configuration.delay_cache_until_active

        async def schedule() -> None:
            try:
                if is_late:
                    await self._may_begin.wait()
                await scheduler.run(self._may_begin)
            finally:
                has_ended.set()

        async with TaskGroup("scheduler process") as group:
            scheduling = group.start_background(schedule(), name="scheduler")

            async def lead() -> None:
                self._may_begin.set()
                try:
                    await has_ended.wait()
                finally:
                    # The lease is given back only when nothing is written any more.
                    scheduling.cancel()
                    await has_ended.wait()

            if elector is not None:
                group.start_background(elector.run(lead), name="leader election")
            await self._stop.wait()

    # ---------------------------------------------------------------------------------------------- the parts

    async def _client(
        self, stack: AsyncExitStack, stream: str, component: str, may_write: Callable[[], bool] | None
    ) -> HttpClient:
        asked = self._settings.configuration.client_connection
        limits = HttpLimits(requests_per_s=asked.qps, burst=asked.burst, in_flight_max=self._settings.in_flight_max)
        client = HttpClient(
            self._settings.connection,
            self._clock,
            self._entropy.fork(stream),
            limits=limits,
            component=component,
            may_write=may_write,
        )
        self._requests.add(client.asked)
        return await stack.enter_async_context(client)

    async def _elector(self, stack: AsyncExitStack, group: TaskGroup) -> LeaderElector:
        asked = self._settings.configuration.leader_election
        limits = HttpLimits(request_s_max=asked.renew_deadline_s / 2)
        entropy = self._entropy.fork("leader election")
        client = HttpClient(self._settings.connection, self._clock, entropy, limits=limits, component="leader-election")
        self._requests.add(client.asked)
        await stack.enter_async_context(client)
        election = ElectionSettings(
            asked.resource_namespace,
            asked.resource_name,
            # Two processes on one host are still two.
            f"{socket.gethostname()}_{entropy.uuid()}",
            asked.lease_duration_s,
            asked.renew_deadline_s,
            asked.retry_period_s,
        )
        writer = EventWriter(client, self._clock, entropy.fork("events"), CoreFormat())
        recorder = writer.recorder(self._settings.configuration.profiles[0].scheduler_name)
        writer.start(group)
        about = ObjectReference(
            api_version=LEASE.api_version, kind=LEASE.kind, namespace=election.namespace, name=election.name
        )

        def tell(text: str) -> None:
            recorder.event(about, "Normal", "LeaderElection", text)

        return LeaderElector(client, election, clock=self._clock, entropy=entropy, tell=tell)

    def _scheduler(self, client: Client, events: Client, extenders: HttpTransport) -> Scheduler:
        return Scheduler(
            client,
            self._settings.configuration,
            clock=self._clock,
            entropy=self._entropy.fork("scheduler"),
            registry=self._settings.registry,
            limits=self._settings.limits,
            metrics=self._metrics,
            instance=socket.gethostname(),
            transport=extenders,
            events_client=events,
        )

    @asynccontextmanager
    async def _served(self, scheduler: Scheduler, elector: LeaderElector | None) -> AsyncIterator[None]:
        if self._settings.port is None:
            yield
            return
        insight = Insight(
            name=NAME,
            scheduler=scheduler,
            elector=elector,
            configuration=self._settings.configuration,
            flags=self._settings.flags,
            metrics=self._metrics,
            hidden_metrics=frozenset(self._settings.hidden_metrics),
            may_lead=self._may_begin.is_set,
            is_stopping=self._stop.is_set,
            clock=self._clock,
            set_verbosity=self._settings.set_verbosity,
        )
        async with open_secure_port(self._settings.port, scheduler_pages(insight), self._clock, self._entropy) as port:
            self.port = port
            yield
