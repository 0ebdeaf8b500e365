"""A harness for the writers of volumes and claims: a store, a recorded writer, a provisioner.

async def story(bench: Bench) -> None:
    found = await bench.claim()
    provisioner = await bench.start(class_view())
    await provisioner.provision(found)
    assert bench.recorded == [...]

run_story(story)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Kind
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.client.events import EventRecorder
from mooring.client.interface import Client
from mooring.controllers.context import ControllerContext
from mooring.controllers.volume.plan import VolumeEvent
from mooring.controllers.volume.provisioning import VolumeProvisioner
from mooring.controllers.volume.writer import OwnWritesCache, VolumeWriter
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.api_servers import create, open_loopback_client, store_object
from tests.controllers.cluster_builders import claim, volume


class Bench:
    """A provisioner at work on what is stored; it gets objects that are created before `start` at once."""

    def __init__(self, clock: VirtualClock, group: TaskGroup, store: MemoryStore, client: Client) -> None:
        self.clock, self.group = clock, group
        self.store = store
        self.client = client
        self.recorded: list[tuple[str, str]] = []
        self.is_released = True

    async def start(self, storage_class: StorageClass | None = None) -> VolumeProvisioner:
        context = ControllerContext(self.client, self.clock, Entropy(2))
        informers = context.informers
        self.volume_cache = volumes = OwnWritesCache("test", informers.informer(PersistentVolume))
        self.claim_cache = claims = OwnWritesCache("test", informers.informer(PersistentVolumeClaim))
        informers.start(self.group)
        await self.clock.wait(1)
        self.writer = _Overheard(self.client, context.recorder("test"), volumes, claims, self.recorded)
        return VolumeProvisioner(self.client, self.writer, lambda name: storage_class, lambda volume: self.is_released)

    async def claim(self, **parts: Any) -> PersistentVolumeClaim:
        document = claim(**parts)
        await create(self.client, PERSISTENT_VOLUME_CLAIM, "default", document)
        made = await self.client.get(PERSISTENT_VOLUME_CLAIM, "default", document["metadata"]["name"])
        return decode_as(PersistentVolumeClaim, made)

    async def volume(
        self, finalizers: list[str] | None = None, *, is_valid: bool = True, **parts: Any
    ) -> PersistentVolume:
        document = volume(**parts)
        document["metadata"]["finalizers"] = finalizers or []
        if is_valid:
            await create(self.client, PERSISTENT_VOLUME, "", document)
        else:
            await store_object(self.store, PERSISTENT_VOLUME, "", document)
        made = await self.client.get(PERSISTENT_VOLUME, "", document["metadata"]["name"])
        return decode_as(PersistentVolume, made)

    async def get(self, kind: Kind, name: str) -> Document:
        namespace = "default" if kind.is_namespaced else ""
        found: Document = msgspec.json.decode(await self.client.get(kind, namespace, name))
        return found

    async def volumes(self) -> list[Document]:
        return [msgspec.json.decode(raw) for raw in (await self.client.list(PERSISTENT_VOLUME)).items]


def run_story(story: Callable[[Bench], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore()
        async with open_loopback_client(clock, store=store) as client, TaskGroup("volumes") as group:
            await story(Bench(clock, group, store, client))
            group.cancel()

    run(main(), clock)


class _Overheard(VolumeWriter):
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        volumes: OwnWritesCache[PersistentVolume],
        claims: OwnWritesCache[PersistentVolumeClaim],
        recorded: list[tuple[str, str]],
    ) -> None:
        super().__init__(client, recorder, volumes, claims)
        self._told = recorded

    def record_event(self, about: PersistentVolume | PersistentVolumeClaim, event: VolumeEvent) -> None:
        self._told.append((event.reason, event.message))
