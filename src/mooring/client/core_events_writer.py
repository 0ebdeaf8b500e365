"""The writer of v1 Events: brings what controllers say to the API server, in the background.

Comes in   from recorders: what happened (which never waits)
Goes out   Events: created, and patched when they happened again

 1. Each component has its own queue and its own writer, in order: what it said last is what stands there at the end.
 2. At most `PENDING_MAX` requests of a component wait; what comes then is dropped and counted.
 3. No answer, 429 or 5xx: again after `RETRY_S`, at most `TRIES_MAX` times, as client-go does. Other refusals: dropped.
 4. With a client that never suspends, others get their turn after each `WRITES_IN_A_ROW` events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from mooring.api.kinds import CORE_EVENT
from mooring.api.views.meta import ObjectReference
from mooring.client.core_events import CoreEventRecorder, Correlator, EventWrite
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

PENDING_MAX = 1000
TRIES_MAX = 12
RETRY_S = 10.0
WRITES_IN_A_ROW = 8

logger = logging.getLogger(__name__)


class CoreEventWriter:
    """One for a process; its recorders are made by `recorder`."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._voices: dict[str, _Voice] = {}
        self._group: TaskGroup | None = None

    def recorder(self, component: str) -> CoreEventRecorder:
        """A voice, such as `replicaset-controller`. The same name is the same voice."""
        voice = self._voices.get(component)
        if voice is None:
            correlator = Correlator(component, self._clock, self._entropy.fork(component))
            voice = self._voices[component] = _Voice(component, correlator, self._client, self._clock)
            if self._group is not None:
                self._group.start_background(voice.write(), name=f"events of {component}")
        return CoreEventRecorder(voice.tell, component)

    def start(self, group: TaskGroup) -> None:
        """Begin to write, in background tasks of the group."""
        self._group = group
        for component, voice in self._voices.items():
            group.start_background(voice.write(), name=f"events of {component}")

    async def wait_written(self) -> None:
        """Until what was said so far has been written, or tried once."""
        for voice in self._voices.values():
            await voice.wait_written()

    def statistics(self) -> dict[str, dict[str, int]]:
        return {component: voice.statistics() for component, voice in self._voices.items()}


class _Voice:
    """What one component says."""

    def __init__(self, component: str, correlator: Correlator, client: Client, clock: Clock) -> None:
        self._component = component
        self._correlator = correlator
        self._client = client
        self._clock = clock
        self._pending: deque[EventWrite] = deque()
        self._has_pending = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._counts = dict.fromkeys(("told", "created", "patched", "spam", "dropped_full", "dropped_refused"), 0)

    def tell(self, about: ObjectReference, type: str, reason: str, message: str) -> None:
        self._counts["told"] += 1
        if len(self._pending) >= PENDING_MAX:
            self._counts["dropped_full"] += 1
            return
        write = self._correlator.observe(about, type, reason, message)
        if write is None:
            self._counts["spam"] += 1
            return
        self._pending.append(write)
        self._has_pending.set()
        self._is_idle.clear()

    async def write(self) -> None:
        written = 0
        while True:
            await self._has_pending.wait()
            await self._write_until_it_works(self._pending.popleft())
            if not self._pending:
                self._has_pending.clear()
                self._is_idle.set()
            written += 1
            if written % WRITES_IN_A_ROW == 0:
                await self._clock.wait(0)

    async def wait_written(self) -> None:
        await self._is_idle.wait()

    def statistics(self) -> dict[str, int]:
        return {"pending": len(self._pending), **self._counts}

    async def _write_until_it_works(self, write: EventWrite) -> None:
        for attempt in range(TRIES_MAX):
            if attempt:
                await self._clock.wait(RETRY_S)
            try:
                await self._write(write)
                return
            except ClientError as error:
                if not error.can_help_to_retry:
                    logger.info("an event of %s is dropped: %s", self._component, error)
                    break
            except Exception:
                # Whatever it is, it must not silence the controller.
                logger.exception("an event of %s could not be written", self._component)
                break
        self._counts["dropped_refused"] += 1

    async def _write(self, write: EventWrite) -> None:
        if write.is_repeated:
            try:
                await self._client.patch(
                    CORE_EVENT, write.namespace, write.name, write.patch(), form=PatchForm.STRATEGIC
                )
                self._counts["patched"] += 1
                return
            except NotFoundError:
                pass  # it expired, or was never written: it begins anew, and keeps its count
        try:
            await self._client.create(CORE_EVENT, write.namespace, write.body, is_answer_wanted=False)
            self._counts["created"] += 1
        except AlreadyExistsError:
            logger.info("event %s/%s is there already", write.namespace, write.name)
