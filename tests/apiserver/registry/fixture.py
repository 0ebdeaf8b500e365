"""Fixture of the registry tests: a store in memory and the registry context that the verbs need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import POD, Kind
from mooring.apiserver.admission.interface import Admission, AdmissionChain
from mooring.apiserver.call import Call
from mooring.apiserver.registry.context import NOTHING_RESERVED, RegistryContext, Reservation
from mooring.apiserver.registry.object_storage import ObjectStorage, StoreLookup
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.worker import WorkerThread
from mooring.kit.entropy import Entropy
from mooring.serving.users import User
from mooring.store.memory import MemoryStore

NOW = "2026-01-02T03:04:05Z"
NOW_S = 1_767_323_045.0
NS = "team"


class RegistryFixture:
    """A registry context on a store in memory, with helpers to fill and read the store."""

    def __init__(self, mutating: Sequence[Admission] = ()) -> None:
        self.store = MemoryStore()
        lookup, worker = StoreLookup(self.store), WorkerThread()
        self.context = RegistryContext(
            object_storage=ObjectStorage(self.store, worker),
            resources=ResourceTable(built_in_resources()),
            lookup=lookup,
            admission=AdmissionChain(mutating, (), lookup),
            entropy=Entropy(1),
            reserve=_nothing_reserved,
            released=_nothing_released,
            worker=worker,
        )

    async def put(self, kind: Kind, name: str, metadata: Document | None = None, **parts: Any) -> int:
        """Store an object without validation and return its revision."""
        whole = {"name": name, "uid": f"uid-{name}", "creationTimestamp": NOW, **(metadata or {})}
        if kind.is_namespaced:
            whole["namespace"] = NS
        return (await self.context.object_storage.create(kind, {"metadata": whole, **parts})).revision

    async def get(self, kind: Kind, name: str) -> Document:
        found = await self.context.object_storage.find(kind, NS if kind.is_namespaced else "", name)
        assert found is not None, f"{kind} {name} is not stored"
        return found.document

    async def is_gone(self, name: str) -> bool:
        return await self.context.object_storage.find(POD, NS, name) is None


def call(kind: Kind, name: str, subresource: str = "", *, is_dry_run: bool = False) -> Call:
    return Call(
        verb="create",
        kind=kind,
        user=User("somebody"),
        now_s=NOW_S,
        now=NOW,
        namespace=NS,
        name=name,
        subresource=subresource,
        is_dry_run=is_dry_run,
    )


async def _nothing_reserved(resource: Resource, call: Call, obj: Document, old: Document | None) -> Reservation:
    return NOTHING_RESERVED


async def _nothing_released(resource: Resource, obj: Document) -> None:
    pass
