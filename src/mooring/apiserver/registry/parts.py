"""The dependencies of the verbs: storage, admission, entropy, and what is reserved during a write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, TypeVarTuple

from mooring.api.document import Document
from mooring.apiserver.admission.interface import Chain, Lookup
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.update import stamp_update
from mooring.apiserver.call import Call
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.worker import WORKER_BYTES_MIN, Worker
from mooring.kit.entropy import Entropy

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Reservation(Protocol):
    """Addresses and ports that an object was given before it is written."""

    def keep(self) -> None:
        """The write has happened."""

    def close(self) -> None:
        """Give back what was not kept."""


class NothingReserved:
    """The reservation of an object that needs none."""

    def keep(self) -> None:
        pass

    def close(self) -> None:
        pass


NOTHING_RESERVED = NothingReserved()


class Reserver(Protocol):
    """Gives an object what must be unique in the cluster, before it is validated. Raises `StatusError`."""

    async def __call__(self, resource: Resource, call: Call, obj: Document, old: Document | None) -> Reservation: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Shared by all verbs."""

    object_storage: ObjectStorage
    resources: ResourceTable
    """For verbs that write to other kinds than they were asked for: evictions spend budgets."""
    lookup: Lookup
    admission: Chain
    entropy: Entropy
    shape_of: Callable[[Resource], Shape]
    """How the fields of a kind are merged, for those who manage them."""
    reserve: Reserver
    released: Callable[[Resource, Document], Awaitable[None]]
    """Told of every object that is gone, to take back what was reserved for it."""
    worker: Worker

    def run(
        self, strategy: Strategy, call: Call, work: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Coroutine[Any, Any, Result]:
        """Run a step of a write where it blocks no other request. `work` obeys the rules of `Worker`."""
        size_bytes = max(call.size_bytes, WORKER_BYTES_MIN) if strategy.is_costly else call.size_bytes
        return self.worker.run(size_bytes, work, *arguments)

    def stamp(self, resource: Resource, strategy: Strategy, call: Call, live: Document | None, new: Document) -> None:
        """Note in `new` who has written which of its fields."""
        stamp_update(self.shape_of(resource), live, new, call, strategy.ignored_fields)
