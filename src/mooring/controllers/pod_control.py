"""Pod control: creating and deleting pods, in batches that grow, with the events that people know.

Comes in   from controllers: so many pods of this template, these pods to delete
Goes out   requests; events about the owner (SuccessfulCreate, FailedCreate, SuccessfulDelete, FailedDelete)

 1. Creation begins with one pod, then two, four, …: a template that a quota or a webhook refuses costs one request, not
    five hundred. The first failing batch is the last.
 2. At most `REQUESTS_AT_ONCE` requests are under way for one owner, and others get their turn after each
    `CREATIONS_IN_A_ROW` on a client that never suspends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.views.base import View
from mooring.api.views.meta import ApiObject
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.events.recorder import EventRecorder
from mooring.client.interface import Client
from mooring.controllers.documents import is_namespace_terminating, owner_reference
from mooring.kit.clock import Clock
from mooring.kit.tasks import run_bounded

REQUESTS_AT_ONCE = 32
CREATIONS_IN_A_ROW = 16
BATCH_INITIAL = 1


_Item = TypeVar("_Item")


class PodControlError(Exception):
    """Pods could not be created or deleted; the text is what stands in conditions."""


class Created(View):
    """What is worth knowing of a new pod."""

    name: str = ""
    resource_version: str = ""


class _Pod(View):
    metadata: Created = Created()


_read = msgspec.json.Decoder(_Pod).decode


def pod_of_template(template: Document, owner: ApiObject) -> Document:
    """A pod as the template wants it, controlled by its owner. Shares its parts with the template."""
    wanted: Document = template.get("metadata") or {}
    metadata: Document = {"generateName": f"{owner.metadata.name}-", "ownerReferences": [owner_reference(owner)]}
    for part in ("labels", "annotations", "finalizers"):
        if wanted.get(part):
            metadata[part] = wanted[part]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


class PodControl:
    """Speaks for one controller."""

    def __init__(self, client: Client, recorder: EventRecorder, clock: Clock) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock

    async def create(self, namespace: str, pod: Document, owner: ApiObject) -> Created:
        """Raises `ClientError`, after an event."""
        if not pod["metadata"].get("labels"):
            raise PodControlError("unable to create pods, no labels")
        try:
            answer = await self._client.create(POD, namespace, pod)
        except ClientError as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        created = _read(answer).metadata
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created.name}")
        return created

    async def delete(self, namespace: str, name: str, owner: ApiObject) -> None:
        """Raises `NotFoundError` if it is gone already, `PodControlError` if it could not be deleted."""
        try:
            await self._client.delete(POD, namespace, name)
        except NotFoundError:
            raise
        except ClientError as error:
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise PodControlError(f"unable to delete pods: {error}") from error
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    async def slow_start_batch(
        self, count: int, create_one: Callable[[int], Awaitable[None]]
    ) -> tuple[int, Exception | None]:
        """How many calls succeeded, and the first error, if there was one. The calls are numbered."""
        done = succeeded = 0
        batch = min(count, BATCH_INITIAL)
        while batch > 0:
            errors = await self.run_all([*range(done, done + batch)], create_one)
            succeeded += batch - len(errors)
            if errors:
                return succeeded, errors[0]
            done += batch
            batch = min(2 * batch, count - done)
        return succeeded, None

    async def run_all(self, items: list[_Item], work: Callable[[_Item], Awaitable[None]]) -> list[Exception]:
        """`work` for every item, several at a time; the errors, in the order of the items."""
        taken = 0

        async def run_one(item: _Item) -> Exception | None:
            nonlocal taken
            taken += 1
            if taken % CREATIONS_IN_A_ROW == 0:
                await self._clock.wait(0)
            try:
                await work(item)
            except (ClientError, PodControlError) as error:
                return error
            return None

        if len(items) == 1:
            errors = [await run_one(items[0])]
        else:
            errors = await run_bounded(run_one, items, limit=REQUESTS_AT_ONCE, name="pod control")
        return [error for error in errors if error is not None]
