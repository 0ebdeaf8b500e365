"""The scheduler and the controllers of a cluster: components that need only a client.

Input: settings, a client, a clock, entropy, the pages of the process. They run until cancelled, in the process of the
API server or in the worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from mooring.client.interface import Client
from mooring.cluster.console_pages import ConsoleSource
from mooring.cluster.scheduler_pages import scheduler_state_pages
from mooring.cluster.settings import ControlPlaneSettings
from mooring.controllers.manager import ControllerManager
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.memory import settle_memory
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.catalogue import configuration_with
from mooring.scheduler.console.history import History
from mooring.scheduler.reporting.recording import Recording
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.pages import METRICS, PageResponse
from mooring.serving.server import Page

Pages = dict[str, Page]
"""The pages of the components of a process, by path. A component adds its own when it starts."""
Component = Callable[[ControlPlaneSettings, Client, Clock, Entropy, Pages], Coroutine[Any, Any, None]]


async def run_scheduler(
    settings: ControlPlaneSettings, client: Client, clock: Clock, entropy: Entropy, pages: Pages
) -> None:
    configuration, registry = configuration_with(settings.scheduler_configuration, settings.plugins)
    recording = (
        Recording(Path(settings.record), clock, bytes_max=settings.record_bytes_max) if settings.record else None
    )
    scheduler = Scheduler(
        client,
        configuration,
        clock=clock,
        entropy=entropy.fork("scheduler"),
        registry=registry,
        recording=recording,
        on_synced=settle_memory,
    )
    metrics = scheduler.metrics.registry
    pages["/metrics"] = lambda request: PageResponse(generate_latest(metrics), content_type=METRICS)
    history = History(scheduler, clock)
    pages |= scheduler_state_pages(scheduler, clock, lambda: True, history, ConsoleSource(can_pause=True))
    async with TaskGroup("scheduler with its history") as group:
        group.start_background(history.run(), name="history")
        await scheduler.run()


async def run_controllers(
    settings: ControlPlaneSettings, client: Client, clock: Clock, entropy: Entropy, pages: Pages
) -> None:
    chance = entropy.fork("controllers")
    manager = ControllerManager(
        client,
        clock,
        chance,
        settings.controllers,
        settings.enabled_controllers,
        root_ca_pem=settings.root_ca_pem,
        local_volumes=settings.local_volumes,
    )
    await manager.run()


CONTROL_PLANE: Mapping[str, Component] = {"scheduler": run_scheduler, "controllers": run_controllers}
"""By the names that `--without` has for them."""
