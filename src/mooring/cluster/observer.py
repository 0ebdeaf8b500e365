"""Follows a cluster that another scheduler schedules, and computes what our engine would decide: `mooring console`.

Input: a client that writes nothing. Output: the console, with a queue and attempts that are recomputed.

    reflectors ──> event handlers ──> queue ──> decide ──> decision record
                                        ^          │
                                        └──────────┘  every pod returns to the queue: nothing is assumed or bound

1. Each pod is decided on its own, as if it were next. A rejected pod waits for events like in a scheduler; a pod that
   fits waits for its own scheduler and is decided again after its backoff.
2. Kinds that the user may not list are left out. Nodes and pods are needed.
3. At most `DECISIONS_MAX` decisions are made in `PERIOD_S`: a cluster without a scheduler may have many pods that fit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mooring.api.kinds import NODE, POD
from mooring.client.errors import ForbiddenError, NotFoundError
from mooring.client.interface import Client
from mooring.cluster.console_pages import ConsoleSource
from mooring.cluster.console_pods import manifest_page
from mooring.cluster.scheduler_pages import scheduler_state_pages
from mooring.cluster.secure_port import SecurePort, open_secure_port
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.console.history import History
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.console import ROOT

DECISIONS_MAX = 64
PERIOD_S = 0.1
FITS = "it fits; its scheduler has not bound it yet"

logger = logging.getLogger(__name__)


class Observer:
    """A scheduler that decides, and changes nothing."""

    def __init__(
        self, client: Client, configuration: SchedulerConfiguration, server: str, clock: Clock, entropy: Entropy
    ) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self.server = server
        self.scheduler = Scheduler(client, configuration, clock=clock, entropy=entropy.fork("scheduler"))
        self._reflectors = dict(self.scheduler.reflectors)
        self._not_read: tuple[str, ...] = ()

    @property
    def kinds(self) -> int:
        """The number of kinds that are read."""
        return len(self._reflectors)

    async def find_unreadable(self) -> tuple[str, ...]:
        """Leaves out the kinds that the server does not have, or that the user may not list; the latter are returned.

        Raises `ClientError` if nodes or pods cannot be listed."""
        denied: list[str] = []
        for name, reflector in self.scheduler.reflectors.items():
            try:
                await self._client.list(reflector.kind, limit=1)
            except (ForbiddenError, NotFoundError) as error:
                if reflector.kind in (NODE, POD):
                    raise
                del self._reflectors[name]
                if isinstance(error, ForbiddenError):
                    denied.append(reflector.kind.plural)
        self._not_read = tuple(denied)
        return self._not_read

    async def run(
        self, port: SecurePort, stop: asyncio.Event, *, on_read: Callable[[], None], on_ready: Callable[[], None]
    ) -> None:
        """Serves the console until `stop` is set. Calls `on_read` after each kind, and `on_ready` after the last."""
        history = History(self.scheduler, self._clock)
        source = ConsoleSource(is_recomputed=True, server=self.server, not_read=self._not_read)
        pages = scheduler_state_pages(self.scheduler, self._clock, lambda: True, history, source)
        pages = {path: page for path, page in pages.items() if path.startswith(ROOT)}
        async with TaskGroup("observer") as group:
            stopping = group.start_background(stop.wait(), name="stop")
            reading = group.start_background(self._read(group, on_read), name="first lists")
            await asyncio.wait((stopping, reading), return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                return
            on_ready()
            group.start_background(self._decide_all(), name="decisions")
            group.start_background(history.run(), name="history")
            async with (
                manifest_page(self.scheduler) as page,
                open_secure_port(port, pages | page, self._clock, self._entropy),
            ):
                await stop.wait()

    async def _read(self, group: TaskGroup, on_read: Callable[[], None]) -> None:
        for name, reflector in self._reflectors.items():
            group.start_background(reflector.run(), name=f"watch-{name}")
        for reflector in self._reflectors.values():
            await reflector.wait_synced()
            on_read()

    async def _decide_all(self) -> None:
        queue = self.scheduler.queue
        while True:
            await queue.wait_until_ready()
            for _ in range(DECISIONS_MAX):
                entry = queue.pop()
                if entry is None:
                    break
                self._decide(entry)
                await self._clock.wait(0)
            await self._clock.wait(PERIOD_S)

    def _decide(self, entry: QueuedPod) -> None:
        scheduler, queue = self.scheduler, self.scheduler.queue
        pod = scheduler.pods.pending.get(entry.pod.uid)
        if pod is None or entry.pod.terminating:
            queue.done(entry.pod.uid)
            return
        started_s = self._clock.now_s()
        try:
            cycle = scheduler.engine.prepare(entry.pod)
            decision = cycle.decide_admitted(entry.pod)
        except Exception as error:
            logger.error("deciding about pod %s failed", entry.pod.key, exc_info=error)
            queue.requeue(entry, is_error=True)
            return
        took_s, records = self._clock.now_s() - started_s, scheduler.reports.decisions
        records.add(decision, entry.attempts, took_s, entry.requeued_by, cycle.last_steps)
        entry.pod = pod
        if decision.node_name is not None:
            records.bound(pod.uid, FITS)
            queue.requeue(entry, is_error=True)
            return
        queue.requeue(
            entry,
            decision.unschedulable_plugins,
            decision.pending_plugins,
            is_error=not decision.is_unschedulable,
        )
