"""A standalone scheduler: clients, a Lease, a secure port, and the scheduler.

Input: settings, a clock, entropy. Output: bound pods in the cluster of an API server.

    election client ──> elector ── may begin ──> scheduler <── client, events client, extenders
                           └────── may write ───────────────────┘
    secure port ──> health, metrics, profiles of all of them

1. The Lease is renewed with a separate client, which neither rate limits nor a thousand bindings delay. Events have a
   client of their own as well, so that they do not delay bindings.
2. A scheduler that waits for the Lease fills its cache already, except with `delayCacheUntilActive`.
3. It stops in this order: it is not ready any more, schedules no more pods, finishes its bindings, releases the Lease,
   closes the port.
4. A process that does not lead sends no write: the clients check the elector immediately before they send. When the
   Lease is lost, `run` raises.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from mooring.api.kinds import LEASE
from mooring.api.views.meta import ObjectReference
from mooring.client.election import ElectionSettings, LeaderElector, new_identity
from mooring.client.events import CoreFormat, EventWriter
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection
from mooring.client.interface import Client
from mooring.cluster.component_metrics import ClientRequestMetrics, component_registry
from mooring.cluster.console_pods import manifest_page
from mooring.cluster.scheduler_pages import PageSources, scheduler_pages
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.memory import settle_memory
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config.types import LeaderElectionConfiguration, SchedulerConfiguration
from mooring.scheduler.console.history import History
from mooring.scheduler.extenders.client import ExtenderTransport
from mooring.scheduler.extenders.extender import extenders_of
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.reporting.decision_log import DecisionLog
from mooring.scheduler.reporting.recording import Recording
from mooring.scheduler.scheduler import Limits, Scheduler
from mooring.serving.loop_metrics import LoopMetrics

NAME = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Settings of a standalone scheduler."""

    configuration: SchedulerConfiguration
    connection: Connection = field(repr=False)
    registry: Registry | None = None
    port: SecurePort | None = None
    """None: no port is opened."""
    in_flight_max: int = 100
    limits: Limits = field(default_factory=Limits)
    flags: Mapping[str, str] = field(default_factory=dict)
    """The flags of the command line, for `/flagz`."""
    hidden_metrics: Sequence[str] = ()
    set_verbosity: Callable[[int], None] | None = None
    """Changes the log verbosity at run time."""
    decision_log: DecisionLog | None = None
    recording: Recording | None = None


def election_settings(configuration: LeaderElectionConfiguration, identity: str) -> ElectionSettings:
    """Raises `ElectionSettingsError`."""
    return ElectionSettings(
        configuration.resource_namespace,
        configuration.resource_name,
        identity,
        configuration.lease_duration_s,
        configuration.renew_deadline_s,
        configuration.retry_period_s,
    )


class SchedulerProcess:
    """A scheduler with its clients, its Lease and its port."""

    def __init__(self, settings: SchedulerSettings, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._may_begin = asyncio.Event()
        self._stop = asyncio.Event()
        self._requests = ClientRequestMetrics()
        self._metrics = component_registry(self._requests)
        self._metrics.register(LoopMetrics())
        self.port = 0

    def stop(self) -> None:
        """Stop in order."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def run(self) -> None:
        """Run until stopped. Raises `LeadershipLostError` in a group, among others."""
        configuration = self._settings.configuration
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(TaskGroup("events"))
            elector = await self._elector(stack, group) if configuration.leader_election.leader_elect else None
            may_write = None if elector is None else lambda: elector.is_leading
            if elector is None:
                self._may_begin.set()
            client = await self._client(stack, "client", "scheduler", may_write)
            events = await self._client(stack, "events client", "events", may_write)
            extenders = ExtenderTransport(extenders_of(configuration), may_write)
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
                    # Release the Lease when nothing is written any more.
                    scheduling.cancel()
                    await has_ended.wait()

            if elector is not None:
                group.start_background(elector.run(lead), name="leader election")
            await self._stop.wait()

    # ---------------------------------------------------------------------------------------------- construction

    async def _client(
        self, stack: AsyncExitStack, stream: str, component: str, may_write: Callable[[], bool] | None
    ) -> HttpClient:
        rate = self._settings.configuration.client_connection
        limits = HttpLimits(requests_per_s=rate.qps, burst=rate.burst, in_flight_max=self._settings.in_flight_max)
        client = HttpClient(
            self._settings.connection,
            self._clock,
            self._entropy.fork(stream),
            limits=limits,
            component=component,
            may_write=may_write,
        )
        self._requests.add(self._settings.connection.server, client.request_statistics)
        return await stack.enter_async_context(client)

    async def _elector(self, stack: AsyncExitStack, group: TaskGroup) -> LeaderElector:
        entropy = self._entropy.fork("leader election")
        election = election_settings(self._settings.configuration.leader_election, new_identity(entropy))
        limits = HttpLimits(request_s_max=election.attempt_s_max)
        client = HttpClient(self._settings.connection, self._clock, entropy, limits=limits, component="leader-election")
        self._requests.add(self._settings.connection.server, client.request_statistics)
        await stack.enter_async_context(client)
        writer = EventWriter(client, self._clock, entropy.fork("events"), CoreFormat())
        recorder = writer.recorder(self._settings.configuration.profiles[0].scheduler_name)
        writer.start(group)
        about = ObjectReference(
            api_version=LEASE.api_version, kind=LEASE.kind, namespace=election.namespace, name=election.name
        )

        def report(text: str) -> None:
            recorder.event(about, "Normal", "LeaderElection", text)

        return LeaderElector(client, election, clock=self._clock, entropy=entropy, report=report)

    def _scheduler(self, client: Client, events: Client, extenders: ExtenderTransport) -> Scheduler:
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
            decision_log=self._settings.decision_log,
            recording=self._settings.recording,
            on_synced=settle_memory,
        )

    @asynccontextmanager
    async def _served(self, scheduler: Scheduler, elector: LeaderElector | None) -> AsyncIterator[None]:
        if self._settings.port is None:
            yield
            return
        history = History(scheduler, self._clock, self._settings.decision_log)
        sources = PageSources(
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
            history=history,
            set_verbosity=self._settings.set_verbosity,
        )
        async with AsyncExitStack() as stack:
            pages = scheduler_pages(sources)
            if self._settings.port.console is not None:
                pages |= await stack.enter_async_context(manifest_page(scheduler))
                group = await stack.enter_async_context(TaskGroup("console"))
                group.start_background(history.run(), name="history")
            opened = open_secure_port(self._settings.port, pages, self._clock, self._entropy)
            self.port = await stack.enter_async_context(opened)
            yield
