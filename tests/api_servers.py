"""API servers without the network, for tests: the whole write path on a store in memory.

    async with open_loopback_client(clock) as client:
        await create(client, POD, "default", document)

A test of what a component does with an object that no API server accepts writes it with `store_object`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from mooring.api.kinds import Kind
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.stored_form import encoded
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import VIRTUAL_WALL_S, Clock, VirtualClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.serving.users import User
from mooring.store.interface import Store
from mooring.store.memory import MemoryStore

TOKEN_KEY = new_key()
ADMIN = User("tester", groups=("system:masters",))
WITHOUT_CONTROLLERS = Settings(
    TOKEN_KEY,
    disabled_admission_plugins=frozenset(("ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition")),
)
"""For tests in which not every controller runs: pods need no service account, and new objects get no finalizers and no
taints that a controller would have to remove."""

NO_CLIENT = cast("Client", object())
"""For components that need a client, in tests that send no request."""


@asynccontextmanager
async def open_loopback_client(
    clock: Clock, entropy: Entropy | None = None, store: Store | None = None
) -> AsyncIterator[LoopbackClient]:
    """A client of an API server that runs while the block runs, on an empty store or on `store`."""
    entropy = entropy or Entropy(1)
    async with open_api_server(store or MemoryStore(), clock, entropy, WITHOUT_CONTROLLERS) as api_server:
        yield LoopbackClient(api_server, ADMIN, "tester")


def with_api_server(
    scenario: Callable[[ApiServer, LoopbackClient], Awaitable[None]], settings: Settings | None = None
) -> None:
    """Play a scenario on a fresh cluster."""
    clock = VirtualClock()

    async def play() -> None:
        async with open_api_server(MemoryStore(), clock, Entropy(1), settings or WITHOUT_CONTROLLERS) as api_server:
            await scenario(api_server, LoopbackClient(api_server, User("tester"), "tester"))

    run(play(), clock)


async def create(client: Client, kind: Kind, namespace: str, document: Mapping[str, Any]) -> None:
    """Create an object and write its status, if it has one: an API server ignores the status of a new object."""
    name = document["metadata"]["name"]
    await client.create(kind, namespace, document)
    if kind.has_status and document.get("status"):
        status = {"status": document["status"]}
        await client.patch(kind, namespace, name, status, form=PatchForm.MERGE, subresource="status")


async def store_object(store: Store, kind: Kind, namespace: str, document: Mapping[str, Any]) -> None:
    """Write an object without defaults, admission and validation, as another writer of the store might."""
    name = document["metadata"]["name"]
    system = {"uid": f"uid-{name}", "creationTimestamp": format_rfc3339(VIRTUAL_WALL_S), "generation": 1}
    metadata = {**({"namespace": namespace} if namespace else {}), **system, **document["metadata"]}
    metadata.pop("resourceVersion", None)
    await store.put(kind.key(namespace, name), encoded({**document, "metadata": metadata}))
