"""Runs the controllers of one process on a shared set of informers.

Input: a client, a clock, entropy, settings, names of controllers. They run until `stop` or cancellation.

 1. All controllers request their informers first. Then the informers start and sync, then the controllers start.
 2. `stop` finishes the work in progress: queues are drained, events written, then the informers end.
 3. A controller that fails as a whole ends the manager with its exception: half a control plane is worse than none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from mooring.client.interface import Client
from mooring.controllers.context import Controller, ControllerContext
from mooring.controllers.settings import ControllerSettings
from mooring.controllers.table import CONTROLLERS, enabled_names, switched_off
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

STOP_S_MAX = 10.0
"""Maximum time for writing the last events."""

logger = logging.getLogger(__name__)


class ControllerManager:
    """The controllers of one process."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        settings: ControllerSettings | None = None,
        enabled: Sequence[str] = ("*",),
        *,
        root_ca_pem: str = "",
        local_volumes: str = "",
    ) -> None:
        """`enabled` as kube-controller-manager's `--controllers`: names, `*` for all, `-name` for all but that one."""
        settings = settings or ControllerSettings()
        self.context = ControllerContext(client, clock, entropy, settings, root_ca_pem, local_volumes)
        self.controllers: Sequence[Controller] = [
            CONTROLLERS[name](self.context)
            for name in enabled_names(enabled, tuple(CONTROLLERS))
            if name not in switched_off(settings)
        ]
        self._working = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Run until `stop` or cancellation."""
        async with TaskGroup("controllers") as group:
            self.context.events.start(group)
            self.context.informers.start(group)
            await self.context.informers.wait_all_synced()
            for controller in self.controllers:
                controller.start(group)
            logger.info("%d controllers started", len(self.controllers))
            self._working.set()
            await self._stopping.wait()
            for controller in self.controllers:
                controller.stop()
            await self._wait_events_written()

    async def wait_working(self) -> None:
        """Wait until every controller has started."""
        await self._working.wait()

    @property
    def is_working(self) -> bool:
        """Whether the informers have synced and every controller has started."""
        return self._working.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def statistics(self) -> dict[str, dict[str, float]]:
        """Statistics of the queue of each controller."""
        return {controller.name: controller.queue.statistics() for controller in self.controllers}

    async def _wait_events_written(self) -> None:
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self.context.events.wait_written()
        except TimeoutError:
            logger.warning("some events were not written before the timeout")
