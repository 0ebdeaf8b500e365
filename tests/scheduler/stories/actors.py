"""What runs beside the scheduler: users' plugins, storage controllers, extenders, and schedulers that start and stop.

async with running(world, config) as scheduler: ...    a scheduler that is stopped at the end of the block
await bind_volumes(world)                              what the volume controller does with the claims of now
await provision(world, "n1")                           what a provisioner does for that node
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import BIND_COMPLETED, SELECTED_NODE
from mooring.client.interface import Client
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.extenders.extender import Extender, Transport
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from mooring.scheduler.scheduler import Limits, Scheduler
from tests.scheduler.world import World

Written = dict[str, Any]


@asynccontextmanager
async def running(
    world: World,
    config: Mapping[str, Any] | None = None,
    *,
    client: Client | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
    transport: Transport | None = None,
    seed: int = 7,
) -> AsyncIterator[Scheduler]:
    """A scheduler at work, until the end of the block."""
    scheduler = Scheduler(
        client if client is not None else world.client,
        load_configuration(config),
        clock=world.clock,
        entropy=Entropy(seed),
        registry=registry,
        limits=limits,
        transport=transport,
    )
    async with TaskGroup("one scheduler") as group:
        task = group.start(scheduler.run(), name="run")
        await world.settle()
        try:
            yield scheduler
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


# --- storage ------------------------------------------------------------------------------------------------------


async def bind_volumes(world: World) -> list[str]:
    """Completes what the scheduler wrote into volumes: claims that get the volume that names them. Returns them."""
    done = []
    claims = {claim["metadata"]["name"]: claim for claim in await _all(world, PERSISTENT_VOLUME_CLAIM)}
    for volume in await _all(world, PERSISTENT_VOLUME):
        named = volume["spec"].get("claimRef") or {}
        claim = claims.get(named.get("name", ""))
        if claim is None or claim["spec"].get("volumeName") or named.get("uid") != claim["metadata"]["uid"]:
            continue
        name = volume["metadata"]["name"]
        await world.patch(name, {"status": {"phase": "Bound"}}, kind=PERSISTENT_VOLUME, subresource="status")
        await complete(world, claim["metadata"]["name"], name)
        done.append(claim["metadata"]["name"])
    return done


async def complete(world: World, claim: str, volume: str) -> None:
    """A claim has its volume."""
    patch = {
        "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
        "spec": {"volumeName": volume},
    }
    await world.patch(claim, patch, kind=PERSISTENT_VOLUME_CLAIM)
    await world.patch(claim, {"status": {"phase": "Bound"}}, kind=PERSISTENT_VOLUME_CLAIM, subresource="status")


async def selected_node(world: World, claim: str) -> str:
    return str((await claim_of(world, claim))["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))


async def claim_of(world: World, name: str) -> Written:
    found: Written = msgspec.json.decode(await world.client.get(PERSISTENT_VOLUME_CLAIM, "default", name))
    return found


async def volume_of(world: World, name: str) -> Written:
    found: Written = msgspec.json.decode(await world.client.get(PERSISTENT_VOLUME, "", name))
    return found


async def reject_provisioning(world: World, claim: str) -> None:
    """The provisioner cannot: it takes the node's name off the claim."""
    await world.patch(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}}, kind=PERSISTENT_VOLUME_CLAIM)


async def _all(world: World, kind: Any) -> list[Written]:
    return [msgspec.json.decode(raw) for raw in (await world.client.list(kind)).items]


def held_by_volume_binding(scheduler: Scheduler) -> dict[str, int]:
    """What VolumeBinding remembers of pods, by what it is."""
    (profile,) = (cycle.profile for cycle in scheduler.engine.cycles.values())
    plugin = profile.plugins["VolumeBinding"]
    assert isinstance(plugin, VolumeBinding)
    return {
        "reserved": len(plugin._reserved),
        "assumed claims": len(plugin._claims._assumed),
        "assumed volumes": len(plugin._volumes._assumed),
        "waiters": len(plugin._binder._waiters),
    }


HOLDS_NOTHING = {"reserved": 0, "assumed claims": 0, "assumed volumes": 0, "waiters": 0}


# --- extenders ----------------------------------------------------------------------------------------------------


class ScriptedExtenders:
    """A way to extenders that answers by verb: a value, an exception, or a function of the question."""

    def __init__(self, world: World, answers: Mapping[str, object], *, delay_s: float = 0.0) -> None:
        self._world = world
        self._answers = answers
        self.delay_s = delay_s
        self.requests: list[tuple[str, Written]] = []

    async def send(self, extender: Extender, verb: str, body: bytes) -> bytes:
        question = msgspec.json.decode(body)
        self.requests.append((verb, question))
        if self.delay_s:
            await self._world.clock.wait(self.delay_s)
        answer = self._answers[verb]
        if callable(answer):
            answer = answer(question)
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)

    async def close(self) -> None:
        """Nothing is open."""
