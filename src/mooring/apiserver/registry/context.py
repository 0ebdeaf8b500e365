"""The dependencies of the verbs: storage, admission, entropy, and what is reserved during a write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, TypeVarTuple

from mooring.api.document import Document
from mooring.apiserver.admission.interface import AdmissionChain, Lookup
from mooring.apiserver.apply.update import update_managed_fields
from mooring.apiserver.call import Call
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.worker import WORKER_BYTES_MIN, WorkerThread
from mooring.kit.entropy import Entropy

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Reservation(Protocol):
    """Addresses and ports that an object was given before it is written."""

    def keep(self) -> None:
        """The write has happened."""

    def close(self) -> None:
        """Release the values of a reservation that was not kept."""


class NothingReserved:
    """The reservation of an object that needs none."""

    def keep(self) -> None:
        pass

    def close(self) -> None:
        pass


NOTHING_RESERVED = NothingReserved()


class Reserver(Protocol):
    """Allocates values that are unique in the cluster, before validation. Raises `StatusError`."""

    async def __call__(self, resource: Resource, call: Call, obj: Document, old: Document | None) -> Reservation: ...


@dataclass(frozen=True, slots=True)
class RegistryContext:
    """Shared by all verbs."""

    object_storage: ObjectStorage
    resources: ResourceTable
    """The resource of another kind, for verbs that write to it: evictions update budgets."""
    lookup: Lookup
    admission: AdmissionChain
    entropy: Entropy
    reserve: Reserver
    released: Callable[[Resource, Document], Awaitable[None]]
    """Called for every deleted object, to release its allocated values."""
    worker: WorkerThread

    def run(
        self, strategy: Strategy, call: Call, work: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Coroutine[Any, Any, Result]:
        """Run a step of a write where it blocks no other request. `work` obeys the rules of `WorkerThread`."""
        size_bytes = max(call.size_bytes, WORKER_BYTES_MIN) if strategy.is_costly else call.size_bytes
        return self.worker.run(size_bytes, work, *arguments)

    def stamp(self, resource: Resource, strategy: Strategy, call: Call, live: Document | None, new: Document) -> None:
        """Set the managedFields of `new`."""
        update_managed_fields(resource.merge_schema, live, new, call, strategy.ignored_fields)
