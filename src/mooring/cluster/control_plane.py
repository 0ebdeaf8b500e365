"""The scheduler and the controllers of a cluster: components that need only a client.

Input: settings, a client, a clock, entropy. They run until cancelled, in the process of the API server or in the worker
process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from mooring.client.interface import Client
from mooring.cluster.settings import ControlPlaneSettings
from mooring.controllers.manager import ControllerManager
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.scheduler import Scheduler

Component = Callable[[ControlPlaneSettings, Client, Clock, Entropy], Coroutine[Any, Any, None]]


async def run_scheduler(settings: ControlPlaneSettings, client: Client, clock: Clock, entropy: Entropy) -> None:
    configuration = load_configuration_or_policy(settings.scheduler_configuration)
    await Scheduler(client, configuration, clock=clock, entropy=entropy.fork("scheduler")).run()


async def run_controllers(settings: ControlPlaneSettings, client: Client, clock: Clock, entropy: Entropy) -> None:
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
