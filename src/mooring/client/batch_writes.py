"""Batch writes: many similar objects with one call.

Inputs: a template and names; statuses; the names of leases. Outputs: for each object, in order, what a single request
returns, or the `ClientError` that it raises.

1. A batch means the same as single requests. One rejected object does not stop the others.
2. A client that implements `BatchWrites` prepares once what the objects share. With any other client, each object is
   one request, at most `REQUESTS_MAX` at a time.
3. Objects are written concurrently. Of two with the same name, either may be written first.
4. A batch ends with its slowest request. Components whose objects must not wait for each other write only one at a time
   to a client whose requests may hang: `batch_max`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from mooring.api.kinds import LEASE, Kind
from mooring.client.errors import ClientError
from mooring.client.interface import Client, JsonObject, PatchForm
from mooring.kit.clock import format_rfc3339_micro
from mooring.kit.tasks import run_bounded

REQUESTS_MAX = 32

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class StatusPatch:
    """A strategic merge patch of the status of one object. It is rejected if the object has another uid."""

    namespace: str
    name: str
    uid: str
    status: JsonObject

    @property
    def body(self) -> JsonObject:
        return {"metadata": {"uid": self.uid}, "status": self.status}


Written: TypeAlias = Callable[[int, bytes], None]
"""Called with the index of an object and its answer, before a watch delivers the write."""


@runtime_checkable
class BatchWrites(Protocol):
    """A client that supports batch writes."""

    async def create_many(
        self, kind: Kind, namespace: str, template: JsonObject, names: Sequence[str]
    ) -> Sequence[bytes | ClientError]: ...

    async def patch_status_many(
        self, kind: Kind, patches: Sequence[StatusPatch], written: Written
    ) -> Sequence[bytes | ClientError]: ...

    async def renew_leases(
        self, namespace: str, names: Sequence[str], renew_time_s: float
    ) -> Sequence[bytes | ClientError]: ...


def batch_max(client: Client, limit: int) -> int:
    """How many objects a component writes with one call: `limit`, or 1 without batch writes."""
    return limit if isinstance(client, BatchWrites) else 1


async def create_many(
    client: Client, kind: Kind, namespace: str, template: JsonObject, names: Sequence[str]
) -> Sequence[bytes | ClientError]:
    """Create an object of the template for each name. An empty name keeps the `name` or `generateName` of the
    template."""
    if len(names) > 1 and isinstance(client, BatchWrites):
        return await client.create_many(kind, namespace, template, names)
    return await outcomes_of(lambda name: client.create(kind, namespace, named(template, name)), names)


async def patch_status_many(
    client: Client, kind: Kind, patches: Sequence[StatusPatch], written: Written
) -> Sequence[bytes | ClientError]:
    """Patch the status of each object."""
    if len(patches) > 1 and isinstance(client, BatchWrites):
        return await client.patch_status_many(kind, patches, written)

    async def patch(index: int) -> bytes:
        patch = patches[index]
        answer = await client.patch(
            kind, patch.namespace, patch.name, patch.body, form=PatchForm.STRATEGIC, subresource="status"
        )
        written(index, answer)
        return answer

    return await outcomes_of(patch, range(len(patches)))


async def renew_leases(
    client: Client, namespace: str, names: Sequence[str], renew_time_s: float
) -> Sequence[bytes | ClientError]:
    """Set `spec.renewTime` of each lease."""
    if len(names) > 1 and isinstance(client, BatchWrites):
        return await client.renew_leases(namespace, names, renew_time_s)
    patch = renewal_patch(renew_time_s)
    return await outcomes_of(lambda name: client.patch(LEASE, namespace, name, patch, form=PatchForm.MERGE), names)


def renewal_patch(renew_time_s: float) -> JsonObject:
    """The smallest patch that renews a lease: 5,000 nodes send 500 of them per second."""
    return {"spec": {"renewTime": format_rfc3339_micro(renew_time_s)}}


def named(template: JsonObject, name: str) -> JsonObject:
    """The template with this name."""
    metadata = template.get("metadata")
    if not name or not isinstance(metadata, Mapping | None):
        return template
    return {**template, "metadata": {**(metadata or {}), "name": name}}


async def outcomes_of(
    request: Callable[[Item], Awaitable[Answer]], items: Sequence[Item]
) -> list[Answer | ClientError]:
    """The result of each request or its `ClientError`, in order. At most `REQUESTS_MAX` at a time."""

    async def outcome(item: Item) -> Answer | ClientError:
        try:
            return await request(item)
        except ClientError as error:
            return error

    if len(items) < 2:  # without a task
        return [await outcome(item) for item in items]
    return await run_bounded(outcome, items, limit=REQUESTS_MAX, name="batch")
