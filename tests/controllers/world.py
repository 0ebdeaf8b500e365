"""A cluster on virtual time: an API server on a store in memory, and controllers at work.

    async def story(world: World) -> None:
        await world.create(deployment("web", replicas=3))
        await world.settle()
        assert len(await world.pods()) == 3

    play(story, controllers=["deployment-controller", "replicaset-controller"])

Objects are made by the builders of `tests.controllers.builders`. Nobody schedules or runs pods but the story itself
(`bind`, `make_ready`, `reap`), unless it asks for a kubelet that does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, DEPLOYMENT, POD, REPLICA_SET, Kind, kind_named
from mooring.client.errors import InvalidError
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.controllers.manager import ControllerManager
from mooring.controllers.settings import ControllerSettings
from mooring.kit.clock import VirtualClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.api_servers import create, open_loopback_client, store_object

Story = Callable[["World"], Awaitable[None]]
Through = Callable[[Client, VirtualClock], Client]
Documents: TypeAlias = list[Document]
RecordedEvents: TypeAlias = list[tuple[str, str, str]]
NAMESPACE = "default"


class World:
    """What a story plays in."""

    def __init__(
        self, clock: VirtualClock, group: TaskGroup, entropy: Entropy, store: MemoryStore, client: Client
    ) -> None:
        self.clock = clock
        self.group = group
        self.entropy = entropy
        self.store = store
        self.client = client
        self.managers: list[ControllerManager] = []

    def start_manager(
        self,
        controllers: Sequence[str],
        *,
        client: Client | None = None,
        settings: ControllerSettings | None = None,
        root_ca_pem: str = "",
        local_volumes: str = "",
    ) -> ControllerManager:
        manager = ControllerManager(
            client if client is not None else self.client,
            self.clock,
            self.entropy.fork(f"manager {len(self.managers)}"),
            settings,
            controllers,
            root_ca_pem=root_ca_pem,
            local_volumes=local_volumes,
        )
        self.managers.append(manager)
        self.group.start_background(manager.run(), name=f"manager {len(self.managers)}")
        return manager

    # Writing

    async def create(self, *documents: Mapping[str, Any]) -> None:
        for document in documents:
            kind = kind_named(document["apiVersion"], document["kind"])
            namespace = document["metadata"].get("namespace", NAMESPACE) if kind.is_namespaced else ""
            await create(self.client, kind, namespace, document)

    async def store_invalid(self, document: Mapping[str, Any]) -> None:
        """An object that the API server rejects, but that may be in the store."""
        kind = kind_named(document["apiVersion"], document["kind"])
        with pytest.raises(InvalidError):
            await create(self.client, kind, NAMESPACE, document)
        await store_object(self.store, kind, NAMESPACE, document)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, object],
        subresource: str = "",
        *,
        namespace: str = NAMESPACE,
    ) -> None:
        namespace = namespace if kind.is_namespaced else ""
        await self.client.patch(kind, namespace, name, patch, form=PatchForm.MERGE, subresource=subresource)

    async def delete(self, kind: Kind, name: str, grace_s: int | None = 0, *, namespace: str = NAMESPACE) -> None:
        namespace = namespace if kind.is_namespaced else ""
        await self.client.delete(kind, namespace, name, Deletion(grace_s=grace_s))

    async def settle(self, for_s: float = 1.0) -> None:
        """Let all components run for a while."""
        await self.clock.wait(for_s)

    # Pods: what a scheduler and a kubelet would do

    async def make_ready(self, *names: str, is_ready: bool = True) -> None:
        """All pods that are not, or those that are named."""
        for pod in await self.list(POD):
            name = pod["metadata"]["name"]
            if names and name not in names:
                continue
            if not names and pod.get("status", {}).get("phase") == "Running":
                continue
            now = format_rfc3339(self.clock.wall_s())
            condition = {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": now}
            await self.patch(POD, name, {"status": {"phase": "Running", "conditions": [condition]}}, "status")

    async def run_pods(self, rounds: int = 20) -> None:
        """Makes pods ready as they come, until nothing more happens."""
        for _ in range(rounds):
            await self.make_ready()
            await self.settle()

    # Reading

    async def list(self, kind: Kind) -> Documents:
        listing = await self.client.list(kind)
        return [msgspec.json.decode(raw) for raw in listing.items]

    async def get(self, kind: Kind, name: str, *, namespace: str = NAMESPACE) -> Document:
        namespace = namespace if kind.is_namespaced else ""
        found: Document = msgspec.json.decode(await self.client.get(kind, namespace, name))
        return found

    async def pods(self) -> Documents:
        return await self.list(POD)

    async def sets(self) -> dict[str, Document]:
        """ReplicaSets by the image of their first container."""
        found = await self.list(REPLICA_SET)
        return {each["spec"]["template"]["spec"]["containers"][0]["image"]: each for each in found}

    async def sizes(self) -> dict[str, int]:
        """How many replicas each ReplicaSet wants, by image."""
        return {image: each["spec"]["replicas"] for image, each in (await self.sets()).items()}

    async def conditions(self, name: str, kind: Kind = DEPLOYMENT) -> dict[str, tuple[str, str]]:
        """(status, reason) by type."""
        status = (await self.get(kind, name)).get("status", {})
        return {
            condition["type"]: (condition["status"], condition.get("reason", ""))
            for condition in status.get("conditions", [])
        }

    async def events(self, reason: str = "") -> RecordedEvents:
        """(object, reason, message) of each event."""
        found = [(e["involvedObject"]["name"], e["reason"], e["message"]) for e in await self.list(CORE_EVENT)]
        return [event for event in found if not reason or event[1] == reason]


@asynccontextmanager
async def open_world(clock: VirtualClock, entropy: Entropy) -> AsyncIterator[World]:
    """A world whose API server runs while the block runs."""
    store = MemoryStore()
    async with open_loopback_client(clock, entropy.fork("client"), store) as client, TaskGroup("world") as group:
        yield World(clock, group, entropy, store, client)


def play(
    story: Story,
    *,
    controllers: Sequence[str],
    settings: ControllerSettings | None = None,
    through: Through | None = None,
    seed: int = 1,
    local_volumes: str = "",
) -> None:
    """Runs a story with controllers that are synced."""
    clock = VirtualClock()

    async def main() -> None:
        async with open_world(clock, Entropy(seed)) as world:
            client = through(world.client, clock) if through is not None else None
            world.start_manager(controllers, client=client, settings=settings, local_volumes=local_volumes)
            await world.settle()
            await story(world)
            for manager in world.managers:
                manager.stop()

    run(main(), clock)
